"""OpenHands' events of a session: an array of actions and observations, and the `history` of its evaluations' lines.

An action that a model's reply asked for holds that reply, a chat completion, whole; an observation names by its id the
call that it answers. What the model was asked with, beyond what events say (the system prompt, the tools, how
observations are spelled), is not there, and the verdict says so.
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
from reenact.foreign.exchanges import lacking
from reenact.foreign.spelled_messages import turns
from reenact.values import tool_schema
from reenact.values.json import Json, canonical
from reenact.values.lenient import as_count, as_list, as_object, as_text, at, text_or_json
from reenact.values.message import Message, Text, Usage
from reenact.values.span import Attribute, SpanRecord

_SIGN: Final = re.compile(rb'"(?:action|observation)"\s*:\s*"\w+"')
_SOURCE: Final = re.compile(rb'"source"\s*:\s*"(?:agent|user|environment)"')
_SPEAKS: Final = frozenset({"message", "finish", "system"})
"""Actions that say something though no reply of a model stands at them."""
_LOST: Final = (
    lacking("request", "how the messages were spelled when the model was asked, and the prompts around them"),
)


def _recognises(head: bytes) -> float:
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"["):
        return 0.0
    return 0.93 if _SIGN.search(head) and _SOURCE.search(head) and b'"args"' in head else 0.0


def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    lines: list[Json] = []
    for line, document in documents(stream, str(path)):
        if isinstance(document, dict) and isinstance(document.get("history"), list):
            yield from _run(_flat(as_list(document["history"])), document, f"{path}:{line}")
        else:
            lines += document if isinstance(document, list) else [document]
    if lines:
        yield from _run(lines, {}, str(path))


def _flat(history: list[Json]) -> list[Json]:
    """Give the events of a history; evaluations of earlier versions keep pairs of action and observation."""
    return [event for each in history for event in (each if isinstance(each, list) else [each])]


def _run(events: Sequence[Json], line: dict[str, Json], place: str) -> Iterator[SpanRecord]:
    seed = hashlib.blake2b(canonical([*events]), digest_size=16).hexdigest()
    session_turns: list[Turn] = []
    tools: tuple[Json, ...] = ()
    replies: set[str] = set()
    for event in map(as_object, events):
        tools = tools or tool_schema.tools(at(event, "args", "tools"))
        session_turns += _turns(event, replies)
    if not session_turns:
        raise InputError(place, "these events of OpenHands hold no message")
    facts: dict[str, Attribute] = {"openhands.instance": as_text(line.get("instance_id"))}
    chat = Conversation(
        seed=seed,
        name=as_text(line.get("instance_id")) or "openhands session",
        turns=tuple(session_turns),
        api="chat",
        tools=tools,
        attributes={name: value for name, value in facts.items() if value},
        lost=_LOST,
    )
    yield from conversations.run_of(chat, FORMAT.name)


def _turns(event: dict[str, Json], replies: set[str]) -> Iterator[Turn]:
    """Read an event: a reply where its first action stands, an answer, or words of somebody's."""
    ns = records.nanoseconds(event.get("timestamp"))
    meta = as_object(event.get("tool_call_metadata"))
    reply = as_object(meta.get("model_response"))
    if "observation" in event:
        call_id = as_text(meta.get("tool_call_id"))
        if call_id:
            yield Turn(message=_answer(event, call_id, as_text(meta.get("function_name"))), at_ns=ns)
        return
    if reply:
        yield from _reply(reply, ns, replies)
        return
    action, args = as_text(event.get("action")), as_object(event.get("args"))
    text = as_text(args.get("content")) or as_text(args.get("final_thought")) or as_text(event.get("message"))
    if action in _SPEAKS and text:
        role = "system" if action == "system" else "assistant" if event.get("source") == "agent" else "user"
        yield Turn(message=Message(role=role, parts=(Text(text),)), at_ns=ns)


def _answer(event: dict[str, Json], call_id: str, name: str) -> Message:
    content = event.get("content")
    text = text_or_json(content) if content is not None else as_text(event.get("message"))
    return Message(role="tool", parts=(Text(text),), tool_call_id=call_id, name=name or None)


def _reply(reply: dict[str, Json], ns: int, replies: set[str]) -> Iterator[Turn]:
    """Give a model's reply once, though each of its actions holds it."""
    reply_id = as_text(reply.get("id")) or hashlib.blake2b(canonical(reply), digest_size=8).hexdigest()
    if reply_id in replies:
        return
    replies.add(reply_id)
    choice = as_object(next(iter(as_list(reply.get("choices"))), None))
    usage = as_object(reply.get("usage"))
    for message in turns(choice.get("message"), "assistant"):
        yield Turn(
            message=message,
            at_ns=ns,
            id=reply_id,
            model=as_text(reply.get("model")),
            usage=Usage(
                prompt=as_count(usage.get("prompt_tokens")),
                completion=as_count(usage.get("completion_tokens")),
                total=as_count(usage.get("total_tokens")),
                cache_read=as_count(at(usage, "prompt_tokens_details", "cached_tokens")),
            ),
            finish=as_text(choice.get("finish_reason")),
        )


FORMAT = Format(
    name="openhands",
    suffix=".openhands.json",
    recognises=_recognises,
    decode=_decode,
    most=0.93,
    marks=HeadMarks(texts=(('"source"', '"args"', '"action"'), ('"source"', '"args"', '"observation"'))),
)
