"""What found tools touch outside the process while they run, by an audit hook (PEP 578).

An event belongs to the innermost open call on its thread or task: what a model call inside a tool does is the model
call's. The hook is installed when the first found tool runs, since it cannot be taken away again and costs every file
that is opened a look.
"""

from __future__ import annotations

from typing import Any, Final

from reenact.boundary import audit, place
from reenact.boundary.touches import EVENTS, aside, described, is_aside
from reenact.values import alarms, locks

_MOST = 100
"""Different touches of one call that are listed; one more line says that there were more."""


class Touches:
    """What one call touched, in order, each thing once."""

    __slots__ = ("_more", "_touches")

    def __init__(self) -> None:
        self._touches: dict[str, None] = {}
        self._more = False

    def add(self, what: str) -> None:
        """Note a touch."""
        if len(self._touches) < _MOST:
            self._touches[what] = None
        elif what not in self._touches:
            self._more = True

    def listed(self) -> list[str]:
        """List the touches."""
        return [*self._touches, "and more"] if self._more else list(self._touches)


open_calls: Final[dict[int, Touches]] = {}
"""By span, for the calls of found tools that are open, and for structure inside them. Others only look at it."""
_lock = locks.rlock()
_hooked = False


def begin(span: int) -> Touches:
    """Begin to note what the call with this span touches."""
    global _hooked  # noqa: PLW0603 - there is one audit hook a process
    with _lock:
        if not _hooked:
            audit.hear(EVENTS, _hook)
            _hooked = True
    touches = open_calls[span] = Touches()
    return touches


def inherit(span: int, parent: int) -> Touches | None:
    """Have a piece of structure inside a found tool note what it touches as the tool's."""
    touches = open_calls.get(parent)
    if touches is not None:
        open_calls[span] = touches
    return touches


def end(span: int) -> list[str]:
    """End noting, and list what was touched."""
    touches = open_calls.pop(span, None)
    return [] if touches is None else touches.listed()


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if not open_calls or is_aside():
        return
    here = place.current()
    touches = open_calls.get(here.span_id) if here is not None else None
    if touches is None:
        return
    try:
        with aside():
            touch = described(event, args)
        if touch is not None:
            touches.add(touch.what)
    except Exception as failure:  # what is not known is taken for touched
        alarms.pass_on()
        touches.add(f"{event} ({type(failure).__name__})")
