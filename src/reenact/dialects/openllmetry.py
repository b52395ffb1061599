"""OpenLLMetry (Traceloop), old and new.

Old: `gen_ai.prompt.N.…`, `gen_ai.completion.N.…` and `llm.request.functions.N.…`; new: OTel GenAI's parts messages, or
its log events. Both: workflows, tasks, agents and tools of decorators and of LangChain under `traceloop.entity.*`,
session and user as association properties, and what vector databases were asked and found.
"""

from __future__ import annotations

import re
from typing import Final

from reenact.contracts.dialect import Dialect, SpanMarks
from reenact.encodings import events, indexed, native, parts, python_repr, semconv, tool_io
from reenact.encodings.semconv import Reading
from reenact.foreign import genai
from reenact.foreign.foreign_call import Loss, carried, plain, said_of
from reenact.values.call import Call, CallKind, Outcome
from reenact.values.json import Json
from reenact.values.lenient import as_object, as_text, structured
from reenact.values.message import Message, Text
from reenact.values.span import SpanRecord

NAME: Final = "openllmetry"
_KINDS: Final = {
    "workflow": CallKind.CHAIN,
    "task": CallKind.CHAIN,
    "handoff": CallKind.CHAIN,
    "agent": CallKind.AGENT,
    "tool": CallKind.TOOL,
    "retriever": CallKind.RETRIEVER,
}
"""`traceloop.span.kind` to what such a call is."""
_INPUT, _OUTPUT = "traceloop.entity.input", "traceloop.entity.output"
_GIVEN: Final = ("gen_ai.tool.call.arguments", _INPUT)
_TOLD: Final = ("gen_ai.tool.call.result", _OUTPUT)
_ABOUT: Final = frozenset({"tags", "metadata", "kwargs"})
"""What LangChain's callbacks put beside what was given."""
_STORES: Final = ("chromadb", "pinecone", "qdrant", "weaviate", "milvus", "lancedb", "marqo")
_READS: Final = ("query", "search", "get", "fetch", "retrieve", "peek", "scroll", "recommend", "discover", "do")
_NAMED: Final = re.compile(
    r"[a-z_]+(\.[a-z_]+)*\.(chat|completions?|embed|embeddings?|rerank|response|run|stream|create)"
)
"""How OpenLLMetry names a call, where the conventions say `chat gpt-4o`."""
_FOUND: Final = ("db.query.result", "db.search.result", "db.pinecone.query.result")
_SOUGHT: Final = ("db.query.embeddings", "db.search.embeddings", "db.pinecone.query.embeddings")
_SWITCHED_OFF: Final = Loss(
    field="messages",
    lost="the emitter kept no content",
    fix="set TRACELOOP_TRACE_CONTENT=true (it is the default)",
)


def _recognises(span: SpanRecord) -> float:
    attributes = span.attributes
    if any(name.startswith("traceloop.") for name in attributes):
        return 0.84
    instrumented = span.scope.name.startswith(("opentelemetry.instrumentation.", "traceloop."))
    if instrumented and (
        "llm.request.type" in attributes or any(name.startswith("gen_ai.prompt.") for name in attributes)
    ):
        return 0.84
    if "gen_ai.openai.api_base" in attributes or "llm.request.type" in attributes:
        return 0.82
    if span.scope.name.startswith("traceloop.") or (instrumented and _NAMED.fullmatch(span.name)):
        return 0.82
    if any(name.startswith(("gen_ai.prompt.0.", "gen_ai.completion.0.")) for name in attributes):
        return 0.7
    return 0.6 if attributes.get("db.system") in _STORES and instrumented else 0.0


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    attributes = said_of(span)
    kind = _kind(span, attributes)
    if kind in (CallKind.LLM, CallKind.EMBEDDING):
        reading = _model(span, attributes, kind)
    elif kind is CallKind.RERANKER:
        reading = _reranked(attributes)
    elif as_text(attributes.get("db.system")) and _INPUT not in attributes:
        reading = _store(span, attributes, kind)
    else:
        reading = _entity(attributes, kind)
    return semconv.call(span, attributes, NAME, reading)


def _kind(span: SpanRecord, attributes: dict[str, Json]) -> CallKind:
    entity_kind = _KINDS.get(as_text(attributes.get("traceloop.span.kind")).lower())
    operation_kind = genai.kind_of(attributes)
    retrieves = operation_kind is CallKind.RETRIEVER or as_text(attributes.get("traceloop.entity.name")).endswith(
        "Retriever"
    )
    if entity_kind is CallKind.CHAIN and retrieves:
        return CallKind.RETRIEVER
    if entity_kind is not None:
        return entity_kind
    if operation_kind is CallKind.UNKNOWN and as_text(attributes.get("db.system")):
        words = (as_text(attributes.get("db.operation")) or span.name.rpartition(".")[2]).lower()
        return CallKind.RETRIEVER if words.startswith(_READS) else CallKind.TOOL
    if operation_kind is CallKind.UNKNOWN and (indexed.speaks(attributes) or "gen_ai.input.messages" in attributes):
        return CallKind.LLM
    return operation_kind


def _model(span: SpanRecord, attributes: dict[str, Json], kind: CallKind) -> Reading:
    asked, answered = parts.parts_exchange(attributes)
    numbered, event_reading = indexed.indexed_exchange(attributes), events.exchange_of_events(span.events)
    asked = semconv.either(semconv.either(asked, numbered[0]), event_reading[0])
    answered = semconv.or_else(semconv.or_else(answered, numbered[1]), event_reading[1])
    if asked is None or not asked.messages:  # LangChain's model spans of some releases
        asked = semconv.either(asked, native.native_request(_inside(attributes.get(_INPUT), "inputs")))
    if answered is None or not answered.messages:
        answered = semconv.or_else(answered, native.answered(_inside(attributes.get(_OUTPUT), "outputs")))
    losses = () if asked is not None and asked.messages else (_SWITCHED_OFF,)
    return Reading(kind=kind, asked=asked, answered=answered, losses=losses)


def _inside(value: Json, name: str) -> Json:
    read = structured(value)
    return as_object(read).get(name, read)


def _entity(attributes: dict[str, Json], kind: CallKind) -> Reading:
    """Read a decorated function, or a runnable or tool of LangChain."""
    name = as_text(attributes.get("gen_ai.tool.name")) if kind is CallKind.TOOL else ""
    name = name or as_text(attributes.get("traceloop.entity.name")) or as_text(attributes.get("gen_ai.agent.name"))
    raw_arguments = next((attributes[each] for each in _GIVEN if each in attributes), None)
    output_name = next((each for each in _TOLD if each in attributes), "")
    arguments = None if raw_arguments is None else _arguments(plain(raw_arguments))
    if not output_name:
        return Reading(kind=kind, name=name, arguments=arguments)
    result = _returned(plain(attributes[output_name]))
    if kind is CallKind.RETRIEVER:
        return Reading(kind=kind, name=name, arguments=arguments, result=genai.as_documents(result), has_result=True)
    if kind is CallKind.TOOL:
        result, identity = tool_io.result(result)
        facts: dict[str, Json] = {"gen_ai.tool.call.id": identity} if identity else {}
        return Reading(kind=kind, name=name, arguments=arguments, result=result, has_result=True, facts=facts)
    return Reading(kind=kind, name=name, arguments=arguments, result=result, has_result=True)


def _arguments(value: Json) -> Json:
    """Unwrap what a decorator keeps (`args` and `kwargs`) and what the callback of LangChain does (`inputs`)."""
    fields = as_object(value)
    if "inputs" in fields or "input_str" in fields:
        inputs = fields.get("inputs")
        if isinstance(inputs, dict) and inputs:
            return inputs
        text = as_text(fields.get("input_str"))
        read = structured(text) if text else None
        if isinstance(read, dict | list):
            return read
        literal = python_repr.read(text) if text else None
        return literal if isinstance(literal, dict | list) else (text or inputs)
    if "query" in fields and set(fields) <= {"query", *_ABOUT}:
        return {"query": fields["query"]}
    if set(fields) == {"tool_name", "arguments"}:  # the Model Context Protocol's instrumentation
        return fields["arguments"]
    return tool_io.arguments(value)


def _returned(value: Json) -> Json:
    fields = as_object(value)
    for name in ("output", "outputs"):
        if name in fields and set(fields) <= {name, "kwargs", "tags", "metadata"}:
            return fields[name]
    return value


def _reranked(attributes: dict[str, Json]) -> Reading:
    """Read a reranking: the documents stand as the system's words, the query as the user's."""
    asked, answered = indexed.indexed_exchange(attributes)
    words = [(message.role, _text(message)) for message in (asked.messages if asked else ())]
    query = next((text for role, text in reversed(words) if role == "user"), None)
    arguments: dict[str, Json] = {"query": query, "documents": [text for role, text in words if role == "system"]}
    result: list[Json] = [_text(message) for message in (answered.messages if answered else ())]
    return Reading(kind=CallKind.RERANKER, arguments=arguments, result=result or None)


def _text(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def _store(span: SpanRecord, attributes: dict[str, Json], kind: CallKind) -> Reading:
    """Read what a vector database was asked, and found."""
    query = {
        name: structured(value) for name, value in attributes.items() if name.startswith("db.") or ".data." in name
    }
    matches: list[Json] = []
    for event in span.events:
        if event.name in _SOUGHT:
            query |= {name: structured(carried(value)) for name, value in event.attributes.items()}
        if event.name in _FOUND:
            start = f"{event.name}."
            matches.append(
                {name.removeprefix(start): _literal(carried(value)) for name, value in event.attributes.items()}
            )
    return Reading(kind=kind, name=span.name, arguments=query, result=matches or None)


def _literal(value: Json) -> Json:
    """Read JSON text, and metadata that is Python's `repr`; a text that is neither stays a text."""
    read = structured(value)
    if read is value and isinstance(value, str) and value[:2] in ("{'", "['"):
        literal = python_repr.read(value)
        return value if literal is None else literal
    return read


DIALECT = Dialect(
    name=NAME,
    recognises=_recognises,
    decode=_decode,
    marks=SpanMarks(
        attributes=("gen_ai.openai.api_base", "llm.request.type"),
        beginnings=("traceloop.", "gen_ai.prompt.0.", "gen_ai.completion.0."),
        scopes=("opentelemetry.instrumentation.", "traceloop."),
    ),
    most=0.84,
)
