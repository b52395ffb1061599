"""What of an agent's own settings a difference between two model calls is: its system prompt, or a tool's schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from reenact.values.call import CallKind, HttpRequest
from reenact.values.json import Json, parsed_or_none
from reenact.values.json_path import NoSuchPlace, Path, parse_path, value_at
from reenact.values.lenient import as_object, as_text
from reenact.values.run import Node

_SYSTEM: Final = re.compile(r"(?:config\.)?(?:system|instructions|preamble|system_?instructions?)\b", re.IGNORECASE)
"""Where requests of Anthropic, OpenAI's Responses, Cohere, Gemini and Bedrock have their system prompt."""
_MESSAGES: Final = re.compile(r"(?:messages|input)\[\d+\]")
_TOOLS: Final = re.compile(r"(?:config\.|toolConfig\.)*(?:tools|functions)\b(?:\[\d+\])?")
_BODY: Final = "body."
_ROLES: Final = frozenset({"system", "developer"})


def changed_part(node: Node, field: str) -> str:
    """Name the part of a recorded model call that a field of its request belongs to.

    That is `system prompt`, `schema of tool NAME` or `tool schemas`; empty for anything else.
    """
    request = node.call.request
    if node.kind is not CallKind.LLM or not isinstance(request, HttpRequest) or not field.startswith(_BODY):
        return ""
    path, body = field.removeprefix(_BODY), parsed_or_none(request.body.data)
    if _SYSTEM.match(path):
        return "system prompt"
    if (message := _MESSAGES.match(path)) is not None:
        return "system prompt" if as_text(_at(body, message[0]).get("role")) in _ROLES else ""
    if _TOOLS.match(path):
        return f"schema of tool {name}" if (name := _tool(body, path)) else "tool schemas"
    return ""


def _tool(body: Json, field: str) -> str:
    """Name the tool that a path leads into; empty where it leads to none that was recorded."""
    steps = parse_path(field)
    for end in range(len(steps), 0, -1):
        declaration = _object(body, steps[:end])
        name = declaration.get("name") or as_object(declaration.get("function")).get("name")
        is_tool = isinstance(steps[end - 1], int) or steps[end - 1] in {"function", "toolSpec"}
        if is_tool and isinstance(name, str):
            return name
    return ""


def _at(body: Json, field: str) -> Mapping[str, Json]:
    return _object(body, parse_path(field))


def _object(body: Json, path: Path) -> Mapping[str, Json]:
    try:
        value = value_at(body, path)
    except NoSuchPlace:
        return {}
    return value if isinstance(value, dict) else {}
