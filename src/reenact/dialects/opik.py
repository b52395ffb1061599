"""Opik, as its records are read (`formats.opik_export`): `opik.*`.

Its wrappers of providers' clients put what is said to the model into `input`, the answer into `output`, and all other
fields of request and reply into one `metadata`, where the reply's go over the request's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from reenact.contracts.dialect import Dialect, SpanMarks
from reenact.encodings import native, python_repr, semconv, tool_io, worded
from reenact.encodings.semconv import Reading
from reenact.foreign.foreign_call import Loss, provider_of, said_of
from reenact.values import hosts
from reenact.values.call import Call, CallKind, Outcome
from reenact.values.json import Json
from reenact.values.lenient import as_count, as_list, as_object, as_text, structured
from reenact.values.message import Answered, Asked, Usage
from reenact.values.providers import is_dated
from reenact.values.span import SpanRecord

_KINDS: Final[Mapping[str, CallKind]] = {
    "llm": CallKind.LLM,
    "tool": CallKind.TOOL,
    "guardrail": CallKind.GUARDRAIL,
}
"""`type`; `general` and a trace are structure."""
_SYSTEMS: Final[Mapping[str, str]] = {"google_ai": "google", "google_vertexai": "google", "mistral": "mistralai"}
_WRAPPED: Final = frozenset({"openai", "anthropic"})
"""What `created_from` says where a provider's own client was wrapped: all fields of a request are kept."""
_ASKED: Final = frozenset(
    {"temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "max_output_tokens", "stop",
     "stop_sequences", "tool_choice", "parallel_tool_calls", "response_format", "seed", "n", "presence_penalty",
     "frequency_penalty", "reasoning_effort"},
)  # fmt: skip
_NOT_ASKED: Final = frozenset(
    {"model", "tools", "functions", "created_from", "type", "base_url", "stream", "id", "created", "object",
     "moderation", "service_tier", "system_fingerprint", "usage", "usage.iterations", "role", "container",
     "diagnostics", "stop_details", "stop_reason", "stop_sequence", "extra_headers", "extra_query", "timeout",
     "provider", "prompt_filter_results", "opik_prompts"},
)  # fmt: skip
_OF_PROVIDER: Final = "original_usage."
_LANGCHAIN: Final = {"ls_temperature": "temperature", "ls_max_tokens": "max_tokens", "ls_stop": "stop"}
_ONE_NAME: Final = Loss(
    field="model",
    lost="the name of the model that was asked for: Opik keeps one, and once the reply is there it is the reply's",
    fix="record with reenact, or send the same spans by OpenTelemetry with gen_ai.request.model",
)
_ECHOED: Final = Loss(
    field="request",
    lost="the parameters: the reply of OpenAI's responses has fields of the same names, and Opik keeps the reply's",
    fix="record with reenact",
)
_UNKEPT: Final = Loss(
    field="request",
    lost="tools and most parameters: Opik's tracers of frameworks keep the messages alone",
    fix="wrap the provider's client (track_openai, track_anthropic)",
)
_NO_CONTENT: Final = Loss(
    field="messages",
    lost="input and output: this span has neither",
    fix="leave capture_input and capture_output on",
)


def _recognises(span: SpanRecord) -> float:
    return 0.96 if "opik.type" in span.attributes else 0.0


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    attributes = said_of(span)
    kind = _KINDS.get(as_text(attributes.get("opik.type")), CallKind.CHAIN)
    reading = _model(attributes) if kind is CallKind.LLM else _function(kind, attributes)
    return semconv.call(span, attributes, "opik", reading)


def _function(kind: CallKind, attributes: Mapping[str, Json]) -> Reading:
    place = "opik.trace." if attributes.get("opik.type") == "trace" else "opik."
    payload = structured(attributes.get(f"{place}input"))
    output = tool_io.unwrapped(structured(attributes.get(f"{place}output")))
    result, call_id = tool_io.result(output) if kind is CallKind.TOOL else (output, "")
    return Reading(
        kind=kind,
        arguments=tool_io.arguments(payload) if kind is CallKind.TOOL else payload,
        result=result,
        has_result=f"{place}output" in attributes,
        facts={"gen_ai.tool.call.id": call_id} if call_id else {},
    )


def _model(attributes: Mapping[str, Json]) -> Reading:
    metadata = as_object(structured(attributes.get("opik.metadata")))
    payload = structured(attributes.get("opik.input"))
    maker = as_text(metadata.get("created_from"))
    is_response = metadata.get("object") == "response"
    one = as_text(attributes.get("opik.model"))
    asked = native.native_request(worded.opened(payload, python_repr.read))
    answered = _answered(attributes, metadata, one)
    model = (asked.model if asked is not None else "") or as_text(metadata.get("ls_model_name"))
    if not model and (answered is None or not is_dated(one)):
        model = one
    losses = [] if model else [_ONE_NAME]
    if asked is not None:
        asked = _completed(asked, metadata, model, maker)
    if asked is None and answered is None:
        losses.append(_NO_CONTENT)
    elif is_response:
        losses.append(_ECHOED)
    elif maker not in _WRAPPED:
        losses.append(_UNKEPT)
    is_whole = maker in _WRAPPED and not is_response and bool(model)
    return Reading(
        kind=CallKind.LLM,
        asked=asked,
        answered=answered,
        system=_system(attributes, metadata, one or model),
        api="responses" if is_response or _has_items(payload) else "",
        losses=tuple(losses),
        whole=is_whole,
    )


def _completed(asked: Asked, metadata: Mapping[str, Json], model: str, maker: str) -> Asked:
    """Put together what stands in the input and what stands beside it."""
    parameters = {name: metadata[field] for field, name in _LANGCHAIN.items() if metadata.get(field) is not None}
    if metadata.get("object") != "response":
        parameters |= {
            name: value
            for name, value in metadata.items()
            if value is not None and (name not in _NOT_ASKED if maker in _WRAPPED else name in _ASKED)
        }
    return replace(
        asked,
        model=model or None,
        tools=asked.tools or native.tools(metadata.get("tools") or metadata.get("functions")),
        parameters={**parameters, **asked.parameters},
        stream=asked.stream or metadata.get("stream") is True,
    )


def _answered(attributes: Mapping[str, Json], metadata: Mapping[str, Json], model: str) -> Answered | None:
    read = native.answered(worded.opened(structured(attributes.get("opik.output")), python_repr.read))
    if read is None:
        return None
    reason = as_text(metadata.get("stop_reason"))
    own_id = as_text(metadata.get("id"))
    return replace(
        read,
        model=read.model or model or None,
        id=read.id or own_id or None,
        finish_reasons=read.finish_reasons or ((reason,) if reason else ()),
        usage=_usage(attributes) or read.usage,
    )


def _usage(attributes: Mapping[str, Json]) -> Usage | None:
    """Read the counts: Opik's own three, and the provider's, whose nested names have dots."""
    counts = as_object(structured(attributes.get("opik.usage")))
    of_provider: dict[str, Json] = {}
    for name, value in counts.items():
        if name.startswith(_OF_PROVIDER):
            above, _, last = name.removeprefix(_OF_PROVIDER).rpartition(".")
            group = of_provider.setdefault(above, {}) if above else of_provider
            if isinstance(group, dict):
                group[last] = value
    totals = {name: as_count(counts.get(f"{name}_tokens")) for name in ("prompt", "completion", "total")}
    usage = replace(native.usage(of_provider), **{name: count for name, count in totals.items() if count is not None})
    return usage if usage != Usage() else None


def _system(attributes: Mapping[str, Json], metadata: Mapping[str, Json], model: str) -> str:
    """Name the provider; a client that was given another address stands there with its host."""
    provider = as_text(attributes.get("opik.provider"))
    if "." in provider or provider == "localhost":
        provider = hosts.provider_at(provider)[0]
    return _SYSTEMS.get(provider, provider) or as_text(metadata.get("ls_provider")) or _maker(metadata, model)


def _maker(metadata: Mapping[str, Json], model: str) -> str:
    maker = as_text(metadata.get("created_from"))
    return maker if maker in _WRAPPED else provider_of(model)


def _has_items(payload: Json) -> bool:
    items = [as_object(item) for item in as_list(as_object(payload).get("input"))]
    return any(item.get("type") in ("function_call", "function_call_output", "reasoning") for item in items)


DIALECT = Dialect(
    name="opik", recognises=_recognises, decode=_decode, marks=SpanMarks(attributes=("opik.type",)), most=0.96
)
