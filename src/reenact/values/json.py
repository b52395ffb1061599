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
        text = _dumped(value, sort_keys=True, ensure_ascii=False)
        return text.encode("utf-8", "surrogatepass")


def compact(value: Json) -> str:
    """Spell `value` in its own key order, without white space. Lone surrogates are escaped."""
    try:
        return orjson.dumps(value).decode()
    except (TypeError, orjson.JSONEncodeError):
        return _dumped(value)


def _dumped(value: Json, *, sort_keys: bool = False, ensure_ascii: bool = True) -> str:
    """Spell a value as the standard library does; what is nested too deep for it, without going down into it."""
    leaf = json.JSONEncoder(separators=(",", ":"), sort_keys=sort_keys, ensure_ascii=ensure_ascii)
    try:
        return leaf.encode(value)
    except RecursionError:
        pass
    out: list[str] = []
    waiting: list[Json | _Spelled] = [value]
    while waiting:
        match waiting.pop():
            case _Spelled() as spelled:
                out.append(spelled)
            case dict() as container if container:
                items = sorted(container.items()) if sort_keys else [*container.items()]
                waiting.append(_Spelled("}"))
                for place, (name, item) in reversed([*enumerate(items)]):
                    waiting += (item, _Spelled(f"{',' if place else '{'}{leaf.encode(name)}:"))
            case list() as container if container:
                waiting.append(_Spelled("]"))
                for place, item in reversed([*enumerate(container)]):
                    waiting += (item, _Spelled("," if place else "["))
            case other:
                out.append(leaf.encode(other))
    return "".join(out)


class _Spelled(str):
    """JSON that is spelled already."""

    __slots__ = ()


def digest(value: Json) -> str:
    """Name `value` by 128 bits of BLAKE2b over its canonical spelling, in hex."""
    return hashlib.blake2b(canonical(value), digest_size=16).hexdigest()


def parse(text: str | bytes) -> Json:
    """Read one JSON document.

    Raises `ValueError` (orjson's, with line and column) on anything else: bad UTF-8, trailing bytes, depth over
    1,024, NaN. Integers over 64 bit and lone surrogates are kept exact by the standard library's parser.
    """
    try:
        value: Json = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if "surrogate in string" not in error.msg:  # an escape of half a pair
            raise
        return exactly(text)
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    if _NINETEEN in raw.translate(_DIGITS) and _LONG_INTEGER.search(raw):  # orjson reads one over 64 bit as a float
        return exactly(text)
    return value


def exactly(text: str | bytes) -> Json:
    """Read one JSON document with the standard library, which knows what orjson refuses or rounds.

    That is integers over 64 bit, NaN, lone surrogates. Raises `ValueError` on anything else, depth included: about a
    thousand levels less what the stack holds already.
    """
    try:
        value: Json = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None
    return value


def parsed_or_none(text: str | bytes) -> Json:
    """Read one JSON document, or give None where `text` is not one."""
    try:
        return parse(text)
    except ValueError:
        return None
