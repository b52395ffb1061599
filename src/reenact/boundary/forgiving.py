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


def forgive(name: str) -> None:
    """Count and log the `Exception` that is being handled, of the function `name`; raise it again in a replay."""
    if door.is_strict():
        error = sys.exception()
        if error is not None:
            raise error
    swallow(name)


def swallow(name: str) -> None:
    """Count and log the `Exception` that is being handled, of the function `name`, replay or not.

    Raises it again where it comes out of a signal handler: that is the agent's, an alarm for one, which rang while we
    were at it.
    """
    alarms.pass_on()
    _counted[name] = _counted.get(name, 0) + 1
    if _counted[name] == 1:
        with suppress(Exception):  # a handler of the agent's
            _log.warning("reenact: recording is incomplete, %s failed; the program goes on\n%s", name, _where())


def _where() -> str:
    """Say where the error being handled comes from, without what it says: that may quote what the agent was told."""
    error = sys.exception()
    if error is None:
        return ""
    frames = "".join(traceback.format_tb(error.__traceback__)).rstrip()
    return f"{frames}\n{type(error).__module__}.{type(error).__qualname__}"


def failures() -> dict[str, int]:
    """Count our swallowed failures by function."""
    return dict(_counted)
