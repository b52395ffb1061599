"""A command in the tests' own process says what it says in a process of its own, and leaves nothing behind.

What the other tests run in their process, each command runs here once as `python -m reenact`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import pytest

import in_process
from desk import Desk
from reenact.cli.main import COMMANDS

TRACE = str(Path(__file__).resolve().parents[1] / "golden/formats/vcr_cassette/vcrpy/input.yaml")
SPOKEN = {
    "--help": ["--help"],
    "ls": ["ls", TRACE],
    "show": ["show", TRACE],
    "step": ["step", TRACE],
    "check": ["check", TRACE, "--assert", "called lookup_order"],
    "diff": ["diff", TRACE, TRACE],
    "doctor": ["doctor", TRACE, "--json"],
    "what": ["what", TRACE],
    "cold": ["cold", TRACE],
    "incident": ["incident", TRACE, "-o", "page.html"],
    "export": ["export", TRACE, "-o", "-"],
    "import": ["import", TRACE],
    "redact": ["redact", TRACE, "-o", "clean.jsonl"],
    "policy": ["policy"],
    "recover": ["recover"],
    "status": ["status"],
    "store": ["store", "sweep", "--dry-run"],
    "a command that there is not": ["sing"],
    "an option that there is not": ["show", TRACE, "--loud"],
    "a file that there is not": ["show", "nowhere.jsonl"],
    "a file that is no trace": ["doctor", "prose.txt"],
}


@pytest.mark.sample(12)
@pytest.mark.sample(3)
@pytest.mark.parametrize("words", [pytest.param(words, id=name) for name, words in SPOKEN.items()])
def test_a_command_says_the_same_in_a_process_of_its_own(tmp_path: Path, words: list[str]) -> None:
    said: list[tuple[int, list[str], list[str]]] = []
    for name in ("cold", "warm"):
        desk = Desk(tmp_path / name / "desk", cold=name == "cold")
        desk.folder.mkdir(parents=True)
        desk.write("prose.txt", "Dear reader, this is not a trace.\n")
        assert in_process.fits(words, desk.settings())
        done = desk.reenact(*words)
        texts = [text.replace(str(desk.folder), "HERE") for text in (done.stdout, done.stderr)]
        files = sorted(str(path.relative_to(desk.folder)) for path in desk.folder.rglob("*") if path.suffix != ".tmp")
        said.append((done.returncode, texts, files))
    assert said[1] == said[0]
    assert any(said[0][1]), "it says something"


def test_every_command_that_starts_no_program_is_one_of_them() -> None:
    assert SPOKEN.keys() >= COMMANDS.keys() - in_process.STARTING
    assert COMMANDS.keys() >= in_process.STARTING


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {"TZ": "<+0545>-5:45", "MINE": "1"})
    desk.write("judges.py", "def strict(run):\n    return True\n")

    def state() -> list[object]:
        handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
        streams = [sys.stdin, sys.stdout, sys.stderr]
        return [dict(os.environ), Path.cwd(), [*sys.path], sys.argv, handlers, streams, threading.active_count()]

    before = state()
    done = desk.reenact("check", TRACE, "--assert", "called lookup_order", "--judge", "judges:strict")
    assert done.returncode == 0, done.stderr
    assert state() == before
    assert "judges" not in sys.modules


def test_a_thread_s_commands_are_processes() -> None:
    fits: list[bool] = []
    thread = threading.Thread(target=lambda: fits.append(in_process.fits(["ls"], {})))
    thread.start()
    thread.join()
    assert fits == [False], "folder, environment and streams belong to the whole process"
    assert in_process.fits(["ls"], {})
