"""Claude Code (scopes `com.anthropic.claude_code.*`): its event log, and its spans where the beta is on.

From its documentation of monitoring and the code of those who read it. Events of the log have no span of their own;
`parts` gives each request to the model and each tool's run one. With `OTEL_LOG_RAW_API_BODIES` the log holds the exact
request and reply; else a model's call is known by its model and its tokens alone, and says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from reenact.contracts.dialect import Dialect, SpanMarks
from reenact.encodings import native
from reenact.foreign.foreign_call import CALL_ID, Loss, carried, function_call, marked, model_call, part, said_of
from reenact.values.call import Body, Call, CallKind, HttpReply, HttpRequest, Outcome, Raised, Returned, Unfinished
from reenact.values.exception_record import exception_of_span
from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_count, as_list, as_text
from reenact.values.message import Answered, Asked, Message, Text, Usage
from reenact.values.span import STATUS_ERROR, Attribute, SpanEvent, SpanRecord

_NAME: Final = "claude-code"
_PREFIX: Final = "claude_code."
_EVENT: Final = "claude_code.event"
_ASKED, _TOLD = "claude_code.request_body", "claude_code.response_body"
_HIDDEN: Final = "<REDACTED>"
_SHAPE: Final = "anthropic.messages"
_MILLION: Final = 1_000_000
_KEYS: Final = ("request_id", "tool_use_id", "event.sequence", "query_source", "tool_name")
"""What tells events of one instant apart."""
_RANKS: Final[Mapping[str, int]] = {"user_prompt": 0, "api_request_body": 1, "api_response_body": 2, "api_request": 3}
_TOKENS: Final = (
    ("gen_ai.usage.input_tokens", "input_tokens"),
    ("gen_ai.usage.output_tokens", "output_tokens"),
    ("gen_ai.usage.cache_read.input_tokens", "cache_read_tokens"),
    ("gen_ai.usage.cache_creation.input_tokens", "cache_creation_tokens"),
)
"""The convention's names for counts of tokens, by which a call that kept no words is counted, and its own."""
_NO_BODY: Final = Loss(
    field="content",
    lost="what was asked and answered: the log names the model and counts tokens",
    fix="set OTEL_LOG_RAW_API_BODIES=1, or record with `reenact run -- claude …`",
)
_NEW_ONLY: Final = Loss(
    field="messages",
    lost="the conversation before this turn: only what was new is kept",
    fix="set OTEL_LOG_RAW_API_BODIES=1",
)
_CUT: Final = Loss(
    field="content", lost="the end of a body, which was cut off", fix="set OTEL_LOG_RAW_API_BODIES=file:<folder>"
)
_NO_TOOL: Final = Loss(
    field="tool content",
    lost="a tool's arguments or result",
    fix="set OTEL_LOG_TOOL_DETAILS=1 and OTEL_LOG_TOOL_CONTENT=1",
)


def _recognises(span: SpanRecord) -> float:
    if _EVENT in span.attributes or span.name.startswith(_PREFIX):
        return 0.95
    if span.scope.name.startswith("com.anthropic.claude_code"):
        return 0.9
    return 0.9 if any(_is_ours(event) for event in span.events) and "reenact.synthetic" in span.attributes else 0.0


def _is_ours(event: SpanEvent) -> bool:
    body = event.attributes.get("log.body", event.attributes.get("body"))
    return event.name.startswith(_PREFIX) or (isinstance(body, str) and body.strip('"').startswith(_PREFIX))


def _word(event: SpanEvent) -> str:
    """Give an event's name less the program's; some pipelines keep it in the attribute `event.name` alone."""
    event_name = event.attributes.get("event.name")
    return (event_name if isinstance(event_name, str) and event_name else event.name).removeprefix(_PREFIX)


def _parts(span: SpanRecord) -> tuple[SpanRecord, ...]:
    """Give a span for each request to the model and each tool's run in a log that has no spans."""
    if "reenact.synthetic" not in span.attributes:
        return ()
    return tuple(_call_spans(span))


def _call_spans(span: SpanRecord) -> Iterator[SpanRecord]:
    asked: list[Mapping[str, Attribute]] = []
    responses: list[Mapping[str, Attribute]] = []
    counts: Counter[str] = Counter()
    for event in sorted(span.events, key=_order):
        word, attributes = _word(event), event.attributes
        key = f"{word}/{event.time_ns}/" + "/".join(str(attributes.get(name, "")) for name in _KEYS)
        counts[key] += 1
        place = f"{key}/{counts[key]}"
        if word == "api_request_body":
            asked.append(attributes)
        elif word == "api_response_body":
            responses.append(attributes)
        elif word in ("api_request", "api_error"):
            bodies = _body(_ASKED, _matching(asked, attributes)) | _body(_TOLD, _matching(responses, attributes))
            yield _part(span, event, place, f"{_PREFIX}llm_request", {**attributes, _EVENT: word, **bodies})
        elif word == "tool_result":
            yield _part(span, event, place, f"{_PREFIX}tool", {**attributes, _EVENT: word})
    for place, attributes in enumerate(asked):  # of a program that ended before it said how these came out
        more = {
            **attributes,
            _EVENT: "api_request_body",
            **_body(_ASKED, attributes),
            **_body(_TOLD, _matching(responses, attributes)),
        }
        start = span.end_ns
        yield part(span, f"open{place}", name=f"{_PREFIX}llm_request", start_ns=start, end_ns=start, attributes=more)


def _order(event: SpanEvent) -> tuple[int, int, int]:
    """Order events of one instant as the program counts them, or as they follow from each other."""
    word = _word(event)
    return event.time_ns, _number(event.attributes.get("event.sequence")) or 0, _RANKS.get(word, len(_RANKS))


def _matching(bodies: list[Mapping[str, Attribute]], attributes: Mapping[str, Attribute]) -> Mapping[str, Attribute]:
    """Take the body that belongs to a request: by its id where both say it, else the first of the same purpose."""
    for names in (("request_id",), ("prompt.id", "query_source"), ("query_source",)):
        keys = [attributes.get(name) for name in names]
        if any(key is None for key in keys):
            continue
        for place, body in enumerate(bodies):
            if [body.get(name) for name in names] == keys:
                return bodies.pop(place)
    return bodies.pop(0) if bodies and not attributes.get("query_source") else {}


def _body(name: str, attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    text = attributes.get("body")
    if not isinstance(text, str):
        return {}
    return {name: text, **({f"{name}.cut": True} if attributes.get("body_truncated") in (True, "true") else {})}


def _part(span: SpanRecord, event: SpanEvent, place: str, name: str, attributes: dict[str, Attribute]) -> SpanRecord:
    took = _number(attributes.get("duration_ms")) or 0
    start = max(event.time_ns - took * _MILLION, 0)
    span_attributes = {
        key: value for key, value in attributes.items() if key not in ("reenact.log", "body", "log.body")
    }
    call_span = part(span, place, name=name, start_ns=start, end_ns=event.time_ns, attributes=span_attributes)
    failed = attributes.get("success") in (False, "false") or attributes.get(_EVENT) == "api_error"
    message = str(attributes.get("error") or "")
    return replace(call_span, status=STATUS_ERROR, status_message=message) if failed else call_span


def _number(value: Attribute) -> int | None:
    """Read a number, which the event log writes as text."""
    if isinstance(value, str):
        return int(value) if value.isdigit() and len(value) < 19 else None
    return as_count(value) if isinstance(value, int | float) else None


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    attributes = marked(said_of(span), _NAME)
    if user := as_text(attributes.get("user.account_uuid")) or as_text(attributes.get("user.id")):
        attributes.setdefault("user.id", user)
    kind = as_text(attributes.get("span.type")) or span.name.removeprefix(_PREFIX)
    if kind == "llm_request":
        return _model(span, attributes)
    if kind == "tool":
        return _tool(span, attributes)
    prompt = attributes.get("user_prompt") or next(
        (carried(event.attributes.get("prompt")) for event in span.events if _word(event) == "user_prompt"), None
    )
    asks = kind == "interaction" or "reenact.synthetic" in attributes
    arguments: Json = {"prompt": prompt} if isinstance(prompt, str) and prompt != _HIDDEN else {}
    return function_call(span, CallKind.AGENT if asks else CallKind.CHAIN, arguments, None, attributes=attributes)


def _model(span: SpanRecord, fields: dict[str, Json]) -> tuple[Call, Outcome]:
    for event in span.events:  # a log of bodies that was joined to the request's own span
        for word, name in (("api_request_body", _ASKED), ("api_response_body", _TOLD)):
            if _word(event) == word:
                fields |= {key: carried(value) for key, value in _body(name, event.attributes).items()}
    body, reply = as_text(fields.pop(_ASKED, "")), as_text(fields.pop(_TOLD, ""))
    fields |= {
        name: count for name, own in _TOKENS if name not in fields and (count := _count(fields, own)) is not None
    }
    cut = [_CUT] if fields.get(f"{_ASKED}.cut") or fields.get(f"{_TOLD}.cut") else []
    if isinstance(parsed_or_none(body), dict):
        request = HttpRequest(shape=_SHAPE, method="POST", url="", body=Body(body.encode("utf-8", "surrogatepass")))
        attributes = marked(fields, _NAME, cut)
        return Call(kind=CallKind.LLM, name=span.name, request=request, attributes=attributes), _reply(span, reply)
    model = as_text(fields.get("gen_ai.request.model")) or as_text(fields.get("model"))
    news = as_text(fields.get("new_context")) or as_text(fields.get("user_prompt"))
    messages = (Message(role="user", parts=(Text(news),)),) if news and news != _HIDDEN else ()
    tools = native.tools(as_list(parsed_or_none(as_text(fields.get("tools")) or "null")))
    asked = Asked(model=model or None, messages=messages, tools=tools)
    losses = [*cut, _NEW_ONLY if messages else _NO_BODY]
    return model_call(
        span, asked, _answered(fields, model), attributes=marked(fields, _NAME, losses), system="anthropic"
    )


def _reply(span: SpanRecord, text: str) -> Outcome:
    if (failed := exception_of_span(span)) is not None:
        return Raised(exception=failed)
    if not isinstance(parsed_or_none(text), dict):
        return Unfinished()
    headers = (("content-type", "application/json"),)
    return Returned(payload=HttpReply(status=200, headers=headers, body=Body(text.encode("utf-8", "surrogatepass"))))


def _answered(attributes: Mapping[str, Json], model: str) -> Answered:
    text = as_text(attributes.get("response.model_output"))
    messages = (Message(role="assistant", parts=(Text(text),)),) if text and text != _HIDDEN else ()
    reason = as_text(attributes.get("stop_reason"))

    return Answered(
        model=as_text(attributes.get("gen_ai.response.model")) or model or None,
        id=as_text(attributes.get("gen_ai.response.id")) or None,
        messages=messages,
        finish_reasons=(reason,) if reason else (),
        usage=Usage(
            prompt=_count(attributes, "input_tokens"),
            completion=_count(attributes, "output_tokens"),
            cache_read=_count(attributes, "cache_read_tokens"),
            cache_write=_count(attributes, "cache_creation_tokens"),
        ),
    )


def _count(attributes: Mapping[str, Json], name: str) -> int | None:
    value = attributes.get(name)
    return _number(value) if isinstance(value, int | float | str) else None


def _tool(span: SpanRecord, attributes: dict[str, Json]) -> tuple[Call, Outcome]:
    """Read a tool's run: arguments and result are in its events, or were not kept."""
    if called := as_text(attributes.get("tool_use_id")):
        attributes.setdefault(CALL_ID, called)
    arguments: Json = None
    output: Json = None
    for event in span.events:
        if _word(event) == "tool_result":
            attributes |= {name: carried(value) for name, value in event.attributes.items() if name.startswith("tool_")}
        if _word(event) == "tool.output":
            fields = {name: carried(value) for name, value in event.attributes.items()}
            output = next((fields[name] for name in ("output", "content", "diff", "result") if name in fields), output)
            arguments = fields.get("input", arguments)
    for name in ("tool_input", "tool_parameters", "full_command"):
        arguments = arguments if arguments is not None else attributes.get(name)
    output = output if output is not None else attributes.get("tool_output")
    arguments, output = _content(arguments), _content(output)
    losses = [_NO_TOOL] if arguments is None or output is None else []
    name = as_text(attributes.get("tool_name")) or span.name
    return function_call(
        span, CallKind.TOOL, arguments, output, attributes=marked(attributes, _NAME, losses), name=name
    )


def _content(value: Json) -> Json:
    if not isinstance(value, str):
        return value
    if value == _HIDDEN:
        return None
    parsed = parsed_or_none(value)
    return value if parsed is None else parsed


DIALECT = Dialect(
    name=_NAME,
    recognises=_recognises,
    decode=_decode,
    parts=_parts,
    marks=SpanMarks(attributes=(_EVENT, "reenact.synthetic"), names=(_PREFIX,), scopes=("com.anthropic.claude_code",)),
    most=0.95,
)
