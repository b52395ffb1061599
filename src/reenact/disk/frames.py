"""Frames: what a collector writes down of a request before it answers, and what becomes of a trace once it is over.

A file of frames is the 8 bytes `MAGIC`, then frames one after another. A frame, numbers little-endian:

    u32 size     of everything after the sum
    u32 sum      CRC-32 of everything after it
    u8  kind     1 request of spans, 2 request of log records, 3 whole trace, 4 trace deleted
    u8  codec    0 as it is, 1 Zstandard (RFC 8878)
    u16 0
    u32 records  how many spans and log records
    u64 time     when it was written, in nanoseconds since the epoch
    u32 raw      bytes of the payload before compression
    u32 traces   how many trace ids follow, 16 bytes each
    payload      kind 1 and 2: the body of an OTLP request in protobuf; kind 3: u32 bytes of spans, then a request of
                 spans, then a request of log records

A process that is killed leaves at most a torn last frame, which its sum tells. The version is in the magic; a reader
keeps every version it ever knew.
"""

from __future__ import annotations

import mmap
import re
import struct
import threading
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from zstandard import ZstdCompressor, ZstdDecompressor, ZstdError

MAGIC = b"RNFRAM1\n"
SPANS, LOGS, TRACE, DELETED = 1, 2, 3, 4
_FRONT = struct.Struct("<II")
_HEAD = struct.Struct("<BBHIQII")
_LEAST = _FRONT.size + _HEAD.size
LARGEST = 2 << 30
"""Bytes of a payload before compression, at most."""
_PLAIN, _ZSTD = 0, 1
_SMALL = 256
"""Payloads of fewer bytes are not worth compressing."""


class FrameDamagedError(ValueError):
    """A frame is cut off, or its sum is not that of its bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One frame, its payload as it lies in the file."""

    kind: int
    records: int
    time_ns: int
    traces: tuple[bytes, ...]
    """Ids of 16 bytes."""
    raw: int
    codec: int
    packed: bytes

    @property
    def payload(self) -> bytes:
        """The payload, unpacked. Raises `FrameDamagedError`."""
        if self.codec == _PLAIN:
            return self.packed
        try:
            data = _local.decompressor.decompress(self.packed, max_output_size=max(1, self.raw))
        except ZstdError as error:
            raise FrameDamagedError(str(error)) from None
        if len(data) != self.raw:
            raise FrameDamagedError("it unpacks to another number of bytes than it says")
        return data


class _Local(threading.local):
    """Compressors are not for several threads."""

    def __init__(self) -> None:
        self.compressor = ZstdCompressor(level=1, write_content_size=True)
        self.decompressor = ZstdDecompressor()


_local = _Local()


def framed(kind: int, payload: bytes, traces: Sequence[bytes], *, records: int, time_ns: int) -> bytes:
    """Make a frame of a payload."""
    codec, packed = _PLAIN, payload
    if len(payload) >= _SMALL:
        codec, packed = _ZSTD, _local.compressor.compress(payload)
    head = _HEAD.pack(kind, codec, 0, records, time_ns, len(payload), len(traces))
    ids = b"".join(traces)
    total = zlib.crc32(packed, zlib.crc32(ids, zlib.crc32(head)))
    return b"".join((_FRONT.pack(len(head) + len(ids) + len(packed), total), head, ids, packed))


def read(data: bytes) -> Frame:
    """Read one frame from exactly its bytes. Raises `FrameDamagedError`."""
    if len(data) < _LEAST:
        raise FrameDamagedError("cut off")
    size, total = _FRONT.unpack_from(data)
    if size != len(data) - _FRONT.size:
        raise FrameDamagedError("cut off")
    body = memoryview(data)[_FRONT.size :]
    if zlib.crc32(body) != total:
        raise FrameDamagedError("its sum is another")
    kind, codec, _, records, time_ns, raw, count = _HEAD.unpack_from(body)
    start = _HEAD.size + 16 * count
    if start > size or raw > LARGEST or codec not in (_PLAIN, _ZSTD):
        raise FrameDamagedError("its head makes no sense")
    ids = bytes(body[_HEAD.size : start])
    traces = tuple(ids[at : at + 16] for at in range(0, len(ids), 16))
    return Frame(
        kind=kind, records=records, time_ns=time_ns, traces=traces, raw=raw, codec=codec, packed=bytes(body[start:])
    )


def scan(file: BinaryIO, start: int) -> Iterator[tuple[int, int, Frame]]:
    """Give where each whole frame from `start` on begins, its bytes, and itself; stop at what is none."""
    at = max(start, len(MAGIC))
    file.seek(at)
    while len(front := file.read(_FRONT.size)) == _FRONT.size:
        size, _ = _FRONT.unpack(front)
        if not _HEAD.size <= size <= LARGEST:
            return
        rest = file.read(size)
        try:
            frame = read(front + rest)
        except FrameDamagedError:
            return
        yield at, _FRONT.size + size, frame
        at += _FRONT.size + size


def began(path: Path) -> int:
    """Say when the first frame of a file was made; 0 where it has none. Raises `OSError`."""
    with path.open("rb") as file:
        return next((frame.time_ns for *_, frame in scan(file, 0)), 0)


def deleted(trace: bytes, time_ns: int) -> bytes:
    """Make the frame that says that what came in of a trace until an instant was deleted."""
    return framed(DELETED, b"", [trace], records=0, time_ns=time_ns)


def deletions(path: Path) -> dict[bytes, int]:
    """Give the traces of which a file says that they were deleted, and until when. Raises `OSError`."""
    with path.open("rb") as file:
        return {frame.traces[0]: frame.time_ns for *_, frame in scan(file, 0) if frame.kind == DELETED}


def whole(spans: bytes, logs: bytes) -> bytes:
    """Make the payload of a whole trace."""
    return len(spans).to_bytes(4, "little") + spans + logs


def halves(payload: bytes) -> tuple[bytes, bytes]:
    """Give the spans and the log records of a whole trace, each as the body of a request."""
    size = int.from_bytes(payload[:4], "little")
    return payload[4 : 4 + size], payload[4 + size :]


def head(data: bytes) -> Frame:
    """Give a frame without its payload, of bytes that `framed` made in this process: the sum is not looked at."""
    kind, codec, _, records, time_ns, raw, count = _HEAD.unpack_from(data, _FRONT.size)
    start = _LEAST
    traces = tuple(data[at : at + 16] for at in range(start, start + 16 * count, 16))
    return Frame(kind=kind, records=records, time_ns=time_ns, traces=traces, raw=raw, codec=codec, packed=b"")


def survey(data: bytes | mmap.mmap) -> Iterator[tuple[int, int, bool]]:
    """Give begin and bytes of every piece of a file behind its magic, and whether it is a whole frame.

    What is damaged is passed over up to the next whole frame, which is found by looking.
    """
    at, end = len(MAGIC), len(data)
    while at < end:
        size = _whole_at(data, at)
        if size:
            yield at, size, True
            at += size
            continue
        further = next((place for place in _candidates(data, at + 1) if _whole_at(data, place)), end)
        yield at, further - at, False
        at = further


_HEAD_LIKE = re.compile(rb"[\x01-\x04][\x00\x01]\x00\x00")


def _candidates(data: bytes | mmap.mmap, start: int) -> Iterator[int]:
    for match in _HEAD_LIKE.finditer(data, start + _FRONT.size):
        yield match.start() - _FRONT.size


def _whole_at(data: bytes | mmap.mmap, at: int) -> int:
    """Give the bytes of the whole frame that begins here; 0 where none does."""
    if len(data) - at < _LEAST:
        return 0
    size, total = _FRONT.unpack_from(data, at)
    if not _HEAD.size <= size <= min(LARGEST, len(data) - at - _FRONT.size):
        return 0
    body = data[at + _FRONT.size : at + _FRONT.size + size]
    return _FRONT.size + size if zlib.crc32(body) == total else 0
