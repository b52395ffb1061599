"""JSON as this package carries it: one canonical spelling, one digest, and a parser that names the error."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TypeAlias

import orjson

Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"
"""What a JSON text can hold. Carried values are treated as immutable: copy before changing."""

_CANONICAL = orjson.OPT_SORT_KEYS
_LONG_INTEGER = re.compile(rb"[:,\[\s-][0-9]{19,}\s*[,\]}]|^\s*-?[0-9]{19,}\s*$")
_DIGITS, _NINETEEN = bytes.maketrans(b"123456789", b"0" * 9), b"0" * 19
"""A run of nineteen digits is found many times faster among digits that are all made the same."""


def canonical(value: Json) -> bytes:
    """Spell `value` the one way that equal values share: keys sorted, no white space, UTF-8.

    RFC 8785 differs in the spelling of some floats; both sides of every comparison pass through here, so only
    agreement matters. Integers over 64 bit and lone surrogates take the slower standard library.
    """
    try:
        return orjson.dumps(value, option=_CANONICAL)
    except (TypeError, orjson.JSONEncodeError):
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return text.encode("utf-8", "surrogatepass")


def compact(value: Json) -> str:
    """Spell `value` in its own key order, without white space. Lone surrogates are escaped."""
    try:
        return orjson.dumps(value).decode()
    except (TypeError, orjson.JSONEncodeError):
        return json.dumps(value, separators=(",", ":"))


def digest(value: Json) -> str:
    """Name `value` by 128 bits of BLAKE2b over its canonical spelling, in hex."""
    return hashlib.blake2b(canonical(value), digest_size=16).hexdigest()


def parse(text: str | bytes) -> Json:
    """Read one JSON document.

    Raises `ValueError` (orjson's, with line and column) on anything else: bad UTF-8, trailing bytes, depth over
    1,024, NaN. Integers over 64 bit are kept exact by the standard library's parser.
    """
    value: Json = orjson.loads(text)
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    if _NINETEEN in raw.translate(_DIGITS) and _LONG_INTEGER.search(raw):  # orjson reads one over 64 bit as a float
        return json.loads(text)  # type: ignore[no-any-return]  # the parser gives JSON alone
    return value


def parsed_or_none(text: str | bytes) -> Json:
    """Read one JSON document, or give None where `text` is not one."""
    try:
        return parse(text)
    except ValueError:
        return None
