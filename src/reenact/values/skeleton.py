"""The skeleton of JSON that may be cut off: which keys stand where, so that a format is told by its keys alone."""

from __future__ import annotations

import functools
import re

_BOM = b"\xef\xbb\xbf"
_TOKEN = re.compile(rb'"((?:[^"\\]|\\.)*+)(?:"(\s*+:)?|\\?\Z)|[\[\]{}]', re.DOTALL)
"""A whole string, a key where a colon follows it, a string that the end cuts off, or a bracket.

Possessive: no backtracking. Without the string that is cut off each quote in it would begin one that is tried in vain.
"""
_DEEPEST = 5


@functools.lru_cache(maxsize=4)
def skeleton(head: bytes) -> frozenset[str]:
    """Give the dotted paths of all keys in the first bytes of JSON, down to five levels; empty where it is no JSON.

    Arrays are passed through as `[]`: `{"data": [{"id": 1}]}` gives `data` and `data[].id`. An array at the top, one
    document and many of them in lines give the same paths.
    """
    text = head.removeprefix(_BOM).lstrip()
    if text[:1] not in (b"{", b"["):
        return frozenset()
    paths: set[bytes] = set()
    above: list[bytes] = []
    below = 0
    """How many brackets are open further down, where no path is taken: one for each would grow with their square."""
    at = b""
    for token in _TOKEN.finditer(text):
        match token[0][:1]:
            case b"{" | b"[" if len(above) > _DEEPEST:
                below += 1
            case b"}" | b"]" if below:
                below -= 1
            case b"{":
                above.append(at)
            case b"[":
                at = at + b"[]" if at else b""
                above.append(at or b"[]")
                at = above[-1]
            case b"}" | b"]":
                if above:
                    above.pop()
                at = above[-1] if above and above[-1].endswith(b"[]") else b""
            case _ if token[2] and above and len(above) <= _DEEPEST:
                at = _below(above[-1], token[1])
                paths.add(at)
            case _:
                pass
    return frozenset(path.decode("utf-8", "replace") for path in paths)


def _below(parent: bytes, key: bytes) -> bytes:
    return key if parent in (b"", b"[]") else parent + b"." + key


def holds(head: bytes, *paths: str) -> bool:
    """Tell whether all of `paths` are there; `a|b` stands for either."""
    key_paths = skeleton(head)
    return all(any(path in key_paths for path in either.split("|")) for either in paths)
