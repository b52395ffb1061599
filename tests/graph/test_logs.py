from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from reenact.boundary.reading import asked
from reenact.graph.build import build
from reenact.graph.logs import joined
from reenact.read.open import open_spans
from reenact.values.log import LogRecord
from reenact.values.span import Resource, Scope, SpanEvent, SpanRecord

SPAN = SpanRecord(trace_id="a" * 32, span_id="b" * 16, parent_id=None, name="chat", start_ns=10, end_ns=90)
LOG = LogRecord(
    trace_id=SPAN.trace_id,
    span_id=SPAN.span_id,
    observed_ns=20,
    event_name="gen_ai.user.message",
    body={"content": "Hi"},
)


def test_a_log_event_becomes_an_event_of_its_span() -> None:
    (span,) = joined([SPAN, replace(LOG, attributes={"gen_ai.system": "openai"})])
    attributes = {"gen_ai.system": "openai", "body": '{"content":"Hi"}', "reenact.log": True}
    assert span == replace(SPAN, events=(SpanEvent(name="gen_ai.user.message", time_ns=20, attributes=attributes),))


def test_events_are_ordered_by_time_and_then_as_they_came() -> None:
    own = SpanEvent(name="own", time_ns=30)
    logs = [replace(LOG, event_name=name, observed_ns=at) for name, at in (("c", 30), ("a", 20), ("d", 40), ("b", 20))]
    (span,) = joined([*logs, replace(SPAN, events=(own,))])
    assert [event.name for event in span.events] == ["a", "b", "own", "c", "d"]


def test_the_time_of_an_event_goes_before_the_time_it_was_collected() -> None:
    (span,) = joined([SPAN, replace(LOG, time_ns=15)])
    assert [event.time_ns for event in span.events] == [15]


def test_an_attribute_named_body_is_not_lost_to_the_body() -> None:
    (span,) = joined([SPAN, replace(LOG, attributes={"body": '{"model": "m"}'}, body="api_request_body")])
    assert span.events[0].attributes == {
        "body": '{"model": "m"}',
        "log.body": '"api_request_body"',
        "reenact.log": True,
    }


def test_events_without_their_span_are_gathered_in_one_made_up_for_each() -> None:
    absent = replace(LOG, span_id="c" * 16, scope=Scope(name="an.emitter"))
    spans = joined([SPAN, absent, replace(absent, observed_ns=25), replace(LOG, span_id="")])
    assert spans[0] == SPAN
    made = {span.span_id: span for span in spans[1:]}
    assert len(made) == 2
    span = made["c" * 16]
    assert (span.trace_id, span.name, span.start_ns, span.end_ns) == (SPAN.trace_id, "an.emitter", 20, 25)
    assert span.attributes == {"reenact.synthetic": "log"}
    assert len(span.events) == 2


def test_events_without_a_trace_are_gathered_by_session() -> None:
    def of(session: str, name: str) -> LogRecord:
        attributes = {"session.id": session, "user.id": "ada"}
        return LogRecord(observed_ns=5, event_name=name, attributes=attributes, resource=Resource(attributes={"a": 1}))

    spans = joined([of("one", "user_prompt"), of("two", "user_prompt"), of("one", "api_request")])
    assert [len(span.events) for span in spans] == [2, 1]
    assert len({span.trace_id for span in spans}) == 2
    assert spans == joined([of("one", "user_prompt"), of("two", "user_prompt"), of("one", "api_request")])
    runs = build([of("one", "user_prompt"), of("two", "user_prompt")])
    assert {(run.session, run.user) for run in runs} == {("one", "ada"), ("two", "ada")}


def test_runs_are_built_of_spans_and_their_log_events() -> None:
    (run,) = build([LOG, SPAN])
    assert [event.name for event in run.nodes[0].span.events] == ["gen_ai.user.message"]


def test_every_real_log_event_lands_on_its_span(shared_data: Path) -> None:
    folder = shared_data / "traces" / "rosetta"
    for path in sorted(folder.glob("*.otlp.jsonl")):
        records = list(open_spans(path))
        logs = [record for record in records if isinstance(record, LogRecord)]
        assert bool(logs) == path.with_name(path.name.replace(".otlp.", ".otlp.logs.")).exists()
        spans = joined(records)
        assert not [span for span in spans if "reenact.synthetic" in span.attributes]
        events = [event for span in spans for event in span.events if "reenact.log" in event.attributes]
        assert len(events) == len(logs)
        assert all(event.name for event in events)
        bodies = [json.loads(str(event.attributes["body"])) for event in events if "body" in event.attributes]
        assert len(bodies) == sum(log.body is not None for log in logs)


def loose(records: list[SpanRecord | LogRecord]) -> list[SpanRecord | LogRecord]:
    """Take the context off every log event, as an exporter does that lost it."""
    return [replace(each, trace_id="", span_id="") if isinstance(each, LogRecord) else each for each in records]


def test_events_without_context_find_their_span_by_its_id_or_by_all_that_both_say(shared_data: Path) -> None:
    records = list(open_spans(shared_data / "traces" / "rosetta" / "otel-genai-new.otlp.jsonl"))
    placed = {span.span_id: [event.name for event in span.events] for span in joined(records)}
    assert {span.span_id: [event.name for event in span.events] for span in joined(loose(records))} == placed
    nameless = [
        replace(
            each, attributes={name: value for name, value in each.attributes.items() if name != "gen_ai.response.id"}
        )
        for each in records
    ]
    assert {span.span_id: [event.name for event in span.events] for span in joined(loose(nameless))} == placed


def test_what_finds_no_span_stays_apart_each_call_its_own(shared_data: Path) -> None:
    records = list(open_spans(shared_data / "traces" / "rosetta" / "otel-genai-v1.30.otlp.jsonl"))
    spans = joined(loose(records))
    made = [span for span in spans if "reenact.synthetic" in span.attributes]
    assert [[event.name.split(".")[1] for event in span.events] for span in made] == [
        ["system", "user", "choice"],
        ["system", "user", "assistant", "tool", "tool", "choice"],
    ]
    run = next(run for run in build(spans) if run.id == made[0].trace_id)
    calls = [node for node in run.nodes if node.kind.value == "LLM"]
    assert [len(said.messages) for node in calls if (said := asked(node)) is not None] == [2, 5]
    assert any("2 calls are told by log events alone" in note for note in run.notes)


def test_events_that_agree_with_two_spans_are_of_neither() -> None:
    said = {"gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 2}
    twice = [replace(SPAN, attributes=said), replace(SPAN, span_id="c" * 16, attributes=said)]
    log = LogRecord(observed_ns=20, event_name="gen_ai.client.inference.operation.details", attributes=said)
    assert [bool(span.events) for span in joined([*twice, log])] == [False, False, True]
    assert [bool(span.events) for span in joined([twice[0], log])] == [True]
