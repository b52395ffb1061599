"""The OpenAI Agents SDK's own tracing, as its records are read (`formats.openai_agents`): `openai_agents.*`.

A `generation` span has the messages asked and answered, a `response` span what went to OpenAI's responses and came
back, a `function` span a tool's arguments and result. The schemas of tools are not kept, nor which model answered
under which id. Turns, tasks and hand-offs only say where calls hang.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from reenact.contracts.dialect import Dialect, SpanMarks
from reenact.encodings import native, semconv, tool_io
from reenact.encodings.semconv import Reading
from reenact.foreign.foreign_call import Loss, said_of
from reenact.values.call import Call, CallKind, Outcome
from reenact.values.json import Json
from reenact.values.lenient import as_object, as_text, structured
from reenact.values.message import Answered, Usage
from reenact.values.providers import is_dated
from reenact.values.span import SpanRecord

_PREFIX: Final = "openai_agents."
_KINDS: Final[Mapping[str, CallKind]] = {
    "generation": CallKind.LLM,
    "response": CallKind.LLM,
    "function": CallKind.TOOL,
    "agent": CallKind.AGENT,
    "guardrail": CallKind.GUARDRAIL,
    "transcription": CallKind.LLM,
    "speech": CallKind.LLM,
}
"""A span's `type`; the others (`handoff`, `mcp_tools`, `custom`, `speech_group`) only say where calls hang."""
_SETTINGS: Final = frozenset(
    {"base_url", "include_usage", "retry", "timeout", "context_management", "extra_headers", "extra_query",
     "extra_body", "extra_args", "model_impl"},
)  # fmt: skip
"""Settings of the SDK that are no part of the request."""
_NO_SCHEMAS: Final = Loss(
    field="tools",
    lost="the schemas of the tools: the tracing has their names alone, on the agent's span",
    fix="record the HTTP requests, or trace with an instrumentation that keeps them (OpenInference, OpenLLMetry)",
)
_NO_REPLY_NAME: Final = Loss(
    field="reply.id",
    lost="the reply's id and the name of the model that answered",
    fix="record the HTTP requests, or trace with an instrumentation that keeps them (OpenInference, OpenLLMetry)",
)
_ONE_NAME: Final = Loss(
    field="model",
    lost="the name of the model that was asked for: a response names the one that answered",
    fix="record the HTTP requests, or trace with an instrumentation that keeps it (OpenInference, OpenLLMetry)",
)
_NO_CONTENT: Final = Loss(
    field="messages",
    lost="input and output: the span has neither",
    fix="run with RunConfig(trace_include_sensitive_data=True); OPENAI_AGENTS_DONT_LOG_MODEL_DATA must not be set",
)


def _recognises(span: SpanRecord) -> float:
    return 0.96 if "openai_agents.type" in span.attributes else 0.0


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    attributes = said_of(span)
    type_name = as_text(attributes.get("openai_agents.type"))
    kind = _KINDS.get(type_name, CallKind.CHAIN)
    if kind is CallKind.LLM:
        return semconv.call(span, attributes, "openai-agents", _model(type_name, attributes))
    output = attributes.get(f"{_PREFIX}output")
    arguments = structured(attributes.get(f"{_PREFIX}input"))
    if kind is CallKind.CHAIN and arguments is None:
        arguments = structured(attributes.get(f"{_PREFIX}data"))
    if type_name == "guardrail":
        output = attributes.get(f"{_PREFIX}triggered", output)
    result, call_id = tool_io.result(structured(output)) if kind is CallKind.TOOL else (structured(output), "")
    reading = Reading(
        kind=kind,
        arguments=arguments,
        result=result,
        has_result=output is not None,
        facts={"gen_ai.tool.call.id": call_id} if call_id else {},
    )
    return semconv.call(span, attributes, "openai-agents", reading)


def _model(type_name: str, attributes: Mapping[str, Json]) -> Reading:
    response = as_object(structured(attributes.get(f"{_PREFIX}response")))
    asked = native.native_request(structured(attributes.get(f"{_PREFIX}input")))
    output = structured(attributes.get(f"{_PREFIX}output")) or response or None
    answered = native.answered(output)
    one = as_text(attributes.get(f"{_PREFIX}model")) or as_text(response.get("model"))
    config = as_object(structured(attributes.get(f"{_PREFIX}model_config")))
    is_response = type_name == "response"
    losses: list[Loss] = []
    if asked is None and answered is None:
        losses.append(_NO_CONTENT)
    if asked is not None:
        tools = asked.tools or native.tools(response.get("tools"))
        if not tools:
            losses.append(_NO_SCHEMAS)
        if is_response and is_dated(one):
            losses.append(_ONE_NAME)
        if (system := response.get("instructions")) and not any(each.role == "system" for each in asked.messages):
            told_first = native.messages({"role": "system", "content": system})
            asked = replace(asked, messages=(*told_first, *asked.messages))
        asked = replace(
            asked,
            model=asked.model or ("" if is_response and is_dated(one) else one) or None,
            tools=tools,
            parameters={**asked.parameters, **_parameters(config, response if is_response else {})},
        )
    if answered is not None:
        answered = _with_identity(answered, attributes, response)
        losses += [] if answered.id and answered.model else [_NO_REPLY_NAME]
    return Reading(
        kind=CallKind.LLM,
        asked=asked,
        answered=answered,
        system=_system(config),
        api="responses" if is_response else "chat",
        losses=tuple(losses),
    )


def _system(config: Mapping[str, Json]) -> str:
    """Give the provider; the SDK speaks OpenAI's APIs with whomever it is pointed at."""
    return "anthropic" if "anthropic.com" in as_text(config.get("base_url")) else "openai"


def _with_identity(answered: Answered, attributes: Mapping[str, Json], response: Mapping[str, Json]) -> Answered:
    usage = as_object(structured(attributes.get(f"{_PREFIX}usage"))) or as_object(response.get("usage"))
    counted = native.usage(usage)
    return replace(
        answered,
        id=answered.id or as_text(attributes.get(f"{_PREFIX}response_id")) or as_text(response.get("id")) or None,
        model=answered.model or as_text(response.get("model")) or None,
        usage=counted if counted != Usage() else answered.usage,
    )


def _parameters(config: Mapping[str, Json], response: Mapping[str, Json]) -> dict[str, Json]:
    """Give what was set of the parameters; a response repeats those that it was asked with."""
    repeated = ("tool_choice", "parallel_tool_calls", "temperature", "top_p", "max_output_tokens", "truncation")
    parameters: dict[str, Json] = {name: response[name] for name in repeated if response.get(name) is not None}
    parameters |= {name: value for name, value in config.items() if name not in _SETTINGS and value is not None}
    return parameters


DIALECT = Dialect(
    name="openai-agents",
    recognises=_recognises,
    decode=_decode,
    marks=SpanMarks(attributes=("openai_agents.type",)),
    most=0.96,
)
