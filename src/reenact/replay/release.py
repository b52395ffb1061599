"""The gate: answers reach agent code in the order in which they did when recorded.

Theory of operation. Every release (a reply, the opening of a stream, a piece, an end, the end of a pool job) has a
number from the recording's one sequence. A release is granted when all lower numbers have been, and when the lanes
that may still be at work on something have settled: a lane that was granted something is at work until it comes back
for more or ends; a lane that started a thread, or whose thread ended, may be about to wait for it. Nobody can see a
thread block, so each of these is waited for no longer than `GRACE_S`, and the last two no longer than they had when
recorded. Where the kernel says that its thread runs, or would if it could, processor time is what counts, so that a
busy machine changes nothing. Settling is what makes two threads append in recorded order although nothing but the
replay keeps them apart.

A lower number that never comes (the agent changed, or waits for what is held here) would hold everything: after a
bound drawn from the recorded times, the lowest number that waits is granted and the skip is told to the ledger. The
time counts in which this process stands still, and the processor time in which it works.

A pool makes connections as it likes. Nobody waits for one that is not made; one that is made takes its recorded place,
as a program may tell that it has a connection. What came before it may need it first, since another task got it than
when recorded: after a short time it is granted, and nothing is skipped.
"""

from __future__ import annotations

import _thread
import asyncio
import heapq
import os
import sys
import threading
import time
from bisect import bisect_left, insort
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any

from reenact.replay.activity import Activity, Patience
from reenact.replay.pace import alarm_clock, let_timers_go_first, let_timers_of_trio_go_first
from reenact.values import locks
from reenact.values.call import Raised

GRACE_S = 0.05
"""How long a lane that may be at work keeps others waiting at most."""

_SOFT_PATIENCE_S = 0.2
"""How long a connection that is made waits, beyond its recorded delay, for what came before it and does not come."""

PATIENCE_S = 1.0
"""How long a missing lower number is awaited beyond twice its recorded delay."""

_LONGEST_GRACE_S = 2.0
"""How long a lane keeps others waiting at most whose thread runs, or would if it could, beyond what was recorded."""

_LONGEST_TURN_S = 10.0
_LONGEST_WAIT_S = 120.0
_RUNNING_S = 10.0
"""How much longer than recorded a call that runs again may take, at least."""
_TICK_S = 0.01
_MOST_OF_A_TURN = 64
"""Releases of one turn of an event loop that are looked at."""


@dataclass(slots=True)
class _Waiter:
    """Someone at the gate."""

    order: int
    lane: str
    grant: Callable[[], None]
    thread: int
    """The thread that waits, or whose loop does: its native id."""
    granted: bool = False
    took: float = 0.0
    """How long the recorded call was out, in seconds: what timers do in that time goes first."""


@dataclass(frozen=True, slots=True)
class Expected:
    """A recorded release: its number, when it was asked for and when it happened, in seconds since any epoch."""

    order: int
    asked_s: float
    released_s: float
    together: bool = False
    """It happened in the same turn of an event loop as the one before: neither task saw what the other did."""
    at_once: bool = False
    """It came in the turn of the loop in which it was asked for: nobody else ran meanwhile, and no timer went first."""
    optional: bool = False
    """It may not be asked for at all: a pool makes connections when it likes."""
    turn: int = 0
    """Of a piece that was not the first in its turn of an event loop: the number of what was; else 0."""
    stream: str = ""
    """The stream that it is a piece of; empty where it is none."""


class _Work(Enum):
    """Why a lane may be at work."""

    GRANTED = "it was granted something"
    SPAWNED = "it started a thread"
    WOKEN = "its thread ended"


@dataclass(frozen=True, slots=True)
class _Busy:
    """A lane that may be at work."""

    work: _Work
    since: float
    thread: int
    spent_s: float
    """The processor time that its thread had had by then."""
    released_s: float
    """When what it was granted was released in the recording."""


class Gate:
    """Grants releases in recorded order. Thread-safe; waiters may be threads or tasks of any loop."""

    def __init__(self, expected: Iterable[Expected], skipped: Callable[[list[int], int], None] | None = None) -> None:
        releases = tuple(expected)
        self._expected = {each.order: each for each in releases if not each.optional}
        self._optional = {each.order: each for each in releases if each.optional}
        """Releases that nobody has asked for yet, and that nobody waits for until then."""
        self._soft: set[int] = set()
        """Those of them that were asked for."""
        self._queue = sorted(self._expected)
        self._next = 0
        self._past_orders: set[int] = set()
        self._running: set[int] = set()
        """Ends of calls that run again, and may take their time."""
        self._reached: tuple[float, float] | None = None
        """When the last answer reached its task: when recorded, and by the clock of this replay."""
        self._grouped: dict[int, float] = {}
        """Releases that wait until those of their turn of the loop are asked for: since when."""
        self._held_back: dict[int, float] = {}
        """Granted releases that let timers of their loop go first: until when nobody is granted anything."""
        self._waiting: dict[int, _Waiter] = {}
        self._clock = 0
        """The process in which a thread looks again from time to time; 0 while nobody waits."""
        self._enlisted: list[int] = []
        """A heap of the orders that wait, and of some that waited."""
        self._lock = locks.lock()
        self._at_work: dict[str, _Busy] = {}
        self._turns: dict[str, float] = {}
        """Lanes that do what their answered calls did beside giving an answer: until when they are waited for."""
        self._threads: dict[str, int] = {}
        """On which thread a lane was seen last."""
        self._activity, self._patience = Activity(), Patience()
        self._last_released_s: float | None = None
        self._skipped = skipped or _untold

    @property
    def last_order(self) -> int | None:
        """The number of the last release; None where there is none."""
        return max(self._expected, default=None)

    def wait(self, order: int | None, lane: str, answer: object = None) -> None:
        """Block the calling thread until `order` is granted, and until alarms rang before it.

        Unknown orders are granted at once. Raises what the handler of an alarm does, unless `answer` says what the
        recorded call raised.
        """
        release = self._expected.get(order or 0)
        error = alarm_clock.let_go_first(self._took(order))
        self._wait(order, lane)
        if release is not None:
            alarm_clock.stand(release.released_s)
        if error is not None and not isinstance(answer, Raised):
            raise error

    def _wait(self, order: int | None, lane: str) -> None:
        with self._lock:
            self._admit(order)
            if self._pass(order, lane):
                return
            event = threading.Event()
            waiter = self._enlist(order, lane, event.set)
        try:
            event.wait()
        finally:
            self._leave(waiter)

    async def wait_async(self, order: int | None, lane: str) -> None:
        """Suspend the calling task until `order` is granted, and until timers did what they did before it."""
        if asyncio._get_running_loop() is None:  # noqa: SLF001 - `get_running_loop` raises where it is trio's
            await self._wait_in_trio(order, lane)
            return
        loop = asyncio.get_running_loop()
        began = loop.time()
        future: asyncio.Future[None] = loop.create_future()
        with self._lock:
            self._admit(order)
            took, waiter = self._took(order), None
            if not self._pass(order, lane):
                waiter = self._enlist(order, lane, lambda: _resolve(loop, future), took=took)
            elif took:
                self._hold_back(order, took)
        try:
            if waiter is not None:
                try:
                    await future
                finally:
                    self._leave(waiter)
            if took:
                await let_timers_go_first(min(began + took, loop.time() + self._still(order)))
                while self._follows(order):  # noqa: ASYNC110 - turns of the loop are what is waited for
                    await asyncio.sleep(0)
        finally:
            self._let_on(order, lane)

    async def _wait_in_trio(self, order: int | None, lane: str) -> None:
        """Suspend the calling task of trio's loop likewise."""
        trio: Any = sys.modules["trio"]
        token, granted, began = trio.lowlevel.current_trio_token(), trio.Event(), time.monotonic()
        with self._lock:
            self._admit(order)
            took, waiter = self._took(order), None
            if not self._pass(order, lane):
                waiter = self._enlist(order, lane, lambda: token.run_sync_soon(granted.set), took=took)
            elif took:
                self._hold_back(order, took)
        try:
            if waiter is not None:
                try:
                    await granted.wait()
                finally:
                    self._leave(waiter)
            if took:
                await let_timers_of_trio_go_first(min(began + took, time.monotonic() + self._still(order)))
        finally:
            self._let_on(order, lane)

    def _follows(self, order: int | None) -> bool:
        """Tell whether the release before this one, in whose turn of the loop it was, is yet to reach its task."""
        if order is None or order not in self._expected or not self._expected[order].together:
            return False
        at = bisect_left(self._queue, order)
        return at > 0 and self._held_back.get(self._queue[at - 1], 0.0) > time.monotonic()

    def _hold_back(self, order: int | None, took: float) -> None:
        self._held_back[order or 0] = time.monotonic() + took + GRACE_S

    def _holds_back(self) -> bool:
        """Tell whether a granted release lets timers go first; one whose loop is blocked holds nobody for ever."""
        if not self._held_back:
            return False
        now = time.monotonic()
        return any(until > now for until in self._held_back.values())

    def _took(self, order: int | None) -> float:
        """Say how long the recorded call was out; 0 where nobody knows, or nobody waits for this number any more."""
        release = self._expected.get(order) if order is not None and order not in self._past_orders else None
        if release is None or release.at_once:
            return 0.0
        return max(0.0, release.released_s - release.asked_s)

    def _still(self, order: int | None) -> float:
        """Say how long it is until a release comes as far behind the last one as it did when recorded.

        Timers that the last answer set go by this, however long the question took to come.
        """
        with self._lock:
            before, release = self._reached, self._expected.get(order or 0)
            if before is None or release is None:
                return _LONGEST_WAIT_S
            return before[1] + release.released_s - before[0] - time.monotonic()

    def _let_on(self, order: int | None, lane: str) -> None:
        """Hear that a granted release reaches its task only now: its lane is at work from here on."""
        with self._lock:
            if (release := self._expected.get(order or 0)) is not None:
                self._reached = release.released_s, time.monotonic()
            if self._held_back.pop(order or 0, None) is not None:
                self._set_to_work(lane, _Work.GRANTED, _thread.get_native_id())
                self._advance()

    def _leave(self, waiter: _Waiter) -> None:
        """Hear that a waiter goes; where it was cancelled or interrupted, what it waited for will not come."""
        if not waiter.granted:
            with self._lock:
                self._waiting.pop(waiter.order, None)
            self.drop([waiter.order])

    @contextmanager
    def turn(self, lane: str) -> Generator[None]:
        """Grant other lanes nothing while this one does, for the agent, what takes its time.

        A thread that nobody carried a lane to has the one of its process, beside who does.
        """
        with self._lock:
            self._turns[lane] = time.monotonic() + _LONGEST_TURN_S
        try:
            yield
        finally:
            with self._lock:
                self._turns.pop(lane, None)
                if lane in self._at_work:
                    self._set_to_work(lane, _Work.GRANTED, _thread.get_native_id())
                self._advance()

    def settled(self, lane: str) -> None:
        """Hear that a lane ended, or came back for another call."""
        with self._lock:
            if self._at_work.pop(lane, None) is not None:
                self._advance()

    def spawned(self, lane: str) -> None:
        """Hear that a lane started a thread, or handed a job to a pool."""
        with self._lock:
            self._set_to_work(lane, _Work.SPAWNED, _thread.get_native_id())

    def woken(self, lane: str) -> None:
        """Hear that a thread or job which this lane started has ended."""
        with self._lock:
            busy = self._at_work.get(lane)
            if busy is None or busy.work is not _Work.GRANTED:
                self._set_to_work(lane, _Work.WOKEN, self._threads.get(lane, 0))

    def _set_to_work(self, lane: str, work: _Work, thread: int) -> None:
        self._threads[lane] = thread
        spent, released = self._activity.spent(thread) if thread else 0.0, self._last_released_s or 0.0
        self._at_work[lane] = _Busy(work, time.monotonic(), thread, spent, released)

    def running(self, order: int) -> None:
        """Hear that the call whose end has this number runs again in the replay."""
        with self._lock:
            self._running.add(order)

    def has_passed(self, order: int) -> bool:
        """Tell whether the release with this number was granted, or will never be asked for."""
        with self._lock:
            return order not in self._expected or order in self._past_orders

    def drop(self, orders: Iterable[int]) -> None:
        """Hear that these numbers will never be asked for. Who waits for one all the same need not."""
        with self._lock:
            for order in orders:
                self._past_orders.add(order)
                if (waiter := self._waiting.pop(order, None)) is not None:
                    waiter.granted = True
                    waiter.grant()
            self._advance()

    def give_up(self) -> None:
        """Hear that the recorded order holds no longer: nobody waits any more."""
        self._optional.clear()
        self.drop(tuple(self._expected))

    def finish(self, is_awaited: Callable[[list[int]], bool]) -> None:
        """Wait at the end of a program for what came before its recorded end, where that is awaited, to a bound.

        Then for who was let on: the threads of daemons end with the program, wherever they are.
        """
        began = time.monotonic()
        while rest := self._rest():
            delay = max(self._expected[each].released_s for each in rest) - (self._last_released_s or 0.0)
            bound = _SOFT_PATIENCE_S + (min(delay, _LONGEST_WAIT_S) if self._last_released_s else 0.0)
            if not is_awaited(rest) or time.monotonic() - began > bound:
                return
            time.sleep(_TICK_S / 10)
        began = time.monotonic()
        while self._at_work and time.monotonic() - began < GRACE_S:
            time.sleep(_TICK_S / 10)

    def _rest(self) -> list[int]:
        with self._lock:
            self._forward()
            return [order for order in self._queue[self._next :] if order not in self._past_orders]

    def _admit(self, order: int | None) -> None:
        """Have an optional release, which is asked for now, take its place, unless later ones have gone before."""
        release = self._optional.pop(order, None) if order is not None else None
        if release is None or release.order in self._past_orders:
            return
        if self._next and self._queue[self._next - 1] > release.order:
            return
        self._expected[release.order] = release
        self._soft.add(release.order)
        insort(self._queue, release.order, lo=self._next)

    def _pass(self, order: int | None, lane: str) -> bool:
        """Grant at once where nothing stands before `order`."""
        if order is None or order not in self._expected or order in self._past_orders:
            return True
        self._at_work.pop(lane, None)
        self._forward()
        if self._current() == order and not self._pending(order, lane):
            self._grant(order, lane, _thread.get_native_id())
            self._let_turn_go(order)
            return True
        return False

    def _enlist(self, order: int | None, lane: str, grant: Callable[[], None], *, took: float = 0.0) -> _Waiter:
        if not self._waiting:
            self._patience.begin()
        waiter = _Waiter(order or 0, lane, grant, _thread.get_native_id(), took=took)
        self._waiting[waiter.order] = waiter
        heapq.heappush(self._enlisted, waiter.order)
        self._advance()
        if not waiter.granted and self._clock != os.getpid():
            self._clock = os.getpid()
            _thread.start_new_thread(self._tick, ())  # none of `threading`'s, which would be a lane
        return waiter

    def _tick(self) -> None:
        """Look again from time to time, as long as anybody waits. A forked child has to start a clock of its own.

        Nobody else does: waiters go on in the order of their grants and never in that of their timers, and who comes
        next is not asleep when its turn comes.
        """
        while True:
            time.sleep(self._pause())
            self._look_again()
            with self._lock:
                if not self._waiting:
                    self._clock = 0
                    return

    def _forward(self) -> None:
        while self._next < len(self._queue) and self._queue[self._next] in self._past_orders:
            self._next += 1

    def _lowest(self) -> int | None:
        """Give the lowest order that waits."""
        while self._enlisted and self._enlisted[0] not in self._waiting:
            heapq.heappop(self._enlisted)
        return self._enlisted[0] if self._enlisted else None

    def _current(self) -> int | None:
        return self._queue[self._next] if self._next < len(self._queue) else None

    def _pending(self, order: int, lane: str) -> float:
        """Say for how many seconds more other lanes may be at work before this release; 0 where none is."""
        if self._expected[order].together and self._next and self._queue[self._next - 1] in self._past_orders:
            return 0.0
        if self._lacks_company(order) or (order in self._soft and self._precedes_soon(order)):
            return _TICK_S
        if self._holds_back() or any(each != lane and until > time.monotonic() for each, until in self._turns.items()):
            return _TICK_S
        if not self._at_work:
            return 0.0
        now = time.monotonic()
        release = self._expected[order]
        longest = 0.0
        here = _thread.get_native_id() if release.at_once else 0  # who asks now ran on, and nobody else of its loop
        for each, busy in tuple(self._at_work.items()):
            if here and busy.thread == here:
                continue
            allowance = self._allowance(busy.work, release)
            left = busy.since + allowance - now
            if left <= 0 and each != lane and self._still_works(busy, allowance, release):
                left = _TICK_S
            if left <= 0 and now - busy.since >= GRACE_S:
                del self._at_work[each]
            elif each != lane:
                longest = max(longest, left)
        return longest

    def _still_works(self, busy: _Busy, allowance: float, release: Expected) -> bool:
        """Tell whether a thread whose time is over by the clock had less of a processor, and takes more."""
        if not busy.thread or allowance <= 0:
            return False
        recorded = release.released_s - busy.released_s if busy.work is _Work.GRANTED else 0.0
        if time.monotonic() - busy.since > _LONGEST_GRACE_S + max(0.0, recorded):
            return False
        at_work = self._activity.is_at_work(busy.thread)
        return at_work and self._activity.spent(busy.thread) - busy.spent_s < max(allowance, recorded)

    def _precedes_soon(self, order: int) -> bool:
        """Tell whether a connection that was there before this one may be asked for yet, and is worth waiting for."""
        released_s = self._expected[order].released_s
        missing = [each.order for each in self._optional.values() if each.order < order and each.asked_s < released_s]
        if not missing:
            return False
        now = time.monotonic()
        if now - self._grouped.setdefault(order, now) < GRACE_S:
            return True
        for each in missing:
            del self._optional[each]
        return False

    def _lacks_company(self, order: int) -> bool:
        """Tell whether a release of the same turn is still to be asked for, and is worth waiting for.

        The head of a reply and its pieces have no company: the end of that very reply is asked for behind them. Nor is
        a call company that was made only after this answer: who makes it waits for this one.
        """
        first = self._expected[order]
        if first.released_s <= first.asked_s:
            return False
        for at in range(self._next + 1, len(self._queue)):
            follower = self._queue[at]
            if not self._expected[follower].together or self._expected[follower].asked_s >= first.released_s:
                return False
            if follower not in self._waiting and follower not in self._past_orders:
                return time.monotonic() - self._grouped.setdefault(order, time.monotonic()) < PATIENCE_S
        return False

    def _allowance(self, work: _Work, release: Expected) -> float:
        match work:
            case _Work.GRANTED:
                return GRACE_S
            case _Work.SPAWNED:
                return min(GRACE_S, max(0.0, release.released_s - release.asked_s))
            case _Work.WOKEN:
                before = self._last_released_s
                return min(GRACE_S, max(0.0, release.released_s - before)) if before is not None else 0.0

    def _grant(self, order: int, lane: str, thread: int) -> None:
        self._past_orders.add(order)
        self._patience.begin()
        self._last_released_s = self._expected[order].released_s
        self._set_to_work(lane, _Work.GRANTED, thread)

    def _advance(self) -> None:
        """Grant whatever may go now. Called with the lock held."""
        while True:
            self._forward()
            current = self._current()
            waiter = self._waiting.get(current) if current is not None else None
            if waiter is None or self._pending(waiter.order, waiter.lane) > 0:
                return
            del self._waiting[waiter.order]
            self._grant(waiter.order, waiter.lane, waiter.thread)
            if waiter.took:
                self._hold_back(waiter.order, waiter.took)
            waiter.granted = True
            waiter.grant()
            self._let_turn_go(waiter.order)

    def _let_turn_go(self, order: int) -> None:
        """Grant with a piece of a stream what other tasks got in its turn of the loop: they wake in one turn again.

        What stands between and is not asked for yet are further pieces of who was let on, which ask in that turn.
        """
        piece = self._expected[order]
        first, streams = piece.turn or order, {piece.stream}
        for at in range(self._next, min(len(self._queue), self._next + _MOST_OF_A_TURN) if piece.stream else 0):
            follower = self._queue[at]
            if follower in self._past_orders:
                continue
            if follower not in self._waiting:
                if self._expected[follower].stream not in streams:
                    return
            elif self._expected[follower].turn != first:
                return
            else:
                self._let_go(follower)
                streams.add(self._expected[follower].stream)

    def _let_go(self, order: int) -> None:
        """Grant an optional release before its turn: what should come before it seems to wait for it."""
        waiter = self._waiting.pop(order)
        self._grant(order, waiter.lane, waiter.thread)
        if waiter.took:
            self._hold_back(order, waiter.took)
        waiter.granted = True
        waiter.grant()

    def _pause(self) -> float:
        """Say for how long the clock may sleep."""
        with self._lock:
            current = self._current()
            waiter = self._waiting.get(current) if current is not None else None
            pending = self._pending(waiter.order, waiter.lane) if waiter is not None else _TICK_S
        return min(_TICK_S, max(0.0005, pending))

    def _wait_limit(self) -> float:
        """Say for how long the missing lower number is awaited: twice its recorded delay, and a bit."""
        current, lowest = self._current(), self._lowest()
        if current is None or lowest is None:
            return PATIENCE_S
        first = self._expected[lowest]
        later = max(0.0, self._expected[current].asked_s - first.asked_s)
        if lowest in self._soft:
            return _SOFT_PATIENCE_S + later
        if current in self._running:
            release = self._expected[current]
            later += _RUNNING_S + release.released_s - release.asked_s
        return min(_LONGEST_WAIT_S, PATIENCE_S + 2 * later)

    def _look_again(self) -> None:
        with self._lock:
            self._advance()
            current, lowest, waited = self._current(), self._lowest(), self._patience.waited()
            if (
                self._held_back
                or lowest is None
                or current is None
                or current in self._waiting
                or waited < self._wait_limit()
            ):
                return
            if lowest in self._soft:
                self._let_go(lowest)
                return
            rest = self._queue[self._next :]
            late_orders = [order for order in rest if order < lowest and order not in self._past_orders]
            self._past_orders.update(late_orders)
            self._at_work.clear()
            self._advance()
        self._skipped(late_orders, lowest)


def _untold(_orders: list[int], _granted: int) -> None:
    """Tell nobody."""


def _resolve(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
    def set_done() -> None:
        if not future.done():
            future.set_result(None)

    try:
        running = asyncio.get_running_loop()
    except RuntimeError:
        running = None
    if running is loop:
        set_done()
    else:
        with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
            loop.call_soon_threadsafe(set_done)
