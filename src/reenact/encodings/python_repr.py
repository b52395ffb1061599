"""What Python's `repr` wrote: literals, and objects spelled as `Class(field=value)`, as LiteLLM and Haystack log them.

Read by a small parser of its own; nothing is evaluated. `Class(a=1)` becomes `{"$class": "Class", "a": 1}`, with
arguments without a name under `args`; an enum's `<Role.USER: 'user'>` its value; any other `<…>` its text.
"""

from __future__ import annotations

import ast
import re
from typing import Final

from reenact.values.json import Json

_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<string>[rRbBuU]{0,2}(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"))
      | (?P<number>[-+]?(?:[0-9]+(?:_[0-9]+)*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)
      | (?P<name>[^\W\d][\w.]*)
      | (?P<mark>[\[\](){}:,=<>])
    )""",
    re.VERBOSE | re.DOTALL,
)
_ANGLES: Final = re.compile("[<>]")
_WORDS: Final[dict[str, Json]] = {
    "None": None,
    "True": True,
    "False": False,
    "null": None,
    "true": True,
    "false": False,
}
_OBJECT: Final = re.compile(r"[A-Z]\w*\(\w+=")
_DEEPEST: Final = 100
_DEEPEST_JSON: Final = 3
_LONGEST_NUMBER: Final = 300


def read(text: str) -> Json:
    """Read one value, or None where `text` is no `repr` of anything but None."""
    reader = _Reader(text)
    try:
        value = reader.value(0)
        return value if reader.ended() else None
    except _Unreadable:
        return None


def within(value: Json, depth: int = 0) -> Json:
    """Read the objects' `repr` that stand as strings in JSON, as instrumentors write what JSON cannot hold."""
    if isinstance(value, str):
        json_value = read(value) if _OBJECT.match(value) else None
        return value if json_value is None else json_value
    if isinstance(value, list) and depth < _DEEPEST_JSON:
        return [within(item, depth + 1) for item in value]
    if isinstance(value, dict) and depth < _DEEPEST_JSON:
        return {name: within(item, depth + 1) for name, item in value.items()}
    return value


class _Unreadable(Exception):
    """The text is no `repr`."""


class _Reader:
    """One walk over one text."""

    __slots__ = ("_at", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def ended(self) -> bool:
        """Tell whether nothing but white space is left."""
        return not self._text[self._at :].strip()

    def value(self, depth: int) -> Json:
        """Read the value that begins here."""
        if depth > _DEEPEST:
            raise _Unreadable
        token = self._next()
        if (string := token["string"]) is not None:
            return self._strings(string)
        if (number := token["number"]) is not None:
            return _number(number)
        if (name := token["name"]) is not None:
            return self._name_or_call(name, depth)
        match token["mark"]:
            case "[":
                return self._items("]", depth)
            case "(":
                return self._items(")", depth)
            case "{":
                return self._pairs(depth)
            case "<":
                return self._angled(depth)
            case _:
                raise _Unreadable

    def _next(self) -> dict[str, str | None]:
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            raise _Unreadable
        self._at = match.end()
        return match.groupdict()

    def _peek(self) -> str:
        rest = self._text[self._at : self._at + 64].lstrip()
        return rest[:1]

    def _take(self, mark: str) -> bool:
        if self._peek() != mark:
            return False
        self._at = self._text.index(mark, self._at) + 1
        return True

    def _strings(self, first: str) -> str:
        """Read strings that stand side by side as the one that they are."""
        text = _string(first)
        while self._peek() in ("'", '"'):
            text += _string(self._next()["string"] or "''")
        return text

    def _items(self, end: str, depth: int) -> list[Json]:
        items: list[Json] = []
        while not self._take(end):
            items.append(self.value(depth + 1))
            if not self._take(",") and self._peek() != end:
                raise _Unreadable
        return items

    def _pairs(self, depth: int) -> Json:
        pairs: dict[str, Json] = {}
        members: list[Json] = []
        while not self._take("}"):
            key = self.value(depth + 1)
            if self._take(":"):
                pairs[key if isinstance(key, str) else repr(key)] = self.value(depth + 1)
            else:
                members.append(key)
            if not self._take(",") and self._peek() != "}":
                raise _Unreadable
        return members if members and not pairs else pairs

    def _name_or_call(self, name: str, depth: int) -> Json:
        if name in _WORDS:
            return _WORDS[name]
        if not self._take("("):
            return name  # nan, inf, or a bare name such as an enum's member
        fields: dict[str, Json] = {"$class": name}
        args: list[Json] = []
        while not self._take(")"):
            start = self._at
            token = self._next()
            if token["name"] is not None and self._take("="):
                fields[token["name"]] = self.value(depth + 1)
            else:
                self._at = start
                args.append(self.value(depth + 1))
            if not self._take(",") and self._peek() != ")":
                raise _Unreadable
        return {**fields, "args": args} if args else fields

    def _angled(self, depth: int) -> Json:
        """Read `<Enum.MEMBER: value>` as the value, and any other `<…>` as its text."""
        start = self._at
        token = self._next()
        if token["name"] is not None and self._take(":"):
            try:
                value = self.value(depth + 1)
                if self._take(">"):
                    return value
            except _Unreadable:
                pass
        open_ones = 1
        for mark in _ANGLES.finditer(self._text, start):
            open_ones += 1 if mark[0] == "<" else -1  # `<function f.<locals>.g at 0x…>` holds one of its own
            if not open_ones:
                self._at = mark.end()
                return f"<{self._text[start : mark.start()]}>"
        raise _Unreadable


def _string(token: str) -> str:
    try:
        value: object = ast.literal_eval(token)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise _Unreadable from None
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _number(token: str) -> Json:
    if len(token) > _LONGEST_NUMBER:
        return token
    try:
        return int(token)
    except ValueError:
        return float(token)
