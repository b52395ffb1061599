"""What a file holds, as text: itself, or what is in it where it is packed, an archive or an SQLite database.

Packed files hold the time at which they were made, and a database how often it was changed: two that hold the same
differ in their bytes. Loaded only where a run wrote anything.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Final, TypeAlias

from reenact.values import alarms
from reenact.values.json import Json

LARGEST: Final = 1 << 20
"""Larger files are not looked into."""
_LARGEST_LOG: Final = 32 << 20
"""Bytes of a database's write-ahead log that are read."""
_SQLITE: Final = b"SQLite format 3\0"
_VERSIONS: Final = ("user_version", "application_id")
"""Numbers of a program's in the header of a database, which no statement of its dump sets."""
_RIGHTS, _RIGHTS_OF_FOLDERS = 0o644, 0o755
"""Those of members of which nothing is said."""
_GZIP: Final = b"\x1f\x8b\x08"
_ZIP: Final = b"PK\x03\x04"
_TAR: Final = (257, b"ustar")
_DEEPEST: Final = 3
"""So deep in one another archives are looked into."""
_UNPACKED: Final = zlib.MAX_WBITS | 16

Read: TypeAlias = Callable[[str, int], bytes]
"""Gives the bytes of a file, up to a size."""


@dataclass(frozen=True, slots=True)
class Holding:
    """What a file holds."""

    of: str
    """`text`, `gzip`, `zip`, `tar` or `sqlite`; `bytes` where no text is in it."""
    text: str | None


def holding(data: bytes, path: str, *, text: bool = False, read: Read) -> Holding:
    """Say what the bytes of the file at `path` hold; with `text` they are the end of a text. Never raises.

    `read` gives the bytes of a file up to a size, and keeps what locks the program has on it.
    """
    if not text:
        try:
            if (contents := _packed(data, path, read)) is not None:
                return contents
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


def _packed(data: bytes, path: str, read: Read) -> Holding | None:
    if data.startswith(_SQLITE):
        return Holding("sqlite", _sqlite(path, read))
    return _unpacked(data, _Room())


@dataclass(slots=True)
class _Room:
    """How much may be unpacked of one file, with all that is packed in it."""

    left: int = LARGEST
    depth: int = 0

    def take(self, size: int) -> None:
        """Use up room; raises ValueError where there is not as much."""
        self.left -= size
        if self.left < 0:
            raise ValueError(size)


def _unpacked(data: bytes, room: _Room) -> Holding | None:
    """Say what a packed file or an archive holds; None where it is neither, or too deep in others."""
    if room.depth > _DEEPEST:
        return None
    room.depth += 1
    try:
        if data.startswith(_GZIP):
            return _gzip(data, room)
        if data.startswith(_ZIP):
            return Holding("zip", _zip(data, room))
        if data[_TAR[0] : _TAR[0] + len(_TAR[1])] == _TAR[1]:
            return Holding("tar", _tar(data, room))
    finally:
        room.depth -= 1
    return None


def _gzip(data: bytes, room: _Room) -> Holding | None:
    unpacked, left = bytearray(), data
    while left:  # one member behind the other (RFC 1952)
        member = zlib.decompressobj(_UNPACKED)
        piece = member.decompress(left, room.left + 1)
        if len(piece) > room.left:
            return None
        room.take(len(piece))
        unpacked += piece
        left = member.unused_data
    inner = bytes(unpacked)
    if inner[_TAR[0] : _TAR[0] + len(_TAR[1])] == _TAR[1]:
        return Holding("tar", _tar(inner, room))
    return Holding("gzip", _member_text(inner, room))


def _member_text(data: bytes, room: _Room) -> str:
    """Give what a member holds: its text, what is packed in it, else a digest."""
    plain = _text(data)
    if plain is not None:
        return plain
    try:
        packed = _unpacked(data, room)
    except Exception:  # a damaged member is bytes
        alarms.pass_on()
        packed = None
    if packed is not None and packed.text is not None:
        return packed.text
    return f"{len(data)} bytes {hashlib.blake2b(data, digest_size=16).hexdigest()}"


def _zip(data: bytes, room: _Room) -> str:
    import zipfile

    lines: list[str] = []
    with zipfile.ZipFile(BytesIO(data)) as archive:
        for member in archive.infolist():
            room.take(member.file_size)
            lines += [f"== {member.filename}", _member_text(archive.read(member), room)]
    return "\n".join(lines)


def _tar(data: bytes, room: _Room) -> str:
    import tarfile

    lines: list[str] = []
    with tarfile.open(fileobj=BytesIO(data), mode="r:") as archive:
        for member in archive:
            rights = "" if member.mode == (_RIGHTS_OF_FOLDERS if member.isdir() else _RIGHTS) else f" {member.mode:o}"
            lines.append(f"== {member.name}{f' -> {member.linkname}' if member.linkname else ''}{rights}")
            room.take(member.size)
            if member.isfile() and (stream := archive.extractfile(member)) is not None:
                lines.append(_member_text(stream.read(), room))
    return "\n".join(lines)


def _sqlite(path: str, read: Read) -> str:
    """Give a database as SQL, made from a copy: the program may hold it open, and be in the middle of a change."""
    import sqlite3

    folder = tempfile.mkdtemp(prefix="reenact-database-")
    try:
        copy = str(Path(folder, "copy"))
        for name in ("", "-wal", "-journal"):
            if os.path.exists(path + name):  # noqa: PTH110 - a suffix
                Path(copy + name).write_bytes(content := read(path + name, _LARGEST_LOG))
                if len(content) == _LARGEST_LOG:
                    raise ValueError(path)
        lines: list[str] = []
        left = LARGEST
        with closing(sqlite3.connect(copy)) as database:
            numbers = {name: database.execute(f"PRAGMA {name}").fetchone()[0] for name in _VERSIONS}
            versions = [f"PRAGMA {name}={number};" for name, number in numbers.items() if number]
            for line in itertools.chain(versions, database.iterdump()):
                left -= len(line)
                if left < 0:
                    raise ValueError(path)
                lines.append(line)
        return "\n".join(_by_name(lines))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


_INDEX: Final = ("CREATE INDEX ", "CREATE UNIQUE INDEX ")


def _by_name(lines: list[str]) -> list[str]:
    """Sort the indexes, as the tables are: libraries make them in the order of a set of objects."""
    indexes = iter(sorted(line for line in lines if line.startswith(_INDEX)))
    return [next(indexes) if line.startswith(_INDEX) else line for line in lines]


def kept(content: bytes, most: int, room: int) -> tuple[dict[str, Json] | None, int]:
    """Spell bytes as `text`, or packed as `zlib`, and say how much that is; None where they take more than there is."""
    packed = zlib.compress(content, 1)
    if min(len(packed), len(content)) > min(most, room):
        return None, 0
    spelled, is_text = plain(content)
    if is_text and len(spelled) <= most:
        return {"text": spelled}, len(spelled)
    return {"zlib": base64.b64encode(packed).decode()}, len(packed)


def plain(content: bytes) -> tuple[str, bool]:
    """Give bytes as text, and whether they are one."""
    try:
        return content.decode(), True
    except UnicodeDecodeError:
        return content.decode("latin-1"), False
