"""Log events become events of the spans they are about, so that a dialect finds all of a call in one place."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from reenact.values.json import compact
from reenact.values.log import LogRecord, Record
from reenact.values.span import Attribute, SpanEvent, SpanRecord

SYNTHETIC = "reenact.synthetic"
"""Attribute of a span that nobody recorded: `log` on one that carries log events whose own span is not there."""
APART = "reenact.log.apart"
"""Attribute of such a span that carries the events of one call, of which nothing says which span they are about."""
_MARK = "reenact.log"
_BODY, _BODY_BESIDE = "body", "log.body"
_SESSIONS = ("session.id", "gen_ai.conversation.id", "conversation.id", "thread.id")
_KEPT = (*_SESSIONS, "user.id", "user.account_uuid", "user.account_id", "user.email")
"""Attributes of log events that say whose run it is; the synthetic span has them too."""


def joined(records: Iterable[Record]) -> list[SpanRecord]:
    """Give the spans, each with its log events among its events, and spans made up for those whose own is missing.

    An event is named like its log event and holds its attributes, the JSON text of its body as `body` (as `log.body`
    where an attribute has that name), and `reenact.log`. The events of a span are ordered by time, then as they came.
    Log events that name no span that is there are gathered in one span for each (trace, span id), or for each session
    where they name no trace; such a span carries nothing else and says `reenact.synthetic = "log"`. Those of model
    calls that name nothing find their span by what they say (`graph.loose_logs`), or stand each for themselves.
    """
    spans: list[SpanRecord] = []
    logs: list[LogRecord] = []
    for record in records:
        if isinstance(record, SpanRecord):
            spans.append(record)
        else:
            logs.append(record)
    if not logs:
        return spans
    from reenact.graph.loose_logs import is_loose, loose_calls

    about: dict[tuple[str, str], list[LogRecord]] = defaultdict(list)
    apart: set[tuple[str, str]] = set()
    for call in loose_calls([log for log in logs if is_loose(log)], spans):
        place = (call.span.trace_id, call.span.span_id) if call.span is not None else _own_place(call.logs, len(apart))
        about[place] += call.logs
        if call.span is None:
            apart.add(place)
    for log in logs:
        if not is_loose(log):
            about[_place(log)].append(log)
    joined_spans = [_with(span, about.get((span.trace_id, span.span_id), [])) for span in spans]
    there = {(span.trace_id, span.span_id) for span in spans}
    synthetic_spans = [_made_up(place, events) for place, events in about.items() if place not in there]
    return joined_spans + [
        replace(span, attributes={**span.attributes, APART: True}) if (span.trace_id, span.span_id) in apart else span
        for span in synthetic_spans
    ]


def _own_place(logs: Sequence[LogRecord], number: int) -> tuple[str, str]:
    """Give the trace id to which the events of a call belong, and a span id that is made of them."""
    trace_id = _place(logs[0])[0]
    text = compact([number, *([log.at_ns, log.event_name, log.body] for log in logs)])
    return trace_id, _digest("call", trace_id + text)[:16]


def trace_of(log: LogRecord) -> str:
    """Give the trace id under which a log record belongs: its own, else one made of the session or program it is of."""
    return _place(log)[0]


def strays_of(span: SpanRecord) -> set[str]:
    """Give the trace ids under which log events belong that a span's program wrote and that name no trace."""
    sessions = {name: value for name in _SESSIONS if (value := span.attributes.get(name))}
    each = [LogRecord(resource=span.resource), *(LogRecord(attributes={name: sessions[name]}) for name in sessions)]
    return {trace_of(log) for log in each}


def _place(log: LogRecord) -> tuple[str, str]:
    """Give the trace and span id under which a log event belongs: its own, else ids made of what it belongs to."""
    if log.trace_id:
        return log.trace_id, log.span_id or _digest("trace", log.trace_id)[:16]
    session = next((str(value) for name in _SESSIONS if (value := log.attributes.get(name))), "")
    about = session or compact([str(log.resource.attributes.get(name, "")) for name in _INSTANCE])
    trace_id = _digest("session", about)
    return trace_id, log.span_id or trace_id[:16]


_INSTANCE = ("service.namespace", "service.name", "service.instance.id", "host.name", "process.pid")


def _digest(kind: str, text: str) -> str:
    return hashlib.sha256(f"reenact.{kind}:{text}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _with(span: SpanRecord, logs: list[LogRecord]) -> SpanRecord:
    if not logs:
        return span
    events = sorted([*span.events, *map(_event, logs)], key=lambda event: event.time_ns)
    return replace(span, events=tuple(events))


def _event(log: LogRecord) -> SpanEvent:
    attributes: dict[str, Attribute] = dict(log.attributes)
    if log.body is not None:
        attributes[_BODY_BESIDE if _BODY in attributes else _BODY] = compact(log.body)
    attributes[_MARK] = True
    return SpanEvent(
        name=log.event_name, time_ns=log.at_ns, attributes=attributes, dropped_attributes=log.dropped_attributes
    )


def _made_up(place: tuple[str, str], logs: list[LogRecord]) -> SpanRecord:
    first = logs[0]
    attributes: dict[str, Attribute] = {SYNTHETIC: "log"}
    for log in logs:
        attributes |= {
            name: log.attributes[name] for name in _KEPT if name in log.attributes and name not in attributes
        }
    times = [log.at_ns for log in logs]
    span = SpanRecord(
        trace_id=place[0],
        span_id=place[1],
        parent_id=None,
        name=first.scope.name or str(first.resource.attributes.get("service.name") or "") or "logs",
        start_ns=min(times),
        end_ns=max(times),
        attributes=attributes,
        resource=first.resource,
        scope=first.scope,
    )
    return _with(span, logs)
