"""A thread that works is told from one that waits, and patience counts what this process could do."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from functools import partial
from types import SimpleNamespace

import pytest

from reenact.replay import activity
from reenact.replay.activity import Activity, Patience


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells what a thread has had")
def test_a_thread_that_computes_is_at_work_and_one_that_waits_is_not() -> None:
    stop, numbers = threading.Event(), list[int]()

    def compute() -> None:
        numbers.append(threading.get_native_id())
        while not stop.is_set():
            sum(range(1000))

    def wait() -> None:
        numbers.append(threading.get_native_id())
        stop.wait()

    threads = [threading.Thread(target=compute), threading.Thread(target=wait)]
    for number, thread in enumerate(threads, 1):
        thread.start()
        while len(numbers) < number:
            time.sleep(0.001)
    looks, seen = Activity(), dict[int, set[bool]]()
    for _ in range(20):
        seen = {each: seen.get(each, set()) | {looks.is_at_work(each)} for each in numbers}
        time.sleep(0.015)
    spent = [looks.spent(each) for each in numbers]
    stop.set()
    for thread in threads:
        thread.join()
    assert True in seen[numbers[0]]
    assert False in seen[numbers[1]]
    assert spent[0] > spent[1]


def test_nobody_knows_of_a_thread_that_is_none() -> None:
    assert Activity().spent(1 << 30) == 0
    assert not Activity().is_at_work(1 << 30)


@pytest.mark.parametrize(
    ("passed", "worked", "own", "counted"),
    [
        (0.01, 0.0, 0.0, 0.01),
        (0.01, 0.01, 0.0, 0.01),
        (0.06, 0.02, 0.0, 0.02),
        (0.06, 0.0, 0.0, 0.02),
        (0.06, 0.002, 0.002, 0.02),
        (1.0, 0.05, 0.0, 0.1),
    ],
    ids=["idle", "at work", "at work, half starved", "late", "only who looks had time", "starved"],
)
def test_patience_counts_what_could_be_done(
    monkeypatch: pytest.MonkeyPatch, passed: float, worked: float, own: float, counted: float
) -> None:
    now = {"monotonic": 100.0, "process_time": 10.0, "thread_time": 1.0}
    clocks = {name: partial(now.__getitem__, name) for name in (*now,)}
    monkeypatch.setattr(activity, "time", SimpleNamespace(**clocks))
    patience = Patience()
    for rounds in (1, 2):
        now["monotonic"] += passed
        now["process_time"] += worked
        now["thread_time"] += own
        assert patience.waited() == pytest.approx(rounds * counted)
    patience.begin()
    assert patience.waited() == 0


SPINNING = "print(flush=True)\nwhile True: pass"


@pytest.mark.parametrize(
    ("below", "counted"),
    [((0.0, False), 0.02), ((0.0, True), 0.01), ((0.05, True), 0.05), ((0.05, False), 0.05)],
    ids=["children wait", "a child gets no processor", "a child works", "a child has worked"],
)
def test_patience_counts_what_children_could_do(
    monkeypatch: pytest.MonkeyPatch, below: tuple[float, bool], counted: float
) -> None:
    now = {"monotonic": 100.0, "process_time": 10.0, "thread_time": 1.0}
    clocks = {name: partial(now.__getitem__, name) for name in (*now,)}
    monkeypatch.setattr(activity, "time", SimpleNamespace(**clocks))
    patience = Patience()
    monkeypatch.setattr(patience, "_below", lambda _now: below)
    before = 0.0
    while before <= activity._ALONE_S:  # nobody looks at children until then
        now["monotonic"] += 0.02
        before = patience.waited()
    now["monotonic"] += 0.1
    assert patience.waited() - before == pytest.approx(counted)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells what a child has had")
def test_a_child_that_computes_is_at_work() -> None:
    with subprocess.Popen([sys.executable, "-S", "-c", SPINNING], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        patience = Patience()
        looks = [patience._below(time.monotonic()) for _ in range(100) if not time.sleep(0.005)]
        child.kill()
    assert any(runs for _, runs in looks)
    assert sum(spent for spent, _ in looks) > 0


def test_a_child_that_waits_is_no_reason_to_wait_longer() -> None:
    with subprocess.Popen([sys.executable, "-S", "-c", "print(flush=True); input()"], stdin=-1, stdout=-1) as child:
        assert child.stdout is not None
        child.stdout.readline()
        patience = Patience()
        looks = {patience._below(time.monotonic()) for _ in range(200) if not time.sleep(0.005)}
        known = dict(patience._children)
        child.communicate(b"\n")
    assert child.pid in known
    assert (0.0, False) in looks
