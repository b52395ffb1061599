"""Messages in any spelling that providers and frameworks use, told by their structure alone.

OpenAI's chat messages and the items of its responses, Anthropic's, Gemini's contents, Bedrock's, Cohere's, LangChain's
(constructors, `type`/`data` pairs, lists in lists), LlamaIndex's, the AI SDK's, pydantic-ai's, and the parts messages
of OTel GenAI. What is of no known kind is kept as it came (`Opaque`). Nothing here raises.
"""

from __future__ import annotations

from typing import Final

from reenact.foreign.blocks import Answer, Piece, failed_or_not, first_text, is_block, parts, pieces, tool_call
from reenact.values.json import Json, compact
from reenact.values.lenient import as_list, as_object, as_text, at, text_or_none
from reenact.values.message import Message, Opaque, Part, Reasoning, Text, ToolCall

_ROLES: Final = {
    "human": "user",
    "ai": "assistant",
    "aimessage": "assistant",
    "aimessagechunk": "assistant",
    "humanmessage": "user",
    "humanmessagechunk": "user",
    "systemmessage": "system",
    "toolmessage": "tool",
    "functionmessage": "tool",
    "chatmessage": "user",
    "model": "assistant",
    "chatbot": "assistant",
    "agent": "assistant",
    "bot": "assistant",
    "function": "tool",
    "tool-call": "assistant",
    "tool-response": "tool",
    "tool_response": "tool",
}
"""Words for a role that are not the field's own; anything else stays as it is."""
_LANGCHAIN: Final = frozenset(
    {
        "human",
        "ai",
        "system",
        "tool",
        "function",
        "chat",
        "AIMessageChunk",
        "HumanMessageChunk",
        "SystemMessageChunk",
        "ToolMessageChunk",
    },
)
"""What LangChain writes as a message's `type`."""
_CONTENTS: Final = ("content", "contents", "parts", "blocks", "message", "text")
"""Where a message keeps what it says, the first that is there."""
_CALL_LISTS: Final = ("tool_calls", "toolCalls", "tool_use")
_ANSWER_IDS: Final = ("tool_call_id", "toolCallId", "call_id", "id")
_THOUGHTS: Final = ("reasoning_content", "reasoning", "thinking")
_ITEMS: Final = frozenset({"message", "request", "response"})
_DEEPEST: Final = 24


def role_word(value: Json, otherwise: str = "user") -> str:
    """Give a role in the field's own word: `MessageRole.USER`, `human` and `USER` are all `user`."""
    word = as_text(value).rpartition(".")[2]
    lower = word.lower().strip()
    return (_ROLES.get(lower, lower) if lower in _ROLES or word.isupper() or word.istitle() else word) or otherwise


def turns(value: Json, role: str = "user", depth: int = 0) -> tuple[Message, ...]:
    """Read one message, or a list of them, or lists in lists.

    `role` is whose words a bare text or a bare block is. A tool's answer that stands as a block among others becomes a
    message of its own, in its place.
    """
    if value is None:
        return ()
    if isinstance(value, str):
        return (Message(role=role, parts=(Text(value),)),)
    if isinstance(value, list):
        return _listed(value, role, depth)
    if not isinstance(value, dict) or depth > _DEEPEST:
        return (Message(role=role, parts=(Opaque(value),)),)
    return _one(value, role, depth)


def _listed(value: list[Json], role: str, depth: int) -> tuple[Message, ...]:
    if depth > _DEEPEST:
        return (Message(role=role, parts=(Opaque(value),)),)
    if len(value) == 2 and _is_pair(value):
        return (Message(role=role_word(value[0]), parts=parts(value[1])),)
    messages: list[Message] = []
    loose: list[Json] = []
    whose = role
    for item in [*value, None]:
        fields = as_object(item)
        is_loose = item is not None and is_block(item) and not _speaks(fields)
        if loose and not (is_loose and _whose(fields, role) == whose):
            messages += _split(pieces(loose), whose)
            loose = []
        if is_loose:
            whose = _whose(fields, role)
            loose.append(item)  # blocks in a row are one message's
        else:
            messages += turns(item, role, depth + 1)
    return tuple(messages)


def _is_pair(value: list[Json]) -> bool:
    word = as_text(value[0]).lower()
    return word in ("human", "ai", "system", "user", "assistant") and isinstance(value[1], str)


def _speaks(fields: dict[str, Json]) -> bool:
    """Tell a message from a block: it names whose words it is, or is a message by its type."""
    has_role = "role" in fields or "_role" in fields or fields.get("lc") == 1
    kind = as_text(fields.get("type"))
    return has_role or (kind in _LANGCHAIN and ("content" in fields or "data" in fields)) or kind == "message"


def _one(value: dict[str, Json], role: str, depth: int) -> tuple[Message, ...]:
    kind = as_text(value.get("type"))
    if (wrapped := _of_langchain(value, kind)) is not None:
        return _messages_of(wrapped, role_word(wrapped["role"], role), depth)
    if isinstance(inner := value.get("message"), dict) and "role" not in value:  # a choice, a generation
        return turns(inner, role, depth + 1)
    if "role" in value and isinstance(inner, dict) and value.get("content") is None:  # Cursor's lines
        return _messages_of({**value, **inner, "message": None}, role_word(value["role"], role), depth)
    if "role" in value or "_role" in value:
        return _messages_of(value, role_word(value.get("role") or value.get("_role"), role), depth)
    if isinstance(listed := value.get("parts"), list) and value.get("kind", kind) in ("request", "response"):
        return _requested(listed)
    if is_block(value):
        return tuple(_split(pieces(value), _whose(value, role)))
    if any(name in value for name in (*_CONTENTS, *_CALL_LISTS)):
        return _messages_of(value, role, depth)
    return (Message(role=role, parts=(Opaque(value),)),)


def _of_langchain(value: dict[str, Json], kind: str) -> dict[str, Json] | None:
    """Open LangChain's constructors and its pairs of `type` and `data`; its word for the role goes in with the rest."""
    if value.get("lc") == 1 and isinstance(kwargs := value.get("kwargs"), dict):
        name = as_text((as_list(value.get("id")) or [""])[-1])
        return {**kwargs, "role": kwargs.get("role") or kwargs.get("type") or name}
    if kind in _LANGCHAIN and isinstance(data := value.get("data"), dict):
        return {**data, "role": data.get("role") or kind}
    if kind in _LANGCHAIN and "content" in value and "role" not in value:
        return {**value, "role": kind}
    return None


def _whose(block: dict[str, Json], role: str) -> str:
    """A call is always the model's, whoever's turn it stands in; so is a thought of the responses API."""
    return "assistant" if tool_call(block, as_text(block.get("type"))) or block.get("type") == "reasoning" else role


def _requested(listed: list[Json]) -> tuple[Message, ...]:
    """Read pydantic-ai's request or response: each part says by its kind whose it is."""
    messages: list[Message] = []
    for item in map(as_object, listed):
        kind = as_text(item.get("part_kind"))
        role = {"system-prompt": "system", "user-prompt": "user", "retry-prompt": "user"}.get(kind, "assistant")
        if role == "assistant":
            messages += _split(pieces(item), role)
        else:
            messages.append(Message(role=role, parts=parts(item.get("content"))))
    return tuple(messages)


def _messages_of(value: dict[str, Json], role: str, depth: int) -> tuple[Message, ...]:
    content = next((value[name] for name in _CONTENTS if value.get(name) is not None), None)
    if content is None:
        content = value.get("_content")
    extra = as_object(value.get("additional_kwargs"))
    read: list[Piece] = [*_thoughts(value, extra), *pieces(content, depth)]
    call_ids = {piece.id for piece in read if isinstance(piece, ToolCall)}
    read += [call for call in _calls(value, extra) if not call.id or call.id not in call_ids]
    if len(read) > 1:
        read = [piece for piece in read if piece != Text("")]  # what emitters write for no text beside the calls
    read += [Opaque({name: value[name]}) for name in ("refusal", "audio") if value.get(name) not in (None, "", {})]
    if role == "tool":
        return _answered(value, read)
    messages = _split(tuple(read), role, text_or_none(value.get("name")))
    return tuple(messages or [Message(role=role, name=text_or_none(value.get("name")))])


def _thoughts(value: dict[str, Json], extra: dict[str, Json]) -> list[Part]:
    for source in (value, extra):
        details = [as_object(detail) for detail in as_list(source.get("reasoning_details"))]
        if details:
            return [
                Reasoning(
                    text=as_text(detail.get("text")) or as_text(detail.get("summary")),
                    id=text_or_none(detail.get("id")),
                    encrypted=text_or_none(detail.get("data")) or text_or_none(detail.get("signature")),
                    seal="data" if detail.get("data") else "signature" if detail.get("signature") else "",
                )
                for detail in details
            ]
        if text := first_text(source, _THOUGHTS):
            return [Reasoning(text=text)]
    return []


def _calls(value: dict[str, Json], extra: dict[str, Json]) -> list[ToolCall]:
    """Read the calls that stand beside the content; LangChain keeps them twice, OpenAI's first functions once."""
    for source in (value, extra):
        for name in _CALL_LISTS:
            listed = source.get(name)
            entries = list(listed.values()) if isinstance(listed, dict) else as_list(listed)
            calls = [_call(as_object(item)) for item in entries]
            if calls:
                return calls
        if isinstance(function := source.get("function_call"), dict) and function:
            return [_call({"function": function})]
    return []


def _call(entry: dict[str, Json]) -> ToolCall:
    inner = as_object(entry.get("tool_call")) or entry
    return tool_call(inner) or tool_call(inner, "tool_call") or ToolCall(id="", name="", arguments=compact(entry))


def _answered(value: dict[str, Json], read: list[Piece]) -> tuple[Message, ...]:
    """Read a tool's message: one for each answer in it, or one for all it says."""
    name = first_text(value, ("name", "tool_name", "toolName")) or None
    answers = [piece for piece in read if isinstance(piece, Answer)]
    if answers:
        return tuple(
            Message(
                role="tool",
                parts=each.parts,
                tool_call_id=each.id,
                name=each.name or name,
                is_error=each.is_error,
            )
            for each in answers
        )
    call_id = first_text(value, _ANSWER_IDS) or as_text(at(value, "additional_kwargs", "tool_call_id"))
    message_parts = tuple(piece for piece in read if not isinstance(piece, Answer))
    is_error = failed_or_not(value)
    return (Message(role="tool", parts=message_parts, tool_call_id=call_id or None, name=name, is_error=is_error),)


def _split(read: tuple[Piece, ...], role: str, name: str | None = None) -> list[Message]:
    messages: list[Message] = []
    loose_parts: list[Part] = []
    for piece in read:
        if not isinstance(piece, Answer):
            loose_parts.append(piece)
            continue
        if loose_parts:
            messages.append(Message(role=role, parts=tuple(loose_parts), name=name))
            loose_parts = []
        answer = Message(
            role="tool", parts=piece.parts, tool_call_id=piece.id, name=piece.name, is_error=piece.is_error
        )
        messages.append(answer)
    if loose_parts:
        messages.append(Message(role=role, parts=tuple(loose_parts), name=name))
    return messages
