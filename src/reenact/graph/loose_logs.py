"""Log events of model calls that name neither trace nor span: which span each call's events are about.

An exporter that lost the context writes down what was said and not of which span. The events of one call follow each
other: its messages, then its choices; the details of an operation are one event. They are those of the span that has
the same response id; else of the only span that agrees in all that both say of the call, tokens among it. Where there
is none, each call stands for itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reenact.values.lenient import as_object
from reenact.values.log import LogRecord
from reenact.values.span import Attribute, SpanRecord

_PREFIX: Final = "gen_ai."
_CHOICE: Final = "gen_ai.choice"
_ID: Final = "gen_ai.response.id"
_PROOFS: Final = ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens")
"""What both must say for their agreement to prove anything."""
_UNSAID: Final = (
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.system_instructions",
    "gen_ai.tool.definitions",
)
"""Contents, which spans and events spell each in their own way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LooseCall:
    """The events of one call, and the span that they are about."""

    logs: tuple[LogRecord, ...]
    span: SpanRecord | None


def is_loose(log: LogRecord) -> bool:
    """Tell an event of a model call that names no trace and no span."""
    return not log.trace_id and not log.span_id and log.event_name.startswith(_PREFIX)


def proves(span: SpanRecord) -> bool:
    """Tell whether a span says enough of its call for events that name no span to be known as its own."""
    return _ID in span.attributes or all(name in span.attributes for name in _PROOFS)


def placed(logs: Iterable[LogRecord], spans: Sequence[SpanRecord], *, ids_only: bool = False) -> list[LogRecord]:
    """Give loose events in their order, those of a span that is there with its ids; the others as they were.

    With `ids_only` agreement in what is said proves nothing: spans that agree as well may be elsewhere.
    """
    whole: list[LogRecord] = []
    for call in loose_calls(logs, spans, ids_only=ids_only):
        ids = {} if call.span is None else {"trace_id": call.span.trace_id, "span_id": call.span.span_id}
        whole += [replace(log, **ids) for log in call.logs]
    return whole


def loose_calls(logs: Iterable[LogRecord], spans: Sequence[SpanRecord], *, ids_only: bool = False) -> list[LooseCall]:
    """Cut loose events into calls, in their order, each with the span that it is about where one is."""
    calls = _calls(logs)
    ids: set[str] = set()
    pairs: dict[int, SpanRecord] = {}
    for match in (_by_id,) if ids_only else (_by_id, _by_facts):
        for number, call in enumerate(calls):
            if number not in pairs and (span := match(call, [s for s in spans if s.span_id not in ids])) is not None:
                pairs[number] = span
                ids.add(span.span_id)
    return [LooseCall(logs=tuple(call), span=pairs.get(number)) for number, call in enumerate(calls)]


def _calls(logs: Iterable[LogRecord]) -> list[list[LogRecord]]:
    """Cut events into those of one call each; events of several programs or scopes may come mixed."""
    calls: list[list[LogRecord]] = []
    open_: dict[tuple[str, ...], list[LogRecord]] = defaultdict(list)
    for log in sorted(logs, key=lambda log: log.at_ns):
        source = log.scope.name, str(sorted(log.resource.attributes.items(), key=lambda item: item[0]))
        call = open_[source]
        if not call or _begins(log, call[-1]):
            call = open_[source] = []
            calls.append(call)
        call.append(log)
    return calls


def _begins(log: LogRecord, last: LogRecord) -> bool:
    """Tell whether an event is the first of another call."""
    if not (_is_message(log) and _is_message(last)):
        return True
    if log.event_name == _CHOICE:
        return last.event_name == _CHOICE and not as_object(log.body).get("index")
    return last.event_name == _CHOICE


def _is_message(log: LogRecord) -> bool:
    return log.event_name == _CHOICE or log.event_name.endswith(".message")


def _by_id(call: Sequence[LogRecord], spans: Sequence[SpanRecord]) -> SpanRecord | None:
    ids = [value for log in call if isinstance(value := log.attributes.get(_ID), str) and value]
    matches = [span for span in spans if span.attributes.get(_ID) in ids]
    return matches[0] if len(matches) == 1 else None


def _by_facts(call: Sequence[LogRecord], spans: Sequence[SpanRecord]) -> SpanRecord | None:
    facts = {name: value for log in call for name, value in log.attributes.items() if name.startswith(_PREFIX)}
    if not all(name in facts for name in _PROOFS):
        return None
    agree = [span for span in spans if _agrees(facts, span)]
    return agree[0] if len(agree) == 1 else None


def _agrees(facts: dict[str, Attribute], span: SpanRecord) -> bool:
    values = span.attributes
    both = [name for name in facts if name in values and name not in _UNSAID]
    return all(name in values for name in _PROOFS) and all(_plain(facts[name]) == _plain(values[name]) for name in both)


def _plain(value: Attribute) -> str:
    """Spell a value; a list of one is that one."""
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)
