"""Looks into JSON of which nothing is promised: each gives the expected type, or its empty value, and never raises."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from reenact.values.json import Json, compact, parsed_or_none


def as_object(value: Json) -> dict[str, Json]:
    """Give `value` where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Json) -> list[Json]:
    """Give `value` where it is an array, else an empty one."""
    return value if isinstance(value, list) else []


def members(value: object) -> list[Json]:
    """Give the members of a list that stands on a span: of texts, or of JSON spelled as a text."""
    if isinstance(value, str):
        return as_list(parsed_or_none(value))
    return [str(each) for each in cast("list[object]", value)] if isinstance(value, list | tuple) else []


def as_text(value: Json) -> str:
    """Give `value` where it is a string, else the empty one."""
    return value if isinstance(value, str) else ""


def text_or_none(value: Json) -> str | None:
    """Give `value` where it is a string, else None."""
    return value if isinstance(value, str) else None


def text_or_json(value: Json) -> str:
    """Give `value` where it is a string, its JSON text where it is anything else, and nothing for null."""
    if isinstance(value, str):
        return value
    return "" if value is None else compact(value)


def as_count(value: Json) -> int | None:
    """Give `value` where it is a whole number (1.0 counts, true does not), else None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) else None


def at(value: Json, *path: str) -> Json:
    """Follow object keys down from `value`; None where the way ends early."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def first_count(value: Json, *paths: tuple[str, ...]) -> int | None:
    """Give the whole number at the first of `paths` that has one."""
    return next((count for path in paths if (count := as_count(at(value, *path))) is not None), None)


def without(value: dict[str, Json], names: Iterable[str]) -> dict[str, Json]:
    """Copy an object less some of its keys."""
    dropped = frozenset(names)
    return {key: item for key, item in value.items() if key not in dropped}


def media_type(url: str) -> str:
    """Give the media type of a data URL (RFC 2397), or nothing."""
    return url[5:].partition(",")[0].partition(";")[0] if url.startswith("data:") else ""


def structured(value: Json, most: int = 4) -> Json:
    """Read JSON text that holds an object or an array, however often it was quoted; give anything else as it is.

    A text that is a quoted JSON text is opened up to `most` times, as several emitters write JSON in JSON.
    """
    read = value
    for _ in range(most):
        if not isinstance(read, str) or read.lstrip()[:1] not in ("[", "{", '"'):
            break
        parsed = parsed_or_none(read)
        if parsed is None:
            break
        read = parsed
    return read if isinstance(read, dict | list) else value
