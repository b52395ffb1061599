"""OpenInference, the dialect that we record with, written from its specification (semantic conventions 0.1.42).

Our own spans carry the exact evidence (`values.evidence`) and the names of OpenInference and OTel GenAI that need no
look into a body. Messages, tools and usage are flattened on export. Spans of other emitters are read as far as their
`input.value` and `output.value` are a provider's bodies; nothing is invented.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple, cast
from urllib.parse import urlsplit

from reenact.boundary.question import PLAIN_HTTP, shape_named
from reenact.contracts.dialect import Around, Dialect, SpanMarks, View, Writing
from reenact.contracts.shape import Shape
from reenact.foreign.foreign_call import (
    CALL_ID,
    Loss,
    body_shape,
    carried,
    is_reply,
    marked,
    model_call,
    provider_of,
    richer_answer,
    richer_question,
)
from reenact.foreign.foreign_call import DIALECT as DIALECT_MARK
from reenact.values import typed
from reenact.values.call import (
    DATABASE,
    Body,
    Call,
    CallKind,
    Chunk,
    FunctionCall,
    HttpReply,
    HttpRequest,
    Outcome,
    Raised,
    Request,
    Returned,
    Streamed,
    Unfinished,
    Value,
)
from reenact.values.evidence import (
    JSON,
    TEXT,
    arguments_to_attributes,
    outcome_from_attributes,
    outcome_to_attributes,
    reply_to_attributes,
    request_body_to_attributes,
    request_from_attributes,
    request_to_attributes,
)
from reenact.values.exception_record import exception_of_span
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.message import Answered, Asked
from reenact.values.run import OURS
from reenact.values.span import Attribute, SpanRecord

if TYPE_CHECKING:  # our own spans carry the evidence itself and need none of the readers of others'
    from reenact.encodings import openinference as flat

_KIND: Final = "openinference.span.kind"
_REDACTED: Final = "__REDACTED__"
_SPELLED_AS_JSON: Final = "reenact.attributes.json"
_OPERATIONS: Final[Mapping[CallKind, str]] = {
    CallKind.LLM: "chat",
    CallKind.EMBEDDING: "embeddings",
    CallKind.TOOL: "execute_tool",
    CallKind.AGENT: "invoke_agent",
    CallKind.RETRIEVER: "retrieval",
}
_KINDS: Final = frozenset(CallKind)
_LARGEST: Final = 2**63
_OURS = (
    "reenact.",
    "http.request.method",
    "http.request.resend_count",
    "http.response.status_code",
    "url.full",
    "input.value",
    "input.mime_type",
    "output.value",
    "output.mime_type",
)
_FLATTENED = (
    "llm.input_messages.",
    "llm.output_messages.",
    "llm.tools.",
    "llm.token_count.",
    "llm.invocation_parameters",
    "llm.model_name",
    "llm.request.model_name",
    "llm.response.model_name",
    "llm.finish_reason",
    "embedding.embeddings.",
    "embedding.model_name",
    "embedding.invocation_parameters",
    "retrieval.documents.",
    "gen_ai.request.",
    "gen_ai.response.",
    "gen_ai.usage.",
    "gen_ai.output.type",
    "gen_ai.embeddings.dimension.count",
    "gen_ai.conversation.id",
    "error.type",
)
"""How the names begin that `_flatten` writes."""


class _Host(NamedTuple):
    name: str
    port: int | None
    provider: str
    genai_provider: str
    system: str
    """Whose product answers there, where that is not told by the words in which it is asked."""


@functools.lru_cache(maxsize=256)
def _host(url: str) -> _Host:
    try:
        split = urlsplit(url)
        name, port = split.hostname or "", split.port or {"https": 443, "http": 80}.get(split.scheme)
    except ValueError:
        return _Host("", None, "", "", "")
    from reenact.values.hosts import provider_at  # most processes ask no provider

    return _Host(name, port, *provider_at(name))


_NOTHING: Final[Mapping[str, Attribute]] = {}


def _encode_call(call: Call) -> dict[str, Attribute]:
    shared, own = _split_call(call)
    return {**shared, **own}


def _split_call(call: Call) -> tuple[Mapping[str, Attribute], dict[str, Attribute]]:
    request = call.request
    if isinstance(request, FunctionCall) and request.function == DATABASE:
        return _all_but_the_question(call), arguments_to_attributes(request)
    if not isinstance(request, HttpRequest) or call.attributes:
        return _NOTHING, _encode_any_call(call)
    shared = _all_but_the_body(call.kind, request.shape, request.method, request.url, request.attempt)
    return shared, request_body_to_attributes(request.body)


_questions: Final[dict[tuple[int, CallKind], tuple[Mapping[str, Json], Mapping[str, Attribute]]]] = {}
_MOST_QUESTIONS: Final = 1024


def _all_but_the_question(call: Call) -> Mapping[str, Attribute]:
    """Spell a query but for its parameters: programs ask few statements, often. Equal ones share their attributes."""
    place = id(call.attributes), call.kind
    entry = _questions.get(place)
    if entry is None:
        if len(_questions) > _MOST_QUESTIONS:
            _questions.clear()
        spelled = _encode_any_call(call)
        del spelled["input.value"]
        entry = _questions[place] = call.attributes, spelled  # held, so that its identity stays its own
    return entry[1]


@functools.lru_cache(maxsize=256)
def _all_but_the_body(kind: CallKind, shape: str, method: str, url: str, attempt: int) -> Mapping[str, Attribute]:
    """Spell a request but for its body: an agent asks one endpoint again and again."""
    request = HttpRequest(shape=shape, method=method, url=url, body=Body(b""), attempt=attempt)
    attributes = _encode_any_call(Call(kind=kind, name="", request=request))
    return {name: value for name, value in attributes.items() if name not in request_body_to_attributes(request.body)}


def _encode_any_call(call: Call) -> dict[str, Attribute]:
    attributes = _derived(call)
    as_json: list[Attribute] = []
    for name, value in call.attributes.items():
        if _is_attribute(value):
            attributes[name] = cast("Attribute", value)
        else:
            attributes[name] = compact(value)
            as_json.append(name)
    if as_json:
        attributes[_SPELLED_AS_JSON] = as_json
    attributes.update(request_to_attributes(call.request))
    attributes[_KIND] = call.kind.value
    return attributes


def _is_attribute(value: Json) -> bool:
    if isinstance(value, list):
        return all(isinstance(item, str) and _is_attribute(item) for item in value)
    if isinstance(value, str):
        return value.isascii() or typed.encode(value) == value
    if isinstance(value, int):
        return -_LARGEST <= value < _LARGEST
    return isinstance(value, float)


def _derived(call: Call) -> dict[str, Attribute]:
    """Spell what follows from the call's name, kind and address; what the call itself says overrides it."""
    attributes: dict[str, Attribute] = {}
    if (operation := _OPERATIONS.get(call.kind)) and (call.kind is CallKind.TOOL or not call.is_mcp):
        attributes["gen_ai.operation.name"] = operation
    if isinstance(call.request, HttpRequest):
        attributes |= _of_address(call.kind, call.request)
    elif call.kind is CallKind.TOOL:
        attributes["tool.name"] = attributes["gen_ai.tool.name"] = call.name
    elif call.kind is CallKind.AGENT:
        attributes["agent.name"] = attributes["gen_ai.agent.name"] = call.name
    return attributes


def _of_address(kind: CallKind, request: HttpRequest) -> dict[str, Attribute]:
    """Spell who answers there, and in which words it is asked."""
    attributes: dict[str, Attribute] = {}
    host = _host(request.url)
    shape = shape_named(request.shape)
    system = shape.system if shape else request.shape.partition(".")[0]
    if shape:
        attributes["gen_ai.operation.name"] = shape.operation
    if _is_a_provider_s(request):
        attributes["gen_ai.provider.name"] = host.genai_provider or (shape.genai_provider if shape else "") or system
        if kind is not CallKind.EMBEDDING:  # the convention has neither for these
            attributes["llm.system"] = host.system or system
    if host.provider and "llm.system" in attributes:
        attributes["llm.provider"] = host.provider
    if host.name:
        attributes["server.address"] = host.name
    if host.port is not None:
        attributes["server.port"] = host.port
    return attributes


def _without_earlier(attributes: Mapping[str, Attribute], call: Call) -> Mapping[str, Attribute]:
    """Leave out what an earlier version said of every such call: it is nothing that this one says of itself."""
    if call.kind is CallKind.EMBEDDING and isinstance(call.request, HttpRequest):
        left_out = frozenset({"llm.system", "llm.provider"})
    elif call.kind is CallKind.RETRIEVER and call.is_mcp:
        left_out = frozenset({"gen_ai.operation.name"})
    elif attributes.get("gen_ai.provider.name") == "moonshot":
        left_out = frozenset({"gen_ai.provider.name"})
    else:
        return attributes
    return {name: value for name, value in attributes.items() if name not in left_out}


def _is_a_provider_s(request: HttpRequest) -> bool:
    """Tell a request to a model's provider from one to anything else."""
    return request.shape != PLAIN_HTTP


def _encode_outcome(call: Call, outcome: Outcome) -> dict[str, Attribute]:
    return outcome_to_attributes(call.request, outcome)


def _recognises(span: SpanRecord) -> float:
    if OURS in span.attributes or "reenact.boundary" in span.attributes:
        return 1.0
    if _KIND in span.attributes:
        return 0.9
    return 0.5 if any(name.startswith("llm.input_messages.") for name in span.attributes) else 0.0


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    kind_name = span.attributes.get(_KIND)
    kind = CallKind(kind_name) if isinstance(kind_name, str) and kind_name in _KINDS else CallKind.UNKNOWN
    request = request_from_attributes(span.attributes)
    if request is None:
        return _decode_foreign(span, kind)
    request, kind = _today(request, kind)
    bare = Call(kind=kind, name=span.name, request=request)
    attributes = _own_attributes(_without_earlier(span.attributes, bare), _derived(bare))
    call = Call(kind=kind, name=span.name, request=request, attributes=attributes)
    return call, outcome_from_attributes(span.attributes)


def _today(request: Request, kind: CallKind) -> tuple[Request, CallKind]:
    """Read a request that its recorder knew no shape for as one to a model, where this version knows the shape."""
    if not isinstance(request, HttpRequest) or request.shape != PLAIN_HTTP or kind is not CallKind.UNKNOWN:
        return request, kind
    from reenact.boundary.resource import shape_at

    shape = shape_at(request.method, request.url, request.body.data)
    return (request, kind) if shape is None else (replace(request, shape=shape.name), shape.kind)


def _own_attributes(attributes: Mapping[str, Attribute], derived: Mapping[str, Attribute]) -> dict[str, Json]:
    """Take back what the call itself said: all that is neither evidence, nor derived, nor flattened."""
    as_json = attributes.get(_SPELLED_AS_JSON)
    parsed = {name for name in as_json if isinstance(name, str)} if isinstance(as_json, list | tuple) else set[str]()
    own_values: dict[str, Json] = {}
    for name, value in attributes.items():
        if name in parsed and isinstance(value, str):
            own_values[name] = parsed_or_none(value)
        elif name != "reenact.tenant" and (name == _KIND or name.startswith(_OURS)):
            continue
        elif not name.startswith(_FLATTENED) and derived.get(name) != value:
            own_values[name] = carried(value)
    return own_values


def _decode_foreign(span: SpanRecord, kind: CallKind) -> tuple[Call, Outcome]:
    """Read a span that another emitter wrote, or a root of ours, which says no more than where others hang."""
    attributes = span.attributes
    extras = {
        name: carried(value)
        for name, value in attributes.items()
        if name not in (_KIND, "input.value", "input.mime_type", "output.value", "output.mime_type")
    }
    if OURS in attributes:
        call = Call(kind=kind, name=span.name, request=_told_arguments(attributes), attributes=extras)
        return call, _told_outcome(span)
    if kind is CallKind.UNKNOWN and _KIND not in attributes:
        kind = CallKind.LLM
    extras[DIALECT_MARK] = "openinference"
    if kind is CallKind.LLM and _prepares(attributes):
        kind = CallKind.CHAIN
    if kind is CallKind.LLM or (kind is CallKind.EMBEDDING and _exact_body(span, kind) is not None):
        return _decode_model(span, kind, extras)
    if kind is CallKind.EMBEDDING:
        return _decode_embedding(span, extras)
    if kind is CallKind.TOOL:
        return _decode_tool(span, extras)
    if kind in (CallKind.RETRIEVER, CallKind.RERANKER):
        return _decode_search(span, kind, extras)
    call = Call(kind=kind, name=span.name, request=_told_arguments(attributes), attributes=extras)
    return call, _told_outcome(span)


def _prepares(attributes: Mapping[str, Attribute]) -> bool:
    """Tell a function that returns what a model is to be asked, which some instrumentors take for a call of it."""
    output = attributes.get("output.value")
    if not isinstance(output, str) or '"messages"' not in output:
        return False
    if any(name.startswith(("llm.input_messages", "llm.output_messages", "llm.token_count")) for name in attributes):
        return False
    value = as_object(parsed_or_none(output))
    return isinstance(value.get("messages"), list) and "choices" not in value and "role" not in value


def _told_arguments(attributes: Mapping[str, Attribute]) -> FunctionCall:
    asked = attributes.get("input.value")
    body = parsed_or_none(asked) if isinstance(asked, str) else None
    return FunctionCall(function="", arguments=typed.encode(asked if body is None and isinstance(asked, str) else body))


def _told_outcome(span: SpanRecord) -> Outcome:
    """Read what came of a function as it was written down."""
    if "reenact.outcome" in span.attributes:  # our own root, of a process that ended before it did
        return outcome_from_attributes(span.attributes)
    if (exception := exception_of_span(span)) is not None:
        return Raised(exception=exception)
    text = span.attributes.get("output.value")
    if not isinstance(text, str) or text == _REDACTED:
        return Unfinished()
    value = parsed_or_none(text)
    plain = span.attributes.get("output.mime_type") != JSON or (value is None and text != "null")
    return Returned(payload=Value(json=typed.encode(text if plain else value)))


def _exact_body(span: SpanRecord, kind: CallKind) -> HttpRequest | None:
    """Give the request where `input.value` is a provider's whole body, not a framework's own object."""
    text = span.attributes.get("input.value")
    body = parsed_or_none(text) if isinstance(text, str) else None
    system = as_text(carried(span.attributes.get("llm.system") or span.attributes.get("llm.provider")))
    shape = body_shape(body, kind, system) if isinstance(body, dict) else ""
    if not shape or not isinstance(text, str) or _REDACTED in text:
        return None
    if shape == "anthropic.messages" and span.name.endswith("messages.count_tokens"):
        shape = "anthropic.count_tokens"
    return HttpRequest(shape=shape, method="POST", url="", body=Body(text.encode("utf-8", "surrogatepass")))


def _decode_model(span: SpanRecord, kind: CallKind, extras: dict[str, Json]) -> tuple[Call, Outcome]:
    from reenact.encodings import openinference as flat

    grown = flat.tree(span.attributes)
    answer = _answer(span, grown)
    exact = _exact_body(span, kind)
    if exact is None:
        asked = _question(span, grown)
        system = _provider(extras, asked.model or flat.model_named(grown, "llm"))
        asked = replace(asked, model=asked.model and asked.model.removeprefix(f"{system}/"))  # a gateway's word for it
        attributes = marked(extras, "openinference", _lost_of_rebuilt(asked, grown))
        return model_call(span, asked, answer, attributes=attributes, system=system, api=_api(span), kind=kind)
    body = as_object(parsed_or_none(exact.body.data))
    if exact.shape == "anthropic.messages" and span.name.endswith("messages.stream") and "stream" not in body:
        exact = replace(exact, body=Body(compact({**body, "stream": True}).encode("utf-8", "surrogatepass")))
        extras["reenact.rebuilt"] = ["stream"]  # nothing but the span's name says that it was a stream
    outcome = _exact_reply(span, exact)
    if outcome is None:
        shape = _shape(exact.shape)
        from reenact.foreign.rebuilding import rebuilt

        _, outcome, marks = rebuilt(Asked(), answer, system=shape.system, api=shape.operation)
        if isinstance(outcome, Returned):
            extras["reenact.rebuilt"] = [*as_list(extras.get("reenact.rebuilt")), *(m for m in marks if m != "request")]
    elif isinstance(outcome, Returned) and exception_of_span(span) is not None:
        extras["reenact.rebuilt"] = [*as_list(extras.get("reenact.rebuilt")), "failure"]
    return Call(kind=kind, name=span.name, request=exact, attributes=extras), outcome


def _shape(name: str) -> Shape:
    shape = shape_named(name)
    if shape is None:
        raise KeyError(name)
    return shape


def _api(span: SpanRecord) -> str:
    """Tell OpenAI's responses from its chat completions by the reply, or by what was called."""
    output = span.attributes.get("output.value")
    if isinstance(output, str) and '"object":"response"' in output.replace(" ", ""):
        return "responses"
    is_responses = span.name.lower().removeprefix("a").startswith("response") or span.scope.name.endswith(
        "openai_agents"
    )
    return "responses" if is_responses else ""


def _exact_reply(span: SpanRecord, request: HttpRequest) -> Outcome | None:
    """Give the outcome where `output.value` is a provider's whole reply, or None where it must be made of its parts."""
    if (exception := exception_of_span(span)) is not None:
        from reenact.foreign.rebuilding import failure

        return failure(_shape(request.shape), exception)
    text = span.attributes.get("output.value")
    value = parsed_or_none(text) if isinstance(text, str) else None
    if not isinstance(text, str) or not isinstance(value, dict) or _REDACTED in text:
        return None
    if not is_reply(value, request.shape):
        return None
    headers = (("content-type", JSON),)
    return Returned(payload=HttpReply(status=200, headers=headers, body=Body(text.encode("utf-8", "surrogatepass"))))


def _question(span: SpanRecord, grown: flat.Tree) -> Asked:
    """Read the question from the flat messages, or from the framework's own object where that says more."""
    from reenact.encodings import native
    from reenact.encodings import openinference as flat

    text = span.attributes.get("input.value")
    read = native.native_request(_framework_s(text)) if isinstance(text, str) and text != _REDACTED else None
    return richer_question(flat.openinference_request(grown), read)


def _answer(span: SpanRecord, grown: flat.Tree) -> Answered:
    from reenact.encodings import native
    from reenact.encodings import openinference as flat

    text = span.attributes.get("output.value")
    read = native.answered(_framework_s(text)) if isinstance(text, str) and text != _REDACTED else None
    return richer_answer(flat.answered(grown, text if isinstance(text, str) else ""), read)


def _framework_s(text: str) -> Json:
    """Read what a framework wrote of its own objects: JSON, `repr` of objects in JSON, or `repr`."""
    from reenact.encodings import python_repr

    value = parsed_or_none(text)
    if value is None:
        return python_repr.read(text) if text[:1] in "{[" else text
    return python_repr.within(value)


def _provider(extras: Mapping[str, Json], model: str) -> str:
    """Find who answered: as the emitter says it, as LangChain's metadata do, or as the model is called."""
    metadata = as_object(parsed_or_none(as_text(extras.get("metadata"))))
    system = extras.get("llm.system") or extras.get("llm.provider") or metadata.get("ls_provider")
    return as_text(system) or provider_of(model)


def _lost_of_rebuilt(asked: Asked, grown: flat.Tree) -> list[Loss]:
    from reenact.encodings import openinference as flat

    losses: list[Loss] = []
    fix = "record with `reenact run -- …`, which keeps it"
    if asked.model and not flat.names_the_asked_model(grown):
        lost = "the model asked for: one name is kept, which may be that of the one that answered"
        losses.append(Loss(field="request model", lost=lost, fix=fix))
    if flat.completes_a_text(grown):
        losses.append(Loss(field="api", lost="the API: a text was completed, and is rebuilt as a message", fix=fix))
    return losses


def _decode_embedding(span: SpanRecord, extras: dict[str, Json]) -> tuple[Call, Outcome]:
    from reenact.encodings import openinference as flat

    grown = flat.tree(span.attributes)
    texts, vectors = flat.embedded(grown)
    model = flat.model_named(grown, "embedding") or flat.model_named(grown, "llm")
    reply = flat.answered(grown)
    settings = as_object(parsed_or_none(as_text(extras.get("embedding.invocation_parameters")) or "null"))
    parameters = {
        name: settings[name] for name in ("dimensions", "encoding_format", "user") if settings.get(name) is not None
    }
    if not texts:
        call = Call(
            kind=CallKind.EMBEDDING, name=span.name, request=_told_arguments(span.attributes), attributes=extras
        )
        return call, _told_outcome(span)
    asked = Asked(model=model or None, inputs=texts, parameters=parameters)
    answer = Answered(model=model or None, vectors=vectors, usage=reply.usage)
    system = _provider(extras, model)
    return model_call(span, asked, answer, attributes=extras, system=system, kind=CallKind.EMBEDDING)


def _decode_tool(span: SpanRecord, extras: dict[str, Json]) -> tuple[Call, Outcome]:
    """Read a tool's call out of what instrumentors wrap around its arguments and its result."""
    from reenact.encodings import python_repr, tool_io

    attributes = span.attributes
    described = tool_io.read(extras.get("tool.parameters"))
    asked = attributes.get("input.value")
    arguments: Json = None
    if isinstance(asked, str):
        read = tool_io.read(asked)
        if isinstance(read, str) and read[:1] in ("{", "["):
            read = python_repr.read(read) or read
        arguments = tool_io.arguments(read, tool_io.parameter_names(described))
    elif not tool_io.is_schema(described):
        arguments = described
    outcome, answers = _tool_outcome(span)
    if isinstance(outcome, Raised) and "output.value" in attributes:
        extras["output.value"] = carried(attributes["output.value"])  # what it said beside its error
    names = ("tool.id", "tool_call.id", "tool.call.id")
    called = next((text for name in names if (text := as_text(extras.get(name)))), answers)
    if called:
        extras[CALL_ID] = extras.get(CALL_ID) or called
    request = FunctionCall(function="", arguments=typed.encode(arguments))
    name = as_text(extras.get("tool.name")) or span.name
    return Call(kind=CallKind.TOOL, name=name, request=request, attributes=extras), outcome


def _tool_outcome(span: SpanRecord) -> tuple[Outcome, str]:
    """Read what a tool said, and which call it answers, where a framework's message around it says so."""
    from reenact.encodings import tool_io

    outcome = _told_outcome(span)
    text = span.attributes.get("output.value")
    if not isinstance(outcome, Returned) or not isinstance(text, str):
        return outcome, ""
    read = tool_io.read(text)
    if "input.mime_type" not in span.attributes or "langchain" in span.scope.name:
        read = tool_io.unwrapped(read)  # LangChain's tracers say no type for a tool's input
    value, answers = tool_io.result(read)
    if not answers and read == tool_io.read(text):
        return outcome, ""
    return Returned(payload=Value(json=typed.encode(value))), answers


def _decode_search(span: SpanRecord, kind: CallKind, extras: dict[str, Json]) -> tuple[Call, Outcome]:
    """Read a retriever's or a reranker's call: what it was asked, and the documents that it found."""
    from reenact.encodings import openinference as flat

    grown = flat.tree(span.attributes)
    outcome = _told_outcome(span)
    request = _told_arguments(span.attributes)
    documents = flat.documents(grown, "retrieval", "documents")
    if kind is CallKind.RERANKER:
        documents = flat.documents(grown, "reranker", "output_documents")
        if "input.value" not in span.attributes:
            request = FunctionCall(function="", arguments=typed.encode(flat.to_rank(grown)))
    if documents and isinstance(outcome, Unfinished):
        outcome = Returned(payload=Value(json=typed.encode(documents)))
    return Call(kind=kind, name=span.name, request=request, attributes=extras), outcome


def _flatten(call: Call, outcome: Outcome) -> dict[str, Attribute]:
    attributes: dict[str, Attribute] = {}
    session = call.attributes.get("session.id")
    if isinstance(session, str):
        attributes["gen_ai.conversation.id"] = session
    if exception := getattr(outcome, "exception", None):
        attributes["error.type"] = exception.qualname
    try:
        if isinstance(call.request, HttpRequest):
            _flatten_http(attributes, call.request, outcome)
        else:
            _flatten_function(attributes, call.kind, outcome)
    except Exception:  # noqa: BLE001 -- a view that cannot be made is left out; the evidence is written elsewhere
        return attributes
    return attributes


def _flatten_http(attributes: dict[str, Attribute], request: HttpRequest, outcome: Outcome) -> None:
    from reenact.encodings.model_exchange import model_exchange
    from reenact.values import flat_attributes

    exchange = model_exchange(request, outcome)
    if exchange is None:
        _flatten_plain(attributes, outcome)
        return
    if exchange.folded and exchange.reply is not None:
        attributes |= {"output.value": compact(exchange.reply), "output.mime_type": JSON}
    if exchange.status is not None and exchange.status >= 400:
        attributes["error.type"] = str(exchange.status)
    embeds = exchange.shape.kind is CallKind.EMBEDDING
    attributes.update(flat_attributes.model_call(exchange.asked, exchange.answered, embeds=embeds))


def _flatten_plain(attributes: dict[str, Attribute], outcome: Outcome) -> None:
    """Show the body of a streamed reply as one text, where it is text."""
    match outcome:
        case Returned(payload=HttpReply(status=status)) if status >= 400:
            attributes["error.type"] = str(status)
        case Streamed(status=status, chunks=chunks):
            text = Body(b"".join(chunk.data or b"" for chunk in chunks)).text
            if text is not None:
                kind = TEXT if parsed_or_none(text) is None else JSON
                attributes |= {"output.value": text, "output.mime_type": kind}
            if status >= 400:
                attributes["error.type"] = str(status)
        case _:
            pass


def _flatten_function(attributes: dict[str, Attribute], kind: CallKind, outcome: Outcome) -> None:
    from reenact.values import flat_attributes

    value: Json = None
    match outcome:
        case Returned(payload=Value(json=value)):
            pass
        case Streamed():
            value = [_yielded(chunk) for chunk in outcome.chunks]
            attributes |= {"output.value": compact(value), "output.mime_type": JSON}
        case _:
            return
    if kind is CallKind.RETRIEVER:
        attributes.update(flat_attributes.retrieved(value))


def _view(call: Call, outcome: Outcome, around: Around) -> View:
    """Show what the run around a call tells of it, and what an evaluation came to; `_flatten` shows the rest."""
    attributes: dict[str, Attribute] = {}
    if around.graph_node:
        attributes |= {"graph.node.id": around.graph_node, "graph.node.name": around.graph_node}
        if around.graph_parent:
            attributes["graph.node.parent_id"] = around.graph_parent
    if call.kind is CallKind.TOOL:
        if around.tool_call_id:
            attributes["tool.id"] = around.tool_call_id
        function = as_object(as_object(around.tool).get("function"))
        if "parameters" in function:
            attributes |= {"tool.parameters": compact(function["parameters"]), "tool.json_schema": compact(around.tool)}
        if isinstance(description := function.get("description"), str):
            attributes["tool.description"] = description
    if call.kind is CallKind.EVALUATOR:
        attributes |= _evaluated(call, outcome)
    return View(attributes=attributes)


def _evaluated(call: Call, outcome: Outcome) -> dict[str, Attribute]:
    """Show what an evaluation came to."""
    from reenact.values.evaluation import evaluation_of  # no recorder shows anything

    attributes: dict[str, Attribute] = {}
    if (evaluation := evaluation_of(call, outcome)) is not None:
        first = "evaluations.0.evaluation"
        attributes |= {f"{first}.name": evaluation.name, f"{first}.annotator_kind": evaluation.annotator}
        if evaluation.score is not None:
            attributes[f"{first}.score"] = evaluation.score
        attributes |= {f"{first}.{name}": text for name, text in evaluation.texts.items()}
    return attributes


def _yielded(chunk: Chunk) -> Json:
    return chunk.value if chunk.data is None else chunk.data.decode("utf-8", "replace")


WRITING = Writing(
    encode_call=_encode_call,
    split_call=_split_call,
    encode_outcome=_encode_outcome,
    encode_reply=lambda _call, status, headers, body: reply_to_attributes(status, headers, body),
    flatten=_flatten,
)
DIALECT = Dialect(
    name="openinference",
    recognises=_recognises,
    decode=_decode,
    view=_view,
    writing=WRITING,
    marks=SpanMarks(attributes=(OURS, "reenact.boundary", _KIND), beginnings=("llm.input_messages.",)),
    most=1.0,
)
