"""OpenInference, the dialect that we record with, written from its specification (semantic conventions 0.1.42).

Our own spans carry the exact evidence (`values.evidence`) and the names of OpenInference and OTel GenAI that need no
look into a body. Messages, tools and usage are flattened on export. Spans of other emitters are read as far as their
`input.value` and `output.value` are a provider's bodies; nothing is invented.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast
from urllib.parse import urlsplit

from reenact.boundary.question import PLAIN_HTTP
from reenact.contracts.dialect import Dialect
from reenact.contracts.shape import Shape
from reenact.discover import members
from reenact.values import flattened, sse, typed
from reenact.values.call import (
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
    outcome_from_attributes,
    outcome_to_attributes,
    reply_to_attributes,
    request_body_to_attributes,
    request_from_attributes,
    request_to_attributes,
)
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lenient import as_object, as_text
from reenact.values.message import Answered
from reenact.values.raised import exception_of_span
from reenact.values.span import Attribute, SpanRecord

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
_PROVIDERS: Final[tuple[tuple[str, str, str], ...]] = (
    ("api.openai.com", "openai", "openai"),
    ("openai.azure.com", "azure", "azure.ai.openai"),
    ("services.ai.azure.com", "azure", "azure.ai.inference"),
    ("api.anthropic.com", "anthropic", "anthropic"),
    ("generativelanguage.googleapis.com", "google", "gcp.gemini"),
    ("aiplatform.googleapis.com", "google", "gcp.vertex_ai"),
    ("amazonaws.com", "aws", "aws.bedrock"),
    ("api.mistral.ai", "mistralai", "mistral_ai"),
    ("api.cohere.com", "cohere", "cohere"),
    ("api.groq.com", "groq", "groq"),
    ("api.together.ai", "together", "together"),
    ("api.together.xyz", "together", "together"),
    ("api.deepseek.com", "deepseek", "deepseek"),
    ("api.x.ai", "xai", "x_ai"),
    ("api.fireworks.ai", "fireworks", "fireworks"),
    ("api.moonshot.ai", "moonshot", "moonshot"),
    ("api.moonshot.cn", "moonshot", "moonshot"),
    ("api.cerebras.ai", "cerebras", "cerebras"),
    ("api.perplexity.ai", "perplexity", "perplexity"),
    ("api.llama.com", "meta", "meta"),
    ("api.z.ai", "zai", "zai"),
    ("oraclecloud.com", "oracle", "oracle"),
)
"""Ending of a host's name, `llm.provider` of OpenInference, `gen_ai.provider.name` of OTel GenAI."""
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
    "gen_ai.conversation.id",
    "error.type",
)
"""How the names begin that `_flatten` writes."""


class _Host(NamedTuple):
    name: str
    port: int | None
    provider: str
    genai_provider: str


@functools.lru_cache(maxsize=256)
def _host(url: str) -> _Host:
    try:
        split = urlsplit(url)
        name, port = split.hostname or "", split.port or {"https": 443, "http": 80}.get(split.scheme)
    except ValueError:
        return _Host("", None, "", "")
    for ending, provider, genai_provider in _PROVIDERS:
        if name == ending or name.endswith(f".{ending}"):
            return _Host(name, port, provider, genai_provider)
    return _Host(name, port, "", "")


@functools.cache
def _shapes() -> Mapping[str, Shape]:
    return {shape.name: shape for shape in members("shapes", Shape)}


_NOTHING: Final[Mapping[str, Attribute]] = {}


def _encode_call(call: Call) -> dict[str, Attribute]:
    shared, own = _split_call(call)
    return {**shared, **own}


def _split_call(call: Call) -> tuple[Mapping[str, Attribute], dict[str, Attribute]]:
    request = call.request
    if not isinstance(request, HttpRequest) or call.attributes:
        return _NOTHING, _encode_any_call(call)
    shared = _all_but_the_body(call.kind, request.shape, request.method, request.url, request.attempt)
    return shared, request_body_to_attributes(request.body)


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
    if operation := _OPERATIONS.get(call.kind):
        attributes["gen_ai.operation.name"] = operation
    if isinstance(call.request, HttpRequest):
        host = _host(call.request.url)
        shape = _shapes().get(call.request.shape)
        system = shape.system if shape else call.request.shape.partition(".")[0]
        if shape:
            attributes["gen_ai.operation.name"] = shape.operation
        if _is_a_provider_s(call.request):
            attributes["gen_ai.provider.name"] = host.genai_provider or system
            attributes["llm.system"] = system
        if host.provider and "llm.system" in attributes:
            attributes["llm.provider"] = host.provider
        if host.name:
            attributes["server.address"] = host.name
        if host.port is not None:
            attributes["server.port"] = host.port
    elif call.kind is CallKind.TOOL:
        attributes["tool.name"] = attributes["gen_ai.tool.name"] = call.name
    elif call.kind is CallKind.AGENT:
        attributes["agent.name"] = attributes["gen_ai.agent.name"] = call.name
    return attributes


def _is_a_provider_s(request: HttpRequest) -> bool:
    """Tell a request to a model's provider from one to anything else."""
    return request.shape != PLAIN_HTTP


def _encode_outcome(call: Call, outcome: Outcome) -> dict[str, Attribute]:
    return outcome_to_attributes(call.request, outcome)


def _recognises(span: SpanRecord) -> float:
    if "reenact.schema_version" in span.attributes:
        return 1.0
    if _KIND in span.attributes:
        return 0.9
    return 0.5 if any(name.startswith("llm.input_messages.") for name in span.attributes) else 0.0


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    named = span.attributes.get(_KIND)
    kind = CallKind(named) if isinstance(named, str) and named in _KINDS else CallKind.UNKNOWN
    request = request_from_attributes(span.attributes)
    if request is None:
        return _decode_foreign(span, kind)
    bare = Call(kind=kind, name=span.name, request=request)
    attributes = _given(span.attributes, _derived(bare))
    call = Call(kind=kind, name=span.name, request=request, attributes=attributes)
    return call, outcome_from_attributes(span.attributes)


def _given(attributes: Mapping[str, Attribute], derived: Mapping[str, Attribute]) -> dict[str, Json]:
    """Take back what the call itself said: all that is neither evidence, nor derived, nor flattened."""
    as_json = attributes.get(_SPELLED_AS_JSON)
    parsed = {name for name in as_json if isinstance(name, str)} if isinstance(as_json, list | tuple) else set[str]()
    given: dict[str, Json] = {}
    for name, value in attributes.items():
        if name in parsed and isinstance(value, str):
            given[name] = parsed_or_none(value)
        elif name != "reenact.tenant" and (name == _KIND or name.startswith(_OURS)):
            continue
        elif not name.startswith(_FLATTENED) and derived.get(name) != value:
            given[name] = _json(value)
    return given


def _json(value: Any) -> Json:
    """Carry an attribute's value as JSON. A sequence may come as a tuple; bytes get a tag."""
    return typed.encode(list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else value)


def _decode_foreign(span: SpanRecord, kind: CallKind) -> tuple[Call, Outcome]:
    """Read a span that another emitter wrote, or a root of ours, which says no more than where others hang."""
    attributes = span.attributes
    given = {
        name: _json(value)
        for name, value in attributes.items()
        if name not in (_KIND, "input.value", "input.mime_type", "output.value", "output.mime_type")
    }
    asked = attributes.get("input.value")
    body = parsed_or_none(asked) if isinstance(asked, str) else None
    shape = _shape_of(body, kind, attributes) if isinstance(body, dict) else ""
    if shape == "anthropic.messages" and isinstance(body, dict):  # these two are told by the span's name alone
        if span.name.endswith("messages.count_tokens"):
            shape = "anthropic.count_tokens"
        elif span.name.endswith("messages.stream") and "stream" not in body:
            asked = compact({**body, "stream": True})
            given["reenact.rebuilt"] = ["request"]
    request: Request
    if shape and isinstance(asked, str):
        request = HttpRequest(shape=shape, method="POST", url="", body=Body(asked.encode("utf-8", "surrogatepass")))
    else:
        plain = body if body is not None or not isinstance(asked, str) else asked
        request = FunctionCall(function="", arguments=typed.encode(plain))
    name = as_text(given.get("tool.name")) if kind is CallKind.TOOL else ""
    call = Call(kind=kind, name=name or span.name, request=request, attributes=given)
    return call, _foreign_outcome(span, call)


def _shape_of(body: dict[str, Json], kind: CallKind, attributes: Mapping[str, Attribute]) -> str:
    """Tell a provider's request body from the frameworks' own objects by the keys that its API requires."""
    if not isinstance(body.get("model"), str):
        return ""
    if kind is CallKind.EMBEDDING:
        return "openai.embeddings" if "input" in body else ""
    if kind is not CallKind.LLM:
        return ""
    system = attributes.get("llm.system") or attributes.get("llm.provider")
    if isinstance(messages := body.get("messages"), list) and all("role" in as_object(each) for each in messages):
        name = "anthropic.messages" if system == "anthropic" else "openai.chat"
    else:
        name = "openai.responses" if isinstance(body.get("input"), str | list) and system != "google" else ""
    return name if name in _shapes() else ""


def _foreign_outcome(span: SpanRecord, call: Call) -> Outcome:
    if "reenact.outcome" in span.attributes:  # our own root, of a process that ended before it did
        return outcome_from_attributes(span.attributes)
    if (exception := exception_of_span(span)) is not None:
        return Raised(exception=exception)
    text = span.attributes.get("output.value")
    if not isinstance(text, str) or text == _REDACTED:
        return Unfinished()
    value = parsed_or_none(text)
    if isinstance(call.request, HttpRequest) and isinstance(value, dict):
        headers = (("content-type", JSON),)
        body = Body(text.encode("utf-8", "surrogatepass"))
        return Returned(payload=HttpReply(status=200, headers=headers, body=body))
    plain = span.attributes.get("output.mime_type") != JSON or (value is None and text != "null")
    return Returned(payload=Value(json=typed.encode(text if plain else value)))


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
    shape = _shapes().get(request.shape)
    if shape is None:
        _flatten_plain(attributes, outcome)
        return
    asked = shape.read_request(parsed_or_none(request.body.data))
    answered = Answered()
    match outcome:
        case Returned(payload=HttpReply() as reply):
            answered = shape.read_reply(parsed_or_none(reply.body.data))
            if reply.status >= 400:
                attributes["error.type"] = str(reply.status)
        case Streamed():
            whole = _whole(shape, b"".join(chunk.data or b"" for chunk in outcome.chunks))
            if whole is not None:
                attributes |= {"output.value": compact(whole), "output.mime_type": JSON}
            answered = shape.read_reply(whole)
        case _:
            pass
    attributes.update(flattened.model_call(asked, answered, embeds=shape.kind is CallKind.EMBEDDING))


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


def _whole(shape: Shape, body: bytes) -> Json:
    """Fold a streamed body; an error's body is often no event stream but one document, whatever was asked for."""
    events = sse.json_events(body)
    return shape.fold(events) if events else parsed_or_none(body)


def _flatten_function(attributes: dict[str, Attribute], kind: CallKind, outcome: Outcome) -> None:
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
        attributes.update(flattened.retrieved(value))


def _yielded(chunk: Chunk) -> Json:
    return chunk.value if chunk.data is None else chunk.data.decode("utf-8", "replace")


DIALECT = Dialect(
    name="openinference",
    recognises=_recognises,
    encode_call=_encode_call,
    split_call=_split_call,
    encode_outcome=_encode_outcome,
    encode_reply=lambda _call, status, headers, body: reply_to_attributes(status, headers, body),
    decode=_decode,
    flatten=_flatten,
)
