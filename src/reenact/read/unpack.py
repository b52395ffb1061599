"""Takes the packing off a stream: gzip, Zstandard, the frames in which the Collector writes Zstandard, and zip.

Packing is told by its first bytes. What comes out is bounded (`limits.max_unpacked_bytes`, and a thousand times what
went in), so that a few packed kilobytes cannot fill a memory or a disk.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, cast

from reenact.errors import InputError
from reenact.values.limits import (
    RAISE_THE_LIMIT,
    RAISE_THE_UNPACKED_LIMIT,
    max_record_bytes,
    max_unpacked_bytes,
    spelled,
)

if TYPE_CHECKING:
    import zipfile

    from typing_extensions import Buffer

ZIP = b"PK\x03\x04"
"""How a zip file with anything in it begins."""
_GZIP = b"\x1f\x8b\x08"
_PARQUET = b"PAR1"
_ZSTD = b"\x28\xb5\x2f\xfd"
_CHUNK = 64 << 10
_ZSTD_CHUNK = 2 << 10
"""A block of Zstandard takes four bytes at least and gives 128 KiB at most, so this much gives 64 MiB at most."""
_BUFFER = 1 << 20
_FREE = 64 << 20
_RATIO = 1000
_LAYERS = 3
_DAMAGED = "It was damaged or not yet written to its end: copy it again."


def unpacked(stream: BinaryIO, place: str) -> BinaryIO:
    """Give `stream` less its packing, through three layers at most; a stream that is not packed comes back as it is.

    `place` names the stream in errors. Reading raises `InputError` where the packing is damaged or cut off, or expands
    without bounds.
    """
    for _ in range(_LAYERS):
        head, stream = looked_at(stream, 8)
        if head.startswith(_GZIP):
            stream = _joined(_gunzipped(stream, _Budget(place)))
        elif head.startswith(_ZSTD):
            stream = _joined(_unzstandard(_chunks(stream, _ZSTD_CHUNK), _Budget(place)))
        elif head[4:] == _ZSTD:
            stream = _joined(_unframed(stream, _Budget(place)))
        elif head.startswith(_PARQUET):
            from reenact.read import parquet

            return _joined(parquet.json_lines(stream, place))
        else:
            break
    return stream


def zip_members(stream: BinaryIO, place: str) -> Iterator[tuple[str, BinaryIO]]:
    """Give the files in a zip file, each with its name, in the order of the names; read one before the next.

    What all of them expand to together is bounded as in `unpacked`. Raises `InputError`, at once or while a file is
    read, where the zip file is damaged, encrypted, or made so that its files overlap.
    """
    import shutil
    import tempfile
    import zipfile

    with tempfile.TemporaryFile() as spool:
        source = stream
        if not stream.seekable():
            shutil.copyfileobj(stream, spool, _BUFFER)
            source = cast("BinaryIO", spool)
        size = source.seek(0, io.SEEK_END)
        try:
            archive = zipfile.ZipFile(source)
        except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as failure:
            raise InputError(place, f"the zip file is damaged ({failure})", hint=_DAMAGED) from None
        members = sorted((each for each in archive.infolist() if not each.is_dir()), key=lambda each: each.filename)
        if sum(each.compress_size for each in members) > size:
            problem = "the files in this zip file overlap; this looks like a decompression bomb"
            raise InputError(place, problem, hint="Unpack it yourself if you trust where it comes from.")
        budget = _Budget(place)
        for member in members:
            name = member.filename.encode("ascii", "backslashreplace").decode().replace("\n", "\\n")
            budget.enter(f"{place}!{name}", member.compress_size)
            yield name, _joined(_member(archive, member, budget))


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, budget: _Budget) -> Iterator[bytes]:
    from zipfile import BadZipFile

    try:
        with archive.open(member) as stream:
            for piece in _chunks(cast("BinaryIO", stream), _CHUNK):
                yield budget.give(piece)
    except (BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError) as failure:
        raise budget.error(f"this file in the zip file is damaged ({failure})") from None
    except RuntimeError as failure:  # a password is asked for
        raise budget.error(f"this file in the zip file cannot be read ({failure})", "Unpack it yourself.") from None


def looked_at(stream: BinaryIO, size: int) -> tuple[bytes, BinaryIO]:
    """Read the first `size` bytes, fewer only where there are no more; give them, and a stream that has them still."""
    head = b""
    while len(head) < size and (more := stream.read(size - len(head))):
        head += more
    if stream.seekable():
        stream.seek(-len(head), io.SEEK_CUR)
        return head, stream
    return head, _joined(_again(head, stream))


def _again(head: bytes, stream: BinaryIO) -> Iterator[bytes]:
    yield head
    yield from _chunks(stream, _CHUNK)


def _chunks(stream: BinaryIO, size: int) -> Iterator[bytes]:
    while chunk := stream.read(size):
        yield chunk


class _Budget:
    """Counts what goes in and what comes out."""

    def __init__(self, place: str) -> None:
        self._place, self._limit = place, max_unpacked_bytes()
        self._bytes_in = self._bytes_out = 0

    def enter(self, place: str, size: int) -> None:
        """Go on to another file of the same packing, of so many packed bytes."""
        self._place = place
        self._bytes_in += size

    def take(self, size: int) -> None:
        self._bytes_in += size

    def give(self, piece: bytes) -> bytes:
        self._bytes_out += len(piece)
        if self._bytes_out > self._limit:
            raise self.error(f"the file expands to more than {spelled(self._limit)}", RAISE_THE_UNPACKED_LIMIT)
        if self._bytes_out > _FREE and self._bytes_out > self._bytes_in * _RATIO:
            problem = f"the file expands to more than {_RATIO} times its size; this looks like a decompression bomb"
            raise self.error(problem, "Unpack it yourself if you trust where it comes from.")
        return piece

    def error(self, problem: str, hint: str = _DAMAGED) -> InputError:
        return InputError(f"{self._place}: byte {self._bytes_in}", problem, hint=hint)


def _gunzipped(stream: BinaryIO, budget: _Budget) -> Iterator[bytes]:
    member = zlib.decompressobj(wbits=31)
    begun = True
    for chunk in _chunks(stream, _CHUNK):
        budget.take(len(chunk))
        rest = chunk
        while rest:
            if not begun:  # between members (RFC 1952, section 2.2); zero bytes there are padding
                rest = rest.lstrip(b"\0")
                if not rest:
                    break
                member, begun = zlib.decompressobj(wbits=31), True
            try:
                piece = member.decompress(rest, _BUFFER)
            except zlib.error as failure:
                raise budget.error(f"the gzip data is damaged ({failure})") from None
            yield budget.give(piece)
            begun = not member.eof
            rest = member.unused_data if member.eof else member.unconsumed_tail
    if begun:
        while piece := member.decompress(member.unconsumed_tail, _BUFFER):
            yield budget.give(piece)
        raise budget.error("the gzip data is cut off")


def _unzstandard(chunks: Iterator[bytes], budget: _Budget) -> Iterator[bytes]:
    from zstandard import ZstdDecompressor, ZstdError

    frame = ZstdDecompressor().decompressobj()
    begun = True
    for chunk in chunks:
        budget.take(len(chunk))
        rest = chunk
        while rest:
            if not begun:
                frame, begun = ZstdDecompressor().decompressobj(), True
            try:
                piece = frame.decompress(rest)
            except ZstdError as failure:
                raise budget.error(f"the zstd data is damaged ({failure})") from None
            yield budget.give(piece)
            begun = not frame.eof
            rest = frame.unused_data if frame.eof else b""
    if begun:
        raise budget.error("the zstd data is cut off")


def _unframed(stream: BinaryIO, budget: _Budget) -> Iterator[bytes]:
    """Unpack the Collector's file exporter: four bytes of length, big-endian, then one Zstandard frame, over and over.

    What is in the frames comes out one after another: for protobuf that is one message, for JSON documents in a row.
    """
    limit = max_record_bytes()
    while prefix := stream.read(4):
        size = int.from_bytes(prefix, "big")
        budget.take(4)
        if len(prefix) < 4:
            raise budget.error("the file ends inside a length")
        if size > limit:
            problem = f"a frame of {spelled(size)} is over the limit of {spelled(limit)}"
            raise budget.error(problem, RAISE_THE_LIMIT)
        frame = stream.read(size)
        if len(frame) < size:
            raise budget.error("the file ends inside a frame")
        pieces = (frame[at : at + _ZSTD_CHUNK] for at in range(0, size, _ZSTD_CHUNK))
        json = None
        for piece in _unzstandard(pieces, budget):
            json = piece[:1] in (b"{", b"[") if json is None and piece else json
            yield piece
        if json:
            yield b"\n"


def _joined(pieces: Iterator[bytes]) -> BinaryIO:
    return cast("BinaryIO", io.BufferedReader(_Pieces(pieces), _BUFFER))


class _Pieces(io.RawIOBase):
    """Reads an iterator of bytes as a stream."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._piece = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        target = memoryview(buffer).cast("B")
        while not self._piece:
            following = next(self._pieces, None)
            if following is None:
                return 0
            self._piece = memoryview(following)
        size = min(len(target), len(self._piece))
        target[:size] = self._piece[:size]
        self._piece = self._piece[size:]
        return size
