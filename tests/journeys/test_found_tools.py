"""Agents whose tools nobody declared: recorded with no change to them, then replayed with nothing to talk to."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from asking import every_tool_once, is_sealed, listed, needs_a_sealed_world, noted, recorded, tools
from desk import EXAMPLES, ROOT, Desk
from reenact.demo.provider import StandIn

PROGRAM = Path(__file__).with_name("found_tools_program.py")
KINDS = {
    "function": 'function in a table: `{"get_weather": get_weather}`',
    "globals": "function called by `globals()[name]`",
    "renamed": 'function or lambda under another name: `{"get_weather": fetch}`',
    "record": 'record: `{"name": "get_weather", "run": fetch}`',
    "method": 'method of an instance: `{"get_weather": desk.get_weather}`',
    "getattr": "method called by `getattr(desk, name)`",
    "classmethod": "class method",
    "staticmethod": "static method",
    "async": "async function",
    "generator": "generator",
    "async_generator": "async generator",
    "closure": "closure made in a running function",
    "wrapped": "function under a decorator of the agent's own",
    "partial": "`functools.partial`",
    "callable": "instance with `__call__`",
    "lru_cache": "`functools.lru_cache`",
    "builtin": 'builtin in a table: `{"total": sum}`',
    "inline": 'inline dispatch: `if name == "get_weather":`',
}
Count = Callable[[list[str], dict[str, str]], tuple[subprocess.CompletedProcess[str], int]]


@pytest.fixture
def asking() -> Iterator[StandIn]:
    with StandIn(scripts={"all-tools": every_tool_once}, max_delay_ms=1) as provider:
        yield provider


@dataclass
class Seen:
    """What recording and replaying every kind of tool came to."""

    recorded: set[str]
    ran_again: set[str]
    answered: set[str]
    printed: set[str]
    refused: str
    copied: bool

    def cell(self, name: str) -> str:
        """Say what a replay did with a tool."""
        if name in self.ran_again:
            return "run again"
        if name in self.answered:
            return "answered"
        if name in self.printed:
            return "runs, unseen"
        return "runs, in the copy" if self.copied else "?"

    def table(self) -> list[str]:
        """Draw the support table."""
        rows = [
            "| a tool that is | found | joined, recorded | touched nothing | touched something |",
            "|---|---|---|---|---|",
        ]
        for kind, said in KINDS.items():
            quiet, loud = f"{kind}_quiet", f"{kind}_loud"
            found = "yes" if {quiet, loud} <= self.recorded else "no"
            rows.append(f"| {said} | {found} | {found} | {self.cell(quiet)} | {self.cell(loud)} |")
        return rows


def files(desk: Desk) -> dict[str, bytes]:
    return {path.name: path.read_bytes() if path.is_file() else b"" for path in desk.folder.glob("[lm]*")}


def everything_seen(desk: Desk, asking: StandIn) -> Seen:
    live = recorded(desk, asking, str(PROGRAM))
    before, calls = files(desk), tools(desk)
    assert len(before) == 2
    assert {call["name"] for call in calls if not call["caused_by"]} == {"builtin_loud"}  # it takes a path
    assert all(call["attributes"]["reenact.tool.found"] for call in calls)  # type: ignore[index]
    done = desk.reenact("replay", "last", "--json", environ=desk.bare())
    assert done.returncode == 0, done.stderr
    assert live.stdout in done.stderr  # with --json the program's stdout goes there
    assert files(desk) == before
    by_id = {str(call["id"]): str(call["name"]) for call in calls}
    replayed = tools(desk, json.loads(done.stdout)["replay"])
    for folder in desk.folder.glob("made-*"):
        folder.rmdir()
    inline = recorded(desk, asking, str(PROGRAM), "--inline-loud")
    assert "inline_loud" in inline.stdout
    before = files(desk)
    copied = desk.reenact("replay", "last", environ=desk.bare())
    refused = desk.reenact("replay", "last", environ={**desk.bare(), "REENACT_ENFORCE": "off"})
    assert refused.returncode == 125
    assert files(desk) == before
    return Seen(
        recorded=set(by_id.values()),
        ran_again={by_id[str(each)] for each in noted(replayed, "reenact.replay.ran_again")},
        answered={by_id[str(each)] for each in noted(replayed, "reenact.replay.answered_by")},
        printed={line.split()[0] for line in live.stdout.splitlines()},
        refused=refused.stderr,
        copied=copied.returncode == 0 and "wrote as recorded: loud.txt" in copied.stderr,
    )


@pytest.mark.slow
def test_the_support_table_is_what_the_documentation_says(
    desk: Desk, asking: StandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = everything_seen(desk, asking)
    needs_a_sealed_world(desk)
    assert seen.ran_again == {name for name in seen.recorded if name.endswith("_quiet")}
    assert seen.answered == {name for name in seen.recorded if name.endswith("_loud")}
    assert "found_tools_program.py" in seen.refused
    assert "@reenact.tool" in seen.refused
    rows = seen.table()
    with capsys.disabled():
        print("", *rows, sep="\n")
    assert "\n".join(rows) in (ROOT / "docs" / "tools.md").read_text()


@pytest.mark.slow
def test_the_notebook_agent_replays_with_nothing_around_it(desk: Desk, sockets: Count) -> None:
    (desk.folder / "files").mkdir()
    with StandIn(slip=0.0) as provider:
        live = recorded(desk, provider, str(EXAMPLES / "notebook_agent.py"), "--notebook", "files/notes.txt")
    notes = desk.folder / "files" / "notes.txt"
    before = notes.read_bytes(), notes.stat().st_mtime_ns
    assert before[0].count(b"\n") == 1
    touched = {str(call["name"]): bool(listed(call, "touched")) for call in tools(desk)}
    assert touched == {
        "write_note": True,
        "add_to_cart": False,
        "look_up_price": True,
        "wait_for_stock": False,
        "reserve": False,
        "show_cart": False,
    }
    assert "exact" in live.stderr
    done, inet = sockets([sys.executable, "-m", "reenact", "replay", "last", "--json"], desk.bare())
    assert done.returncode == 0, done.stderr
    assert inet == 0
    assert (notes.read_bytes(), notes.stat().st_mtime_ns) == before
    told = json.loads(done.stdout)
    assert live.stdout in done.stderr
    assert told["answered"] == {"llm": 6, "tool": 3 if is_sealed(told) else 7}
    assert told["ran_again"] == ({"tool": 4} if is_sealed(told) else {})
    plain = desk.reenact("replay", "last", environ=desk.bare())
    assert plain.stdout == live.stdout


SUMS = """
import json, os, sys
from openai import OpenAI

TOTAL = []
MODE = os.environ.get("MODE")

class TooMuch(Exception):
    pass

def nothing():
    pass

def touch():
    open("sums.txt", "w").close()

act = touch if MODE == "touches" else nothing  # known to touch nothing when it is recorded

def add(n):
    TOTAL.append(n)
    if MODE == "changed":
        return sum(TOTAL) + 1
    if MODE == "raises":
        raise TooMuch(n)
    act()
    return sum(TOTAL)

tools = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}]
client = OpenAI()
for _ in range(2):
    message = client.chat.completions.create(
        model="all-tools", messages=[{"role": "user", "content": "add"}], tools=tools
    ).choices[0].message
    for call in message.tool_calls:
        try:
            print(locals()[call.function.name](**json.loads(call.function.arguments)))
        except TooMuch as error:
            print("too much", error)
print(TOTAL)
"""


SAID = {
    "": "same: 2 llm calls answered from the recording, 2 tool calls run again, 0 live",
    "changed": "diverged: tool add #3: result: recorded ",
    "raises": "diverged: tool add #3: outcome: recorded ",
    "touches": "write sums.txt at ",
}


def test_a_tool_that_runs_again_is_held_against_the_recording(desk: Desk, asking: StandIn) -> None:
    live = recorded(desk, asking, desk.write("sums.py", SUMS))
    open_world = desk.reenact("replay", "last", environ={**desk.bare(), "REENACT_ENFORCE": "off"})
    assert "same: 2 llm, 2 tool calls answered from the recording, 0 live" in open_world.stderr
    assert open_world.stdout == live.stdout
    needs_a_sealed_world(desk)
    for mode, said in SAID.items():
        done = desk.reenact("replay", "last", environ={**desk.bare(), "MODE": mode})
        assert done.returncode == bool(mode), done.stderr
        set_here = "reenact: MODE: not set when it was recorded, and set here; the program reads it"
        assert said in next(line for line in done.stderr.splitlines() if line != set_here)
        assert not (desk.folder / "sums.txt").exists()
        assert ("TooMuch" in done.stderr) == (mode == "raises")


THREADS = """
import json, random, threading, time
from openai import OpenAI

ORDER, LOCK = [], threading.Lock()
DELAYS = [number / 50 for number in range(8)]  # further apart than what no recording can know
random.SystemRandom().shuffle(DELAYS)

def wait(n):
    time.sleep(DELAYS[n])
    with LOCK:
        ORDER.append(n)
    return n

tools = [{"type": "function", "function": {"name": "wait", "parameters": {"type": "object", "properties": {}}}}]
reply = OpenAI().chat.completions.create(model="all-tools", messages=[{"role": "user", "content": "go"}], tools=tools)
name = reply.choices[0].message.tool_calls[0].function.name
ended = []

def work(n):
    ended.append(globals()[name](n))

threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(ended, ORDER, ended == ORDER == sorted(range(8), key=DELAYS.__getitem__))
"""


@pytest.mark.slow
def test_tools_on_threads_end_in_the_recorded_order_run_again_or_answered(desk: Desk, asking: StandIn) -> None:
    for apart in (50, 20, 10, 5, 2):  # a busy machine may let two threads go on at once; no recording knows their order
        live = recorded(desk, asking, desk.write("waiting.py", THREADS.replace("number / 50", f"number / {apart}")))
        if "True" in live.stdout:
            break
    for setting in ({}, {"REENACT_ENFORCE": "off"}):
        done = desk.reenact("replay", "last", environ={**desk.bare(), **setting})
        assert done.returncode == 0, done.stderr
        assert done.stdout == live.stdout
        assert "given up" not in done.stderr
