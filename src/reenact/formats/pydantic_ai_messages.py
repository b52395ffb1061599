"""pydantic-ai's messages as its `ModelMessagesTypeAdapter` dumps them: a list, or one a line.

A message is `{"kind": "request" | "response", "parts": […]}`; each part says by its `part_kind` whose it is. A response
has the model's name, its tokens and its time. Those of one `conversation_id` are one run. Events of a stream
(`event_kind`) among them say nothing that their responses do not. It is read, not written.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.foreign import conversations, records
from reenact.foreign.conversations import Conversation, Turn
from reenact.foreign.documents import documents
from reenact.foreign.spelled_messages import turns
from reenact.values.json import Json, canonical, compact
from reenact.values.lenient import as_count, as_list, as_object, as_text
from reenact.values.message import Message, Text, Usage
from reenact.values.providers import provider_of
from reenact.values.span import Attribute, SpanRecord

_SIGN: Final = re.compile(rb'"kind"\s*:\s*"(?:request|response)"')
_KINDS: Final = frozenset({"request", "response"})
_TAKEN: Final = frozenset(
    {"kind", "parts", "instructions", "timestamp", "model_name", "usage", "finish_reason", "provider_name",
     "provider_response_id", "conversation_id"},
)  # fmt: skip

_Fields = dict[str, Json]


def _recognises(head: bytes) -> float:
    return 0.93 if _SIGN.search(head) and b'"part_kind"' in head and b'"parts"' in head else 0.0


def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    threads: dict[str, list[_Fields]] = {}
    for line, document in documents(stream, str(path)):
        for item in document if isinstance(document, list) else [document]:
            message = as_object(item)
            if "event_kind" in message:
                continue
            if as_text(message.get("kind")) not in _KINDS or not isinstance(message.get("parts"), list):
                problem = "this is no message of pydantic-ai: it lacks a `kind` of `request` or `response`, or `parts`"
                raise InputError(f"{path}:{line}", problem)
            threads.setdefault(as_text(message.get("conversation_id")), []).append(message)
    if not threads:
        raise InputError(str(path), "this holds events of a stream of pydantic-ai and no messages")
    for thread_id, messages in threads.items():
        yield from conversations.run_of(_conversation(thread_id, messages), FORMAT.name)


def _conversation(thread_id: str, messages: Sequence[_Fields]) -> Conversation:
    names = [name for each in messages if (name := as_text(each.get("model_name")))]
    providers = [name for each in messages if (name := as_text(each.get("provider_name")))]
    attributes: dict[str, Attribute] = {"session.id": thread_id} if thread_id else {}
    if beside := [rest for each in messages if (rest := records.rest(each, _TAKEN))]:
        attributes["pydantic_ai.messages"] = f"[{','.join(beside)}]"
    return Conversation(
        seed=hashlib.blake2b(canonical([*messages]), digest_size=16).hexdigest(),
        name="conversation",
        turns=tuple(turn for each in [*_instructions(messages), *messages] for turn in _turns(each)),
        system=(providers or [provider_of(names[0]) if names else ""])[0] or "openai",
        attributes=attributes,
        asks=True,
    )


def _instructions(messages: Sequence[_Fields]) -> list[_Fields]:
    """Give the instructions that stand beside the requests as a message of the system's, once."""
    text = next((text for each in messages if (text := as_text(each.get("instructions")))), "")
    part: _Fields = {"part_kind": "system-prompt", "content": text}
    return [{"kind": "request", "parts": [part]}] if text else []


def _turns(message: _Fields) -> Iterator[Turn]:
    at_ns = records.nanoseconds(message.get("timestamp"))
    if message.get("kind") == "request":
        for part in map(as_object, as_list(message.get("parts"))):
            own_ns = records.nanoseconds(part.get("timestamp")) or at_ns
            for each in _asked(part):
                yield Turn(message=each, at_ns=own_ns)
        return
    said = turns({"kind": "response", "parts": message.get("parts")}, "assistant")
    parts = tuple(part for each in said for part in each.parts)
    yield Turn(
        message=Message(role="assistant", parts=parts),
        at_ns=at_ns,
        id=as_text(message.get("provider_response_id")),
        reply=f"{at_ns}/{len(parts)}",
        model=as_text(message.get("model_name")),
        usage=_usage(as_object(message.get("usage"))),
        finish=as_text(message.get("finish_reason")),
    )


def _asked(part: _Fields) -> tuple[Message, ...]:
    """Read a part of a request; a tool that is to be called again is an answer of that tool."""
    if part.get("part_kind") != "retry-prompt" or not part.get("tool_name"):
        return turns({"kind": "request", "parts": [part]})
    content = part.get("content")
    text = content if isinstance(content, str) else compact(content)
    name, call_id = as_text(part.get("tool_name")), as_text(part.get("tool_call_id"))
    return (Message(role="tool", parts=(Text(text),), name=name, tool_call_id=call_id or None),)


def _usage(usage: _Fields) -> Usage | None:
    if not usage:
        return None
    return Usage(
        prompt=as_count(usage.get("input_tokens", usage.get("request_tokens"))),
        completion=as_count(usage.get("output_tokens", usage.get("response_tokens"))),
        total=as_count(usage.get("total_tokens")),
        cache_read=as_count(usage.get("cache_read_tokens")) or None,
        cache_write=as_count(usage.get("cache_write_tokens")) or None,
    )


FORMAT = Format(
    name="pydantic-ai-messages",
    suffix=".pydantic-ai.json",
    recognises=_recognises,
    decode=_decode,
    most=0.93,
    marks=HeadMarks(texts=(('"kind"', '"part_kind"', '"parts"'),)),
)
