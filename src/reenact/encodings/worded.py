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
    told = structured(value)
    if isinstance(told, str):
        whole = read(told) if _PYTHON.match(told) and len(told) <= _LONGEST else None
        if not isinstance(whole, dict | list):
            return _message(told, read)
        told = whole
    if isinstance(told, list):
        return [each for item in told for each in _answers(_message(item, read))]
    held = as_object(told)
    passed = as_list(held.get("args"))
    if len(passed) == 1 and held.keys() <= {"args", "kwargs"} and not held.get("kwargs"):
        return opened(passed[0], read)  # a function that was given nothing but messages
    for name in _HOLDERS:
        inner = structured(held.get(name))
        if isinstance(inner, list) and inner:
            return {**held, name: opened(inner, read)}
    return _message(told, read)


def tools_among(value: Json) -> tuple[Json, list[Json]]:
    """Part messages from the definitions of tools that Langfuse's handler for LangChain puts among them."""
    listed = as_list(value)
    tools = [content for item in listed if _is_definition(content := as_object(item).get("content")) and _tools(item)]
    if not tools:
        return value, []
    return [item for item in listed if not (_tools(item) and _is_definition(as_object(item).get("content")))], tools


def _tools(item: Json) -> bool:
    held = as_object(item)
    return held.get("role") == "tool" and "tool_call_id" not in held


def _is_definition(content: Json) -> bool:
    held = as_object(content)
    named = as_object(held.get("function")) or held
    return "name" in named and any(name in named for name in ("parameters", "input_schema", "description"))


def _message(item: Json, read: Callable[[str], Json]) -> Json:
    if isinstance(item, str):
        if _SPELLED.match(item) and len(item) <= _LONGEST and "role" in (found := fields(item)):
            return found
        found = read(item) if _OBJECT.fullmatch(item) and len(item) <= _LONGEST else None
        known = isinstance(found, dict) and ("content" in found or "role" in found)
        return _message(found, read) if known else item
    held = as_object(item)
    role = _CLASSES.get(as_text(held.get("$class"))) or _CLASSES.get(as_text(held.get("type")))
    if role and "role" not in held and held.get("lc") != 1:
        held = {**without(held, ("type",)), "role": role}
        item = held
    content = held.get("content")
    if isinstance(content, list) and any(as_object(each).keys() & _HAYSTACK for each in content):
        return {**held, "content": [_of_haystack(each) for each in content]}
    blocks = parsed_or_none(content) if isinstance(content, str) and content[:2] == "[{" else content
    if isinstance(blocks, list) and blocks:
        if all(_is_call(each) for each in blocks):
            return {**held, "role": "assistant", "content": None, "tool_calls": blocks}
        if blocks is not content and all(as_object(each).keys() & _BLOCKS for each in blocks):
            return {**held, "content": blocks}
    return item


def _of_haystack(block: Json) -> Json:
    held = as_object(block)
    call, answer = as_object(held.get("tool_call")), as_object(held.get("tool_call_result"))
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
    held = as_object(item)
    if held.get("type") == "function":
        return "name" in as_object(held.get("function"))
    return held.keys() >= {"id", "name", "arguments"} and "type" not in held


def lines_of(value: Json) -> tuple[Message, ...]:
    """Read the same where each message is a text of its own in a list; none where any of them begins otherwise."""
    told = structured(value)
    listed = as_list(as_object(told).get("messages")) or as_list(told)
    if not listed:
        return lines(value) if isinstance(value, str) else ()
    found = [lines(each) if isinstance(each, str) else () for each in listed]
    return tuple(message for messages in found for message in messages) if all(found) else ()


def _answers(item: Json) -> list[Json]:
    """Part the answers of several tools, which AutoGen puts into one message."""
    held = as_object(item)
    told = [as_object(each) for each in as_list(held.get("content"))]
    if held.get("role") != "tool" or not told or not all("call_id" in each for each in told):
        return [item]
    return [
        {"role": "tool", "content": each.get("content"), "tool_call_id": each["call_id"], "name": each.get("name")}
        for each in told
    ]


def fields(text: str) -> dict[str, Json]:
    """Read `name=value name=value …`, each value as Python spells it; one that is no literal stays text."""
    found: dict[str, Json] = {}
    at = 0
    while (named := _FIELD.match(text, at)) is not None:
        end = _end(text, named.end())
        if end == named.end() and named[1] not in found:
            found[named[1]] = ""
        found[named[1]] = _literal(text[named.end() : end])
        at = end
    return found


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
    found: list[Message] = []
    for number, begin in enumerate(begins):
        end = begins[number + 1].start() if number + 1 < len(begins) else len(text)
        said = text[begin.end() : end].removesuffix("\n")
        role = {"human": "user", "ai": "assistant", "model": "assistant", "function": "tool"}.get(begin[1], begin[1])
        found.append(Message(role=role, parts=(Text(said),) if said != "None" else ()))
    return tuple(found)


def with_roles(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Give messages whose role is the name of a tool that was called before as that tool's answers.

    The id that such a message, or a tool's answer without one, belongs to is taken from the calls that are still open,
    where only one can be meant; else it stays unknown.
    """
    waiting: list[ToolCall] = []
    found: list[Message] = []
    for message in messages:
        waiting += [part for part in message.parts if isinstance(part, ToolCall)]
        names = message.role not in _WHOLE_ROLES and any(call.name == message.role for call in waiting)
        if message.tool_call_id or not (names or message.role == "tool"):
            waiting = [call for call in waiting if call.id != message.tool_call_id]
            found.append(message)
            continue
        name = message.role if names else message.name
        meant = [call for call in waiting if name in (None, call.name)]
        waiting = [call for call in waiting if len(meant) != 1 or call is not meant[0]]
        known = meant[0].id if len(meant) == 1 else ""
        found.append(Message(role="tool", parts=message.parts, name=name, tool_call_id=known or None))
    return tuple(found)
