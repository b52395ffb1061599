"""Haystack 2 (scope `haystack`): components of a pipeline, whose input is Python's `repr` and whose output is JSON.

From its tracing (`haystack/tracing`) and recorded spans. A generator's run is a call of a model, a retriever's and a
ranker's a search, an embedder's an embedding; everything else is structure. A `ToolInvoker` runs all the tools that one
reply asked for in one span, which stands for as many calls: `parts` gives each its own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from reenact.contracts.dialect import Dialect, SpanMarks
from reenact.encodings import native, python_repr
from reenact.foreign.foreign_call import CALL_ID, Loss, function_call, marked, model_call, part, said_of
from reenact.values.call import Call, CallKind, Outcome
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lenient import as_list, as_object, as_text, text_or_json, text_or_none, without
from reenact.values.message import Answered, Asked, Message, Opaque, Part, Reasoning, Text, ToolCall
from reenact.values.span import Attribute, SpanRecord

_NAME: Final = "haystack"
_INPUT, _OUTPUT = "haystack.component.input", "haystack.component.output"
_TYPE, _FULL_TYPE = "haystack.component.type", "haystack.component.fully_qualified_type"
_TOOL: Final = "haystack.tool."
"""What the spans of single tools are told in, which `parts` makes of a `ToolInvoker`'s."""
_PROVIDERS: Final = (
    ("azureopenai", "azure"),
    ("openai", "openai"),
    ("anthropic", "anthropic"),
    ("bedrock", "aws.bedrock"),
    ("googleai", "google"),
    ("googlegenai", "google"),
    ("vertexai", "google"),
    ("gemini", "google"),
    ("cohere", "cohere"),
    ("mistral", "mistral"),
    ("ollama", "ollama"),
    ("huggingface", "huggingface"),
    ("nvidia", "nvidia"),
    ("openrouter", "openrouter"),
    ("togetherai", "together"),
    ("llamacpp", "llama.cpp"),
)
"""What the name of a generator's class begins with, and whose API it asks."""


def _recognises(span: SpanRecord) -> float:
    attributes = span.attributes
    if any(name in attributes for name in (_TYPE, "haystack.component.name", _TOOL + "name")):
        return 0.85
    if span.scope.name == "haystack" or span.name.startswith("haystack."):
        return 0.6
    return 0.5 if any(name.startswith("haystack.") for name in attributes) else 0.0


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    attributes = marked(said_of(span), _NAME)
    if _TOOL + "name" in attributes:
        return _tool(span, attributes)
    component = as_text(attributes.get(_TYPE))
    name = as_text(attributes.get("haystack.component.name")) or component or span.name
    arguments, output = _read(attributes.get(_INPUT)), _read(attributes.get(_OUTPUT))
    if component.endswith("Generator") and _generates(as_object(output)):
        return _model(span, attributes, component, name)
    if component.endswith("Retriever") or ("documents" in as_object(output) and component.endswith("WebSearch")):
        documents = as_object(output).get("documents", output)
        return function_call(span, CallKind.RETRIEVER, arguments, documents, attributes=attributes, name=name)
    if component.endswith("Ranker"):
        documents = as_object(output).get("documents", output)
        return function_call(span, CallKind.RERANKER, arguments, documents, attributes=attributes, name=name)
    if component.endswith("TextEmbedder"):
        return _embedding(span, attributes, as_object(arguments), as_object(output))
    if _TYPE not in attributes:
        arguments = _read(attributes.get("haystack.agent.input", attributes.get("haystack.pipeline.input_data")))
        output = _read(attributes.get("haystack.agent.output", attributes.get("haystack.pipeline.output_data")))
    agent = component.endswith("Agent") or span.name.startswith("haystack.agent")
    kind = CallKind.AGENT if agent else CallKind.CHAIN
    return function_call(span, kind, arguments, output, attributes=attributes, name=name)


def _generates(output: dict[str, Json]) -> bool:
    """Tell a generator of text from one of images or of queries; one that failed or says nothing passes for it."""
    return not output or "replies" in output


def _model(span: SpanRecord, attributes: dict[str, Json], component: str, name: str) -> tuple[Call, Outcome]:
    answered = _answered(attributes.get(_OUTPUT))
    asked = _asked(attributes.get(_INPUT))
    losses: list[Loss] = []
    if asked is not None and asked.model is None:
        fix = "nothing in Haystack keeps it: record with `reenact run -- …`"
        lost = "the model that was asked for, of which the reply names the one that answered"
        losses.append(Loss(field="request model", lost=lost, fix=fix))
        losses.append(Loss(field="parameters", lost="the parameters that the generator was made with", fix=fix))
        asked = replace(asked, model=answered.model if answered else None)
    if attributes.get(_INPUT) is None:
        fix = "set HAYSTACK_CONTENT_TRACING_ENABLED=true"
        losses.append(Loss(field="content", lost="what was asked and answered", fix=fix))
    word = component.lower()
    system = next((provider for start, provider in _PROVIDERS if word.startswith(start)), "")
    api = "responses" if "Responses" in component else ""
    return model_call(
        span,
        asked,
        answered,
        attributes=marked(attributes, _NAME, losses),
        system=system or "haystack",
        api=api,
        name=name,
    )


def _asked(payload: Json) -> Asked | None:
    """Read a generator's input: chat messages, or the one prompt of a generator of plain text."""
    fields = as_object(_read(payload))
    raw_messages = fields.get("messages")
    messages = tuple(message for each in as_list(raw_messages) for message in _message(as_object(each)))
    if not messages and isinstance(prompt := fields.get("prompt", raw_messages), str):
        messages = (Message(role="user", parts=(Text(prompt),)),)
    if not messages:
        return None
    tools = native.tools([_defined(as_object(tool)) for tool in _tools(fields.get("tools"))])
    settings = as_object(fields.get("generation_kwargs"))
    model = text_or_none(settings.get("model"))
    stream = fields.get("streaming_callback") is not None
    return Asked(model=model, messages=messages, tools=tools, parameters=without(settings, ("model",)), stream=stream)


def _tools(value: Json) -> list[Json]:
    """Open a toolset, which holds its tools in a list."""
    return as_list(value) or as_list(as_object(value).get("tools")) or as_list(as_object(value).get("args"))


def _defined(tool: dict[str, Json]) -> Json:
    inner = as_object(tool.get("data")) or tool
    return {name: inner[name] for name in ("name", "description", "parameters") if inner.get(name) is not None}


def _answered(output: Json) -> Answered | None:
    replies = as_list(as_object(_read(output)).get("replies"))
    metas = [as_object(as_object(each).get("meta", as_object(each).get("_meta"))) for each in replies]
    metas += [as_object(each) for each in as_list(as_object(_read(output)).get("meta"))]
    messages: list[Message] = []
    for each in replies:
        messages += _message(as_object(each)) if isinstance(each, dict) else native.messages(each, "assistant")
    first = next((meta for meta in metas if meta), dict[str, Json]())
    reasons = tuple(reason for meta in metas if (reason := as_text(meta.get("finish_reason"))))
    if not messages:
        return None
    return Answered(
        model=text_or_none(first.get("model")),
        id=text_or_none(first.get("id")),
        messages=tuple(messages),
        finish_reasons=reasons,
        usage=native.usage(first.get("usage")),
    )


def _message(message: dict[str, Json]) -> list[Message]:
    """Read one chat message, as JSON or out of its `repr`; one that holds several tools' answers is several."""
    role = as_text(message.get("role")) or as_text(message.get("_role")) or "user"
    name = text_or_none(message.get("name", message.get("_name")))
    content = message.get("content", message.get("_content"))
    parts: list[Part] = []
    results: list[Message] = []
    plain: list[Json] = [{"text": content}] if isinstance(content, str) else as_list(content)
    for each in plain:
        block = as_object(each)
        if (answer := _result(block)) is not None:
            origin = as_object(answer.get("origin"))
            text = text_or_json(answer.get("result"))
            call_id, tool = text_or_none(origin.get("id")), text_or_none(origin.get("tool_name"))
            results.append(Message(role="tool", parts=(Text(text),), tool_call_id=call_id, name=tool))
        else:
            parts.append(_part(block))
    if results:
        return results
    return [Message(role=role, parts=tuple(parts), name=name)]


def _result(block: dict[str, Json]) -> dict[str, Json] | None:
    if block.get("$class") == "ToolCallResult":
        return block
    answer = block.get("tool_call_result")
    return answer if isinstance(answer, dict) else None


def _part(block: dict[str, Json]) -> Part:
    called = as_object(block.get("tool_call")) or (block if block.get("$class") == "ToolCall" else {})
    if called:
        arguments = called.get("arguments")
        return ToolCall(
            id=as_text(called.get("id")), name=as_text(called.get("tool_name")), arguments=text_or_json(arguments)
        )
    thought = as_object(block.get("reasoning")) or (block if block.get("$class") == "ReasoningContent" else {})
    if thought:
        return Reasoning(text=as_text(thought.get("reasoning_text")))
    if isinstance(text := block.get("text"), str):
        return Text(text)
    image = as_object(block.get("image")) or block
    if isinstance(data := image.get("base64_image"), str):
        mime = as_text(image.get("mime_type"))
        read = native.messages([{"role": "user", "content": [{"type": "image", "data": data, "mime_type": mime}]}])
        return read[0].parts[0] if read and read[0].parts else Opaque(block)
    return Opaque(block)


def _embedding(
    span: SpanRecord, attributes: dict[str, Json], arguments: dict[str, Json], output: dict[str, Json]
) -> tuple[Call, Outcome]:
    meta = as_object(output.get("meta"))
    model = text_or_none(meta.get("model"))
    numbers = tuple(float(each) for each in as_list(output.get("embedding")) if isinstance(each, int | float))
    asked = Asked(model=model, inputs=(as_text(arguments.get("text")),) if "text" in arguments else ())
    answered = Answered(model=model, vectors=(numbers,) if numbers else (), usage=native.usage(meta.get("usage")))
    word = as_text(attributes.get(_TYPE)).lower()
    system = next((provider for start, provider in _PROVIDERS if word.startswith(start)), "haystack")
    return model_call(
        span, asked, answered, attributes=attributes, system=system, api="embeddings", kind=CallKind.EMBEDDING
    )


def _parts(span: SpanRecord) -> tuple[SpanRecord, ...]:
    """Give a span for each tool that a `ToolInvoker` ran; none for anything else."""
    if span.attributes.get(_TYPE) != "ToolInvoker":
        return ()
    output = as_object(_read(_json(span.attributes.get(_OUTPUT))))
    spans: list[SpanRecord] = []
    for message in map(as_object, as_list(output.get("tool_messages"))):
        for block in map(as_object, as_list(message.get("content", message.get("_content")))):
            if (answer := _result(block)) is not None:
                spans.append(_part_span(span, answer, len(spans)))
    return tuple(spans)


def _part_span(span: SpanRecord, answer: dict[str, Json], place: int) -> SpanRecord:
    origin = as_object(answer.get("origin"))
    attributes: dict[str, Attribute] = {
        _TOOL + "name": as_text(origin.get("tool_name")),
        _TOOL + "id": as_text(origin.get("id")),
        _TOOL + "arguments": compact(origin.get("arguments")),
        _TOOL + "result": compact(answer.get("result")),
        _TOOL + "error": answer.get("error") is True,
    }
    start, end = span.start_ns, span.end_ns
    return part(span, str(place), name="haystack.tool", start_ns=start, end_ns=end, attributes=attributes)


def _tool(span: SpanRecord, attributes: dict[str, Json]) -> tuple[Call, Outcome]:
    if called := as_text(attributes.get(_TOOL + "id")):
        attributes.setdefault(CALL_ID, called)
    name = as_text(attributes.get(_TOOL + "name"))
    arguments, output = _read(attributes.get(_TOOL + "arguments")), _read(attributes.get(_TOOL + "result"))
    return function_call(span, CallKind.TOOL, arguments, output, attributes=attributes, name=name, has_result=True)


def _json(value: Attribute) -> Json:
    return value if isinstance(value, str) else None


def _read(value: Json) -> Json:
    """Read what a component's content tag holds: JSON, or `repr` where the value is no JSON."""
    if not isinstance(value, str):
        return value
    parsed = parsed_or_none(value)
    if parsed is not None or value == "null":
        return parsed
    return python_repr.read(value) if value[:1] in "{[(" else value


DIALECT = Dialect(
    name=_NAME,
    recognises=_recognises,
    decode=_decode,
    parts=_parts,
    marks=SpanMarks(beginnings=("haystack.",), scopes=("haystack",), names=("haystack.",)),
    most=0.85,
)
