"""What a run is: a script's execution, or one unit of work inside it (`with reenact.run(...)`).

Each run is one trace with one root. The process's own root is made only when a call happens outside every unit, so
that a script with one `with reenact.run` is one run. All runs of one recording share `reenact.recording.id`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.sdk.trace import Span, TracerProvider
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, SpanKind, TraceFlags, set_span_in_context
from opentelemetry.trace.status import Status, StatusCode

from reenact.boundary import lanes, place
from reenact.boundary.place import Place
from reenact.record.shield import shielded
from reenact.values import typed
from reenact.values.call import ExceptionRecord
from reenact.values.json import Json, compact

_CONTEXT_KEYS = (
    "session.id",
    "user.id",
    "metadata",
    "tag.tags",
    "llm.prompt_template.template",
    "llm.prompt_template.variables",
    "llm.prompt_template.version",
)
"""What OpenInference's `using_session`, `using_user`, … put into the OpenTelemetry context."""

REPLACED = "reenact.redaction.count"
_REMEMBERED = 10_000


def from_context() -> dict[str, Any]:
    """Take what OpenInference's context managers put into the application's context."""
    context = otel_context.get_current()
    return {key: context[key] for key in _CONTEXT_KEYS if key in context} if context else {}  # type: ignore[misc]


class Run:
    """An open run: its root span and who it is for."""

    def __init__(self, span: Span, identity: Mapping[str, Any]) -> None:
        context = span.get_span_context()
        self.span, self.identity = span, dict(identity)
        self.place = Place(trace_id=context.trace_id, span_id=context.span_id, root=context.span_id)
        self.lane_ends: dict[str, Json] = {}
        """When the pool jobs that crossed its boundaries were resolved: lane to order number and nanoseconds."""
        self.facts: Mapping[str, int] = {}
        """Counts of the recording when the run began."""

    @property
    def id(self) -> str:
        """The run's id: its trace id, 32 hexadecimal digits."""
        return format(self.place.trace_id, "032x")


class Runs:
    """Opens and closes the runs of one process."""

    def __init__(
        self,
        provider: TracerProvider,
        root_attributes: Callable[[], Mapping[str, Any]],
        counts: Callable[[], Mapping[str, int]],
        *,
        next_order: Callable[[], int],
        identity: Mapping[str, Any] | None = None,
        links: tuple[Link, ...] = (),
        version: str = "",
    ) -> None:
        self._tracer = provider.get_tracer("reenact", version)
        self._root_attributes, self._counts, self._links = root_attributes, counts, links
        self._next_order, self._identity = next_order, dict(identity or {})
        self._open: dict[int, Run] = {}
        """By root span."""
        self._joined: dict[int, None] = {}
        """Traces of the application's that hold a run of ours."""
        self._process: Run | None = None
        self._lock = threading.Lock()

    def parent(self) -> Place:
        """Give the run of a call that is seen outside every context of ours: the only open one, else the process's."""
        process = self._process
        if process is None:
            units = tuple(self._open.values())
            process = units[0] if len(units) == 1 else self.process()
        return process.place

    def process(self) -> Run:
        """Give the run of the process itself, opened at first need."""
        with self._lock:
            if self._process is None:
                name = Path(sys.argv[0]).name if sys.argv and sys.argv[0] not in {"", "-c"} else "python"
                self._process = self._begin(name, "CHAIN", self._identity)
            return self._process

    def with_root(self, root: int) -> Run | None:
        """Give the open run whose root span has this id."""
        return self._open.get(root)

    def _begin(self, name: str, kind: str, identity: Mapping[str, Any], value: Json = None) -> Run:
        counts = self._counts()
        attributes: dict[str, Any] = {
            "openinference.span.kind": kind,
            "reenact.schema_version": "1",
            "reenact.run.root": True,
            "reenact.lane": lanes.current().path,
            "reenact.order.start": self._next_order(),
            **self._root_attributes(),
            **identity,
        }
        if value is not None:
            attributes |= {"input.value": compact(value), "input.mime_type": "application/json"}
        context, links = self._within_the_application()
        span = self._tracer.start_span(name, context, SpanKind.INTERNAL, attributes, links)
        run = Run(span, identity)  # type: ignore[arg-type]
        run.facts = counts
        self._open[run.place.root] = run
        return run

    def _within_the_application(self) -> tuple[otel_context.Context, tuple[Link, ...]]:
        """Give the context whose current span a root hangs under, the application's or an empty one, and links.

        One trace holds one run: a further run in the same trace of the application's only points there.
        """
        current = trace.get_current_span().get_span_context()
        if not current.is_valid or place.current() is not None:
            return otel_context.Context(), self._links
        if current.trace_id in self._joined:
            return otel_context.Context(), (*self._links, Link(current, {"reenact.link": "application"}))
        self._joined[current.trace_id] = None
        if len(self._joined) > _REMEMBERED:
            self._joined.pop(next(iter(self._joined)), None)
        sampled = SpanContext(current.trace_id, current.span_id, is_remote=True, trace_flags=TraceFlags(1))
        return set_span_in_context(NonRecordingSpan(sampled), otel_context.Context()), self._links

    @contextmanager
    def unit(self, name: str, identity: Mapping[str, Any], value: Json = None) -> Generator[Run | None]:
        """Open a run for one unit of work."""
        run = self._begin_unit(name, identity, value)
        if run is None:
            yield None
            return
        before = place.move(run.place)
        try:
            yield run
        except BaseException as error:
            self.end(run, typed.encode_exception(error))
            raise
        else:
            self.end(run)
        finally:
            place.move(before)

    @shielded
    def _begin_unit(self, name: str, identity: Mapping[str, Any], value: Json) -> Run | None:
        return self._begin(name, "AGENT", {**self._identity, **identity, **from_context()}, value)

    @shielded
    def end(self, run: Run, error: ExceptionRecord | None = None) -> None:
        """Close a run, once, with what it died of."""
        if self._open.pop(run.place.root, None) is None:
            return
        span = run.span
        span.set_attributes({"reenact.order.end": self._next_order(), **self._closing(run)})
        if error is None:
            span.set_status(Status(StatusCode.OK))
        else:
            span.set_attributes(
                {"reenact.outcome": "raised", "exception.type": error.qualname, "exception.message": error.message}
            )
            span.set_status(Status(StatusCode.ERROR, f"{error.qualname}: {error.message}"))
            span.add_event(
                "exception",
                {
                    "exception.type": f"{error.module}.{error.qualname}",
                    "exception.message": error.message,
                    "exception.stacktrace": error.stacktrace,
                },
            )
        span.end()

    def _closing(self, run: Run) -> dict[str, Any]:
        """Say what was counted since the run began."""
        counted = {name: count - run.facts.get(name, 0) for name, count in self._counts().items()}
        facts: dict[str, Any] = {name: count for name, count in counted.items() if count or name == REPLACED}
        if run.lane_ends:
            facts["reenact.lane.ends"] = compact(dict(run.lane_ends))
        return facts

    def close(self, error: ExceptionRecord | None) -> None:
        """Close every open run, at the end of the process or of the recording."""
        for run in tuple(self._open.values()):
            self.end(run, error)
        self._process = None

    def opened(self) -> bool:
        """Tell whether any run was opened and is still open."""
        return bool(self._open)
