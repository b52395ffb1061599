"""What is registered on a provider: which processors export, by what, and whether we stand before it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Any, Protocol, cast, runtime_checkable

from opentelemetry.sdk.trace import SpanProcessor

_log = logging.getLogger("reenact")
_DEEPEST = 16
"""Vendors wrap processors in lists of processors; none that was seen goes further than eight."""
_warned: set[str] = set()


@runtime_checkable
class Exports(Protocol):
    """An exporter of spans or log records, of whatever version of the SDK."""

    def export(self, batch: Any, /) -> Any:
        """Export."""
        ...

    def shutdown(self) -> None:
        """Shut down."""
        ...


@runtime_checkable
class Protects(Protocol):
    """A processor or exporter of ours, that hands on redacted copies only."""

    _copies: Any

    @property
    def inner(self) -> Any:
        """What is protected."""
        ...


def exporters(processor: object) -> list[object]:
    """Give the exporters that a processor holds, however deep, those of ours included but not what they protect."""
    return list(_exporters(processor, _DEEPEST, set()))


def _exporters(component: object, deep: int, seen_ids: set[int]) -> Iterator[object]:
    if id(component) in seen_ids or deep < 0 or isinstance(component, str | bytes | int | float | type):
        return
    seen_ids.add(id(component))
    if isinstance(component, Protects) or (isinstance(component, Exports) and not isinstance(component, SpanProcessor)):
        yield component
        return
    inside: Iterable[object] = ()
    if isinstance(component, list | tuple):
        inside = cast("Iterable[object]", component)
    elif _is_of_a_pipe(component) or deep == _DEEPEST:
        inside = list(vars(component).values()) if hasattr(component, "__dict__") else ()
    for each in inside:
        yield from _exporters(each, deep - 1, seen_ids)


def _is_of_a_pipe(component: object) -> bool:
    """Tell processors, and the SDK's parts of processors, from everything else that an object may hold."""
    kind = type(component)
    return callable(getattr(kind, "force_flush", None)) and callable(getattr(kind, "shutdown", None))


def covered(processor: object) -> bool:
    """Tell whether all that a processor exports passes us first."""
    span_exporters = exporters(processor)
    return bool(span_exporters) and all(isinstance(each, Protects) for each in span_exporters)


def sends(processor: object) -> bool:
    """Tell whether a processor may let spans out: it holds an exporter, or looks at spans that end."""
    if exporters(processor):
        return True
    kind = type(processor)
    return any(getattr(kind, name, None) is not getattr(SpanProcessor, name, None) for name in ("on_end", "on_emit"))


def processor_name(processor: object) -> str:
    """Name a processor for people, with its exporters."""
    inside = ", ".join(type(each).__name__ for each in exporters(processor))
    return f"{type(processor).__name__}({inside})"


def warn(registered: Iterable[object]) -> None:
    """Warn of processors that let spans out unredacted, once each."""
    for processor in registered:
        if sends(processor) and not covered(processor) and (name := processor_name(processor)) not in _warned:
            _warned.add(name)
            advice = "reenact.redact_everything(provider) stands before every one"
            _log.warning("reenact: spans also leave unredacted, by %s, registered beside; %s", name, advice)
