"""Jobs of pools of `multiprocessing` in a replay that stops: who waits for a job hears of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from desk import Desk

CHANGED = """
import multiprocessing, sys
from multiprocessing.pool import ThreadPool
import reenact

@reenact.tool
def hand(what: str) -> str:
    return what

if __name__ == "__main__":
    method = sys.argv[1]
    with ThreadPool(2) if method == "threads" else multiprocessing.get_context(method).Pool(2) as pool:
        what = open("what").read()
        print(pool.map(hand, ["a", what]), pool.apply(hand, (what,)))
        print(list(pool.imap(hand, ["b", what])), list(pool.imap_unordered(hand, [what, what], chunksize=2)))
"""
NATIVE = """
import os
from multiprocessing.pool import ThreadPool
import reenact

@reenact.tool
def hand(what: str) -> str:
    return what

hand("a")
with ThreadPool(1) as pool:
    pool.apply(os.mkdir, ("made",))
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", ["threads", "fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_a_question_that_changed_in_a_job_ends_the_replay(desk: Desk, method: str) -> None:
    desk.write("agent.py", CHANGED)
    desk.write("what", "as it was")
    assert desk.reenact("run", "-q", "--", "python", "agent.py", method).returncode == 0
    assert desk.reenact("replay", "last").returncode == 0
    desk.write("what", "changed")
    done = desk.reenact("replay", "last", "--json", "--reads", "present")
    assert (done.returncode, json.loads(done.stdout)["result"]) == (1, "diverged"), done.stderr


def test_what_a_job_of_native_code_writes_is_refused_where_the_world_is_watched(desk: Desk) -> None:
    desk.write("agent.py", NATIVE)
    assert desk.reenact("run", "-q", "--", "python", "agent.py").returncode == 0
    (desk.folder / "made").rmdir()
    done = desk.reenact("replay", "last", "--json", environ=desk.settings() | {"REENACT_ENFORCE": "watched"})
    assert (done.returncode, json.loads(done.stdout)["result"]) == (125, "unjudged"), done.stderr
    assert not (desk.folder / "made").exists()


def replays_as_recorded(desk: Desk, program: str, word: str, *, times: int) -> None:
    """Record a program, and replay it so often: each time it prints what it printed."""
    desk.write("agent.py", program)
    recorded = desk.reenact("run", "-q", "--", "python", "agent.py", word)
    assert (recorded.returncode, recorded.stderr) == (0, "")
    for _ in range(times):
        again = desk.reenact("replay", "last")
        assert (again.returncode, again.stdout) == (0, recorded.stdout), again.stderr


TIMES = """
import multiprocessing, sys, threading, time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.pool import ThreadPool
import reenact

@reenact.tool
def hand(what: str) -> str:
    return what

def job(number):
    began = time.time()
    time.sleep(0.002)
    return number, began, time.time() - began

def submit(pool, number, callback):
    if hasattr(pool, "apply_async"):
        pool.apply_async(job, (number,), callback=callback)
    else:
        pool.submit(job, number).add_done_callback(lambda future: callback(future.result()))

def work(pool):
    results, ends, over, left = [], [], threading.Event(), [3, 4, 5]
    def callback(result):
        results.append(result)
        ends.append((result[0], time.time()))
        if left:
            submit(pool, left.pop(0), callback)
        if len(results) == 6:
            over.set()
    for number in range(3):
        submit(pool, number, callback)
    over.wait()
    print(results if kind.startswith("threads") else [number for number, _, _ in results], ends)

if __name__ == "__main__":
    kind = sys.argv[1]
    hand("a")
    make = {"threads": ThreadPool, "processes": multiprocessing.get_context("fork").Pool,
            "threads of an executor": ThreadPoolExecutor, "processes of an executor": ProcessPoolExecutor}[kind]
    with make(2) as pool:
        work(pool)
    hand("b")
"""


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", ["threads", "processes", "threads of an executor", "processes of an executor"])
def test_what_jobs_and_callbacks_read_of_the_clock_comes_again_whichever_thread_runs_them(
    desk: Desk, kind: str
) -> None:
    replays_as_recorded(desk, TIMES, kind, times=3)


CALLBACKS = """
import os, threading, time
from concurrent.futures import ThreadPoolExecutor
import reenact

@reenact.tool
def hand(what: str) -> str:
    return what

def compute(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass

ends, over, left = [], threading.Event(), [3, 4, 5]

def job(number):
    compute(0.01)
    return number

def submit(pool, number):
    pool.submit(job, number).add_done_callback(lambda future: hear(pool, future.result()))

def hear(pool, number):
    ends.append(number)
    if left:
        submit(pool, left.pop(0))
    if len(ends) == 6:
        over.set()

hand("a")
with ThreadPoolExecutor(2) as pool:
    submit(pool, 0)
    submit(pool, 1)
    if "SLOW" in os.environ:
        compute(0.3)
    submit(pool, 2)
    over.wait()
print(ends)
hand("b")
"""


@pytest.mark.sample(1)
@pytest.mark.parametrize("slow", ["recording", "replay", "recording and replay"])
def test_jobs_are_handed_over_in_their_order_however_long_the_main_thread_takes(desk: Desk, slow: str) -> None:
    desk.write("agent.py", CALLBACKS)
    with_slow = desk.settings() | {"SLOW": "1"}
    recorded = desk.reenact(
        "run", "-q", "--", "python", "agent.py", environ=with_slow if "recording" in slow else desk.settings()
    )
    assert (recorded.returncode, recorded.stderr) == (0, "")
    for _ in range(3):
        again = desk.reenact("replay", "last", environ=with_slow if "replay" in slow else desk.settings())
        assert (again.returncode, again.stdout) == (0, recorded.stdout), again.stderr
        assert "given up" not in again.stderr


WORKERS = """
import queue, random, sys, threading, time
import reenact

@reenact.tool
def hand(what: str) -> str:
    time.sleep(random.random() / 100)
    return what.upper()

kind = {"first": queue.Queue, "last": queue.LifoQueue, "least": queue.PriorityQueue}[sys.argv[1]]
work, results, lock = kind(), [], threading.Lock()

def worker(number):
    while (item := work.get()) != "stop":
        began = time.time()
        answer = hand(item)
        with lock:
            results.append((number, item, answer, began, time.time()))
        work.task_done()
    work.task_done()

threads = [threading.Thread(target=worker, args=(number,)) for number in range(3)]
for thread in threads:
    thread.start()
threading.Thread(target=lambda: work.get() and worker(9), daemon=True).start() if sys.argv[1] == "first" else None
for number in range(9):
    work.put(f"item {number}")
time.sleep(0.2)
for _ in range(4 if sys.argv[1] == "first" else 3):
    work.put("stop")
for thread in threads:
    thread.join()
print(results)
"""


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", ["first", "last", "least"])
def test_each_item_of_a_queue_goes_to_the_thread_that_had_it(desk: Desk, kind: str) -> None:
    replays_as_recorded(desk, WORKERS, kind, times=5)


LIMITED = """
import random, sys, threading, time
import reenact

@reenact.tool
def hand(what: str) -> str:
    time.sleep(random.random() / 200)
    return what.upper()

limit = threading.Semaphore(2) if sys.argv[1] == "with" else threading.BoundedSemaphore(2)
order = []

def job(number):
    for turn in range(3):
        if sys.argv[1] == "with":
            with limit:
                order.append(hand(f"{number}-{turn}"))
        else:
            limit.acquire()
            order.append(hand(f"{number}-{turn}"))
            limit.release()

threads = [threading.Thread(target=job, args=(number,)) for number in range(5)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(order)
"""


@pytest.mark.sample(1)
@pytest.mark.parametrize("how", ["with", "acquire"])
def test_threads_pass_a_semaphore_in_recorded_order(desk: Desk, how: str) -> None:
    replays_as_recorded(desk, LIMITED, how, times=5)
