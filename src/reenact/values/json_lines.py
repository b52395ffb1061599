"""JSON texts one after the other: a line each, or the members of one array."""

from __future__ import annotations

from reenact.values.json import Json, parsed_or_none


def events(data: bytes) -> list[Json]:
    """Give the JSON text of each line; a line that is none is given as a string, but for the last, which was cut off.

    One array over several lines is a stream too: what it holds are the events, as far as they came.
    """
    if data.lstrip()[:1] == b"[":
        return _of_array(data.decode("utf-8", "replace"))
    lines = [line for line in data.decode("utf-8", "replace").split("\n") if line.strip()]
    line_values: list[Json] = []
    for place, line in enumerate(lines, 1):
        read = parsed_or_none(line)
        if read is not None or line.strip() == "null":
            line_values.append(read)
        elif place < len(lines):
            line_values.append(line)
    return line_values


def _of_array(text: str) -> list[Json]:
    """Give the members of an array, of which the end may be missing."""
    read = parsed_or_none(text)
    if isinstance(read, list):
        return read
    import json

    decoder, members, at = json.JSONDecoder(strict=False), list[Json](), text.index("[") + 1
    while True:
        while at < len(text) and text[at] in ", \r\n\t":
            at += 1
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return members
        members.append(value)
