"""Attributes out of stores that keep maps of texts: each value is typed again by what its name says that it is."""

from __future__ import annotations

import re

from reenact.foreign import records
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lenient import as_object
from reenact.values.span import Attribute

_NUMBERS = re.compile(
    r"(?:tokens?|count|temperature|top_[pk]|seed|penalty|score|port|status_code|duration|latency|_ms|total|prompt|"
    r"completion|cost|dimensions?|index|n|number|choice\.count|cache_read|cache_write|audio|reasoning|order\.(?:start|"
    r"head|end))$"
)
_FLAGS = re.compile(r"(?:stream|streaming|is_\w+|enabled|error|truncated|reenact\.run\.root|incomplete)$")
_LISTS = re.compile(r"(?:reasons|sequences|\.tags|formats|types|vector|\.lane\.ends)$")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_NO_NUMBER = re.compile(r"(?:^|\.)(?:gen_ai|llm)\.(?:prompt|completion)$")


def attributes(told: Json) -> dict[str, Attribute]:
    """Read a map, or the JSON text of one: objects in it are taken apart, lists of plain values stay lists."""
    found: dict[str, Attribute] = {}
    held = records.unwrapped(told)
    for name, value in as_object(held).items():
        _flatten(found, name, value)
    return found


def _flatten(found: dict[str, Attribute], name: str, value: Json) -> None:
    if isinstance(value, dict):
        for inner, held in value.items():
            _flatten(found, f"{name}.{inner}", held)
    elif isinstance(value, list):
        plain = [each for each in value if not isinstance(each, dict | list)]
        found[name] = [*plain] if len(plain) == len(value) else compact(value)
    elif isinstance(value, str):
        found[name] = _typed(name, value)
    elif value is not None:
        found[name] = value


def _typed(name: str, text: str) -> Attribute:
    """Give the value that a text stands for, where the name says that it is no text."""
    if _NUMBERS.search(name) and not _NO_NUMBER.search(name) and _NUMBER.fullmatch(text) and len(text) < 20:
        return float(text) if not text.removeprefix("-").isdigit() else int(text)
    if text in ("true", "false") and _FLAGS.search(name):
        return text == "true"
    if text[:1] == "[" and _LISTS.search(name):
        read = parsed_or_none(text)
        if isinstance(read, list) and not any(isinstance(each, dict | list) for each in read):
            return [each for each in read if not isinstance(each, dict | list)]
    return text
