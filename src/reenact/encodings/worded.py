"""Messages that some emitter had turned into text before anybody wrote them down, or put in another's place.

Objects of pydantic as `str` spells them (`role='user' content='…'`, Agno); lines that each begin with whose they are
(`user: …`, OpenLIT's first versions); a list of calls as the text of a message (Koog); a tool's answer under the tool's
name instead of a role (Langfuse's handler for LangChain.js). All of it is told by its structure.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Final, cast

from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_list, as_object, as_text, structured, without
from reenact.values.message import Message, Text, ToolCall

_FIELD: Final = re.compile(r"\s*([^\W\d]\w*)=")
_SPELLED: Final = re.compile(r"(?:\w+=(?:None|'[^']*'|\"[^\"]*\") )*role='|(?:\w+=None )*content=.*\srole='", re.DOTALL)
_OBJECT: Final = re.compile(r"[A-Z]\w*\(\w+=.*\)\s*", re.DOTALL)
_PYTHON: Final = re.compile(r"\s*(?:\{'|\[\{'|\[[A-Z]\w*\()")
"""How Python spells an object, a list of objects, or a list of messages of some class."""
_CLASSES: Final = {
    "HumanMessage": "user",
    "AIMessage": "assistant",
    "AIMessageChunk": "assistant",
    "ToolMessage": "tool",
    "FunctionMessage": "tool",
    "SystemMessage": "system",
    "UserMessage": "user",
    "AssistantMessage": "assistant",
    "FunctionExecutionResultMessage": "tool",
}
"""Classes of messages of LangChain, and types of AutoGen's."""
_HAYSTACK: Final = frozenset({"tool_call", "tool_call_result"})
_BLOCKS: Final = frozenset({"text", "toolUse", "toolResult", "reasoningContent"})
_LINE: Final = re.compile(r"^(developer|system|user|human|assistant|ai|model|tool|function): ?", re.MULTILINE)
_WHOLE_ROLES: Final = frozenset({"user", "assistant", "system", "tool", "developer", "function"})
_HOLDERS: Final = ("messages", "input", "inputs", "prompt", "chat_history", "message", "replies")
_LONGEST: Final = 4 << 20


def opened(value: Json, read: Callable[[str], Json]) -> Json:
    """Give a request or a reply with its messages as objects again, where they stand as text; anything else as is.

    `read` reads Python's `repr` (`encodings.python_repr.read`).
    """
    content = structured(value)
    if isinstance(content, str):
        whole = read(content) if _PYTHON.match(content) and len(content) <= _LONGEST else None
        if not isinstance(whole, dict | list):
            return _message(content, read)
        content = whole
    if isinstance(content, list):
        return [each for item in content for each in _answers(_message(item, read))]
    container = as_object(content)
    arguments = as_list(container.get("args"))
    if len(arguments) == 1 and container.keys() <= {"args", "kwargs"} and not container.get("kwargs"):
        return opened(arguments[0], read)  # a function that was given nothing but messages
    for name in _HOLDERS:
        inner = structured(container.get(name))
        if isinstance(inner, list) and inner:
            return {**container, name: opened(inner, read)}
    return _message(content, read)


def tools_among(value: Json) -> tuple[Json, list[Json]]:
    """Part messages from the definitions of tools that Langfuse's handler for LangChain puts among them."""
    listed = as_list(value)
    tools = [content for item in listed if _is_definition(content := as_object(item).get("content")) and _tools(item)]
    if not tools:
        return value, []
    return [item for item in listed if not (_tools(item) and _is_definition(as_object(item).get("content")))], tools


def _tools(item: Json) -> bool:
    message = as_object(item)
    return message.get("role") == "tool" and "tool_call_id" not in message


def _is_definition(content: Json) -> bool:
    entry = as_object(content)
    definition = as_object(entry.get("function")) or entry
    return "name" in definition and any(name in definition for name in ("parameters", "input_schema", "description"))


def _message(item: Json, read: Callable[[str], Json]) -> Json:
    if isinstance(item, str):
        if _SPELLED.match(item) and len(item) <= _LONGEST and "role" in (structure := fields(item)):
            return structure
        structure = read(item) if _OBJECT.fullmatch(item) and len(item) <= _LONGEST else None
        is_message = isinstance(structure, dict) and ("content" in structure or "role" in structure)
        return _message(structure, read) if is_message else item
    message = as_object(item)
    role = _CLASSES.get(as_text(message.get("$class"))) or _CLASSES.get(as_text(message.get("type")))
    if role and "role" not in message and message.get("lc") != 1:
        message = {**without(message, ("type",)), "role": role}
        item = message
    content = message.get("content")
    if isinstance(content, list) and any(as_object(each).keys() & _HAYSTACK for each in content):
        return {**message, "content": [_of_haystack(each) for each in content]}
    blocks = parsed_or_none(content) if isinstance(content, str) and content[:2] == "[{" else content
    if isinstance(blocks, list) and blocks:
        if all(_is_call(each) for each in blocks):
            return {**message, "role": "assistant", "content": None, "tool_calls": blocks}
        if blocks is not content and all(as_object(each).keys() & _BLOCKS for each in blocks):
            return {**message, "content": blocks}
    return item


def _of_haystack(block: Json) -> Json:
    part = as_object(block)
    call, answer = as_object(part.get("tool_call")), as_object(part.get("tool_call_result"))
    if call:
        return {
            "type": "tool_call",
            "id": call.get("id"),
            "name": call.get("tool_name"),
            **without(call, ("tool_name",)),
        }
    if answer:
        origin = as_object(answer.get("origin"))
        return {"type": "tool_call_response", "id": origin.get("id"), "response": answer.get("result")}
    return block


def _is_call(item: Json) -> bool:
    """Tell a call of a tool that stands where content should: OpenAI's (Koog), or AutoGen's."""
    call = as_object(item)
    if call.get("type") == "function":
        return "name" in as_object(call.get("function"))
    return call.keys() >= {"id", "name", "arguments"} and "type" not in call


def lines_of(value: Json) -> tuple[Message, ...]:
    """Read the same where each message is a text of its own in a list; none where any of them begins otherwise."""
    content = structured(value)
    listed = as_list(as_object(content).get("messages")) or as_list(content)
    if not listed:
        return lines(value) if isinstance(value, str) else ()
    message_groups = [lines(each) if isinstance(each, str) else () for each in listed]
    return tuple(message for messages in message_groups for message in messages) if all(message_groups) else ()


def _answers(item: Json) -> list[Json]:
    """Part the answers of several tools, which AutoGen puts into one message."""
    message = as_object(item)
    answers = [as_object(each) for each in as_list(message.get("content"))]
    if message.get("role") != "tool" or not answers or not all("call_id" in each for each in answers):
        return [item]
    return [
        {"role": "tool", "content": each.get("content"), "tool_call_id": each["call_id"], "name": each.get("name")}
        for each in answers
    ]


def fields(text: str) -> dict[str, Json]:
    """Read `name=value name=value …`, each value as Python spells it; one that is no literal stays text."""
    values: dict[str, Json] = {}
    at = 0
    while (match := _FIELD.match(text, at)) is not None:
        end = _end(text, match.end())
        if end == match.end() and match[1] not in values:
            values[match[1]] = ""
        values[match[1]] = _literal(text[match.end() : end])
        at = end
    return values


def _end(text: str, at: int) -> int:
    """Find where a value ends: at the first white space outside of strings and brackets."""
    depth = 0
    while at < len(text):
        sign = text[at]
        if sign in "'\"":
            at = _string_end(text, at)
            continue
        if sign in "([{<":
            depth += 1
        elif sign in ")]}>":
            depth -= 1
        elif sign.isspace() and depth <= 0:
            return at
        at += 1
    return at


def _string_end(text: str, at: int) -> int:
    quote = text[at]
    at += 1
    while at < len(text) and text[at] != quote:
        at += 2 if text[at] == "\\" else 1
    return min(at + 1, len(text))


def _literal(text: str) -> Json:
    try:
        return _json(ast.literal_eval(text))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text


def _json(value: object) -> Json:
    if isinstance(value, dict):
        return {str(key): _json(item) for key, item in cast("dict[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_json(item) for item in cast("list[object]", value)]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def lines(text: str) -> tuple[Message, ...]:
    """Read lines that each begin with a role, each message to the next such line; none where the first does not.

    `None` is what such emitters write for a message without content.
    """
    begins = list(_LINE.finditer(text))
    if not begins or text[: begins[0].start()].strip():
        return ()
    messages: list[Message] = []
    for number, begin in enumerate(begins):
        end = begins[number + 1].start() if number + 1 < len(begins) else len(text)
        content = text[begin.end() : end].removesuffix("\n")
        role = {"human": "user", "ai": "assistant", "model": "assistant", "function": "tool"}.get(begin[1], begin[1])
        messages.append(Message(role=role, parts=(Text(content),) if content != "None" else ()))
    return tuple(messages)


def with_roles(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Give messages whose role is the name of a tool that was called before as that tool's answers.

    The id that such a message, or a tool's answer without one, belongs to is taken from the calls that are still open,
    where only one can be meant; else it stays unknown.
    """
    waiting: list[ToolCall] = []
    new_messages: list[Message] = []
    for message in messages:
        waiting += [part for part in message.parts if isinstance(part, ToolCall)]
        names = message.role not in _WHOLE_ROLES and any(call.name == message.role for call in waiting)
        if message.tool_call_id or not (names or message.role == "tool"):
            waiting = [call for call in waiting if call.id != message.tool_call_id]
            new_messages.append(message)
            continue
        name = message.role if names else message.name
        candidates = [call for call in waiting if name in (None, call.name)]
        waiting = [call for call in waiting if len(candidates) != 1 or call is not candidates[0]]
        call_id = candidates[0].id if len(candidates) == 1 else ""
        new_messages.append(Message(role="tool", parts=message.parts, name=name, tool_call_id=call_id or None))
    return tuple(new_messages)
