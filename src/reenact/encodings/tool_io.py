"""What a tool was given and what it said, out of the wrappings that frameworks and instrumentors put around both.

`{"args": […], "kwargs": {…}}` of those that wrap a Python function; LangChain's tool messages, as objects, as
constructors and as `repr`; MCP's and Anthropic's lists of text blocks are left as they are, since agents hand those on.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Final

from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_list, as_object, as_text

_WRAPPED: Final = frozenset(
    {"args", "kwargs", "sanitize_inputs_outputs", "input", "config", "run_manager", "tags", "metadata"}
)
_REPR: Final = re.compile(r"content=('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")", re.DOTALL)
_REPR_ID: Final = re.compile(r"tool_call_id='([^']*)'")
_MESSAGE_KEYS: Final = frozenset({"content", "tool_call_id"})


def arguments(value: Json, names: Sequence[str] = ()) -> Json:
    """Give the arguments alone, by name where they have one.

    `names` are those of the tool's parameters in order, for arguments that were passed by place. What cannot be told
    apart is left as it came.
    """
    fields = as_object(value)
    if not fields or "kwargs" not in fields or not set(fields) <= _WRAPPED:
        return value
    by_place, by_name = as_list(fields.get("args")), as_object(fields.get("kwargs"))
    if not by_place:
        return by_name
    if len(by_place) == 1 and isinstance(by_place[0], dict) and not by_name and len(names) != 1:
        return by_place[0]
    if len(by_place) <= len(names):
        return {**dict(zip(names, by_place, strict=False)), **by_name}
    return value


def parameter_names(schema: Json) -> tuple[str, ...]:
    """Give the names of a tool's parameters in order, out of its schema, or a mapping of name to schema."""
    fields = as_object(schema)
    inner = as_object(fields.get("properties")) or as_object(as_object(fields.get("parameters")).get("properties"))
    if inner:
        return tuple(inner)
    return tuple(fields) if is_schema(fields) else ()


def is_schema(value: Json) -> bool:
    """Tell a description of parameters from the arguments of one call."""
    fields = as_object(value)
    if isinstance(fields.get("properties"), dict):
        return True
    return bool(fields) and all("type" in as_object(item) or "anyOf" in as_object(item) for item in fields.values())


def result(value: Json, depth: int = 0) -> tuple[Json, str]:
    """Give what a tool said, and the id of the call that it answers, or nothing for that."""
    if isinstance(value, str):
        return _of_repr(value)
    fields = as_object(value)
    if not fields or depth > 4:
        return value, ""
    if fields.get("lc") == 1 and isinstance(kwargs := fields.get("kwargs"), dict):
        return result(kwargs, depth + 1)
    if fields.keys() >= _MESSAGE_KEYS:
        return fields["content"], as_text(fields.get("tool_call_id"))
    return value, ""


def unwrapped(value: Json) -> Json:
    """Open the object with one `output` in which LangChain's tracers keep what a tool returned."""
    fields = as_object(value)
    return fields["output"] if set(fields) == {"output"} else value


def _of_repr(text: str) -> tuple[Json, str]:
    match = _REPR.match(text)
    if match is None or (id_match := _REPR_ID.search(text, match.end())) is None:
        return text, ""
    try:
        content: object = ast.literal_eval(match[1])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text, ""
    return (content, id_match[1]) if isinstance(content, str) else (text, "")


def read(value: Json) -> Json:
    """Read a value that may be JSON text; a text that is none stays a text."""
    if not isinstance(value, str):
        return value
    parsed = parsed_or_none(value)
    return value if parsed is None and value.strip() != "null" else parsed
