"""OpenHands' events since its software agent SDK (V1): `{"kind": "ActionEvent", …}`, in a list or one a line.

An action holds the call of a tool that a model's reply asked for, with the id of that reply; an observation names the
call that it answers. Which model replied, its tokens and its parameters are not there, and the verdict says so. Before
the SDK an event had `action` or `observation` with `args` (`formats.openhands_events`). It is read, not written.
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
from reenact.values.json import Json, canonical, compact
from reenact.values.lenient import as_list, as_object, as_text, text_or_json
from reenact.values.message import Message, Part, Reasoning, Text, ToolCall
from reenact.values.span import Attribute, SpanRecord

_SIGN: Final = re.compile(rb'"kind"\s*:\s*"(?:SystemPrompt|Message|Action|Observation|AgentError)Event"')
_ANSWERS: Final = frozenset({"ObservationEvent", "AgentErrorEvent", "UserRejectObservation"})
_LOST: Final = (
    lacking("request", "how the messages were spelled when the model was asked, and the prompts around them"),
)
_CONDENSED: Final = lacking("messages", "what a condensation left out of later requests, and put in its place")

_Event = dict[str, Json]


def _recognises(head: bytes) -> float:
    return 0.93 if _SIGN.search(head) and b'"source"' in head else 0.0


def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    events: list[_Event] = []
    for _, document in documents(stream, str(path)):
        listed = as_object(document).get("items", as_object(document).get("events"))
        items = listed if isinstance(listed, list) else document if isinstance(document, list) else [document]
        events += map(as_object, items)
    session_turns = tuple(turn for event in events for turn in _turns(event))
    if not session_turns:
        raise InputError(str(path), "these events of OpenHands hold no message")
    is_condensed = any(as_text(event.get("kind")).startswith("Condensation") for event in events)
    chat = Conversation(
        seed=hashlib.blake2b(canonical([*events]), digest_size=16).hexdigest(),
        name="openhands session",
        turns=session_turns,
        api="chat",
        tools=next((tools for event in events if (tools := _tools(event))), ()),
        attributes=_unread(events),
        lost=(*_LOST, *([_CONDENSED] if is_condensed else [])),
        failure=next((text for event in reversed(events) if (text := _error(event))), ""),
    )
    yield from conversations.run_of(chat, FORMAT.name)


def _unread(events: Sequence[_Event]) -> dict[str, Attribute]:
    """Keep what is no message: changes of state, pauses, condensations."""
    others: list[Json] = [event for event in events if event and not any(True for _ in _turns(event))]
    return {"openhands.events": compact(others)} if others else {}


def _tools(event: _Event) -> tuple[Json, ...]:
    """Give the tools that were described: as the provider is told of them, or by title and description."""
    if event.get("kind") != "SystemPromptEvent":
        return ()
    described: list[Json] = []
    for tool in map(as_object, as_list(event.get("tools"))):
        if "function" in tool:
            described.append(tool)
        elif name := as_text(tool.get("name")) or as_text(tool.get("title")):
            schema: dict[str, Json] = {"name": name, "description": tool.get("description")}
            described.append({"type": "function", "function": schema})
    return tool_schema.tools(described)


def _turns(event: _Event) -> Iterator[Turn]:
    at_ns, kind = records.nanoseconds(event.get("timestamp")), as_text(event.get("kind"))
    reply_id = as_text(event.get("llm_response_id"))
    if kind == "SystemPromptEvent":
        prompt = event.get("system_prompt")
        text = as_text(prompt) or as_text(as_object(prompt).get("text"))
        yield Turn(message=Message(role="system", parts=(Text(text),)), at_ns=at_ns)
    elif kind == "MessageEvent":
        role = "assistant" if event.get("source") == "agent" else "user"
        for message in turns(event.get("llm_message"), role):
            yield Turn(message=message, at_ns=at_ns, id=reply_id)
    elif kind == "ActionEvent":
        yield Turn(message=Message(role="assistant", parts=tuple(_called(event))), at_ns=at_ns, id=reply_id)
    elif kind in _ANSWERS and (call_id := as_text(event.get("tool_call_id"))):
        name = as_text(event.get("tool_name"))
        is_error = "error" in event or as_object(event.get("observation")).get("is_error") is True
        answer = Message(
            role="tool",
            parts=_answer(event),
            tool_call_id=call_id,
            name=name or None,
            is_error=True if is_error else None,
        )
        yield Turn(message=answer, at_ns=at_ns)


def _called(event: _Event) -> Iterator[Part]:
    """Give what the model thought, said and asked for; calls beside each other say the first two once."""
    if text := as_text(event.get("reasoning_content")):
        yield Reasoning(text=text)
    for name in ("thinking_blocks", "thought"):
        for message in turns(event.get(name), "assistant"):
            yield from message.parts
    call = as_object(event.get("tool_call"))
    name = as_text(call.get("name")) or as_text(event.get("tool_name"))
    call_id = as_text(call.get("id")) or as_text(event.get("tool_call_id"))
    yield ToolCall(id=call_id, name=name, arguments=text_or_json(call.get("arguments", event.get("action"))))


def _answer(event: _Event) -> tuple[Part, ...]:
    observation = as_object(event.get("observation"))
    content = observation.get("content", event.get("error", event.get("rejection_reason")))
    if content is None:
        content = compact(observation)
    return tuple(part for message in turns(content, "tool") for part in message.parts)


def _error(event: _Event) -> str:
    """Give what ended the conversation, where it is an error."""
    if event.get("kind") != "ConversationErrorEvent":
        return ""
    return ": ".join(text for text in (as_text(event.get("code")), as_text(event.get("detail"))) if text)


FORMAT = Format(
    name="openhands-sdk",
    suffix=".openhands.jsonl",
    recognises=_recognises,
    decode=_decode,
    most=0.93,
    marks=HeadMarks(texts=(('"kind"', '"source"', "Event"),)),
)
