"""What the agent draws of the clock and of chance: kept, and given back wherever and whenever it is replayed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from clock_shift import built
from desk import EXAMPLES, Desk
from reenact.demo.provider import StandIn

pytestmark = pytest.mark.sample(3)

MONTH_S = 30 * 86_400
Count = Callable[[list[str], dict[str, str]], tuple[subprocess.CompletedProcess[str], int]]

PROMPTS = """
import asyncio, datetime, os, random, secrets, threading, time, uuid
from dataclasses import dataclass, field
from datetime import date
from datetime import datetime as Moment
from os import urandom
from random import Random, SystemRandom, choice
from time import time as now_s
from zoneinfo import ZoneInfo

import numpy
from openai import OpenAI
from pydantic import BaseModel, Field

client = OpenAI()
STARTED = Moment.now()

class Entry(BaseModel):
    id: uuid.UUID = Field(default_factory=uuid.uuid4)
    at: Moment = Field(default_factory=Moment.now)

@dataclass
class Note:
    at: Moment = field(default_factory=Moment.utcnow)
    by: str = field(default_factory=secrets.token_hex)

def ask(prompt):
    reply = client.chat.completions.create(model="stand-in-everything", messages=[{"role": "user", "content": prompt}])
    print(prompt, "->", reply.choices[0].message.content)

def clocks():
    berlin = ZoneInfo("Europe/Berlin")
    return [
        Moment.now(), Moment.now(datetime.UTC), Moment.now(berlin), Moment.utcnow(), Moment.today(), date.today(),
        time.time(), now_s(), time.time_ns(), time.strftime("%c %Z %z"), time.localtime(), time.localtime().tm_zone,
        time.gmtime(), time.ctime(), time.asctime(), Moment.now().astimezone().isoformat(), Entry(), Note(), STARTED,
    ]

def chances():
    cards = list(range(12))
    random.shuffle(cards)
    own, generator = Random(), numpy.random.default_rng()
    return [
        uuid.uuid1(), uuid.uuid4(), random.random(), random.randint(1, 10**6), choice("abcdefgh"), random.gauss(0, 1),
        random.sample(range(1000), 3), cards, own.random(), own.getrandbits(70), SystemRandom().random(),
        SystemRandom().choice(range(10**6)), secrets.token_hex(), secrets.token_urlsafe(), secrets.token_bytes(4),
        secrets.randbelow(10**30), secrets.choice("abcdefgh"), os.urandom(7), urandom(3), numpy.random.rand(),
        numpy.random.randint(10**6), numpy.random.permutation(5), numpy.random.RandomState().rand(),
        generator.random(2), generator.integers(10**6), {*"abcdefghij"}, frozenset(map(str, range(8))),
    ]

def seeded():
    random.seed(7)
    drawn = [random.random(), random.randint(1, 100)]
    random.seed()
    return [*drawn, random.random()]

ask(str(clocks()))
ask(str(chances()))
ask(str(seeded()))
for _ in range(3):
    ask(f"{Moment.now()} {random.random()} {sum(random.random() for _ in range(20_000))}")
threads = [threading.Thread(target=lambda n=n: ask(f"{n} {clocks()[:6]} {chances()[:4]}")) for n in range(3)]
for thread in threads: thread.start(); thread.join()
async def task(n):
    await asyncio.sleep(random.random() / 500)
    return f"{n} {Moment.now()} {uuid.uuid4()}"
async def all_tasks():
    return await asyncio.gather(*map(task, range(5)))
ask(str(asyncio.run(all_tasks())))
"""


def told(desk: Desk, *words: str, environ: dict[str, str] | None = None) -> dict[str, Any]:
    return json.loads(desk.reenact(*words, "--json", environ=environ).stdout)


def last(desk: Desk) -> str:
    return told(desk, "ls")["runs"][0]["id"]


@pytest.mark.slow
def test_a_prompt_of_every_source_replays_a_month_later_in_another_zone(
    desk: Desk, provider: StandIn, record_property: Callable[[str, object], None]
) -> None:
    program = desk.write("agent.py", PROMPTS)
    live = desk.reenact("run", "--", "python", program, environ={**desk.bare(), **provider.environment})
    assert live.returncode == 0, live.stderr
    assert "replayable: exact" in live.stderr
    later = {
        **desk.bare(),
        "LD_PRELOAD": str(built(desk.folder)),
        "CLOCK_SHIFT_S": str(MONTH_S),
        "TZ": "Pacific/Chatham",
        "PYTHONHASHSEED": "7",
    }
    before = int(time.time())
    seen = desk.run([sys.executable, "-c", "import time; print(time.time(), time.localtime().tm_gmtoff)"], later).stdout
    assert before <= float(seen.split()[0]) - MONTH_S <= time.time(), "the clock beneath is shifted"
    assert seen.split()[1] != str(time.localtime().tm_gmtoff)
    run = last(desk)
    done = desk.reenact("replay", run, environ=later)
    assert done.returncode == 0, done.stderr
    assert done.stdout == live.stdout
    result = told(desk, "replay", run, environ=later)
    assert (result["result"], result["misses"], result["volatile"]) == ("same", [], [])
    record_property(
        "figure", f"clock and chance: {result['answered']['llm']} prompts a month later, 0 misses, 0 volatile"
    )


@pytest.mark.slow
def test_without_its_tape_the_same_recording_does_not_replay(desk: Desk, provider: StandIn) -> None:
    program = desk.write("agent.py", PROMPTS)
    environ = {**desk.bare(), **provider.environment, "REENACT_TAPE": "off"}
    assert desk.reenact("run", "--", "python", program, environ=environ).returncode == 0
    done = desk.reenact("replay", "last", environ=desk.bare())
    assert done.returncode == 1
    assert "diverged: llm " in done.stderr


CONCURRENT = """
import asyncio, datetime, random, secrets, threading, time, uuid
from concurrent.futures import ThreadPoolExecutor
import reenact

@reenact.tool
def say(what: str) -> str:
    time.sleep(random.random() * 0.003)
    return f"{what} {time.time()}"

@reenact.tool
async def say_later(what: str) -> str:
    await asyncio.sleep(random.random() * 0.003)
    return what

def drawn():
    return f"{datetime.datetime.now()} {uuid.uuid4()} {random.random()} {time.time_ns()} {secrets.token_hex(4)}"

def work(n):
    said = []
    for i in range(4):
        for _ in range(random.randrange(5)):
            time.time()
        said.append(say(f"{n} {i} {drawn()}"))
    return said

async def task(n):
    said = []
    for i in range(3):
        await asyncio.sleep(random.random() * 0.002)
        said.append(await say_later(f"{n} {i} {drawn()}"))
    return said

async def main():
    return await asyncio.gather(*(task(n) for n in range(12)), *(asyncio.to_thread(work, f"t{n}") for n in range(4)))

with ThreadPoolExecutor(6) as pool:
    print(*pool.map(work, range(12)))
said = {}
threads = [threading.Thread(target=lambda n=n: said.__setitem__(n, work(n))) for n in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sorted(said.items()), asyncio.run(main()), drawn())
"""


@pytest.mark.slow
@pytest.mark.parametrize("times", [3, 20])
def test_threads_tasks_and_pools_draw_what_each_of_them_drew(desk: Desk, times: int) -> None:
    program = desk.write("agent.py", CONCURRENT)
    live = desk.reenact("run", "--", "python", program)
    assert live.returncode == 0, live.stderr
    run = last(desk)
    replays = [desk.reenact("replay", run) for _ in range(times)]
    assert {(each.returncode, each.stdout) for each in replays} == {(0, live.stdout)}
    assert not any("clock and chance" in each.stderr for each in replays)


CROSSING = """
import time
from datetime import date, datetime
import reenact
say = reenact.tool(lambda what: what)
say.__name__ = "say"
def struck():
    moment = datetime.now()
    return moment.date(), moment.hour, moment.fold
day, hour, was = date.today(), datetime.now().hour, struck()
for _ in range(400):
    now = datetime.now()
    if struck() != was:
        break
    time.sleep(0.01)
print(say(f"{day} {hour} {now} {now.fold} {now.astimezone().isoformat()} {time.strftime('%c %Z')} {time.localtime()}"))
print(date.today(), time.localtime().tm_isdst)
"""


def _slow(*values: object) -> Any:
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("zone", "moment", "sees"),
    [
        ("Europe/Berlin", datetime(2026, 10, 24, 21, 59, 59, tzinfo=UTC), "2026-10-25 00:00:0"),
        ("Europe/Berlin", datetime(2026, 10, 25, 0, 59, 59, tzinfo=UTC), "2026-10-25 02:00:0"),
        _slow("Europe/Berlin", datetime(2027, 3, 28, 0, 59, 59, tzinfo=UTC), "2027-03-28 03:00:0"),
        _slow("Asia/Kolkata", datetime(2026, 12, 31, 18, 29, 59, tzinfo=UTC), "2027-01-01 00:00:0"),
    ],
    ids=["midnight", "summer time ends", "summer time begins", "new year"],
)
def test_the_clock_strikes_again(desk: Desk, zone: str, moment: datetime, sees: str) -> None:
    program = desk.write("agent.py", CROSSING)
    preload = {"LD_PRELOAD": str(built(desk.folder))}
    start = 1.0  # how long the interpreter and the recorder take to start, at least
    shift = moment.timestamp() - time.time() - start
    live = desk.reenact(
        "run", "--", "python", program, environ={**desk.bare(), **preload, "CLOCK_SHIFT_S": str(shift), "TZ": zone}
    )
    if sees not in live.stdout:
        shift = moment.timestamp() - time.time() + 0.2
        live = desk.reenact(
            "run", "--", "python", program, environ={**desk.bare(), **preload, "CLOCK_SHIFT_S": str(shift), "TZ": zone}
        )
    assert live.returncode == 0, live.stderr
    run = live.stderr.partition("recorded agent.py as ")[2].split()[0]  # by their shifted clocks either may be the last
    done = desk.reenact("replay", run, environ={**desk.bare(), "TZ": "America/New_York"})
    assert done.returncode == 0, done.stderr
    assert done.stdout == live.stdout
    assert sees in live.stdout


@pytest.mark.slow
def test_another_quantity_is_a_divergence(desk: Desk) -> None:
    """Numbers are never taken for chance: selling 5 shares is not selling 1000."""
    with StandIn(slip=1.0) as provider:
        desk.environ.update(provider.environment)
        program = desk.write("trader.py", (EXAMPLES / "trader_agent.py").read_text())
        live = desk.reenact("run", "--", "python", program, "--orders", "orders.jsonl")
    assert live.returncode == 0, live.stderr
    again = desk.reenact("replay", "last")
    assert (again.returncode, again.stdout) == (0, live.stdout)
    changed = (desk.folder / program).read_text()
    before = "result = TOOLS[name](**arguments)"
    assert before in changed
    fewer = 'arguments |= {"quantity": 5} if "quantity" in arguments else {}; '
    desk.write("trader.py", changed.replace(before, fewer + before))
    done = desk.reenact("replay", last(desk))
    assert done.returncode == 1
    assert "arguments.quantity: recorded 1000, replay 5" in done.stderr


POLLS = """
import sys, threading, time
from datetime import datetime
import reenact
more = sys.argv[1:] == ["more"]

@reenact.tool
def slow(n: int) -> int:
    time.sleep(0.05)
    return n

def wait_for(thread):
    began, polls = time.time(), 0
    while thread.is_alive() or (more and polls < 60):
        polls += 1
        if time.time() - began > 5:
            raise TimeoutError
        time.sleep(0.001)

@reenact.tool
def say(what: str) -> str:
    return what

for n in range(3):
    thread = threading.Thread(target=slow, args=(n,))
    thread.start()
    wait_for(thread)
    print(say(f"{n} {time.time()} {datetime.now()}"))
"""


@pytest.mark.parametrize("words", [(), ("more",)], ids=["fewer", "more"])
def test_a_loop_that_polls_the_clock_shifts_nothing(desk: Desk, words: tuple[str, ...]) -> None:
    program = desk.write("agent.py", POLLS)
    live = desk.reenact("run", "--", "python", program)
    assert live.returncode == 0, live.stderr
    shifted = {**desk.bare(), "LD_PRELOAD": str(built(desk.folder)), "CLOCK_SHIFT_S": str(MONTH_S)}
    done = desk.reenact("replay", "last", "--", sys.executable, program, *words, environ=shifted)
    assert done.returncode == 0, done.stderr
    assert done.stdout == live.stdout


UNITS = """
import sys, time, random, uuid
import reenact
say = reenact.tool(lambda what: what)
def drawn():
    return f"{time.time()} {random.random()} {uuid.uuid4()}"
print(drawn())
for user in ("ann", "bob", "cid"):
    before = drawn()
    with reenact.run("unit", user=user):
        print(user, before, say(f"{drawn()}"), drawn(), say(""), drawn())
    time.sleep(0.01)
"""


@pytest.mark.slow
def test_each_unit_of_work_has_a_tape_of_its_own(desk: Desk) -> None:
    program = desk.write("agent.py", UNITS)
    live = desk.reenact("run", "--", "python", program)
    assert live.returncode == 0, live.stderr
    for run in told(desk, "ls")["runs"]:
        done = desk.reenact("replay", run["id"])
        assert done.returncode == 0, done.stderr
        assert done.stdout == live.stdout


def test_a_new_draw_is_told_and_moves_no_other(desk: Desk) -> None:
    source = (
        "import time, uuid, reenact\nsay = reenact.tool(lambda what: what)\n"
        "def one(): return uuid.uuid4()\ndef two(): return time.time()\n# here\n"
        "print(say(f'{one()} {two()}'), say(str(one())), two())\n"
    )
    live = desk.reenact("run", "--", "python", desk.write("agent.py", source))
    desk.write("agent.py", source.replace("# here", "\ndef log(): return time.time(), uuid.uuid4()\n\nlog()"))
    done = desk.reenact("replay", last(desk))
    assert (done.returncode, done.stdout) == (0, live.stdout)
    assert "clock and chance not in the recording: __main__:log time.time, __main__:log uuid.uuid4" in done.stderr
    sites = [each["site"] for each in told(desk, "replay", last(desk))["volatile"]]
    assert sites == ["__main__:log time.time", "__main__:log uuid.uuid4"]


def test_doctor_says_what_is_there(desk: Desk) -> None:
    program = desk.write("agent.py", "import reenact\nreenact.tool(lambda: 1)()\n")
    desk.reenact("run", "--", "python", program)
    kit = {each["name"]: each for each in told(desk, "doctor", "last")["kit"]}
    assert kit["clock and chance"]["state"] == "present"
    assert kit["hash seed"]["state"] == "present"
    embedded = desk.write("embedded.py", "import reenact\nwith reenact.record():\n    reenact.tool(lambda: 1)()\n")
    assert desk.run([sys.executable, embedded]).returncode == 0
    kit = {each["name"]: each for each in told(desk, "doctor", "last")["kit"]}
    assert kit["clock and chance"]["state"] == "present"
    assert (kit["hash seed"]["state"], "reenact run" in kit["hash seed"]["fix"]) == ("missing", True)


@pytest.mark.slow
def test_nothing_is_opened_by_a_replay_of_it(desk: Desk, sockets: Count) -> None:
    program = desk.write("agent.py", UNITS)
    desk.reenact("run", "--", "python", program)
    done, inet = sockets([sys.executable, "-m", "reenact", "replay", "last"], desk.bare())
    assert (done.returncode, inet) == (0, 0)


TEMPORARY = """
import os, tempfile
import reenact

@reenact.tool
def save(path, text):
    with open(path, "w") as file:
        file.write(text)
    return len(text)

with tempfile.TemporaryDirectory() as folder:
    print(save(os.path.join(folder, "a.txt"), "hello"), os.path.basename(folder))
left = tempfile.NamedTemporaryFile(suffix=".csv", delete=False)
left.close()
print(save(left.name, "abc"))
print(save(os.path.join(tempfile.mkdtemp(), "b.txt"), "q"))
"""


def test_a_temporary_name_comes_again_where_the_world_has_namespaces(desk: Desk) -> None:
    desk.write("agent.py", TEMPORARY)
    live = desk.reenact("run", "--", "python", "agent.py")
    assert "replayable: exact" in live.stderr
    for _ in range(2):
        done = desk.reenact("replay", "last", "--json")
        said = json.loads(done.stdout)
        if said["level"] != "namespaces":
            pytest.skip("no world of namespaces can be made here: tests/seal says why")
        assert said["result"] == "same", done.stderr
        assert live.stdout in done.stderr
    elsewhere = desk.reenact("replay", "last", environ=desk.settings() | {"REENACT_ENFORCE": "landlock"})
    assert "unjudged: the temporary folder has another name in this world" in elsewhere.stderr


ALARMS = """
import signal, time
import reenact

class Late(BaseException):
    pass

@reenact.tool
def work(seconds):
    time.sleep(seconds)
    return seconds

rung = []

def ring(number, frame):
    rung.append(number)
    raise Late

signal.signal(signal.SIGALRM, ring)
for seconds in (0.8, 0.1):
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        print(work(seconds))
    except Late:
        print("late")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
ticks = []
signal.signal(signal.SIGALRM, lambda number, frame: ticks.append(number))
signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
print(work(0.5))
signal.setitimer(signal.ITIMER_REAL, 0)
print(len(rung), len(ticks) > 2)
"""


def test_an_alarm_that_rang_in_a_call_rings_again_before_its_answer(desk: Desk) -> None:
    desk.write("agent.py", ALARMS)
    live = desk.reenact("run", "--", "python", "agent.py")
    assert live.stdout.split("\n") == ["late", "0.1", "0.5", "1 True", ""]
    assert "replayable: exact" in live.stderr
    again = desk.reenact("replay", "last")
    assert (again.returncode, again.stdout) == (0, live.stdout), again.stderr
    assert "same: 3 tool calls answered" in again.stderr


BETWEEN_CALLS = """
import signal, time
import reenact
@reenact.tool
def ask(x):
    time.sleep(0.03)
    return x
class Late(Exception): pass
def ring(*_): raise Late
signal.signal(signal.SIGALRM, ring)
signal.setitimer(signal.ITIMER_REAL, 0.8)
n = 0
try:
    while True:
        n += 1
        ask(n); time.sleep(0.17)
except Late:
    print("late after", n)
signal.setitimer(signal.ITIMER_REAL, 0.15, 0.15)
ticks = []
signal.signal(signal.SIGALRM, lambda *_: ticks.append(len(got)))
got = []
for i in range(5):
    got.append(ask(i)); time.sleep(0.09)
signal.setitimer(signal.ITIMER_REAL, 0)
print(ask(ticks))
"""


@pytest.mark.slow
def test_an_alarm_rings_between_the_calls_between_which_it_rang(desk: Desk) -> None:
    """A replay answers sooner, or, the first call, later than the world did: the timer elapses as it did then."""
    desk.write("agent.py", BETWEEN_CALLS)
    live = desk.reenact("run", "--", "python", "agent.py")
    assert live.stdout.startswith("late after ")
    assert "replayable: exact" in live.stderr
    for _ in range(3):
        again = desk.reenact("replay", "last")
        assert (again.returncode, again.stdout) == (0, live.stdout), again.stderr
        assert "same: " in again.stderr
