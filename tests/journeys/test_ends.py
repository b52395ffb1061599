"""How a program ends is told as what it is: by `os._exit`, by a signal, by an exception of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from desk import Desk

AGENT = """
import os, signal, sys
import reenact

@reenact.tool
def fetch(item): return item

print(fetch("tea"), flush=True)
if sys.argv[1] == "unit":
    with reenact.run("cart"):
        fetch("milk")
        os._exit(3)
if sys.argv[1].isdigit():
    os._exit(int(sys.argv[1]))
signal.signal(signal.SIGINT, signal.default_int_handler if sys.argv[1] == "ctrl-c" else signal.SIG_DFL)
signal.raise_signal(signal.SIGINT)
"""


@pytest.fixture
def agent(desk: Desk) -> Desk:
    desk.write("agent.py", AGENT)
    return desk


def test_an_end_without_ceremony_is_an_end(agent: Desk) -> None:
    done = agent.reenact("run", "--", "python", "agent.py", "3", cold=True)
    assert (done.returncode, done.stdout) == (3, "tea\n"), done.stderr
    assert "replayable: exact" in done.stderr
    same = agent.reenact("replay", "last")
    assert same.returncode == 0, same.stderr
    assert "not compared" not in same.stderr
    other = json.loads(agent.reenact("replay", "last", "--json", "--", "python", "agent.py", "4").stdout)
    first = other["divergences"][0]
    assert (other["result"], first["field"], first["a"], first["b"]) == ("diverged", "exit code", 3, 4)
    assert agent.reenact("check", "last", "--assert", "ends with exit code 3").returncode == 0


@pytest.mark.parametrize(
    ("how", "code", "said"),
    [
        pytest.param("ctrl-c", 130, "replayable: exact", marks=pytest.mark.slow),
        ("signal", 130, "run: end: the process was ended by SIGINT; what it did last may be missing"),
        pytest.param("unit", 3, "run: end: the process ended itself with exit code 3, past", marks=pytest.mark.slow),
    ],
)
def test_another_end_is_told_as_what_it_is(agent: Desk, how: str, code: int, said: str) -> None:
    done = agent.reenact("run", "--", "python", "agent.py", how, cold=True)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    if how == "ctrl-c":
        assert agent.reenact("check", "last", "--assert", "ends with KeyboardInterrupt").returncode == 0


WAITS = """
import signal, threading
import reenact

@reenact.tool
def fetch(item): return item

over = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: over.set())
print(fetch("tea"), flush=True)
while not over.wait(0.05):
    pass
print("over")
"""


@pytest.mark.slow
def test_a_program_that_ends_when_a_signal_comes_is_sent_that_in_a_replay(desk: Desk) -> None:
    words = [sys.executable, "-m", "reenact", "run", "--", "python", desk.write("waits.py", WAITS)]
    with subprocess.Popen(
        words, cwd=desk.folder, env=desk.settings(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as live:
        assert live.stdout is not None
        assert live.stdout.readline() == "tea\n"
        live.send_signal(signal.SIGTERM)
        out, said = live.communicate(timeout=60)
    assert (live.returncode, out) == (0, "over\n"), said
    assert "run: end: SIGTERM made it end; a replay sends that by the clock, behind its last call" in said
    done = desk.reenact("replay", "last", cold=True)
    assert (done.returncode, done.stdout) == (0, "tea\nover\n"), done.stderr
    assert "the recorded program went on until SIGTERM came; it is sent that now" in done.stderr


INTERRUPTED = """
import reenact

@reenact.tool
def fetch(item): return item

fetch("tea")
open("left.txt", "w").write("what a recording reads at its end")
raise KeyboardInterrupt
"""


def test_a_program_that_ctrl_c_ends_is_ended_by_the_signal_while_it_is_recorded_too(desk: Desk) -> None:
    program = desk.write("agent.py", INTERRUPTED)
    alone = subprocess.run([sys.executable, program], cwd=desk.folder, capture_output=True, check=False)
    assert alone.returncode == -signal.SIGINT
    recorded = desk.reenact("run", "--", sys.executable, program, cold=True)
    assert recorded.returncode == 128 + signal.SIGINT, recorded.stderr
    assert desk.reenact("replay", "last", cold=True).returncode == 0


TYPED = """
import reenact

@reenact.tool
def fetch(item): return item

print(fetch("tea"))
"""


@pytest.mark.parametrize("words", [[], ["-", "5"]], ids=["nothing", "a dash"])
def test_a_program_that_python_reads_from_its_standard_input_is_told_to_be_lost(desk: Desk, words: list[str]) -> None:
    command = [sys.executable, "-m", "reenact", "run", "--", sys.executable, *words]
    environ = desk.settings()
    done = subprocess.run(
        command, cwd=desk.folder, env=environ, input=TYPED, capture_output=True, text=True, check=False
    )
    assert done.stdout == "tea\n"
    assert "replayable: partial" in done.stderr
    assert "run: entry point: the program, which Python read from its standard input" in done.stderr
