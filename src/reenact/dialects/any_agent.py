"""Mozilla's any-agent: plain messages under `gen_ai.input.messages`, and the answer under `gen_ai.output`."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from reenact.contracts.dialect import Dialect, SpanMarks
from reenact.encodings import native, semconv
from reenact.encodings.semconv import Reading
from reenact.foreign import genai
from reenact.foreign.foreign_call import Loss, plain, said_of
from reenact.values.call import Call, CallKind, Outcome
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, as_text, structured, text_or_json
from reenact.values.message import Answered, Message, Text, ToolCall
from reenact.values.span import SpanRecord

NAME: Final = "any-agent"
_FIRST_ONLY: Final = Loss(
    field="messages",
    lost="any-agent keeps what a model was asked on the first call of a run alone",
    fix="none in this release: record with reenact, or with OpenInference",
)
_IDS: Final = Loss(
    field="tool_call_id",
    lost="any-agent keeps calls of tools without their ids, and no tool definitions",
    fix="none in this release: record with reenact, or with OpenInference",
)


def _recognises(span: SpanRecord) -> float:
    attributes = span.attributes
    if attributes.get("gen_ai.operation.name") == "call_llm" or any(
        name.startswith("any_agent.") for name in attributes
    ):
        return 0.86
    return 0.85 if "gen_ai.output" in attributes and "gen_ai.output.type" in attributes else 0.0


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    attributes = said_of(span)
    kind = genai.kind_of(attributes)
    if kind is CallKind.LLM:
        asked = native.native_request(attributes.get("gen_ai.input.messages"))
        losses = (_IDS,) if asked is not None else (_FIRST_ONLY, _IDS)
        system, slash, model = as_text(attributes.get("gen_ai.request.model")).partition("/")
        if asked is not None and slash:  # LiteLLM's way to name a provider, which does not go over the wire
            asked = replace(asked, model=model)
        reading = Reading(kind=kind, asked=asked, answered=_answered(attributes), system=system, losses=losses)
    elif kind is CallKind.TOOL:
        has_output = "gen_ai.output" in attributes
        result = plain(attributes["gen_ai.output"]) if has_output else None
        reading = Reading(
            kind=kind, arguments=plain(attributes.get("gen_ai.tool.args")), result=result, has_result=has_output
        )
    else:
        reading = Reading(kind=kind)
    return semconv.call(span, attributes, NAME, reading)


def _answered(attributes: dict[str, Json]) -> Answered | None:
    output = attributes.get("gen_ai.output")
    listed = [as_object(item) for item in as_list(structured(output))]
    if listed and all("tool.name" in item for item in listed):
        calls = tuple(
            ToolCall(id="", name=as_text(item["tool.name"]), arguments=text_or_json(item.get("tool.args")))
            for item in listed
        )
        return Answered(messages=(Message(role="assistant", parts=calls),))
    return Answered(messages=(Message(role="assistant", parts=(Text(output),)),)) if isinstance(output, str) else None


DIALECT = Dialect(
    name=NAME,
    recognises=_recognises,
    decode=_decode,
    marks=SpanMarks(
        attributes=("gen_ai.output",), beginnings=("any_agent.",), values=(("gen_ai.operation.name", "call_llm"),)
    ),
    most=0.86,
)
