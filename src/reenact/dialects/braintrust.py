"""Braintrust: its OpenTelemetry names (`braintrust.input_json`, `braintrust.metadata`, …), and rows read into them.

A model's row has the messages as input, model, tools and parameters as metadata, the reply's choices as output and
counts as metrics. Not kept are the reply's id and the model that answered.
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
from reenact.values.lenient import as_list, as_object, as_text, first_count, structured
from reenact.values.message import Answered, Usage
from reenact.values.span import SpanRecord

_KINDS: Final[Mapping[str, CallKind]] = {
    "llm": CallKind.LLM,
    "tool": CallKind.TOOL,
    "task": CallKind.AGENT,
    "function": CallKind.CHAIN,
    "eval": CallKind.CHAIN,
    "score": CallKind.EVALUATOR,
    "facet": CallKind.EVALUATOR,
    "retriever": CallKind.RETRIEVER,
    "embedding": CallKind.EMBEDDING,
    "guardrail": CallKind.GUARDRAIL,
}
"""`span_attributes.type`."""
_OF_THE_REPLY: Final = frozenset(
    {"stop_reason", "stop_sequence", "finish_reason", "finishReason", "usage", "id", "object", "created",
     "system_fingerprint", "service_tier_used"},
)  # fmt: skip
_NOT_ASKED: Final = frozenset(
    {"model", "provider", "tools", "functions", "session_id", "user_id", "user", "thread_id", "conversation_id",
     "stream", "response_model", "aiSdkVersion", "gen_ai.tool.name", "mcp.server", "operation", "scenario"},
)  # fmt: skip
_RESPONSE: Final = Loss(
    field="reply.id",
    lost="the reply's id and the name of the model that answered",
    fix="log them as metadata of the span: span.log(metadata={'response_id': …, 'response_model': …})",
)
_SUMMARY: Final = Loss(
    field="messages",
    lost="input and output: this record only says that there were any",
    fix="export the rows themselves (Logs, spans), not a summary of them",
)
_ATTACHMENTS: Final = Loss(
    field="messages",
    lost="images, sounds and documents: Braintrust keeps attachments apart, and the row names them only",
    fix="download them with the row (the API's /attachment), or log them inline",
)
_NO_CONTENT: Final = Loss(
    field="messages",
    lost="input and output: this row has neither",
    fix="wrap the provider's client (wrap_openai, wrap_anthropic), or log input and output on the span",
)


def _recognises(span: SpanRecord) -> float:
    attributes = span.attributes
    if any(name in attributes for name in ("braintrust.span_attributes", "braintrust.input_json", "braintrust.row_id")):
        return 0.96
    return 0.95 if any(name.startswith("braintrust.") for name in attributes) and _own_kind(attributes) else 0.0


def _own_kind(attributes: Mapping[str, object]) -> bool:
    """Tell a span of Braintrust's own dialect from another's that merely names a parent in Braintrust."""
    return any(
        name.startswith(("braintrust.input", "braintrust.output", "braintrust.me", "braintrust.record"))
        for name in attributes
    )


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    attributes = said_of(span)
    metadata = as_object(structured(attributes.get("braintrust.metadata")))
    payload = _field(attributes, "input")
    output = _field(attributes, "output")
    kind = _kind(attributes, metadata, payload)
    if kind in (CallKind.LLM, CallKind.EMBEDDING):
        reading = _model(kind, attributes, metadata, payload, output)
    else:
        result, result_id = tool_io.result(output) if kind is CallKind.TOOL else (output, "")
        arguments = _arguments(payload) if kind is CallKind.TOOL else payload
        call_id = result_id or _call_id(payload)
        reading = Reading(
            kind=kind,
            name=as_text(metadata.get("gen_ai.tool.name")),
            arguments=arguments,
            result=result,
            has_result=any(name in attributes for name in ("braintrust.output_json", "braintrust.output")),
            facts={"gen_ai.tool.call.id": call_id} if call_id else {},
        )
    return semconv.call(span, attributes, "braintrust", reading)


def _field(attributes: Mapping[str, Json], name: str) -> Json:
    if f"braintrust.{name}_json" in attributes:
        return tool_io.read(attributes[f"braintrust.{name}_json"])
    return structured(attributes.get(f"braintrust.{name}"))


def _kind(attributes: Mapping[str, Json], metadata: Mapping[str, Json], payload: Json) -> CallKind:
    span_attributes = as_object(structured(attributes.get("braintrust.span_attributes")))
    type_name = as_text(span_attributes.get("type")) or as_text(attributes.get("braintrust.type"))
    if type_name:
        return _KINDS.get(type_name.lower(), CallKind.CHAIN)
    if _call_id(payload):
        return CallKind.TOOL
    return CallKind.LLM if metadata.get("model") and metadata.get("provider") else CallKind.CHAIN


def _call_id(payload: Json) -> str:
    """Find the id of the call that a tool of the AI SDK answers: it stands in the second of its two arguments."""
    listed = as_list(payload)
    return as_text(as_object(listed[1]).get("toolCallId")) if len(listed) == 2 else ""


def _arguments(payload: Json) -> Json:
    return as_list(payload)[0] if _call_id(payload) else tool_io.arguments(payload)


def _model(
    kind: CallKind, attributes: Mapping[str, Json], metadata: dict[str, Json], payload: Json, output: Json
) -> Reading:
    asked = native.native_request(worded.opened(payload, python_repr.read))
    answered = _answered(output, metadata)
    losses: list[Loss] = []
    model = as_text(metadata.get("model"))
    if asked is not None:
        asked = replace(
            asked,
            model=asked.model or model or None,
            tools=asked.tools or native.tools(metadata.get("tools") or metadata.get("functions")),
            parameters={**_parameters(metadata), **asked.parameters},
            stream=asked.stream or metadata.get("stream") is True,
        )
        if kind is CallKind.EMBEDDING:
            asked = replace(
                asked, messages=(), inputs=tuple(each for each in as_list(payload) if isinstance(each, str))
            )
    if asked is None or not any(message.parts for message in asked.messages):
        flags = as_object(structured(attributes.get("braintrust.record")))
        has_content = "has_input" in flags or "has_output" in flags or payload is not None
        losses.append(_SUMMARY if has_content else _NO_CONTENT)
    if answered is not None:
        answered = replace(answered, usage=_usage(attributes) or answered.usage)
        losses += [] if answered.id and answered.model else [_RESPONSE]
    if "braintrust_attachment" in as_text(attributes.get("braintrust.input_json")):
        losses.append(_ATTACHMENTS)
    provider = as_text(metadata.get("provider"))
    return Reading(
        kind=kind,
        asked=asked,
        answered=answered,
        system=provider or provider_of(model),
        api=_api(provider, payload, output),
        losses=tuple(losses),
        whole=bool(provider and model),  # its wrappers of SDKs keep all that is not input as metadata
    )


def _api(provider: str, payload: Json, output: Json) -> str:
    items = [as_object(item) for item in (*as_list(payload), *as_list(output))]
    calls = any(item.get("type") in ("function_call", "function_call_output", "reasoning") for item in items)
    has_messages = any(item.get("type") == "message" and "content" in item for item in map(as_object, as_list(output)))
    return "responses" if provider.endswith(".responses") or calls or has_messages else ""


def _answered(output: Json, metadata: Mapping[str, Json]) -> Answered | None:
    read = native.answered(worded.opened(output, python_repr.read))
    if read is None:
        return None
    reason = next((text for name in ("stop_reason", "finish_reason") if (text := as_text(metadata.get(name)))), "")
    return replace(
        read,
        model=read.model or as_text(metadata.get("response_model")) or None,
        id=read.id or as_text(metadata.get("response_id")) or None,
        finish_reasons=read.finish_reasons or ((reason,) if reason else ()),
    )


def _parameters(metadata: dict[str, Json]) -> dict[str, Json]:
    """Give the request's parameters: Braintrust puts all of them into the metadata, among what users put there."""
    hidden = _OF_THE_REPLY | _NOT_ASKED | {"response_id"}
    return {
        name: value
        for name, value in metadata.items()
        if name not in hidden and value is not None and not name.startswith(("ls_", "langgraph_", "lc_"))
    }


def _usage(attributes: Mapping[str, Json]) -> Usage | None:
    metrics = as_object(structured(attributes.get("braintrust.metrics")))
    counts = {
        "prompt": first_count(metrics, ("prompt_tokens",)),
        "completion": first_count(metrics, ("completion_tokens",)),
        "total": first_count(metrics, ("tokens",), ("total_tokens",)),
        "cache_read": first_count(metrics, ("prompt_cached_tokens",)),
        "cache_write": first_count(metrics, ("prompt_cache_creation_tokens",)),
        "reasoning": first_count(metrics, ("completion_reasoning_tokens",)),
        "prompt_audio": first_count(metrics, ("prompt_audio_tokens",)),
        "completion_audio": first_count(metrics, ("completion_audio_tokens",)),
    }
    return Usage(**counts) if any(count is not None for count in counts.values()) else None


DIALECT = Dialect(
    name="braintrust", recognises=_recognises, decode=_decode, marks=SpanMarks(beginnings=("braintrust.",)), most=0.96
)
