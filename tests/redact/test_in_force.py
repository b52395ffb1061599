"""What is in force: for a recording, for its children, and for a replay that knows more or less of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from reenact.errors import InputError
from reenact.redact import in_force, keys
from reenact.redact.in_force import KEY, POLICY, SALT, SOURCE, WORDS
from reenact.redact.plan import DEFAULT, Place

OURS = 'name = "ours"\n[classes]\nphone = "keep"\n[[find]]\nclass = "number"\npattern = "ACME-[0-9]{6}"\n'
WORDY = OURS + '[[find]]\nclass = "project"\nwords = ["Project Falcon"]\n'


def test_the_default_has_the_store_s_key_and_a_salt_that_travels(tmp_path: Path) -> None:
    found = in_force.guard(tmp_path / "store", {}, here=tmp_path)
    again = in_force.guard(tmp_path / "store", {}, here=tmp_path)
    assert found.plan is DEFAULT
    assert found.key is not None
    assert again.key is not None
    assert found.key.value == again.key.value
    assert found.salt != again.salt
    facts = found.facts()
    assert facts[POLICY] == DEFAULT.digest
    assert facts[KEY] == found.key.id
    assert facts[SALT] == found.salt
    assert SOURCE not in facts
    assert found.key.value.hex() not in str(facts)


def test_a_configured_key_keys_everything_and_no_salt_travels(tmp_path: Path) -> None:
    found = in_force.guard(tmp_path, {keys.VARIABLE: "x" * 20}, here=tmp_path)
    assert found.salt == ""
    assert SALT not in found.facts()
    engine, other = (
        found.engine({}),
        in_force.guard(tmp_path / "b", {keys.VARIABLE: "x" * 20}, here=tmp_path).engine({}),
    )
    assert engine.token("openai_key", "s") == other.token("openai_key", "s")
    assert not (tmp_path / keys.FILE).exists()


def test_the_call_beats_the_variable_the_project_and_the_store(tmp_path: Path) -> None:
    store, project = tmp_path / "store", tmp_path / "project"
    for folder in (store, project, project / "below"):
        folder.mkdir()
    for name, folder in (("call", tmp_path), ("variable", tmp_path), ("project", project)):
        (folder / f"{name}.toml").write_text(f'name = "{name}"\n')
    (store / in_force.FILE).write_text('name = "store"\n')
    here = project / "below"
    environ = {in_force.VARIABLE: str(tmp_path / "variable.toml")}

    def named(environ: dict[str, str], chosen: str = "") -> str:
        return in_force.guard(store, environ, chosen=chosen, here=here).plan.name

    assert named({}) == "store"
    (project / "pyproject.toml").write_text(
        '[project]\nname = "x"\n[tool.reenact]\nredaction-policy = "project.toml"\n'
    )
    assert named({}) == "project"
    assert named(environ) == "variable"
    assert named(environ, str(tmp_path / "call.toml")) == "call"
    assert named(environ, "default") == "default"
    assert named({in_force.VARIABLE: "default"}) == "default"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("pyproject.toml", "[tool.reenact]\nredaction-policy = 3\n"),
        ("pyproject.toml", "[tool.reenact\nredaction-policy = 'x'\n"),
        ("pyproject.toml", "[tool.reenact]\nredaction-policy = 'none.toml'\n"),
        ("store/policy.toml", "payloads = 'x'\n"),
        ("store/policy.toml", "[key]\nenv = 'NOT_SET'\n"),
        ("store/policy.toml", "[key]\nfile = 'none'\n"),
        ("store/policy.toml", "[names]\npresidio = true\nlanguage = 'xx'\n"),
    ],
)
def test_what_cannot_be_read_costs_the_payloads(tmp_path: Path, file: str, text: str) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / file).write_text(text)
    found = in_force.guard(tmp_path / "store", {}, here=tmp_path)
    assert found.problem
    assert found.plan.failed
    assert found.plan.payloads == "drop"
    assert found.key is not None
    clean = found.engine({}).attributes(
        {"openinference.span.kind": "TOOL", "reenact.boundary": "function", "input.value": '{"a": "hush"}', "n": 3}
    )
    assert "hush" not in str(clean)
    assert clean["openinference.span.kind"] == "TOOL"
    assert found.facts()[in_force.REASON] == found.plan.failed
    with pytest.raises(InputError):
        in_force.of_policy(in_force.chosen_policy(tmp_path / "store", {}, here=tmp_path), tmp_path / "store", {})


def test_a_key_that_cannot_be_kept_is_told_and_handed_to_children(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file")
    found = in_force.guard(tmp_path / "store", {}, here=tmp_path)
    assert "cannot be kept" in found.problem
    told = in_force.handed_on(found)
    child = in_force.guard(tmp_path / "store", told, salt=found.salt, here=tmp_path / "elsewhere")
    assert child.key is not None
    assert found.key is not None
    assert child.key.value == found.key.value
    assert child.salt == found.salt
    assert not child.problem


def test_children_get_the_policy_wherever_they_run(tmp_path: Path) -> None:
    (tmp_path / "ours.toml").write_text(OURS)
    found = in_force.guard(tmp_path / "store", {in_force.VARIABLE: "ours.toml"}, here=tmp_path)
    child = in_force.guard(tmp_path / "store", in_force.handed_on(found), here=tmp_path / "elsewhere")
    assert child.plan.digest == found.plan.digest


def test_a_replay_has_the_recording_s_policy_key_and_salt(tmp_path: Path) -> None:
    (tmp_path / "ours.toml").write_text(OURS)
    store = tmp_path / "store"
    recorded = in_force.guard(store, {}, chosen=tmp_path / "ours.toml", here=tmp_path)
    live = in_force.as_recorded(recorded.facts(), store, {}, here=tmp_path)
    assert live.plan.digest == recorded.plan.digest
    assert live.note == ""
    for name, value in (("e_mail", "a@b.example"), ("openai_key", "sk-1"), ("number", "ACME-123456")):
        assert live.engine({}).token(name, value) == recorded.engine({}).token(name, value)
    assert live.plan.action("phone", Place()) == "keep"


def test_without_the_key_the_replay_says_so_and_credentials_agree_all_the_same(tmp_path: Path) -> None:
    recorded = in_force.guard(tmp_path / "there", {}, here=tmp_path)
    live = in_force.as_recorded(recorded.facts(), tmp_path / "here", {}, here=tmp_path)
    assert recorded.key is not None
    assert live.note == f"the key {recorded.key.id} is not here: tokens of personal values are matched by renaming"
    assert live.engine({}).token("openai_key", "sk-1") == recorded.engine({}).token("openai_key", "sk-1")
    assert live.engine({}).token("e_mail", "a@b.example") != recorded.engine({}).token("e_mail", "a@b.example")


def test_words_that_the_trace_does_not_hold_are_asked_for(tmp_path: Path) -> None:
    file, store = tmp_path / "ours.toml", tmp_path / "store"
    file.write_text(WORDY)
    recorded = in_force.guard(store, {}, chosen=file, here=tmp_path)
    facts = recorded.facts()
    assert facts[WORDS] == 1
    assert "Falcon" not in str(facts)
    without = in_force.as_recorded(facts, store, {}, here=tmp_path)
    assert "'ours' has 1 words that its trace does not hold" in without.note
    having = in_force.as_recorded(facts, store, {in_force.VARIABLE: str(file)}, here=tmp_path)
    assert having.note == ""
    assert having.plan.digest == recorded.plan.digest


def test_a_recording_under_a_configured_key_needs_that_key(tmp_path: Path) -> None:
    environ = {keys.VARIABLE: "x" * 20}
    recorded = in_force.guard(tmp_path, environ, here=tmp_path)
    right = in_force.as_recorded(recorded.facts(), tmp_path, environ, here=tmp_path)
    assert right.engine({}).token("openai_key", "s") == recorded.engine({}).token("openai_key", "s")
    wrong = in_force.as_recorded(recorded.facts(), tmp_path, {}, here=tmp_path)
    assert wrong.note
    assert wrong.engine({}).keyed("openai_key")


def test_traces_that_say_nothing_or_nonsense_are_replayed_by_what_is_in_force_here(tmp_path: Path) -> None:
    nothing = in_force.as_recorded({}, tmp_path, {}, here=tmp_path)
    assert nothing.plan is DEFAULT
    assert nothing.note == ""
    nonsense = {POLICY: "00", SALT: "not hex", KEY: "zz", SOURCE: "payloads = 3"}
    found = in_force.as_recorded(nonsense, tmp_path, {}, here=tmp_path)
    assert found.plan is DEFAULT
    assert "not understood here" in found.note
    found.engine({}).text("text")
    older = in_force.as_recorded({POLICY: "ab" * 16, SALT: "cd" * 16}, tmp_path, {}, here=tmp_path)
    assert older.salt == "cd" * 16
    assert "another version" in older.note
