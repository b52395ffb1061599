"""Calls that the agent itself gave up: `asyncio.timeout`, `wait_for`, a lost race, a task group, `gevent.Timeout`.

The recorded outcome of such a call is a `CancelledError`, which came from the agent and not from the outside world. A
replay does not raise it: it keeps silent, as the world did, until the agent cancels again.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from contextlib import suppress

from reenact.contracts.doorman import Passage
from reenact.values.call import ExceptionRecord, Outcome, Raised, Streamed

PATIENCE_S = 5.0
"""How long the agent's cancellation is awaited beyond twice the time that the recorded call took."""
_ALMOST_S, _AFTER_S = 1.0, 0.001
"""How much later an alarm may ring, and how long after it code goes on."""

_OF_GREENLETS = frozenset({"gevent.timeout", "greenlet"})
_CANCELLATIONS = frozenset({"CancelledError", "GeneratorExit"})


def was_cancelled(outcome: Outcome | None) -> bool:
    """Tell whether the agent gave this call up."""
    exception: ExceptionRecord | None = None
    if isinstance(outcome, Raised | Streamed):
        exception = outcome.exception
    return exception is not None and exception.qualname in _CANCELLATIONS


def until_interrupted(passage: Passage, error: BaseException) -> None:
    """Wait for the end of the agent's own `gevent.Timeout`, or for whoever kills its greenlet, where that was `error`.

    Such an error is known by what it is, and not by its class. Raises it, or `errors.Miss` where it does not come. What
    the handler of an alarm raised is waited for, too, where one is about to ring.
    """
    _let_alarm_ring(passage)
    if type(error).__module__ in _OF_GREENLETS and (gevent := sys.modules.get("gevent")) is not None:
        try:
            gevent.sleep(PATIENCE_S + 2 * (passage.took_s or 0.0))
        except BaseException as interruption:
            passage.raised(interruption)
            raise
        raise passage.miss("the agent's greenlet was interrupted when recorded, and is not in the replay")


def _let_alarm_ring(passage: Passage) -> None:
    """Let an alarm ring whose handler ended the recorded call: a replay comes to the call a little sooner, or later."""
    handler = getattr(signal.getsignal(signal.SIGALRM), "__code__", None)
    if handler is None or not isinstance(passage.answer, Raised):
        return
    left_s = signal.getitimer(signal.ITIMER_REAL)[0]
    if 0 < left_s < _ALMOST_S + (passage.took_s or 0.0) and (
        f", in {handler.co_name}\n" in passage.answer.exception.stacktrace
    ):
        with suppress(BaseException):  # what comes of it in the call is the recorded error
            time.sleep(left_s + _AFTER_S)


async def until_cancelled(passage: Passage) -> None:
    """Wait for the agent's cancellation, which arrives here as `CancelledError`.

    Raises `errors.Miss` where it does not come.
    """
    await asyncio.sleep(PATIENCE_S + 2 * (passage.took_s or 0.0))
    raise passage.miss("the agent gave this call up when recorded, and waits for it in the replay")
