from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link, SpanContext, Status, StatusCode

from reenact.redact.engine import Engine
from reenact.redact.processor import RedactionSpanProcessor
from reenact.redact.rules import TOKEN_MARK

SECRET = "ghp_" + "aB3d" * 9
ELSEWHERE = SpanContext(7, 8, is_remote=True)


class Fails(Engine):
    """A redactor that cannot."""

    def text(self, text: str) -> str:
        raise RuntimeError(text)

    def attributes(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        raise RuntimeError(attributes)


class Listens(SpanProcessor):
    """Takes down what a processor sees of a span that begins."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        del parent_context
        links = [dict(link.attributes or {}) for link in span.links]
        self.seen.append(str((span.name, dict(span.attributes or {}), links, dict(span.resource.attributes))))


def program(redactor: Engine, inner: SpanProcessor | None = None) -> ReadableSpan | None:
    """A plain OpenTelemetry program that lets a secret slip wherever one can; gives what its exporter got."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource({"service.name": "test", "deploy.key": SECRET}))
    provider.add_span_processor(RedactionSpanProcessor(inner or SimpleSpanProcessor(exporter), redactor))
    tracer = provider.get_tracer("lib", "1.2", attributes={"scope.key": SECRET})
    link = Link(ELSEWHERE, {"why": SECRET})
    with tracer.start_as_current_span(f"fetch {SECRET}", attributes={"early": SECRET, "n": 1}, links=[link]) as span:
        span.set_attribute("late", f"with {SECRET}")
        span.set_attribute("early", f"again {SECRET}")
        span.set_attribute(SECRET, True)
        span.add_event(f"met {SECRET}", {"value": SECRET})
        span.record_exception(ValueError(f"no {SECRET}"))
        span.set_status(Status(StatusCode.ERROR, f"failed at {SECRET}"))
        span.update_name(f"fetched {SECRET}")
    return next(iter(exporter.get_finished_spans()), None)


def told(span: ReadableSpan) -> str:
    """Everything that a span says, as one text."""
    scope = span.instrumentation_scope
    parts = (
        span.name,
        dict(span.attributes or {}),
        [(event.name, dict(event.attributes or {})) for event in span.events],
        [dict(link.attributes or {}) for link in span.links],
        span.status.description,
        dict(span.resource.attributes),
        dict(scope.attributes or {}) if scope else {},
        span.to_json(),
    )
    return str(parts)


def test_no_secret_leaves_a_plain_opentelemetry_program() -> None:
    span = program(Engine(salt="00" * 16))
    assert span is not None
    said = told(span)
    assert SECRET not in said
    assert said.count(TOKEN_MARK) >= 10
    token = Engine(salt="00" * 16).token("github_token", SECRET)
    assert span.name == f"fetched {token}"
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, f"failed at {token}")
    assert dict(span.attributes or {}) == {"early": f"again {token}", "n": 1, "late": f"with {token}", token: True}
    assert [event.name for event in span.events] == [f"met {token}", "exception"]
    assert [link.context.span_id for link in span.links] == [ELSEWHERE.span_id]
    assert span.resource.attributes["deploy.key"] == token
    scope = span.instrumentation_scope
    assert scope is not None
    assert (scope.name, scope.version, (scope.attributes or {})["scope.key"]) == ("lib", "1.2", token)


def test_the_span_s_place_and_times_are_kept() -> None:
    span = program(Engine())
    assert span is not None
    assert span.context is not None
    assert span.start_time is not None
    assert span.end_time is not None
    assert span.start_time <= span.end_time
    assert span.kind is not None


def test_a_processor_sees_no_secret_when_a_span_begins_either() -> None:
    listens = Listens()
    program(Engine(), listens)
    assert len(listens.seen) == 1
    assert SECRET not in listens.seen[0]
    assert TOKEN_MARK in listens.seen[0]


@pytest.mark.parametrize("inner", [None, Listens()], ids=["ends", "begins"])
def test_where_redaction_fails_nothing_gets_through_and_the_span_stays(inner: Listens | None) -> None:
    span = program(Fails(), inner)
    if inner is not None:
        assert SECRET not in inner.seen[0]
        assert "could not be redacted" in inner.seen[0]
        return
    assert span is not None
    assert SECRET not in told(span)
    assert dict(span.attributes or {}) == {"reenact.redaction.failed": True}
    assert span.name == "reenact: could not be redacted"
    assert len(span.events) == 2


def test_what_the_program_itself_sees_of_its_span_is_untouched() -> None:
    provider = TracerProvider()
    provider.add_span_processor(RedactionSpanProcessor(SimpleSpanProcessor(InMemorySpanExporter()), Engine()))
    span = provider.get_tracer("t").start_span("s", attributes={"a": SECRET})
    span.end()
    assert isinstance(span, ReadableSpan)
    assert (span.attributes or {})["a"] == SECRET


def test_flush_and_shutdown_reach_the_protected_processor() -> None:
    class Counts(SpanProcessor):
        def __init__(self) -> None:
            self.said: list[str] = []

        def shutdown(self) -> None:
            self.said.append("shutdown")

        def force_flush(self, timeout_millis: int = 30_000) -> bool:
            self.said.append(f"flush {timeout_millis}")
            return False

    inner = Counts()
    processor = RedactionSpanProcessor(inner, Engine())
    assert processor.force_flush(5) is False
    processor.shutdown()
    assert inner.said == ["flush 5", "shutdown"]
