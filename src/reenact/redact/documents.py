"""JSON as it stands in a text: the leaves that need a look, and edits that leave every other byte as it was.

`hits` looks at the strings and numbers around the places that the gate names and parses nothing; it takes documents in
which nothing depends on where a value stands. `walk` goes through the whole of a document, token by token and without
recursion, knows the path of everything, and is what `hits` falls back on.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import orjson

from reenact.redact import pairs
from reenact.redact.fields import COUNTS, OPAQUE_KEYS, SENSITIVE_KEYS
from reenact.redact.gate import latin

Whole = Literal["pseudonymise", "mask", "drop", "keep"]
Path = tuple[str | int, ...]

_WHITE: Final = " \t\r\n"
_WHITE_BYTES: Final = b" \t\r\n"
_STRUCTURE: Final = re.compile(r"[\s,:\[\]{}0-9eE+\-.truefalsnNInity]*")
_NUMBER: Final = re.compile(r"(?<![0-9.eE+\-])-?[0-9]{7,40}(?:\.[0-9]{1,20})?(?![0-9.eE])")
_AFTER_A_KEY: Final = re.compile(r"\s*:\s*")
_BEHIND_A_VALUE: Final = re.compile(r"\s*+(?:[,\]}]|\Z)")
_A_NUMBER: Final = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][+\-]?[0-9]{1,3})?")
_TOKEN: Final = re.compile(
    r'[ \t\r\n]*(?:("[^"\\]*(?:\\.[^"\\]*)*")|([\[\]{},:])'
    r"|(-?[0-9]+(?:\.[0-9]+)?(?:[eE][+\-]?[0-9]+)?|true|false|null|NaN|-?Infinity))",
    re.DOTALL,
)
_OTHER: Final = re.compile(r"[^\x00-\x7f]+")
_STRING: Final = 1
_MARK: Final = 2
_LONGEST_KEY: Final = 200
_MOST_BETWEEN: Final = 16
"""Strings of an object that may stand between a name and what it names, and these."""


class Undecided(Exception):
    """The place of a value matters, or the text is no JSON."""


class Edit(NamedTuple):
    """A stretch of a text, and what it becomes."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """What is done to the values of a document. Each gives None where a value stays."""

    leaf: Callable[[str, str, Path], str | None]
    """A string, under a key ("" where it has none), at a path."""
    number: Callable[[str, str, Path], str | None]
    """A number as it is spelled; what it becomes is a string."""
    key: Callable[[str, Path], str | None]
    whole: Callable[[Path, bool], Whole | None] | None = None
    """Asked for every member and item, and told whether it is an object or a list; None where nobody wants to know."""
    mask: str = ""


def spell(text: str, *, ascii_only: bool = False) -> str:
    """Spell a string of JSON."""
    try:
        spelled = orjson.dumps(text).decode()
    except TypeError:  # lone surrogates
        return json.dumps(text)
    return _OTHER.sub(lambda match: json.dumps(match[0])[1:-1], spelled) if ascii_only else spelled


def read(spelled: str) -> str:
    """Read a string of JSON. Raises `Undecided`."""
    try:
        value = orjson.loads(spelled)
    except ValueError:
        try:
            value = json.loads(spelled, strict=False)
        except ValueError:
            raise Undecided from None
    if not isinstance(value, str):
        raise Undecided
    return value


def applied(text: str, edits: Sequence[Edit]) -> str:
    """Make edits, which are in order."""
    out: list[str] = []
    at = 0
    for start, end, after in edits:
        out += (text[at:start], after)
        at = end
    out.append(text[at:])
    return "".join(out)


def hits(text: str, begin: int, places: Sequence[int], looks: Looks) -> list[Edit]:
    """Give the edits of what follows `begin`, which is outside of a string. `places` count from there, in order.

    Raises `Undecided`.
    """
    return _Hits(text, begin, looks).edits(places)


class _Hits:
    def __init__(self, text: str, begin: int, looks: Looks) -> None:
        self._text, self._begin, self._looks = text, begin, looks
        self._part = text[begin:] if begin else text
        data = latin(self._part)
        # The quotes that begin and end strings: an escaped one is overwritten, so that nothing moves.
        self._quotes = data.replace(b"\\\\", b"\0\0").replace(b'\\"', b"\0\0") if b'\\"' in data else data
        self._edits: list[Edit] = []
        self._opaque: bool | None = None

    def edits(self, places: Sequence[int]) -> list[Edit]:
        quotes = self._quotes
        looked_end = counted = 0
        inside = 0
        for place in places:
            if place < looked_end:
                continue
            inside ^= quotes.count(b'"', counted, place) & 1
            left = quotes.rfind(b'"', 0, place)
            if inside:
                right = quotes.find(b'"', place)
                if right < 0:
                    raise Undecided
                looked_end = self._string(left, right)
            else:
                right = quotes.find(b'"', place)
                looked_end = len(quotes) if right < 0 else right
                self._structure(max(left + 1, counted), looked_end)
            counted, inside = looked_end, 0
        return self._edits

    def _string(self, left: int, right: int) -> int:
        """Look at the string between two quotes, and at the value where it is a key. Gives where to go on."""
        part = self._part
        after = _AFTER_A_KEY.match(part, right + 1)
        if after is None:
            if _BEHIND_A_VALUE.match(part, right + 1) is None:
                raise Undecided  # this is no JSON: `name="password" value="…"`
            key = self._key_before(left)
            self._leaf(left, right, key)
            return self._beside(left, right, key)
        key = read(part[left : right + 1])
        changed = self._looks.key(key, ())
        if changed is not None:
            self._add_edit(left, right + 1, changed)
        start = after.end()
        if part[start : start + 1] == '"':
            end = self._quotes.find(b'"', start + 1)
            if end < 0:
                raise Undecided
            self._leaf(start, end, key)
            return self._beside(start, end, key)
        if part[start : start + 1] == "[" and (key.lower() in SENSITIVE_KEYS or key.lower() in OPAQUE_KEYS):
            raise Undecided
        if (number := _A_NUMBER.match(part, start)) is not None:
            new = self._looks.number(number[0], key, ())
            if new is not None:
                self._add_edit(*number.span(), new)
            return number.end()
        return start

    def _leaf(self, left: int, right: int, key: str | None) -> None:
        spelled = self._part[left : right + 1]
        if key is not None and key.lower() in OPAQUE_KEYS:
            return
        value = read(spelled)
        new = self._looks.leaf(value, key or "", ())
        if new is not None:
            if key is None and self._in_a_list(left):
                raise Undecided
            self._add_edit(left, right + 1, new)
        elif pairs.before(self._text, self._begin + left, key or "", value) is not None:
            raise Undecided  # what is to be changed stands before what was looked at

    def _beside(self, left: int, right: int, key: str | None) -> int:
        """Look at the string behind one that names it. Gives where to go on."""
        name_text = self._part[left : right + 1]
        if key is not None and key.lower() in OPAQUE_KEYS:
            return right + 1
        neighbor = pairs.behind(self._part, left, right, key or "", read(name_text))
        if neighbor is None:
            return right + 1
        new = self._looks.leaf(read(self._part[neighbor.start : neighbor.end]), neighbor.key, ())
        if new is not None:
            self._add_edit(neighbor.start, neighbor.end, new)
        return neighbor.end

    def _in_a_list(self, left: int) -> bool:
        """Tell whether a string that is no member may stand in a list whose key says that it is opaque."""
        if self._opaque is None:
            lowered = self._text.lower()
            self._opaque = any(f'"{key}"' in lowered for key in OPAQUE_KEYS)
        return self._opaque and left >= 0

    def _add_edit(self, start: int, end: int, new: str) -> None:
        spelled = spell(new, ascii_only="\\u" in self._part[start:end])
        self._edits.append(Edit(self._begin + start, self._begin + end, spelled))

    def _structure(self, left: int, right: int) -> None:
        part = self._part
        if _STRUCTURE.fullmatch(part, left, right) is None:
            raise Undecided
        for number in _NUMBER.finditer(part, left, right):
            key = self._key_before(number.start())
            new = self._looks.number(number[0], key or "", ())
            if new is not None:
                if key is None:
                    raise Undecided  # in a list, whose key may say that they are ids
                self._add_edit(*number.span(), new)

    def _key_before(self, at: int) -> str | None:
        """Give the key whose value begins at a place; None for an item of a list."""
        text = self._text
        at += self._begin - 1
        while at >= 0 and text[at] in _WHITE:
            at -= 1
        if at < 0 or text[at] != ":":
            return None
        at -= 1
        while at >= 0 and text[at] in _WHITE:
            at -= 1
        if at < 0 or text[at] != '"':
            raise Undecided
        start = text.rfind('"', max(0, at - _LONGEST_KEY), at)
        if start < 0:
            return ""
        spelled = text[start + 1 : at]
        if "\\" in spelled or text[start - 1 : start] == "\\":
            raise Undecided
        return spelled


def outside(text: str, begin: int, limit: int) -> int:
    """Give a place from `begin` on and not behind `limit` that is outside of a string, as `begin` is.

    The last string before it and whatever stands behind are to be looked at again; a value is never parted from the
    key that it is under.
    """
    data = latin(text[begin:limit])
    quotes = data.replace(b"\\\\", b"\0\0").replace(b'\\"', b"\0\0") if b"\\" in data else data
    at = len(quotes)
    for _ in range(4 if quotes.count(b'"') % 2 == 0 else 3):
        at = quotes.rfind(b'"', 0, at)
        if at < 0:
            return begin
    if quotes[:at].rstrip(_WHITE_BYTES).endswith(b":"):
        for _ in range(2):
            at = quotes.rfind(b'"', 0, at)
            if at < 0:
                return begin
    return begin + _opening(quotes, at)


def _opening(quotes: bytes, at: int) -> int:
    """Go back from a place outside of strings to where its object or list opens, if that is near: a name is in it."""
    back = at
    for _ in range(_MOST_BETWEEN):
        end = quotes.rfind(b'"', 0, back)
        opened = max(quotes.rfind(b"{", end + 1, back), quotes.rfind(b"[", end + 1, back))
        if opened >= 0:
            return opened
        back = quotes.rfind(b'"', 0, max(end, 0))
        if back < 0:
            break
    return at


class _Frame:
    __slots__ = ("comma", "count", "first", "is_object", "kept", "key", "key_at", "listed")

    def __init__(self, *, is_object: bool, listed: str) -> None:
        self.is_object, self.listed = is_object, listed
        self.key: str | None = None
        self.key_at = self.count = self.kept = 0
        self.comma = -1
        self.first: int | None = None


def walk(text: str, looks: Looks) -> list[Edit] | None:
    """Give the edits of a whole document, or of several in a row; None where the text is none."""
    walking = _Walk(text, looks)
    at = 0
    try:
        while (match := _TOKEN.match(text, at)) is not None:
            kind = match.lastindex or 0
            start, at = match.start(kind), match.end()
            walking.token(kind, start, at)
    except Undecided:
        return None
    return None if text[at:].strip(_WHITE) or walking.frames or not text else walking.edits


class _Walk:
    """What is known at one place of a document."""

    def __init__(self, text: str, looks: Looks) -> None:
        self.text, self.looks = text, looks
        self.edits: list[Edit] = []
        self.frames: list[_Frame] = []
        self.names: list[str | int] = []
        self._skip_to, self._from = -1, 0
        """The depth at which a value that is taken whole ends, and where it began."""
        self._how: Whole | None = None
        self._keys_by_start: dict[int, str] = {}
        """Where strings begin that others named as secrets, by the key that they stand for."""

    def token(self, kind: int, start: int, end: int) -> None:
        """Take the next token: 1 for a string, 2 for a mark, 3 for any other value. Raises `Undecided`."""
        mark = self.text[start]
        frame = self.frames[-1] if self.frames else None
        if kind == _MARK and mark in "]},:":
            if frame is None:
                raise Undecided
            self._marked(mark, frame, start, end)
        elif frame is not None and frame.is_object and frame.key is None:
            self._keyed(kind, frame, start, end)
        else:
            self._valued(kind, frame, start, end)

    def _marked(self, mark: str, frame: _Frame, start: int, end: int) -> None:
        if mark == ",":
            frame.key, frame.comma = None, start
            if frame.first is not None:  # what was left out stood first: so is the comma
                if self.edits and self.edits[-1].start == frame.first:
                    self.edits[-1] = self.edits[-1]._replace(end=end)
                frame.first = None
            return
        if mark == ":":
            if frame.key is None:
                raise Undecided
            return
        if frame.is_object != (mark == "}"):
            raise Undecided
        self.frames.pop()
        if self.names and self.frames:
            self.names.pop()
        if self._skip_to == len(self.frames):
            _take(self.edits, self._from, end, self._how, self.looks, self.frames[-1] if self.frames else None)
            self._skip_to = -1

    def _keyed(self, kind: int, frame: _Frame, start: int, end: int) -> None:
        if kind != _STRING:
            raise Undecided
        frame.key, frame.key_at = read(self.text[start:end]), start
        if self._skip_to < 0:
            self._add_edit(start, end, self.looks.key(frame.key, (*self.names, frame.key)))

    def _valued(self, kind: int, frame: _Frame | None, start: int, end: int) -> None:
        part: str | int | None = None
        if frame is not None:
            part = frame.key if frame.is_object else frame.count
            frame.count += 1
        path: Path = (*self.names, part) if part is not None else ()
        opens = kind == _MARK
        if self._skip_to < 0 and self.looks.whole is not None and self._whole(path, kind, frame, start, end):
            return
        key = _key_of(frame)
        if opens:
            if part is not None:
                self.names.append(part)
            is_object = self.text[start] == "{"
            self.frames.append(_Frame(is_object=is_object, listed="" if is_object else _listed(key)))
            return
        if frame is not None:
            frame.kept += 1
        if self._skip_to >= 0:
            return
        if kind == _STRING:
            if key.lower() not in OPAQUE_KEYS:
                value = read(self.text[start:end])
                self._add_edit(start, end, self.looks.leaf(value, self._keys_by_start.pop(start, key), path))
                self._beside(start, end, key, value, path)
        elif self.text[start] in "-0123456789":
            self._add_edit(start, end, self.looks.number(self.text[start:end], key, path))

    def _beside(self, start: int, end: int, key: str, value: str, path: Path) -> None:
        """Note the string behind one that names it; change the one before."""
        if (neighbor := pairs.behind(self.text, start, end - 1, key, value)) is not None:
            self._keys_by_start[neighbor.start] = neighbor.key
        if (neighbor := pairs.before(self.text, start, key, value)) is None:
            return
        new = self.looks.leaf(read(self.text[neighbor.start : neighbor.end]), neighbor.key, path)
        at = bisect_left(self.edits, neighbor.start, key=lambda edit: edit.start)
        if new is not None:
            there = at < len(self.edits) and self.edits[at].start == neighbor.start
            spelled = spell(new, ascii_only="\\u" in self.text[neighbor.start : neighbor.end])
            self.edits[at : at + there] = [Edit(neighbor.start, neighbor.end, spelled)]

    def _whole(self, path: Path, kind: int, frame: _Frame | None, start: int, end: int) -> bool:
        """Ask whether a value is taken whole, and take it; of one that opens, note where it began."""
        asked = self.looks.whole(path, kind == _MARK) if self.looks.whole is not None else None
        if asked not in {"mask", "drop"}:
            return False
        if kind == _MARK:
            self._skip_to, self._from, self._how = len(self.frames), start, asked
            return False
        if kind == _STRING or asked == "drop":
            _take(self.edits, start, end, asked, self.looks, frame)
            return True
        return False

    def _add_edit(self, start: int, end: int, new: str | None) -> None:
        if new is not None:
            self.edits.append(Edit(start, end, spell(new, ascii_only="\\u" in self.text[start:end])))


def _key_of(frame: _Frame | None) -> str:
    """Give the key that a value is under: its own, or what that of its list says of all items."""
    if frame is None:
        return ""
    return (frame.key or "") if frame.is_object else frame.listed


def _listed(key: str) -> str:
    lowered = key.lower()
    if lowered in SENSITIVE_KEYS or lowered in OPAQUE_KEYS:
        return key
    return "id" if COUNTS.search(key) else ""


def _take(edits: list[Edit], start: int, end: int, how: Whole | None, looks: Looks, frame: _Frame | None) -> None:
    """Take a value whole: a member is left out, an item becomes null, or either becomes the mask."""
    if how == "mask":
        if frame is not None:
            frame.kept += 1
        edits.append(Edit(start, end, spell(looks.mask)))
    elif frame is None or not frame.is_object:
        edits.append(Edit(start, end, "null"))
    else:
        while edits and edits[-1].start >= frame.key_at:
            edits.pop()  # the key was changed, and goes as well
        begin = frame.comma if frame.kept else frame.key_at
        edits.append(Edit(begin, end, ""))
        frame.first = None if frame.kept else begin
