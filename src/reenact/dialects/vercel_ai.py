"""The Vercel AI SDK, versions 3 to 6 (scope `ai`), and what is built on it and keeps its attributes, such as opencode.

From its source (`packages/ai/src/telemetry`) and recorded spans. `ai.generateText` and its like enclose one
`…doGenerate` or `…doStream` for every step, which is the call of the model; where both are there the outer one is
folded or becomes structure (`graph.twins`). Version 7 writes OTel GenAI and is read as that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reenact.contracts.dialect import Dialect, SpanMarks
from reenact.encodings import native
from reenact.foreign.foreign_call import CALL_ID, Loss, function_call, marked, model_call, said_of
from reenact.foreign.rebuilding import shape_for
from reenact.values.call import Call, CallKind, Outcome
from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_count, as_list, as_object, as_text, structured, text_or_json
from reenact.values.message import Answered, Asked, Message, Part, Reasoning, Text, ToolCall, Usage
from reenact.values.span import SpanRecord

_NAME: Final = "vercel-ai"
_MODELS: Final = ("generateText", "streamText", "generateObject", "streamObject")
_OBJECTS: Final = ("generateObject", "streamObject")
_SETTINGS: Final = (
    ("temperature", ("gen_ai.request.temperature", "ai.settings.temperature")),
    ("top_p", ("gen_ai.request.top_p", "ai.settings.topP")),
    ("top_k", ("gen_ai.request.top_k", "ai.settings.topK")),
    ("frequency_penalty", ("gen_ai.request.frequency_penalty", "ai.settings.frequencyPenalty")),
    ("presence_penalty", ("gen_ai.request.presence_penalty", "ai.settings.presencePenalty")),
    ("seed", ("gen_ai.request.seed", "ai.settings.seed")),
    ("max_tokens", ("gen_ai.request.max_tokens", "ai.settings.maxOutputTokens", "ai.settings.maxTokens")),
    ("stop", ("gen_ai.request.stop_sequences", "ai.settings.stopSequences")),
)
"""A parameter as chat completions calls it, and where it is kept."""
_SPELLED: Final[Mapping[tuple[str, str], str]] = {
    ("openai.responses", "max_tokens"): "max_output_tokens",
    ("anthropic.messages", "stop"): "stop_sequences",
}
"""What another shape calls it."""
_METADATA: Final = "ai.telemetry.metadata."
_KNOWN: Final = ("ai.prompt.messages", "ai.prompt", "ai.response.text", "ai.toolCall.name", "ai.model.id")


def _operation(span: SpanRecord) -> str:
    """Give the operation less its `ai.`; some exporters keep it in `operation.name` alone, with the function's id."""
    for name in ("ai.operationId", "operation.name"):
        operation_name = span.attributes.get(name)
        if isinstance(operation_name, str) and operation_name:
            word = operation_name.split(" ", 1)[0]
            if name == "ai.operationId" or word.startswith("ai."):
                return word.removeprefix("ai.")
    return span.name.removeprefix("ai.") if span.name.startswith("ai.") else ""


def _recognises(span: SpanRecord) -> float:
    attributes = span.attributes
    if isinstance(attributes.get("ai.operationId"), str):  # its own words say more than those put beside them
        return (
            0.92 if any(name.startswith(("ai.prompt", "ai.response.", "ai.toolCall.")) for name in attributes) else 0.85
        )
    operation_name = attributes.get("operation.name")
    if isinstance(operation_name, str) and operation_name.startswith("ai."):
        return 0.7
    return 0.6 if any(name in attributes for name in _KNOWN) else 0.0


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    attributes = marked(said_of(span), _NAME)
    for name, key in (("session.id", "sessionId"), ("user.id", "userId")):
        if isinstance(value := attributes.get(_METADATA + key), str):
            attributes.setdefault(name, value)
    operation = _operation(span)
    head = operation.partition(".")[0]
    if head == "toolCall":
        return _tool(span, attributes)
    if head in ("embed", "embedMany"):
        return _embedding(span, attributes)
    if head == "rerank":
        return _ranking(span, attributes)
    if head in _MODELS or "ai.prompt.messages" in attributes:
        return _model(span, attributes, operation)
    kind = CallKind.CHAIN if operation else CallKind.UNKNOWN
    return function_call(
        span, kind, _read(attributes.get("ai.prompt")), _read(attributes.get("ai.response.text")), attributes=attributes
    )


def _model(span: SpanRecord, attributes: dict[str, Json], operation: str) -> tuple[Call, Outcome]:
    system, api = _provider(attributes)
    shape = shape_for(system, api)[0].name
    asked = _asked(attributes, shape)
    stream = operation.startswith("stream")
    if stream:
        asked = Asked(
            model=asked.model, messages=asked.messages, tools=asked.tools, parameters=asked.parameters, stream=True
        )
    losses: list[Loss] = []
    if operation.startswith(_OBJECTS):
        fix = "record with `reenact run -- …`; the span of the model call never holds it"
        losses.append(Loss(field="response format", lost="the schema that the answer was made to", fix=fix))
    return model_call(
        span, asked, _answered(attributes), attributes=marked(attributes, _NAME, losses), system=system, api=api
    )


def _provider(attributes: Mapping[str, Json]) -> tuple[str, str]:
    """Give the provider and its API out of `openai.chat`, `anthropic.messages`, `google.generative-ai`."""
    provider = as_text(attributes.get("ai.model.provider")) or as_text(attributes.get("gen_ai.system"))
    system, _, api = provider.partition(".")
    return system, api


def _asked(attributes: Mapping[str, Json], shape: str) -> Asked:
    """Read the question: the inner span's messages, or the outer one's prompt as it was given."""
    prompt_messages = attributes.get("ai.prompt.messages")
    if prompt_messages is not None:
        messages = native.messages(prompt_messages)
    else:
        read = native.native_request(attributes.get("ai.prompt"))
        messages = read.messages if read is not None else ()
    tools = native.tools(as_list(_read(attributes.get("ai.prompt.tools"))))
    parameters: dict[str, Json] = {}
    for name, places in _SETTINGS:
        value = next((attributes[place] for place in places if attributes.get(place) is not None), None)
        if value is not None:
            parameters[_SPELLED.get((shape, name), name)] = value
    choice = _choice(as_object(structured(attributes.get("ai.prompt.toolChoice"))), shape)
    if choice is not None and tools:
        parameters["tool_choice"] = choice
    model = as_text(attributes.get("gen_ai.request.model")) or as_text(attributes.get("ai.model.id"))
    return Asked(model=model or None, messages=messages, tools=tools, parameters=parameters)


def _choice(choice: dict[str, Json], shape: str) -> Json:
    """Spell the choice of tools as the provider takes it."""
    kind, name = as_text(choice.get("type")), as_text(choice.get("toolName"))
    if not kind:
        return None
    if shape == "anthropic.messages":
        word = {"required": "any"}.get(kind, kind)
        return {"type": word, "name": name} if kind == "tool" else {"type": word}
    if kind == "tool":
        return {"type": "function", "name": name} if shape == "openai.responses" else _function_choice(name)
    return kind


def _function_choice(name: str) -> Json:
    return {"type": "function", "function": {"name": name}}


def _answered(attributes: Mapping[str, Json]) -> Answered:
    parts: list[Part] = []
    if thought := as_text(attributes.get("ai.response.reasoning")):
        parts.append(Reasoning(text=thought))
    if isinstance(text := attributes.get("ai.response.text"), str) and (
        text or "ai.response.toolCalls" not in attributes
    ):
        parts.append(Text(text))
    if isinstance(object_text := attributes.get("ai.response.object"), str):
        parts.append(Text(object_text))
    for call in map(as_object, as_list(structured(attributes.get("ai.response.toolCalls")))):
        arguments = call.get("input", call.get("args"))
        name = as_text(call.get("toolName")) or as_text(call.get("name"))
        parts.append(ToolCall(id=as_text(call.get("toolCallId")), name=name, arguments=text_or_json(arguments)))
    reason = as_text(attributes.get("ai.response.finishReason")) or as_text(attributes.get("ai.finishReason"))
    reasons = [reason] if reason else as_list(structured(attributes.get("gen_ai.response.finish_reasons")))
    return Answered(
        model=as_text(attributes.get("ai.response.model")) or as_text(attributes.get("gen_ai.response.model")) or None,
        id=as_text(attributes.get("ai.response.id")) or as_text(attributes.get("gen_ai.response.id")) or None,
        messages=(Message(role="assistant", parts=tuple(parts)),) if parts else (),
        finish_reasons=tuple(each for each in map(as_text, reasons) if each),
        usage=_usage(attributes),
    )


def _usage(attributes: Mapping[str, Json]) -> Usage:
    def first(*names: str) -> int | None:
        return next((count for name in names if (count := as_count(attributes.get(name))) is not None), None)

    return Usage(
        prompt=first("ai.usage.inputTokens", "ai.usage.promptTokens", "gen_ai.usage.input_tokens", "ai.usage.tokens"),
        completion=first("ai.usage.outputTokens", "ai.usage.completionTokens", "gen_ai.usage.output_tokens"),
        total=first("ai.usage.totalTokens"),
        cache_read=first("ai.usage.inputTokenDetails.cacheReadTokens", "ai.usage.cachedInputTokens"),
        cache_write=first("ai.usage.inputTokenDetails.cacheWriteTokens"),
        reasoning=first("ai.usage.outputTokenDetails.reasoningTokens", "ai.usage.reasoningTokens"),
    )


def _tool(span: SpanRecord, attributes: dict[str, Json]) -> tuple[Call, Outcome]:
    if called := as_text(attributes.get("ai.toolCall.id")):
        attributes.setdefault(CALL_ID, called)
    arguments, output = attributes.get("ai.toolCall.args"), attributes.get("ai.toolCall.result")
    name = as_text(attributes.get("ai.toolCall.name"))
    return function_call(
        span,
        CallKind.TOOL,
        _read(arguments),
        _read(output),
        attributes=attributes,
        name=name,
        has_result="ai.toolCall.result" in attributes,
    )


def _embedding(span: SpanRecord, attributes: dict[str, Json]) -> tuple[Call, Outcome]:
    """Read an embedding; every text and every vector is JSON text of its own."""
    system, _ = _provider(attributes)
    texts = _all(attributes, "ai.values", "ai.value")
    vectors = [as_list(each) for each in _all(attributes, "ai.embeddings", "ai.embedding")]
    asked = Asked(model=as_text(attributes.get("ai.model.id")) or None, inputs=tuple(map(text_or_json, texts)))
    numbers = tuple(tuple(float(n) for n in each if isinstance(n, int | float)) for each in vectors)
    answered = Answered(model=asked.model, vectors=numbers, usage=_usage(attributes))
    return model_call(
        span, asked, answered, attributes=attributes, system=system, api="embeddings", kind=CallKind.EMBEDDING
    )


def _ranking(span: SpanRecord, attributes: dict[str, Json]) -> tuple[Call, Outcome]:
    asked: dict[str, Json] = {"documents": _all(attributes, "ai.documents")}
    for name, key in (("query", "ai.query"), ("model", "ai.model.id"), ("top_n", "ai.topN")):
        if (value := attributes.get(key)) is not None:
            asked[name] = value
    ranked = _all(attributes, "ai.ranking", "ai.rankings")
    return function_call(span, CallKind.RERANKER, asked, ranked, attributes=attributes, has_result=bool(ranked))


def _all(attributes: Mapping[str, Json], *names: str) -> list[Json]:
    for name in names:
        value = attributes.get(name)
        if value is not None:
            return [_read(item) for item in (value if isinstance(value, list) else [value])]
    return []


def _read(value: Json) -> Json:
    """Read JSON text, which the SDK makes of every value that is no scalar; cut-off text stays text."""
    if not isinstance(value, str):
        return value
    read = parsed_or_none(value)
    return value if read is None and value != "null" else read


DIALECT = Dialect(
    name=_NAME,
    recognises=_recognises,
    decode=_decode,
    marks=SpanMarks(attributes=("ai.operationId", "operation.name", *_KNOWN)),
    most=0.92,
)
