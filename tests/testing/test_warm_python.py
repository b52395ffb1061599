"""The warm interpreter of the tests: what runs in a fork of it is what runs in a new process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import warm_python
from desk import Desk
from reenact.demo.provider import StandIn

PROGRAM = """
import os, sys, time
import sitecustomize
import reenact
from openai import OpenAI

@reenact.tool
def weigh(parcel):
    return 4.5

reply = OpenAI().chat.completions.create(model="stand-in-everything", messages=[{"role": "user", "content": "Hello"}])
print(reply.choices[0].message.content, weigh("P-7"))
print(__name__, __file__, __spec__, sys.argv, [os.path.basename(word) for word in sys.orig_argv])
print(sitecustomize.__file__)
print([part for part in sys.path if "site-packages" not in part], sys.modules["__main__"].__dict__ is globals())
print(sorted(os.environ.keys() - {"PYTHONHASHSEED", "REENACT_RECORDING", "REENACT_SALT"}), time.tzname, os.getcwd())
print(sys.stdin.read(), sys.stdin.isatty(), sys.stdout.encoding, sys.stderr.errors, sys.flags.hash_randomization)
print("on stderr", file=sys.stderr)
sys.exit(int(sys.argv[1]))
"""
Said = tuple[int, str, list[str]]


@pytest.mark.slow
def test_a_program_is_recorded_and_replayed_alike(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {"TZ": "Asia/Tokyo", "MINE": "1", "PYTHONHASHSEED": warm_python.HASH_SEED})
    program = desk.write("agent.py", PROGRAM)
    said: list[list[Said]] = []
    shapes: list[list[tuple[str, list[str]]]] = []
    with StandIn(max_delay_ms=1) as provider:
        provided = {**desk.settings(), **provider.environment}
        for cold in (True, False):
            live = desk.reenact("run", "--", "python", program, "3", environ=provided, cold=cold)
            calls = json.loads(desk.reenact("show", "last", "--json").stdout)["calls"]
            # A warm interpreter has imported what draws something at its import.
            shapes.append([(call["label"], sorted(call["attributes"].keys() - {"reenact.draws"})) for call in calls])
            # What REENACT_ variables there are is printed: they are others in a replay.
            again = desk.reenact("replay", "last", "--outcome", "ignore", cold=cold)
            said.append([told(live), told(again)])
    assert said[0][0][0] == 3
    for from_a_fork, from_nothing in zip(said[1], said[0], strict=True):
        assert from_a_fork[::2] == from_nothing[::2], "the code and stderr"
        assert from_a_fork[1].splitlines() == from_nothing[1].splitlines()
    assert shapes[1] == shapes[0]


def test_a_program_that_a_command_starts_is_a_fork_too(tmp_path: Path) -> None:
    """Else the journeys would import an SDK for each of their programs, and nobody would notice."""
    desk = Desk(tmp_path)
    program = desk.write("program.py", "import sys\nprint('anthropic' in sys.modules)\n")
    for cold in (True, False):
        done = desk.reenact("run", "-q", "--", "python", program, cold=cold)
        assert done.stdout == f"{not cold}\n", done.stderr


def told(done: subprocess.CompletedProcess[str]) -> Said:
    """Leave out ids and what the stand-in makes up."""
    head, _, rest = done.stdout.partition("\n")
    assert head.endswith(" 4.5"), done
    kept = [line for line in done.stderr.splitlines() if "recorded agent.py" not in line and "next:" not in line]
    return done.returncode, rest, kept


def test_the_program_is_a_child_of_the_command_and_knows_nothing_of_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    program = desk.write(
        "agent.py",
        "import os, sys, json\nfrom reenact.pipeline import injection\n"
        "print(json.dumps([os.getppid(), injection.subprocess.Popen._execute_child.__module__]))\n",
    )
    first = json.loads(desk.reenact("run", "-q", "--", "python", program).stdout)
    second = json.loads(desk.reenact("run", "-q", "--", "python", program).stdout)
    assert first[0] != second[0], "each command is a process"
    assert first[1] == second[1] == "subprocess", "nothing that was done to the command is in its program"


@pytest.mark.parametrize(
    ("argv", "environ"),
    [
        (["/bin/sh", "-c", "true"], {}),
        ([sys.executable, "-I", "-m", "site"], {}),
        ([sys.executable, "-m", "site"], {"PYTHONHASHSEED": "7"}),
        ([sys.executable, "-m", "site"], {"LD_PRELOAD": "clock.so"}),
    ],
    ids=["another program", "a flag", "another seed", "a library before all others"],
)
def test_what_only_a_start_settles_starts_from_nothing(
    tmp_path: Path, argv: list[str], environ: dict[str, str]
) -> None:
    assert warm_python.run(argv, tmp_path, {"PATH": os.environ["PATH"], **environ}) is None
