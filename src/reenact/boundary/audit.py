"""Audit hooks (PEP 578) that hear of what they name and of nothing else, up to the interpreter's last moment.

A hook cannot be taken away, and it is called after its module was taken apart, when every global of it is None: while
objects of the program's are finalized, and by the interpreter itself as the very last. So what is asked of each event
is held by the hook and not by a module. An error there would reach the program, or be printed as `Exception ignored in
audit hook`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def hear(
    events: frozenset[str], hook: Callable[[str, tuple[Any, ...]], None], *, when_finalizing: bool = False
) -> None:
    """Have `hook` called for each of the events from here on, for good.

    At the interpreter's end it is called no more, but for `when_finalizing`: then what it raises keeps the event from
    happening, as what refuses must.
    """
    finalizing = sys.is_finalizing

    def dispatch(event: str, args: tuple[Any, ...]) -> None:
        if event in events and (when_finalizing or not finalizing()):
            hook(event, args)

    sys.addaudithook(dispatch)
