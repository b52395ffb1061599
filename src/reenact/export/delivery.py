"""Brings spans to one backend: in batches, halved where they are too large, again and again while there is patience."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from random import SystemRandom

from reenact.export.outcome import Delivered, Outcome, Rejected, Retry, TooLarge
from reenact.export.sender import Sender
from reenact.values import locks
from reenact.values.span import SpanRecord

_BATCH = 512
_REASONS = 20
_random = SystemRandom()  # the host's own generator is its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to try."""

    total_s: float = 30.0
    """For everything that one delivery does, waiting included."""
    first_pause_s: float = 0.5
    """Before the second try; doubled before each further one, less up to a half by chance."""
    longest_pause_s: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What became of a delivery to one backend. `sent`, `rejected` and `left` add up to what was to be delivered."""

    backend: str
    sent: int
    rejected: int
    left: tuple[SpanRecord, ...]
    """Spans that no answer is known for. Some may have arrived; sending them again does no harm but doubles."""
    reasons: tuple[str, ...]
    """Why, each sentence once, in the order of their coming. Notes to spans that were accepted are here as well."""

    @property
    def undelivered(self) -> int:
        """How many spans are left."""
        return len(self.left)

    @property
    def complete(self) -> bool:
        """Whether the backend accepted every span."""
        return not self.rejected and not self.left


class Delivery:
    """One delivery on its way. Its report can be asked for at any time, from any thread."""

    def __init__(self, sender: Sender, spans: Sequence[SpanRecord], patience: Patience) -> None:
        self._sender, self._patience = sender, patience
        self._waiting = deque(spans[at : at + _BATCH] for at in range(0, len(spans), _BATCH))
        self._sent_count = self._rejected = 0
        self._reasons: list[str] = []
        self._lock = locks.lock()
        self._given_up = threading.Event()
        self._deadline = time.monotonic() + patience.total_s

    def run(self) -> None:
        """Send until nothing is left or patience is at its end. Never raises."""
        tries = 0
        while self._waiting and not self._given_up.is_set():
            remaining = self._deadline - time.monotonic()
            if remaining <= 0:
                self._note(f"given up after {self._patience.total_s:.3g} s")
                return
            outcome = self._send(self._waiting[0], remaining)
            if not isinstance(outcome, Retry):
                self._settle(outcome)
                tries = 0
                continue
            self._note(outcome.reason)
            if not self._paused(outcome, tries):
                return
            tries += 1

    def give_up(self, reason: str) -> None:
        """Stop as soon as the request under way lets go, and leave the rest."""
        self._given_up.set()
        self._note(reason)

    def report(self) -> Report:
        """Say how things stand."""
        with self._lock:
            left = tuple(span for batch in self._waiting for span in batch)
            return Report(
                backend=self._sender.name,
                sent=self._sent_count,
                rejected=self._rejected,
                left=left,
                reasons=tuple(self._reasons),
            )

    def _send(self, batch: Sequence[SpanRecord], remaining: float) -> Outcome:
        from opentelemetry.instrumentation.utils import suppress_instrumentation

        try:
            with suppress_instrumentation():  # sending spans makes none
                return self._sender.send(batch, remaining)
        except Exception as failure:
            return Rejected(count=len(batch), reason=f"sending failed: {type(failure).__name__}: {failure}")

    def _settle(self, outcome: Delivered | Rejected | TooLarge) -> None:
        with self._lock:
            if self._given_up.is_set():
                return  # reported as left already
            batch = self._waiting.popleft()
            if isinstance(outcome, Delivered):
                self._sent_count += len(batch)
            elif isinstance(outcome, Rejected):
                self._rejected += len(batch) - outcome.delivered
                self._sent_count += outcome.delivered
            elif len(batch) > 1:
                middle = len(batch) // 2
                self._waiting.extendleft((batch[middle:], batch[:middle]))
                return
            else:
                self._rejected += 1
        reason = outcome.note if isinstance(outcome, Delivered) else outcome.reason
        if isinstance(outcome, TooLarge):
            reason += " (a single span, which cannot be halved)"
        self._note(reason)

    def _paused(self, outcome: Retry, tries: int) -> bool:
        """Wait before the next try; tell whether there will be one."""
        pause = outcome.after_s
        if pause is None:
            pause = min(self._patience.longest_pause_s, self._patience.first_pause_s * 2 ** min(tries, 30))
            pause *= 1 - _random.random() / 2
        remaining = self._deadline - time.monotonic()
        if pause >= remaining:
            asked = f"; it asked to be left alone for {pause:.3g} s" if outcome.after_s is not None else ""
            self._note(f"given up after {self._patience.total_s - max(0.0, remaining):.3g} s{asked}")
            return False
        return not self._given_up.wait(pause)

    def _note(self, reason: str) -> None:
        with self._lock:
            if reason and reason not in self._reasons and len(self._reasons) < _REASONS:
                self._reasons.append(reason)
