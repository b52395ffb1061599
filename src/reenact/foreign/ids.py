"""Trace and span ids in the spellings that real files have, as OpenTelemetry spells them: lower-case hexadecimal."""

from __future__ import annotations

import base64
import binascii
import re
import uuid
from typing import Any, cast

TRACE_DIGITS, SPAN_DIGITS = 32, 16
_HEX = re.compile(r"[0-9a-fA-F]+")


def trace_id(value: object, *, least: int = SPAN_DIGITS) -> str:
    """Read a trace id, or give nothing where `value` is none; `identity` tells of the spellings."""
    return identity(value, TRACE_DIGITS, least)


def span_id(value: object, *, least: int = SPAN_DIGITS // 2) -> str:
    """Read a span id, or give nothing where `value` is none; `identity` tells of the spellings."""
    return identity(value, SPAN_DIGITS, least)


def identity(value: object, digits: int, least: int) -> str:
    """Read an id as `digits` lower-case hexadecimal digits, or give nothing where `value` is none of these.

    Hex of any case, with or without `0x`, with dashes as a UUID has them; shorter hex down to `least` digits, whose
    leading zeros were lost; base64 of exactly so many bytes, as plain proto3 JSON has it; what JavaScript makes of
    bytes, `{"type": "Buffer", "data": [1, 2, …]}`; a whole number that is not negative.
    """
    if isinstance(value, str):
        if len(value) == digits and _HEX.fullmatch(value):
            return value.lower()
        return _spelled(value.strip(), digits, least)
    if isinstance(value, bool):
        return ""
    if isinstance(value, int):
        return f"{value:0{digits}x}" if 0 < value < 1 << (4 * digits) else ""
    if isinstance(value, dict):
        hexed = _buffer(cast("dict[str, Any]", value))
        return hexed if len(hexed) == digits else ""
    return ""


def _spelled(text: str, digits: int, least: int) -> str:
    if text[:2] in ("0x", "0X") and _HEX.fullmatch(text[2:]):  # one in base64 may begin so, too
        text, least = text[2:], 1
    if least <= len(text) <= digits and _HEX.fullmatch(text):
        return text.lower().rjust(digits, "0")
    if len(text) == (digits // 2 + 2) // 3 * 4:
        return _base64(text, digits)
    if digits == TRACE_DIGITS and len(text) == 36:
        try:
            return uuid.UUID(text).hex
        except ValueError:
            return ""
    return ""


def _base64(text: str, digits: int) -> str:
    try:
        raw = base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        return ""
    return raw.hex() if len(raw) * 2 == digits else ""


def _buffer(buffer: dict[str, Any]) -> str:
    data = buffer.get("data")
    try:
        return bytes(cast("list[int]", data)).hex() if isinstance(data, list) else ""
    except (TypeError, ValueError):
        return ""
