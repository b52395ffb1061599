"""The engine around OpenTelemetry's pipe for log records: events of a GenAI instrumentation carry payloads too.

The SDK calls its log API experimental and renames its parts; these rely on what all versions share: a record that holds
`log_record`, processors with `on_emit` and exporters with `export` (opentelemetry-sdk 1.35 to 1.45).
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from opentelemetry.attributes import BoundedAttributes
from opentelemetry.sdk._logs import LogRecordProcessor

from reenact.contracts.redactor import Redactor
from reenact.redact import provider_processors
from reenact.redact.process_redactor import copies
from reenact.redact.sdk_copies import UNREADABLE, Copies, marks
from reenact.values import alarms

if TYPE_CHECKING:
    from opentelemetry.sdk._logs.export import LogRecordExporter
else:
    try:
        from opentelemetry.sdk._logs.export import LogRecordExporter
    except ImportError:  # before opentelemetry-sdk 1.39
        from opentelemetry.sdk._logs.export import LogExporter as LogRecordExporter

_log = logging.getLogger("reenact")
_T = TypeVar("_T")


class RedactingLogRecordProcessor(LogRecordProcessor):
    """Hands `inner` redacted copies of log records and nothing else.

        provider.add_log_record_processor(reenact.RedactingLogRecordProcessor(BatchLogRecordProcessor(exporter)))

    A record that cannot be redacted is dropped and counted in `dropped`. Neither that nor a failing `inner` reaches the
    program. `policy` is a file, else what is configured holds; `redactor` is what does it instead.
    """

    def __init__(self, inner: Any, redactor: Redactor | None = None, *, policy: str | Path = "") -> None:
        self._inner, self._copies = inner, copies(redactor, policy)
        self.dropped = 0
        self._warned = False

    @property
    def inner(self) -> Any:
        """The processor that is protected."""
        return self._inner

    def on_emit(self, log_record: Any) -> None:
        """Hand on a record, redacted."""
        try:
            clean = copied(self._copies, log_record)
        except Exception as error:  # noqa: BLE001 - fail closed
            alarms.pass_on()
            self.dropped += 1
            self._tell("a log record could not be redacted and was dropped", error)
            return
        try:
            self._inner.on_emit(clean)
        except Exception as error:  # noqa: BLE001 - the host is sacred
            alarms.pass_on()
            self._tell(f"{provider_processors.processor_name(self._inner)} failed on a log record", error)

    emit = on_emit
    """The name before opentelemetry-sdk 1.35."""

    def _tell(self, what: str, error: Exception) -> None:
        if not self._warned:
            self._warned = True  # at once: the warning may come back here, through a handler that exports it
            _log.warning("reenact: %s (%s); the program goes on", what, type(error).__name__)  # its text may hold it

    def enabled(self, **asked: Any) -> bool:
        """Say whether the protected processor would take such a record."""
        answer: Callable[..., bool] | None = getattr(self._inner, "enabled", None)
        return True if answer is None else answer(**asked)

    def shutdown(self) -> None:
        """Shut the protected processor down."""
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Flush the protected processor and give its answer."""
        return self._inner.force_flush(timeout_millis) is not False


class RedactingLogRecordExporter(LogRecordExporter):
    """Hands `inner` redacted copies of log records and nothing else.

    `policy` is a file, else what is configured holds; `redactor` is what does it instead.
    """

    def __init__(self, inner: Any, redactor: Redactor | None = None, *, policy: str | Path = "") -> None:
        self._inner, self._copies = inner, copies(redactor, policy)
        self.dropped = 0

    @property
    def inner(self) -> Any:
        """The exporter that is protected."""
        return self._inner

    def export(self, batch: Sequence[Any]) -> Any:
        """Export redacted copies, and give the answer of the protected exporter."""
        clean: list[Any] = []
        for record in batch:
            try:
                clean.append(copied(self._copies, record))
            except Exception:  # noqa: BLE001 - fail closed
                alarms.pass_on()
                self.dropped += 1
        return self._inner.export(clean)

    def shutdown(self) -> None:
        """Shut the protected exporter down."""
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Flush the protected exporter and give its answer."""
        flush: Callable[[int], bool | None] | None = getattr(self._inner, "force_flush", None)
        return flush is None or flush(timeout_millis) is not False


class _Attributes(BoundedAttributes):
    """Attributes of a log record, clean already, by which the SDK tells what its limits dropped."""

    def __init__(self, attributes: Mapping[str, Any], dropped: int) -> None:
        super().__init__(immutable=False)
        self._dict.update(attributes)
        self.dropped = dropped


def copied(copies: Copies, record: _T) -> _T:
    """Copy a log record as the SDK hands it to processors and exporters, whatever its version calls that."""
    outer_copy, inner_copy = copy.copy(record), copy.copy(cast("Any", record).log_record)
    for holder in (outer_copy, inner_copy):  # earlier versions keep it in the inner one
        resource = getattr(holder, "resource", None)
        if resource is not None:
            object.__setattr__(holder, "resource", copies.resource(resource))
    scope = copies.scope(cast("Any", record).instrumentation_scope)
    with copies.counting() as counted:
        _say(copies, inner_copy)
    dropped = getattr(cast("Any", record).log_record.attributes, "dropped", 0)
    inner_copy.attributes = _Attributes({**inner_copy.attributes, **(marks(counted) if copies.marked else {})}, dropped)
    object.__setattr__(outer_copy, "instrumentation_scope", scope)  # the readable ones are frozen
    object.__setattr__(outer_copy, "log_record", inner_copy)
    return outer_copy


def _say(copies: Copies, log_copy: Any) -> None:
    """Redact what the copy of a log record says."""
    log_copy.body = copies.attributes({"body": log_copy.body}).get("body", UNREADABLE)
    log_copy.attributes = copies.attributes(log_copy.attributes or {})
    for name in ("severity_text", "event_name"):
        if getattr(log_copy, name, None):
            setattr(log_copy, name, copies.text(getattr(log_copy, name), "name"))
    if getattr(log_copy, "exception", None) is not None:
        log_copy.exception = None  # the SDK has told it in attributes
