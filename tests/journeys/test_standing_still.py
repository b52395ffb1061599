"""A changed program of which one part waits for another that the replay has stopped comes to an end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from desk import Desk

HEAD = """
import asyncio, queue, threading
import reenact

@reenact.tool
def hand(what: str) -> str:
    return what

what = open("what").read()
"""
WAITING = {
    "a queue is joined": """
def work():
    while True:
        given.put((hand(asked.get()),))
        asked.task_done()

asked, given = queue.Queue(), queue.Queue()
threading.Thread(target=work, daemon=True).start()
for each in ("a", what):
    asked.put(each)
asked.join()
print(given.get(), given.get())
""",
    "an event is awaited": """
def work():
    made.append(hand(what))
    over.set()

made, over = [], threading.Event()
threading.Thread(target=work).start()
over.wait()
print(made)
""",
    "a queue of tasks is joined": """
async def main():
    asked, made = asyncio.Queue(), []

    async def work():
        while True:
            made.append(hand(await asked.get()))
            asked.task_done()

    working = asyncio.create_task(work())
    for each in ("a", what):
        asked.put_nowait(each)
    await asked.join()
    working.cancel()
    print(made)

asyncio.run(main())
""",
    "somebody looks now and then": """
import time

def work():
    while True:
        time.sleep(1)
        until = time.monotonic() + 0.02
        while time.monotonic() < until:
            pass
        try:
            made.append(hand(what))
        except BaseException:
            pass

made = []
threading.Thread(target=work, daemon=True).start()
while not made:
    time.sleep(0.1)
print(made)
""",
}
SAMPLE = [name if number == 0 else pytest.param(name, marks=pytest.mark.slow) for number, name in enumerate(WAITING)]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize("name", SAMPLE)
def test_who_waits_for_what_has_stopped_is_ended(desk: Desk, name: str) -> None:
    desk.write("agent.py", HEAD + WAITING[name])
    desk.write("what", "as it was")
    assert desk.reenact("run", "-q", "--", "python", "agent.py").returncode == 0
    assert desk.reenact("replay", "last").returncode == 0
    desk.write("what", "changed")
    done = desk.reenact("replay", "last", "--json", "--reads", "present")
    assert (done.returncode, json.loads(done.stdout)["result"]) == (1, "diverged"), done.stderr
    assert "the program stood still; it was ended" in done.stderr
