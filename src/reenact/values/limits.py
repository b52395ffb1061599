"""How much one piece of input may hold, so that a damaged or hostile file is refused instead of filling the memory."""

from __future__ import annotations

import os

from reenact.errors import InputError

RECORD = "REENACT_MAX_LINE_BYTES"
_UNPACKED = "REENACT_MAX_UNPACKED_BYTES"
_MEBIBYTE = 1 << 20
RAISE_THE_LIMIT = f"Set {RECORD} to a larger number of bytes to read it all the same."
RAISE_THE_UNPACKED_LIMIT = f"Set {_UNPACKED} to a larger number of bytes if you trust where it comes from."


def max_record_bytes() -> int:
    """Give the most bytes that one line, document or framed message may hold: `REENACT_MAX_LINE_BYTES`, or 128 MiB.

    Raises `InputError` where the variable holds anything but a positive whole number.
    """
    return _bytes(RECORD, 128 * _MEBIBYTE)


def max_unpacked_bytes() -> int:
    """Give the most bytes that a packed file may expand to: `REENACT_MAX_UNPACKED_BYTES`, or 8 GiB.

    Raises `InputError` where the variable holds anything but a positive whole number.
    """
    return _bytes(_UNPACKED, 8192 * _MEBIBYTE)


def _bytes(variable: str, default: int) -> int:
    text = os.environ.get(variable, "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) > 0):
        raise InputError(
            f"${variable}", f"{text[:40]!r} is not a positive number of bytes", hint=f"Unset it for {spelled(default)}."
        )
    return int(text)


def spelled(size: int) -> str:
    """Spell a number of bytes for a person, in binary units: `128 MiB`."""
    for unit, factor in (("GiB", _MEBIBYTE << 10), ("MiB", _MEBIBYTE), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size / factor:.4g} {unit}"
    return f"{size} bytes"
