"""LangSmith: runs as its OpenTelemetry export spells them, and as its records are read (`formats.langsmith_runs`).

`gen_ai.prompt` holds the JSON of a run's inputs, `gen_ai.completion` that of its outputs: a provider's request and
reply where the provider's client was wrapped, LangChain's messages and generations where LangChain ran.
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
from reenact.values.lenient import as_list, as_object, as_text, structured, without
from reenact.values.message import Answered, Usage
from reenact.values.span import SpanRecord

_METADATA: Final = "langsmith.metadata."
_KINDS: Final[Mapping[str, CallKind]] = {
    "llm": CallKind.LLM,
    "chat": CallKind.LLM,
    "tool": CallKind.TOOL,
    "retriever": CallKind.RETRIEVER,
    "embedding": CallKind.EMBEDDING,
    "prompt": CallKind.PROMPT,
    "chain": CallKind.CHAIN,
    "parser": CallKind.CHAIN,
}
_SESSION: Final = ("session_id", "thread_id", "conversation_id")
_USER: Final = ("user_id", "user", "ls_user_id")
_NONE_OF_THE_REQUEST: Final = frozenset(
    {"model", "model_name", "model_id", "tools", "functions", "_type", "extra_headers", "extra_query", "extra_body",
     "messages", "stream", "timeout", "ls_model_type", "ls_provider", "base_url", "max_retries"},
)  # fmt: skip
_NO_OUTPUT: Final = Loss(
    field="reply",
    lost="what the model answered: the run has no outputs",
    fix="flush before the process ends (wait_for_all_tracers), and leave LANGSMITH_HIDE_OUTPUTS unset",
)
_NO_INPUT: Final = Loss(
    field="request",
    lost="what the model was asked: the run has no inputs",
    fix="leave LANGSMITH_HIDE_INPUTS unset",
)


def _recognises(span: SpanRecord) -> float:
    return 0.96 if "langsmith.span.kind" in span.attributes or "langsmith.trace.name" in span.attributes else 0.0


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    attributes = said_of(span)
    kind = _KINDS.get(as_text(attributes.get("langsmith.span.kind")).lower(), CallKind.CHAIN)
    facts = _identity(attributes)
    inputs, outputs = structured(attributes.get("gen_ai.prompt")), structured(attributes.get("gen_ai.completion"))
    if kind in (CallKind.LLM, CallKind.EMBEDDING):
        reading = _model(kind, attributes, inputs, outputs)
    else:
        reading = _function(kind, attributes, inputs, outputs)
    return semconv.call(span, attributes, "langsmith", replace(reading, facts={**facts, **(reading.facts or {})}))


def _identity(attributes: Mapping[str, Json]) -> dict[str, Json]:
    identity: dict[str, Json] = {}
    for name, fields in (("session.id", _SESSION), ("user.id", _USER)):
        value = next((text for field in fields if (text := as_text(attributes.get(f"{_METADATA}{field}")))), "")
        if value and name not in attributes:
            identity[name] = value
    return identity


def _model(kind: CallKind, attributes: Mapping[str, Json], inputs: Json, outputs: Json) -> Reading:
    invoked = _invocation(attributes)
    asked = native.native_request(worded.opened(inputs, python_repr.read))
    losses: list[Loss] = []
    if asked is None:
        losses.append(_NO_INPUT)
    else:
        asked = replace(
            asked,
            model=asked.model or _asked_model(attributes, invoked),
            tools=asked.tools or native.tools(invoked.get("tools") or invoked.get("functions")),
            parameters={**_parameters(invoked), **without(asked.parameters, _NONE_OF_THE_REQUEST)},
            stream=asked.stream or invoked.get("stream") is True,
        )
        if kind is CallKind.EMBEDDING:
            asked = replace(asked, messages=(), inputs=_texts(inputs))
    answered = _answered(outputs)
    if answered is None and not attributes.get("langsmith.record"):
        losses.append(_NO_OUTPUT)
    if answered is not None and answered.usage == Usage():
        answered = replace(answered, usage=_usage(attributes))
    model = (asked.model if asked is not None else "") or (answered.model if answered is not None else "") or ""
    return Reading(
        kind=kind,
        asked=asked,
        answered=answered,
        system=as_text(attributes.get(f"{_METADATA}ls_provider")) or _system(attributes) or provider_of(model),
        api=_api(inputs),
        losses=tuple(losses),
        whole={"messages", "model"} <= as_object(inputs).keys() or bool(_api(inputs)),
    )


def _usage(attributes: Mapping[str, Json]) -> Usage:
    """Read the tokens that LangChain counted, else those that LangSmith's API gives with the run."""
    counted = native.usage(structured(attributes.get(f"{_METADATA}usage_metadata")))
    return counted if counted != Usage() else native.usage(structured(attributes.get("langsmith.record")))


def _system(attributes: Mapping[str, Json]) -> str:
    system = as_text(attributes.get("gen_ai.system"))
    return "" if system == "langchain" else system


def _api(inputs: Json) -> str:
    """Tell OpenAI's responses from its chat completions: they are asked with `input` and `instructions`."""
    fields = as_object(inputs)
    return "responses" if "input" in fields and "messages" not in fields and "model" in fields else ""


def _invocation(attributes: Mapping[str, Json]) -> dict[str, Json]:
    """Give the parameters that LangChain called the provider with; an export keeps them in the run's `extra`."""
    record = as_object(structured(attributes.get("langsmith.record")))
    extra = as_object(structured(record.get("extra")))
    parameters = as_object(structured(attributes.get(f"{_METADATA}ls_invocation_params")))
    return {**parameters, **as_object(structured(extra.get("invocation_params")))}


def _asked_model(attributes: Mapping[str, Json], invoked: Mapping[str, Json]) -> str | None:
    names = [as_text(invoked.get(name)) for name in ("model", "model_name", "model_id")]
    return next((name for name in (*names, as_text(attributes.get(f"{_METADATA}ls_model_name"))) if name), None)


def _parameters(invoked: Mapping[str, Json]) -> dict[str, Json]:
    return {
        name: value
        for name, value in invoked.items()
        if name not in _NONE_OF_THE_REQUEST and value is not None and not name.startswith("_")
    }


def _answered(outputs: Json) -> Answered | None:
    fields = as_object(outputs)
    for name in ("output", "outputs", "result"):
        if fields.keys() <= {name, "usage_metadata"} and name in fields:
            outputs = structured(fields[name])
            break
    return native.answered(worded.opened(outputs, python_repr.read))


def _texts(inputs: Json) -> tuple[str, ...]:
    fields = as_object(inputs)
    content = next(
        (fields[name] for name in ("input", "texts", "documents", "text", "query") if name in fields), inputs
    )
    items = as_list(content) or [content]
    return tuple(item for item in items if isinstance(item, str))


def _function(kind: CallKind, attributes: Mapping[str, Json], inputs: Json, outputs: Json) -> Reading:
    has_output = "gen_ai.completion" in attributes
    result, call_id = tool_io.unwrapped(outputs), ""
    arguments = inputs
    if kind is CallKind.TOOL:
        result, call_id = tool_io.result(structured(result))
        arguments = _arguments(inputs)
    elif kind is CallKind.RETRIEVER:
        fields = as_object(result)
        result = fields.get("documents", result)
    return Reading(
        kind=kind,
        name=as_text(attributes.get("gen_ai.tool.name")) if kind is CallKind.TOOL else "",
        arguments=arguments,
        result=result,
        has_result=has_output,
        facts={"gen_ai.tool.call.id": call_id} if call_id else {},
    )


def _arguments(inputs: Json) -> Json:
    """Give a tool's arguments; LangChain hands them over as the text of a dict under `input`."""
    fields = as_object(inputs)
    if fields.keys() == {"input"} and isinstance(text := fields["input"], str):
        read = structured(text)
        if isinstance(read, dict):
            return read
        spelled = python_repr.read(text) if text[:1] == "{" else None
        return spelled if isinstance(spelled, dict) else inputs
    return tool_io.arguments(inputs)


DIALECT = Dialect(
    name="langsmith",
    recognises=_recognises,
    decode=_decode,
    marks=SpanMarks(attributes=("langsmith.span.kind", "langsmith.trace.name")),
    most=0.96,
)
