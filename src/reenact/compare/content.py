"""What of a call is compared with another run's: everything that was said, less what differs from run to run by nature.

Left out, here and nowhere else: times, token counts, ids that a provider gave out (a tool call's id becomes the tool's
name and its place among the calls of that tool, so that a result tied to another call still shows), signatures and
encrypted parts, the spelling of a tool call's JSON arguments, memory addresses in error messages, and a shape's own
noise. Redaction tokens keyed by a salt of each run cannot be compared; with `blind` only the name of what was redacted
is.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from reenact.boundary.question import question
from reenact.boundary.reading import answered, asked, reply_body
from reenact.values.call import (
    ExceptionRecord,
    FunctionCall,
    HttpReply,
    HttpRequest,
    Raised,
    Returned,
    Streamed,
    StreamEnd,
    Value,
)
from reenact.values.child import steady
from reenact.values.json import Json, canonical, compact, digest, parse, parsed_or_none
from reenact.values.lenient import as_object
from reenact.values.message import Answered, Message, Opaque, Reasoning, Text, ToolCall
from reenact.values.run import Node

_TOKEN = re.compile(r"(REDACTED_\w+?)_[0-9a-f]{20}\b")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
_CONVERSATIONS = ("messages", "input", "contents")
"""Body fields that hold what was said so far, ids and all."""
_REFERENCES = frozenset({"tool_call_id", "call_id", "tool_use_id"})
_SEALED = frozenset({"encrypted_content", "signature", "obfuscation"})
_HANDLES = ("previous_response_id", "conversation", "container")
"""Body fields that name something the provider keeps."""
_ITEMS = frozenset({"message", "reasoning", "function_call", "custom_tool_call", "mcp_call", "web_search_call"})

_NOTHING = Answered()
"""What a shape reads in a reply that says something else than a model does, such as a count of tokens."""
_GIST = 80
"""Characters of a message that name a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What two calls are compared by."""

    asked: Json
    outcome: Json
    """One key says how it came out: `reply`, `returned`, `yielded`, `raised`, `unfinished`."""

    @property
    def question(self) -> str:
        """Names what was asked."""
        return digest(self.asked)

    @property
    def whole(self) -> str:
        """Names what was asked and what came of it."""
        return digest([self.asked, self.outcome])


def raw_key(node: Node) -> tuple[str, bytes]:
    """Name question and outcome as they were recorded: equal keys are equal calls, unequal ones need a closer look."""
    hasher = hashlib.blake2b(digest_size=16)
    match node.outcome:
        case Returned(payload=HttpReply(status=status, body=body)):
            hasher.update(b"%d\0" % status + body.data)
        case Returned(payload=Value(json=value)):
            hasher.update(b"returned\0" + canonical(value))
        case Raised(exception=exception):
            hasher.update(b"raised\0" + canonical(_raised(exception)))
        case Streamed(status=status, chunks=chunks):
            hasher.update(b"%d\0%s\0" % (status, canonical(_end(node.outcome))))
            for chunk in chunks:
                hasher.update(canonical(chunk.value) if chunk.data is None else chunk.data)
        case _:
            hasher.update(b"unfinished")
    return question(node.call).key, hasher.digest()


def content(node: Node, *, blind: bool = False) -> Content:
    """Read what of a call is compared."""
    question_json = question(node.call).asked
    if isinstance(node.call.request, HttpRequest):
        body = as_object(question_json).get("body")
        question_json = {**as_object(question_json), "body": _settled(body) if isinstance(body, dict) else body}
    outcome = _outcome(node)
    if blind:
        question_json, outcome = _blinded(question_json), _blinded(outcome)
    return Content(asked=question_json, outcome=outcome)


def blind(a: str, b: str) -> bool:
    """Tell that two texts differ by redaction tokens alone, which are keyed by a salt of each run."""
    return _TOKEN.sub(r"\1", a) == _TOKEN.sub(r"\1", b)


def _blinded(value: Json) -> Json:
    text = compact(value)
    return parse(_TOKEN.sub(r"\1", text)) if "REDACTED_" in text else value


def _settled(body: dict[str, Json]) -> Json:
    """Take provider's ids out of a request body."""
    names: dict[str, str] = {}
    counts: Counter[str] = Counter()
    settled: dict[str, Json] = {}
    for key, value in body.items():
        if key in _CONVERSATIONS:
            settled[key] = _conversation(value, names, counts)
        elif key in _HANDLES and isinstance(value, str):
            settled[key] = "(given by the provider)"
        else:
            settled[key] = value
    return settled


def _conversation(value: Json, names: dict[str, str], counts: Counter[str]) -> Json:
    if isinstance(value, list):
        return [_conversation(item, names, counts) for item in value]
    if not isinstance(value, dict):
        return value
    value = _replace_ids(value, names, counts)
    return {
        key: _arguments(item) if key == "arguments" and "name" in value else _conversation(item, names, counts)
        for key, item in value.items()
        if key not in _SEALED
    }


def _replace_ids(item: dict[str, Json], names: dict[str, str], counts: Counter[str]) -> dict[str, Json]:
    """Replace the ids of one item: a call's by its tool and count, a reference by the same, others by nothing."""
    call_id = item.get("call_id") or item.get("id")
    function = item.get("function") or item.get("custom")
    tool = as_object(function).get("name") or item.get("name")
    calls = isinstance(function, dict) or item.get("type") in {"tool_use", "function_call", "custom_tool_call"}
    if calls and isinstance(call_id, str) and isinstance(tool, str) and call_id not in names:
        names[call_id] = f"{tool} {counts[tool] + 1}"
        counts[tool] += 1
    replaced = dict(item)
    for key in (*sorted(_REFERENCES & item.keys()), *(["id"] if calls else [])):
        reference = item.get(key)
        if isinstance(reference, str):
            replaced[key] = names.setdefault(reference, f"call {len(names) + 1}")
    if item.get("type") in _ITEMS and ("call_id" in item or not calls):
        replaced.pop("id", None)
        replaced.pop("status", None)
    return replaced


def _arguments(value: Json) -> Json:
    """Read a tool call's arguments, which the model wrote as JSON text."""
    arguments = parsed_or_none(value) if isinstance(value, str) else None
    return arguments if isinstance(arguments, dict) else value


def _outcome(node: Node) -> Json:
    match node.outcome:
        case Returned(payload=Value(json=value)):
            return {"returned": steady(value) if node.call.is_child else value}
        case Returned(payload=HttpReply(status=status)):
            return {"reply": _reply(node, status)}
        case Raised(exception=exception):
            return {"raised": _raised(exception)}
        case Streamed(status=status) if isinstance(node.call.request, HttpRequest):
            return {"reply": {**_reply(node, status), **_end(node.outcome)}}
        case Streamed(chunks=chunks):
            return {"yielded": [chunk.value for chunk in chunks], **_end(node.outcome)}
        case _:
            return {"unfinished": True}


def _end(outcome: Streamed) -> dict[str, Json]:
    if outcome.end is StreamEnd.FINISHED:
        return {}
    ended: dict[str, Json] = {"end": outcome.end.value}
    if outcome.exception:
        ended["raised"] = _raised(outcome.exception)
    return ended


def _raised(exception: ExceptionRecord) -> dict[str, Json]:
    return {
        "type": f"{exception.module}.{exception.qualname}",
        "message": _ADDRESS.sub("0x", exception.message),
    }


def _reply(node: Node, status: int) -> dict[str, Json]:
    answer = answered(node)
    reply: dict[str, Json] = {} if status < 300 else {"status": status}
    if answer is None or status >= 300 or answer == _NOTHING:
        reply["body"] = _body(node)
        return reply
    if answer.model:
        reply["model"] = answer.model
    if answer.finish_reasons:
        reply["finish_reasons"] = [*answer.finish_reasons]
    if answer.vectors:
        reply["vectors"] = [[*vector] for vector in answer.vectors]
    reply["messages"] = [_message(message) for message in answer.messages]
    return reply


def _body(node: Node) -> Json:
    """Give a reply that no shape reads: its JSON, or its text."""
    folded = reply_body(node)
    if folded is not None:
        return folded
    match node.outcome:
        case Returned(payload=HttpReply(body=body)):
            data = body.data
        case Streamed(chunks=chunks):
            data = b"".join(chunk.data or b"" for chunk in chunks)
        case _:
            data = b""
    value = parsed_or_none(data)
    return data.decode("utf-8", "replace") if value is None else value


def _message(message: Message) -> Json:
    fields: dict[str, Json] = {"role": message.role}
    content: list[Json] = []
    calls: list[Json] = []
    for part in message.parts:
        match part:
            case Text(text=text):
                content.append(text)
            case Reasoning(text=text):
                fields["reasoning"] = f"{fields.get('reasoning', '')}{text}"
            case ToolCall(name=name, arguments=arguments):
                calls.append({"name": name, "arguments": _arguments(arguments)})
            case Opaque(json=json):
                content.append(_conversation(json, {}, Counter()))
            case _:
                content.append({"media": part.modality, "digest": digest(part.url)})
    if content:
        fields["content"] = content[0] if len(content) == 1 else content
    if calls:
        fields["tool_calls"] = calls
    return fields


def gist(node: Node) -> Json:
    """Say in short what a call was about: a function's arguments, a model's name and the length of the conversation."""
    request = node.call.request
    if isinstance(request, FunctionCall):
        return request.arguments
    query = asked(node)
    if query is None:
        return {"method": request.method, "url": request.url}
    if query.inputs:
        return {"model": query.model, "inputs": len(query.inputs), "last": query.inputs[-1]}
    return {"model": query.model, "messages": len(query.messages), "last": _last_text(query.messages)}


def _last_text(messages: Sequence[Message]) -> str | None:
    """Give the text of the last message that has any: what the call was about."""
    for message in reversed(messages):
        if text := "".join(part.text for part in message.parts if isinstance(part, Text)):
            return text if len(text) <= _GIST else f"{text[:_GIST]}…"
    return None


def same_json(a: Json, b: Json) -> bool:
    """Tell whether two JSON values are one; 1, 1.0 and true are three."""
    return a == b and canonical(a) == canonical(b)
