"""OTel GenAI in all its generations: the parts messages of today, and the events of before.

Newest: `gen_ai.input.messages` and its like on the span, or on one event of its details. Before: a span event or a log
event for each message. Before that: one event for the prompt and one for the completion. Also tools, embeddings,
retrieval, memory, agents, workflows and the Model Context Protocol's spans. Such spans keep what was said, not the
bodies; a body that says the same is built, and `reenact.rebuilt` among the call's attributes says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from reenact.contracts.dialect import Around, Dialect, SpanMarks, View
from reenact.encodings import events, indexed, native, parts, semconv
from reenact.encodings.semconv import Reading
from reenact.foreign import genai
from reenact.foreign.foreign_call import Loss, plain, said_of
from reenact.values.call import (
    Call,
    CallKind,
    ExceptionRecord,
    FunctionCall,
    HttpReply,
    HttpRequest,
    Outcome,
    Raised,
    Returned,
    Streamed,
    StreamEnd,
    Value,
)
from reenact.values.evaluation import evaluation_of
from reenact.values.json import Json, compact
from reenact.values.lenient import as_object, as_text, at
from reenact.values.message import Answered, Asked, Message, Text
from reenact.values.span import KIND_CLIENT, KIND_INTERNAL, Attribute, SpanRecord

if TYPE_CHECKING:
    from reenact.encodings.model_exchange import ModelExchange

NAME: Final = "otel-genai"
_FIRST_ERROR_STATUS: Final = 400
_MESSAGES: Final = ("gen_ai.input.messages", "gen_ai.output.messages")
_NO_TOOLS: Final = Loss(
    field="tools",
    lost="one event a message: this generation of the conventions never keeps tool definitions",
    fix="set OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental",
)
_ADRIFT: Final = Loss(
    field="messages",
    lost="log events of several calls name no span: which call said what is unknown",
    fix="emit log events while the call's span is the current one",
)


def _recognises(span: SpanRecord) -> float:
    attributes = span.attributes
    if any(name in attributes for name in _MESSAGES) or isinstance(attributes.get(genai.OPERATION), str):
        return 0.8
    if isinstance(attributes.get("mcp.method.name"), str):
        return 0.6
    if events.speaks(span.events):
        return 0.55
    if any(name.startswith(("gen_ai.prompt", "gen_ai.completion")) for name in attributes):
        return 0.45
    return 0.3 if any(name.startswith("gen_ai.") for name in attributes) else 0.0


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    attributes = said_of(span)
    facts = events.facts(span.events)
    kind = genai.kind_of({**facts, **attributes})
    if kind is CallKind.UNKNOWN and (
        _MESSAGES[0] in attributes or _MESSAGES[1] in attributes or events.speaks(span.events)
    ):
        kind = CallKind.LLM
    if "reenact.synthetic" in attributes and events.several(span.events):
        reading = Reading(kind=CallKind.UNKNOWN, losses=(_ADRIFT,))
    elif kind in (CallKind.LLM, CallKind.EMBEDDING):
        asked, answered, losses = _messages(span, attributes)
        reading = Reading(kind=kind, asked=asked, answered=answered, facts=facts, losses=losses)
    elif kind is CallKind.TOOL:
        arguments, output = events.tool(span.events)
        reading = Reading(kind=kind, facts=facts)
        if arguments is not None and "gen_ai.tool.call.arguments" not in attributes:
            reading = Reading(kind=kind, facts=facts, arguments=arguments, result=output, has_result=output is not None)
    else:
        reading = Reading(kind=kind, facts=facts)
    return semconv.call(span, attributes, NAME, reading)


def _messages(span: SpanRecord, attributes: dict[str, Json]) -> tuple[Asked | None, Answered | None, tuple[Loss, ...]]:
    asked, answered = parts.parts_exchange(attributes)
    by_events = events.exchange_of_events(span.events)
    old = by_events[0] is not None and asked is None and not by_events[0].tools and not _in_details(span)
    asked, answered = semconv.either(asked, by_events[0]), semconv.or_else(answered, by_events[1])
    numbered = indexed.indexed_exchange(attributes)
    asked, answered = semconv.either(asked, numbered[0]), semconv.or_else(answered, numbered[1])
    if asked is None or not asked.messages:
        asked = semconv.either(asked, native.native_request(attributes.get("gen_ai.prompt")))
    if answered is None or not answered.messages:
        answered = semconv.or_else(answered, native.answered(attributes.get("gen_ai.completion")))
    if asked is None and genai.kind_of(attributes) is CallKind.EMBEDDING:
        asked = native.native_request(attributes.get("gen_ai.embeddings.input", attributes.get("gen_ai.input")))
    return asked, answered, (_NO_TOOLS,) if old else ()


def _in_details(span: SpanRecord) -> bool:
    return any(events.name_of(event) in events.DETAILS for event in span.events)


def _view(call: Call, outcome: Outcome, around: Around) -> View:
    """Show a call as the conventions have it. What they have no span for stays as it is."""
    try:
        if isinstance(call.request, HttpRequest):
            return _model_view(call, call.request, outcome)
        if call.is_mcp:
            return _message_view(call, outcome)
        return _function_view(call, outcome, around)
    except Exception:  # noqa: BLE001 -- a view that cannot be made is left out; the evidence is written elsewhere
        return View(attributes={})


def _model_view(call: Call, request: HttpRequest, outcome: Outcome) -> View:
    from reenact.encodings.model_exchange import model_exchange
    from reenact.values.genai_facts import facts

    exchange = model_exchange(request, outcome)
    if exchange is None:
        return View(attributes={**_failure(outcome)})
    shape, asked, answer = exchange.shape, exchange.asked, exchange.answered
    embeds = shape.kind is CallKind.EMBEDDING
    attributes = {**dict(facts(asked, answer, embeds=embeds)), **_conversation(call), **_failure(outcome)}
    if shape.kind is CallKind.LLM:
        attributes |= _openai_s(request, exchange)
    if isinstance(outcome, Streamed) and outcome.chunks and shape.kind is CallKind.LLM:
        attributes["gen_ai.response.time_to_first_chunk"] = outcome.chunks[0].offset_us / 1e6
        if answer.messages and not answer.finish_reasons and outcome.end is not StreamEnd.FINISHED:
            attributes["gen_ai.response.finish_reasons"] = ["error"]
    if shape.kind is CallKind.LLM:
        attributes |= _content(exchange.body, asked, answer)
    name = f"{shape.operation} {asked.model}" if asked.model else shape.operation
    return View(attributes=attributes, name=name, kind=KIND_CLIENT)


_APIS: Final = {"openai.chat": "chat_completions", "openai.responses": "responses"}


def _openai_s(request: HttpRequest, exchange: ModelExchange) -> dict[str, Attribute]:
    """Give what the conventions have for OpenAI alone; hosts that only speak its words are others' (`values.hosts`)."""
    from reenact.values.hosts import provider_at

    try:
        provider = provider_at(urlsplit(request.url).hostname or "")[1]
    except ValueError:
        provider = ""
    if exchange.shape.system != "openai" or provider not in ("", "openai"):
        return {}
    tier = as_text(at(exchange.body, "service_tier"))
    values = {
        "openai.api.type": _APIS.get(exchange.shape.name, ""),
        "openai.request.service_tier": "" if tier == "auto" else tier,
        "openai.response.service_tier": as_text(at(exchange.reply, "service_tier")),
        "openai.response.system_fingerprint": as_text(at(exchange.reply, "system_fingerprint")),
    }
    return {name: value for name, value in values.items() if value}


_APART: Final = ("system", "instructions", "systemInstruction", "system_instruction")
"""Fields of a body that hold the system's words apart from the messages."""


def _content(body: Json, asked: Asked, answer: Answered) -> dict[str, Attribute]:
    attributes: dict[str, Attribute] = {}
    history = asked.messages
    is_apart = isinstance(body, dict) and any(body.get(name) for name in _APART)
    if is_apart and history and history[0].role == "system":
        attributes["gen_ai.system_instructions"] = compact(parts.spelled_instructions(history[0]))
        history = history[1:]
    if history:
        attributes["gen_ai.input.messages"] = compact(parts.spelled_messages(history))
    if answer.messages:
        attributes["gen_ai.output.messages"] = compact(parts.spelled_answers(answer))
    if definitions := parts.spelled_tools([*asked.tools]):
        attributes["gen_ai.tool.definitions"] = compact(definitions)
    return attributes


def _conversation(call: Call) -> dict[str, Attribute]:
    session = call.attributes.get("session.id")
    return {"gen_ai.conversation.id": session} if isinstance(session, str) else {}


def _failure(outcome: Outcome) -> dict[str, Attribute]:
    """Name what went wrong: the class of what was raised, or the status of the reply."""
    match outcome:
        case Raised(exception=exception):
            return {"error.type": exception.qualname}
        case Streamed(exception=ExceptionRecord() as exception):
            return {"error.type": exception.qualname}
        case Streamed(status=status) | Returned(payload=HttpReply(status=status)) if status >= _FIRST_ERROR_STATUS:
            return {"error.type": str(status)}
        case _:
            return {}


def _function_view(call: Call, outcome: Outcome, around: Around) -> View:
    attributes = {**_conversation(call), **_failure(outcome)}
    value = _value(outcome)
    arguments = call.request.arguments if isinstance(call.request, FunctionCall) else None
    match call.kind:
        case CallKind.TOOL:
            attributes |= _tool(call, arguments, value, around)
            return View(attributes=attributes, name=f"execute_tool {call.name}")
        case CallKind.AGENT:
            attributes |= {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": call.name}
            for side, role, said in (("input", "user", arguments), ("output", "assistant", value)):
                if said not in (None, {}):
                    spelled = parts.spelled_messages([Message(role=role, parts=(Text(_words(said)),))])
                    attributes[f"gen_ai.{side}.messages"] = compact(spelled)
            return View(attributes=attributes, name=f"invoke_agent {call.name}", kind=KIND_INTERNAL)
        case CallKind.RETRIEVER:
            attributes |= _retrieval(call, arguments, value)
            source = attributes.get("gen_ai.data_source.id")
            return View(attributes=attributes, name=f"retrieval {source}" if source else "retrieval", kind=KIND_CLIENT)
        case CallKind.EVALUATOR if (evaluation := evaluation_of(call, outcome)) is not None:
            facts: dict[str, Attribute] = {"gen_ai.evaluation.name": evaluation.name}
            if evaluation.score is not None:
                facts["gen_ai.evaluation.score.value"] = evaluation.score
            for name, text in evaluation.texts.items():
                facts[f"gen_ai.evaluation.{'score.label' if name == 'label' else name}"] = text
            return View(attributes=attributes, events=(("gen_ai.evaluation.result", {**facts, **_failure(outcome)}),))
        case _:
            return View(attributes=attributes)


def _value(outcome: Outcome) -> Json:
    match outcome:
        case Returned(payload=Value(json=value)):
            return value
        case Streamed(chunks=chunks):
            return [chunk.value if chunk.data is None else chunk.data.decode("utf-8", "replace") for chunk in chunks]
        case _:
            return None


def _words(said: Json) -> str:
    """Give what an agent was told or said as text: its one argument, or all of them."""
    if isinstance(said, dict) and len(said) == 1 and isinstance(alone := next(iter(said.values())), str):
        return alone
    return said if isinstance(said, str) else compact(said)


def _tool(call: Call, arguments: Json, value: Json, around: Around) -> dict[str, Attribute]:
    attributes: dict[str, Attribute] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.type": "function",
    }
    if around.tool_call_id:
        attributes["gen_ai.tool.call.id"] = around.tool_call_id
    description = call.attributes.get("tool.description") or at(around.tool, "function", "description")
    if isinstance(description, str):
        attributes["gen_ai.tool.description"] = description
    attributes["gen_ai.tool.call.arguments"] = compact(arguments if isinstance(arguments, dict) else {})
    if value is not None:
        attributes["gen_ai.tool.call.result"] = _result(value)
    return attributes


def _result(value: Json) -> str:
    """Spell a result as JSON, a text as it is; but where that would be read as something else."""
    return value if isinstance(value, str) and plain(value) == value else compact(value)


_QUERIES: Final = ("query", "question", "query_text", "text", "q", "search", "input")
_LIMITS: Final = ("top_k", "k", "limit", "n_results", "max_results")


def _retrieval(call: Call, arguments: Json, value: Json) -> dict[str, Attribute]:
    from reenact.values.flat_attributes import retrieved_documents

    asked = as_object(arguments)
    attributes: dict[str, Attribute] = {"gen_ai.operation.name": "retrieval"}
    texts = [text for name in _QUERIES if isinstance(text := asked.get(name), str)]
    texts = texts or [text for text in asked.values() if isinstance(text, str)]
    if texts and not call.is_query:
        attributes["gen_ai.retrieval.query.text"] = texts[0]
    limits = [number for name in _LIMITS if (number := genai.count(asked.get(name))) is not None]
    if limits:
        attributes["gen_ai.retrieval.top_k"] = limits[0]
    if source := as_text(call.attributes.get("db.collection.name")):
        attributes["gen_ai.data_source.id"] = source
    if documents := retrieved_documents(value):
        attributes["gen_ai.retrieval.documents"] = compact([*documents])
    return attributes


def _message_view(call: Call, outcome: Outcome) -> View:
    """Show a message to a server of the Model Context Protocol."""
    method = as_text(call.attributes.get("mcp.method.name"))
    if not method:  # a connection
        return View(attributes={})
    attributes = {**_conversation(call), **_failure(outcome)}
    arguments = as_object(call.request.arguments if isinstance(call.request, FunctionCall) else None)
    target = call.name if call.kind in (CallKind.TOOL, CallKind.PROMPT) else ""
    if call.kind is CallKind.TOOL:
        attributes["gen_ai.tool.call.arguments"] = compact(arguments)
        if (value := _value(outcome)) is not None:
            attributes["gen_ai.tool.call.result"] = _result(value)
    if call.kind is CallKind.PROMPT:
        for name, variable in as_object(arguments.get("arguments")).items():
            attributes[f"gen_ai.prompt.variable.{name}"] = variable if isinstance(variable, str) else compact(variable)
    return View(attributes=attributes, name=f"{method} {target}".strip(), kind=KIND_CLIENT)


DIALECT = Dialect(
    name=NAME,
    recognises=_recognises,
    decode=_decode,
    view=_view,
    marks=SpanMarks(
        attributes=("mcp.method.name",), beginnings=("gen_ai.",), event_names=("gen_ai.",), events=("event.name",)
    ),
    most=0.8,
)
