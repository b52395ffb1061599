"""Calls that the agent itself gave up: `asyncio.timeout`, `wait_for`, a lost race, a task group, `gevent.Timeout`.

The recorded outcome of such a call is a `CancelledError`, which came from the agent and not from the outside world. A
replay does not raise it: it keeps silent, as the world did, until the agent cancels again.
"""

from __future__ import annotations

import asyncio
import sys

from reenact.contracts.doorman import Passage
from reenact.values.call import ExceptionRecord, Outcome, Raised, Streamed

PATIENCE_S = 5.0
"""How long the agent's cancellation is awaited beyond twice the time that the recorded call took."""

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

    Such an error is known by what it is, and not by its class. Raises it, or `errors.Miss` where it does not come.
    """
    if type(error).__module__ in _OF_GREENLETS and (gevent := sys.modules.get("gevent")) is not None:
        try:
            gevent.sleep(PATIENCE_S + 2 * (passage.took_s or 0.0))
        except BaseException as interruption:
            passage.raised(interruption)
            raise
        raise passage.miss("the agent's greenlet was interrupted when recorded, and is not in the replay")


async def until_cancelled(passage: Passage) -> None:
    """Wait for the agent's cancellation, which arrives here as `CancelledError`.

    Raises `errors.Miss` where it does not come.
    """
    await asyncio.sleep(PATIENCE_S + 2 * (passage.took_s or 0.0))
    raise passage.miss("the agent gave this call up when recorded, and waits for it in the replay")
