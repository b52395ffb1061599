"""Every command on one recording of every format: whoever wrote it, the commands work alike."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from desk import Desk
from reenact.cli.main import reenact
from reenact.contracts.format import Format
from reenact.discover import members
from reenact.errors import CannotJudge, ReenactError

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "formats"
FORMATS = members("formats", Format)
INPUTS = {member.name: sorted((GOLDEN / member.name.replace("-", "_")).glob("*/input.*")) for member in FORMATS}
CASES = [
    pytest.param(path, id=f"{name}-{path.parent.name}", marks=[pytest.mark.slow] if place else [])
    for name, paths in INPUTS.items()
    for place, path in enumerate(paths)
]
FIRST = [pytest.param(paths[0], id=name) for name, paths in INPUTS.items() if paths]
WRITTEN = [member.name for member in FORMATS if member.encode is not None and member.name != "journal"]
every_case = pytest.mark.parametrize("case", CASES)
Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in this process, in a folder and with a store of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REENACT_STORE", str(tmp_path / "store"))

    def told(*words: str) -> Result:
        done = CliRunner().invoke(reenact, list(words))
        if done.exception is not None and not isinstance(done.exception, SystemExit | ReenactError):
            raise done.exception
        return done

    return told


def listed(run: Run, source: str) -> list[dict[str, object]]:
    done = run("ls", source, "--json", "--limit", "0")
    assert done.exit_code == 0, done.exception
    return json.loads(done.stdout)["runs"]


@pytest.mark.sample(4)
@every_case
def test_every_command_reads_it(case: Path, run: Run, tmp_path: Path) -> None:
    runs = listed(run, str(case))
    assert runs
    for told in runs[:2]:
        selector = f"{case}#{told['id']}"
        shown = json.loads(run("show", selector, "--json").stdout)
        assert shown["run"]["id"] == told["id"]
        for words in (("show", selector), ("show", selector, "--full"), ("doctor", selector), ("step", selector)):
            done = run(*words)
            assert done.exit_code == 0, (words, done.exception)
            assert done.stdout.strip()
        kit = json.loads(run("doctor", selector, "--json").stdout)
        assert kit["verdict"]["grade"] == told["verdict"] == shown["run"]["verdict"]["grade"]
        walked = json.loads(run("step", selector, "--json").stdout)
        assert walked["steps"] or walked["reasons"]
        same = run("diff", selector, selector, "--json")
        assert json.loads(same.stdout)["same"] is True, same.stdout
        assert run("check", selector, "--assert", 'never called "no such tool"').exit_code in (0, 125)
        page = run("incident", selector, "-o", str(tmp_path / "page.html"))
        assert page.exit_code == 0, page.exception
    cold = json.loads(run("cold", str(case), "--json").stdout)
    assert cold["runs"]["read"] == len([told for told in runs if not told["replay_of"]])


@pytest.mark.sample(4)
@every_case
def test_it_goes_out_and_in_again_as_the_same_run(case: Path, run: Run, tmp_path: Path) -> None:
    first = listed(run, str(case))[0]
    selector = f"{case}#{first['id']}"
    for name in WRITTEN:
        target = tmp_path / f"out.{name}"
        done = run("export", selector, "--alone", "--format", name, "-o", str(target))
        assert done.exit_code == 0, (name, done.exception)
        assert [told["id"] for told in listed(run, str(target))] == [first["id"]]
    taken = run("import", str(case), "--json")
    assert taken.exit_code == 0, taken.exception
    kept = json.loads(run("show", str(first["id"]), "--json").stdout)
    shown = json.loads(run("show", selector, "--json").stdout)
    assert kept["run"]["verdict"] == shown["run"]["verdict"]
    assert [call["label"] for call in kept["calls"]] == [call["label"] for call in shown["calls"]]
    told = run("diff", selector, str(first["id"]))
    assert told.exit_code == 0 or "neither run holds a call" in str(told.exception)


@pytest.mark.slow
@pytest.mark.parametrize("case", FIRST)
def test_a_replay_of_it_judges_and_never_breaks(case: Path, desk: Desk, run: Run) -> None:
    first = listed(run, str(case))[0]
    program = desk.write("idle.py", "print('nothing is asked')\n")
    done = desk.reenact("replay", f"{case}#{first['id']}", "--", "python", program)
    assert "Traceback" not in done.stderr, done.stderr
    codes = (125,) if first["verdict"] == "none" else (0, 1, CannotJudge.exit_code)
    assert done.returncode in codes, done.stderr
