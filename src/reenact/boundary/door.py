"""Who is in charge: the one doorman of this process, and the ways past it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, cast

from opentelemetry import context

if TYPE_CHECKING:
    from reenact.contracts.doorman import Doorman


def _context_reader() -> Callable[[], Mapping[str, object]]:
    """Find the shortest way to the application's context, which every call asks for twice."""
    holder: Any = getattr(getattr(context, "_RUNTIME_CONTEXT", None), "_current_context", None)
    return cast("ContextVar[context.Context]", holder).get if isinstance(holder, ContextVar) else context.get_current


application_context: Final = _context_reader()
"""Give the context of OpenTelemetry that the application's code stands in."""


class _Door:
    """Holds the doorman. A class, so that reading it on the hot path is one attribute."""

    __slots__ = ("doorman", "strict", "suppressed", "unrecorded")

    def __init__(self) -> None:
        self.doorman: Doorman | None = None
        self.strict = False
        self.suppressed = 0
        self.unrecorded = 0


_DOOR = _Door()


def install(doorman: Doorman | None, *, strict: bool = False) -> Doorman | None:
    """Put `doorman` in charge and give back the one before. Nothing leads past a strict one, as in a replay."""
    before, _DOOR.doorman = _DOOR.doorman, doorman
    _DOOR.strict = strict
    return before


def doorman() -> Doorman | None:
    """Give the doorman in charge, or None where calls go straight through.

    OpenTelemetry's `suppress_instrumentation`, which OpenInference's `suppress_tracing` sets, leads past it; such
    crossings are counted, because no replay can answer them: it refuses them, since nothing live may happen there.
    """
    current = _DOOR.doorman
    if current is None:
        return None
    values = application_context()
    if values and not _DOOR.strict and any(map(values.get, _SUPPRESSED)) and not values.get(_SHOWN):
        _DOOR.suppressed += 1
        return None
    return current


def is_quiet() -> bool:
    """Tell whether instrumentations were told to show nothing here."""
    values = application_context()
    return bool(values) and any(map(values.get, _SUPPRESSED))


@contextmanager
def shown_by_another() -> Generator[None]:
    """Mark that what is suppressed in the block is so for the sake of another instrumentation, which shows the call."""
    token = context.attach(context.set_value(_SHOWN, True))
    try:
        yield
    finally:
        context.detach(token)


def is_kept() -> bool:
    """Tell whether a doorman is in charge at all."""
    return _DOOR.doorman is not None


def is_strict() -> bool:
    """Tell whether the doorman answers from a recording, as in a replay."""
    return _DOOR.strict


def pass_by(what: str) -> None:
    """Note a crossing that could not be written down, and went past the doorman; `what` names it for the log."""
    _DOOR.unrecorded += 1
    logging.getLogger("reenact").debug("reenact cannot record %s", what)


def unrecorded() -> int:
    """Count the crossings that could not be written down."""
    return _DOOR.unrecorded


def suppressed() -> int:
    """Count the crossings that `suppress_tracing` led past the doorman."""
    return _DOOR.suppressed


_SHOWN = "reenact-shown-by-another"
_SUPPRESSED = (
    "suppress_instrumentation",  # what instrumentations set by hand
    getattr(context, "_SUPPRESS_INSTRUMENTATION_KEY", "suppress_instrumentation"),  # made anew in every process
)
