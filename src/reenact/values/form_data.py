"""A form as a request carries it (RFC 7578): its fields as JSON, its files by name, media type and length."""

from __future__ import annotations

import re
from typing import Final

from reenact.values.json import Json

_BOUNDARY: Final = re.compile(rb"(--[^\r\n]{1,70})\r\n")
"""RFC 2046, section 5.1.1."""
_HEAD: Final = re.compile(rb"\r?\n?(.*?)\r\n\r\n", re.DOTALL)
_PARAMETER: Final = re.compile(r';\s*(name|filename)="((?:[^"\\]|\\.)*)"', re.IGNORECASE)
_TYPE: Final = re.compile(r"^content-type:\s*(\S.*?)\s*$", re.IGNORECASE | re.MULTILINE)


def fields_or_none(data: bytes) -> Json:
    """Read a form's fields: a text, an object for a file, or a list where a name is there twice or ends in `[]`.

    Gives None where the bytes are no form.
    """
    first = _BOUNDARY.match(data)
    if first is None:
        return None
    fields: dict[str, Json] = {}
    for piece in data.split(first[1])[1:-1]:
        if (head := _HEAD.match(piece)) is None:
            return None
        described = head[1].decode(errors="replace")
        parameters = {name.lower(): value for name, value in _PARAMETER.findall(described)}
        if "name" not in parameters:
            return None
        content = piece[head.end() :].removesuffix(b"\r\n")
        media_type = _TYPE.search(described)
        _add(fields, parameters["name"], _value(content, parameters.get("filename"), media_type))
    return fields or None


def _value(content: bytes, filename: str | None, media_type: re.Match[str] | None) -> Json:
    if filename is None:
        return content.decode(errors="replace")
    return {"filename": filename, "content_type": media_type[1] if media_type else None, "bytes": len(content)}


def _add(fields: dict[str, Json], name: str, value: Json) -> None:
    before = fields.get(name)
    if isinstance(before, list):
        before.append(value)
    elif name in fields or name.endswith("[]"):
        fields[name] = [before, value] if name in fields else [value]
    else:
        fields[name] = value
