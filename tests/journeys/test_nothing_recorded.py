"""What is said where a program left no run behind is why, whatever the program is."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from desk import Desk

PROGRAMS: dict[str, tuple[list[str], int, str]] = {
    "no call": ([sys.executable, "-c", "print(1)"], 0, "made no call"),
    "isolated": ([sys.executable, "-I", "-c", "print(1)"], 0, "-I` ignores PYTHONPATH"),
    "no site": ([sys.executable, "-uS", "-c", "print(1)"], 0, "-S` imports no sitecustomize"),
    "a value of an option": ([sys.executable, "-W", "ignore", "-c", "print(1)"], 0, "made no call"),
    "not Python": (["sh", "-c", "echo 1"], 0, "no Python process of it loaded the recorder"),
    "Python inside": (["sh", "-c", f"{sys.executable} -c 'print(1)'"], 0, "made no call"),
    "another path": (["env", "-u", "PYTHONPATH", sys.executable, "-c", "print(1)"], 0, "no Python process of it"),
    "an exit code": ([sys.executable, "-c", "print(1); raise SystemExit(7)"], 7, "exit code 7 before its first call"),
    "a signal": (
        [sys.executable, "-c", "import os; print(1, flush=True); os.kill(os.getpid(), 9)"],
        128 + signal.SIGKILL,
        "exit code 137, as SIGKILL does it, before its first call",
    ),
}


@pytest.mark.sample(3)
@pytest.mark.skipif(os.name != "posix", reason="signals and sh are POSIX")
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_reason_is_told(desk: Desk, name: str) -> None:
    command, code, said = PROGRAMS[name]
    done = desk.reenact("run", "--", *command, cold=True)
    assert (done.returncode, done.stdout) == (code, "1\n")
    (line,) = [each for each in done.stderr.splitlines() if "nothing was recorded" in each]
    assert said in line
