"""Whether two answers reached their tasks in one turn of an event loop, so that neither task saw what the other did."""

from __future__ import annotations

import asyncio
from typing import Final

from reenact.values import alarms

_NOW: Final[dict[int, asyncio.AbstractEventLoop]] = {}
"""The loops that handed over an answer in the turn that they are in, by identity."""


def is_same() -> bool:
    """Tell whether the running loop handed over another answer in this turn of its; the next call will be told so."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:  # none runs
        return False
    if _NOW.get(id(loop)) is loop:
        return True
    try:
        loop.call_soon(_NOW.pop, id(loop), None)
    except Exception:  # a loop of the host's own making, or one that is closed
        alarms.pass_on()
        return False
    _NOW[id(loop)] = loop
    return False
