from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from reenact.errors import InputError
from reenact.formats.jaeger_json import FORMAT
from reenact.formats.zipkin_json import FORMAT as ZIPKIN
from reenact.values.log import Record
from reenact.values.span import SpanRecord

TRACE, SPAN, OTHER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "00f067aa0ba902b7"


def told(**changed: Any) -> dict[str, Any]:
    span = {"traceID": TRACE, "spanID": SPAN, "operationName": "chat", "startTime": 5, "duration": 2, "processID": "p1"}
    return {"data": [{"traceID": TRACE, "spans": [span | changed], "processes": {"p1": {"serviceName": "desk"}}}]}


def read(document: object, member: Any = FORMAT) -> list[SpanRecord]:
    found: list[Record] = list(member.decode(io.BytesIO(json.dumps(document).encode()), Path("file")))
    return [record for record in found if isinstance(record, SpanRecord)]


def one(**changed: Any) -> SpanRecord:
    (span,) = read(told(**changed))
    return span


def tags(*pairs: tuple[str, str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "type": kind, "value": value} for key, kind, value in pairs]


def test_a_span_with_its_times_in_microseconds_and_its_process() -> None:
    span = one()
    assert (span.trace_id, span.span_id, span.parent_id, span.name) == (TRACE, SPAN, None, "chat")
    assert (span.start_ns, span.end_ns) == (5000, 7000)
    assert span.resource.attributes == {"service.name": "desk"}
    assert span.attributes.keys() == {"reenact.lost"}


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("string", "x", "x"),
        ("bool", True, True),
        ("bool", "true", True),
        ("int64", 7, 7),
        ("int64", "9223372036854775807", 2**63 - 1),
        ("float64", 1, 1.0),
        ("float64", "NaN", float("nan")),
        ("binary", "/w==", b"\xff"),
        ("string", '["stop"]', '["stop"]'),
    ],
)
def test_tags_of_every_type(kind: str, value: Any, expected: Any) -> None:
    assert repr(one(tags=tags(("a", kind, value))).attributes["a"]) == repr(expected)


def test_what_the_collector_spells_as_tags_is_kind_status_and_scope_again() -> None:
    span = one(
        tags=tags(
            ("span.kind", "string", "client"),
            ("otel.status_code", "string", "ERROR"),
            ("otel.status_description", "string", "no"),
            ("error", "bool", True),
            ("otel.scope.name", "string", "an.emitter"),
            ("otel.scope.version", "string", "1"),
            ("w3c.tracestate", "string", "a=b"),
        )
    )
    assert (span.kind, span.status, span.status_message, span.trace_state) == (3, 2, "no", "a=b")
    assert (span.scope.name, span.scope.version) == ("an.emitter", "1")
    assert span.attributes.keys() == {"reenact.lost"}


def test_an_error_of_old_clients_and_old_names_of_the_scope() -> None:
    span = one(tags=tags(("error", "bool", True), ("otel.library.name", "string", "old")))
    assert (span.status, span.scope.name, span.attributes["error"]) == (2, "old", True)


@pytest.mark.parametrize(
    ("references", "parent", "links"),
    [
        ([("CHILD_OF", TRACE, OTHER)], OTHER, 0),
        ([("FOLLOWS_FROM", TRACE, OTHER)], OTHER, 0),
        ([("FOLLOWS_FROM", TRACE, "1"), ("CHILD_OF", TRACE, OTHER)], OTHER, 1),
        ([("CHILD_OF", "f" * 32, OTHER)], None, 1),
        ([("CHILD_OF", TRACE, "f067aa0ba902b7")], OTHER, 0),
        ([("CHILD_OF", TRACE, "0")], None, 1),
    ],
)
def test_references_are_parents_or_links(references: list[Any], parent: str | None, links: int) -> None:
    span = one(references=[{"refType": kind, "traceID": trace, "spanID": of} for kind, trace, of in references])
    assert (span.parent_id, len(span.links)) == (parent, links)


def test_the_parent_of_the_oldest_clients() -> None:
    assert one(parentSpanID=OTHER).parent_id == OTHER
    assert one(parentSpanID="0").parent_id is None


def test_ids_that_lost_their_zeros() -> None:
    span = one(traceID="f7651916cd43dd", spanID="1")
    assert (span.trace_id, span.span_id) == ("f7651916cd43dd".zfill(32), "1".zfill(16))


def test_logs_are_events_named_by_their_field() -> None:
    fields = tags(("event", "string", "exception"), ("exception.type", "string", "ValueError"))
    (event,) = one(logs=[{"timestamp": 6, "fields": fields}]).events
    assert (event.name, event.time_ns, event.attributes) == ("exception", 6000, {"exception.type": "ValueError"})


@pytest.mark.parametrize("laid_out", ["page", "bare", "list", "lines", "with its process"])
def test_every_form_a_trace_comes_in(laid_out: str) -> None:
    page = told()
    (trace,) = page["data"]
    alone = {**trace["spans"][0], "process": {"serviceName": "desk"}}
    text = {
        "page": json.dumps(page, indent=2),
        "bare": json.dumps(trace),
        "list": json.dumps([trace]),
        "lines": f"{json.dumps(trace)}\n{json.dumps(trace)}\n",
        "with its process": json.dumps(alone),
    }[laid_out]
    assert FORMAT.recognises(text.encode()) > 0.9
    spans = list(FORMAT.decode(io.BytesIO(text.encode()), Path("file")))
    assert [span.resource.attributes for span in spans] == [{"service.name": "desk"}] * (1 + (laid_out == "lines"))


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"data": None, "errors": [{"code": 404, "msg": "trace not found"}]}, "trace not found"),
        (told(traceID="xyz"), "is not 32 hexadecimal digits"),
        (told(tags=[1]), "expected a tag to be an object"),
        (told(startTime="soon"), "not shaped like a trace of Jaeger"),
        ({"data": [{"traceID": TRACE, "spans": [{"spanID": SPAN}]}]}, "not shaped like a trace of Jaeger"),
    ],
)
def test_what_is_no_trace_of_jaeger_is_refused_by_line(document: object, said: str) -> None:
    with pytest.raises(InputError) as refusal:
        read(document)
    assert refusal.value.place == "file:1"
    assert said in refusal.value.problem


def test_zipkin_has_texts_alone() -> None:
    span = {
        "traceId": "8448eb211c80319c",
        "id": SPAN,
        "parentId": OTHER,
        "name": "chat",
        "kind": "CLIENT",
        "timestamp": 5,
        "duration": 2,
        "localEndpoint": {"serviceName": "desk", "ipv4": "10.0.0.1"},
        "annotations": [{"timestamp": 6, "value": '"said": {"a":1}'}, {"timestamp": 7, "value": "plain"}],
        "tags": {"n": "3", "error": "no", "otel.status_code": "ERROR", "otel.library.name": "an.emitter"},
    }
    for document in ([span], [[span]], span):
        assert ZIPKIN.recognises(json.dumps(document).encode()) > 0.9
        (found,) = read(document, ZIPKIN)
        assert (found.trace_id, found.parent_id) == ("8448eb211c80319c".zfill(32), OTHER)
        assert (found.kind, found.status, found.status_message) == (3, 2, "no")
        assert (found.start_ns, found.end_ns, found.scope.name) == (5000, 7000, "an.emitter")
        assert [(event.name, event.attributes) for event in found.events] == [("said", {"a": 1}), ("plain", {})]
        assert {name: value for name, value in found.attributes.items() if name != "reenact.lost"} == {
            "n": "3",
            "zipkin.localEndpoint": '{"ipv4":"10.0.0.1"}',
        }
