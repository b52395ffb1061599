"""What a file that no format reads looks like: the known format that it is nearest to, and what it lacks of it.

Formats say by which marks a file of theirs is known (`contracts.format.HeadMarks`), each a list of signs that have to
be there together. The nearest is the one of which a file shows most signs: half of them at least, and more than one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from reenact.contracts.format import Format, HeadMarks
from reenact.discover import entries
from reenact.values.skeleton import holds, skeleton

_MOST_KEYS = 6
_LEAST_SIGNS = 2
_SHOWN = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """A known format, by the signs of its marks."""

    format: str
    has: tuple[str, ...]
    lacks: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """Say it in one sentence."""
        lacks = f"lacks {_listed(self.lacks)}" if self.lacks else "is not laid out as that is"
        return f"nearest is {self.format}: it has {_listed(self.has)}, and {lacks}"


def nearest(head: bytes) -> Likeness | None:
    """Give the format that the first bytes of a file are nearest to; None where no two signs of one are there."""
    ranked = sorted(_partial(head), key=lambda each: (-len(each.has), len(each.lacks), each.format))
    return ranked[0] if ranked else None


def outward(head: bytes) -> str:
    """Describe the first bytes of a file: JSON by its keys at the top, anything else as it begins."""
    keys = sorted({path for path in skeleton(head) if "." not in path}, key=lambda key: head.find(f'"{key}"'.encode()))
    if keys:
        return f"it is JSON with {_listed(tuple(keys))}"
    text = head[:_SHOWN].decode("utf-8", "backslashreplace")
    return f"it begins with {text!r}" + (" …" if len(head) > _SHOWN else "")


def _partial(head: bytes) -> Iterator[Likeness]:
    for entry in entries("formats", Format):
        mark_fields = entry.outline["marks"]
        if not isinstance(mark_fields, dict):
            continue
        marks = HeadMarks.read(cast("dict[str, Any]", mark_fields))
        groups = [(signs, _key) for signs in marks.keys] + [(signs, _text) for signs in marks.texts]
        for signs, shows in groups:
            shown = {sign: each for sign in signs if (each := shows(head, sign))}
            if len(shown) >= max(_LEAST_SIGNS, len(signs) / 2):
                lacks = tuple(sign.partition("|")[0] for sign in signs if sign not in shown)
                yield Likeness(format=entry.outline["name"], has=tuple(shown.values()), lacks=lacks)


def _key(head: bytes, sign: str) -> str:
    """Give which of the keys that a sign names is there, or nothing."""
    return next((path for path in sign.split("|") if holds(head, path)), "")


def _text(head: bytes, sign: str) -> str:
    """Give a sign that stands in the text; one in quotation marks stands there as a key, not as a value."""
    word = re.escape(sign.encode())
    is_there = re.search(word + rb"\s*:" if sign[:1] == sign[-1:] == '"' and skeleton(head) else word, head)
    return sign if is_there else ""


def _listed(signs: tuple[str, ...]) -> str:
    spelled = [f"`{sign.strip(chr(34))}`" for sign in signs[:_MOST_KEYS]]
    return ", ".join(spelled) + (", …" if len(signs) > _MOST_KEYS else "")
