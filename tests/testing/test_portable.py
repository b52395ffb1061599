"""Fixtures name no folder of the machine they were recorded on, and replay on any other."""

from __future__ import annotations

import ast
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made import Made, user
from reenact.errors import InputError, UsageError
from reenact.find.sources import RunSource
from reenact.graph.build import build
from reenact.testing import authored, fixtures
from reenact.testing.authored import Authored
from reenact.testing.modes import Mode, mode_named
from reenact.testing.portable import ENTRY, _project_writes, entered_by, located, portable, seeded
from reenact.testing.project import folder_of_tests, root_of
from reenact.values.discovered_tools import FILES
from reenact.values.json import compact, parse
from reenact.values.run import Run

TRACE = """Traceback (most recent call last):
  File "{root}/agent.py", line 3, in go
  File "/usr/lib/python3.11/json/x.py", line 1"""


def recorded(root: Path, **surroundings: object) -> Run:
    """Make a run as it was recorded in `root`."""
    made = Made(salt="00" * 16)
    made.llm([user(f"look into {root}/notes")], says="done")
    run = made.run()
    entry = {
        "argv": ["/opt/venv/bin/python3", str(root / "jobs" / "agent.py"), "--data", str(root / "files"), "/data/all"],
        "executable": "/opt/venv/bin/python3",
        "cwd": str(root / "jobs"),
        "main": str(root / "jobs" / "agent.py"),
    }
    around = {
        "hash_seed": "77",
        "environment": {"PYTHONHASHSEED": "77", "NOTES_URL": f"file://{root}/n"},
        **surroundings,
    }
    exception = {"module": "m", "qualname": "E", "message": "x", "stacktrace": TRACE.format(root=root)}
    spans = []
    for node in run.nodes:
        span = node.span
        if node is run.nodes[0]:
            facts = {
                ENTRY: compact(entry),
                "reenact.surroundings": compact(around),
                "reenact.exception": compact(exception),
            }
            span = replace(span, attributes={**span.attributes, **facts})
        resource = replace(
            span.resource, attributes={**span.resource.attributes, "process.pid": 7, "host.name": "here"}
        )
        spans.append(replace(span, resource=resource))
    return build(spans)[0]


def test_what_leaves_is_relative_and_comes_back_absolute(tmp_path: Path) -> None:
    root = tmp_path / "one"
    (root / "jobs").mkdir(parents=True)
    run = recorded(root)
    kept = portable(RunSource(run=run, siblings=(), source=""), root, {})
    first = kept.spans[0]
    entry = parse(str(first.attributes[ENTRY]))
    assert entry["argv"] == ["python", "agent.py", "--data", "../files", "/data/all"]
    assert (entry["cwd"], entry["main"], "executable" in entry) == ("jobs", "jobs/agent.py", False)
    assert not {"process.pid", "host.name"} & first.resource.attributes.keys()
    trace = parse(str(first.attributes["reenact.exception"]))["stacktrace"]
    assert 'File "agent.py", line 3' in trace
    assert 'File "json/x.py"' in trace
    assert "NOTES_URL" not in str(first.attributes["reenact.surroundings"])
    evidence = [[span.attributes.get(name) for name in ("input.value", "output.value")] for span in kept.spans]
    assert evidence == [
        [node.span.attributes.get(name) for name in ("input.value", "output.value")] for node in run.nodes
    ]
    assert kept.paths, "evidence that names a folder stays, and is told"
    elsewhere = tmp_path / "two"
    (elsewhere / "jobs").mkdir(parents=True)
    found = located(RunSource(run=build(kept.spans)[0], siblings=(), source=""), elsewhere)
    words = [sys.executable, str(elsewhere / "jobs/agent.py"), "--data", str(elsewhere / "files"), "/data/all"]
    assert found.run.entry["argv"] == words
    assert found.run.entry["cwd"] == str(elsewhere / "jobs")
    again = portable(RunSource(run=found.run, siblings=(), source=""), elsewhere, {})
    assert again.spans == kept.spans


def test_folders_and_temporary_paths_name_nothing_of_this_machine(tmp_path: Path) -> None:
    cwd = tmp_path / "project"
    listed = [[f"{cwd}", ["b", "a"]], [f"{cwd}/docs/old", ["x"]], [f"{cwd}s", ["y"]], ["/srv", ["z"]], ["broken"]]
    writes = {"files": [], "folders": listed, "temporary": ["/tmp/tmp123/x", "tmp4"], "made": [["/srv/a", 1]]}
    kept = _project_writes(writes, tmp_path, cwd)  # type: ignore[arg-type]
    assert kept == {"files": [], "folders": [[".", ["b", "a"]], ["docs/old", ["x"]]], "temporary": ["x", "tmp4"]}


@pytest.mark.always
@pytest.mark.parametrize(("facts", "is_named"), [({"temporary": "shop-1/a.json"}, False), ({}, True)])
def test_a_file_of_a_tool_is_of_this_machine_unless_it_is_temporary(
    facts: dict[str, str], *, is_named: bool, tmp_path: Path
) -> None:
    made = Made(salt="00" * 16)
    made.tool("write")
    run = made.run()
    file = {"path": f"{tempfile.gettempdir()}/shop-1/a.json", "before": None, "after": {"text": "1"}, **facts}
    spans = [replace(node.span, attributes={**node.span.attributes, FILES: compact([file])}) for node in run.nodes]
    kept = portable(RunSource(run=build(spans)[0], siblings=(), source=""), tmp_path, {})
    assert any(FILES in each for each in kept.paths) is is_named


def test_secrets_are_looked_for_again(tmp_path: Path) -> None:
    made = Made(salt="00" * 16)
    made.llm([user("the word is hush-hush-1234567")], says="done")
    found = RunSource(run=made.run(), siblings=(), source="")
    kept = portable(found, tmp_path, {"VAULT_TOKEN": "hush-hush-1234567"})
    assert kept.replaced["known_secret"] == 1
    assert "hush-hush" not in "".join(str(span.attributes) for span in kept.spans)
    twice = portable(
        RunSource(run=build(kept.spans)[0], siblings=(), source=""), tmp_path, {"VAULT_TOKEN": "hush-hush-1234567"}
    )
    assert (twice.spans, twice.replaced) == (kept.spans, {})


def test_the_shared_seed_and_the_test_as_entry(tmp_path: Path) -> None:
    kept = portable(RunSource(run=recorded(tmp_path), siblings=(), source=""), tmp_path, {})
    around = parse(str(seeded(kept.spans)[0].attributes["reenact.surroundings"]))
    assert (around["hash_seed"], around["hash_seed_recorded"]) == ("0", "77")
    assert around["environment"]["PYTHONHASHSEED"] == "0"
    assert entered_by(kept.spans, "test_a.py::test_b")[0].attributes[ENTRY] == '{"test":"test_a.py::test_b"}'


def test_a_project_and_its_tests_are_found(tmp_path: Path) -> None:
    inner = tmp_path / "shop" / "jobs"
    inner.mkdir(parents=True)
    (tmp_path / "shop" / "setup.cfg").write_text("[tool:pytest]\ntestpaths = missing checks\n")
    assert root_of(inner) == tmp_path / "shop"
    assert folder_of_tests(tmp_path / "shop") == tmp_path / "shop" / "tests"
    (tmp_path / "shop" / "checks").mkdir()
    assert folder_of_tests(tmp_path / "shop") == tmp_path / "shop" / "checks"
    (tmp_path / "shop" / "pyproject.toml").write_text("[tool.pytest.ini_options]\ntestpaths = ['jobs']\n")
    assert folder_of_tests(tmp_path / "shop") == inner
    (tmp_path / "shop" / "pyproject.toml").write_text("not = [toml")
    assert folder_of_tests(tmp_path / "shop") == tmp_path / "shop" / "checks"


def test_modes_have_the_words_that_people_know() -> None:
    assert [mode_named(word, "here") for word in ("none", "Replay", "record", "all", "live")] == [
        Mode.NONE,
        Mode.NONE,
        Mode.ALL,
        Mode.ALL,
        Mode.LIVE,
    ]
    with pytest.raises(UsageError, match="REENACT_MODE: there is no mode 'sometimes'"):
        mode_named("sometimes", "REENACT_MODE")


def test_names_of_fixtures_are_told_apart() -> None:
    names = [fixtures.own_name(f"TestA::test_b[{word}]") for word in ("a-b", "a_b", "a/b", "ü", "x" * 300)]
    assert len(set(names)) == 5
    assert all(name.isascii() and len(name) < 80 and "/" not in name for name in names[:3])
    assert fixtures.own_name("test_b") == "test_b"


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "recordings").write_text("a file")
    with pytest.raises(InputError, match="recordings"):
        fixtures.write(tmp_path / "recordings" / "a.jsonl", [])


HOSTILE = st.text(st.sampled_from("ab\"'\\\n\r\t\u202e{}#\x1b[3m\u2028é"), max_size=20)


@given(name=HOSTILE, word=HOSTILE, text=HOSTILE)
def test_a_test_is_python_whatever_the_trace_says(name: str, word: str, text: str) -> None:
    made = Made()
    made.tool(f"tool{name}", {"argument": text}, text)
    run = replace(made.run(), name=name)
    source = authored.source(
        Authored(
            name="x", fixture="a.jsonl", run=run, words=("python", word), assertions=(text, word), proposals=("a",)
        )
    )
    tree = ast.parse(source)
    assert [type(each).__name__ for each in tree.body] == ["Expr", "Import", "FunctionDef"]
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    literals = [arg.value for call in calls for arg in call.args if isinstance(arg, ast.Constant)]
    assert {word, text} <= set(literals)
    assert not {"\u202e", "\x1b"} & set(source)
