"""AgentOps: numbered messages (`gen_ai.prompt.0.role`), and tools as spans with `agentops.tool.*` or `tool.*`.

Its dashboard's export is read into the same names (`formats.agentops_export`). Some of its instrumentations write the
tools that a reply calls on spans below the model's, `tool_call.<name>`, with what they are called with and no result:
nothing ran there, so such a span only says what the reply asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from reenact.contracts.dialect import Dialect, SpanMarks
from reenact.encodings import indexed, native, parts, semconv, tool_io
from reenact.encodings.semconv import Reading
from reenact.foreign import genai
from reenact.foreign.foreign_call import Loss, provider_of, said_of
from reenact.values.call import Call, CallKind, Outcome
from reenact.values.json import Json
from reenact.values.lenient import as_object, as_text, structured
from reenact.values.message import Asked
from reenact.values.span import SpanRecord

_KINDS: Final[Mapping[str, CallKind]] = {
    "llm": CallKind.LLM,
    "tool": CallKind.TOOL,
    "agent": CallKind.AGENT,
    "guardrail": CallKind.GUARDRAIL,
    "embedding": CallKind.EMBEDDING,
    "http": CallKind.UNKNOWN,
}
"""`agentops.span.kind`, whose words may stand as the `repr` of an enumeration; the others only give structure."""
_ASKED_FOR: Final = "tool_call."
_OWN_NAMES: Final = ("gen_ai.request.functions.0.name", "gen_ai.request.streaming", "gen_ai.request.tools.0.name")
"""What only AgentOps writes beside numbered messages: its spans of providers carry the provider's scope."""
_FRAMEWORKS: Final = frozenset(
    {"crewai", "langchain", "autogen", "agno", "smolagents", "langgraph", "google_adk", "ag2"},
)
_TOOL_CALLS: Final = Loss(
    field="reply",
    lost="the tools that the reply called: AgentOps writes them on spans below the model's, if at all",
    fix="record the HTTP requests, or trace with an instrumentation that keeps them (OpenInference, OpenLLMetry)",
)


def _recognises(span: SpanRecord) -> float:
    attributes = span.attributes
    if any(name in attributes for name in ("agentops.span.kind", "agentops.entity.name", "agentops.tool.input")):
        return 0.95
    if span.scope.name.startswith("agentops"):
        return 0.93
    if "gen_ai.prompt.0.role" in attributes and any(name in attributes for name in _OWN_NAMES):
        return 0.93
    return 0.4 if any(name.startswith("agentops.") for name in attributes) else 0.0


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    attributes = said_of(span)
    kind = _kind(attributes, span)
    if kind in (CallKind.LLM, CallKind.EMBEDDING):
        return semconv.call(span, attributes, "agentops", _model(kind, attributes))
    raw_arguments = _first(attributes, "agentops.tool.input", "tool.parameters", "agentops.entity.input", "input.value")
    output = _first(attributes, "agentops.tool.output", "tool.result", "agentops.entity.output", "output.value")
    result, result_id = tool_io.result(structured(output)) if kind is CallKind.TOOL else (structured(output), "")
    call_id = result_id or as_text(attributes.get("tool.call.id"))
    reading = Reading(
        kind=kind,
        name=_name(attributes, span) if kind is CallKind.TOOL or _is_asked_for(span) else "",
        arguments=tool_io.arguments(structured(raw_arguments)),
        result=result,
        has_result=output is not None,
        facts={"gen_ai.tool.call.id": call_id} if call_id else {},
    )
    return semconv.call(span, attributes, "agentops", reading)


def _first(attributes: Mapping[str, Json], *names: str) -> Json:
    return next((attributes[name] for name in names if attributes.get(name) not in (None, "")), None)


def _name(attributes: Mapping[str, Json], span: SpanRecord) -> str:
    names = (as_text(attributes.get(name)) for name in ("tool.name", "operation.name", "agentops.entity.name"))
    return next((name for name in names if name), span.name.removesuffix(".tool"))


def _is_asked_for(span: SpanRecord) -> bool:
    return span.name.startswith(_ASKED_FOR) and "tool.result" not in span.attributes


def _kind(attributes: Mapping[str, Json], span: SpanRecord) -> CallKind:
    if _is_asked_for(span):
        return CallKind.CHAIN
    word = as_text(attributes.get("agentops.span.kind")).rpartition(".")[2].lower()
    if word in _KINDS:
        return _KINDS[word]
    if "tool.name" in attributes or "agentops.tool.input" in attributes:
        return CallKind.TOOL
    kind = genai.kind_of(attributes)
    if kind is not CallKind.UNKNOWN:
        return kind
    return (
        CallKind.LLM
        if indexed.speaks(attributes) or indexed.speaks(attributes, "gen_ai.completion")
        else CallKind.CHAIN
    )


def _model(kind: CallKind, attributes: Mapping[str, Json]) -> Reading:
    asked = indexed.indexed_request(attributes, functions="gen_ai.request.functions") or indexed.indexed_request(
        attributes
    )
    asked = asked or _parts(attributes)
    answered = indexed.answered(attributes) or parts.answered(attributes.get("gen_ai.output.messages"))
    if asked is not None and not asked.tools:
        defined = indexed.indexed_request(attributes, functions="gen_ai.request.tools")
        listed = native.tools(attributes.get("gen_ai.request.tools")) if "gen_ai.request.tools" in attributes else ()
        asked = replace(asked, tools=(defined.tools if defined is not None else ()) or listed)
    if asked is not None and (instructions := as_text(attributes.get("gen_ai.request.instructions"))):
        system = native.messages({"role": "system", "content": instructions})
        asked = replace(asked, messages=(*system, *asked.messages))
    called = any("tool_call" in reason for reason in (answered.finish_reasons if answered is not None else ()))
    silent = called and answered is not None and not any(message.parts for message in answered.messages)
    model = as_text(attributes.get("gen_ai.request.model"))
    system_name = genai.system_of(attributes)
    return Reading(
        kind=kind,
        asked=asked,
        answered=answered,
        system=system_name if system_name.lower() not in _FRAMEWORKS else provider_of(model) or model.partition("/")[0],
        losses=(_TOOL_CALLS,) if silent else (),
    )


def _parts(attributes: Mapping[str, Json]) -> Asked | None:
    entity = structured(attributes.get("agentops.entity.input"))
    return parts.parts_request(attributes.get("gen_ai.input.messages")) or (
        native.native_request(entity) if as_object(entity) else None
    )


DIALECT = Dialect(
    name="agentops",
    recognises=_recognises,
    decode=_decode,
    marks=SpanMarks(attributes=("gen_ai.prompt.0.role",), beginnings=("agentops.",), scopes=("agentops",)),
    most=0.95,
)
