"""Secrets that a stream hands over in pieces: `sk-pro` in one event, `j-4f…` in the next.

The texts of a stream's events are put together field by field, as a reader will, and scanned whole; a secret's token
goes where the secret began, the rest of it is cut out, and every piece keeps its place.
"""

from __future__ import annotations

import codecs
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

_FIELD = re.compile(r'"(content|arguments|delta|text|refusal|reasoning[a-z_]*|partial_json)"\s*:\s*"((?:[^"\\]|\\.)*)"')
"""The fields in which providers stream text (OpenAI chat and responses, and those who speak alike)."""


class Found(NamedTuple):
    """A secret in a text, and what is to stand for it."""

    start: int
    end: int
    token: str


class _Edit(NamedTuple):
    start: int
    end: int
    text: str


def scrubbed(pieces: Sequence[bytes], find: Callable[[str], list[Found]], passes: Callable[[str], bool]) -> list[bytes]:
    """Scrub a stream's pieces. Without a finding they are given back as they are, to the byte.

    `find` gives the secrets of a text, `passes` tells cheaply that it can hold none.
    """
    whole = b"".join(pieces)
    try:
        text = whole.decode()
    except UnicodeDecodeError:
        return list(pieces)
    streamed = _streamed(text)
    if passes(text) and all(passes("".join(text[a:b] for a, b in spans)) for spans in streamed):
        return list(pieces)
    edits = _edits(text, streamed, find)
    return _applied(pieces, edits) if edits else list(pieces)


def _streamed(text: str) -> list[list[tuple[int, int]]]:
    """Find where in the stream each field's text lies, in order."""
    fields: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for found in _FIELD.finditer(text):
        fields[found[1]].append(found.span(2))
    return list(fields.values())


def _edits(text: str, streamed: list[list[tuple[int, int]]], find: Callable[[str], list[Found]]) -> list[_Edit]:
    edits: list[_Edit] = []
    for spans in streamed:
        for found in find("".join(text[a:b] for a, b in spans)):
            edits += _spread(found, spans)
    # What the text holds as it stands comes second: it may see only the beginning of a secret that goes on elsewhere.
    for found in find(text):
        if all(found.end <= edit.start or found.start >= edit.end for edit in edits):
            edits.append(_Edit(*found))
    return sorted(edits)


def _spread(found: Found, spans: list[tuple[int, int]]) -> list[_Edit]:
    """Say what a finding in the joined text means in the stream: a token where it begins, nothing where it goes on."""
    edits: list[_Edit] = []
    at = 0
    for start, end in spans:
        low, high = max(found.start, at), min(found.end, at + end - start)
        if low < high:
            edits.append(_Edit(start + low - at, start + high - at, "" if edits else found.token))
        at += end - start
    return edits


def _applied(pieces: Sequence[bytes], edits: list[_Edit]) -> list[bytes]:
    """Make the edits, each piece keeping what is left of it. A character cut in two goes to the later piece."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    result: list[bytes] = []
    at = 0
    for piece in pieces:
        text = decoder.decode(piece)
        result.append(_edited(text, at, edits).encode())
        at += len(text)
    return result


def _edited(text: str, at: int, edits: list[_Edit]) -> str:
    """Give the piece of the stream that begins at `at`, with the edits that touch it made."""
    out: list[str] = []
    done = 0
    for start, end, token in edits:
        low, high = start - at, end - at
        if high <= 0 or low >= len(text):
            continue
        if low >= 0:
            out += (text[done:low], token)
        done = max(done, min(high, len(text)))
    return "".join((*out, text[done:]))
