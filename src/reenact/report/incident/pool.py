"""What many calls share, kept once: long texts, messages of a conversation, sets of tools."""

from __future__ import annotations

import base64
import hashlib
from typing import TypeAlias
from urllib.parse import unquote_to_bytes

import orjson

from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lenient import media_type
from reenact.values.message import Media, Message, Part, Reasoning, Text, ToolCall

Shared: TypeAlias = "str | int"
"""A text, or the number of a text in the pool."""

SHORT = 160
"""Characters up to which a text stands where it is said."""
MOST = 96 << 20
"""Characters that all texts of a page may have together; a browser holds each twice."""
KEPT = 4000
"""Characters that are kept of each text past that."""
_FIELDS = 24
_FIELD = 2000


class Pool:
    """The shared things of one page."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.messages: list[Json] = []
        self.tools: list[Json] = []
        self.cut: dict[str, Json] = {}
        """How many characters the texts have that were cut, by their number."""
        self._text_size = 0
        self._text_at: dict[str, int] = {}
        self._message_at: dict[str, int] = {}
        self._tools_at: dict[str, int] = {}

    def text(self, text: str) -> Shared:
        """Put a text in; a short one is given back."""
        if len(text) <= SHORT:
            return text
        at = self._text_at.get(text)
        if at is None:
            at = self._text_at[text] = len(self.texts)
            if self._text_size + len(text) > MOST and len(text) > KEPT:
                self.cut[str(at)] = len(text)
                text = text[:KEPT]
            self._text_size += len(text)
            self.texts.append(text)
        return at

    def value(self, value: Json) -> Json:
        """Give any JSON as a page shows it: a text, the fields of a flat object, or lines of JSON."""
        if isinstance(value, str):
            return {"text": self.text(value)}
        if isinstance(value, dict) and 0 < len(value) <= _FIELDS and all(map(_is_flat, value.values())):
            return {"fields": [[self.text(name), *self._field(item)] for name, item in value.items()]}
        return {"json": self.text(pretty(value))}

    def _field(self, value: Json) -> list[Json]:
        """Give a field's text and what it is: `s` for text, `l` for a list of texts, `j` for JSON."""
        if isinstance(value, str):
            return [self.text(value), "s"]
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            return [[self.text(item) for item in value if isinstance(item, str)], "l"]
        return [self.text(compact(value)), "j"]

    def message(self, message: Message) -> int:
        """Put a message in and give its number; equal ones have one."""
        entry: dict[str, Json] = {"role": message.role, "parts": [self._part(part) for part in message.parts]}
        if message.name:
            entry["name"] = message.name
        if message.tool_call_id:
            entry["id"] = message.tool_call_id
        key = compact(entry)
        at = self._message_at.get(key)
        if at is None:
            at = self._message_at[key] = len(self.messages)
            self.messages.append(entry)
        return at

    def tool_set(self, tools: tuple[Json, ...]) -> int | None:
        """Put in the tools that a request offers, and give the number of the set."""
        if not tools:
            return None
        key = compact([*tools])
        at = self._tools_at.get(key)
        if at is None:
            at = self._tools_at[key] = len(self.tools)
            self.tools.append([[_tool_name(tool), self.text(pretty(tool))] for tool in tools])
        return at

    def _part(self, part: Part) -> Json:
        match part:
            case Text(text=text):
                return ["text", self.text(text)]
            case Reasoning(text=text):
                return ["reasoning", self.text(text)] if text else ["sealed", len(part.encrypted or "")]
            case ToolCall(id=identity, name=name, arguments=arguments):
                decoded = parsed_or_none(arguments) if arguments else {}
                payload: Json = {"text": self.text(arguments)} if decoded is None else self.value(decoded)
                return ["call", identity, name, payload]
            case Media():
                return ["media", *_media(part)]
            case _:
                return ["other", self.value(part.json)]


def _media(part: Media) -> list[Json]:
    """Say of a picture or sound what it is: kind, type, name, address, size in bytes and digest of what is inside."""
    if not part.url.startswith("data:"):
        return [part.modality, part.mime_type, part.name, part.url[:2000], None, None]
    head, _, payload = part.url.partition(",")
    try:
        data = base64.b64decode(payload) if head.endswith(";base64") else unquote_to_bytes(payload)
    except ValueError:
        return [part.modality, part.mime_type or media_type(part.url), part.name, "", None, None]
    mime_type = part.mime_type or media_type(part.url)
    return [part.modality, mime_type, part.name, "", len(data), hashlib.sha256(data).hexdigest()]


def _is_flat(value: Json) -> bool:
    if isinstance(value, dict):
        return not value
    if isinstance(value, list):
        return len(value) <= _FIELDS and not any(isinstance(item, dict | list) for item in value)
    return not isinstance(value, str) or len(value) <= _FIELD


def _tool_name(tool: Json) -> str:
    if not isinstance(tool, dict):
        return "?"
    inner = tool.get("function")
    label = (inner.get("name") if isinstance(inner, dict) else None) or tool.get("name") or tool.get("type")
    return str(label)


def pretty(value: Json) -> str:
    """Spell JSON over several lines; integers of any size stay exact."""
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    except (TypeError, orjson.JSONEncodeError):  # integers over 64 bit, lone surrogates
        import json

        return json.dumps(value, indent=2)
