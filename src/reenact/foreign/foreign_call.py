"""A call as a foreign span tells of it, in this package's own terms: what every dialect that only reads ends with.

In: the span, what its dialect made of it (`Asked`, `Answered`, arguments, a result). Out: the call and its outcome. The
model's request is built again in the provider's own words (`foreign.rebuilding`) and marked so; what a dialect alone
can know to be lost is listed under `reenact.lost`, and its name stands under `reenact.dialect`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from reenact.values import typed
from reenact.values.call import Call, CallKind, FunctionCall, Outcome, Raised, Returned, Unfinished, Value
from reenact.values.exception_record import exception_of_span
from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_list, as_object
from reenact.values.message import Answered, Asked, Message, Opaque, ToolCall, Usage
from reenact.values.span import Attribute, SpanRecord

DIALECT: Final = "reenact.dialect"
REBUILT: Final = "reenact.rebuilt"
LOST: Final = "reenact.lost"
CALL_ID: Final = "gen_ai.tool.call.id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """One thing that an emitter does not keep, and what would keep it."""

    field: str
    lost: str
    fix: str

    @property
    def json(self) -> Json:
        """The loss as it stands among a call's attributes."""
        return {"field": self.field, "lost": self.lost, "fix": self.fix}


_NOTHING_ASKED: Final = Loss(
    field="request",
    lost="what was asked: the emitter kept the answer alone",
    fix="turn on the capture of content in the emitter",
)


_NO_IDS: Final = Loss(
    field="tool call ids",
    lost="the ids by which calls of tools and their answers belong together",
    fix="update the emitter, or record with `reenact run -- …`",
)


def said_of(span: SpanRecord) -> dict[str, Json]:
    """Give a span's attributes as JSON; what a JSON text cannot hold gets a tag (`values.typed`)."""
    return {name: carried(value) for name, value in span.attributes.items()}


def carried(value: Any) -> Json:
    """Carry an attribute's value as JSON. A sequence may come as a tuple; bytes get a tag."""
    return typed.encode(list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else value)


def marked(attributes: Mapping[str, Json], dialect: str, losses: Iterable[Loss] = ()) -> dict[str, Json]:
    """Give a call's attributes with the dialect's name and what it knows to be lost."""
    value = attributes.get(LOST)
    entries = [*as_list(parsed_or_none(value) if isinstance(value, str) else value), *(loss.json for loss in losses)]
    return {**attributes, DIALECT: dialect, **({LOST: entries} if entries else {})}


def richer_question(flat: Asked, read: Asked | None) -> Asked:
    """Of two readings of one question, the one whose messages say more, with what the other says beside them."""
    if read is None or _weight(read.messages) <= _weight(flat.messages) or not _is_understood(read.messages):
        return flat
    return Asked(
        model=flat.model or read.model,
        messages=read.messages,
        tools=flat.tools or read.tools,
        parameters=flat.parameters,
        stream=flat.stream or read.stream,
    )


def richer_answer(flat: Answered, read: Answered | None) -> Answered:
    """Of two readings of one answer, the one whose messages say more, with what the other says beside them."""
    if read is None:
        return flat
    richer = _weight(read.messages) > _weight(flat.messages) and _is_understood(read.messages)
    return Answered(
        model=read.model or flat.model,
        id=flat.id or read.id,
        messages=read.messages if richer else flat.messages,
        finish_reasons=flat.finish_reasons or read.finish_reasons,
        usage=flat.usage if flat.usage != Usage() else read.usage,
        vectors=flat.vectors or read.vectors,
    )


def _is_understood(messages: tuple[Message, ...]) -> bool:
    """Tell messages from other objects that were taken for such: not every message is of unknown parts alone."""
    return any(any(not isinstance(part, Opaque) for part in message.parts) for message in messages)


def _weight(messages: tuple[Message, ...]) -> tuple[int, int]:
    """Say how much messages tell: how many say anything, and how many calls of tools are known by their ids."""
    ids = {part.id for message in messages for part in message.parts if isinstance(part, ToolCall) and part.id}
    ids |= {message.tool_call_id for message in messages if message.tool_call_id}
    return sum(bool(message.parts) for message in messages), len(ids)


_REPLIES: Final[Mapping[str, tuple[str, ...]]] = {
    "openai.chat": ("choices", "error"),
    "openai.responses": ("output", "error"),
    "openai.embeddings": ("data", "error"),
    "anthropic.messages": ("content", "error"),
    "anthropic.count_tokens": ("input_tokens", "error"),
}
"""Fields of which every reply of a shape has one."""


def body_shape(body: Mapping[str, Json], kind: CallKind, system: str) -> str:
    """Tell a provider's whole request body from a framework's own object by the keys that its API requires.

    Gives the shape's name, or nothing.
    """
    if not isinstance(body.get("model"), str):
        return ""
    if kind is CallKind.EMBEDDING:
        return "openai.embeddings" if "input" in body else ""
    if kind is not CallKind.LLM:
        return ""
    if isinstance(messages := body.get("messages"), list) and all("role" in as_object(each) for each in messages):
        return "anthropic.messages" if system == "anthropic" else "openai.chat"
    return "openai.responses" if isinstance(body.get("input"), str | list) and system != "google" else ""


def is_reply(body: Mapping[str, Json], shape: str) -> bool:
    """Tell a provider's whole reply body from a framework's own object."""
    return not body or any(name in body for name in _REPLIES.get(shape, tuple(body)))


def provider_of(model: str) -> str:
    """Guess who answers under a model's name, for emitters that do not say: `groq/llama-3`, `claude-…`."""
    first, _, _ = model.lower().rpartition("/")
    if first:
        return first
    from reenact.values import providers

    return providers.provider_of(model)


def model_call(  # noqa: PLR0913 -- what a model's call consists of
    span: SpanRecord,
    asked: Asked | None,
    answered: Answered | None,
    *,
    attributes: Mapping[str, Json],
    system: str,
    api: str = "",
    kind: CallKind = CallKind.LLM,
    name: str = "",
    whole: bool = False,
) -> tuple[Call, Outcome]:
    """Give a call of a model. Where nothing was kept of the question it is a function's that was told nothing.

    `whole` says that the emitter keeps all fields of a request: what is not there was not sent.
    """
    failed = exception_of_span(span)
    answers = answered is not None and bool(answered.messages or answered.vectors)
    if asked is None or not (asked.messages or asked.inputs):
        if not answers:
            request = FunctionCall(function="", arguments={})
            outcome: Outcome = Raised(exception=failed) if failed is not None else Unfinished()
            return Call(kind=kind, name=name or span.name, request=request, attributes=dict(attributes)), outcome
        asked = asked or Asked()
        attributes = marked(attributes, str(attributes.get(DIALECT, "")), [_NOTHING_ASKED])
    if any(isinstance(part, ToolCall) and not part.id for message in asked.messages for part in message.parts):
        attributes = marked(attributes, str(attributes.get(DIALECT, "")), [_NO_IDS])
    stream = True if asked.stream else None
    from reenact.foreign.rebuilding import rebuilt

    http, outcome, marks = rebuilt(asked, answered, system=system, api=api, stream=stream, failed=failed, whole=whole)
    return Call(kind=kind, name=name or span.name, request=http, attributes={**attributes, REBUILT: [*marks]}), outcome


def function_call(
    span: SpanRecord,
    kind: CallKind,
    arguments: Json,
    result: Json | None,
    *,
    attributes: Mapping[str, Json],
    name: str = "",
    has_result: bool | None = None,
) -> tuple[Call, Outcome]:
    """Give a call of a tool, a retriever or a piece of structure, its arguments and result plain JSON.

    `has_result` says whether the result was written down, where null may be one; else it was where it is not null.
    """
    failed = exception_of_span(span)
    outcome: Outcome = Unfinished()
    if failed is not None:
        outcome = Raised(exception=failed)
    elif has_result if has_result is not None else result is not None:
        outcome = Returned(payload=Value(json=typed.encode(result)))
    request = FunctionCall(function="", arguments=typed.encode(arguments))
    return Call(kind=kind, name=name or span.name, request=request, attributes=dict(attributes)), outcome


def part(
    span: SpanRecord, key: str, *, name: str, start_ns: int, end_ns: int, attributes: Mapping[str, Attribute]
) -> SpanRecord:
    """Give a span for one of the calls that a span stands for, below it; `key` tells it from the others."""
    seed = f"{span.trace_id}/{span.span_id}/{key}".encode("utf-8", "surrogatepass")
    return replace(
        span,
        span_id=hashlib.blake2b(seed, digest_size=8).hexdigest(),
        parent_id=span.span_id,
        name=name,
        start_ns=start_ns,
        end_ns=end_ns,
        attributes=attributes,
        events=(),
        links=(),
    )


def plain(value: Any) -> Json:
    """Read an attribute that may hold JSON text; a text that is none stays a text."""
    if not isinstance(value, str):
        return carried(value)
    read = parsed_or_none(value)
    return value if read is None and value.strip() != "null" else read
