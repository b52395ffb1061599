"""One JSON blob that is a provider's or a framework's own request or reply, told by its structure.

OpenAI chat and responses, Anthropic, Gemini, Bedrock converse, Cohere, Ollama, LangChain (constructors, states,
generations), LlamaIndex, Haystack, the AI SDK, pydantic-ai; lists of messages, and plain texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reenact.foreign.blocks import first_text, is_block, parts
from reenact.foreign.spelled_messages import turns
from reenact.values import tool_schema
from reenact.values.json import Json, compact
from reenact.values.lenient import as_list, as_object, as_text, first_count, structured, text_or_none, without
from reenact.values.message import Answered, Asked, Message, Reasoning, Text, Usage

_SYSTEMS: Final = ("system", "instructions", "system_instruction", "systemInstruction", "system_prompt", "preamble")
_ASKED: Final = ("messages", "input", "contents", "prompt", "prompts", "chat_history", "message", "inputs", "query")
"""Where a request keeps what is said to the model, in the order of their telling."""
_TOOLS: Final = ("tools", "functions", "toolConfig", "tool_config")
_MODELS: Final = ("model", "modelId", "model_id", "model_name", "modelVersion", "model_version")
_IDS: Final = ("id", "response_id", "responseId", "generation_id")
_NESTED: Final = ("config", "generationConfig", "generation_config", "inferenceConfig", "model_config")
"""Objects whose fields are parameters, and perhaps the system's words and tools."""
_TRANSPORT: Final = ("http_options", "httpOptions", "automatic_function_calling")
"""What stands in a configuration and never reaches the model."""
_PARAMETERS: Final = {
    "maxOutputTokens": "max_tokens",
    "maxTokens": "max_tokens",
    "stopSequences": "stop",
    "topP": "top_p",
    "topK": "top_k",
    "frequencyPenalty": "frequency_penalty",
    "presencePenalty": "presence_penalty",
    "toolChoice": "tool_choice",
}
"""Parameters as those name them who write camel case, to the words of OpenAI's chat completions."""
_CONFIGURED: Final = {"max_output_tokens": "max_tokens", "stop_sequences": "stop"}
"""The same inside of a configuration in snake case, where `max_output_tokens` is not that of OpenAI's responses."""
_WRAPPERS: Final = ("kwargs", "data", "body", "request", "llm_request", "input_value")
_REASONS: Final = ("finish_reason", "finishReason", "stop_reason", "stopReason", "done_reason", "finishMessage")
_REPLIES: Final = ("replies", "messages", "generations", "candidates", "choices", "output", "outputs")
_COUNTS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "prompt": (
        *(("prompt_tokens",), ("input_tokens",), ("inputTokens",), ("promptTokenCount",), ("prompt_token_count",)),
        ("promptTokens",),
    ),
    "completion": (
        *(("completion_tokens",), ("output_tokens",), ("outputTokens",), ("candidatesTokenCount",)),
        *(("candidates_token_count",), ("completionTokens",)),
    ),
    "total": (("total_tokens",), ("totalTokens",), ("totalTokenCount",), ("total_token_count",)),
    "cache_read": (
        *(("cache_read_input_tokens",), ("cacheReadInputTokens",), ("prompt_tokens_details", "cached_tokens")),
        *(("input_tokens_details", "cached_tokens"), ("input_token_details", "cache_read")),
        *(("cachedContentTokenCount",), ("cached_content_token_count",)),
    ),
    "cache_write": (("cache_creation_input_tokens",), ("cacheWriteInputTokens",)),
    "reasoning": (
        *(("completion_tokens_details", "reasoning_tokens"), ("output_tokens_details", "reasoning_tokens")),
        *(("output_token_details", "reasoning"), ("thoughtsTokenCount",), ("thoughts_token_count",)),
        ("reasoningTokens",),
    ),
}
_DEEPEST: Final = 6


def messages(value: Json, role: str = "user") -> tuple[Message, ...]:
    """Read messages alone, of whatever spelling."""
    read = structured(value)
    return () if read in (None, "") else turns(read, role)


def tools(value: Json) -> tuple[Json, ...]:
    """Read definitions of tools; every function comes out as OpenAI's chat completions nest it."""
    return tool_schema.tools(structured(value))


def native_request(value: Json, depth: int = 0) -> Asked | None:
    """Read a request, or None where this is nothing that a model is asked.

    `parameters` are all its fields that are not messages, tools, model or the system's words.
    """
    read = structured(value)
    if isinstance(read, str | list):
        request_messages = messages(read)
        return Asked(messages=request_messages) if request_messages else None
    if not isinstance(read, dict) or depth > _DEEPEST:
        return None
    if not any(read.get(name) for name in (*_ASKED, *_SYSTEMS, *_TOOLS)):
        inner = next((read[name] for name in _WRAPPERS if isinstance(read.get(name), dict | str | list)), None)
        if inner is not None and "role" not in read:
            request = native_request(inner, depth + 1) if isinstance(structured(inner), dict | list) else None
            return request or _loose(read)
        return _loose(read)
    return _loose(read) if "role" in read or read.get("lc") == 1 else _request(read, depth)


def _loose(read: dict[str, Json]) -> Asked | None:
    """Read one message that stands for the whole request."""
    is_message = "role" in read or "content" in read or "parts" in read or read.get("lc") == 1 or is_block(read)
    return Asked(messages=turns(read)) if is_message and read else None


def _request(read: dict[str, Json], depth: int) -> Asked | None:
    configured = [as_object(read.get(name)) for name in _NESTED]
    flat: dict[str, Json] = {}
    for entry in reversed(configured):
        flat |= {_CONFIGURED.get(name, name): item for name, item in entry.items()}
    used_names = {*_SYSTEMS, *_TOOLS, *_MODELS, "stream"}
    request_messages: list[Message] = []
    for name in _SYSTEMS:
        request_messages += _system(read.get(name, flat.get(name)))
    for name in _ASKED:
        content = structured(read.get(name))
        if content in (None, "", [], {}) or (request_messages and name == "query"):
            continue
        used_names.add(name)
        nested = native_request(content, depth + 1) if _is_request(content) else None
        if nested is not None:
            return _merged(nested, read, request_messages)
        request_messages += turns(_flat_messages(content))
    defined = next((tool_schema.tools(_tools(entry)) for entry in _all(read, flat, _TOOLS) if entry), ())
    if not request_messages and not defined:
        return None
    parameters = {**without(read, {*used_names, *_NESTED}), **without(flat, {*used_names, *_TRANSPORT})}
    return Asked(
        model=first_text(read, _MODELS) or first_text(flat, _MODELS) or None,
        messages=tuple(request_messages),
        tools=defined,
        parameters={_PARAMETERS.get(name, name): item for name, item in parameters.items() if item is not None},
        stream=read.get("stream") is True,
    )


def _all(read: dict[str, Json], flat: dict[str, Json], names: tuple[str, ...]) -> list[Json]:
    return [structured(fields[name]) for fields in (read, flat) for name in names if fields.get(name)]


def _tools(definitions: Json) -> Json:
    """Unwrap Bedrock's `toolConfig`."""
    listed = as_object(definitions).get("tools")
    return listed if isinstance(listed, list) else definitions


def _is_request(value: Json) -> bool:
    fields = as_object(value)
    asks = any(isinstance(structured(fields.get(name)), list) and fields.get(name) for name in ("messages", "contents"))
    return "role" not in fields and (asks or isinstance(fields.get("prompt"), str))


def _merged(inner: Asked, outer: dict[str, Json], system_messages: list[Message]) -> Asked:
    """Take what the outer object says of a request that it holds in one of its fields."""
    return Asked(
        model=inner.model or first_text(outer, _MODELS) or None,
        messages=(*system_messages, *inner.messages),
        tools=inner.tools or next((tool_schema.tools(definitions) for definitions in _all(outer, {}, _TOOLS)), ()),
        parameters=inner.parameters,
        stream=inner.stream,
    )


def _system(value: Json) -> list[Message]:
    prompt = structured(value)
    if prompt in (None, "", [], {}):
        return []
    fields = as_object(prompt)
    content = fields.get("parts") or fields.get("content") or prompt
    if isinstance(content, list) and any("role" in as_object(item) for item in content):
        return list(turns(content, "system"))
    return [Message(role="system", parts=parts(content))]


def _flat_messages(value: Json) -> Json:
    """Open LangChain's batch of one, and give texts of a batch as they are."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        return value[0]
    fields = as_object(value)
    return fields["messages"] if isinstance(fields.get("messages"), list) and "role" not in fields else value


def answered(value: Json, depth: int = 0) -> Answered | None:
    """Read a reply, or None where this is nothing that a model answers."""
    read = structured(value)
    if isinstance(read, str):
        return Answered(messages=(Message(role="assistant", parts=(Text(read),)),)) if read else None
    if isinstance(read, list):
        return _listed(read, depth)
    if not isinstance(read, dict) or not read or depth > _DEEPEST:
        return None
    reply_messages, reasons = _reply(read, depth)
    usage = _usage(read)
    if not reply_messages and usage == Usage() and not reasons:
        return None
    return Answered(
        model=_first_of(read, _MODELS),
        id=_first_of(read, _IDS),
        messages=reply_messages,
        finish_reasons=reasons,
        usage=usage,
    )


def _first_of(read: dict[str, Json], names: tuple[str, ...]) -> str | None:
    llm_output = as_object(read.get("llm_output"))
    return first_text(read, names) or first_text(llm_output, names) or None


def _listed(read: list[Json], depth: int) -> Answered | None:
    """Read a list: choices, generations, messages, blocks of one message, or texts."""
    if len(read) == 1 and isinstance(read[0], list):
        return _listed(read[0], depth + 1) if depth <= _DEEPEST else None
    if read and all(isinstance(item, dict) and ("message" in item or "generation_info" in item) for item in read):
        reply_messages, reasons = _choices(read)
        return Answered(messages=reply_messages, finish_reasons=reasons) if reply_messages else None
    if len(read) == 1 and isinstance(read[0], dict) and not is_block(read[0]):
        return answered(read[0], depth + 1)
    reply_messages = turns(read, "assistant")
    reasons = tuple(reason for item in map(as_object, read) if (reason := first_text(item, _REASONS)))
    return Answered(messages=reply_messages, finish_reasons=reasons) if reply_messages else None


def _reply(read: dict[str, Json], depth: int) -> tuple[tuple[Message, ...], tuple[str, ...]]:
    own = tuple(reason for name in _REASONS if (reason := as_text(read.get(name))))[:1]
    for name in ("choices", "candidates", "generations"):
        if listed := as_list(structured(read.get(name))):
            return _choices(listed)
    if (message := _message(read)) is not None:
        if not own:
            metadata = as_object(as_object(message).get("response_metadata")) or as_object(
                read.get("response_metadata")
            )
            own = tuple(reason for reason in (first_text(metadata, _REASONS),) if reason)
        return turns(message, "assistant"), own
    if "toolCalls" in read or isinstance(read.get("text"), str) or isinstance(read.get("object"), dict | list):
        return _sdk(read), own
    for name in _REPLIES:
        reply = structured(read.get(name))
        if reply in (None, "", [], {}):
            continue
        inner = answered(reply, depth + 1)
        if inner is not None:
            status = as_text(read.get("status"))
            return inner.messages, own or inner.finish_reasons or ((status,) if status else ())
    return (), own


def _message(read: dict[str, Json]) -> Json:
    """Find the one message of a reply: itself, or what it holds of it."""
    if "role" in read or "_role" in read or read.get("lc") == 1:
        return read
    content = read.get("content")
    if isinstance(content, dict) and ("parts" in content or "role" in content):  # Gemini, ADK
        return {"role": "assistant", **content}
    if isinstance(content, str | list):
        return {"role": "assistant", **without(read, ("type", "message", "text"))}
    for fields in (read, as_object(structured(read.get("output")))):
        if isinstance(message := fields.get("message"), dict | str) and message:
            return message if isinstance(message, dict) else {"role": "assistant", "content": message}
    if isinstance(calls := read.get("tool_calls"), list) and calls:
        return {"role": "assistant", **read}
    return read if is_block(read) and "toolCalls" not in read and "finishReason" not in read else None


def _choices(listed: list[Json]) -> tuple[tuple[Message, ...], tuple[str, ...]]:
    flat = [item for each in listed for item in (each if isinstance(each, list) else [each])]
    reply_messages: list[Message] = []
    reasons: list[str] = []
    for choice in map(as_object, flat):
        message = choice.get("message")
        content = message if message is not None else choice.get("content", choice.get("text"))
        if isinstance(content, dict) and "role" not in content and "lc" not in content:
            content = {"role": "assistant", **content}
        reply_messages += turns(content, "assistant")
        sources = [choice, as_object(choice.get("generation_info"))]
        sources += [as_object(source) for source in (as_object(message).get("response_metadata"),)]
        kwargs = as_object(as_object(message).get("kwargs"))
        sources.append(as_object(kwargs.get("response_metadata")))
        reason = next((reason for source in sources if (reason := first_text(source, _REASONS))), "")
        reasons += [reason] if reason else []
    return tuple(reply_messages), tuple(reasons)


def _sdk(read: dict[str, Json]) -> tuple[Message, ...]:
    """Read the AI SDK's result: text, reasoning and calls beside each other; or an object made to a schema."""
    blocks: list[Json] = []
    thought = text_or_none(read.get("reasoningText")) or text_or_none(read.get("reasoning"))
    if text := as_text(read.get("text")):
        blocks.append({"type": "text", "text": text})
    elif isinstance(generated_object := read.get("object"), dict | list):
        blocks.append({"type": "text", "text": compact(generated_object)})
    calls = [{"type": "tool-call", **as_object(call)} for call in as_list(structured(read.get("toolCalls")))]
    reply_messages = turns([*blocks, *calls], "assistant")
    if not thought:
        return reply_messages
    first = reply_messages[0] if reply_messages else Message(role="assistant")
    return (Message(role=first.role, parts=(Reasoning(text=thought), *first.parts)), *reply_messages[1:])


def _usage(read: dict[str, Json]) -> Usage:
    llm_output = as_object(read.get("llm_output"))
    counts: dict[str, Json] = {}
    for name in ("usage", "usageMetadata", "usage_metadata", "token_usage", "tokenUsage"):
        counts = counts or as_object(read.get(name)) or as_object(llm_output.get(name))
    return usage(counts)


def usage(value: Json) -> Usage:
    """Read counts of tokens in any provider's words. Anthropic's input is that beside the cache; a prompt's is all."""
    fields = as_object(value)
    counts = {name: first_count(fields, *paths) for name, paths in _COUNTS.items()}
    prompt = counts["prompt"]
    if prompt is not None and "cache_creation_input_tokens" in fields and "input_tokens" in fields:
        counts["prompt"] = prompt + (counts["cache_read"] or 0) + (counts["cache_write"] or 0)
    return Usage(**counts)
