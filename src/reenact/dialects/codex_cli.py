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
    told = event.attributes.get("event.name")
    name = told if isinstance(told, str) and told.startswith(_PREFIX) else event.name
    return name.removeprefix(_PREFIX) if name.startswith(_PREFIX) else ""


def _parts(span: SpanRecord) -> tuple[SpanRecord, ...]:
    return tuple(_call_spans(span)) if "reenact.synthetic" in span.attributes else ()


def _call_spans(span: SpanRecord) -> Iterator[SpanRecord]:
    asked: tuple[str, SpanEvent] | None = None
    seen: Counter[str] = Counter()
    for event in span.events:
        word, said = _word(event), event.attributes
        key = f"{word}/{event.time_ns}/{said.get('call_id', '')}"
        seen[key] += 1
        place = f"{key}/{seen[key]}"
        if word == "tool_result":
            yield _part(span, event, place, "codex.tool", said, word)
        elif word in ("api_request", "websocket_request"):
            if asked is not None:
                yield _part(span, asked[1], asked[0], "codex.api_request", asked[1].attributes, word)
            asked = (place, event)
        elif word in ("sse_event", "websocket_event") and said.get("event.kind") == "response.completed":
            known = {name: said[name] for name in _COUNTS if name in said}
            at, request = asked or (place, event)
            yield _part(span, request, at, "codex.api_request", {**request.attributes, **known}, "api_request", event)
            asked = None
    if asked is not None:
        yield _part(span, asked[1], asked[0], "codex.api_request", asked[1].attributes, "api_request")


def _part(
    span: SpanRecord,
    event: SpanEvent,
    place: str,
    name: str,
    said: Mapping[str, Attribute],
    word: str,
    ended: SpanEvent | None = None,
) -> SpanRecord:
    took = _number(said.get("duration_ms")) or 0
    start = max(event.time_ns - took * _MILLION, 0)
    attributes = {key: value for key, value in said.items() if key not in ("reenact.log", "body", "log.body")}
    attributes[_EVENT] = word
    end = max(event.time_ns, ended.time_ns if ended else 0)
    made = part(span, place, name=name, start_ns=start, end_ns=end, attributes=attributes)
    failed = said.get("success") in (False, "false") or bool(said.get("error.message"))
    told = str(said.get("error.message") or "")
    return replace(made, status=STATUS_ERROR, status_message=told) if failed and word != "tool_result" else made


def _number(value: Attribute) -> int | None:
    """Read a number, which the event log writes as text."""
    if isinstance(value, str):
        return int(value) if value.isdigit() and len(value) < 19 else None
    return as_count(value) if isinstance(value, int | float) else None


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    said = marked(said_of(span), _NAME)
    for name, other in (("session.id", "conversation.id"), ("session.id", "thread.id"), ("user.id", "user.account_id")):
        if isinstance(told := said.get(other), str) and "turn.id" not in name:
            said.setdefault(name, told)
    word = as_text(said.get(_EVENT))
    if word == "tool_result":
        return _tool(span, said)
    if word:
        model = as_text(said.get("model")) or as_text(said.get("slug"))
        answered = Answered(model=model or None, usage=_usage(said))
        told = marked(said, _NAME, [_NO_TEXT])
        return model_call(span, Asked(model=model or None), answered, said=told, system="openai", api="responses")
    prompt = next(
        (carried(event.attributes.get("prompt")) for event in span.events if _word(event) == "user_prompt"), None
    )
    hidden = not isinstance(prompt, str) or prompt == "[REDACTED]"
    given: Json = {} if hidden else {"prompt": prompt}
    turn = "turn.id" in said or "reenact.synthetic" in said
    return function_call(span, CallKind.AGENT if turn else CallKind.CHAIN, given, None, said=said)


def _usage(said: Mapping[str, Json]) -> Usage:
    counts: list[int | None] = []
    for name in _COUNTS:
        value = said.get(name)
        counts.append(_number(value) if isinstance(value, int | float | str) else None)
    return Usage(prompt=counts[0], completion=counts[1], cache_read=counts[2], reasoning=counts[3])


def _tool(span: SpanRecord, said: dict[str, Json]) -> tuple[Call, Outcome]:
    if called := as_text(said.get("call_id")):
        said[CALL_ID] = called
    given = said.get("arguments")
    arguments = parsed_or_none(given) if isinstance(given, str) else given
    name = as_text(said.get("tool_name")) or span.name
    told = said.get("output")
    return function_call(
        span,
        CallKind.TOOL,
        given if arguments is None else arguments,
        told,
        said=said,
        name=name,
        told="output" in said,
    )


DIALECT = Dialect(
    name=_NAME,
    recognises=_recognises,
    decode=_decode,
    parts=_parts,
    marks=SpanMarks(attributes=(_EVENT, "reenact.synthetic"), scopes=_SCOPES),
    most=0.95,
)
