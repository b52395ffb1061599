"""Threads that race with no call in them: who ends first, and who takes a lock or an item first, is the same again."""

from __future__ import annotations

import pytest

from desk import Desk

BEGIN = """
import asyncio, hashlib, queue, threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, as_completed, wait
from multiprocessing.pool import ThreadPool
import reenact

@reenact.tool
def note() -> int:
    return 1

def work(number):
    digest = hashlib.sha256()
    for _ in range(2 + number * 7 % 11):
        digest.update(b"x" * 300_000)
    return number

ends = []
"""

PROGRAMS = {
    "as they are completed": """
with ThreadPoolExecutor(4) as pool:
    ends += [job.result() for job in as_completed([pool.submit(work, number) for number in range(12)])]
note()
""",
    "in rounds": """
note()
with ThreadPoolExecutor(4) as pool:
    jobs = {pool.submit(work, number) for number in range(12)}
    while jobs:
        over, jobs = wait(jobs, return_when=FIRST_COMPLETED)
        ends.append(sorted(job.result() for job in over))
""",
    "told by callbacks": """
with ThreadPoolExecutor(4) as pool:
    for number in range(12):
        pool.submit(work, number).add_done_callback(lambda job: ends.append(job.result()))
note()
""",
    "out of a pool of multiprocessing": """
note()
with ThreadPool(4) as pool:
    ends += pool.imap_unordered(work, range(12))
""",
    "in an event loop": """
async def one(number):
    ends.append(await asyncio.to_thread(work, number))

async def main():
    loop = asyncio.get_running_loop()
    for each in asyncio.as_completed([loop.run_in_executor(None, work, number) for number in range(12)]):
        ends.append(await each)
    await asyncio.gather(*map(one, range(12)))

asyncio.run(main())
note()
""",
    "in an event loop, while tasks go on": """
def job(number):
    note()
    return work(number % 3)

async def one(number):
    await asyncio.to_thread(job, number)
    for step in range(8):
        await asyncio.sleep(0)
        ends.append((number, step))

async def main():
    for _ in range(5):
        await asyncio.gather(*map(one, range(3)))

asyncio.run(main())
""",
    "in threads of anyio": """
import anyio

async def one(number):
    ends.append(await anyio.to_thread.run_sync(work, number))

async def main():
    async with anyio.create_task_group() as group:
        for number in range(12):
            group.start_soon(one, number)

note()
anyio.run(main)
""",
    "in a call and behind it": """
def completed():
    with ThreadPoolExecutor(4) as pool:
        return [job.result() for job in as_completed([pool.submit(work, number) for number in range(12)])]

@reenact.tool
def ask() -> list:
    return completed()

ends = [ask(), completed()]
""",
    "behind a lock": """
lock = threading.Lock()

def take(number):
    work(number)
    with lock:
        ends.append(number)

note()
threads = [threading.Thread(target=take, args=(number,)) for number in range(12)]
for each in threads:
    each.start()
for each in threads:
    each.join()
""",
    "on a condition": """
changed, counted = threading.Condition(), threading.Condition(threading.Lock())

def take(number):
    work(number)
    with changed:
        ends.append(number)
        changed.notify_all()
    work(number + 3)
    counted.acquire()
    ends.append(-number)
    counted.notify()
    counted.release()

note()
threads = [threading.Thread(target=take, args=(number,)) for number in range(1, 9)]
for each in threads:
    each.start()
with changed:
    while len(ends) < 3:
        changed.wait()
        ends.append("woken")
with counted:
    counted.wait_for(lambda: ends.append("looked") or sum(isinstance(end, int) and end < 0 for end in ends) == 8)
for each in threads:
    each.join()
""",
    "of what is there": """
jobs, met, plain = queue.Queue(), threading.Barrier(3), queue.SimpleQueue()
for number in range(12):
    jobs.put(number)
    plain.put(number)

def take(name):
    looks = []
    while not jobs.empty():
        try:
            looks.append(work(jobs.get_nowait()))
        except queue.Empty:
            looks.append("nothing")
    looks.append(("met", met.wait()))
    try:
        while True:
            looks.append(work(plain.get(block=False)))
    except queue.Empty:
        return name, looks

note()
with ThreadPoolExecutor(3) as pool:
    futures = [pool.submit(take, name) for name in "abc"]
    ends += [future.result() for future in futures]
""",
    "handed to a loop": """
async def keep(number):
    ends.append(number)
    return number

async def main():
    loop, ready = asyncio.get_running_loop(), asyncio.Queue()

    def take(number):
        work(number)
        loop.call_soon_threadsafe(ready.put_nowait, number)

    def keep_there(number):
        work(number)
        return asyncio.run_coroutine_threadsafe(keep(number), loop).result()

    threads = [threading.Thread(target=take, args=(number,)) for number in range(10)]
    for each in threads:
        each.start()
    ends.extend([await ready.get() for _ in threads])
    await asyncio.gather(*(asyncio.to_thread(keep_there, number) for number in range(8)))

asyncio.run(main())
note()
""",
    "out of a queue, behind a lock that is taken twice": """
lock, jobs = threading.RLock(), queue.SimpleQueue()

def take(name):
    while (number := jobs.get()) is not None:
        work(number)
        with lock:
            lock.acquire()
            ends.append((name, number))
            lock.release()

note()
threads = [threading.Thread(target=take, args=(name,)) for name in range(3)]
for each in threads:
    each.start()
for number in [*range(12), None, None, None]:
    jobs.put(number)
for each in threads:
    each.join()
""",
}


IN_TRIO = """
import trio

async def one(number):
    ends.append(await trio.to_thread.run_sync(work, number))

async def main():
    async with trio.open_nursery() as nursery:
        for number in range(12):
            nursery.start_soon(one, number)

note()
trio.run(main)
"""


@pytest.mark.sample(4)
@pytest.mark.parametrize("how", PROGRAMS)
def test_who_was_first_is_first_again(desk: Desk, how: str) -> None:
    desk.write("agent.py", BEGIN + PROGRAMS[how] + "print(ends)\n")
    recorded = desk.reenact("run", "--", "python", "agent.py")
    assert "replayable: exact" in recorded.stderr
    for _ in range(3):
        replay = desk.reenact("replay", "last")
        assert (replay.returncode, replay.stdout) == (0, recorded.stdout), replay.stderr
        assert "same: " in replay.stderr


@pytest.mark.slow
def test_who_was_first_in_threads_of_trio_is_first_again(desk: Desk) -> None:
    pytest.importorskip("trio")
    desk.write("agent.py", BEGIN + IN_TRIO + "print(ends)\n")
    recorded = desk.reenact("run", "--", "python", "agent.py")
    for _ in range(3):
        replay = desk.reenact("replay", "last")
        assert (replay.returncode, replay.stdout) == (0, recorded.stdout), replay.stderr


CANCELLED = """
import asyncio, reenact

@reenact.tool
async def ask(name, seconds):
    await asyncio.sleep(seconds)
    return name

async def one(name, turns, seconds):
    for _ in range(turns):
        await asyncio.sleep(0)
    return int(await ask(name, seconds))

async def main():
    try:
        async with asyncio.TaskGroup() as group:
            for number in range(4):
                group.create_task(one(f"{number}", 40 * number, 5))
            group.create_task(one("wrong", 0, 0.2))
    except* ValueError as errors:
        print(errors.exceptions)

asyncio.run(main())
"""


def test_who_is_cancelled_has_asked_again(desk: Desk) -> None:
    """An answer that makes the agent give up other calls comes when these were asked, however many turns that takes."""
    desk.write("agent.py", CANCELLED)
    recorded = desk.reenact("run", "--", "python", "agent.py")
    assert "replayable: exact" in recorded.stderr
    for _ in range(2):
        replay = desk.reenact("replay", "last")
        assert (replay.returncode, replay.stdout) == (0, recorded.stdout), replay.stderr
        assert "same: " in replay.stderr


def test_who_looks_whether_something_is_there_waits_for_nobody_who_waits(desk: Desk) -> None:
    lines = """
jobs, found = queue.SimpleQueue(), []

def wait_for_one():
    found.append(jobs.get())

note()
waiter = threading.Thread(target=wait_for_one)
waiter.start()
while waiter.is_alive() and len(ends) < 3:
    try:
        ends.append(jobs.get_nowait())
    except queue.Empty:
        ends.append("nothing")
    waiter.join(0.05)
jobs.put("something")
waiter.join()
ends += found
"""
    desk.write("agent.py", BEGIN + lines + "print(ends)\n")
    recorded = desk.reenact("run", "--", "python", "agent.py")
    assert recorded.stdout == "['nothing', 'nothing', 'nothing', 'something']\n"
    replay = desk.reenact("replay", "last")
    assert (replay.returncode, replay.stdout) == (0, recorded.stdout), replay.stderr


def test_main_goes_on_behind_a_thread_where_it_did_when_recorded(desk: Desk) -> None:
    lines = """
import os, time

def wait():
    time.sleep(0.05)
    ends.append("waited")

def compute():
    end = time.perf_counter() + (0 if "FAST" in os.environ else 0.5)
    while time.perf_counter() < end:
        pass

note()
threading.Thread(target=wait, daemon=True).start()
computing = threading.Thread(target=compute)
computing.start()
computing.join()
print(ends)
"""
    desk.write("agent.py", BEGIN + lines)
    assert desk.reenact("run", "-q", "--", "python", "agent.py").stdout == "['waited']\n"
    again = desk.reenact("replay", "last", environ=desk.settings() | {"FAST": "1"})
    assert (again.returncode, again.stdout) == (0, "['waited']\n"), again.stderr


def test_a_lock_that_is_taken_too_often_makes_the_recording_partial(desk: Desk) -> None:
    lines = """
lock = threading.Lock()

def take():
    for _ in range(11_000):
        with lock:
            ends.append(threading.current_thread().name)

note()
threads = [threading.Thread(target=take) for _ in range(2)]
for each in threads:
    each.start()
for each in threads:
    each.join()
"""
    desk.write("agent.py", BEGIN + lines)
    recorded = desk.reenact("run", "--", "python", "agent.py")
    assert "replayable: partial" in recorded.stderr
    assert "who went on first" in recorded.stderr


def test_a_lock_of_a_program_that_is_alone_keeps_nothing(desk: Desk) -> None:
    lines = """
lock = threading.Lock()
for _ in range(12_000):
    with lock:
        ends.append(1)
note()
"""
    desk.write("agent.py", BEGIN + lines)
    assert "replayable: exact" in desk.reenact("run", "--", "python", "agent.py").stderr
