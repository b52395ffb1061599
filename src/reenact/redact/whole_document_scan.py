"""Whether a document holds anything to replace, at a glance: all its texts are put together and searched once.

Between two texts stands what no pattern reads over, so that what is found in one alone is found here; what is found
here only because they stand together makes the document be looked at closely, as anything else does.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple, cast

import orjson

from reenact.redact.decode import of_form
from reenact.redact.fields import BYTES_KEYS, OPAQUE_KEYS, SENSITIVE_KEYS
from reenact.redact.scan import Detection

BETWEEN: Final = "\n\x1f\n"
_LARGE: Final = 1_000_000
_LONG: Final = 256
"""From this length on it is worth asking whether a text was found clean before."""
_SHORT: Final = 256
"""Up to this length a text is searched together with its key."""
_DEEPEST: Final = 16
_CONTEXT: Final = 1
_OPAQUE: Final = 2
_SENSITIVE: Final = 3
_OPENS: Final = frozenset("{[")
_KEYS: Final = 100_000
_PLAIN: Final = re.compile(r"[ !#-.0-\[\]-~]+")
_SHORTEST: Final = 4


class DocumentTexts(NamedTuple):
    """The texts of a document."""

    texts: list[str]
    long: list[str]
    """Those of them that are worth remembering."""
    names: list[str]
    """Keys that were not known yet; they are among the texts."""
    forms: bool
    """There may be texts of forms among them."""


class Glance:
    """Puts the texts of documents together."""

    __slots__ = ("_clean", "_is_context", "_keys")

    def __init__(self, clean: set[int], is_context: Callable[[str], bool]) -> None:
        self._clean, self._is_context = clean, is_context
        self._keys: dict[str, int] = {}
        """What is known of keys: 0 for those that say nothing, 1 for contexts, 2 for opaque, 3 for sensitive ones."""

    def of(self, text: str, depth: int) -> DocumentTexts | None:
        """Give all texts of a document; None where it must be looked at closely."""
        try:
            value = orjson.loads(text)
        except ValueError:
            return None
        glimpse = DocumentTexts([], [], [], forms="+" in text)
        return glimpse if self._collect(value, depth, glimpse) else None

    def was_clean(self, glimpse: DocumentTexts) -> None:
        """Remember that nothing was found in a document."""
        if len(self._keys) < _KEYS:
            for name in glimpse.names:
                self._keys[name] = self._said_by(name)

    def _collect(self, value: Any, depth: int, glimpse: DocumentTexts) -> bool:  # noqa: C901, PLR0912, PLR0915 - the inner loop
        stack: list[Any] = [value]
        clean, keys = self._clean, self._keys
        add_text, push = glimpse.texts.append, stack.append
        while stack:
            item = stack.pop()
            kind = cast("type[Any]", type(item))
            if kind is dict:
                for name, inner in cast("dict[str, Any]", item).items():
                    key_role = keys.get(name)
                    if key_role is None:
                        key_role = self._said_by(name)
                        add_text(name)
                        glimpse.names.append(name)
                    if key_role:
                        search_text = _search_text(key_role, name, inner)
                        if search_text is None:
                            return False
                        if key_role == _OPAQUE and type(inner) is str:
                            continue
                        if search_text:
                            add_text(search_text)
                    push(inner)
            elif kind is str:
                if len(item) >= _LONG:
                    if hash(item) in clean:
                        continue
                    glimpse.long.append(item)
                head = item[:1]
                if head in _OPENS:
                    if depth >= _DEEPEST:
                        add_text(item)
                        continue
                    try:
                        within = orjson.loads(item)
                    except ValueError:
                        add_text(item)
                    else:
                        if not self._collect(within, depth + 1, glimpse):
                            return False
                elif not glimpse.forms or of_form(item) is None:
                    add_text(item)
                else:
                    return False
            elif kind is list:
                stack += item
            elif (kind is int or kind is float) and not -_LARGE < item < _LARGE and item == item // 1:
                add_text(str(int(abs(item))))
        return True

    def _said_by(self, name: str) -> int:
        lowered = name.lower()
        if name in BYTES_KEYS:
            return _SENSITIVE
        if lowered in SENSITIVE_KEYS:
            return _SENSITIVE
        return _OPAQUE if lowered in OPAQUE_KEYS else _CONTEXT if self._is_context(name) else 0


def _search_text(key_role: int, name: str, value: Any) -> str | None:
    """Say how a value is searched together with the key that says something of it, "" for not at all.

    None where it is to be looked at closely.
    """
    kind = cast("type[Any]", type(value))
    scalar = kind is str or kind is int or kind is float
    if key_role == _SENSITIVE and (scalar or kind is list) and value:
        return None
    if key_role == _OPAQUE and kind is list and value:
        return None
    if key_role == _CONTEXT and scalar and value and len(spelled := str(value)) <= _SHORT:
        return f"{name}: {spelled}"
    return ""


def marks_of(joined: str, findings: Iterable[Detection]) -> frozenset[str] | None:
    """Give texts one of which is in every text in which something was found; None where that cannot be told."""
    marks: set[str] = set()
    for each in findings:
        spelled = joined[each.start : each.end].rpartition(": ")[2]  # the key that a value is searched with is no part
        mark = max(_PLAIN.findall(spelled), key=len, default="")
        if len(mark) < _SHORTEST or "\x1f" in spelled:
            return None
        marks.add(mark)
    return frozenset(marks)


def found_in(texts: Sequence[str], findings: Iterable[Detection]) -> dict[str, list[Detection]]:
    """Give what was found in texts that were put together, by the text, at its place there."""
    starts = list(accumulate((len(text) + len(BETWEEN) for text in texts), initial=0))
    findings_by_text: dict[str, list[Detection]] = {}
    first_places: dict[str, int] = {}
    for each in findings:
        at = bisect_right(starts, each.start) - 1
        text, start = texts[at], starts[at]
        if first_places.setdefault(text, at) == at:  # one that stands there twice has the same twice
            findings_by_text.setdefault(text, []).append(each._replace(start=each.start - start, end=each.end - start))
    return findings_by_text


def places_of(text: str, marks: Iterable[str], *, inside: bool = False) -> list[int] | None:
    """Give the places of marks in a document; None where they may be spelled otherwise."""
    if "\\u00" in text:
        return None
    places: list[int] = []
    for mark in marks:
        at = text.find(mark)
        if at < 0 and not inside:
            return None
        while at >= 0:
            places.append(at)
            at = text.find(mark, at + 1)
    return sorted(places)
