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
    attributes = span.attributes
    if attributes.get(_REQUEST) not in (None, *_UNSAID):
        return 0.92
    if any(name in attributes for name in (_REQUEST, _RESPONSE, _ARGUMENTS, _RESULT)):
        return 0.87
    return 0.85 if span.scope.name.startswith("gcp.vertex.agent") else 0.0


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    attributes = said_of(span)
    kind = _kind(span, attributes)
    if kind is CallKind.LLM:
        return semconv.call(span, attributes, NAME, _model(span, attributes))
    if kind is CallKind.TOOL:
        return semconv.call(span, attributes, NAME, _tool(span, attributes))
    return semconv.call(span, attributes, NAME, Reading(kind=kind))


def _kind(span: SpanRecord, attributes: dict[str, Json]) -> CallKind:
    if _REQUEST in attributes and _ARGUMENTS not in attributes:
        request = attributes.get(_REQUEST)
        tooled = as_text(attributes.get("gen_ai.operation.name")) == "execute_tool"
        return CallKind.TOOL if tooled and request in _UNSAID else CallKind.LLM
    if _ARGUMENTS in attributes or span.name.startswith("execute_tool"):
        return CallKind.TOOL
    kind = genai.kind_of(attributes)
    if kind is not CallKind.UNKNOWN:
        return kind
    if span.name.startswith(("agent_run", "invoke_agent")):
        return CallKind.AGENT
    return CallKind.CHAIN if span.name in ("invocation", "invoke_workflow") else kind


def _attribute_value(attributes: dict[str, Json], name: str) -> Json:
    value = attributes.get(name)
    return None if value in _UNSAID else structured(value)


def _model(span: SpanRecord, attributes: dict[str, Json]) -> Reading:
    asked, answered = parts.parts_exchange(attributes)
    event_reading = events.exchange_of_events(span.events)
    asked, answered = semconv.either(asked, event_reading[0]), semconv.or_else(answered, event_reading[1])
    whole: Asked | None = native.native_request(_attribute_value(attributes, _REQUEST))
    asked = semconv.either(whole, asked)
    reply: Answered | None = native.answered(_attribute_value(attributes, _RESPONSE))
    answered = semconv.or_else(reply, answered)
    losses: tuple[Loss, ...] = ()
    if asked is None or not asked.messages:
        losses = (_HIDDEN,)
    elif answered is None or not any(message.parts for message in answered.messages):
        losses = (_STREAMED,)
    return Reading(
        kind=CallKind.LLM,
        asked=_on_the_wire(asked, attributes),
        answered=answered,
        losses=losses,
        facts=events.facts(span.events),
    )


def _on_the_wire(asked: Asked | None, attributes: dict[str, Json]) -> Asked | None:
    """Name the model as its provider does: what goes by LiteLLM has the provider before it (`openai/gpt-4o`)."""
    model_name = (asked.model if asked is not None else None) or as_text(attributes.get("gen_ai.request.model"))
    provider = as_text(attributes.get("gen_ai.provider.name")) or as_text(attributes.get("gen_ai.system"))
    if asked is None or not provider or not model_name.startswith(f"{provider}/"):
        return asked
    return replace(asked, model=model_name.removeprefix(f"{provider}/"))


def _tool(span: SpanRecord, attributes: dict[str, Json]) -> Reading:
    arguments, output = _attribute_value(attributes, _ARGUMENTS), _attribute_value(attributes, _RESULT)
    if arguments is None and "gen_ai.tool.call.arguments" in attributes:
        arguments = plain(attributes["gen_ai.tool.call.arguments"])
    if output is None and "gen_ai.tool.call.result" in attributes:
        output = plain(attributes["gen_ai.tool.call.result"])
    facts: dict[str, Json] = {}
    name, output = _response(output, facts)
    return Reading(
        kind=CallKind.TOOL,
        name=as_text(attributes.get("gen_ai.tool.name")) or name or span.name.removeprefix("execute_tool "),
        arguments=arguments,
        result=output,
        has_result=output is not None,
        facts=facts,
    )


def _response(output: Json, facts: dict[str, Json]) -> tuple[str, Json]:
    """Open the event in which some releases keep a tool's answer: contents with one function response."""
    event = as_object(output)
    for part in map(as_object, as_list(as_object(event.get("content")).get("parts"))):
        answer = as_object(part.get("function_response") or part.get("functionResponse"))
        if answer:
            if identity := as_text(answer.get("id")):
                facts["gen_ai.tool.call.id"] = identity
            return as_text(answer.get("name")), answer.get("response")
    return "", output


DIALECT = Dialect(
    name=NAME,
    recognises=_recognises,
    decode=_decode,
    marks=SpanMarks(attributes=(_REQUEST, _RESPONSE, _ARGUMENTS, _RESULT), scopes=("gcp.vertex.agent",)),
    most=0.92,
)
