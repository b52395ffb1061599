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
    said = span.attributes
    if "request_data" in said and (span.scope.name.startswith("logfire") or "logfire.msg" in said):
        return 0.85
    if said.keys() >= _AGENTS and span.scope.name.startswith("logfire"):
        return 0.85
    if span.scope.name.startswith("logfire"):
        return 0.82 if "gen_ai.input.messages" in said else 0.4
    return 0.4 if "logfire.msg_template" in said and "gen_ai.operation.name" not in said else 0.0


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    said = said_of(span)
    kind = genai.kind_of(said)
    request = as_object(structured(said.get("request_data"))) or _of_an_agent(said)
    unknown_api = isinstance(said.get("url"), str) and set(request) <= {"model"}  # counting tokens, say
    if kind is CallKind.UNKNOWN and request and not unknown_api:
        kind = (
            CallKind.EMBEDDING if "input" in request and "embedding" in as_text(request.get("model")) else CallKind.LLM
        )
    if kind in (CallKind.LLM, CallKind.EMBEDDING):
        return semconv.call(span, said, NAME, _model(span, said, request, kind))
    return semconv.call(span, said, NAME, _own(span, said, kind))


def _model(span: SpanRecord, said: dict[str, Json], request: dict[str, Json], kind: CallKind) -> Reading:
    asked, answered = parts.told(said)
    whole = native.asked(request) if len(request) > 1 else None
    answered = semconv.or_else(answered, _replied(as_object(structured(said.get("response_data")))))
    answered = semconv.or_else(
        answered, native.answered(structured(said["response"])) if request and said.keys() >= _AGENTS else None
    )
    listed = events.told(events.listed(said.get("events")))
    if whole is not None and (whole.messages or whole.inputs):
        asked, losses = whole, tuple[Loss, ...]()
    else:
        asked = semconv.either(
            semconv.either(asked, listed[0]), _embedded(request) if kind is CallKind.EMBEDDING else None
        )
        losses = () if genai.parameters(said) else (_PARAMETERS,)
    answered = semconv.or_else(answered, listed[1])
    system = as_text(said.get("gen_ai.provider.name")) or as_text(said.get("gen_ai.system"))
    return Reading(
        kind=kind,
        asked=asked,
        answered=answered,
        losses=losses,
        system=system or span.scope.name.removeprefix("logfire."),
        api="responses" if "responses" in span.name.lower() or "instructions" in request else "",
    )


def _of_an_agent(said: dict[str, Json]) -> dict[str, Json]:
    """Put a request together from its input and what the reply repeats; what a provider fills in is none of it."""
    if not said.keys() >= _AGENTS:
        return {}
    reply = as_object(structured(said["response"]))
    told: dict[str, Json] = {"model": said.get("gen_ai.request.model"), "input": structured(said["raw_input"])}
    told |= {name: reply[name] for name in ("instructions", "tools") if reply.get(name)}
    return told


def _embedded(request: dict[str, Json]) -> Asked | None:
    given = request.get("input")
    texts = [given] if isinstance(given, str) else given if isinstance(given, list) else []
    return Asked(inputs=tuple(text for text in texts if isinstance(text, str))) if texts else None


def _replied(told: dict[str, Json]) -> Answered | None:
    """Read `response_data`: a message, or the text that a stream's pieces gave together."""
    if isinstance(message := told.get("message"), dict):
        return native.answered({"message": message, "usage": told.get("usage")})
    text = as_text(told.get("combined_chunk_content")) or as_text(told.get("text"))
    if text:
        return Answered(messages=(Message(role="assistant", parts=(Text(text),)),))
    return native.answered(told)


def _own(span: SpanRecord, said: dict[str, Json], kind: CallKind) -> Reading:
    given = {
        name: plain(value)
        for name, value in said.items()
        if name != "return" and not name.startswith(_NOT_GIVEN) and name not in ("async", "request_data")
    }
    named = as_text(said.get("code.function")).rpartition(".")[2]
    return Reading(
        kind=kind,
        name=as_text(said.get("logfire.msg_template")) or span.name or named,
        arguments=given if kind is CallKind.UNKNOWN else None,
        result=plain(said["return"]) if "return" in said else None,
        told="return" in said or None,
    )


DIALECT = Dialect(
    name=NAME,
    recognises=_recognises,
    decode=_decode,
    marks=SpanMarks(attributes=("logfire.msg", "logfire.msg_template"), scopes=("logfire",)),
    most=0.85,
)
