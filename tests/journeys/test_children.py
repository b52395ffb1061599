"""Programs that start programs: one run, one tree, and the same again in a replay."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from desk import EXAMPLES, Desk
from reenact.demo.provider import StandIn

pytestmark = pytest.mark.sample(2)

PARENT = """
import os, signal, subprocess, sys, time
import reenact

@reenact.tool
def note(text: str) -> str:
    return text.upper()

print(note("begin"))
child = subprocess.Popen([sys.executable, "child.py"], stdout=subprocess.PIPE, text=True)
print(child.stdout.readline().strip())
time.sleep(1)
if sys.argv[1] == "own":
    child.kill()
else:
    os.kill(child.pid, signal.SIGKILL)
print(child.wait())
print(note("end"))
"""
CHILD = """
import time
import reenact

@reenact.tool
def quick(number: int) -> int:
    return number + 1

@reenact.tool
def endless(number: int) -> None:
    time.sleep(60)

print(quick(1), flush=True)
endless(2)
"""


def record_crew(desk: Desk) -> tuple[str, dict[str, Any]]:
    """Record the crew; gives what it printed and the run."""
    with StandIn(max_delay_ms=40) as provider:
        desk.environ.update(provider.environment)
        live = desk.reenact("run", "-q", "--", "python", str(EXAMPLES / "crew_agent.py"))
    desk.environ.clear()
    assert live.returncode == 0, live.stderr
    (run,) = json.loads(desk.reenact("ls", "--json").stdout)["runs"]
    return live.stdout, json.loads(desk.reenact("show", run["id"], "--json").stdout)


def replays(desk: Desk, count: int) -> set[tuple[int, str, str]]:
    """Replay the last run again and again, two at a time; gives the distinct exit codes, outputs and verdicts."""

    def once(_: int) -> tuple[int, str, str]:
        done = desk.reenact("replay", "last")
        return done.returncode, done.stdout, done.stderr.splitlines()[0] if done.stderr else ""

    with ThreadPoolExecutor(2) as pool:
        return set(pool.map(once, range(count)))


def hangs(shown: dict[str, Any]) -> dict[str, set[str]]:
    """Give who hangs below whom, by name, less the root."""
    names = {call["id"]: call["name"] for call in shown["calls"]}
    found: dict[str, set[str]] = {}
    for call in shown["calls"]:
        if call["parent"] is not None:
            found.setdefault(names[call["parent"]], set()).add(call["name"])
    return found


@pytest.mark.slow
def test_a_crew_of_processes_is_one_run_and_one_tree(desk: Desk) -> None:
    live, shown = record_crew(desk)
    assert shown["run"]["calls"] == {"llm": 10, "chain": 2}
    assert shown["run"]["verdict"]["grade"] == "exact"
    program = "crew_agent.py"
    assert hangs(shown) == {program: {"ChatCompletion", program}}
    below = [call for call in shown["calls"] if call["name"] == program and call["parent"] is not None]
    lanes = sorted(call["attributes"]["reenact.lane"] for call in below)
    assert lanes == ["main/p:crew_agent.py#0", "main/p:crew_agent.py#1"]
    assert not any(call["orphan"] for call in shown["calls"])
    assert replays(desk, 10) == {(0, live, "same: 10 llm calls answered from the recording, 0 live")}


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_crew_of_processes_replays_the_same_fifty_times(desk: Desk) -> None:
    live, _ = record_crew(desk)
    assert replays(desk, 50) == {(0, live, "same: 10 llm calls answered from the recording, 0 live")}


def test_a_changed_child_is_named_by_its_call(desk: Desk) -> None:
    desk.write("parent.py", "import subprocess, sys\nprint(subprocess.run([sys.executable, 'child.py']).returncode)")
    desk.write("child.py", CHILD.replace("endless(2)", "print(quick(2), flush=True)"))
    assert desk.reenact("run", "-q", "--", "python", "parent.py").stdout == "2\n3\n0\n"
    assert desk.reenact("replay", "last").returncode == 0
    desk.write("child.py", CHILD.replace("endless(2)", "print(quick(5), flush=True)"))
    done = desk.reenact("replay", "last")
    assert done.returncode == 1
    assert "tool quick" in done.stderr.splitlines()[0]
    assert "recorded 2, replay 5" in done.stderr.splitlines()[0]


@pytest.mark.slow
def test_a_call_that_two_processes_take_is_told(desk: Desk) -> None:
    parent = "import subprocess, sys\nfor word in sys.argv[1:]: subprocess.run([sys.executable, 'child.py', word])"
    desk.write("parent.py", parent)
    desk.write("child.py", CHILD.replace("endless(2)", ""))
    assert desk.reenact("run", "-q", "--", "python", "parent.py", "a").stdout == "2\n"
    assert desk.reenact("replay", "last").returncode == 0
    done = desk.reenact("replay", "last", "--", "python", "parent.py", "a", "b")
    assert done.returncode == 1
    assert "tool quick" in done.stderr.splitlines()[0]


@pytest.mark.slow
@pytest.mark.parametrize("killer", ["own", "other"])
def test_a_child_that_was_killed_in_the_middle_of_a_call(desk: Desk, killer: str) -> None:
    desk.write("parent.py", PARENT)
    desk.write("child.py", CHILD)
    live = desk.reenact("run", "--", "python", "parent.py", killer)
    assert (live.returncode, live.stdout) == (0, "BEGIN\n2\n-9\nEND\n")
    tree = desk.reenact("show", "last").stdout
    assert "chain child.py" in tree
    assert "[killed]" in tree
    (line,) = [line for line in tree.splitlines() if "tool endless" in line]
    assert "[unfinished]" in line
    done = desk.reenact("replay", "last", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["result"]) == (0, "same"), done.stderr
    assert "BEGIN\n2\n-9\nEND\n" in done.stderr
    assert told["answered"] == {"tool": 3}
    assert [(each["call"].split(" #")[0], each["signal"]) for each in told["killed"]] == [("tool endless", 9)]
    assert (told["misses"], told["unconsumed"], told["released_out_of_order"]) == ([], [], [])
    said = desk.reenact("replay", "last").stderr
    assert "killed in the middle of tool endless" in said


@pytest.mark.slow
def test_a_child_that_is_killed_before_its_first_call_is_in_the_tree(desk: Desk) -> None:
    desk.write("parent.py", PARENT.replace('sys.executable, "child.py"', 'sys.executable, "-u", "sleeper.py"'))
    desk.write("sleeper.py", "import time\nprint('up')\ntime.sleep(60)\n")
    assert desk.reenact("run", "-q", "--", "python", "parent.py", "own").stdout == "BEGIN\nup\n-9\nEND\n"
    assert "chain sleeper.py" in desk.reenact("show", "last").stdout
    assert "[killed]" in desk.reenact("show", "last").stdout
    done = desk.reenact("replay", "last")
    assert (done.returncode, done.stdout) == (0, "BEGIN\nup\n-9\nEND\n")


@pytest.mark.slow
@pytest.mark.parametrize("ends", ["child.terminate()", "os.kill(child.pid, 15)"])
@pytest.mark.parametrize("in_replay", ["slower", "faster"])
def test_a_child_that_is_ended_between_its_calls_comes_as_far_as_it_came(desk: Desk, ends: str, in_replay: str) -> None:
    desk.write(
        "parent.py",
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, 'child.py'])\n"
        f"time.sleep(2)\n{ends}\nprint(child.wait())\n",
    )
    desk.write(
        "child.py",
        "import sys, time, reenact\n"
        "@reenact.tool\ndef beat(number: int) -> int: return number + 1\n"
        "from pace import BEFORE, BETWEEN\n"
        "time.sleep(BEFORE)\nbeat(1)\ntime.sleep(BETWEEN)\nbeat(2)\ntime.sleep(60)\n",
    )
    paces = {"slower": ("0, 0", "4, 0"), "faster": ("0, 60", "0, 0")}[in_replay]
    desk.write("pace.py", f"BEFORE, BETWEEN = {paces[0]}\n")
    live = desk.reenact("run", "--", "python", "parent.py")
    assert (live.returncode, live.stdout) == (0, "-15\n")
    assert "replayable: exact" in live.stderr
    desk.write("pace.py", f"BEFORE, BETWEEN = {paces[1]}\n")
    done = json.loads(desk.reenact("replay", "last", "--json").stdout)
    assert (done["result"], done["answered"]) == ("same", {"tool": 2 if in_replay == "slower" else 1}), done


@pytest.mark.slow
def test_a_worker_of_a_pool_comes_as_far_as_it_came(desk: Desk) -> None:
    desk.write(
        "agent.py",
        "import multiprocessing, time, reenact\n"
        "@reenact.tool\ndef beat(number: int) -> int: return number + 1\n"
        "from pace import BEFORE\n"
        "if __name__ != '__main__':\n    time.sleep(BEFORE)\n"
        "beat(1)\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(2) as pool:\n"
        "        time.sleep(2)\n",
    )
    desk.write("pace.py", "BEFORE = 0\n")
    assert "3 tool, 2 chain" in (live := desk.reenact("run", "--", "python", "agent.py").stderr), live
    assert "replayable: exact" in live
    desk.write("pace.py", "BEFORE = 4\n")
    done = json.loads(desk.reenact("replay", "last", "--json").stdout)
    assert (done["result"], done["answered"]) == ("same", {"tool": 3}), done


def test_a_child_that_is_no_python_is_not_started_again(desk: Desk, tmp_path: Path) -> None:
    shell = "import subprocess, reenact\n@reenact.tool\ndef f() -> int: return 1\nf()\n"
    desk.write("agent.py", f"{shell}subprocess.run(['/bin/sh', '-c', 'echo ran >> ran'])\n")
    assert desk.reenact("run", "-q", "--", "python", "agent.py").returncode == 0
    assert (tmp_path / "ran").read_text() == "ran\n"
    done = desk.reenact("replay", "last", environ={**desk.settings(), "REENACT_ENFORCE": "off"})
    assert done.returncode == 125
    assert "files changed while it ran" in done.stderr
    assert (tmp_path / "ran").read_text() == "ran\n"
    done = desk.reenact("replay", "last")
    assert done.returncode == 0
    assert "1 child calls run again" in done.stderr
    assert (tmp_path / "ran").read_text() == "ran\n"
    done = desk.reenact("replay", "last", "--children", "refuse")
    assert done.returncode == 125
    assert "refused: child process 'sh'" in done.stderr
    assert (tmp_path / "ran").read_text() == "ran\n"


def test_a_program_that_starts_others_and_asks_nobody_is_no_run(desk: Desk) -> None:
    desk.write("agent.py", "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'print(1)'])\n")
    done = desk.reenact("run", "--", "python", "agent.py")
    assert done.stdout == "1\n"
    assert "nothing was recorded" in done.stderr
    assert json.loads(desk.reenact("ls", "--json").stdout)["runs"] == []


@pytest.mark.slow
def test_a_run_that_a_child_opens_is_part_of_the_unit_that_started_it(desk: Desk) -> None:
    desk.write(
        "parent.py",
        "import subprocess, sys, reenact\nwith reenact.run('outer', user='u-1'):\n"
        "    print(subprocess.run([sys.executable, 'child.py']).returncode)\n",
    )
    desk.write(
        "child.py",
        "import reenact\n@reenact.tool\ndef f(n: int) -> int: return n\n"
        "with reenact.run('inner'):\n    print(f(3), flush=True)\n",
    )
    assert desk.reenact("run", "-q", "--", "python", "parent.py").stdout == "3\n0\n"
    (run,) = json.loads(desk.reenact("ls", "--json").stdout)["runs"]
    shown = json.loads(desk.reenact("show", run["id"], "--json").stdout)
    assert hangs(shown) == {"outer": {"child.py"}, "child.py": {"inner"}, "inner": {"f"}}
    (call,) = [call for call in shown["calls"] if call["name"] == "f"]
    assert call["attributes"]["user.id"] == "u-1"
    assert desk.reenact("replay", "last").returncode == 0


SPAWNING = """
import math, multiprocessing
import reenact

@reenact.tool
def look_up(city):
    return {"city": city, "rain": [3, 1]}

rain = look_up("Delft")["rain"]
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(math.factorial, rain))
"""


@pytest.mark.slow
def test_what_a_spawned_worker_asks_as_it_imports_the_program_is_its_own_call(desk: Desk) -> None:
    program = desk.write("agent.py", SPAWNING)
    assert desk.reenact("run", "-q", "--", "python", program).stdout == "[6, 1]\n"
    listed = desk.reenact("ls", "--json").stdout.splitlines()
    calls = json.loads(desk.reenact("show", "last", "--json").stdout)["calls"]
    assert [len(listed), sum(each["kind"] == "tool" for each in calls)] == [1, 2]
    told = json.loads(desk.reenact("replay", "last", "--json").stdout)
    assert (told["result"], told["answered"]) == ("same", {"tool": 2}), told
