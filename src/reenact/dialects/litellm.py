"""LiteLLM's own OpenTelemetry callback.

One call is two spans: `litellm_request` in OTel GenAI's names, whose calls of tools stand in numbered
`gen_ai.completion.N.function_call`s without ids; and below it `raw_gen_ai_request`, whose `llm.<provider>.…` attributes
hold the provider's own request and reply as Python's `repr`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from reenact.contracts.dialect import Dialect, SpanMarks
from reenact.encodings import indexed, native, parts, python_repr, semconv
from reenact.encodings.semconv import Reading
from reenact.foreign import genai
from reenact.foreign.foreign_call import Loss, said_of
from reenact.values.call import Call, CallKind, Outcome
from reenact.values.json import Json
from reenact.values.lenient import as_object, as_text, structured
from reenact.values.message import Answered, ToolCall
from reenact.values.span import SpanRecord

NAME: Final = "litellm"
_REPLIED: Final = frozenset(
    {
        "id",
        "choices",
        "created",
        "model",
        "object",
        "usage",
        "service_tier",
        "system_fingerprint",
        "moderation",
        "content",
        "role",
        "stop_reason",
        "stop_sequence",
        "type",
        "candidates",
        "usageMetadata",
        "modelVersion",
        "responseId",
        "output",
    },
)
"""Fields of a provider's reply; the rest of the raw span is its request."""
_NOT_SAID: Final = frozenset({"extra_body", "extra_headers"})
_OPAQUE_IDS: Final = Loss(
    field="tool_call_id",
    lost="LiteLLM's request span keeps calls of tools without their ids",
    fix="keep the raw_gen_ai_request span: leave message_logging on",
)
_RESPONSE_MODEL: Final = Loss(
    field="request.model",
    lost="LiteLLM's raw span overwrites the request's model with the reply's",
    fix="keep the litellm_request span above it",
)


def _recognises(span: SpanRecord) -> float:
    raw = _raw_prefix(span.attributes)
    if span.scope.name == "litellm" or "litellm.call_id" in span.attributes:
        return 0.86 if raw or any(name.startswith("gen_ai.") for name in span.attributes) else 0.5
    return 0.83 if raw and span.name == "raw_gen_ai_request" else 0.0


def _raw_prefix(names: Iterable[str]) -> str:
    """Find `llm.<provider>.` of the raw span."""
    for name in names:
        head, _, rest = name.partition(".")
        provider, _, field = rest.partition(".")
        if head == "llm" and field in ("messages", "choices", "contents") and provider not in ("request", "response"):
            return f"llm.{provider}."
    return ""


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    attributes = said_of(span)
    if prefix := _raw_prefix(attributes):
        return semconv.call(span, attributes, NAME, _raw(attributes, prefix))
    kind = genai.kind_of(attributes)
    if kind is CallKind.UNKNOWN and ("gen_ai.input.messages" in attributes or indexed.speaks(attributes)):
        kind = CallKind.LLM
    if kind not in (CallKind.LLM, CallKind.EMBEDDING):
        return semconv.call(span, attributes, NAME, Reading(kind=kind))
    asked, answered = parts.parts_exchange(attributes)
    numbered = indexed.indexed_exchange(attributes)
    asked = semconv.either(asked, numbered[0])
    answered = semconv.or_else(answered, numbered[1])
    losses = (_OPAQUE_IDS,) if _calls_without_ids(answered) else ()
    return semconv.call(span, attributes, NAME, Reading(kind=kind, asked=asked, answered=answered, losses=losses))


def _calls_without_ids(answered: Answered | None) -> bool:
    messages = answered.messages if answered is not None else ()
    return any(isinstance(part, ToolCall) and not part.id for message in messages for part in message.parts)


def _raw(attributes: dict[str, Json], prefix: str) -> Reading:
    fields: dict[str, Json] = {
        name.removeprefix(prefix): _value(value) for name, value in attributes.items() if name.startswith(prefix)
    }
    body: dict[str, Json] = {
        name: value
        for name, value in fields.items()
        if name not in _REPLIED | _NOT_SAID and value not in ("", None, {})
    }
    reply: dict[str, Json] = {
        name: value for name, value in fields.items() if name in _REPLIED and value not in ("", None)
    }
    asked = native.native_request(body)
    answered = native.answered(reply)
    losses = (_RESPONSE_MODEL,) if asked is not None and asked.model is None else ()
    return Reading(kind=CallKind.LLM, asked=asked, answered=answered, system=prefix.split(".")[1], losses=losses)


def _value(value: Json) -> Json:
    """Read what is JSON text or a `repr`; a number or a truth value that became text is read, another text stays."""
    if not isinstance(value, str) or not value:
        return value
    read = structured(value)
    if isinstance(read, dict | list):
        return read
    literal = python_repr.read(value) if value[0] in "[{(" else None
    if isinstance(literal, dict | list):
        return _usable(literal)
    number = genai.number(value)
    truth = genai.flag(value)
    return value if number is None and truth is None else (truth if truth is not None else number)


def _usable(literal: Json, depth: int = 0) -> Json:
    """Give objects that were spelled as `Class(field=…)` as their fields."""
    if depth > 32:
        return literal
    if isinstance(literal, list):
        return [_usable(item, depth + 1) for item in literal]
    fields = as_object(literal)
    if not fields:
        return literal
    return {name: _usable(item, depth + 1) for name, item in fields.items() if name != "$class" or not as_text(item)}


DIALECT = Dialect(
    name=NAME,
    recognises=_recognises,
    decode=_decode,
    marks=SpanMarks(attributes=("litellm.call_id",), scopes=("litellm",), names=("raw_gen_ai_request",)),
    most=0.86,
)
