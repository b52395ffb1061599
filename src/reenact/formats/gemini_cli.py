"""Sessions of the Gemini CLI: a JSON file with `messages`, or lines, the first of which names the session.

A message of the model holds its text, the tools that it called and what came of each, and the tokens. In lines a
message may come again as it grew: the last one of an id counts. The prompt and the tools that the model was given are
not there, and the verdict says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.foreign import conversations, records
from reenact.foreign.conversations import Conversation, Turn
from reenact.foreign.documents import documents
from reenact.foreign.exchanges import lacking
from reenact.values.json import Json, compact
from reenact.values.lenient import as_count, as_list, as_object, as_text, text_or_json
from reenact.values.message import Message, Reasoning, Text, ToolCall, Usage
from reenact.values.span import SpanRecord

_SIGNS: Final = (b'"sessionId"', b'"projectHash"', b'"startTime"')
_REPLY: Final = re.compile(rb'"type"\s*:\s*"gemini"')
_TYPE: Final = re.compile(rb'"(?:messages|type|kind|lastUpdated)"\s*:')
_LOST: Final = (
    lacking("system", "the system prompt", "record the program: `reenact run -- …`"),
    lacking("request", "how the messages were spelled when the model was asked, and what was put in their place"),
)


def _recognises(head: bytes) -> float:
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] != b"{":
        return 0.0
    if _SIGNS[0] in head and _REPLY.search(head):
        return 0.96
    return 0.96 if all(sign in head for sign in _SIGNS) and _TYPE.search(head) else 0.0


def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    header: dict[str, Json] = {}
    messages: dict[str, dict[str, Json]] = {}
    for line, document in documents(stream, str(path)):
        if not isinstance(document, dict):
            raise InputError(f"{path}:{line}", "this is no session of the Gemini CLI: expected an object")
        if "sessionId" in document:
            if header:
                yield from _session(header, messages, str(path))
            header, messages = document, {}
            _take(messages, as_list(document.get("messages")))
        else:
            _take(messages, [document])
    yield from _session(header, messages, str(path))


def _take(messages: dict[str, dict[str, Json]], entries: list[Json]) -> None:
    for number, each in enumerate(map(as_object, entries), len(messages)):
        if as_text(each.get("type")):
            messages[as_text(each.get("id")) or str(number)] = each


def _session(header: dict[str, Json], messages: dict[str, dict[str, Json]], place: str) -> Iterator[SpanRecord]:
    session_turns = [turn for message in messages.values() for turn in _turns(message)]
    if not any(turn.replies for turn in session_turns):
        raise InputError(place, "this session of the Gemini CLI holds no reply of a model")
    session = as_text(header.get("sessionId"))
    chat = Conversation(
        seed=f"gemini-cli:{session}",
        name=as_text(header.get("summary")) or "gemini session",
        turns=tuple(session_turns),
        system="gcp.gemini",
        attributes={"session.id": session},
        lost=_LOST,
    )
    yield from conversations.run_of(chat, FORMAT.name)


def _turns(message: dict[str, Json]) -> Iterator[Turn]:
    """Read a message: a user's, or a reply with what came of the tools that it called. What the CLI says is neither."""
    ns, kind = records.nanoseconds(message.get("timestamp")), message.get("type")
    text = _text(message.get("content"))
    if kind == "user":
        yield Turn(message=Message(role="user", parts=(Text(text),)), at_ns=ns)
        return
    if kind != "gemini":
        return
    calls = [as_object(each) for each in as_list(message.get("toolCalls"))]
    thoughts = [as_object(each) for each in as_list(message.get("thoughts"))]
    parts = [
        *(
            Reasoning(
                text=as_text(each.get("text"))
                or f"{as_text(each.get('subject'))}\n{as_text(each.get('description'))}".strip()
            )
            for each in thoughts
        ),
        *([Text(text)] if text else []),
        *(
            ToolCall(
                id=as_text(each.get("id")),
                name=as_text(each.get("name")),
                arguments=compact(as_object(each.get("args"))),
            )
            for each in calls
        ),
    ]
    yield Turn(
        message=Message(role="assistant", parts=tuple(parts)),
        at_ns=ns,
        reply=as_text(message.get("id")),
        model=as_text(message.get("model")),
        usage=_usage(as_object(message.get("tokens"))),
    )
    yield from (turn for each in calls for turn in _answers(each, ns))


def _answers(call: dict[str, Json], ns: int) -> Iterator[Turn]:
    """Give what came of a tool: its output, its error, or the answer as it was sent to the model."""
    name, at_ns = as_text(call.get("name")), records.nanoseconds(call.get("timestamp")) or ns
    for each in map(as_object, as_list(call.get("result"))):
        answer = as_object(each.get("functionResponse"))
        response = as_object(answer.get("response"))
        if not answer:
            continue
        only = next(iter(response.values())) if len(response) == 1 and {*response} <= {"output", "error"} else response
        message = Message(
            role="tool",
            parts=(Text(text_or_json(only)),),
            tool_call_id=as_text(answer.get("id")) or as_text(call.get("id")),
            name=name,
            is_error=True if call.get("status") == "error" else None,
        )
        yield Turn(message=message, at_ns=at_ns)
        return


def _text(content: Json) -> str:
    if isinstance(content, list):
        return "".join(as_text(as_object(each).get("text")) for each in content)
    return as_text(content)


def _usage(tokens: dict[str, Json]) -> Usage:
    """Read the tokens. Those of thoughts are beside the output, where the total says so."""
    prompt, output, total, thoughts = (as_count(tokens.get(name)) for name in ("input", "output", "total", "thoughts"))
    if output is not None and (total or 0) >= (prompt or 0) + output + (thoughts or 0):
        output += thoughts or 0
    return Usage(
        prompt=prompt,
        completion=output,
        total=total,
        cache_read=as_count(tokens.get("cached")),
        reasoning=thoughts,
    )


FORMAT = Format(
    name="gemini-cli",
    suffix=".gemini.json",
    recognises=_recognises,
    decode=_decode,
    most=0.96,
    marks=HeadMarks(texts=(tuple(sign.decode() for sign in _SIGNS), ('"sessionId"', '"gemini"'))),
)
