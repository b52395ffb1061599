"""Which answers reached their tasks in one turn of an event loop, so that no task saw what another one did."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final

from reenact.values import alarms


@dataclass(slots=True)
class _Turn:
    """One turn of a loop in which something was handed over."""

    loop: asyncio.AbstractEventLoop
    first: int
    """The number of what was handed over first."""
    spans: set[int] = field(default_factory=set[int])
    """Of which calls that was, by their spans."""


_NOW: Final[dict[int, _Turn]] = {}
"""The turns that are under way, by the identity of their loop."""


def first_of(order: int, span: int) -> tuple[int, bool]:
    """Give the number of what the running loop handed over first in this turn of its, and whether another call got any.

    It is 0 where nothing was handed over before what has the number `order`, of the call with that span.
    """
    loop = asyncio._get_running_loop()  # noqa: SLF001 - `get_running_loop` raises where none runs, which is dear
    if loop is None:
        return 0, False
    turn = _NOW.get(id(loop))
    if turn is not None and turn.loop is loop:
        has_others = len(turn.spans) > (span in turn.spans)
        turn.spans.add(span)
        return turn.first, has_others
    try:
        loop.call_soon(_NOW.pop, id(loop), None)
    except Exception:  # a loop of the host's own making, or one that is closed
        alarms.pass_on()
        return 0, False
    _NOW[id(loop)] = _Turn(loop, order, {span})
    return 0, False
