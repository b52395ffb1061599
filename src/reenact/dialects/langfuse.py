"""Langfuse: what its SDKs write on spans (`langfuse.observation.*`), and what its exports give back.

Input and output are whatever was handed to Langfuse: messages of any provider or framework, JSON in strings, text. In
an export the attributes that the span had when it came stand beside them, as far as Langfuse kept them; of two
readings of one thing the one that says more counts. Langfuse has one name for the model: once the reply is there, it
is that of the reply. Its wrapper of OpenAI's SDK writes down parameters that nobody asked for (temperature 1,
`max_tokens` "Infinity", …), which are left out here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, cast

from reenact.contracts.dialect import Dialect, SpanMarks
from reenact.encodings import indexed, native, openinference, parts, python_repr, semconv, tool_io, worded
from reenact.encodings.semconv import Reading
from reenact.foreign import genai
from reenact.foreign.foreign_call import Loss, provider_of, richer_answer, richer_question, said_of
from reenact.foreign.records import is_said
from reenact.values.call import Call, CallKind, Outcome
from reenact.values.json import Json
from reenact.values.lenient import as_count, as_list, as_object, as_text, first_count, structured, text_or_json
from reenact.values.message import Answered, Asked, Message, Text, Usage
from reenact.values.providers import is_dated
from reenact.values.span import SpanRecord

_PREFIX: Final = "langfuse.observation."
_KINDS: Final[Mapping[str, CallKind]] = {
    "generation": CallKind.LLM,
    "embedding": CallKind.EMBEDDING,
    "tool": CallKind.TOOL,
    "retriever": CallKind.RETRIEVER,
    "agent": CallKind.AGENT,
    "chain": CallKind.CHAIN,
    "guardrail": CallKind.GUARDRAIL,
    "evaluator": CallKind.EVALUATOR,
}
"""`langfuse.observation.type`; `span`, `event` and what is not known say nothing."""
_OPENINFERENCE: Final = frozenset(CallKind) - {CallKind.UNKNOWN}
_WRAPPER: Final[Mapping[str, Json]] = {
    "temperature": 1,
    "max_tokens": "Infinity",
    "top_p": 1,
    "frequency_penalty": 0,
    "presence_penalty": 0,
}
"""What Langfuse's wrapper of OpenAI's SDK writes down where the caller said nothing."""
_SETTINGS: Final = frozenset(
    {"model", "maxRetries", "maxSteps", "mode", "finishReason", "system", "is_stream", "_type"},
)
"""Entries of the parameters that are none of the request's."""
_SPELLED: Final[Mapping[str, str]] = {
    "toolChoice": "tool_choice",
    "maxTokens": "max_tokens",
    "maxOutputTokens": "max_tokens",
    "topP": "top_p",
    "topK": "top_k",
    "stopSequences": "stop",
    "frequencyPenalty": "frequency_penalty",
    "presencePenalty": "presence_penalty",
}
_COUNTS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "prompt": (("input",), ("prompt",), ("input_tokens",), ("promptTokens",), ("inputTokens",)),
    "completion": (("output",), ("completion",), ("output_tokens",), ("completionTokens",), ("outputTokens",)),
    "total": (("total",), ("total_tokens",), ("totalTokens",)),
    "cache_read": (
        ("input_cached_tokens",), ("input_cache_read",), ("prompt_details.cache_read",), ("cache_read_input_tokens",),
    ),
    "cache_write": (
        ("input_cache_creation",), ("cache_creation_input_tokens",), ("prompt_details.cache_write",),
    ),
    "reasoning": (("output_reasoning_tokens",), ("output_reasoning",), ("completion_details.reasoning",)),
    "prompt_audio": (("input_audio",), ("prompt_details.audio",)),
    "completion_audio": (("output_audio",), ("completion_details.audio",)),
}  # fmt: skip
_SYSTEMS: Final = ("gen_ai.provider.name", "gen_ai.system", "llm.system", "llm.provider", "ai.model.provider")
_ASKED_MODELS: Final = ("gen_ai.request.model", "ai.model.id", "llm.request.model_name", "llm.model_name", "model_name")
_ONE_NAME: Final = Loss(
    field="model",
    lost="the name of the model that was asked for: Langfuse keeps one, and once the reply is there it is the reply's",
    fix="send the same spans by OpenTelemetry with gen_ai.request.model, or set metadata={'requested_model': …}",
)
_REPLY_ID: Final = Loss(
    field="reply.id",
    lost="the reply's id: Langfuse has no field for it",
    fix="send the same spans by OpenTelemetry with gen_ai.response.id, or put it into the observation's metadata",
)
_TOOLS_APART: Final = Loss(
    field="messages",
    lost="the ids of tool calls and answers: the emitter wrote the messages as lines of text",
    fix="record with an emitter that keeps structured messages (gen_ai.input.messages)",
)
_MEDIA: Final = "@@@langfuseMedia:"
_MEDIA_APART: Final = Loss(
    field="messages",
    lost="images, sounds and documents: Langfuse keeps them apart, and the export names them only",
    fix="resolve the references before the export: langfuse.resolve_media_references(…)",
)
_NO_CONTENT: Final = Loss(
    field="messages",
    lost="input and output: this observation has neither",
    fix="leave capture of input and output on (capture_input, capture_output), and do not mask them away",
)


def _recognises(span: SpanRecord) -> float:
    attributes = span.attributes
    if f"{_PREFIX}type" in attributes or f"{_PREFIX}input" in attributes or f"{_PREFIX}output" in attributes:
        return 0.97
    return 0.6 if any(name.startswith("langfuse.") for name in attributes) else 0.0


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    attributes = said_of(span)
    kind = _kind(attributes)
    is_model = kind in (CallKind.LLM, CallKind.EMBEDDING)
    return semconv.call(
        span, attributes, "langfuse", _model(kind, attributes, span) if is_model else _function(kind, attributes)
    )


def _kind(attributes: Mapping[str, Json]) -> CallKind:
    """Tell what an observation is by its type, else by what its span said before it came to Langfuse."""
    observed_kind = _KINDS.get(as_text(attributes.get(f"{_PREFIX}type")).lower())
    if observed_kind is CallKind.LLM and attributes.get("langfuse.frame") is True:
        return CallKind.CHAIN  # a generation around generations is a piece of the program
    if observed_kind is not None:
        return observed_kind
    kind_name = as_text(attributes.get("openinference.span.kind"))
    if kind_name in _OPENINFERENCE:
        return CallKind(kind_name)
    if (
        "ai.toolCall.name" in attributes
        or "gen_ai.tool.name" in attributes
        or attributes.get("traceloop.span.kind") == "tool"
    ):
        return CallKind.TOOL
    if (kind := genai.kind_of(attributes)) is not CallKind.UNKNOWN:
        return kind
    result = as_object(structured(attributes.get(f"{_PREFIX}output")))
    kwargs = as_object(result.get("kwargs"))
    answers = "tool_call_id" in kwargs or ("tool_call_id" in result and "content" in result)
    return CallKind.TOOL if answers else CallKind.CHAIN


# ------------------------------------------------------------------------------------------------------------ models


def _model(kind: CallKind, attributes: Mapping[str, Json], span: SpanRecord) -> Reading:
    asked, as_lines = _asked(attributes)
    answered = _answered(attributes, as_lines=as_lines)
    parameters = as_object(structured(attributes.get(f"{_PREFIX}model.parameters")))
    one = as_text(attributes.get(f"{_PREFIX}model.name"))
    model = _asked_model(attributes, parameters, asked)
    losses = [_TOOLS_APART] if as_lines else []
    if not model and one and not is_dated(one):
        model = one
    elif not model and one:
        losses.append(_ONE_NAME)
    if asked is None and answered is None:
        losses.append(_NO_CONTENT)
    if _MEDIA in as_text(attributes.get(f"{_PREFIX}input")):
        losses.append(_MEDIA_APART)
    if asked is not None:
        asked = replace(
            asked,
            model=model or None,
            tools=asked.tools or _tools(attributes),
            parameters={**asked.parameters, **_parameters(parameters)},
            stream=asked.stream or genai.flag(parameters.get("is_stream")) is True or ".doStream" in span.name,
        )
        if kind is CallKind.EMBEDDING:
            asked = replace(asked, messages=(), inputs=_texts(attributes.get(f"{_PREFIX}input")))
    counted = _usage(attributes)
    system = _system(attributes, one or model)
    if answered is not None:
        own = answered.usage if answered.usage.prompt or answered.usage.completion else None
        answered = replace(answered, model=answered.model or one or None, usage=own or counted or answered.usage)
        losses += [] if answered.id or "gen_ai.response.id" in attributes else [_REPLY_ID]
    return Reading(
        kind=kind,
        asked=asked,
        answered=answered,
        system=system,
        api=_api(system, attributes),
        losses=tuple(losses),
    )


def _api(system: str, attributes: Mapping[str, Json]) -> str:
    """Tell OpenAI's responses from its chat completions by their items."""
    question, output = (structured(attributes.get(f"{_PREFIX}{name}")) for name in ("input", "output"))
    items = [as_object(item) for item in (*as_list(question), *as_list(output))]
    fields = as_object(question)
    is_response = as_object(output).get("object") == "response" or ("input" in fields and "instructions" in fields)
    calls = any(item.get("type") in ("function_call", "function_call_output") for item in items)
    return "responses" if is_response or calls or system.endswith(".responses") else ""


def _system(attributes: Mapping[str, Json], model: str) -> str:
    system = next((text for name in _SYSTEMS if (text := as_text(attributes.get(name)))), "")
    return system or as_text(_metadata(attributes).get("ls_provider")) or provider_of(model)


def _metadata(attributes: Mapping[str, Json]) -> dict[str, Json]:
    """Give an observation's metadata: an export has one object, spans have an attribute for each of its fields."""
    start = f"{_PREFIX}metadata."
    apart: dict[str, Json] = {
        name.removeprefix(start): value for name, value in attributes.items() if name.startswith(start)
    }
    return {**apart, **as_object(structured(attributes.get(f"{_PREFIX}metadata")))}


def _asked_model(attributes: Mapping[str, Json], parameters: Mapping[str, Json], asked: Asked | None) -> str:
    """Find the model that was asked for, in the request itself or in what its emitter said beside it."""
    own = asked.model if asked is not None else None
    metadata = _metadata(attributes)
    beside = [as_text(attributes.get(name)) for name in _ASKED_MODELS]
    candidates = [as_text(metadata.get(name)) for name in ("requested_model", "ls_model_name", "model")]
    return next((name for name in (own, as_text(parameters.get("model")), *beside, *candidates) if name), "")


def _asked(attributes: Mapping[str, Json]) -> tuple[Asked | None, bool]:
    """Read the question, and tell whether it stood as lines of text."""
    content = attributes.get(f"{_PREFIX}input")
    if line_messages := worded.lines_of(content):
        return Asked(messages=line_messages), True
    messages, offered = worded.tools_among(worded.opened(content, python_repr.read))
    own = native.native_request(messages)
    if own is not None:
        own = replace(own, messages=worded.with_roles(own.messages), tools=own.tools or native.tools(offered))
    for read in _before(attributes):
        own = read if own is None else richer_question(own, read)
    if own is None and (events := as_list(structured(attributes.get("events")))):
        own = native.native_request([each for each in events if as_object(each).get("event.name") != "gen_ai.choice"])
    if own is None and (text := as_text(content)):
        own = Asked(messages=(Message(role="user", parts=(Text(text),)),))
    return own, False


def _flat(attributes: Mapping[str, Json]) -> openinference.Tree:
    return openinference.tree(cast("Mapping[str, Any]", attributes))


def _before(attributes: Mapping[str, Json]) -> list[Asked]:
    """Read the question as the span had it when it came to Langfuse, in any dialect."""
    flat = openinference.openinference_request(_flat(attributes))
    candidates = [
        flat if flat.messages else None,
        parts.parts_request(attributes.get("gen_ai.input.messages"), attributes.get("gen_ai.system_instructions")),
        indexed.indexed_request(attributes),
        native.native_request(attributes["ai.prompt.messages"]) if "ai.prompt.messages" in attributes else None,
    ]
    return [read for read in candidates if read is not None and read.messages]


def _answered(attributes: Mapping[str, Json], *, as_lines: bool) -> Answered | None:
    output = attributes.get(f"{_PREFIX}output")
    if as_lines and isinstance(output, str):
        if output == "None":
            return None
        said_by = worded.lines(output)
        output = output if len(said_by) != 1 else output.partition(": ")[2]
    own = native.answered(worded.opened(output, python_repr.read))
    flat = openinference.answered(_flat(attributes))
    before = [
        flat if flat.messages else None,
        parts.answered(attributes.get("gen_ai.output.messages")),
        indexed.answered(attributes),
        _of_ai_sdk(attributes),
    ]
    for read in before:
        if read is not None and read.messages:
            own = read if own is None else richer_answer(own, read)
    return _plain_answer(output) if own is None else own


def _plain_answer(output: Json) -> Answered | None:
    """Take an output that is no reply of any spelling as what the model said."""
    value = structured(output)
    if not is_said(value) or value == "None":
        return None
    return Answered(messages=(Message(role="assistant", parts=(Text(text_or_json(value)),)),))


def _of_ai_sdk(attributes: Mapping[str, Json]) -> Answered | None:
    """Read the reply as the AI SDK spells it: text, calls and reasoning each in an attribute of its own."""
    reply: dict[str, Json] = {
        name: attributes[f"ai.response.{name}"]
        for name in ("text", "toolCalls", "reasoning", "object", "finishReason")
        if f"ai.response.{name}" in attributes
    }
    if not reply:
        return None
    read = native.answered({**reply, "toolCalls": structured(reply.get("toolCalls")) or []})
    if read is None:
        return None
    model, reply_id = as_text(attributes.get("ai.response.model")), as_text(attributes.get("ai.response.id"))
    return replace(read, model=model or read.model, id=reply_id or read.id)


def _tools(attributes: Mapping[str, Json]) -> tuple[Json, ...]:
    """Find the tools that were offered, which Langfuse may keep beside the question."""
    metadata = _metadata(attributes)
    model_request = as_object(structured(attributes.get("model_request_parameters")))
    places = (
        attributes.get("gen_ai.tool.definitions"),
        attributes.get("ai.prompt.tools"),
        attributes.get(f"{_PREFIX}tool_definitions"),
        metadata.get("tools"),
        model_request.get("function_tools"),
    )
    for place in places:
        if place and (tools := native.tools(place)):
            return tools
    flat = openinference.openinference_request(_flat(attributes)).tools
    return flat or (read.tools if (read := indexed.indexed_request(attributes)) is not None else ())


def _parameters(settings: Mapping[str, Json]) -> dict[str, Json]:
    """Give the request's own parameters, less what stands for nothing and what Langfuse's wrapper adds."""
    filled = settings.keys() >= _WRAPPER.keys()
    parameters: dict[str, Json] = {}
    for name, value in settings.items():
        if name in _SETTINGS or value in (None, "", "null", [], {}) or (filled and _WRAPPER.get(name) == value):
            continue
        spelled = _SPELLED.get(name, name)
        read = structured(value)
        if isinstance(read, list | dict) and (not read or read == {"arrayValue": {}}):
            continue
        if isinstance(value, str) and not isinstance(read, list | dict):
            flag, number = genai.flag(value), genai.number(value)
            read = flag if flag is not None else number if number is not None else value
        if spelled in ("max_tokens", "max_completion_tokens") and (not isinstance(read, int) or read < 0):
            continue
        if spelled == "tool_choice" and isinstance(read, dict) and read.keys() == {"type"}:
            read = read["type"]  # the AI SDK's spelling of a word
        parameters["stop" if spelled == "stop_sequences" else spelled] = read
    return parameters


def _texts(value: Json) -> tuple[str, ...]:
    content = structured(value)
    fields = as_object(content)
    inner = next(
        (fields[name] for name in ("input", "texts", "documents", "values", "value") if name in fields), content
    )
    items = as_list(inner) or [inner]
    return tuple(text for item in items if (text := as_text(item) or as_text(as_object(item).get("text"))))


def _usage(attributes: Mapping[str, Json]) -> Usage | None:
    for name in ("usage_details", "provided_usage_details", "usage"):
        usage = as_object(structured(attributes.get(f"{_PREFIX}{name}")))
        if any(key in usage for key in ("prompt_tokens", "completion_tokens")):
            return native.usage(usage)
        counts = {field: first_count(usage, *paths) for field, paths in _COUNTS.items()}
        if any(counts.values()):
            return Usage(**{**counts, **_apart(usage)})
    record = as_object(structured(attributes.get("langfuse.record")))  # where counts stand beside the usage
    counted = native.usage({name: count for name, count in record.items() if name.endswith("_tokens")})
    return counted if counted.prompt or counted.completion else None


def _apart(usage: Mapping[str, Json]) -> dict[str, int]:
    """Give both sides of a count whose details stand beside them and not within: only all together make the total."""
    sides = {"prompt": "input", "completion": "output"}
    within = {
        field: sum(as_count(count) or 0 for name, count in usage.items() if name == side or name.startswith(f"{side}_"))
        for field, side in sides.items()
    }
    total, plain = as_count(usage.get("total")), sum(as_count(usage.get(side)) or 0 for side in sides.values())
    return within if total is not None and plain < total == sum(within.values()) else {}


# --------------------------------------------------------------------------------------------------------- functions


def _function(kind: CallKind, attributes: Mapping[str, Json]) -> Reading:
    raw_arguments, output = attributes.get(f"{_PREFIX}input"), attributes.get(f"{_PREFIX}output")
    if attributes.get(f"{_PREFIX}type") == "trace":
        raw_arguments, output = attributes.get("langfuse.trace.input"), attributes.get("langfuse.trace.output")
    if raw_arguments is None and kind is CallKind.TOOL:
        raw_arguments = attributes.get("ai.toolCall.args", attributes.get("input.value"))
    if output is None and kind is CallKind.TOOL:
        output = attributes.get("ai.toolCall.result", attributes.get("output.value"))
    result, result_id = tool_io.result(structured(output)) if kind is CallKind.TOOL else (structured(output), "")
    names = ("ai.toolCall.name", "gen_ai.tool.name", "tool.name") if kind is CallKind.TOOL else ("gen_ai.agent.name",)
    call_id = (
        result_id or as_text(attributes.get("ai.toolCall.id")) or as_text(_metadata(attributes).get("tool_call_id"))
    )
    return Reading(
        kind=kind,
        name=next((text for name in names if (text := as_text(attributes.get(name)))), ""),
        arguments=tool_io.arguments(structured(raw_arguments)),
        result=result,
        has_result=output is not None,
        facts={"gen_ai.tool.call.id": call_id} if call_id else {},
    )


DIALECT = Dialect(
    name="langfuse", recognises=_recognises, decode=_decode, marks=SpanMarks(beginnings=("langfuse.",)), most=0.97
)
