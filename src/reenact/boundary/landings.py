"""Landings: how many turns an event loop had made since it heard of one job's end when it heard of the next one's.

Theory of operation. A loop hears of the end of a pool's job in a turn of its own. Where two jobs end within a few
turns, some tasks have seen the first end and not yet the second, and a moment more or less makes another order of what
they do. So an end that comes while the loop is still at work behind the one before lands at the end of a turn, and the
number of turns is kept. One that finds the loop at rest says nothing: all that was to be done behind the one before was
done. Turns of a loop that nobody outside calls are the same when the program runs again, whatever time they take.

In a replay an end waits for those that landed so close behind it, and they land as many turns after it. It waits for
`HELD_S` at most: who comes later has another reason, and lands when it comes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple

from reenact.boundary import pauses
from reenact.boundary.forgiving import forgive
from reenact.boundary.lanes import Lane, tell_ended
from reenact.boundary.pauses import Landing

HELD_S: Final = 0.5
"""How long an end waits in a replay for those that landed close behind it."""
_MOST: Final = 200
"""After so many turns, or after `_BLIND` where a loop does not tell whether it rests, an end stands alone."""
_BLIND: Final = 40
_HANDS_ON: Final = "_call_set_state"
"""The function of `asyncio.futures` that hands the end of a job on to a loop."""
_STATE: Final = "_reenact_landings"
"""Under which name a loop keeps what is known of it."""


class _Job(NamedTuple):
    """A job that came to its end."""

    lane: Lane
    deliver: Callable[[], object]
    recorded: Landing | None
    """How it landed when recorded; None while recording."""
    at: float


class _Loop:
    """What is known of one event loop. Used on its thread only."""

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self.out = 0
        """How many jobs were handed over and have not come to their ends."""
        self._turns = -1
        """The turns since the last landing; -1 where nobody counts."""
        self._last: _Job | None = None
        self._coming: deque[_Job] = deque()
        """While recording, those that came while turns are counted."""
        self._held: dict[str, _Job] = {}
        """In a replay, those that came and have not landed, by lane."""
        self._past: set[str] = set()
        """In a replay, those that landed and had others close behind them."""
        self._is_timed = False

    def arrive(self, lane: Lane, deliver: Callable[[], object]) -> None:
        """Have the loop hear of an end, now or some turns later."""
        self.out -= 1
        job = _Job(lane, deliver, pauses.landing(lane), self._loop.time())
        if job.recorded is not None:
            self._held[lane.path] = job
            self._settle()
        elif self._turns < 0:
            self._land(job)
        else:
            self._coming.append(job)

    def _land(self, job: _Job, turns: int = 0) -> None:
        if turns and self._last is not None:
            job.lane.reel.landed(job.lane.path, self._last.lane.path, turns)
        if job.recorded is not None and job.recorded.follower:
            self._past.add(job.lane.path)
        begins = self._turns < 0 and (self.out > 0 or bool(self._held))
        self._last = job
        self._turns = 0 if begins or self._turns >= 0 else -1
        job.deliver()
        if job.recorded is not None:
            tell_ended(job.lane)
        if begins:
            self._loop.call_soon(_called, self, _Loop.turn)

    def turn(self) -> None:
        """Count a turn, in which the next one may land."""
        self._turns += 1
        next_job = self._next()
        if next_job is not None:
            self._land(next_job, self._turns)
        elif self._rests() or not (self.out or self._held):
            self._turns = -1
            self._settle()
            return
        self._loop.call_soon(_called, self, _Loop.turn)

    def _next(self) -> _Job | None:
        """Give the one that lands in this turn."""
        if self._coming:
            return self._coming.popleft()
        follower = self._held.get(self._follower())
        if follower is None or follower.recorded is None:
            return None
        return self._held.pop(follower.lane.path) if self._turns >= follower.recorded.turns or self._rests() else None

    def _follower(self) -> str:
        recorded = self._last.recorded if self._last is not None else None
        return recorded.follower if recorded is not None else ""

    def _rests(self) -> bool:
        """Tell whether the loop would wait now, if nobody counted."""
        try:
            return not self._loop._ready or self._turns >= _MOST  # noqa: SLF001 - only the loop knows
        except AttributeError:
            return self._turns >= _BLIND

    def take_all(self) -> list[_Job]:
        """Give all that wait, and count no more."""
        jobs = [*self._coming, *self._held.values()]
        self._coming.clear()
        self._held.clear()
        self._turns = -1
        return jobs

    # in a replay

    def _settle(self) -> None:
        """Have those land that wait for nobody, or have waited long enough."""
        now = self._loop.time()
        for path, job in tuple(self._held.items()):
            if path in self._held and not self._waits(job, now):
                del self._held[path]
                self._land(job)
        if self._held and not self._is_timed:
            self._is_timed = True
            self._loop.call_later(HELD_S, _called, self, _Loop.look_again)

    def look_again(self) -> None:
        """Have those land that have waited long enough."""
        self._is_timed = False
        self._settle()

    def _waits(self, job: _Job, now: float) -> bool:
        """Tell whether a job waits for the one before it, for its turn, for a rest, or for those close behind it."""
        recorded: Landing | None = job.recorded
        if recorded is not None and recorded.before and recorded.before in self._past:
            return self._turns >= 0 and self._follower() == job.lane.path
        if now - job.at >= HELD_S:
            return False
        if (recorded is not None and recorded.before) or self._turns >= 0:
            return True
        while recorded is not None and recorded.follower:
            follower = self._held.get(recorded.follower)
            if follower is None:
                return True
            recorded = follower.recorded
        return False


def watch(future: Future[Any], loop: Any, lane: Lane) -> None:
    """Have the end of a job that was just handed over land on a loop in its turn. Never raises."""
    try:
        with future._condition:  # noqa: SLF001 - it does not end meanwhile
            callbacks: list[Callable[[Future[Any]], object]] = vars(future)["_done_callbacks"]
            if not callbacks or _HANDS_ON not in getattr(callbacks[-1], "__qualname__", ""):
                return  # it is over, and handed on
            state: _Loop | None = getattr(loop, _STATE, None)
            if state is None:
                state = _Loop(loop)
                setattr(loop, _STATE, state)
            state.out += 1
            callbacks[-1] = partial(_ended, state, loop, lane, callbacks[-1])
            if pauses.landing(lane) is not None:  # whoever is behind it waits until the loop has heard of it
                callbacks[:] = [each for each in callbacks if getattr(each, "func", None) is not tell_ended]
    except Exception:
        forgive("landings.watch")


def _ended(state: _Loop, loop: Any, lane: Lane, hand_on: Callable[[Future[Any]], object], future: Future[Any]) -> None:
    """Hear of an end, on whichever thread it comes."""
    try:
        with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
            loop.call_soon_threadsafe(_arrived, state, lane, _Once(partial(hand_on, future)))
    except Exception:
        forgive("landings.ended")
        hand_on(future)


class _Once:
    """Hands an end on, once, whatever fails of ours meanwhile."""

    def __init__(self, hand_on: Callable[[], object]) -> None:
        self._hand_on: Callable[[], object] | None = hand_on

    def __call__(self) -> None:
        hand_on, self._hand_on = self._hand_on, None
        if hand_on is not None:
            hand_on()


def _arrived(state: _Loop, lane: Lane, deliver: Callable[[], object]) -> None:
    """Hear of an end on the thread of the loop. It lands whatever fails."""
    try:
        state.arrive(lane, deliver)
    except Exception:
        forgive("landings.arrived")
        deliver()


def _called(state: _Loop, step: Callable[[_Loop], None]) -> None:
    """Take a step that the loop was asked for; where it fails, whoever waits lands."""
    try:
        step(state)
    except Exception:
        forgive("landings.called")
        for job in state.take_all():
            job.deliver()
