"""Whose time was up when recorded is late again, whoever came meanwhile; who was in time is in time however late."""

from __future__ import annotations

import asyncio
import concurrent.futures
import copy
import pickle
import pkgutil
import queue
import select
import selectors
import socket
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from itertools import count
from typing import Any

import pytest

from reenact.boundary import lanes, pauses, program_threads
from reenact.boundary.lanes import Lane
from reenact.boundary.patching import Patches
from reenact.boundary.pauses import Pause, Turn
from reenact.integrations import callbacks, deadlines, native_waits, timed_waits

SHORT = 0.001


class Pace:
    """Says of each wait that its time was up when recorded, or that it was not."""

    def __init__(self) -> None:
        self.turn_of: Turn | None = None
        self.before: Callable[[], object] = lambda: None
        """What others do before whoever is late goes on."""
        self.blocked = 0

    def turn(self, _lane: Lane) -> Turn | None:
        return self.turn_of

    def wait(self, _turn: Turn, _lane: Lane) -> None:
        self.before()

    async def wait_async(self, _turn: Turn, _lane: Lane) -> None:
        self.before()

    def blocks(self, _lane: Lane) -> None:
        self.blocked += 1

    def given_up(self, _turn: Turn, _lane: Lane) -> None:
        """Nobody waits here for a turn."""


@pytest.fixture
def pace(monkeypatch: pytest.MonkeyPatch) -> Generator[Pace]:
    made, patches = Pace(), Patches()
    monkeypatch.setattr(program_threads, "are_there", lambda: False)  # whatever other tests began
    lanes.restart()
    for each in (timed_waits, deadlines, native_waits, callbacks):
        each.INTEGRATION.install(patches)
    pauses.install(count(1).__next__, made)
    yield made
    pauses.install(None)
    patches.undo()
    lanes.restart()


def noted() -> list[bool]:
    """Tell of each wait that was noted whether its time was up."""
    taken: dict[str, list[Pause]] = pauses.take(lanes.current().reel)
    return [pause.ended > 0 for held in taken.values() for pause in held]


def of_queue() -> tuple[Callable[[], object], Callable[[], object]]:
    held: queue.Queue[int] = queue.Queue()

    def look() -> object:
        try:
            return held.get(timeout=SHORT)
        except queue.Empty:
            return None

    def come() -> None:  # past `put`, which is a wait of its own
        with held.mutex:
            held.queue.append(1)
            held.not_empty.notify()

    return look, come


def of_full_queue() -> tuple[Callable[[], object], Callable[[], object]]:
    held: queue.Queue[int] = queue.Queue(1)
    held.queue.append(1)

    def look() -> object:
        try:
            held.put(2, timeout=SHORT)
        except queue.Full:
            return None
        return True

    return look, held.get_nowait


def of_condition() -> tuple[Callable[[], object], Callable[[], object]]:
    condition = threading.Condition()

    def look() -> object:
        with condition:
            return condition.wait(SHORT) or None

    def come() -> None:
        with condition:
            condition.notify()

    return look, come


def of_semaphore() -> tuple[Callable[[], object], Callable[[], object]]:
    held = threading.Semaphore(0)
    return lambda: held.acquire(timeout=SHORT) or None, held.release


def of_future() -> tuple[Callable[[], object], Callable[[], object]]:
    held: Future[int] = Future()

    def look() -> object:
        try:
            return held.result(timeout=SHORT)
        except concurrent.futures.TimeoutError:
            return None

    return look, lambda: held.set_result(1)


def of_simple_queue() -> tuple[Callable[[], object], Callable[[], object]]:
    held: queue.SimpleQueue[int] = queue.SimpleQueue()
    native: Any = type(held).__mro__[1]

    def look() -> object:
        try:
            return held.get(timeout=SHORT)
        except queue.Empty:
            return None

    return look, lambda: native.put(held, 1)


def of_lock() -> tuple[Callable[[], object], Callable[[], object]]:
    held = threading.Lock()
    held.acquire()
    return lambda: held.acquire(timeout=SHORT) or None, held.release


def of_select() -> tuple[Callable[[], object], Callable[[], object]]:
    mine, other = socket.socketpair()

    def look() -> object:
        return other.recv(1) if select.select([mine, other], [], [], SHORT)[0] == [other] else None

    return look, lambda: mine.send(b"1")


def of_selectors() -> tuple[Callable[[], object], Callable[[], object]]:
    mine, other = socket.socketpair()
    held = selectors.DefaultSelector()
    held.register(mine, selectors.EVENT_READ)
    held.register(other, selectors.EVENT_READ)
    return lambda: [key.fileobj.recv(1) for key, _ in held.select(SHORT)] or None, lambda: mine.send(b"1")  # type: ignore[union-attr]


NATIVE = (of_select, of_selectors)
"""These say which are ready."""
KINDS = (of_queue, of_full_queue, of_condition, of_semaphore, of_future, of_simple_queue, of_lock, *NATIVE)


@pytest.mark.parametrize("kind", KINDS)
def test_who_was_late_when_recorded_is_late_although_somebody_came(kind: Callable[[], Any], pace: Pace) -> None:
    look, come = kind()
    pace.turn_of, pace.before = Turn(7, () if kind in NATIVE else None), come
    assert look() is None
    assert noted() == [True]


@pytest.mark.parametrize("kind", KINDS)
def test_who_was_in_time_when_recorded_is_in_time_although_it_takes_longer(kind: Callable[[], Any], pace: Pace) -> None:
    look, come = kind()
    pace.turn_of = Turn(7, (1,)) if kind in NATIVE else Turn(0)
    begun = threading.Timer(20 * SHORT, come)
    begun.start()
    assert look() is not None
    assert noted() == [kind in NATIVE]
    begun.join()


@pytest.mark.parametrize("kind", KINDS)
def test_a_wait_that_nobody_recorded_ends_as_it_comes(kind: Callable[[], Any], pace: Pace) -> None:
    look, come = kind()
    assert look() is None
    come() if kind is not of_condition else None
    assert (look() is None) == (kind is of_condition)
    assert noted() == [True, kind in {of_condition, *NATIVE}]
    assert pace.turn_of is None


@pytest.mark.parametrize("put", ["put", "put_nowait"])
def test_who_hands_something_to_others_does_so_in_turn(put: str, pace: Pace) -> None:
    held: queue.Queue[int] = queue.Queue()
    pace.turn_of, pace.before = Turn(7), lambda: held.queue.append(1)
    getattr(held, put)(2)
    assert [*held.queue] == [1, 2]
    assert noted() == [True]


def test_nobody_holds_up_an_event_loop_that_hands_something_over(pace: Pace) -> None:
    held: queue.Queue[int] = queue.Queue()
    pace.turn_of, pace.before = Turn(7), lambda: held.queue.append(1)

    async def main() -> None:
        held.put(2)

    asyncio.run(main())
    assert [*held.queue] == [2]
    assert noted() == []


def test_who_waits_without_an_end_is_at_work_on_nothing(pace: Pace) -> None:
    held: queue.Queue[int] = queue.Queue()
    held.queue.append(1)
    assert held.get() == 1
    assert noted() == [True], "who takes an item has a number: others may wait for it"
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    assert pace.blocked == 1
    assert noted() == []


def test_threads_and_futures_that_were_waited_for_in_vain_have_longer(pace: Pace) -> None:
    may_end = threading.Event()
    thread = threading.Thread(target=may_end.wait)
    thread.start()
    pace.turn_of = Turn(0)
    threading.Timer(20 * SHORT, may_end.set).start()
    thread.join(SHORT)
    assert not thread.is_alive()
    held: Future[int] = Future()
    threading.Timer(20 * SHORT, held.set_result, (1,)).start()
    assert concurrent.futures.wait([held], timeout=SHORT).done == {held}
    assert noted() == [False, True]


async def by_wait_for(work: Any) -> object:
    try:
        return await asyncio.wait_for(work, SHORT)
    except TimeoutError:
        return None


async def by_timeout(work: Any) -> object:
    try:
        async with asyncio.timeout(SHORT):
            return await work
    except TimeoutError:
        return None


async def by_wait(work: Any) -> object:
    task = asyncio.ensure_future(work)
    done, _ = await asyncio.wait([task], timeout=SHORT)
    return task.result() if done else await _cancelled(task)


async def _cancelled(task: asyncio.Future[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def after(turns: int) -> int:
    for _ in range(turns):
        await asyncio.sleep(SHORT)
    return 1


@pytest.mark.parametrize("way", [by_wait_for, by_timeout, by_wait])
def test_a_deadline_that_was_kept_when_recorded_is_kept_although_it_takes_longer(
    way: Callable[[Any], Any], pace: Pace
) -> None:
    pace.turn_of = Turn(0)
    assert asyncio.run(way(after(20))) == 1
    assert noted() == [way is by_wait]


@pytest.mark.parametrize("way", [by_wait_for, by_timeout, by_wait])
def test_a_deadline_that_was_missed_when_recorded_is_missed(way: Callable[[Any], Any], pace: Pace) -> None:
    pace.turn_of = Turn(7)

    async def never() -> None:
        await asyncio.Event().wait()

    assert asyncio.run(way(never())) is None
    assert noted() == [True]


@pytest.mark.always
def test_a_deadline_that_passed_before_its_block_began_is_one_as_well(pace: Pace) -> None:
    pace.turn_of = Turn(7)

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout_at(asyncio.get_running_loop().time() - SHORT):
                await asyncio.Event().wait()

    asyncio.run(main())
    assert noted() == [True]


def test_a_deadline_in_a_task_of_its_own_is_the_agents(pace: Pace) -> None:
    async def main() -> list[object]:
        pace.turn_of = Turn(0)
        return await asyncio.gather(*(asyncio.wait_for(after(20), SHORT) for _ in range(2)))

    assert asyncio.run(main()) == [1, 1]
    assert noted() == [False, False]


def ended(count: int) -> list[Future[int]]:
    """Make futures that have ended."""
    made = [Future[int]() for _ in range(count)]
    for number, each in enumerate(made):
        each.set_result(number)
    return made


def done_noted() -> list[tuple[int, ...] | None]:
    """Tell of each wait for several which of them had ended."""
    taken: dict[str, list[Pause]] = pauses.take(lanes.current().reel)
    return [pause.done for held in taken.values() for pause in held]


def test_of_several_futures_those_are_done_that_were_when_recorded(pace: Pace) -> None:
    first, second, third = ended(3)
    pace.turn_of = Turn(7, (2, 1))
    done, others = concurrent.futures.wait([first, second, third], return_when=concurrent.futures.FIRST_COMPLETED)
    assert [*done] == [second, third]
    assert [*others] == [first]
    assert done_noted() == [(1, 2)]


def test_who_was_done_when_recorded_is_waited_for(pace: Pace) -> None:
    (first,), second = ended(1), Future[int]()
    pace.turn_of = Turn(7, (0, 1))
    threading.Timer(20 * SHORT, second.set_result, (1,)).start()
    done, _ = concurrent.futures.wait([first, second], return_when=concurrent.futures.FIRST_COMPLETED)
    assert [*done] == [first, second]


def test_futures_come_one_by_one_as_they_did(pace: Pace) -> None:
    given = ended(3)
    pace.turn_of = Turn(0, (2, 0))
    assert [each.result() for each in concurrent.futures.as_completed(given)] == [2, 0, 1]
    pace.turn_of = Turn(7, (1,))
    begun = concurrent.futures.as_completed(given, timeout=SHORT)
    assert next(begun) is given[1]
    with pytest.raises(TimeoutError, match=r"2 \(of 3\) futures unfinished"):
        next(begun)
    assert done_noted() == [(2, 0, 1), (1,)]


def test_of_several_tasks_those_are_done_that_were_when_recorded(pace: Pace) -> None:
    async def main() -> tuple[list[str], list[str]]:
        tasks = [asyncio.create_task(after(turns), name=f"after {turns}") for turns in (1, 9, 3)]
        pace.turn_of = Turn(7, (1, 2))
        done, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        pace.turn_of = None
        await asyncio.wait(others)
        return [each.get_name() for each in done], [each.get_name() for each in others]

    assert asyncio.run(main()) == (["after 9", "after 3"], ["after 1"])
    assert done_noted() == [(1, 2)]


def test_a_timer_calls_in_turn_and_one_that_was_never_due_waits_until_it_is_cancelled(pace: Pace) -> None:
    called = list[str]()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        pace.turn_of = Turn(7)
        loop.call_later(SHORT, called.append, "due")
        pace.turn_of = Turn(0)
        never = loop.call_later(SHORT, called.append, "never")
        await asyncio.get_running_loop().create_task(after(20))
        never.cancel()

    asyncio.run(main())
    assert called == ["due"]
    assert noted() == [True, False]


def test_a_lock_of_the_agent_has_the_name_of_the_native_one_and_serves_a_condition() -> None:
    patches = Patches()
    native_waits.INTEGRATION.install(patches)
    pauses.install(count(1).__next__)
    try:
        for make in (threading.Lock, threading.RLock):
            held = make()
            condition = threading.Condition(held)
            with condition:
                assert not condition.wait(SHORT)
            assert held.acquire()
            held.release()
            assert repr(held).startswith("<unlocked _thread.")
        made = (threading.Lock(), queue.SimpleQueue[int]())
        kinds = [f"{type(each).__module__}.{type(each).__qualname__}" for each in made]
        for each, kind in zip(made, kinds, strict=True):
            with pytest.raises(TypeError, match=f"cannot pickle '{kind}' object"):
                copy.copy(each)
    finally:
        pauses.install(None)
        patches.undo()
    assert kinds == ["_thread.lock", "_queue.SimpleQueue"]
    assert type(threading.Lock()).__mro__ == (type(threading.Lock()), object)


@pytest.mark.usefixtures("pace")
@pytest.mark.parametrize("name", ["threading:Lock", "threading:RLock", "queue:SimpleQueue"])
def test_a_class_that_stands_for_a_native_one_is_pickled_as_what_code_calls_it(name: str) -> None:
    kind = pkgutil.resolve_name(name)
    assert pickle.loads(pickle.dumps(kind)) is kind
    assert pickle._loads(pickle._dumps(kind)) is kind  # as multiprocessing does, in Python
