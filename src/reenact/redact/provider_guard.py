"""Standing before every exporter of a provider: those registered already, and those that are registered later."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from opentelemetry.sdk._logs._internal import ConcurrentMultiLogRecordProcessor, SynchronousMultiLogRecordProcessor
from opentelemetry.sdk.trace import ConcurrentMultiSpanProcessor, SynchronousMultiSpanProcessor

from reenact.contracts.redactor import Redactor
from reenact.errors import UsageError
from reenact.redact import provider_processors
from reenact.redact.logs import RedactingLogRecordProcessor
from reenact.redact.processor import RedactionSpanProcessor

_log = logging.getLogger("reenact")
_PIPES = (
    ("_active_span_processor", "_span_processors", "add_span_processor", RedactionSpanProcessor),
    (
        "_multi_log_record_processor",
        "_log_record_processors",
        "add_log_record_processor",
        RedactingLogRecordProcessor,
    ),
)
"""Where the SDK's providers keep what is registered, and what we put around it (opentelemetry-sdk 1.35 to 1.45)."""

_MULTI: Mapping[str, tuple[type, ...]] = {
    "add_span_processor": (SynchronousMultiSpanProcessor, ConcurrentMultiSpanProcessor),
    "add_log_record_processor": (SynchronousMultiLogRecordProcessor, ConcurrentMultiLogRecordProcessor),
}
"""What processors are registered with, in the end, by how that is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """What `redact_everything` did."""

    wrapped: tuple[str, ...]
    """Processors that now get redacted copies only."""
    left: tuple[str, ...]
    """Processors that still see everything: they only write, or were to be left, or could not be wrapped."""


def redact_everything(
    provider: object | None = None,
    redactor: Redactor | None = None,
    *,
    policy: str | Path = "",
    leave: Iterable[object] = (),
) -> Covered:
    """Stand before whatever a provider exports by, now and later; a second call changes nothing.

    `provider` is a tracer or logger provider of OpenTelemetry's SDK, or one that holds such a one as Logfire's does; by
    default the tracer provider that is set, and the logger provider where one is. Processors that only write to spans
    (baggage) stay as they are, and so do those in `leave`, types or objects. One that cannot be wrapped is named in a
    warning. `policy` is a file, else what is configured holds; `redactor` is what does it instead. Raises
    `errors.UsageError` where there is no provider of the SDK.
    """
    wrapped: list[str] = []
    left: list[str] = []
    for each in _providers(provider):
        for root, registered, add, wrapper in _PIPES:
            multi = getattr(each, root, None)
            if multi is not None:
                around = partial(wrapper, redactor=redactor, policy=policy)
                cover = _Cover(registered, add, around, tuple(leave))
                cover.into(multi)
                wrapped += cover.wrapped
                left += cover.left
    return Covered(wrapped=tuple(wrapped), left=tuple(left))


def redact_process(redactor: Redactor | None = None, *, policy: str | Path = "") -> None:
    """Stand before whatever any provider of this process exports by, made already or not: for unchanged programs.

    A second call changes nothing.
    """
    from opentelemetry import _logs, trace

    for provider in (trace.get_tracer_provider(), _logs.get_logger_provider()):
        if _of_the_sdk(provider) is not None:
            redact_everything(provider, redactor, policy=policy)
    for _, registered, add, wrapper in _PIPES:
        cover = _Cover(registered, add, partial(wrapper, redactor=redactor, policy=policy), ())
        for kind in _MULTI[add]:
            cover.of(kind)


def _providers(provider: object | None) -> list[object]:
    if provider is not None:
        sdk_provider = _of_the_sdk(provider)
        if sdk_provider is None:
            raise UsageError(
                f"a {type(provider).__name__} is no provider of OpenTelemetry's SDK",
                hint="give what trace.set_tracer_provider was given",
            )
        return [sdk_provider]
    from opentelemetry import _logs, trace

    candidates = (_of_the_sdk(trace.get_tracer_provider()), _of_the_sdk(_logs.get_logger_provider()))
    if candidates[0] is None:
        raise UsageError(
            "no tracer provider of OpenTelemetry's SDK is set",
            hint="call trace.set_tracer_provider first, or hand the provider over",
        )
    return [each for each in candidates if each is not None]


def _of_the_sdk(provider: object) -> object | None:
    """Look through the proxies of vendors, which hold the provider that they stand for."""
    for _ in range(4):
        if any(hasattr(provider, root) for root, *_ in _PIPES):
            return provider
        inner_provider = getattr(provider, "provider", None)
        if inner_provider is None:
            return None
        provider = inner_provider
    return None


class _Cover:
    """Wraps what is registered in one place, and what will be."""

    def __init__(self, registered: str, add: str, wrap: Callable[[Any], Any], leave: tuple[object, ...]) -> None:
        self._registered, self._add, self._wrap, self._leave = registered, add, wrap, leave
        self.wrapped: list[str] = []
        self.left: list[str] = []

    def into(self, multi: Any) -> None:
        """Cover a processor that holds processors."""
        processors = getattr(multi, self._registered, None)
        if not isinstance(processors, tuple | list):
            self._cannot(multi)
            return
        with multi._lock:  # noqa: SLF001 - what registers a processor holds it
            now = [self.around(each) for each in cast("Iterable[Any]", getattr(multi, self._registered))]
            setattr(multi, self._registered, type(cast("tuple[Any, ...]", processors))(now))
        if self._add not in vars(multi):
            later = getattr(multi, self._add)
            setattr(multi, self._add, self._then(later))

    def of(self, kind: Any) -> None:
        """Cover whatever will be registered with any processor of a class that holds processors."""
        register = getattr(kind, self._add)
        if getattr(register, "covers", False):
            return

        def add(multi: Any, processor: Any) -> None:
            register(multi, self.around(processor))

        add.covers = True  # type: ignore[attr-defined]  # pyright: ignore[reportFunctionMemberAccess]  # a mark for us
        setattr(kind, self._add, add)

    def _then(self, register: Callable[[Any], None]) -> Callable[[Any], None]:
        def add(processor: Any) -> None:
            register(self.around(processor))

        return add

    def around(self, processor: Any) -> Any:
        """Give what is to be registered in a processor's place."""
        if isinstance(getattr(processor, self._registered, None), tuple | list):
            self.into(processor)
            return processor
        if isinstance(processor, provider_processors.Protects) or provider_processors.covered(processor):
            return processor
        name = provider_processors.processor_name(processor)
        if self._is_left(processor) or not provider_processors.sends(processor):
            self.left.append(name)
            return processor
        self.wrapped.append(name)
        return self._wrap(processor)

    def _is_left(self, processor: object) -> bool:
        kinds = tuple(each for each in self._leave if isinstance(each, type))
        return isinstance(processor, kinds) or any(processor is each for each in self._leave)

    def _cannot(self, processor: object) -> None:
        name = provider_processors.processor_name(processor)
        self.left.append(name)
        _log.warning("reenact: %s cannot be wrapped, and what it exports is not redacted", name)
