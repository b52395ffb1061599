"""Brings what a backend is owed to it, a request at a time, and settles each answer in the outbox before the next.

Spans go in the order in which they were taken in. What no answer is known for stays owed. What is too large is halved,
down to one span; so is a request that was refused as a whole, since one bad span may be the cause, until it is plain
that everything is refused. A wrong setting, an overloaded backend or none at all costs nothing: its spans wait.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import SystemRandom
from typing import Any

from reenact.contracts.parcel import Parcel, ParcelGoneError
from reenact.disk.envelopes import Part
from reenact.export.limits import Limits
from reenact.export.meters import Meter
from reenact.export.outcome import Delivered, Outcome, Rejected, Retry, TooLarge
from reenact.export.sender import Sender
from reenact.stores.outbox import Outbox, Owed, Settlement
from reenact.values.span import SpanRecord

TOO_LARGE, GONE, ABSENT = "too large", "no longer in the store", "not taken by this backend"
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_LONGEST_ASKED_S = 24 * 3600.0
"""A backend that asks for more than a day means something else."""
_SETTING_PAUSE_S = 60.0
"""After an answer that only another setting changes."""
_PERHAPS_OVER = 5
"""So often a 5xx that OTLP does not call temporary is taken for one all the same, and no endpoint for a wrong one."""
_ASK_AGAIN_S = 600.0
"""So long after a backend turned out to have no endpoint it is asked again."""
_HOPELESS = 12
"""So many whole requests refused, none taken in between, and nobody looks for the one bad span any more."""
_CERTAIN_S = 0.5
"""With so much time left a request is begun in any case."""
_random = SystemRandom()  # the host's own generator is its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """A span as it leaves."""

    span: SpanRecord | Part
    """Or a log record, as a collector took it in."""
    referred: bool = False
    """It goes with references in place of its large values."""
    smaller: Leaving | None = None
    """The same in fewer bytes, for a backend to which this is too large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wares:
    """Where a courier gets spans, or log records."""

    load: Callable[[Parcel], Sequence[Any]]
    """Reads a parcel; raises `ParcelGoneError` where it is gone."""
    dress: Callable[[Any, int], Leaving]
    """Makes a span ready to leave, its large values put back where they are no more than so many bytes."""


class Courier:
    """Serves one backend. Only one thread may be in `serve` at a time."""

    def __init__(self, sender: Sender, number: int, outbox: Outbox, wares: Wares, limits: Limits) -> None:
        self.sender, self.number = sender, number
        self._outbox, self._wares, self._limits = outbox, wares, limits
        self._meter = Meter(sender.name)
        self._size = limits.size
        """Bytes of a request; less than the setting where the backend turned out to take less."""
        self._refusals = 0
        self._took = 0.0
        """Seconds of the last request."""
        self.over = threading.Event()
        """Set to stop after the request under way."""
        self.deadline: float | None = None
        """By the monotonic clock; a request that begins before it may take no longer."""
        self.exported = 0
        self.dropped: dict[str, int] = {}
        self.reason = ""
        """What went wrong last."""
        self.asked_until = 0
        """Until when the backend asked this process to leave it alone, in nanoseconds since the epoch."""
        self._absent_until = 0.0
        """Until when, by the monotonic clock, it is taken to have no endpoint for what this brings."""

    def serve(self, *, force: bool = False) -> bool:
        """Make one request, or a few smaller ones of it. True where there may be more to do at once.

        Nothing is sent while the backend is to be left alone, unless `force` has it tried all the same; a `Retry-After`
        of its own is kept to, whichever process was told it. Raises `InputError` where the outbox or the store cannot
        be used.
        """
        now = time.time_ns()
        if now < self._asked_until() or (not force and now < self._outbox.patience(self.number)[1]):
            return False
        with self._outbox.sending(self.number) as alone:
            if not alone:
                return False
            owed = self._outbox.next(self.number, self._limits.spans, self._size)
            if owed and time.monotonic() < self._absent_until:
                self._give_up(self.reason)
                return False
            return bool(owed) and self._deliver(owed)

    def next_try_s(self) -> float:
        """Say in how many seconds the backend may be tried again; 0 for now."""
        ns = max(self._asked_until(), self._outbox.patience(self.number)[1]) - time.time_ns()
        return max(0.0, ns / 1e9)

    def _asked_until(self) -> int:
        """Say until when the backend asked to be left alone: this process, or one before it or beside it."""
        return max(self.asked_until, self._outbox.asked_until(self.number))

    def _deliver(self, owed: Sequence[Owed]) -> bool:
        leaving: list[Leaving] = []
        for each in owed:
            try:
                loaded = self._wares.load(each.parcel)
            except ParcelGoneError as error:
                if leaving:
                    break  # these first: spans are settled in their order
                self._settle(each.parcel.spans - each.done, dropped=GONE, note=str(error))
                return True
            leaving += [self._wares.dress(span, self._limits.size) for span in loaded[each.done :]]
        return self._bring(deque(_batches(leaving, self._limits.spans)))

    def _bring(self, queue: deque[Sequence[Leaving]]) -> bool:
        while queue and not self.over.is_set():
            if self.deadline is not None and self.deadline - time.monotonic() < min(_CERTAIN_S, 1.5 * self._took):
                return False  # it would be broken off before its answer, and sent once more next time
            piece = queue.popleft()
            outcome = self._send_piece(piece)
            again = self._follow_up(piece, outcome)
            if again is None:
                return False
            queue.extendleft(reversed(again))
        return not self.over.is_set()

    def _follow_up(self, piece: Sequence[Leaving], outcome: Outcome) -> Sequence[Sequence[Leaving]] | None:
        """Act on an answer: give what is to be sent next of the same spans; None where sending ends for now."""
        match outcome:
            case Retry(reason=reason, after_s=after_s):
                return self._put_off(reason, after_s)
            case Rejected(cure="setting" | "absent"):
                return self._misplaced(outcome)
            case Rejected(cure="time") if self._outbox.patience(self.number)[0] < _PERHAPS_OVER:
                return self._put_off(outcome.reason, None)
            case TooLarge() if len(piece) > 1:
                self._size = max(1, min(self._size, sum(_size(each) for each in piece) // 2))
                return _halves(piece)
            case TooLarge() if (smaller := piece[0].smaller) is not None:
                return [[smaller]]
            case TooLarge(reason=reason):
                self._settle(1, dropped=TOO_LARGE, note=f"{reason} (a single span, which cannot be halved)")
            case Rejected() if outcome.whole and len(piece) > 1 and self._refusals < _HOPELESS:
                self._refusals += 1
                return _halves(piece)
            case Rejected(count=count, delivered=delivered):
                self._refusals = 0 if delivered else self._refusals + 1
                self._settle(
                    len(piece), exported=delivered, lost=count, dropped=_in_short(outcome), note=outcome.reason
                )
            case Delivered():
                self._refusals = 0
                self._settle(len(piece), exported=len(piece), referred=sum(each.referred for each in piece))
        return []

    def _send_piece(self, piece: Sequence[Leaving]) -> Outcome:
        from opentelemetry.instrumentation.utils import suppress_instrumentation

        within = None if self.deadline is None else max(0.001, self.deadline - time.monotonic())
        began = time.monotonic()
        self._meter.begin(len(piece))
        try:
            with suppress_instrumentation():  # sending spans makes none
                outcome = self.sender.send([each.span for each in piece], within)
        except Exception as failure:
            reason = f"sending failed: {type(failure).__name__}: {failure}"
            outcome = Rejected(count=len(piece), reason=reason, whole=True)
        self._took = time.monotonic() - began
        self._meter.end(len(piece), outcome, self._took)
        return outcome

    def _put_off(self, reason: str, after_s: float | None, pause: float | None = None) -> None:
        tries = self._outbox.patience(self.number)[0]
        if pause is None:
            pause = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** min(tries, 30))
        pause *= 1 - _random.random() / 2
        if after_s is not None:
            pause = min(after_s, _LONGEST_ASKED_S)
            self.asked_until = time.time_ns() + int(min(after_s, _LONGEST_ASKED_S) * 1e9)
            self._outbox.asked(self.number, self.asked_until)
        self.reason = reason
        self._outbox.failed(self.number, reason, time.time_ns() + int(pause * 1e9), tries=tries + 1)

    def _misplaced(self, refusal: Rejected) -> None:
        """Wait for another setting; where there is no such endpoint in the end, what it was for is dropped."""
        if refusal.cure == "setting" or self._outbox.patience(self.number)[0] < _PERHAPS_OVER:
            self._put_off(refusal.reason, None, _SETTING_PAUSE_S)
            return
        self._absent_until = time.monotonic() + _ASK_AGAIN_S
        self._give_up(refusal.reason)

    def _give_up(self, reason: str) -> None:
        """Drop all that the backend is to have: it would wait for ever, and the store keep it for that."""
        spans = self._outbox.give_up(self.number, ABSENT)
        self.dropped[ABSENT] = self.dropped.get(ABSENT, 0) + spans
        self.reason = reason
        self._meter.settled(0, {ABSENT: spans})

    def _settle(
        self,
        spans: int,
        *,
        exported: int = 0,
        referred: int = 0,
        lost: int | None = None,
        dropped: str = "",
        note: str = "",
    ) -> None:
        lost = spans - exported if lost is None else lost
        counted = {dropped: lost} if dropped and lost else {}
        settlement = Settlement(spans=spans, exported=exported, referred=referred, dropped=counted, note=note)
        self._outbox.settle(self.number, settlement)
        self.exported += exported
        if counted:
            self.dropped[dropped] = self.dropped.get(dropped, 0) + lost
            self.reason = note
        self._meter.settled(exported, counted)


def _batches(leaving: Sequence[Leaving], spans: int) -> list[Sequence[Leaving]]:
    return [leaving[at : at + spans] for at in range(0, len(leaving), spans)]


def _halves(piece: Sequence[Leaving]) -> list[Sequence[Leaving]]:
    middle = len(piece) // 2
    return [piece[:middle], piece[middle:]]


def _size(leaving: Leaving) -> int:
    if isinstance(leaving.span, tuple):
        return len(leaving.span[2])
    return sum(len(value) for value in leaving.span.attributes.values() if isinstance(value, str | bytes))


def _in_short(refusal: Rejected) -> str:
    """Name a refusal for the count: few names, whatever a backend says."""
    if refusal.reason.startswith(("answered ", "sending failed", "the request cannot be made")):
        return f"rejected: {refusal.reason.partition(':')[0].partition(',')[0].partition(';')[0][:60]}"
    return "rejected: partial success" if not refusal.whole else "rejected"
