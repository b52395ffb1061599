"""The host is sacred: its streams and its end are its own, while it is recorded and while it is replayed."""

from __future__ import annotations

import json
import signal

import pytest

from desk import Desk

CRASH = """
import reenact
class OutOfStock(Exception):
    def __init__(self, sku, left):
        super().__init__(f"{sku}: {left} left")
        self.sku, self.left = sku, left
@reenact.tool
def reserve(sku: str):
    raise OutOfStock(sku, 7)
print("before")
reserve("KETTLE")
"""


def test_a_recorded_crash_replays_as_the_same_crash(desk: Desk) -> None:
    program = desk.write("crash.py", CRASH)
    plain = desk.run(["python3", "-c", "pass"])
    assert plain.returncode == 0
    recorded = desk.reenact("run", "--", "python", program)
    assert recorded.returncode == 1
    assert recorded.stdout == "before\n"
    assert "OutOfStock: KETTLE: 7 left" in recorded.stderr
    done = desk.reenact("replay", "last")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "before\n"
    assert "OutOfStock: KETTLE: 7 left" in done.stderr


@pytest.mark.sample(6)
@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("import sys; sys.exit(7)", 7),
        ("raise SystemExit('no')", 1),
        ("import os; os._exit(9)", 9),
        ("1 / 0", 1),
        ("", 0),
    ],
)
def test_the_exit_code_is_the_program_s(desk: Desk, source: str, code: int) -> None:
    program = desk.write(
        "program.py", f"import reenact\nf = reenact.tool(lambda: 1)\nf()\nprint('out', flush=True)\n{source}\n"
    )
    done = desk.reenact("run", "-q", "--", "python", program)
    assert (done.returncode, done.stdout) == (code, "out\n")
    told = json.loads(desk.reenact("replay", "last", "--json").stdout)
    assert told["result"] == "same", told


def test_the_message_of_an_exit_is_printed_and_compared(desk: Desk) -> None:
    """The interpreter prints it where no frame of the program is left, so this one is started cold."""
    desk.cold = True
    source = "import reenact\nf = reenact.tool(lambda: 1)\nf()\nraise SystemExit('no such account')\n"
    program = desk.write("program.py", source)
    done = desk.reenact("run", "-q", "--", "python", program)
    assert (done.returncode, done.stderr) == (1, "no such account\n")
    assert json.loads(desk.reenact("replay", "last", "--json").stdout)["result"] == "same"
    desk.write("program.py", source.replace("no such", "another"))
    replayed = desk.reenact("replay", "last")
    assert replayed.returncode == 1
    assert 'diverged: run: stderr, line 1: recorded "no such account", replay "another account"' in replayed.stderr


def test_a_killed_program_leaves_its_run_behind(desk: Desk) -> None:
    program = desk.write(
        "killed.py",
        "import os, signal, reenact\n@reenact.tool\ndef f(n):\n    return n\n"
        "f(1); f(2)\nos.kill(os.getpid(), signal.SIGKILL)\n",
    )
    done = desk.reenact("run", "--", "python", program)
    assert done.returncode == 128 + signal.SIGKILL
    shown = json.loads(desk.reenact("show", "last", "--json").stdout)
    assert [call["kind"] for call in shown["calls"]] == ["chain", "tool", "tool"]
    assert shown["run"]["status"] == "interrupted"


def test_a_program_that_is_not_there(desk: Desk) -> None:
    done = desk.reenact("run", "--", "no-such-program")
    assert done.returncode == 3
    assert "no-such-program" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_empty_store_and_an_unknown_run(desk: Desk) -> None:
    for words in (("replay", "last"), ("show", "abcdef"), ("doctor", "missing.jsonl"), ("diff", "last", "last")):
        done = desk.reenact(*words)
        assert done.returncode == 3, (words, done.stderr)
        assert "Traceback" not in done.stderr
        assert done.stderr.startswith("reenact: ")
