"""What sending does, as OpenTelemetry metrics on the application's MeterProvider; where there is none they go nowhere.

The names of OpenTelemetry's own for SDKs (semantic conventions 1.36, "SDK metrics") where one exists:

    otel.sdk.exporter.span.exported         {span}  sent for good; with `error.type` where the backend did not take them
    otel.sdk.exporter.span.inflight         {span}  in a request at the moment
    otel.sdk.exporter.operation.duration    s       of one request; with `error.type` where it failed

and of ours, read from the outbox, so that they go on where a killed process stopped:

    reenact.outbox.created, .exported       {span}  what each backend was to have, and has
    reenact.outbox.dropped                  {span}  by `reenact.reason`
    reenact.outbox.waiting                  {span}  what it is still to have
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from reenact.export.outcome import Delivered, Outcome, Rejected, Retry, TooLarge
from reenact.stores.outbox import Account, Outbox
from reenact.version import VERSION

_KINDS = {"grpc": "grpc", "grpcs": "grpc", "http": "http", "https": "http"}


@cache
def _instruments() -> tuple[Any, Any, Any]:
    from opentelemetry.metrics import get_meter

    meter = get_meter("reenact", VERSION)
    return (
        meter.create_counter("otel.sdk.exporter.span.exported", unit="{span}", description="Spans sent for good."),
        meter.create_up_down_counter(
            "otel.sdk.exporter.span.inflight", unit="{span}", description="Spans in a request at the moment."
        ),
        meter.create_histogram(
            "otel.sdk.exporter.operation.duration", unit="s", description="How long one request took."
        ),
    )


class Meter:
    """Counts for one backend. Never raises."""

    def __init__(self, name: str) -> None:
        kind = f"otlp_{_KINDS.get(name.partition('://')[0], 'file')}_span_exporter"
        self._about: dict[str, Any] = {"otel.component.type": kind, "otel.component.name": f"{kind}/{name}"}
        try:
            parts = urlsplit(name)
            if parts.hostname:
                self._about["server.address"] = parts.hostname
            if parts.port:
                self._about["server.port"] = parts.port
        except ValueError:
            pass

    def begin(self, spans: int) -> None:
        """Note that a request began."""
        self._quietly(lambda: _instruments()[1].add(spans, self._about))

    def end(self, spans: int, outcome: Outcome, seconds: float) -> None:
        """Note that a request ended."""
        failed = _error_type(outcome)
        about = {**self._about, "error.type": failed} if failed else self._about
        self._quietly(lambda: _instruments()[1].add(-spans, self._about))
        self._quietly(lambda: _instruments()[2].record(seconds, about))

    def settled(self, exported: int, dropped: Mapping[str, int]) -> None:
        """Count spans whose fate is known."""
        if exported:
            self._quietly(lambda: _instruments()[0].add(exported, self._about))
        for reason, spans in dropped.items():
            about = {**self._about, "error.type": reason}
            self._quietly(lambda spans=spans, about=about: _instruments()[0].add(spans, about))

    @staticmethod
    def _quietly(do: Callable[[], object]) -> None:
        try:
            do()
        except Exception:
            return  # somebody's MeterProvider; what it cannot count is no matter of the spans


def _error_type(outcome: Outcome) -> str | None:
    match outcome:
        case Delivered():
            return None
        case Rejected():
            return "rejected"
        case Retry():
            return "retryable"
        case TooLarge():
            return "too_large"


def observe(outbox: Outbox) -> None:
    """Let the application's MeterProvider ask an outbox how things stand, once for each store."""
    if outbox.folder in _observed:
        return
    _observed.add(outbox.folder)
    from opentelemetry.metrics import get_meter

    meter = get_meter("reenact", VERSION)
    for what, of in _COUNTED.items():
        meter.create_observable_counter(f"reenact.outbox.{what}", [_observer(outbox, of)], unit="{span}")
    waiting = _observer(outbox, lambda account: {"": account.waiting})
    meter.create_observable_up_down_counter("reenact.outbox.waiting", [waiting], unit="{span}")


_observed: set[object] = set()
_COUNTED: Mapping[str, Callable[[Account], Mapping[str, int]]] = {
    "created": lambda account: {"": account.created},
    "exported": lambda account: {"": account.exported},
    "dropped": lambda account: account.dropped,
}


def _observer(outbox: Outbox, of: Callable[[Account], Mapping[str, int]]) -> Callable[[Any], Iterable[Any]]:
    def callback(_options: object) -> Iterable[Any]:
        from opentelemetry.metrics import Observation

        try:
            accounts = outbox.accounts()
        except Exception:
            return
        for account in accounts:
            for reason, spans in of(account).items():
                about = {"reenact.backend": account.name, **({"reenact.reason": reason} if reason else {})}
                yield Observation(spans, about)

    return callback
