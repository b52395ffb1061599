"""Google's Agent Development Kit: requests and replies of Gemini's shape as JSON text, whatever model answers.

`call_llm` and the `generate_content` below it tell of one call; the first says more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from reenact.contracts.dialect import Dialect, SpanMarks
from reenact.encodings import events, native, parts, semconv
from reenact.encodings.semconv import Reading
from reenact.foreign import genai
from reenact.foreign.foreign_call import Loss, plain, said_of
from reenact.values.call import Call, CallKind, Outcome
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, as_text, structured
from reenact.values.message import Answered, Asked
from reenact.values.span import SpanRecord

NAME: Final = "google-adk"
_REQUEST, _RESPONSE = "gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response"
_ARGUMENTS, _RESULT = "gcp.vertex.agent.tool_call_args", "gcp.vertex.agent.tool_response"
_UNSAID: Final = ("", "{}", "null", "N/A", "<not serializable>", '"<not serializable>"', "<not specified>")
_HIDDEN: Final = Loss(
    field="messages",
    lost="ADK was told to keep no content",
    fix="set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_AND_EVENT (and the opt-in to the latest"
    " conventions); before 2.0 ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=true",
)
_STREAMED: Final = Loss(
    field="reply",
    lost="the reply was never written, as ADK does where a stream was not read to its end",
    fix="read the stream to its end, or run without streaming",
)


def _recognises(span: SpanRecord) -> float:
    said = span.attributes
    if said.get(_REQUEST) not in (None, *_UNSAID):
        return 0.92
    if any(name in said for name in (_REQUEST, _RESPONSE, _ARGUMENTS, _RESULT)):
        return 0.87
    return 0.85 if span.scope.name.startswith("gcp.vertex.agent") else 0.0


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    said = said_of(span)
    kind = _kind(span, said)
    if kind is CallKind.LLM:
        return semconv.call(span, said, NAME, _model(span, said))
    if kind is CallKind.TOOL:
        return semconv.call(span, said, NAME, _tool(span, said))
    return semconv.call(span, said, NAME, Reading(kind=kind))


def _kind(span: SpanRecord, said: dict[str, Json]) -> CallKind:
    if _REQUEST in said and _ARGUMENTS not in said:
        request = said.get(_REQUEST)
        tooled = as_text(said.get("gen_ai.operation.name")) == "execute_tool"
        return CallKind.TOOL if tooled and request in _UNSAID else CallKind.LLM
    if _ARGUMENTS in said or span.name.startswith("execute_tool"):
        return CallKind.TOOL
    known = genai.kind_of(said)
    if known is not CallKind.UNKNOWN:
        return known
    if span.name.startswith(("agent_run", "invoke_agent")):
        return CallKind.AGENT
    return CallKind.CHAIN if span.name in ("invocation", "invoke_workflow") else known


def _known(said: dict[str, Json], name: str) -> Json:
    value = said.get(name)
    return None if value in _UNSAID else structured(value)


def _model(span: SpanRecord, said: dict[str, Json]) -> Reading:
    asked, answered = parts.told(said)
    told = events.told(span.events)
    asked, answered = semconv.either(asked, told[0]), semconv.or_else(answered, told[1])
    whole: Asked | None = native.asked(_known(said, _REQUEST))
    asked = semconv.either(whole, asked)
    reply: Answered | None = native.answered(_known(said, _RESPONSE))
    answered = semconv.or_else(reply, answered)
    losses: tuple[Loss, ...] = ()
    if asked is None or not asked.messages:
        losses = (_HIDDEN,)
    elif answered is None or not any(message.parts for message in answered.messages):
        losses = (_STREAMED,)
    return Reading(
        kind=CallKind.LLM,
        asked=_on_the_wire(asked, said),
        answered=answered,
        losses=losses,
        facts=events.facts(span.events),
    )


def _on_the_wire(asked: Asked | None, said: dict[str, Json]) -> Asked | None:
    """Name the model as its provider does: what goes by LiteLLM has the provider before it (`openai/gpt-4o`)."""
    named = (asked.model if asked is not None else None) or as_text(said.get("gen_ai.request.model"))
    provider = as_text(said.get("gen_ai.provider.name")) or as_text(said.get("gen_ai.system"))
    if asked is None or not provider or not named.startswith(f"{provider}/"):
        return asked
    return replace(asked, model=named.removeprefix(f"{provider}/"))


def _tool(span: SpanRecord, said: dict[str, Json]) -> Reading:
    given, told = _known(said, _ARGUMENTS), _known(said, _RESULT)
    if given is None and "gen_ai.tool.call.arguments" in said:
        given = plain(said["gen_ai.tool.call.arguments"])
    if told is None and "gen_ai.tool.call.result" in said:
        told = plain(said["gen_ai.tool.call.result"])
    known: dict[str, Json] = {}
    name, told = _response(told, known)
    return Reading(
        kind=CallKind.TOOL,
        name=as_text(said.get("gen_ai.tool.name")) or name or span.name.removeprefix("execute_tool "),
        arguments=given,
        result=told,
        told=told is not None,
        facts=known,
    )


def _response(told: Json, known: dict[str, Json]) -> tuple[str, Json]:
    """Open the event in which some releases keep a tool's answer: contents with one function response."""
    held = as_object(told)
    for part in map(as_object, as_list(as_object(held.get("content")).get("parts"))):
        answer = as_object(part.get("function_response") or part.get("functionResponse"))
        if answer:
            if identity := as_text(answer.get("id")):
                known["gen_ai.tool.call.id"] = identity
            return as_text(answer.get("name")), answer.get("response")
    return "", told


DIALECT = Dialect(
    name=NAME,
    recognises=_recognises,
    decode=_decode,
    marks=SpanMarks(attributes=(_REQUEST, _RESPONSE, _ARGUMENTS, _RESULT), scopes=("gcp.vertex.agent",)),
    most=0.92,
)
