"""What a program gives out is part of its run: a mistake behind the last call diverges, and nothing else does."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from desk import Desk

pytestmark = pytest.mark.sample(9)

AGENT = """
import logging, os, sys, time
import reenact

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(thread)d %(levelname)s %(message)s")
begun = time.perf_counter()

@reenact.tool
def price(item):
    print("looking up", item)
    return {"tea": 3, "milk": 2}[item]

@reenact.agent
def total(items):
    return {"ok": True, "sum": sum(price(item) for item in items)}

with reenact.run("shop", user="ann"):
    told = total(["tea", "milk"])
logging.getLogger("shop").info("counted %s", len(told))
print("sum", told["sum"], object())
sys.stdout.buffer.write(b"as bytes\\n")
os.write(1, b"by descriptor\\n")
print(f"took {time.perf_counter() - begun:.6f} s", os.getpid())
sys.exit(0 if told["ok"] else 3)
"""
MISTAKES = {
    "printed": ('print("sum", told["sum"]', 'print("sum", told["sum"] + 1', "stdout, line 1"),
    "bytes": ("as bytes", "As bytes", "stdout, line 2"),
    "descriptor": ("by descriptor", "by a descriptor", "stdout, line 3"),
    "logged": ("counted %s", "counted: %s", "stderr, line 1"),
    "returned": ('"ok": True', '"ok": 1', "returned.ok"),
    "missing": ('print("sum", told["sum"], object())', '("sum")', "stdout, line 1"),
}


def replayed(desk: Desk, *words: str) -> tuple[dict[str, Any], str]:
    done = desk.reenact("replay", "last", "--json", *words)
    return json.loads(done.stdout), done.stderr


@pytest.fixture
def recorded(desk: Desk) -> str:
    desk.write("agent.py", AGENT)
    done = desk.reenact("run", "--", "python", "agent.py")
    assert done.returncode == 0, done.stderr
    assert "replayable: exact" in done.stderr
    return done.stdout


def test_an_unchanged_program_is_the_same_and_what_was_passed_over_is_said(desk: Desk, recorded: str) -> None:
    told, printed = replayed(desk)
    assert told["result"] == "same", told
    assert sorted(told["printed"]["as_recorded"]) == ["stderr", "stdout"]
    kinds = {each["kind"] for each in told["printed"]["passed_over"]}
    assert {"addresses", "times"} <= kinds
    assert ("process ids" in kinds) == (told["level"] != "namespaces"), "there it has the number that it had"
    assert "looking up tea\nlooking up milk\n" in printed, "an answered tool prints as it did"
    took = [line for line in recorded.splitlines() if line.startswith("took")]
    assert took[0].split(" s ")[0] in printed, "an elapsed time is given back"


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_behind_the_last_call_diverges_where_it_shows(desk: Desk, recorded: str, mistake: str) -> None:
    assert recorded
    right, wrong, field = MISTAKES[mistake]
    assert right in AGENT
    desk.write("agent.py", AGENT.replace(right, wrong))
    told, _ = replayed(desk)
    assert (told["result"], told["divergences"][0]["field"]) == ("diverged", field)


@pytest.mark.slow
def test_how_closely_it_is_compared_can_be_chosen_and_is_said(desk: Desk, recorded: str) -> None:
    assert recorded
    desk.write("agent.py", AGENT.replace('print("sum", told["sum"]', 'print("Sum", told["sum"]'))
    assert replayed(desk)[0]["result"] == "diverged"
    done = desk.reenact("replay", "last", "--outcome", "structure")
    assert done.returncode == 0, done.stderr
    assert "outcome: compared without texts and numbers" in done.stderr
    desk.write("agent.py", AGENT.replace("sys.exit(0", "sys.exit(4"))
    assert replayed(desk, "--outcome", "structure")[0]["divergences"][0]["field"] == "exit code"
    told, _ = replayed(desk, "--outcome", "ignore")
    assert (told["result"], told["outcome"]) == ("same", "ignore")


def test_a_run_shows_what_was_printed_and_two_runs_are_compared_by_it(desk: Desk, recorded: str) -> None:
    assert "stdout: 4 lines" in desk.reenact("show", "last").stdout
    shown = json.loads(desk.reenact("show", "last", "--json").stdout)
    texts = [each["text"] for each in shown["run"]["printed"] if each["stream"] == "stdout"]
    assert texts[0] == "looking up tea\nlooking up milk\n", "what was printed inside a run is apart"
    assert sorted("".join(texts).splitlines()) == sorted(recorded.splitlines())
    (run,) = [each["id"] for each in json.loads(desk.reenact("ls", "--json").stdout)["runs"]]
    desk.write("agent.py", AGENT.replace("as bytes", "As bytes"))
    assert desk.reenact("run", "-q", "--", "python", "agent.py").returncode == 0
    told = json.loads(desk.reenact("diff", run, "last", "--json").stdout)
    assert told["first"]["field"] == "stdout, line 2"


NOISE = """
import random, resource, sys, threading, time, traceback, warnings
import reenact

@reenact.tool
def ask(number):
    time.sleep(0.01)
    return number * number

def work(number):
    print("worker", number, "says", ask(number))

threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
[each.start() for each in threads]
[each.join() for each in threads]
for number in range(5):
    sys.stderr.write(f"\\r{number * 25}% [00:0{number}<00:00, {random.SystemRandom().random():.2f}it/s]")
print("memory", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
print("chance", random.SystemRandom().randrange(10 ** 9))
try:
    1 / 0
except ZeroDivisionError:
    traceback.print_exc()
warnings.warn("careful")
print("\\x1b[31mred\\x1b[0m")
"""


@pytest.mark.slow
def test_what_differs_from_replay_to_replay_is_told_and_is_no_divergence(desk: Desk) -> None:
    desk.write("noise.py", NOISE)
    assert desk.reenact("run", "-q", "--", "python", "noise.py").returncode == 0
    told, _ = replayed(desk)
    assert told["result"] == "same", told["divergences"]
    desk.write("noise.py", NOISE.replace('"says"', '"said"'))
    assert replayed(desk)[0]["result"] == "diverged"
    desk.write("noise.py", NOISE.replace("number * number", "number * number").replace("red\\", "green\\"))
    assert replayed(desk)[0]["divergences"][0]["b"] == "green"


def test_a_changed_program_that_throws_a_value_diverges_though_it_is_another_in_each_replay(desk: Desk) -> None:
    text = "import random, reenact\nprint('price', reenact.tool(lambda: 12.5)())\n"
    desk.write("agent.py", text)
    assert desk.reenact("run", "-q", "--", "python", "agent.py").returncode == 0
    desk.write("agent.py", text.replace("12.5)()", "12.5)() * random.uniform(0.5, 0.9)"))
    told, _ = replayed(desk)
    assert [(each["field"], each["a"]) for each in told["divergences"]] == [("stdout, line 1", "price 12.5")]


CHAT = """
import asyncio, os, sys
import reenact

@reenact.tool
def answer(line):
    return line.upper()

name = input("name? ")
print("hello", name, sys.stdin.isatty())
for line in sys.stdin:
    print(answer(line.strip()))
"""


def test_what_was_read_from_the_standard_input_is_given_back(desk: Desk) -> None:
    desk.write("chat.py", CHAT)
    argv = [sys.executable, "-m", "reenact", "run", "-q", "--", "python", "chat.py"]
    live = subprocess.run(
        argv, input="Ann\nhow\nwhy\n", cwd=desk.folder, env=desk.settings(), capture_output=True, text=True, check=True
    )
    assert live.stdout == "name? hello Ann False\nHOW\nWHY\n"
    done = desk.reenact("replay", "last")
    assert (done.returncode, done.stdout) == (0, live.stdout), done.stderr


@pytest.mark.slow
def test_what_a_strangers_program_read_is_given_to_nobody(desk: Desk) -> None:
    desk.write("reads.py", "import reenact, sys\nprint(reenact.tool(len)([1]), repr(sys.stdin.read()))\n")
    argv = [sys.executable, "-m", "reenact", "run", "-q", "--", "python", "reads.py"]
    subprocess.run(argv, input="touch taken\n", cwd=desk.folder, env=desk.settings(), text=True, check=True)
    assert "'touch taken\\n'" in desk.reenact("replay", "last").stdout
    desk.reenact("export", "last", "-o", "theirs.jsonl")
    done = desk.reenact("replay", "theirs.jsonl", "--", sys.executable, "reads.py")
    assert "touch" not in done.stdout
    assert done.stdout.startswith("1 "), done.stderr


@pytest.mark.slow
def test_what_was_typed_at_a_terminal_is_given_back(desk: Desk) -> None:
    desk.write("chat.py", CHAT)
    pid, screen = pty.fork()
    if pid == 0:  # the child has the terminal
        os.chdir(desk.folder)
        os.execve(
            sys.executable, [sys.executable, "-m", "reenact", "run", "-q", "--", "python", "chat.py"], desk.settings()
        )
    shown = b""
    for wanted, typed in ((b"name? ", b"Bob\n"), (b"True", b"hm\n"), (b"HM", b"\x04")):
        until = time.monotonic() + 60
        while wanted not in shown and time.monotonic() < until:
            shown += os.read(screen, 1000)
        os.write(screen, typed)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(screen)
    done = desk.reenact("replay", "last")
    assert (done.returncode, done.stdout) == (0, "name? hello Bob True\nHM\n"), done.stderr


def test_redaction_holds_for_what_was_printed_and_read(desk: Desk, tmp_path: Path) -> None:
    secret = "sk-proj-" + "Ab3dE5fG7hJ9kL1mN3pQ5rS7" * 2
    desk.write("chat.py", CHAT)
    argv = [sys.executable, "-m", "reenact", "run", "-q", "--", "python", "chat.py"]
    live = subprocess.run(
        argv, input=f"{secret}\nx\n", cwd=desk.folder, env=desk.settings(), capture_output=True, text=True, check=True
    )
    assert secret in live.stdout
    kept = b"".join(path.read_bytes() for path in (tmp_path / ".reenact").rglob("*") if path.is_file())
    assert kept
    assert secret.encode() not in kept
    done = desk.reenact("replay", "last")
    assert done.returncode == 0, done.stderr
    assert secret not in done.stdout


CLOCKS = """
import asyncio, os, warnings
import reenact

@reenact.tool
async def ask(name, seconds):
    await asyncio.sleep(seconds)
    return name

async def tick():
    for number in range(3):
        await asyncio.sleep(0.04)
        print("tick", number)

async def two(name, seconds):
    print("said", await ask(name, seconds))
    await asyncio.sleep(0.05)
    print("saved", name)

async def main():
    ticking = asyncio.create_task(tick())
    print("said", await ask("slow", 0.1))
    await ticking
    await asyncio.gather(two("a", 0.05), two("b", 0.2))

asyncio.run(main())
warnings.warn("two are left")
print(os.getppid() > 0, flush=True)
"""


def test_what_the_program_does_by_the_clock_keeps_its_place_among_answers(desk: Desk) -> None:
    desk.write("clocks.py", CLOCKS)
    live = desk.reenact("run", "-q", "--", "python", "clocks.py")
    assert live.returncode == 0, live.stderr
    for _ in range(2):
        done = desk.reenact("replay", "last")
        assert (done.returncode, done.stdout) == (0, live.stdout), done.stderr
    desk.write("clocks.py", CLOCKS.replace('warnings.warn("two are left")', ""))
    assert replayed(desk)[0]["divergences"][0]["field"] == "stderr, line 1", (
        "a warning of its own is the program's word"
    )


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('print(answer()["order"])', 'print(answer()["payment"])'),
        ('print("last", made[1])', 'print("last", made[0])'),
        ("print(hex(len(made) * 0x1234567))", "print(hex(len(made) * 0x1234568))"),
        ('print("the end")', 'print("the end", end="")'),
        ('print("rows", 20000)', 'print("rows", 20001)'),
        ("os._exit(3)", "os._exit(4)"),
    ],
)
def test_a_mistake_that_looks_like_what_differs_by_nature_diverges(desk: Desk, right: str, wrong: str) -> None:
    program = """
import os, uuid
import reenact

@reenact.tool
def answer():
    return {"order": "4f0a3b1e-6f2d-4c8a-9b7e-1d2c3b4a5f60", "payment": "9c1d2e3f-4a5b-4c6d-8e7f-0a1b2c3d4e5f"}

made = [str(uuid.uuid4()), str(uuid.uuid4())]
print(answer()["order"])
print(made[0]); print(made[1])
print("last", made[1])
print(hex(len(made) * 0x1234567))
for number in range(20000 if os.environ.get("LONG") else 3):
    print("a row that is long enough to pass what is kept", number)
print("rows", 20000)
print("the end")
if os.environ.get("HARD"):
    import sys; sys.stdout.flush(); os._exit(3)
"""
    assert right in program
    desk.environ |= {"LONG": "1"} if "rows" in right else {}
    desk.environ |= {"HARD": "1"} if "_exit" in right else {}
    desk.write("near.py", program)
    desk.reenact("run", "-q", "--", "python", "near.py")
    assert replayed(desk)[0]["result"] == "same"
    desk.write("near.py", program.replace(right, wrong))
    assert replayed(desk)[0]["result"] == "diverged"
