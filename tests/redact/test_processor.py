from __future__ import annotations

import gc
import json
import logging
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import (
    ConcurrentMultiSpanProcessor,
    ReadableSpan,
    Span,
    SpanLimits,
    SpanProcessor,
    TracerProvider,
)
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, Decision, Sampler, SamplingResult
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, Status, StatusCode, TraceFlags, TraceState

import reenact
from receivers import http_receiver
from reenact.redact import provider_processors
from reenact.redact.engine import Engine
from reenact.redact.exporter import RedactingSpanExporter
from reenact.redact.processor import RedactionSpanProcessor

TOKEN_MARK = "REDACTED_"

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
    marked = {"reenact.redaction.replaced.github_token": 10}
    facts = {"early": f"again {token}", "n": 1, "late": f"with {token}", token: True}
    assert dict(span.attributes or {}) == facts | marked
    assert [event.name for event in span.events] == [f"met {token}", "exception"]
    assert [link.context.span_id for link in span.links] == [ELSEWHERE.span_id]
    assert span.resource.attributes["deploy.key"] == token
    scope = span.instrumentation_scope
    assert scope is not None
    assert (scope.name, scope.version, (scope.attributes or {})["scope.key"]) == ("lib", "1.2", token)
    for each in (span.resource.attributes, scope.attributes or {}):
        assert each["reenact.redaction.replaced.github_token"] == 1


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


class Raises(SpanProcessor):
    """A processor that fails at everything, and says what it was given."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        del parent_context
        raise RuntimeError(span.name)

    def _on_ending(self, span: Span) -> None:
        raise RuntimeError(span.name)

    def on_end(self, span: ReadableSpan) -> None:
        raise RuntimeError(span.name)


def traced(*processors: SpanProcessor, **options: Any) -> trace.Tracer:
    provider = TracerProvider(shutdown_on_exit=False, **options)
    for processor in processors:
        provider.add_span_processor(processor)
    return provider.get_tracer("t")


def test_one_line_in_a_plain_program_redacts_and_says_by_what_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "canary-of-the-environment-1")
    exporter = InMemorySpanExporter()
    tracer = traced(reenact.RedactionSpanProcessor(SimpleSpanProcessor(exporter)))
    with tracer.start_as_current_span("s", attributes={"a": f"{SECRET} and {SECRET}", "b": SECRET}):
        pass
    (span,) = exporter.get_finished_spans()
    assert SECRET not in told(span)
    facts = dict(span.attributes or {})
    assert facts["reenact.redaction.replaced.github_token"] == 3
    assert facts["a"] == f"{facts['b']} and {facts['b']}"
    policy = span.resource.attributes["reenact.redaction.policy"]
    assert len(str(policy)) == 32


def test_a_span_in_which_nothing_was_replaced_bears_no_count() -> None:
    exporter = InMemorySpanExporter()
    traced(RedactionSpanProcessor(SimpleSpanProcessor(exporter), Engine())).start_span("s", attributes={"n": 1}).end()
    (span,) = exporter.get_finished_spans()
    assert dict(span.attributes or {}) == {"n": 1}


def test_every_byte_on_the_wire() -> None:
    canaries = {
        place: f"ghp_{place:x<36}" for place in ("state", "version", "schema", "nested", "bytes", "list", "dict")
    }
    with http_receiver() as receiver:
        batch = BatchSpanProcessor(OTLPSpanExporter(receiver.url))
        resource = Resource({"service.name": "t"}, f"https://example.com/{canaries['schema']}")
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        provider.add_span_processor(RedactionSpanProcessor(batch, Engine()))
        state = TraceState([("shop", canaries["state"]), ("other", "1")])
        remote = SpanContext(9, 10, is_remote=True, trace_flags=TraceFlags(1), trace_state=state)
        within = trace.set_span_in_context(NonRecordingSpan(remote))
        facts: dict[str, Any] = {
            "nested": json.dumps({"a": json.dumps([canaries["nested"]])}),
            "bytes": canaries["bytes"].encode(),
            "list": ["x", canaries["list"]],
            "dict": {"a": [{"b": canaries["dict"]}]},
        }
        tracer = provider.get_tracer(f"lib {SECRET}", canaries["version"], schema_url=f"https://x/?key={SECRET}")
        with tracer.start_as_current_span("s", within, attributes=facts, links=[Link(remote, {"a": 1})]):
            pass
        assert provider.force_flush()
        wire = receiver.wire()
        provider.shutdown()
    assert [place for place, canary in canaries.items() if canary.encode() in wire] == []
    assert SECRET.encode() not in wire
    assert wire.count(TOKEN_MARK.encode()) >= len(canaries)
    (span,) = receiver.requests[0].resource_spans[0].scope_spans[0].spans
    assert "other=1" in span.trace_state, "the rest of the trace state is kept"
    assert (int.from_bytes(span.trace_id), int.from_bytes(span.parent_span_id)) == (9, 10)


def test_what_the_limits_dropped_is_still_told() -> None:
    exporter = InMemorySpanExporter()
    limits = SpanLimits(max_span_attributes=1, max_events=1, max_links=1, max_event_attributes=1, max_link_attributes=1)
    tracer = traced(RedactionSpanProcessor(SimpleSpanProcessor(exporter), Engine()), span_limits=limits)
    span = tracer.start_span("s", attributes={"a": 1, "b": 2}, links=[Link(ELSEWHERE, {"a": 1, "b": 2}) for _ in "xyz"])
    for _ in range(4):
        span.add_event("e", {"a": 1, "b": 2, "c": 3})
    span.end()
    assert isinstance(span, ReadableSpan)
    (copy,) = exporter.get_finished_spans()
    given = (span.dropped_attributes, span.dropped_events, span.dropped_links, span.events[0].dropped_attributes)
    assert given == (1, 3, 2, 2)
    assert given == (
        copy.dropped_attributes,
        copy.dropped_events,
        copy.dropped_links,
        copy.events[0].dropped_attributes,
    )
    assert copy.links[0].dropped_attributes == span.links[0].dropped_attributes == 1


def test_a_failing_processor_costs_the_program_nothing_and_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    tracer = traced(RedactionSpanProcessor(Raises(), Engine()))
    with caplog.at_level(logging.WARNING, "reenact"):
        for _ in range(3):
            with tracer.start_as_current_span(f"s {SECRET}"):
                pass
    assert [record.getMessage() for record in caplog.records] == [
        "reenact: Raises() failed on a span (RuntimeError); the program goes on"
    ]


def test_the_recorder_s_own_pipe_is_not_marked_and_hears_of_failures() -> None:
    exporter = InMemorySpanExporter()
    tracer = traced(RedactionSpanProcessor(SimpleSpanProcessor(exporter), Engine(), own=True))
    tracer.start_span(SECRET, attributes={"a": SECRET}).end()
    (span,) = exporter.get_finished_spans()
    assert set(span.attributes or {}) == {"a"}
    assert not [key for key in span.resource.attributes if key.startswith("reenact.")]
    with pytest.raises(RuntimeError):
        traced(RedactionSpanProcessor(Raises(), Engine(), own=True)).start_span("s")


class Writes(SpanProcessor):
    """Writes to spans, as processors do that copy baggage."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        del parent_context
        span.set_attribute("baggage", SECRET)
        span.update_name(f"{span.name} {SECRET}")

    def on_end(self, span: ReadableSpan) -> None:
        span._attributes = {**(span.attributes or {}), "added": SECRET}


def test_what_a_protected_processor_writes_is_the_span_s() -> None:
    exporter = InMemorySpanExporter()
    tracer = traced(
        RedactionSpanProcessor(Writes(), Engine(salt="00" * 16)),
        RedactionSpanProcessor(SimpleSpanProcessor(exporter), Engine(salt="00" * 16)),
    )
    span = tracer.start_span("s")
    assert isinstance(span, ReadableSpan)
    assert (span.attributes or {})["baggage"] == SECRET
    span.end()
    (copy,) = exporter.get_finished_spans()
    token = Engine(salt="00" * 16).token("github_token", SECRET)
    assert copy.name == f"s {token}"
    facts = {key: value for key, value in (copy.attributes or {}).items() if not key.startswith("reenact.")}
    assert facts == {"baggage": token, "added": token}


class ExportsPending(SpanProcessor):
    """Exports a span when it begins and whenever it is asked, as processors for live views do."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.live: list[Span] = []

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        del parent_context
        self.live.append(span)
        self.tell()

    def _on_ending(self, span: Span) -> None:
        self.live.append(span)
        self.tell()

    def tell(self) -> None:
        for span in self.live:
            private = {
                name: getattr(span, name) for name in ("_name", "_attributes", "_events", "_status", "_resource")
            }
            self.told += [told(span), span._readable_span().to_json(), str(span.context), str(private)]
            self.told[-1] += f"{span} {span!r} {span.get_span_context()}"


def test_a_processor_that_keeps_living_spans_sees_no_secret_of_any() -> None:
    live = ExportsPending()
    resource = Resource({"deploy.key": SECRET})
    tracer = traced(RedactionSpanProcessor(live, Engine()), resource=resource)
    span = tracer.start_span(f"s {SECRET}", attributes={"a": SECRET}, links=[Link(ELSEWHERE, {"why": SECRET})])
    span.add_event(SECRET, {"value": SECRET})
    span.set_status(Status(StatusCode.ERROR, SECRET))
    span.set_attribute("late", SECRET)
    live.tell()
    span.end()
    assert len(live.told) == 4 + 4 + 8
    assert not [each for each in live.told if SECRET in each]
    assert isinstance(live.live[0], Span)


def test_spans_that_never_end_are_not_kept() -> None:
    processor = RedactionSpanProcessor(Listens(), Engine())
    tracer = traced(processor)
    held = [tracer.start_span("s", attributes={"n": number}) for number in range(500)]
    assert len(processor._starts) == 500
    del held
    gc.collect()
    assert processor._starts == {}
    for number in range(10):
        tracer.start_span("s", attributes={"n": number}).end()
    assert processor._starts == {}


class RecordsOnly(Sampler):
    def should_sample(self, *args: Any, **kwargs: Any) -> SamplingResult:
        del args, kwargs
        return SamplingResult(Decision.RECORD_ONLY)

    def get_description(self) -> str:
        return "records only"


def test_spans_that_are_not_sampled() -> None:
    exporter, listens = InMemorySpanExporter(), Listens()
    for sampler, heard in ((ALWAYS_OFF, 0), (RecordsOnly(), 1)):
        engine = Engine()
        processors = RedactionSpanProcessor(SimpleSpanProcessor(exporter), engine), RedactionSpanProcessor(listens)
        traced(*processors, sampler=sampler).start_span(f"s {SECRET}", attributes={"a": SECRET}).end()
        assert exporter.get_finished_spans() == ()
        assert sum(engine.replaced.values()) == 0, "nobody would have got it"
        assert len(listens.seen) == heard
    assert SECRET not in listens.seen[0]


def test_threads_share_one_processor_and_count_their_own() -> None:
    exporter = InMemorySpanExporter()
    multi = ConcurrentMultiSpanProcessor(num_threads=4)
    multi.add_span_processor(RedactionSpanProcessor(SimpleSpanProcessor(exporter), Engine()))
    tracer = traced(active_span_processor=multi)

    def work(worker: int) -> None:
        for number in range(40):
            secrets = [f"ghp_{worker:02}{number:04}{which:030}" for which in range(number % 4)]
            tracer.start_span("s", attributes={"of": number % 4, "all": secrets}).end()

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spans = exporter.get_finished_spans()
    assert len(spans) == 8 * 40
    for span in spans:
        facts = span.attributes or {}
        assert facts.get("reenact.redaction.replaced.github_token", 0) == facts["of"]
        assert "ghp_" not in told(span)


def test_an_exporter_that_keeps_a_span_keeps_what_it_was() -> None:
    exporter = InMemorySpanExporter()
    tracer = traced(RedactionSpanProcessor(SimpleSpanProcessor(exporter), Engine()))
    nested = {"a": ["x"]}
    span = tracer.start_span("s", attributes={"d": nested})
    span.end()
    (copy,) = exporter.get_finished_spans()
    before = told(copy)
    nested["a"].append(SECRET)
    assert told(copy) == before


def test_exporters_registered_beside_are_named_once(caplog: pytest.LogCaptureFixture) -> None:
    provider_processors._warned.clear()
    beside = BatchSpanProcessor(InMemorySpanExporter())
    with caplog.at_level(logging.WARNING, "reenact"):
        tracer = traced(beside, Listens(), RedactionSpanProcessor(SimpleSpanProcessor(InMemorySpanExporter())))
        for _ in range(3):
            tracer.start_span("s").end()
        covered = traced(
            SimpleSpanProcessor(RedactingSpanExporter(InMemorySpanExporter())),
            RedactionSpanProcessor(SimpleSpanProcessor(InMemorySpanExporter())),
        )
        covered.start_span("s").end()
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 1
    assert "BatchSpanProcessor(InMemorySpanExporter)" in said[0]
    assert "reenact.redact_everything(provider)" in said[0]
    beside.shutdown()


def test_one_registered_later_is_named_too(caplog: pytest.LogCaptureFixture) -> None:
    provider_processors._warned.clear()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(RedactionSpanProcessor(SimpleSpanProcessor(InMemorySpanExporter())))
    with caplog.at_level(logging.WARNING, "reenact"):
        provider.get_tracer("t").start_span("s").end()
        assert caplog.records == []
        provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(formatter=lambda _: "")))
        provider.get_tracer("t").start_span("s").end()
    assert ["SimpleSpanProcessor(ConsoleSpanExporter)" in record.getMessage() for record in caplog.records] == [True]


def test_one_attribute_that_cannot_be_redacted_costs_that_attribute() -> None:
    class Stumbles(Engine):
        def attributes(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
            if "bad" in attributes:
                raise RuntimeError(attributes["bad"])
            return super().attributes(attributes)

    exporter = InMemorySpanExporter()
    tracer = traced(RedactionSpanProcessor(SimpleSpanProcessor(exporter), Stumbles(salt="00" * 16)))
    tracer.start_span("s", attributes={"bad": SECRET, "good": SECRET, "n": 1}).end()
    facts = dict(exporter.get_finished_spans()[0].attributes or {})
    token = Engine(salt="00" * 16).token("github_token", SECRET)
    assert {key: facts[key] for key in ("good", "n", "reenact.redaction.failed")} == {
        "good": token,
        "n": 1,
        "reenact.redaction.failed": True,
    }
    assert "bad" not in facts


def test_a_span_that_cannot_be_copied_keeps_its_place_and_nothing_else() -> None:
    class Broken(ReadableSpan):
        @property
        def events(self) -> Any:
            raise RuntimeError(SECRET)

    exporter = InMemorySpanExporter()
    processor = RedactionSpanProcessor(SimpleSpanProcessor(exporter), Engine())
    where = SpanContext(1, 2, is_remote=False, trace_flags=TraceFlags(1))
    processor.on_end(Broken(SECRET, where, attributes={"a": SECRET}, start_time=3, end_time=4))
    (span,) = exporter.get_finished_spans()
    assert SECRET not in told(span)
    assert (span.context, span.start_time, span.end_time) == (where, 3, 4)
    assert dict(span.attributes or {}) == {"reenact.redaction.failed": True}


@pytest.mark.parametrize("spelled", ["{}", '{{"choices": [{{"delta": {{"content": "{}"}}}}]}}'], ids=["text", "JSON"])
def test_a_secret_that_is_cut_by_the_pieces_of_a_stream(spelled: str) -> None:
    exporter = InMemorySpanExporter()
    tracer = traced(RedactionSpanProcessor(SimpleSpanProcessor(exporter), Engine()))
    for cut in range(1, len(SECRET)):
        span = tracer.start_span("chat")
        for piece in ("Use ", SECRET[:cut], SECRET[cut:], " now."):
            span.add_event("gen_ai.content.chunk", {"gen_ai.delta": spelled.format(piece), "index": 1})
            span.add_event("tick", {"at": "1"})
        span.end()
    for span in exporter.get_finished_spans():
        pieces = [str((event.attributes or {}).get("gen_ai.delta", "")) for event in span.events]
        whole = "".join(
            json.loads(each)["choices"][0]["delta"]["content"] if each[:1] == "{" else each for each in pieces
        )
        assert whole.startswith("Use REDACTED_github_token_")
        assert whole.endswith(" now.")
        assert len(whole) == len("Use REDACTED_github_token_ now.") + 20
        assert [event.name for event in span.events] == ["gen_ai.content.chunk", "tick"] * 4


POLICY = """
name = "of tools"

[[rule]]
kind = "TOOL"
attribute = "*put"
whole = true
do = "drop"

[[rule]]
kind = "TOOL"
attribute = "result"
whole = true
do = "pseudonymise"

[[rule]]
tool = "pay"
attribute = "status"
whole = true
do = "mask"
"""


@pytest.mark.parametrize(
    "says",
    [
        {"openinference.span.kind": "TOOL", "tool.name": "pay"},
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "pay"},
        {"traceloop.span.kind": "tool", "traceloop.entity.name": "pay"},
    ],
    ids=["OpenInference", "GenAI", "OpenLLMetry"],
)
@pytest.mark.parametrize("early", [True, False], ids=["it says so when it begins", "when it ends"])
def test_a_policy_of_kinds_and_tools_holds_for_spans_of_all_conventions(
    tmp_path: Path, says: dict[str, str], *, early: bool
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY, encoding="utf-8")
    exporter, listens = InMemorySpanExporter(), Listens()
    tracer = traced(
        reenact.RedactionSpanProcessor(SimpleSpanProcessor(exporter), policy=policy),
        reenact.RedactionSpanProcessor(listens, policy=policy),
    )
    secret = "a word that nothing but its place makes a secret"
    with tracer.start_as_current_span("s", attributes={"input": secret, **(says if early else {})}) as span:
        span.add_event("done", {"result": secret})
        span.set_attributes(says)
        span.set_status(Status(StatusCode.ERROR, secret))
    with tracer.start_as_current_span("other", attributes={"input": secret}):
        pass
    of_a_tool, other = exporter.get_finished_spans()
    assert secret not in told(of_a_tool)
    assert [event.name for event in of_a_tool.events] == ["done"]
    assert (other.attributes or {})["input"] == secret
    assert (secret in listens.seen[0]) is not early
