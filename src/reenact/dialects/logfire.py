"""Logfire's instrumentation of the providers' SDKs, and the spans of its users.

New: OTel GenAI's parts messages as JSON text. Before its fifth release: the request as `request_data` and the reply's
message as `response_data`. A span of the user's own keeps arguments as attributes named like the parameters, and what
came back under `return`.
"""

from __future__ import annotations

from typing import Final

from reenact.contracts.dialect import Dialect, SpanMarks
from reenact.encodings import events, native, parts, semconv
from reenact.encodings.semconv import Reading
from reenact.foreign import genai
from reenact.foreign.foreign_call import Loss, plain, said_of
from reenact.values.call import Call, CallKind, Outcome
from reenact.values.json import Json
from reenact.values.lenient import as_object, as_text, structured
from reenact.values.message import Answered, Asked, Message, Text
from reenact.values.span import SpanRecord

NAME: Final = "logfire"
_NOT_GIVEN: Final = ("code.", "logfire.", "gen_ai.", "otel.", "http.", "reenact.", "service.", "thread.")
_AGENTS: Final = frozenset({"raw_input", "response"})
"""Of the OpenAI Agents SDK: the input of a request, and the reply as the API gave it, which repeats the rest."""
_PARAMETERS: Final = Loss(
    field="parameters",
    lost="logfire's spans keep no more of the request than its model, messages and tools",
    fix="none in this release: request_data holds the model alone",
)


def _recognises(span: SpanRecord) -> float:
    attributes = span.attributes
    if "request_data" in attributes and (span.scope.name.startswith("logfire") or "logfire.msg" in attributes):
        return 0.85
    if attributes.keys() >= _AGENTS and span.scope.name.startswith("logfire"):
        return 0.85
    if span.scope.name.startswith("logfire"):
        return 0.82 if "gen_ai.input.messages" in attributes else 0.4
    return 0.4 if "logfire.msg_template" in attributes and "gen_ai.operation.name" not in attributes else 0.0


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    attributes = said_of(span)
    kind = genai.kind_of(attributes)
    request = as_object(structured(attributes.get("request_data"))) or _of_an_agent(attributes)
    unknown_api = isinstance(attributes.get("url"), str) and set(request) <= {"model"}  # counting tokens, say
    if kind is CallKind.UNKNOWN and request and not unknown_api:
        kind = (
            CallKind.EMBEDDING if "input" in request and "embedding" in as_text(request.get("model")) else CallKind.LLM
        )
    if kind in (CallKind.LLM, CallKind.EMBEDDING):
        return semconv.call(span, attributes, NAME, _model(span, attributes, request, kind))
    return semconv.call(span, attributes, NAME, _own(span, attributes, kind))


def _model(span: SpanRecord, attributes: dict[str, Json], request: dict[str, Json], kind: CallKind) -> Reading:
    asked, answered = parts.parts_exchange(attributes)
    whole = native.native_request(request) if len(request) > 1 else None
    answered = semconv.or_else(answered, _replied(as_object(structured(attributes.get("response_data")))))
    answered = semconv.or_else(
        answered,
        native.answered(structured(attributes["response"])) if request and attributes.keys() >= _AGENTS else None,
    )
    listed = events.exchange_of_events(events.listed(attributes.get("events")))
    if whole is not None and (whole.messages or whole.inputs):
        asked, losses = whole, tuple[Loss, ...]()
    else:
        asked = semconv.either(
            semconv.either(asked, listed[0]), _embedded(request) if kind is CallKind.EMBEDDING else None
        )
        losses = () if genai.parameters(attributes) else (_PARAMETERS,)
    answered = semconv.or_else(answered, listed[1])
    system = as_text(attributes.get("gen_ai.provider.name")) or as_text(attributes.get("gen_ai.system"))
    return Reading(
        kind=kind,
        asked=asked,
        answered=answered,
        losses=losses,
        system=system or span.scope.name.removeprefix("logfire."),
        api="responses" if "responses" in span.name.lower() or "instructions" in request else "",
    )


def _of_an_agent(attributes: dict[str, Json]) -> dict[str, Json]:
    """Put a request together from its input and what the reply repeats; what a provider fills in is none of it."""
    if not attributes.keys() >= _AGENTS:
        return {}
    reply = as_object(structured(attributes["response"]))
    request: dict[str, Json] = {
        "model": attributes.get("gen_ai.request.model"),
        "input": structured(attributes["raw_input"]),
    }
    request |= {name: reply[name] for name in ("instructions", "tools") if reply.get(name)}
    return request


def _embedded(request: dict[str, Json]) -> Asked | None:
    raw_input = request.get("input")
    texts = [raw_input] if isinstance(raw_input, str) else raw_input if isinstance(raw_input, list) else []
    return Asked(inputs=tuple(text for text in texts if isinstance(text, str))) if texts else None


def _replied(response: dict[str, Json]) -> Answered | None:
    """Read `response_data`: a message, or the text that a stream's pieces gave together."""
    if isinstance(message := response.get("message"), dict):
        return native.answered({"message": message, "usage": response.get("usage")})
    text = as_text(response.get("combined_chunk_content")) or as_text(response.get("text"))
    if text:
        return Answered(messages=(Message(role="assistant", parts=(Text(text),)),))
    return native.answered(response)


def _own(span: SpanRecord, attributes: dict[str, Json], kind: CallKind) -> Reading:
    arguments = {
        name: plain(value)
        for name, value in attributes.items()
        if name != "return" and not name.startswith(_NOT_GIVEN) and name not in ("async", "request_data")
    }
    function_name = as_text(attributes.get("code.function")).rpartition(".")[2]
    return Reading(
        kind=kind,
        name=as_text(attributes.get("logfire.msg_template")) or span.name or function_name,
        arguments=arguments if kind is CallKind.UNKNOWN else None,
        result=plain(attributes["return"]) if "return" in attributes else None,
        has_result="return" in attributes or None,
    )


DIALECT = Dialect(
    name=NAME,
    recognises=_recognises,
    decode=_decode,
    marks=SpanMarks(attributes=("logfire.msg", "logfire.msg_template"), scopes=("logfire",)),
    most=0.85,
)
