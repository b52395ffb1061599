from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from reenact.redact import in_force, keys, process_redactor
from reenact.redact.sdk_copies import UNREADABLE

SECRET = "ghp_" + "aB3d" * 9
MAIL = "jane.doe@example.com"


@pytest.fixture(autouse=True)
def nothing_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_redactor, "_standing", {})
    monkeypatch.chdir(tmp_path)
    for name in (keys.VARIABLE, keys.OF_THIS_RUN, in_force.VARIABLE, "REENACT_STORE"):
        monkeypatch.delenv(name, raising=False)


def test_a_process_has_one_and_no_store_is_made_for_it(tmp_path: Path) -> None:
    engine, facts = process_redactor.standing()
    assert process_redactor.standing()[0] is engine
    assert SECRET not in engine.text(SECRET)
    assert engine.text(f"{MAIL} {MAIL}").count(engine.text(MAIL)) == 2
    assert {in_force.POLICY, in_force.SALT} <= facts.keys()
    assert list(tmp_path.iterdir()) == []


def test_the_key_of_a_store_that_is_there_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REENACT_STORE", str(tmp_path / "store"))
    made = keys.of_store(tmp_path / "store", {})
    assert process_redactor.standing()[1][in_force.KEY] == made.id


def test_a_configured_key_gives_equal_tokens_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(keys.VARIABLE, "a key of the whole company")
    first, facts = process_redactor.standing()
    monkeypatch.setattr(process_redactor, "_standing", {})
    second, _ = process_redactor.standing()
    assert first is not second
    assert first.text(f"{SECRET} {MAIL}") == second.text(f"{SECRET} {MAIL}")
    assert in_force.SALT not in facts


def test_a_policy_is_a_file_and_one_that_cannot_be_read_costs_the_payloads(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    good.write_text('name = "ours"\n\n[classes]\ne_mail = "keep"\n', encoding="utf-8")
    bad.write_text("name = \n", encoding="utf-8")
    engine, facts = process_redactor.standing(good)
    assert MAIL in engine.text(f"{MAIL} {SECRET}")
    assert SECRET not in engine.text(f"{MAIL} {SECRET}")
    assert facts[in_force.NAME] == "ours"
    made = process_redactor.copies(None, bad)
    clean = made.attributes({"input.value": "a prompt", "openinference.span.kind": "LLM"})
    assert "a prompt" not in str(clean)
    assert clean["openinference.span.kind"] == "LLM"
    assert "bad.toml" in caplog.text


def test_threads_that_ask_at_the_same_time_get_the_same() -> None:
    got: list[object] = []
    ready = threading.Barrier(8)

    def ask() -> None:
        ready.wait()
        got.append(process_redactor.standing()[0])

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, got))) == 1


def test_a_child_that_was_forked_in_the_middle_of_work_redacts() -> None:
    made = process_redactor.copies(None)
    with process_redactor._lock:
        child = os.fork()
        if child == 0:
            clean = process_redactor.copies(None).text(SECRET)
            os._exit(0 if SECRET not in clean and clean != UNREADABLE else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert SECRET not in made.text(SECRET)
