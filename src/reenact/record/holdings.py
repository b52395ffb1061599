"""What a file holds, as text: itself, or what is in it where it is packed, an archive or an SQLite database.

Packed files hold the time at which they were made, and a database how often it was changed: two that hold the same
differ in their bytes. Loaded only where a run wrote anything.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import zlib
from contextlib import closing
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Final

from reenact.values import alarms

LARGEST: Final = 1 << 20
"""Larger files are not looked into."""
_SQLITE: Final = b"SQLite format 3\0"
_GZIP: Final = b"\x1f\x8b\x08"
_ZIP: Final = b"PK\x03\x04"
_TAR: Final = (257, b"ustar")
_UNPACKED: Final = zlib.MAX_WBITS | 16


@dataclass(frozen=True, slots=True)
class Holding:
    """What a file holds."""

    of: str
    """`text`, `gzip`, `zip`, `tar` or `sqlite`; `bytes` where no text is in it."""
    text: str | None


def holding(data: bytes, path: str, *, text: bool = False) -> Holding:
    """Say what the bytes of the file at `path` hold; with `text` they are the end of a text. Never raises."""
    if not text:
        try:
            if (found := _packed(data, path)) is not None:
                return found
        except Exception:  # a damaged file is bytes
            alarms.pass_on()
    plain = _text(data)
    return Holding("bytes", None) if plain is None else Holding("text", plain)


def _text(data: bytes) -> str | None:
    try:
        plain = data.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in plain else plain


def _packed(data: bytes, path: str) -> Holding | None:
    if data.startswith(_GZIP):
        return _gzip(data)
    if data.startswith(_ZIP):
        return Holding("zip", _zip(data))
    if data[_TAR[0] : _TAR[0] + len(_TAR[1])] == _TAR[1]:
        return Holding("tar", _tar(data))
    if data.startswith(_SQLITE):
        return Holding("sqlite", _sqlite(path))
    return None


def _gzip(data: bytes) -> Holding | None:
    unpacked, left = bytearray(), data
    while left and len(unpacked) <= LARGEST:  # one member behind the other (RFC 1952)
        member = zlib.decompressobj(_UNPACKED)
        unpacked += member.decompress(left, LARGEST + 1 - len(unpacked))
        left = member.unused_data
    if len(unpacked) > LARGEST:
        return None
    inner = bytes(unpacked)
    if inner[_TAR[0] : _TAR[0] + len(_TAR[1])] == _TAR[1]:
        return Holding("tar", _tar(inner))
    return Holding("gzip", _shown(inner))


def _shown(data: bytes) -> str:
    plain = _text(data)
    return f"{len(data)} bytes {hashlib.blake2b(data, digest_size=16).hexdigest()}" if plain is None else plain


def _zip(data: bytes) -> str:
    import zipfile

    lines: list[str] = []
    left = LARGEST
    with zipfile.ZipFile(BytesIO(data)) as archive:
        for member in archive.infolist():
            left -= member.file_size
            if left < 0:
                raise ValueError(member.filename)
            lines += [f"== {member.filename}", _shown(archive.read(member))]
    return "\n".join(lines)


def _tar(data: bytes) -> str:
    import tarfile

    lines: list[str] = []
    with tarfile.open(fileobj=BytesIO(data), mode="r:") as archive:
        for member in archive:
            lines.append(f"== {member.name}{f' -> {member.linkname}' if member.linkname else ''}")
            if member.isfile() and (stream := archive.extractfile(member)) is not None:
                lines.append(_shown(stream.read()))
    return "\n".join(lines)


def _sqlite(path: str) -> str:
    """Give a database as SQL, made from a copy: the program may hold it open, and be in the middle of a change."""
    import sqlite3

    folder = tempfile.mkdtemp(prefix="reenact-database-")
    try:
        copy = str(Path(folder, "copy"))
        for name in ("", "-wal", "-journal"):
            if os.path.exists(path + name):  # noqa: PTH110 - a suffix
                shutil.copyfile(path + name, copy + name)
        lines: list[str] = []
        left = LARGEST
        with closing(sqlite3.connect(copy)) as database:
            for line in database.iterdump():
                left -= len(line)
                if left < 0:
                    raise ValueError(path)
                lines.append(line)
        return "\n".join(lines)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
