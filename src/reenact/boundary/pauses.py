"""Pauses: where the agent's own code waits by the clock, and when it goes on, among the answers that it is given.

What a program does behind a pause (a line of a ticker, a look whether another one is done) comes before some answers
and behind others. So the end of a pause takes a number from the sequence that numbers answers, and a replay lets code
go on behind a pause in its turn: by counting, and not by the clock. The waiting itself is real, always.
"""

from __future__ import annotations

import _thread
import asyncio
import queue
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from types import BuiltinFunctionType, FrameType
from typing import Any, Final, NamedTuple, Protocol, TypeVar
from weakref import WeakKeyDictionary

from reenact.boundary import lanes, place, program_threads
from reenact.boundary.forgiving import forgive
from reenact.boundary.lanes import Lane, Reel
from reenact.boundary.tape import Sites, Source
from reenact.values import locks

T = TypeVar("T")
_process_time_ns, _thread_time_ns, _time_ns = time.process_time_ns, time.thread_time_ns, time.time_ns
"""The clocks themselves, and not those that the agent's code reads."""
_COMPUTED_NS: Final = 200_000
"""As much processor time of others within a pause is more than what goes on in any process."""
_NOBODY: Final = nullcontext()
_HANDING_OVER: Final = locks.rlock()
_LONGEST_TURN_S: Final = 0.25
"""How long who hands a job over waits for another one at most: a fork or a signal may come between."""
LONGER_S: Final = 10.0
"""How much longer a replay waits to be woken where the recorded code was."""
_MOMENT_S: Final = sys.getswitchinterval()
"""How long a thread that is awake has at the end of the program: it gets the interpreter in this time."""


class Pause(NamedTuple):
    """One pause that is over: the numbers of its begin and end, when it ended, and the call in which it was."""

    began: int
    ended: int
    """0 where somebody woke who waited, or cancelled the pause, before the time was up."""
    at_ns: int
    call: int
    """The span of the innermost open call."""
    loop: int = 0
    """Which loop that waits for others it was in, from 1."""
    beside: bool = False
    """Whether other code computed meanwhile."""
    done: tuple[int, ...] | None = None
    """Which of several that were waited for had ended, by their places; None where it was no wait for several."""


class Turn(NamedTuple):
    """When a pause was over in the recording."""

    order: int
    """0 where somebody woke who waited, or cancelled the pause."""
    done: tuple[int, ...] | None = None
    """As in `Pause`."""


class Landing(NamedTuple):
    """When an event loop heard of the end of a job in the recording."""

    before: str = ""
    """The lane of the job close behind which that was; empty where the loop had rested."""
    turns: int = 0
    """After how many turns."""
    follower: str = ""
    """The lane of the job whose end came as close behind this one's."""


class Pace(Protocol):
    """Who lets code go on, in a replay."""

    def turn(self, lane: Lane, /) -> Turn | None:
        """Hear that code of a lane waits; gives when it went on when recorded, None where nobody knows."""
        ...

    def wait(self, turn: Turn, lane: Lane, /) -> None:
        """Block until code of a lane may go on."""
        ...

    async def wait_async(self, turn: Turn, lane: Lane, /) -> None:
        """Wait likewise, without blocking the loop."""
        ...

    def runs(self, turn: Turn, lane: Lane, /) -> None:
        """Hear that what is waited for runs again, and takes the time that it takes."""
        ...

    def hands_over(self, lane: Lane, /) -> Turn | None:
        """Hear that a lane is about to hand a job to a pool; gives when it did so when recorded, None for no turn."""
        ...

    def handed_over(self, lane: Lane, /) -> None:
        """Hear that it has done so, in its turn."""
        ...

    def blocks(self, lane: Lane, /) -> None:
        """Hear that a lane waits for somebody, with no end."""
        ...

    def landing(self, lane: Lane, /) -> Landing:
        """Say when an event loop heard of the end of a job when recorded."""
        ...

    def given_up(self, turn: Turn, lane: Lane, /) -> None:
        """Hear that code will not come back from a pause that was over when recorded."""
        ...


class _State:
    __slots__ = ("ends", "has_paused", "number", "pace")

    def __init__(self) -> None:
        self.number: Callable[[], int] | None = None
        self.pace: Pace | None = None
        self.has_paused = False
        self.ends = False
        """The program is over, and daemon threads go on no more."""


_STATE: Final = _State()


def install(number: Callable[[], int] | None, pace: Pace | None = None) -> None:
    """Number pauses from now on, or not; with a `pace`, have code go on as recorded."""
    _STATE.number, _STATE.pace = number, pace
    program_threads.hand_over_in(HandingOver if number is not None else None)
    if number is not None:
        _STATE.has_paused = _STATE.ends = False


def end_with_the_program() -> None:
    """Have daemon threads stand still where they wait, as the interpreter is about to have them anyway.

    It ends them at any line: what one did behind its last wait would be in the recording, and not the wait, or the
    other way round. Who has been let on just now has a moment to come to its next wait.
    """
    if _STATE.number is not None and _STATE.has_paused and program_threads.are_there():
        time.sleep(_MOMENT_S)
        _STATE.ends = True


def is_on() -> bool:
    """Tell whether pauses are numbered."""
    return _STATE.number is not None


def landing(lane: Lane) -> Landing | None:
    """Say when an event loop heard of the end of a job when recorded; None outside a replay."""
    return _STATE.pace.landing(lane) if _STATE.pace is not None else None


def is_a_while(seconds: object) -> bool:
    """Tell whether this is a time to wait."""
    return isinstance(seconds, int | float) and seconds > 0


def is_late(done: Iterable[Any], others: Iterable[Any], return_when: str) -> bool:
    """Tell whether a wait for futures or tasks ended because its time was up."""
    if not list(others) or (return_when == "FIRST_COMPLETED" and list(done)):
        return False
    failed = (not each.cancelled() and each.exception() is not None for each in done)
    return return_when != "FIRST_EXCEPTION" or not any(failed)


def blocks() -> None:
    """Hear that the running code waits for somebody, with no end: in a replay nobody need wait for what it does."""
    try:
        if (pace := _STATE.pace) is not None:
            pace.blocks(lanes.current())
    except Exception:
        forgive("pauses.blocks")


class Waiting:
    """Somebody who waits by the clock."""

    __slots__ = ("_began", "_call", "_computed_ns", "_frame", "_lane", "_reel", "_turn")

    def __init__(self, frame: FrameType | None = None, *, lane: Lane | None = None) -> None:
        """`frame` is that of the code that waits, `lane` where it does so."""
        self._lane, self._began, self._turn, self._call, self._frame = lane or lanes.current(), 0, None, 0, frame
        self._computed_ns, self._reel = _process_time_ns(), self._lane.reel
        try:
            number, pace = _STATE.number, _STATE.pace
            self._began = number() if number is not None else 0
            here = place.current()
            self._call = here.span_id if here is not None else 0
            self._turn: Turn | None = pace.turn(self._lane) if pace is not None else None
            self._reel.waiting.add(self)
        except Exception:
            forgive("pauses.Waiting")

    def over(self, done: tuple[int, ...] | None = None) -> None:
        """Go on when the time is up, or some are `done`: in a replay, in turn."""
        self.in_turn()
        self._note(done=done)

    def runs_again(self) -> None:
        """Say that what is waited for runs in a replay as well."""
        pace, turn = _STATE.pace, self._turn
        if pace is not None and turn is not None and turn.order:
            pace.runs(turn, self._lane)

    def in_turn(self) -> None:
        """Block, in a replay, until it is this one's turn to go on."""
        pace, turn = _STATE.pace, self._turn
        if pace is not None and turn is not None:
            pace.wait(turn, self._lane)

    async def in_turn_async(self) -> None:
        """Wait for that likewise, without blocking the loop."""
        pace, turn = _STATE.pace, self._turn
        if pace is not None and turn is not None:
            await pace.wait_async(turn, self._lane)

    async def over_async(self, done: tuple[int, ...] | None = None) -> None:
        """Go on likewise, without blocking the loop."""
        await self.in_turn_async()
        self._note(done=done)

    def leave_out(self, own_ns: int) -> None:
        """Take processor time for the waiting's own, and for nobody's who computed meanwhile."""
        self._computed_ns += own_ns

    def cut_short(self) -> None:
        """Hear that the pause was cancelled or interrupted."""
        pace, turn = _STATE.pace, self._turn
        if pace is not None and turn is not None and turn.order:
            pace.given_up(turn, self._lane)
        self._note(woken=True)

    @property
    def lane(self) -> Lane:
        """Whose code waits."""
        return self._lane

    def unended(self) -> Pause:
        """Give the pause as one that is not over."""
        return Pause(self._began, 0, _time_ns(), self._call)

    @property
    def was_late(self) -> bool | None:
        """Tell whether the time was up when recorded; None where nobody knows."""
        return None if self._turn is None else self._turn.order > 0

    @property
    def done(self) -> tuple[int, ...] | None:
        """The places of those of several that had ended, or were ready, when recorded; None where nobody knows."""
        return self._turn.done if self._turn is not None else None

    def done_of(self, candidates: Sequence[T]) -> list[T] | None:
        """Give those of several that had ended when recorded; None where nobody knows."""
        positions = self.done
        if positions is None or any(at >= len(candidates) for at in positions):
            return None
        return [candidates[at] for at in positions]

    def ended(self, *, late: bool, done: tuple[int, ...] | None = None) -> None:
        """Hear that the time was up, or that whoever was waited for came in time."""
        self._note(woken=not late, done=done)

    def over_or_woken(self, wait: Callable[[float], bool], seconds: float) -> bool:
        """Wait to be woken, so long at most; tells whether somebody was. In a replay it is as recorded.

        A thread that is woken a moment too early or too late for its last beat would beat another number of times.
        """
        woken, turn = wait(seconds), self._turn
        if turn is None:
            self._note(woken=woken)
        elif turn.order:
            woken = False
            self.over()
        else:
            woken = woken or wait(LONGER_S)
            self._note(woken=woken)
        return woken

    def _note(self, *, woken: bool = False, done: tuple[int, ...] | None = None) -> None:
        if _STATE.ends and threading.current_thread().daemon:
            _stand_still()
        number = _STATE.number
        self._reel.waiting.discard(self)
        if number is None:
            return
        _STATE.has_paused = True
        try:
            computed_ns, frame = _process_time_ns() - self._computed_ns, self._frame
            self._frame = None
            from reenact.boundary.loops import loop_around  # most programs never pause

            order, loop = 0 if woken else number(), loop_around(frame)
            beside = computed_ns > _COMPUTED_NS
            pause = Pause(self._began, order, _time_ns(), self._call, loop, beside, done)
            self._lane.reel.paused(self._lane.path, pause)
        except Exception:
            forgive("pauses.Waiting.note")


def _stand_still() -> None:
    """Block for good."""
    lock = _thread.allocate_lock()
    lock.acquire()
    lock.acquire()


def take(reel: Reel) -> dict[str, list[Pause]]:
    """Take the pauses of a line of execution and all that it spawned, by lane.

    Who waits at the end of the program never goes on: a thread that beats to the end beats as often in a replay.
    """
    pauses_by_lane = reel.take_pauses()
    if not reel.unit:
        waiting, reel.waiting = tuple(reel.waiting), set()
        for each in waiting:
            pauses_by_lane.setdefault(each.lane.path, []).append(each.unended())
    return pauses_by_lane


def slept(sleep: Callable[[Any], object], seconds: object, frame: FrameType | None) -> None:
    """Sleep in the agent's own code, and go on in turn."""
    own_ns, waiting = _thread_time_ns(), Waiting(frame)
    try:
        sleep(seconds)
        if isinstance(sleep, BuiltinFunctionType):  # meanwhile this thread runs nobody else's code
            waiting.leave_out(_thread_time_ns() - own_ns)
        if waiting.was_late is False:  # somebody cut it short when recorded, and will again
            sleep(LONGER_S)
    except BaseException:
        waiting.cut_short()
        raise
    waiting.over()


# waits of patched functions

SITES: Final = Sites(Source(name="timed wait"), libraries=False)
"""Tells the agent's own code from that of libraries."""


def begun(seconds: object, frame: FrameType | None) -> Waiting | None:
    """Begin a wait; None where nobody keeps it: it is a library's, or has no end."""
    try:
        if not is_on() or SITES.of(frame) is None:
            return None
        if seconds is None:
            blocks()
        return Waiting() if is_a_while(seconds) else None
    except Exception:
        forgive("pauses.begun")
        return None


def waited(waiting: Waiting, seconds: float, wait: Callable[[float], T], is_late: Callable[[T], bool]) -> T:
    """Wait, and note whether the time was up. In a replay who was in time when recorded has longer."""
    try:
        result = wait(seconds if waiting.was_late is None else seconds + LONGER_S)
    except BaseException as error:
        if isinstance(error, queue.Empty | queue.Full):
            waiting.ended(late=True)
        else:
            waiting.cut_short()
        raise
    waiting.ended(late=is_late(result))
    return result


def is_late_again(waiting: Waiting, seconds: float) -> bool:
    """Let the time of a wait pass whose time was up when recorded; False for any other."""
    if not waiting.was_late:
        return False
    time.sleep(seconds)
    waiting.over()
    return True


def taking(frame: FrameType | None) -> Waiting | None:
    """Begin to take something that several threads wait for, with no end, each in its turn; None where nobody keeps it.

    On the thread of an event loop it may not be held up: whoever comes before it may be one of the loop's tasks.
    """
    try:
        if is_on() and SITES.of(frame) is not None and asyncio._get_running_loop() is None:  # noqa: SLF001 - `get_running_loop` raises where there is none
            lane = lanes.current()
            return None if _STATE.pace is None and lane.reel.is_full() else Waiting(lane=lane)
    except Exception:
        forgive("pauses.taking")
    return None


_KNOWN: Final[WeakKeyDictionary[Any, set[str]]] = WeakKeyDictionary()
"""Threads, futures and events of which code knows that they are done, set or over, with the lanes of that code."""


def learn(thing: Any) -> None:
    """Hear that the running code knows of a thing that it is done: it did it, or has waited for it. Never raises."""
    try:
        if is_on():
            _KNOWN.setdefault(thing, set()).add(lanes.current().path)
    except Exception:
        forgive("pauses.learn")


def unlearn(thing: Any) -> None:
    """Hear that a thing is no longer so. Never raises."""
    try:
        _KNOWN.pop(thing, None)
    except Exception:
        forgive("pauses.unlearn")


def looking(frame: FrameType | None, thing: Any = None) -> Waiting | None:
    """Begin to look at what other threads change, once the program has any; None where nobody keeps it.

    Nobody keeps a look at a `thing` of which the code knows already: a program that was changed may have learnt it by
    now, and is not told otherwise.
    """
    try:
        if thing is not None and lanes.current().path in _KNOWN.get(thing, ()):
            return None
        return taking(frame) if program_threads.are_there() else None
    except Exception:
        forgive("pauses.looking")
        return None


def looked(
    waiting: Waiting | None,
    look: Callable[[float], T | None],
    seconds: float = 0.0,
    meanwhile: Callable[[float], object] = time.sleep,
) -> T | None:
    """Look how far others are, waiting `seconds` for them at most; None where they are not so far.

    In a replay, what they had done when recorded is waited for, and what they had not is not seen: `meanwhile` then
    lets the time pass. Where the look is not kept there is no `waiting`.
    """
    if waiting is None:
        return look(seconds)
    done = waiting.done
    try:
        if done == ():
            meanwhile(seconds)
        waiting.in_turn()
        result = None if done == () else look(seconds + LONGER_S if done else seconds)
    except BaseException:
        waiting.cut_short()
        raise
    waiting.ended(late=True, done=() if result is None else (0,))
    return result


def taken_in_turn(waiting: Waiting, take: Callable[[], T], alone: AbstractContextManager[Any] = _NOBODY) -> T:
    """Take what several threads may wait for: in a replay the thread gets it that got it when recorded.

    `alone` keeps the others from it until it is noted who has it, where what is taken does not.
    """
    if waiting.was_late is False:  # it waited to the end of the program, and what comes is for another
        threading.Event().wait(LONGER_S)
    else:
        waiting.in_turn()
    try:
        with alone:
            item = take()
            waiting.ended(late=True)
    except queue.Empty:
        waiting.ended(late=True)
        raise
    except BaseException:
        waiting.cut_short()
        raise
    return item


class _Retaking(threading.local):
    """The turn in which a thread that waits on a condition takes its lock again."""

    turn: Waiting | None = None

    def take(self) -> Waiting | None:
        """Give it, once."""
        turn, self.turn = self.turn, None
        return turn


_RETAKING: Final = _Retaking()


def waits_on(frame: FrameType | None) -> None:
    """Hear that code is about to wait on a condition, with no end: its lock is taken again in turn. Never raises."""
    try:
        if _RETAKING.turn is None:  # `wait_for` waits by `wait`
            _RETAKING.turn = taking(frame)
        if _RETAKING.turn is None:
            begun(None, frame)
    except Exception:
        forgive("pauses.waits_on")


def waited_on() -> None:
    """Hear that the wait is over. Never raises."""
    try:
        turn = _RETAKING.take()
        if turn is not None:  # it is no lock of the agent's own
            turn.cut_short()
    except Exception:
        forgive("pauses.waited_on")


def retake(take: Callable[[], object]) -> None:
    """Take the lock of a condition again that the running thread has waited on: in turn, where it has one."""
    turn = _RETAKING.take()
    if turn is None:
        take()
    else:
        taken_in_turn(turn, take)


class HandingOver:
    """Something is handed to others in its turn, as a job to a pool among the ends of others: do it in this context.

    In a replay, the thread of a job that has ended is held until its turn comes. Where jobs begin in another order all
    threads may be held so, and the one whose turn it is has none. While recording, who has the number hands over first.
    """

    __slots__ = ("_alone", "_at_work", "_in_turn", "_lane")

    def __init__(self, lane: Lane | None = None, *, at_work: bool = False) -> None:
        """`lane` is that of who does it, where it is not the current one; who is `at_work` behind it is waited for."""
        self._lane, self._at_work = lane or lanes.current(), at_work

    def __enter__(self) -> None:
        self._alone = self._in_turn = False
        try:
            if asyncio._get_running_loop() is None and not self._lane.reel.unit:  # noqa: SLF001 - as above
                self._take_turn()
        except Exception:
            forgive("pauses.hands_over")

    def _take_turn(self) -> None:
        lane, number, pace = self._lane, _STATE.number, _STATE.pace
        turn = pace.hands_over(lane) if pace is not None else None
        if pace is not None and turn is not None:
            pace.wait(turn, lane)
            self._in_turn = True
        if number is not None and not lane.reel.is_full():
            self._alone = pace is None and _HANDING_OVER.acquire(timeout=_LONGEST_TURN_S)
            here, order = place.current(), number()
            lane.reel.paused(lane.path, Pause(order, order, _time_ns(), here.span_id if here is not None else 0))

    def __exit__(self, *_: object) -> None:
        if self._alone:
            _HANDING_OVER.release()
        try:
            if self._in_turn and not self._at_work and (pace := _STATE.pace) is not None:
                pace.handed_over(self._lane)
        except Exception:
            forgive("pauses.handed_over")


def goes_on(frame: FrameType | None) -> None:
    """Hear that code goes on behind a wait with no end: in a replay, in its place among the answers. Never raises."""
    try:
        is_own = is_on() and SITES.of(frame) is not None
    except Exception:
        forgive("pauses.goes_on")
        return
    if is_own:
        with HandingOver(at_work=True):
            pass


def in_turns(original: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T]]:
    """Make a cut of what takes a connection out of a pool: who waits gets one in its recorded place among the answers.

    The connections are alike, and who waits for the pool's lock in which turn of the loop differs by a moment.
    """

    @wraps(original)
    async def acquire(*args: Any, **kwargs: Any) -> T:
        if not is_on():
            return await original(*args, **kwargs)
        waiting = Waiting()
        try:
            await waiting.in_turn_async()
            connection = await original(*args, **kwargs)
        except BaseException:
            waiting.cut_short()
            raise
        waiting.ended(late=True)
        return connection

    return acquire
