"""Codex CLI (scopes `codex_cli_rs`, `codex_exec`): its event log, and the structure that its spans give.

From its documentation and the code of those who read it. The log tells which tools ran, with arguments and output, and
how many tokens a request took; no text of a request or a reply is ever in it. The rollout files under
`~/.codex/sessions` hold those. `parts` gives each request and each tool's run in the log a span of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from reenact.contracts.dialect import Dialect, SpanMarks
from reenact.foreign.foreign_call import CALL_ID, Loss, carried, function_call, marked, model_call, part, said_of
from reenact.values.call import Call, CallKind, Outcome
from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_count, as_text
from reenact.values.message import Answered, Asked, Usage
from reenact.values.span import STATUS_ERROR, Attribute, SpanEvent, SpanRecord

_NAME: Final = "codex-cli"
_PREFIX: Final = "codex."
_EVENT: Final = "codex.event"
_SCOPES: Final = ("codex_cli_rs", "codex_exec", "codex_otel", "codex_core")
_MILLION: Final = 1_000_000
_NO_TEXT: Final = Loss(
    field="content",
    lost="what was asked and answered, which Codex never logs",
    fix="read the rollout under ~/.codex/sessions instead, or record with `reenact run -- codex …`",
)
_COUNTS: Final = ("input_token_count", "output_token_count", "cached_token_count", "reasoning_token_count")


def _recognises(span: SpanRecord) -> float:
    if _EVENT in span.attributes:
        return 0.95
    if span.scope.name.startswith(_SCOPES):
        return 0.9
    synthetic = "reenact.synthetic" in span.attributes
    return 0.9 if synthetic and any(_word(event) for event in span.events) else 0.0


def _word(event: SpanEvent) -> str:
    """Give the name of an event of Codex less its prefix, and nothing for any other."""
    event_name = event.attributes.get("event.name")
    name = event_name if isinstance(event_name, str) and event_name.startswith(_PREFIX) else event.name
    return name.removeprefix(_PREFIX) if name.startswith(_PREFIX) else ""


def _parts(span: SpanRecord) -> tuple[SpanRecord, ...]:
    return tuple(_call_spans(span)) if "reenact.synthetic" in span.attributes else ()


def _call_spans(span: SpanRecord) -> Iterator[SpanRecord]:
    asked: tuple[str, SpanEvent] | None = None
    counts: Counter[str] = Counter()
    for event in span.events:
        word, attributes = _word(event), event.attributes
        key = f"{word}/{event.time_ns}/{attributes.get('call_id', '')}"
        counts[key] += 1
        place = f"{key}/{counts[key]}"
        if word == "tool_result":
            yield _part(span, event, place, "codex.tool", attributes, word)
        elif word in ("api_request", "websocket_request"):
            if asked is not None:
                yield _part(span, asked[1], asked[0], "codex.api_request", asked[1].attributes, word)
            asked = (place, event)
        elif word in ("sse_event", "websocket_event") and attributes.get("event.kind") == "response.completed":
            usage = {name: attributes[name] for name in _COUNTS if name in attributes}
            at, request = asked or (place, event)
            yield _part(span, request, at, "codex.api_request", {**request.attributes, **usage}, "api_request", event)
            asked = None
    if asked is not None:
        yield _part(span, asked[1], asked[0], "codex.api_request", asked[1].attributes, "api_request")


def _part(
    span: SpanRecord,
    event: SpanEvent,
    place: str,
    name: str,
    event_attributes: Mapping[str, Attribute],
    word: str,
    ended: SpanEvent | None = None,
) -> SpanRecord:
    took = _number(event_attributes.get("duration_ms")) or 0
    start = max(event.time_ns - took * _MILLION, 0)
    attributes = {
        key: value for key, value in event_attributes.items() if key not in ("reenact.log", "body", "log.body")
    }
    attributes[_EVENT] = word
    end = max(event.time_ns, ended.time_ns if ended else 0)
    call_span = part(span, place, name=name, start_ns=start, end_ns=end, attributes=attributes)
    failed = event_attributes.get("success") in (False, "false") or bool(event_attributes.get("error.message"))
    message = str(event_attributes.get("error.message") or "")
    return (
        replace(call_span, status=STATUS_ERROR, status_message=message)
        if failed and word != "tool_result"
        else call_span
    )


def _number(value: Attribute) -> int | None:
    """Read a number, which the event log writes as text."""
    if isinstance(value, str):
        return int(value) if value.isdigit() and len(value) < 19 else None
    return as_count(value) if isinstance(value, int | float) else None


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    attributes = marked(said_of(span), _NAME)
    for name, other in (("session.id", "conversation.id"), ("session.id", "thread.id"), ("user.id", "user.account_id")):
        if isinstance(value := attributes.get(other), str) and "turn.id" not in name:
            attributes.setdefault(name, value)
    word = as_text(attributes.get(_EVENT))
    if word == "tool_result":
        return _tool(span, attributes)
    if word:
        model = as_text(attributes.get("model")) or as_text(attributes.get("slug"))
        answered = Answered(model=model or None, usage=_usage(attributes))
        value = marked(attributes, _NAME, [_NO_TEXT])
        return model_call(
            span, Asked(model=model or None), answered, attributes=value, system="openai", api="responses"
        )
    prompt = next(
        (carried(event.attributes.get("prompt")) for event in span.events if _word(event) == "user_prompt"), None
    )
    hidden = not isinstance(prompt, str) or prompt == "[REDACTED]"
    arguments: Json = {} if hidden else {"prompt": prompt}
    turn = "turn.id" in attributes or "reenact.synthetic" in attributes
    return function_call(span, CallKind.AGENT if turn else CallKind.CHAIN, arguments, None, attributes=attributes)


def _usage(attributes: Mapping[str, Json]) -> Usage:
    counts: list[int | None] = []
    for name in _COUNTS:
        value = attributes.get(name)
        counts.append(_number(value) if isinstance(value, int | float | str) else None)
    return Usage(prompt=counts[0], completion=counts[1], cache_read=counts[2], reasoning=counts[3])


def _tool(span: SpanRecord, attributes: dict[str, Json]) -> tuple[Call, Outcome]:
    if called := as_text(attributes.get("call_id")):
        attributes.setdefault(CALL_ID, called)
    raw_arguments = attributes.get("arguments")
    arguments = parsed_or_none(raw_arguments) if isinstance(raw_arguments, str) else raw_arguments
    name = as_text(attributes.get("tool_name")) or span.name
    output = attributes.get("output")
    return function_call(
        span,
        CallKind.TOOL,
        raw_arguments if arguments is None else arguments,
        output,
        attributes=attributes,
        name=name,
        has_result="output" in attributes,
    )


DIALECT = Dialect(
    name=_NAME,
    recognises=_recognises,
    decode=_decode,
    parts=_parts,
    marks=SpanMarks(attributes=(_EVENT, "reenact.synthetic"), scopes=_SCOPES),
    most=0.95,
)
