"""Our failures never reach an agent that is recorded; a replay accuses, and so lets them through.

Where every call of the agent's passes, a `try` of its own that ends in `forgive` is half the price of a decorator.
"""

from __future__ import annotations

import logging
import sys
import traceback
from contextlib import suppress

from reenact.boundary import door
from reenact.values import alarms

_log = logging.getLogger("reenact")
_counted: dict[str, int] = {}
_structure: dict[str, int] = {}


def forgive(name: str) -> None:
    """Count and log the `Exception` that is being handled, of the function `name`; raise it again in a replay."""
    if door.is_strict():
        error = sys.exception()
        if error is not None:
            raise error
    swallow(name)


def swallow(name: str, *, structure: bool = False) -> None:
    """Count and log the `Exception` that is being handled, of the function `name`, replay or not.

    `structure` says that only a drawing of the run misses something, by which no replay goes. Raises the error again
    where it comes out of a signal handler: that is the agent's, an alarm for one, which rang while we were at it.
    """
    alarms.pass_on()
    counts, what = (_structure, "the structure of the run") if structure else (_counted, "recording")
    counts[name] = counts.get(name, 0) + 1
    if counts[name] == 1:
        with suppress(Exception):  # a handler of the agent's
            _log.warning("reenact: %s is incomplete, %s failed; the program goes on\n%s", what, name, _where())


def _where() -> str:
    """Say where the error being handled comes from, without what it says: that may quote what the agent was told."""
    error = sys.exception()
    if error is None:
        return ""
    frames = "".join(traceback.format_tb(error.__traceback__)).rstrip()
    return f"{frames}\n{type(error).__module__}.{type(error).__qualname__}"


def failures() -> int:
    """Count our failures since the process began after which a recording is incomplete."""
    return sum(tuple(_counted.values()))
