"""Units that stand on earlier ones: these are delivered first, and what they stood on is the same again."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from desk import Desk

KINDS = Path(__file__).with_name("standing_program.py").read_text()
WORKER = """
import random
import reenact

NUMBER, SAID = 0, []

@reenact.tool
def answer(text):
    return text.upper() + str(random.random())

@reenact.unit
def work(text):
    global NUMBER
    NUMBER += 1
    SAID.append(text)
    SAID.append(answer(f"{NUMBER} {SAID}"))
    print("did", NUMBER, SAID[-1])
    return {"number": NUMBER, "said": SAID[-1]}

@reenact.unit
def alone(text):
    return answer(text)

if __name__ == "__main__":
    for text in ("a", "b", "c"):
        work(text)
    alone("d")
"""
CHAT = """
import asyncio, functools, random, sys
import httpx, reenact
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

HISTORY = {}

@reenact.tool
async def complete(messages):
    await asyncio.sleep(random.random() / 100)
    return f"{messages[-1]} {random.random()}"

@functools.lru_cache
def price(text):
    return charge(text)

@reenact.tool
def charge(text):
    return random.random()

async def chat(request):
    asked = await request.json()
    mine = HISTORY.setdefault(asked["user"], [])
    mine.append(asked["text"])
    mine.append(await complete([*mine]))
    told = await complete([f"{len(HISTORY)} users said {sorted(map(len, HISTORY.values()))}"])
    print("served", asked["user"], len(mine))
    return JSONResponse({"said": mine[-1], "told": told, "price": price(asked["text"])})

app = Starlette(routes=[Route("/chat", chat, methods=["POST"])])

async def users(count, turns):
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://chat") as client:
        async def user(name):
            for turn in range(turns):
                await client.post("/chat", json={"user": name, "text": f"turn {turn}"})
        await asyncio.gather(*(user(f"u{number}") for number in range(count)))
        print((await client.post("/chat", json={"user": "u0", "text": "turn 0"})).text)
"""
DRIVER = "import asyncio, sys, chat\nasyncio.run(chat.users(int(sys.argv[1]), int(sys.argv[2])))\n"


def runs(desk: Desk) -> list[dict[str, Any]]:
    """Give what is listed, the oldest first."""
    return [*reversed(json.loads(desk.reenact("ls", "--json", "-n", "0").stdout)["runs"])]


def replayed(desk: Desk, run: str, *words: str) -> dict[str, Any]:
    return json.loads(desk.reenact("replay", run, "--json", *words).stdout)


def reasons(desk: Desk, run: str) -> list[str]:
    verdict = json.loads(desk.reenact("doctor", run, "--json").stdout)["verdict"]
    return [reason["lost"] for reason in verdict["reasons"]]


@pytest.fixture
def worked(desk: Desk) -> list[dict[str, Any]]:
    desk.write("worker.py", WORKER)
    done = desk.reenact("run", "--", "python", "worker.py")
    assert done.returncode == 0, done.stderr
    return runs(desk)


def test_a_worker_s_last_unit_is_the_same_behind_those_on_which_it_stands(
    desk: Desk, worked: list[dict[str, Any]]
) -> None:
    first, second, third, alone = (each["id"] for each in worked)
    assert [each["verdict"] for each in worked] == ["exact"] * 4
    done = desk.reenact("replay", third, "--json")
    told = json.loads(done.stdout)
    assert told["result"] == "same", done.stderr
    assert [(each["run"], each["result"]) for each in told["earlier"]] == [(first, "same"), (second, "same")]
    assert "although these differ" not in desk.reenact("replay", third).stderr
    printed = [line for line in done.stderr.splitlines() if line.startswith("did ")]
    assert [line.split()[1] for line in printed] == ["3"], "what earlier units print is not shown"
    assert replayed(desk, alone)["earlier"] == [], "it reads nothing that they left"


def test_what_is_not_delivered_is_said_beforehand(desk: Desk, worked: list[dict[str, Any]]) -> None:
    first, _, third, _ = (each["id"] for each in worked)
    few = replayed(desk, third, "--history-max", "1")
    assert (few["result"], few["earlier"]) == ("diverged", [])
    for kept in (desk.folder / ".reenact").rglob(f"*{first}*"):
        kept.unlink()
    assert f"stands on unit {first[:12]}, which is not kept" in reasons(desk, third)
    assert "partial" in desk.reenact("show", third).stdout
    assert {each["id"]: each["verdict"] for each in runs(desk)}[third] == "partial"


def test_an_earlier_unit_that_leaves_its_recording_is_told_as_that(desk: Desk, worked: list[dict[str, Any]]) -> None:
    second, third = worked[1]["id"], worked[2]["id"]
    desk.write("worker.py", WORKER.replace('f"{NUMBER} {SAID}"', 'f"{NUMBER} {SAID}" + "!" * (NUMBER == 2)'))
    told = replayed(desk, third)
    assert told["result"] == "diverged"
    assert told["divergences"][0]["unit"] == second
    said = desk.reenact("replay", third).stderr
    assert f"diverged: the earlier unit {second[:12]}: tool answer #2: arguments.text" in said


def test_a_change_behind_an_earlier_unit_s_last_call_is_told(desk: Desk, worked: list[dict[str, Any]]) -> None:
    desk.write("worker.py", WORKER.replace('"number": NUMBER,', '"number": NUMBER + (NUMBER == 2),'))
    told = replayed(desk, worked[2]["id"])
    assert told["result"] == "diverged"
    assert told["divergences"][0]["unit"] == worked[1]["id"]


@pytest.mark.slow
def test_a_session_is_played_in_order_as_one_result(desk: Desk) -> None:
    source = WORKER.replace(
        "    SAID.append(text)\n", "    SAID.append(text)\n    with reenact.run('said', session=text): pass\n"
    )
    desk.write("worker.py", source.replace('("a", "b", "c")', '("a", "b", "a")'))
    assert desk.reenact("run", "--", "python", "worker.py").returncode == 0
    listed = runs(desk)
    assert [each["session"] for each in listed] == ["a", "b", "a", None]
    told = json.loads(desk.reenact("replay", "--session", "a", "--json").stdout)
    assert told["result"] == "same"
    assert [each["run"] for each in told["earlier"]] == [each["id"] for each in listed[:2]]
    assert desk.reenact("replay", "--session", "nobody").returncode == 3


@pytest.mark.slow
def test_a_promoted_unit_is_tested_behind_its_history(desk: Desk, worked: list[dict[str, Any]]) -> None:
    desk.write("pyproject.toml", "")
    done = desk.reenact("promote", worked[2]["id"], "-o", "tests")
    assert "on the code as it is now it passes: same" in done.stdout, done.stdout + done.stderr
    shutil.rmtree(desk.folder / ".reenact")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    assert desk.run(command).returncode == 0
    desk.write("worker.py", WORKER.replace("SAID.append(text)", "SAID.insert(0, text)"))
    assert desk.run(command).returncode == 1


COROUTINES = """
import asyncio, random
import reenact

LOG = []

@reenact.tool
async def think(text):
    await asyncio.sleep(random.random() / 100)
    return f"{text} {random.random():.3f}"

@reenact.unit
async def handle(who):
    said = await think(who)
    LOG.append(random.randint(1, 100))
    print(who, said)
    return await think(f"{LOG}")

async def main():
    await asyncio.gather(*(handle(f"u{number}") for number in range(3)))

if __name__ == "__main__":
    asyncio.run(main())
"""


def test_coroutines_that_were_under_way_together_are_so_again(desk: Desk) -> None:
    desk.write("together.py", COROUTINES)
    assert desk.reenact("run", "--", "python", "together.py").returncode == 0
    listed = runs(desk)
    assert [each["verdict"] for each in listed] == ["exact"] * 3
    told = replayed(desk, listed[0]["id"])
    assert told["result"] == "same", told
    assert len(told["earlier"]) == 2


def chatted(desk: Desk, users: int, turns: int) -> list[dict[str, Any]]:
    desk.write("chat.py", CHAT)
    desk.write("driver.py", DRIVER)
    done = desk.reenact("run", "--", "python", "driver.py", str(users), str(turns))
    assert done.returncode == 0, done.stderr
    listed = runs(desk)
    assert {each["verdict"] for each in listed} == {"exact"}
    told = desk.reenact("replay", listed[-1]["id"], "--json", "--history-max", "500")
    assert json.loads(told.stdout)["result"] == "same", told.stdout + told.stderr
    assert done.stdout.splitlines()[-1] in told.stderr, "the answer is that of the recording"
    assert [line for line in told.stderr.splitlines() if line.startswith("served")] == [f"served u0 {2 * turns + 2}"]
    return listed


def test_a_chat_of_users_at_the_same_time_is_the_same_again(desk: Desk) -> None:
    listed = chatted(desk, 4, 2)
    assert len(listed) == 9


@pytest.mark.slow
@pytest.mark.parametrize(("users", "turns"), [(1, 3), (20, 2)])
def test_larger_chats_are_the_same_again(desk: Desk, users: int, turns: int) -> None:
    listed = chatted(desk, users, turns)
    for each in listed[:: max(1, len(listed) // 5)]:
        assert replayed(desk, each["id"])["result"] == "same"


@pytest.mark.slow
@pytest.mark.parametrize("kind", re.findall(r"^def (\w+)\(text: str\) -> Any:", KINDS, re.MULTILINE))
def test_each_kind_of_state_is_the_same_or_said_beforehand(desk: Desk, kind: str) -> None:
    desk.write("standing_program.py", KINDS)
    recorded = desk.reenact("run", "--", "python", "standing_program.py", kind)
    assert recorded.returncode == 0, recorded.stderr
    last = runs(desk)[-1]
    assert last["verdict"] == "exact"
    assert bool(last.get("earlier")) is (kind != "stateless")
    done = desk.reenact("replay", last["id"], "--json")
    assert json.loads(done.stdout)["result"] == "same", done.stdout
    assert recorded.stdout.splitlines()[-1] in done.stderr
