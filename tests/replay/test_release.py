from __future__ import annotations

import asyncio
import math
import random
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType, SimpleNamespace, coroutine
from typing import cast

import pytest

from reenact.replay import release
from reenact.replay.release import Expected, Gate


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for what does not come no longer than a test should."""
    monkeypatch.setattr(release, "PATIENCE_S", 0.15)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait longer than any test may take: where nothing is missing, nobody waits for it."""
    monkeypatch.setattr(release, "PATIENCE_S", 3600.0)


@pytest.fixture
def graceful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a lane be at work longer than any test may take: where every lane settles, nobody waits for it."""
    monkeypatch.setattr(release, "GRACE_S", 3600.0)


def expected(numbers: Iterable[int], *, apart_s: float = 0.001) -> list[Expected]:
    return [Expected(number, 0.0, number * apart_s) for number in numbers]


class Skips:
    """Takes down what the gate gave up."""

    def __init__(self) -> None:
        self.told: list[tuple[list[int], int]] = []

    def __call__(self, passed: list[int], granted: int) -> None:
        self.told.append((passed, granted))


@pytest.mark.usefixtures("patient", "graceful")
def test_threads_are_let_through_in_recorded_order() -> None:
    skips, out = Skips(), list[int]()
    gate = Gate(expected(range(1, 31)), skips)

    def work(number: int) -> None:
        time.sleep(random.uniform(0, 0.01))
        gate.wait(number, f"lane {number}")
        out.append(number)
        gate.settled(f"lane {number}")

    with ThreadPoolExecutor(30) as pool:
        list(pool.map(work, random.sample(range(1, 31), 30)))
    assert out == list(range(1, 31))
    assert skips.told == []


@pytest.mark.usefixtures("patient", "graceful")
def test_tasks_are_let_through_in_recorded_order() -> None:
    skips, out = Skips(), list[int]()
    gate = Gate(expected(range(1, 201)), skips)

    async def work(number: int) -> None:
        await asyncio.sleep(random.uniform(0, 0.01))
        await gate.wait_async(number, f"lane {number}")
        out.append(number)
        gate.settled(f"lane {number}")

    async def main() -> None:
        await asyncio.gather(*(work(number) for number in random.sample(range(1, 201), 200)))

    asyncio.run(main())
    assert out == list(range(1, 201))
    assert skips.told == []


@pytest.mark.usefixtures("patient", "graceful")
def test_threads_and_tasks_of_several_loops_wait_for_one_another() -> None:
    out: list[int] = []
    gate = Gate(expected(range(1, 31)))

    async def one(number: int) -> None:
        await gate.wait_async(number, f"lane {number}")
        out.append(number)
        gate.settled(f"lane {number}")

    async def several(numbers: Iterable[int]) -> None:
        await asyncio.gather(*(one(number) for number in numbers))

    def blocking(number: int) -> None:
        gate.wait(number, f"lane {number}")
        out.append(number)
        gate.settled(f"lane {number}")

    threads = [
        threading.Thread(target=asyncio.run, args=(several(range(1, 31, 3)),)),
        threading.Thread(target=asyncio.run, args=(several(range(2, 31, 3)),)),
        *(threading.Thread(target=blocking, args=(number,)) for number in range(3, 31, 3)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert out == list(range(1, 31))


def test_a_lane_that_was_let_through_has_its_time_before_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """What agent code does right after an answer is done when the next lane gets its own."""
    monkeypatch.setattr(release, "GRACE_S", 3600.0)
    out: list[str] = []
    gate = Gate(expected([1, 2]))

    def first() -> None:
        gate.wait(1, "first")
        time.sleep(0.05)
        out.append("first")
        gate.settled("first")

    def second() -> None:
        gate.wait(2, "second")
        out.append("second")

    threads = [threading.Thread(target=work) for work in (second, first)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert out == ["first", "second"]


@pytest.mark.usefixtures("patient")
def test_a_lane_that_never_settles_is_waited_for_no_longer_than_its_grace() -> None:
    gate = Gate(expected([1, 2]))
    gate.wait(1, "busy for ever")
    gate.wait(2, "next")


@pytest.mark.usefixtures("patient")
def test_one_lane_is_never_held_up_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "GRACE_S", 3600.0)
    gate = Gate(expected(range(1, 2001)))
    for number in range(1, 2001):
        gate.wait(number, "main")


def test_orders_that_nobody_recorded_pass() -> None:
    gate = Gate(expected([5]))
    gate.wait(None, "main")
    gate.wait(99, "main")
    gate.wait(0, "main")
    asyncio.run(gate.wait_async(None, "main"))
    Gate([]).wait(1, "main")


def test_an_order_is_waited_for_once() -> None:
    gate = Gate(expected([1, 2]))
    for _ in range(3):
        gate.wait(1, "main")
    gate.wait(2, "main")


def test_a_number_that_never_comes_is_given_up_and_told() -> None:
    skips = Skips()
    gate = Gate(expected([1, 2, 3, 4]), skips)
    gate.wait(1, "main")
    gate.wait(4, "main")
    assert skips.told == [([2, 3], 4)]


def test_of_several_that_wait_the_lowest_escapes_first() -> None:
    skips, out = Skips(), list[int]()
    gate = Gate(expected([1, 2, 3]), skips)

    async def work(number: int) -> None:
        await gate.wait_async(number, f"lane {number}")
        out.append(number)

    async def main() -> None:
        await asyncio.gather(work(3), work(2))

    asyncio.run(main())
    assert out == [2, 3]
    assert skips.told == [([1], 2)]


def test_who_waits_for_what_is_held_behind_it_escapes() -> None:
    """The agent changed: 1 is now asked for only when 2 was answered."""
    skips = Skips()
    gate = Gate(expected([1, 2]), skips)

    async def main() -> list[int]:
        out: list[int] = []
        await gate.wait_async(2, "main")
        out.append(2)
        await gate.wait_async(1, "main")
        out.append(1)
        return out

    assert asyncio.run(main()) == [2, 1]
    assert skips.told == [([1], 2)]


def test_patience_is_longer_where_the_recording_was_slower() -> None:
    """The missing number came 50 seconds after the others had begun to wait; that much is awaited, and more."""
    skips, out = Skips(), list[int]()
    gate = Gate([Expected(1, 50.0, 50.1), Expected(2, 0.0, 50.2)], skips)

    def late() -> None:
        time.sleep(0.5)
        gate.wait(1, "late")
        out.append(1)
        gate.settled("late")

    thread = threading.Thread(target=late)
    thread.start()
    gate.wait(2, "main")
    out.append(2)
    thread.join()
    assert (out, skips.told) == ([1, 2], [])


@pytest.mark.usefixtures("patient")
def test_a_cancelled_waiter_holds_up_nobody() -> None:
    skips = Skips()
    gate = Gate(expected([1, 2, 3]), skips)

    async def main() -> list[int]:
        out: list[int] = []

        async def work(number: int) -> None:
            await gate.wait_async(number, f"lane {number}")
            out.append(number)
            gate.settled(f"lane {number}")

        tasks = {number: asyncio.create_task(work(number)) for number in (2, 3)}
        await asyncio.sleep(0.01)
        tasks[2].cancel()
        await asyncio.sleep(0)
        await work(1)
        await asyncio.wait(tasks.values())
        return out

    assert asyncio.run(main()) == [1, 3]
    assert skips.told == []


def test_what_will_not_come_is_passed_over_at_once() -> None:
    skips = Skips()
    gate = Gate(expected([1, 2, 3]), skips)
    gate.drop([1, 2])
    gate.wait(3, "main")
    assert skips.told == []


def test_who_waits_for_what_was_dropped_meanwhile_goes_on() -> None:
    gate = Gate(expected([1, 2]))
    done = threading.Event()

    def work() -> None:
        gate.wait(2, "work")
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.02)
    gate.drop([2])
    assert done.wait(60)
    thread.join()
    gate.wait(1, "main")


def test_a_loop_that_was_closed_meanwhile_disturbs_nobody() -> None:
    gate = Gate(expected([1, 2]))
    loop = asyncio.new_event_loop()
    task = loop.create_task(gate.wait_async(2, "gone"))
    loop.run_until_complete(asyncio.sleep(0.01))
    loop.close()
    gate.wait(1, "main")
    gate.settled("main")
    del task


def test_eight_thousand_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "PATIENCE_S", 20.0)
    out: list[int] = []
    gate = Gate(expected(range(1, 8001)))

    async def work(number: int) -> None:
        await gate.wait_async(number, f"lane {number}")
        out.append(number)
        gate.settled(f"lane {number}")

    async def main() -> None:
        await asyncio.gather(*(work(number) for number in reversed(range(1, 8001))))

    asyncio.run(main())
    assert out == list(range(1, 8001))


@pytest.mark.parametrize(
    "expected",
    [
        [Expected(1, 0.0, 0.0), Expected(2, 0.0, 0.001, together=True)],
        [Expected(1, 0.0, 0.001), Expected(2, 0.001, 0.002, together=True)],
    ],
    ids=["a head before its own end", "a call that was made behind the answer"],
)
def test_nobody_waits_for_what_waits_for_him(expected: list[Expected], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "PATIENCE_S", 600.0)
    gate = Gate(expected)
    waiting = threading.Thread(target=gate.wait, args=(1, "a"), daemon=True)
    waiting.start()
    waiting.join(60)
    assert not waiting.is_alive()


@pytest.mark.parametrize("together", [True, False])
def test_answers_of_one_turn_of_the_loop_reach_both_tasks_before_either_is_heard_of(*, together: bool) -> None:
    gate = Gate([Expected(1, 0.0, 0.001), Expected(2, 0.0, 0.001, together)])

    async def fail(number: int) -> None:
        for _ in range(number):  # the second is asked for later
            await asyncio.sleep(0)
        await gate.wait_async(number, f"lane {number}")
        raise ValueError(number)

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for number in (1, 2):
                group.create_task(fail(number))

    with pytest.raises(ExceptionGroup) as raised:
        asyncio.run(main())
    assert len(raised.value.exceptions) == (2 if together else 1)


@pytest.mark.parametrize("is_behind", [True, False])
@pytest.mark.parametrize("in_one_turn", [True, False])
def test_pieces_of_several_streams_that_came_in_one_turn_of_the_loop_reach_their_tasks_in_one(
    *, in_one_turn: bool, is_behind: bool
) -> None:
    pieces = {"a": (2, 3), "b": (4, 5), "c": (6,)}
    turned = [
        Expected(order, 0.0, 0.0, in_one_turn and order > 2, turn=2 * (in_one_turn and order > 2), stream=stream)
        for stream, orders in pieces.items()
        for order in orders
    ]
    gate = Gate([Expected(1, 0.0, 0.0), *turned])
    seen: list[str] = []
    later: list[asyncio.Task[None]] = []

    async def look_later() -> None:
        if not is_behind:  # who is let on at once goes on before the others wake
            await asyncio.sleep(0)
        seen.append("later")

    async def read(stream: str) -> None:
        for order in pieces[stream]:
            await gate.wait_async(order, stream)
            seen.append(f"{stream}{order}")
            if order == (2 if is_behind else 3):
                later.append(asyncio.create_task(look_later()))

    async def let_go() -> None:
        await gate.wait_async(1, "before")
        gate.settled("before")

    async def main() -> None:
        if not is_behind:
            await let_go()
        readers = [asyncio.create_task(read(stream)) for stream in ("c", "b", "a")]
        if is_behind:
            await asyncio.sleep(0.01)
            await let_go()
        await asyncio.gather(*readers)
        await asyncio.gather(*later)

    asyncio.run(main())
    assert [each for each in seen if each != "later"] == ["a2", "a3", "b4", "b5", "c6"]
    assert (seen[-1] == "later") is in_one_turn


def test_of_a_turn_of_the_loop_who_is_never_asked_for_is_not_awaited_for_long() -> None:
    gate = Gate([Expected(1, 0.0, 0.001), Expected(2, 0.0, 0.001, together=True)])
    asyncio.run(asyncio.wait_for(gate.wait_async(1, "lane 1"), 60))
    assert gate.has_passed(1)
    assert not gate.has_passed(2)


class _Turns:
    """What a gate takes of trio: an event, and a way to set it from elsewhere."""

    def __init__(self) -> None:
        self.is_set = False

    def set(self) -> None:
        self.is_set = True

    async def wait(self) -> None:
        while not self.is_set:
            await _turn()

    @staticmethod
    def run_sync_soon(done: Callable[[], None]) -> None:
        done()


@coroutine
def _turn() -> Generator[None]:
    yield


@pytest.mark.usefixtures("patient", "graceful")
def test_tasks_of_another_loop_than_asyncio_are_let_through_in_recorded_order(monkeypatch: pytest.MonkeyPatch) -> None:

    async def checkpoint() -> None:
        pass

    lowlevel = SimpleNamespace(
        current_trio_token=_Turns,
        checkpoint=checkpoint,
        current_statistics=lambda: SimpleNamespace(seconds_to_next_deadline=math.inf),
    )
    monkeypatch.setitem(sys.modules, "trio", cast("ModuleType", SimpleNamespace(Event=_Turns, lowlevel=lowlevel)))
    gate = Gate(expected([1, 2]))
    second, first = gate.wait_async(2, "b"), gate.wait_async(1, "a")
    second.send(None)
    for task in (first, second):
        with pytest.raises(StopIteration):
            task.send(None)
        gate.settled("a")


def test_a_lane_that_computes_has_the_processor_time_that_it_had_when_recorded() -> None:
    """It may run as long as the next answer was away; a busy machine gives it less of a processor meanwhile."""
    out: list[str] = []
    gate = Gate([Expected(1, 0.0, 0.0), Expected(2, 0.0, 1.0)])

    def first() -> None:
        gate.wait(1, "first")
        while time.thread_time() < 4 * release.GRACE_S:
            pass
        out.append("first")
        gate.settled("first")

    def second() -> None:
        gate.wait(2, "second")
        out.append("second")

    threads = [threading.Thread(target=work) for work in (second, first)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert out == ["first", "second"]


def test_a_process_that_works_is_waited_for_by_its_processor_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes late because much is computed first comes in its turn, however little of a processor there is."""
    monkeypatch.setattr(release, "PATIENCE_S", 1.0)
    skips, out = Skips(), list[int]()
    gate = Gate(expected([1, 2]), skips)

    def late() -> None:
        spent = time.process_time()
        while time.process_time() - spent < release.PATIENCE_S / 4:
            time.sleep(0)
        gate.wait(1, "late")
        out.append(1)
        gate.settled("late")

    workers = [threading.Thread(target=late)]
    for worker in workers:
        worker.start()
    gate.wait(2, "main")
    out.append(2)
    for worker in workers:
        worker.join()
    assert (out, skips.told) == ([1, 2], [])


def connections(numbers: Iterable[int]) -> list[Expected]:
    """Give releases of connections, all of them asked for at once, which nobody need ask for."""
    return [Expected(number, 0.0, number * 0.001, optional=True) for number in numbers]


@pytest.mark.usefixtures("patient")
def test_connections_that_are_made_come_in_their_recorded_place() -> None:
    skips, out = Skips(), list[int]()
    gate = Gate([*expected((2, 4, 6)), *connections((1, 3, 5))], skips)

    async def work(number: int) -> None:
        await gate.wait_async(number, f"lane {number}")
        out.append(number)
        gate.settled(f"lane {number}")

    async def main() -> None:
        await asyncio.gather(*map(work, (5, 3, 1, 6, 4, 2)))

    asyncio.run(main())
    assert out == [1, 2, 3, 4, 5, 6]
    assert skips.told == []


@pytest.mark.usefixtures("patient")
def test_connections_that_are_asked_for_together_come_in_recorded_order() -> None:
    skips, out = Skips(), list[int]()
    gate = Gate(connections((1, 2, 3)), skips)

    async def work(number: int) -> None:
        await gate.wait_async(number, f"lane {number}")
        out.append(number)
        gate.settled(f"lane {number}")

    async def main() -> None:
        await asyncio.gather(*map(work, (3, 1, 2)))

    asyncio.run(main())
    assert out == [1, 2, 3]
    assert skips.told == []


@pytest.mark.usefixtures("patient")
def test_nobody_waits_for_a_connection_that_is_not_made() -> None:
    skips = Skips()
    gate = Gate([*expected((2, 4)), *connections((1, 3))], skips)
    for number in (2, 4):
        gate.wait(number, "lane")
    assert skips.told == []


@pytest.mark.usefixtures("patient")
def test_a_connection_that_is_needed_before_its_turn_is_made_and_nothing_is_skipped() -> None:
    skips = Skips()
    gate = Gate([*expected((1, 2)), *connections((3,))], skips)
    for number in (3, 1, 2):  # one lane needs it for all that came before it
        gate.wait(number, "lane")
    assert skips.told == []


@pytest.mark.usefixtures("patient")
def test_a_connection_that_comes_too_late_waits_for_nobody() -> None:
    skips = Skips()
    gate = Gate([*expected((2, 4)), *connections((1,))], skips)
    for number in (2, 1, 4):
        gate.wait(number, "lane")
    assert skips.told == []


@pytest.mark.always
def test_nobody_is_granted_anything_while_an_answered_call_does_what_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "GRACE_S", 0.0)
    gate, done = Gate(expected((1, 2))), list[str]()
    gate.wait(1, "one")

    def second() -> None:
        gate.wait(2, "two")
        done.append("two")

    with gate.turn("one"):
        other = threading.Thread(target=second)
        other.start()
        other.join(0.2)
        done.append("one")
    other.join(60)
    assert done == ["one", "two"]


@pytest.mark.always
@pytest.mark.parametrize("at_once", [True, False])
def test_a_call_that_ended_in_the_turn_in_which_it_began_is_answered_before_anybody_else_runs(*, at_once: bool) -> None:
    gate, done = Gate([Expected(1, 0.0, 0.05, at_once=at_once)]), list[str]()

    async def call() -> None:
        await gate.wait_async(1, "one")
        done.append("call")

    async def main() -> None:
        asyncio.get_running_loop().call_soon(done.append, "other")
        await call()

    asyncio.run(main())
    assert done == (["call", "other"] if at_once else ["other", "call"])


@pytest.mark.always
@pytest.mark.usefixtures("graceful")
def test_such_a_call_waits_for_no_other_task_of_its_loop() -> None:
    gate, done = Gate([Expected(1, 0.0, 0.001), Expected(2, 0.002, 0.05, at_once=True)]), list[str]()

    async def main() -> None:
        await gate.wait_async(1, "main")
        asyncio.get_running_loop().call_soon(done.append, "other")
        await gate.wait_async(2, "tool")
        done.append("tool")
        await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(main(), 60))
    assert done == ["tool", "other"]


@pytest.mark.always
def test_two_threads_of_one_lane_may_each_take_their_time() -> None:
    gate = Gate(expected([1]))
    with gate.turn("main"):
        with gate.turn("main"):
            pass
        gate.settled("main")
    gate.wait(1, "main")
