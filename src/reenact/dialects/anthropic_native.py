"""The spans that Anthropic's own SDK emits: OTel GenAI's parts messages, and what is Anthropic's alone.

It never keeps tools nor sampling parameters, cuts content at 750 kB, and keeps no reply of a stream that the program
reads piece by piece.
"""

from __future__ import annotations

from typing import Final

from reenact.contracts.dialect import Dialect, SpanMarks
from reenact.encodings import parts, semconv
from reenact.encodings.semconv import Reading
from reenact.foreign import genai
from reenact.foreign.foreign_call import Loss, plain, said_of
from reenact.values.call import Call, CallKind, Outcome
from reenact.values.json import Json
from reenact.values.span import SpanRecord

NAME: Final = "anthropic-native"
_SCOPES: Final = ("com.anthropic.sdk", "com.anthropic.api")
_RESULTS: Final = ("gen_ai.tool.call.result", "anthropic.tool_result.content")
_TOOLS: Final = Loss(
    field="tools",
    lost="Anthropic's SDK keeps neither tool definitions nor tool_choice on its spans",
    fix="none in this release: record with reenact, or with OpenInference",
)
_PARAMETERS: Final = Loss(
    field="parameters",
    lost="Anthropic's SDK keeps no sampling parameter but max_tokens and thinking",
    fix="none in this release: record with reenact, or with OpenInference",
)
_HIDDEN: Final = Loss(
    field="messages",
    lost="the SDK was told to keep no content",
    fix="set ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE=content",
)
_STREAMED: Final = Loss(
    field="reply",
    lost="the SDK keeps no reply of a stream that is not accumulated",
    fix="read it through client.messages.stream(), or record with reenact",
)
_CUT: Final = Loss(
    field="messages",
    lost="the SDK cut the content at its own limit (750 kB)",
    fix="record with reenact, which keeps it whole",
)


def _recognises(span: SpanRecord) -> float:
    if span.scope.name.startswith(_SCOPES):
        return 0.86
    marked = any(name.startswith("anthropic.") for name in span.attributes)
    return 0.7 if marked and genai.OPERATION in span.attributes else 0.0


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    attributes = said_of(span)
    kind = genai.kind_of(attributes)
    if kind is CallKind.UNKNOWN and "anthropic.tool_use" in span.name:
        kind = CallKind.TOOL
    if kind is not CallKind.LLM:
        result = next((attributes[name] for name in _RESULTS if name in attributes), None)
        output = plain(result) if result is not None else None
        if kind is CallKind.UNKNOWN and "tool_runner" in span.name:
            kind = CallKind.CHAIN
        return semconv.call(
            span, attributes, NAME, Reading(kind=kind, result=output, has_result=output is not None or None)
        )
    asked, answered = parts.parts_exchange(attributes)
    reading = Reading(
        kind=kind,
        asked=asked,
        answered=answered,
        system="anthropic",
        api="messages",
        losses=_losses(attributes),
    )
    return semconv.call(span, attributes, NAME, reading)


def _losses(attributes: dict[str, Json]) -> tuple[Loss, ...]:
    if "gen_ai.input.messages" not in attributes:
        return (_HIDDEN, _TOOLS, _PARAMETERS)
    losses = [_TOOLS, _PARAMETERS]
    if attributes.get("anthropic.content.truncated") not in (None, False):
        losses.append(_CUT)
    if "gen_ai.output.messages" not in attributes and "error.type" not in attributes:
        losses.append(_STREAMED)
    return tuple(losses)


DIALECT = Dialect(
    name=NAME,
    recognises=_recognises,
    decode=_decode,
    marks=SpanMarks(beginnings=("anthropic.",), scopes=_SCOPES),
    most=0.86,
)
