"""State that a process keeps at one place for all its code, and that no name of the agent's own leads to.

What handlers of `logging` collect, the context of `decimal`, and which functions handle signals. A tool changes it
through a library's call, and other code of the agent's goes by it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Final, cast

from reenact.boundary.own_code import is_own_class
from reenact.boundary.roots import Root

_SIGNALS: Final = range(1, 32)
_handler_of: Final = cast("Any", sys.modules["_signal"]).getsignal


def process_roots() -> Iterator[Root]:
    """Name each piece of it."""
    yield Root("signal handlers", "value", _handlers_of_signals())
    if (decimal := sys.modules.get("decimal")) is not None:
        yield Root("decimal.getcontext()", "value", _spelled_context(decimal.getcontext()))
    if (logging := sys.modules.get("logging")) is not None:
        for reference in tuple(logging._handlerList):  # noqa: SLF001 - no other list names those of every logger
            handler = reference()
            if handler is not None:
                yield from _of_log_handler(handler)


def _handlers_of_signals() -> str:
    handlers = {number: _handler_of(number) for number in _SIGNALS}
    return " ".join(f"{number}:{id(each)}" for number, each in handlers.items() if callable(each))


def _spelled_context(context: Any) -> str:
    """Spell a context, less the flags that any operation sets."""
    traps = sorted(each.__name__ for each, is_set in context.traps.items() if is_set)
    return repr((context.prec, context.rounding, context.Emin, context.Emax, context.capitals, context.clamp, traps))


def _of_log_handler(handler: Any) -> Iterator[Root]:
    kind = cast("type[Any]", type(handler))
    name = f"logging handler {kind.__qualname__}"
    if is_own_class(kind):
        yield Root(name, "value", handler)
        return
    buffer = cast("dict[str, Any]", vars(handler)).get("buffer")
    if issubclass(type(buffer), list):  # logging.handlers.MemoryHandler
        yield Root(name, "value", buffer)
