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


def attributes(source: Json) -> dict[str, Attribute]:
    """Read a map, or the JSON text of one: objects in it are taken apart, lists of plain values stay lists."""
    fields: dict[str, Attribute] = {}
    mapping = records.unwrapped(source)
    for name, value in as_object(mapping).items():
        _flatten(fields, name, value)
    return fields


def _flatten(fields: dict[str, Attribute], name: str, value: Json) -> None:
    if isinstance(value, dict):
        for inner, item in value.items():
            _flatten(fields, f"{name}.{inner}", item)
    elif isinstance(value, list):
        plain = [each for each in value if not isinstance(each, dict | list)]
        fields[name] = [*plain] if len(plain) == len(value) else compact(value)
    elif isinstance(value, str):
        fields[name] = _typed(name, value)
    elif value is not None:
        fields[name] = value


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
