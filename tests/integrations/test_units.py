"""A loop that is handed messages: each call of its function is a run, done again without the loop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from desk import Desk

LOOP = """
import asyncio, dataclasses, queue, random, threading
import reenact

@dataclasses.dataclass
class Message:
    user: str
    text: str

@reenact.tool
def throw(what: str) -> str:
    return f"{what}:{random.SystemRandom().randrange(10**6)}"

@reenact.unit
def handle(message: Message, tries: int = 1) -> str:
    with reenact.run("message", user=message.user):
        found = throw(message.text)
    if message.user == "u-3":
        raise KeyError(found)
    return f"{found} {threading.current_thread().name}"

@reenact.unit(name="later")
async def handle_later(text: str) -> list[str]:
    return list(await asyncio.gather(*(asyncio.to_thread(throw, f"{text}{number}") for number in range(3))))

def serve(waiting: "queue.Queue[Message | None]") -> None:
    while (message := waiting.get()) is not None:
        try:
            print(f"{handle(message)}\\n", end="")  # in one piece: two threads print
        except KeyError as error:
            print(f"failed {error}\\n", end="")

def main() -> None:
    waiting: "queue.Queue[Message | None]" = queue.Queue()
    threads = [threading.Thread(target=serve, args=(waiting,), name=f"worker {n}") for n in range(2)]
    for thread in threads:
        thread.start()
    for number in range(6):
        waiting.put(Message(f"u-{number}", "same"))
    for _ in threads:
        waiting.put(None)
    for thread in threads:
        thread.join()
    print(asyncio.run(handle_later("x")))

if __name__ == "__main__":
    main()
"""


@pytest.fixture(params=["a module", "the program itself"])
def desk(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Desk, str]:
    made = Desk(tmp_path)
    made.write("loop.py", LOOP)
    made.write("start.py", "import loop\nloop.main()\n")
    return made, "start.py" if request.param == "a module" else "loop.py"


def runs(desk: Desk) -> list[dict[str, Any]]:
    return json.loads(desk.reenact("ls", "--json").stdout)["runs"]


@pytest.mark.sample(2)
def test_each_message_is_a_run_and_the_bad_one_is_handled_again(desk: tuple[Desk, str]) -> None:
    at, program = desk
    live = at.reenact("run", "-q", "--", "python", program)
    assert live.returncode == 0, live.stderr
    found = runs(at)
    assert sorted(run["name"] for run in found) == ["later", *["message"] * 6]
    assert {run["user"] for run in found if run["name"] == "message"} == {f"u-{number}" for number in range(6)}
    (bad,) = [run for run in found if run["status"] == "error"]
    assert bad["user"] == "u-3"
    done = at.reenact("replay", bad["id"], environ=at.bare())
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in live.stdout.splitlines() if line.startswith("failed")]
    assert f"KeyError: {line.removeprefix('failed ')}" in done.stderr
    (later,) = [run for run in found if run["name"] == "later"]
    done = at.reenact("replay", later["id"], environ=at.bare())
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == eval(live.stdout.splitlines()[-1])

    (at.folder / "loop.py").write_text(LOOP.replace('message.user == "u-3"', "False"))
    done = at.reenact("replay", bad["id"], environ=at.bare())
    assert done.returncode == 1
    assert "KeyError" in done.stderr.splitlines()[0]
    for run in found:
        if run["name"] == "message" and run is not bad:
            done = at.reenact("replay", run["id"])
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout) in live.stdout.splitlines(), "it names the thread that it was on"


def test_arguments_that_cannot_be_written_down_are_named(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.write("loop.py", LOOP.replace("handle(message)}", "handle(message, threading.Lock())}"))
    assert desk.reenact("run", "-q", "--", "python", "loop.py").returncode == 0
    (bad,) = [run for run in runs(desk) if run["status"] == "error"]
    done = desk.reenact("replay", bad["id"])
    assert done.returncode == 125
    assert "arguments of handle cannot be rebuilt" in done.stderr


def test_a_loop_in_the_open_runs_up_to_its_first_unit(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    program = desk.write(
        "open_loop.py",
        "import reenact\n@reenact.tool\ndef look(n): return n * 2\nprint('begun')\n"
        "@reenact.unit\ndef handle(n): return look(n) + 1\n"
        "for n in range(3): print(handle(n))\nprint('done')\n",
    )
    assert "replayable: exact" in desk.reenact("run", "--", "python", program).stderr
    done = desk.reenact("replay", "last")
    assert (done.returncode, done.stdout.splitlines()) == (0, ["begun", "5"]), done.stderr
    assert "same: 1 tool calls answered" in done.stderr


QUEUE = """
import functools, json, pathlib
import reenact

class Task:
    \"\"\"What queues make of a function: a call of it is sent, and done later.\"\"\"

    def __init__(self, function):
        functools.update_wrapper(self, function)
        self.function = function

    def __call__(self, *words):
        with pathlib.Path("sent.jsonl").open("a") as sent:
            sent.write(json.dumps(words) + chr(10))
        return "sent"

@reenact.tool
def look(n):
    return n * 2

@Task
@reenact.unit
def handle(n):
    return look(n) + 1

def made():
    @Task
    @reenact.unit
    def inner(n):
        return look(n) + 2
    return inner

INNER = made()

if __name__ == "__main__":
    handle(3), INNER(4)
    for line in pathlib.Path("sent.jsonl").read_text().splitlines():
        print(handle.function(*json.loads(line)), INNER.function(*json.loads(line)))
"""


@pytest.mark.always
def test_the_function_behind_a_task_of_a_queue_is_done_again_and_not_sent(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    live = desk.reenact("run", "-q", "--", "python", desk.write("queued.py", QUEUE))
    assert live.stdout == "7 8\n9 10\n", live.stderr
    assert (
        sorted((run["name"], run["verdict"]) for run in runs(desk))
        == [("handle", "exact")] * 2 + [("inner", "exact")] * 2
    )
    for run in runs(desk):
        done = desk.reenact("replay", run["id"])
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "sent.jsonl").read_text() == "[3]\n[4]\n"
