"""Whether a git work tree has changes that are not committed, read from git's own files and without running git.

The index (gitformat-index(5)) says of each tracked file what it was when it was last added. A file that has another
time or size is read and its blob named anew; the tree that the index spells is held against that of the commit
(gitformat-pack(5) where that is packed). Files that git does not track are not looked at, nor are submodules.

Whatever is too much to look at, or of a kind that is not known here, gives None: nobody knows.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from reenact.disk.private import read_regular

_LARGEST_INDEX: Final = 600_000
"""Bytes; some five thousand files, which take 20 ms to look at."""
_MOST_READ: Final = 8 << 20
"""Bytes of files whose times say nothing, as in a copy of the work tree."""
_LINK, _SUBMODULE, _FOLDER = 0o120000, 0o160000, 0o040000
_EXTENDED, _ASSUMED, _STAGE = 0x4000, 0x8000, 0x3000
_SKIPPED: Final = 0x4000
"""In the extended flags: the file is not checked out."""


class _Entry(NamedTuple):
    path: bytes
    mode: int
    mtime: tuple[int, int]
    size: int
    blob: bytes
    is_looked_at: bool


class _UnknownError(Exception):
    """Nobody can say."""


def uncommitted(root: Path, git: Path, common: Path, commit: str) -> bool | None:
    """Tell whether a tracked file of the work tree `root` differs from its commit; None where nobody can say.

    `git` is the folder of the work tree's own state, `common` the one of the objects.
    """
    width = len(commit) // 2
    try:
        index = git / "index"
        if index.stat().st_size > _LARGEST_INDEX:
            return None
        index_ns = index.stat().st_mtime_ns
        entries = list(_entries(read_regular(index), width))
        if _tree_of(entries, width) != _committed_tree(common / "objects", commit):
            return True
        above, left = os.fsencode(root) + b"/", [_MOST_READ]
        return any(_differs(above, each, index_ns, width, left) for each in entries if each.is_looked_at)
    except (_UnknownError, OSError, ValueError, struct.error, zlib.error, IndexError):
        return None


def _digest(width: int) -> Any:
    return hashlib.sha1(usedforsecurity=False) if width == 20 else hashlib.sha256()


# the index


def _entries(data: bytes, width: int) -> Iterator[_Entry]:
    magic, version, count = struct.unpack_from(">4sII", data)
    if magic != b"DIRC" or version not in {2, 3, 4}:
        raise _UnknownError
    at, path = 12, b""
    for _ in range(count):
        begins = at
        fields = struct.unpack_from(">10I", data, at)
        at += 40
        blob = data[at : at + width]
        (flags,) = struct.unpack_from(">H", data, at + width)
        at += width + 2
        more = 0
        if flags & _EXTENDED:
            (more,) = struct.unpack_from(">H", data, at)
            at += 2
        if version == 4:
            cut, at = _offset(data, at)
            end = data.index(b"\0", at)
            path = path[: len(path) - cut] + data[at:end]
            at = end + 1
        else:
            end = data.index(b"\0", at)
            path = data[at:end]
            at = begins + ((end - begins) // 8 + 1) * 8
        mode = fields[6]
        if flags & _STAGE or mode == _FOLDER:  # a conflict; a folder of a sparse index
            raise _UnknownError
        looked_at = not (flags & _ASSUMED or more & _SKIPPED or mode == _SUBMODULE)
        yield _Entry(path, mode, (fields[2], fields[3]), fields[9], blob, looked_at)
    while at + 8 <= len(data) - width:
        name, size = struct.unpack_from(">4sI", data, at)
        if name == b"link":  # what is here is the difference to another index
            raise _UnknownError
        at += 8 + size


def _offset(data: bytes, at: int) -> tuple[int, int]:
    """Read a number as a pack spells offsets; give it and where it ends."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 0x7F)
    return value, at + 1


def _differs(above: bytes, entry: _Entry, index_ns: int, width: int, left: list[int]) -> bool:
    """Tell whether a file is another than the index says. So many bytes are `left` to be read."""
    path = above + entry.path
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    is_link = stat.S_ISLNK(status.st_mode)
    if is_link is not (entry.mode == _LINK) or not (is_link or stat.S_ISREG(status.st_mode)):
        return True
    mtime = divmod(status.st_mtime_ns, 1_000_000_000)
    is_as_told = entry.mtime in {mtime, (mtime[0], 0)} and entry.size == status.st_size & 0xFFFFFFFF
    if is_as_told and status.st_mtime_ns < index_ns:  # else it may have been written again within the same tick
        return False
    if entry.size and entry.size != status.st_size & 0xFFFFFFFF:
        return True
    left[0] -= status.st_size
    if left[0] < 0:
        raise _UnknownError
    file = Path(os.fsdecode(path))
    data = os.fsencode(file.readlink()) if is_link else read_regular(file)
    hasher = _digest(width)
    hasher.update(b"blob %d\0" % len(data))
    hasher.update(data)
    return bool(hasher.digest() != entry.blob)


def _tree_of(entries: list[_Entry], width: int) -> bytes:
    """Name the tree that the index spells. Its entries are sorted by path, so that folders come in one piece."""

    def tree_id(at: int, end: int, depth: int) -> bytes:
        tree_entries: list[tuple[bytes, bytes]] = []
        while at < end:
            parts = entries[at].path[depth:].split(b"/", 1)
            if len(parts) == 1:
                tree_entries.append((parts[0], b"%o %s\0%s" % (entries[at].mode, parts[0], entries[at].blob)))
                at += 1
                continue
            above = entries[at].path[: depth + len(parts[0]) + 1]
            first = at
            while at < end and entries[at].path.startswith(above):
                at += 1
            inner = tree_id(first, at, len(above))
            tree_entries.append((parts[0] + b"/", b"40000 %s\0%s" % (parts[0], inner)))
        body = b"".join(spelled for _, spelled in sorted(tree_entries))
        digest = _digest(width)
        digest.update(b"tree %d\0" % len(body))
        digest.update(body)
        return bytes(digest.digest())

    return tree_id(0, len(entries), 0)


# the commit


def _committed_tree(objects: Path, commit: str) -> bytes:
    """Name the tree of a commit. Raises `_UnknownError` where its object is not found, or only as a difference."""
    loose = objects / commit[:2] / commit[2:]
    if loose.is_file():
        body = zlib.decompress(read_regular(loose)).partition(b"\0")[2]
    else:
        packs = sorted((objects / "pack").glob("*.idx"))
        body = next((packed_body for each in packs if (packed_body := _packed(each, bytes.fromhex(commit)))), b"")
    if not body.startswith(b"tree "):
        raise _UnknownError
    return bytes.fromhex(body[5 : body.index(b"\n")].decode())


def _packed(index: Path, wanted: bytes) -> bytes:
    """Read a commit out of a pack by its index, version 2; empty where it is not in there."""
    width = len(wanted)
    with index.open("rb") as file:
        head = file.read(8 + 1024)
        if head[:8] != b"\377tOc\0\0\0\2":
            raise _UnknownError
        fan = struct.unpack_from(">256I", head, 8)
        low, high, total = fan[wanted[0] - 1] if wanted[0] else 0, fan[wanted[0]], fan[255]
        file.seek(1032 + low * width)
        names = file.read((high - low) * width)
        at = names.find(wanted)
        while at >= 0 and at % width:
            at = names.find(wanted, at + 1)
        if at < 0:
            return b""
        place = low + at // width
        file.seek(1032 + total * (width + 4) + place * 4)
        (offset,) = struct.unpack(">I", file.read(4))
        if offset & 0x80000000:
            file.seek(1032 + total * (width + 8) + (offset & 0x7FFFFFFF) * 8)
            (offset,) = struct.unpack(">Q", file.read(8))
    with index.with_suffix(".pack").open("rb") as pack:
        pack.seek(offset)
        data = pack.read(1 << 16)
    at = 0
    kind = data[0] >> 4 & 7
    while data[at] & 0x80:
        at += 1
    if kind != 1:
        raise _UnknownError
    return zlib.decompressobj().decompress(data[at + 1 :], 1 << 16)
