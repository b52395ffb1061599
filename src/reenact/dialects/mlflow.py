"""MLflow's tracing: `mlflow.spanInputs` and `mlflow.spanOutputs`, every attribute the JSON text of its value.

What a provider's client was given and gave is kept whole, so requests are read with all their parameters; the format
that MLflow names for the messages (`mlflow.message.format`) is not needed, since they tell themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from reenact.contracts.dialect import Dialect, SpanMarks
from reenact.encodings import native, python_repr, semconv, tool_io, worded
from reenact.encodings.semconv import Reading
from reenact.foreign.foreign_call import Loss, provider_of, said_of
from reenact.values.call import Call, CallKind, Outcome
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, as_text, first_count
from reenact.values.message import Usage
from reenact.values.providers import is_dated
from reenact.values.span import SpanRecord

_KINDS: Final[Mapping[str, CallKind]] = {
    "CHAT_MODEL": CallKind.LLM,
    "LLM": CallKind.LLM,
    "TOOL": CallKind.TOOL,
    "RETRIEVER": CallKind.RETRIEVER,
    "EMBEDDING": CallKind.EMBEDDING,
    "RERANKER": CallKind.RERANKER,
    "AGENT": CallKind.AGENT,
    "GUARDRAIL": CallKind.GUARDRAIL,
    "EVALUATOR": CallKind.EVALUATOR,
    "MEMORY": CallKind.TOOL,
}
"""`mlflow.spanType`; the others only say where calls hang."""
_FORMATS: Final = {"openai": "openai", "anthropic": "anthropic", "gemini": "google", "bedrock": "aws.bedrock"}
_NO_CONTENT: Final = Loss(
    field="messages",
    lost="inputs and outputs: this span has neither",
    fix="leave log_traces on in mlflow.<flavour>.autolog(), and register no span processor that clears them",
)
_NOT_ASKED: Final = frozenset(
    {"self", "extra_headers", "extra_query", "extra_body", "timeout", "client", "model", "model_name", "tools",
     "functions", "stream"},
)  # fmt: skip


def _recognises(span: SpanRecord) -> float:
    attributes = span.attributes
    if "mlflow.spanType" in attributes or "mlflow.spanInputs" in attributes or "mlflow.spanOutputs" in attributes:
        return 0.95
    return 0.5 if any(name.startswith("mlflow.trace") for name in attributes) else 0.0


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    attributes = said_of(span)
    kind = _KINDS.get(as_text(_value(attributes, "mlflow.spanType")).upper(), CallKind.CHAIN)
    facts: dict[str, Json] = {
        name: value
        for name, field in (("session.id", "mlflow.trace.session"), ("user.id", "mlflow.trace.user"))
        if name not in attributes and isinstance(value := _value(attributes, field), str) and value
    }
    inputs, outputs = _value(attributes, "mlflow.spanInputs"), _value(attributes, "mlflow.spanOutputs")
    if kind in (CallKind.LLM, CallKind.EMBEDDING):
        reading = _model(kind, attributes, inputs, outputs)
    else:
        result, call_id = tool_io.result(outputs) if kind is CallKind.TOOL else (outputs, "")
        facts |= {"gen_ai.tool.call.id": call_id} if call_id else {}
        has_output = "mlflow.spanOutputs" in attributes
        reading = Reading(kind=kind, arguments=tool_io.arguments(inputs), result=result, has_result=has_output)
    return semconv.call(span, attributes, "mlflow", replace(reading, facts=facts))


def _value(attributes: Mapping[str, Json], name: str) -> Json:
    """Read an attribute, the JSON text of its value; one that is none is the value itself."""
    return tool_io.read(attributes.get(name))


def _model(kind: CallKind, attributes: Mapping[str, Json], inputs: Json, outputs: Json) -> Reading:
    asked = native.native_request(worded.opened(inputs, python_repr.read))
    answered = native.answered(worded.opened(outputs, python_repr.read))
    resolved = as_text(_value(attributes, "mlflow.llm.model"))
    invoked = as_object(_value(attributes, "invocation_params"))  # what LangChain called the provider with
    if asked is not None:
        asked_name = next(
            (name for value in (_value(attributes, "model"), invoked.get("model")) if (name := as_text(value))), ""
        )
        model = asked.model or asked_name or ("" if is_dated(resolved) else resolved)
        asked = replace(
            asked,
            model=model or None,
            tools=asked.tools or native.tools(_value(attributes, "mlflow.chat.tools") or invoked.get("tools")),
            parameters={
                name: item
                for name, item in {**invoked, **asked.parameters}.items()
                if name not in _NOT_ASKED and item is not None and not (name in invoked and name.startswith("_"))
            },
        )
        if kind is CallKind.EMBEDDING:
            asked = replace(asked, messages=(), inputs=_texts(inputs))
    if answered is not None:
        answered = replace(
            answered, model=answered.model or resolved or None, usage=_usage(attributes) or answered.usage
        )
    provider = as_text(_value(attributes, "mlflow.llm.provider")) or _FORMATS.get(
        as_text(_value(attributes, "mlflow.message.format")), ""
    )
    return Reading(
        kind=kind,
        asked=asked,
        answered=answered,
        system=provider or provider_of(resolved or (asked.model if asked is not None else "") or ""),
        api="responses" if _is_responses(inputs) else "",
        losses=() if asked is not None or answered is not None else (_NO_CONTENT,),
        whole={"messages", "model"} <= as_object(inputs).keys() or _is_responses(inputs),
    )


def _is_responses(inputs: Json) -> bool:
    fields = as_object(inputs)
    return "input" in fields and "messages" not in fields and ("model" in fields or "instructions" in fields)


def _texts(inputs: Json) -> tuple[str, ...]:
    fields = as_object(inputs)
    content = next(
        (fields[name] for name in ("input", "texts", "documents", "text", "query") if name in fields), inputs
    )
    return tuple(item for item in (as_list(content) or [content]) if isinstance(item, str))


def _usage(attributes: Mapping[str, Json]) -> Usage | None:
    usage = _value(attributes, "mlflow.chat.tokenUsage")
    if not isinstance(usage, dict):
        return None
    return Usage(
        prompt=first_count(usage, ("input_tokens",)),
        completion=first_count(usage, ("output_tokens",)),
        total=first_count(usage, ("total_tokens",)),
        cache_read=first_count(usage, ("cache_read_input_tokens",)),
        cache_write=first_count(usage, ("cache_creation_input_tokens",)),
    )


DIALECT = Dialect(
    name="mlflow", recognises=_recognises, decode=_decode, marks=SpanMarks(beginnings=("mlflow.",)), most=0.95
)
