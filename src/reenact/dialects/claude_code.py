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
    told = event.attributes.get("event.name")
    return (told if isinstance(told, str) and told else event.name).removeprefix(_PREFIX)


def _parts(span: SpanRecord) -> tuple[SpanRecord, ...]:
    """Give a span for each request to the model and each tool's run in a log that has no spans."""
    if "reenact.synthetic" not in span.attributes:
        return ()
    return tuple(_call_spans(span))


def _call_spans(span: SpanRecord) -> Iterator[SpanRecord]:
    asked: list[Mapping[str, Attribute]] = []
    told: list[Mapping[str, Attribute]] = []
    seen: Counter[str] = Counter()
    for event in sorted(span.events, key=_order):
        word, said = _word(event), event.attributes
        key = f"{word}/{event.time_ns}/" + "/".join(str(said.get(name, "")) for name in _KEYS)
        seen[key] += 1
        place = f"{key}/{seen[key]}"
        if word == "api_request_body":
            asked.append(said)
        elif word == "api_response_body":
            told.append(said)
        elif word in ("api_request", "api_error"):
            bodies = _body(_ASKED, _matching(asked, said)) | _body(_TOLD, _matching(told, said))
            yield _part(span, event, place, f"{_PREFIX}llm_request", {**said, _EVENT: word, **bodies})
        elif word == "tool_result":
            yield _part(span, event, place, f"{_PREFIX}tool", {**said, _EVENT: word})
    for place, said in enumerate(asked):  # of a program that ended before it said how these came out
        more = {**said, _EVENT: "api_request_body", **_body(_ASKED, said), **_body(_TOLD, _matching(told, said))}
        start = span.end_ns
        yield part(span, f"open{place}", name=f"{_PREFIX}llm_request", start_ns=start, end_ns=start, attributes=more)


def _order(event: SpanEvent) -> tuple[int, int, int]:
    """Order events of one instant as the program counts them, or as they follow from each other."""
    word = _word(event)
    return event.time_ns, _number(event.attributes.get("event.sequence")) or 0, _RANKS.get(word, len(_RANKS))


def _matching(bodies: list[Mapping[str, Attribute]], said: Mapping[str, Attribute]) -> Mapping[str, Attribute]:
    """Take the body that belongs to a request: by its id where both say it, else the first of the same purpose."""
    for names in (("request_id",), ("prompt.id", "query_source"), ("query_source",)):
        keys = [said.get(name) for name in names]
        if any(key is None for key in keys):
            continue
        for place, body in enumerate(bodies):
            if [body.get(name) for name in names] == keys:
                return bodies.pop(place)
    return bodies.pop(0) if bodies and not said.get("query_source") else {}


def _body(name: str, said: Mapping[str, Attribute]) -> dict[str, Attribute]:
    text = said.get("body")
    if not isinstance(text, str):
        return {}
    return {name: text, **({f"{name}.cut": True} if said.get("body_truncated") in (True, "true") else {})}


def _part(span: SpanRecord, event: SpanEvent, place: str, name: str, attributes: dict[str, Attribute]) -> SpanRecord:
    took = _number(attributes.get("duration_ms")) or 0
    start = max(event.time_ns - took * _MILLION, 0)
    known = {key: value for key, value in attributes.items() if key not in ("reenact.log", "body", "log.body")}
    made = part(span, place, name=name, start_ns=start, end_ns=event.time_ns, attributes=known)
    failed = attributes.get("success") in (False, "false") or attributes.get(_EVENT) == "api_error"
    told = str(attributes.get("error") or "")
    return replace(made, status=STATUS_ERROR, status_message=told) if failed else made


def _number(value: Attribute) -> int | None:
    """Read a number, which the event log writes as text."""
    if isinstance(value, str):
        return int(value) if value.isdigit() and len(value) < 19 else None
    return as_count(value) if isinstance(value, int | float) else None


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    said = marked(said_of(span), _NAME)
    if user := as_text(said.get("user.account_uuid")) or as_text(said.get("user.id")):
        said.setdefault("user.id", user)
    kind = as_text(said.get("span.type")) or span.name.removeprefix(_PREFIX)
    if kind == "llm_request":
        return _model(span, said)
    if kind == "tool":
        return _tool(span, said)
    prompt = said.get("user_prompt") or next(
        (carried(event.attributes.get("prompt")) for event in span.events if _word(event) == "user_prompt"), None
    )
    asks = kind == "interaction" or "reenact.synthetic" in said
    given: Json = {"prompt": prompt} if isinstance(prompt, str) and prompt != _HIDDEN else {}
    return function_call(span, CallKind.AGENT if asks else CallKind.CHAIN, given, None, said=said)


def _model(span: SpanRecord, said: dict[str, Json]) -> tuple[Call, Outcome]:
    for event in span.events:  # a log of bodies that was joined to the request's own span
        for word, name in (("api_request_body", _ASKED), ("api_response_body", _TOLD)):
            if _word(event) == word:
                said |= {key: carried(value) for key, value in _body(name, event.attributes).items()}
    body, told = as_text(said.pop(_ASKED, "")), as_text(said.pop(_TOLD, ""))
    cut = [_CUT] if said.get(f"{_ASKED}.cut") or said.get(f"{_TOLD}.cut") else []
    if isinstance(parsed_or_none(body), dict):
        request = HttpRequest(shape=_SHAPE, method="POST", url="", body=Body(body.encode("utf-8", "surrogatepass")))
        attributes = marked(said, _NAME, cut)
        return Call(kind=CallKind.LLM, name=span.name, request=request, attributes=attributes), _reply(span, told)
    model = as_text(said.get("gen_ai.request.model")) or as_text(said.get("model"))
    news = as_text(said.get("new_context")) or as_text(said.get("user_prompt"))
    messages = (Message(role="user", parts=(Text(news),)),) if news and news != _HIDDEN else ()
    tools = native.tools(as_list(parsed_or_none(as_text(said.get("tools")) or "null")))
    asked = Asked(model=model or None, messages=messages, tools=tools)
    losses = [*cut, _NEW_ONLY if messages else _NO_BODY]
    return model_call(span, asked, _answered(said, model), said=marked(said, _NAME, losses), system="anthropic")


def _reply(span: SpanRecord, told: str) -> Outcome:
    if (failed := exception_of_span(span)) is not None:
        return Raised(exception=failed)
    if not isinstance(parsed_or_none(told), dict):
        return Unfinished()
    headers = (("content-type", "application/json"),)
    return Returned(payload=HttpReply(status=200, headers=headers, body=Body(told.encode("utf-8", "surrogatepass"))))


def _answered(said: Mapping[str, Json], model: str) -> Answered:
    text = as_text(said.get("response.model_output"))
    messages = (Message(role="assistant", parts=(Text(text),)),) if text and text != _HIDDEN else ()
    reason = as_text(said.get("stop_reason"))

    def count(name: str) -> int | None:
        value = said.get(name)
        return _number(value) if isinstance(value, int | float | str) else None

    return Answered(
        model=as_text(said.get("gen_ai.response.model")) or model or None,
        id=as_text(said.get("gen_ai.response.id")) or None,
        messages=messages,
        finish_reasons=(reason,) if reason else (),
        usage=Usage(
            prompt=count("input_tokens"),
            completion=count("output_tokens"),
            cache_read=count("cache_read_tokens"),
            cache_write=count("cache_creation_tokens"),
        ),
    )


def _tool(span: SpanRecord, said: dict[str, Json]) -> tuple[Call, Outcome]:
    """Read a tool's run: arguments and result are in its events, or were not kept."""
    if called := as_text(said.get("tool_use_id")):
        said[CALL_ID] = called
    given: Json = None
    told: Json = None
    for event in span.events:
        if _word(event) == "tool_result":
            said |= {name: carried(value) for name, value in event.attributes.items() if name.startswith("tool_")}
        if _word(event) == "tool.output":
            held = {name: carried(value) for name, value in event.attributes.items()}
            told = next((held[name] for name in ("output", "content", "diff", "result") if name in held), told)
            given = held.get("input", given)
    for name in ("tool_input", "tool_parameters", "full_command"):
        given = given if given is not None else said.get(name)
    told = told if told is not None else said.get("tool_output")
    given, told = _content(given), _content(told)
    losses = [_NO_TOOL] if given is None or told is None else []
    name = as_text(said.get("tool_name")) or span.name
    return function_call(span, CallKind.TOOL, given, told, said=marked(said, _NAME, losses), name=name)


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
