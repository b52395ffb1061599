"""What `codex exec --json` prints of a session: its items, a line each, as they were completed.

A turn's items are what the model thought, said and had done. The prompt is not printed, nor which items came in one
reply, nor the tokens of each: items before an answer of a tool are taken for one reply, and the tokens of a turn stand
at its last one. Commands, patches, searches and MCP tools become calls of tools with what came of them; a command that
ended with another code than 0 has failed. Other items (lists of things to do, errors) are kept as JSON.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Final

from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.foreign import conversations
from reenact.foreign.conversations import Conversation, Turn
from reenact.foreign.documents import documents
from reenact.foreign.exchanges import lacking
from reenact.values.json import Json, canonical, compact
from reenact.values.lenient import as_count, as_object, as_text, text_or_json
from reenact.values.message import Message, Reasoning, Text, ToolCall, Usage
from reenact.values.span import Attribute, SpanRecord

_SIGN: Final = re.compile(rb'"type"\s*:\s*"(?:thread\.started|turn\.started|item\.completed|session\.created)"')
_BESIDE: Final = re.compile(rb'"(?:thread_id|item_type|turn\.(?:started|completed)|agent_message|command_execution)"')
_TOOLS: Final = {
    "command_execution": ("shell", ("command",), ("aggregated_output",)),
    "file_change": ("apply_patch", ("changes",), ("status",)),
    "web_search": ("web_search", ("query", "action"), ("status",)),
    "mcp_tool_call": ("", ("arguments",), ("result", "error")),
    "collab_tool_call": ("", ("prompt",), ("agents_states",)),
}
"""Kind of item to the tool, what it was asked with, and where its answer stands."""
_LOST: Final = (
    lacking("prompt", "what the user asked, and the instructions; the session's rollout file holds them"),
    lacking("replies", "which items came in one reply; those between two answers are taken for one"),
    lacking("tokens", "the tokens of each reply; a turn's stand at its last"),
)


@dataclass(slots=True)
class _Session:
    """What the lines said so far."""

    thread: str = ""
    turns: list[Turn] = field(default_factory=list[Turn])
    failures: list[str] = field(default_factory=list[str])
    failure: str = ""
    """Of the last turn."""
    others: list[Json] = field(default_factory=list[Json])
    """Items that are neither words of the model's nor calls of tools."""
    number: int = 0
    """Of the reply that is read."""


def _recognises(head: bytes) -> float:
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] != b"{":
        return 0.0
    return 0.93 if _SIGN.search(head) and _BESIDE.search(head) and b'"payload"' not in head else 0.0


def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    session, whole = _Session(), hashlib.blake2b(digest_size=16)
    for _, document in documents(stream, str(path)):
        whole.update(canonical(document))
        _take(session, as_object(document))
    if not session.turns:
        raise InputError(str(path), "this session of codex holds no item that was completed")
    facts: dict[str, Attribute] = {"session.id": session.thread} if session.thread else {}
    if session.failures:
        facts["codex.errors"] = compact([*session.failures])
    if session.others:
        facts["codex.items"] = compact(session.others)
    chat = Conversation(
        seed=f"{whole.hexdigest()}:{session.thread}",
        name="codex exec",
        turns=tuple(session.turns),
        api="responses",
        attributes=facts,
        failure=session.failure,
        lost=_LOST,
    )
    yield from conversations.run_of(chat, FORMAT.name)


def _take(session: _Session, line: dict[str, Json]) -> None:
    kind = as_text(line.get("type"))
    if kind in ("thread.started", "session.created"):
        session.thread = as_text(line.get("thread_id")) or as_text(line.get("session_id")) or session.thread
    elif kind == "item.completed":
        _item(session, as_object(line.get("item")))
    elif kind == "turn.started":
        session.failure = ""
    elif kind == "turn.completed":
        _count(session, as_object(line.get("usage")))
        session.number += 1
    elif kind == "turn.started":
        session.failure = ""
    elif kind in ("turn.failed", "error"):
        session.failures.append(text_or_json(line.get("error") or line.get("message")))
        if kind == "turn.failed":
            session.failure = as_text(as_object(line.get("error")).get("message")) or session.failures[-1]


def _item(session: _Session, item: dict[str, Json]) -> None:
    kind = as_text(item.get("type")) or as_text(item.get("item_type"))
    text = as_text(item.get("text"))
    if kind == "reasoning":
        _say(session, Message(role="assistant", parts=(Reasoning(text=text),)))
    elif kind in ("agent_message", "assistant_message"):
        _say(session, Message(role="assistant", parts=(Text(text),)))
    elif kind in _TOOLS:
        _call(session, item, kind)
    else:
        session.others.append(item)
        if kind == "error":
            session.failures.append(as_text(item.get("message")))


def _say(session: _Session, message: Message) -> None:
    session.turns.append(Turn(message=message, reply=str(session.number)))


def _call(session: _Session, item: dict[str, Json], kind: str) -> None:
    tool, asked, answered = _TOOLS[kind]
    name = tool or ".".join(each for each in (as_text(item.get("server")), as_text(item.get("tool"))) if each) or kind
    arguments: Json = {each: item[each] for each in asked if each in item}
    if kind == "mcp_tool_call":
        arguments = item.get("arguments") or {}
    call_id = as_text(item.get("id"))
    _say(session, Message(role="assistant", parts=(ToolCall(id=call_id, name=name, arguments=compact(arguments)),)))
    session.number += 1
    output, failure = next((item[each] for each in answered if item.get(each) is not None), None), _failure(item)
    if output is None and not failure:
        return
    says_why = output is None or output == item.get("error")
    parts = (Text(failure if says_why else text_or_json(output)),)
    answer = Message(role="tool", parts=parts, tool_call_id=call_id, is_error=True if failure else None)
    session.turns.append(Turn(message=answer))


def _failure(item: dict[str, Json]) -> str:
    """Say why a call of a tool failed: by its error, its exit code, or the word for its state."""
    error, code, status = item.get("error"), as_count(item.get("exit_code")), as_text(item.get("status"))
    if error:
        return as_text(as_object(error).get("message")) or text_or_json(error)
    if code:
        return f"exit code {code}"
    return status if status in ("failed", "declined") else ""


def _count(session: _Session, usage: dict[str, Json]) -> None:
    for place in reversed(range(len(session.turns))):
        if session.turns[place].message.role == "assistant":
            counts = Usage(
                prompt=as_count(usage.get("input_tokens")),
                completion=as_count(usage.get("output_tokens")),
                cache_read=as_count(usage.get("cached_input_tokens")),
                reasoning=as_count(usage.get("reasoning_output_tokens")),
            )
            session.turns[place] = replace(session.turns[place], usage=counts)
            return


FORMAT = Format(
    name="codex-exec",
    suffix=".codex.jsonl",
    recognises=_recognises,
    decode=_decode,
    most=0.93,
    marks=HeadMarks(texts=(("thread.started",), ("turn.started",), ("item.completed",), ("session.created",))),
)
