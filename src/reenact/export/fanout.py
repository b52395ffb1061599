"""Brings the same spans to several backends at once; a dead one holds up none of the others."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence

from reenact.export.delivery import Delivery, Patience, Report
from reenact.export.sender import Sender
from reenact.values.span import SpanRecord

_GRACE_S = 0.5
"""What a request that ends at the deadline is given to be settled."""


class FanOut:
    """Several senders as one. Each delivery has a thread per backend and one deadline for all of them."""

    def __init__(self, senders: Sequence[Sender], patience: Patience | None = None) -> None:
        self._senders = tuple(senders)
        self._patience = patience or Patience()

    def deliver(self, spans: Sequence[SpanRecord], within_s: float | None = None) -> tuple[Report, ...]:
        """Deliver `spans` to every backend and say what became of them, in the order of the senders.

        Takes no longer than the patience (or `within_s` seconds, where that is given) and half a second, even where a
        backend hangs in a place that has no time limit, such as a name look-up. Never raises.
        """
        patience = self._patience if within_s is None else _shortened(self._patience, within_s)
        deliveries = [Delivery(sender, spans, patience) for sender in self._senders]
        threads = [threading.Thread(target=each.run, name="reenact-export", daemon=True) for each in deliveries]
        end = time.monotonic() + patience.total_s + _GRACE_S
        for thread in threads:
            with contextlib.suppress(RuntimeError):  # the interpreter is ending and starts no more threads
                thread.start()
        for thread, delivery in zip(threads, deliveries, strict=True):
            if thread.ident is None:
                delivery.run()
                continue
            thread.join(max(0.0, end - time.monotonic()))
            if thread.is_alive():
                delivery.give_up(f"no answer within {patience.total_s:.3g} s")
        return tuple(delivery.report() for delivery in deliveries)

    def close(self) -> None:
        """Close every sender. One that is stuck in a request is left to its thread."""
        for sender in self._senders:
            closer = threading.Thread(target=sender.close, name="reenact-export-close", daemon=True)
            try:
                closer.start()
            except RuntimeError:
                continue  # the interpreter is ending and closes what is open
            closer.join(_GRACE_S)


def _shortened(patience: Patience, within_s: float) -> Patience:
    return Patience(
        total_s=min(patience.total_s, within_s),
        first_pause_s=patience.first_pause_s,
        longest_pause_s=patience.longest_pause_s,
    )
