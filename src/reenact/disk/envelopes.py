"""Requests of OTLP taken apart and put together without being decoded: every record stays the bytes it came as.

ExportTraceServiceRequest and ExportLogsServiceRequest have one shape (opentelemetry-proto 1.11): field 1, repeated, a
group under one resource; in it field 2, repeated, what is under one scope; in that field 2, repeated, the records. What
else a group or scope holds is its envelope, known fields and unknown ones alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

Part: TypeAlias = tuple[bytes, bytes, bytes]
"""Envelope of the group, envelope of the scope, record."""
_GROUP, _INNER = 0x0A, 0x12
_TRACE_ID, _ID_BYTES = 0x0A, 16
_FIXED = {1: 8, 5: 4}


class NotSplitError(ValueError):
    """The bytes cannot be taken apart like this: damaged, or with the groups of proto2 in them."""


class TooManyError(ValueError):
    """The bytes hold more fields than anybody sends who means well."""


def parts(request: bytes, most: int = 1 << 62) -> Iterator[Part]:
    """Take a request apart, of `most` groups, scopes, records and other fields at most.

    Raises `NotSplitError`, and `TooManyError` once it is over the bound.
    """
    left = [most]
    for group in _inside(request, _GROUP, left)[1]:
        envelope, scopes = _inside(group, _INNER, left)
        for scope in scopes:
            scoped, records = _inside(scope, _INNER, left)
            for record in records:
                yield envelope, scoped, record


def joined(request_parts: Iterable[Part]) -> bytes:
    """Put a request together; neighbours with the same envelopes share them."""
    groups: list[bytes] = []
    scopes: list[bytes] = []
    records: list[bytes] = []
    last: tuple[bytes, bytes] | None = None
    for envelope, scoped, record in request_parts:
        if last is not None and (envelope, scoped) != last:
            scopes.append(_field(_INNER, b"".join((last[1], *records))))
            records = []
            if envelope != last[0]:
                groups.append(_field(_GROUP, b"".join((last[0], *scopes))))
                scopes = []
        last = (envelope, scoped)
        records.append(_field(_INNER, record))
    if last is not None:
        scopes.append(_field(_INNER, b"".join((last[1], *records))))
        groups.append(_field(_GROUP, b"".join((last[0], *scopes))))
    return b"".join(groups)


def trace_of(span: bytes) -> bytes:
    """Give the trace id of a span, or nothing where it has none of 16 bytes."""
    if span[:2] == b"\x0a\x10":  # as every writer has it: the first field
        return span[2:18]
    at, trace_id = 0, b""
    while at < len(span):
        tag, content, end = _read(span, at)
        if tag == _TRACE_ID:
            trace_id = span[content:end]
        at = end
    return trace_id if len(trace_id) == _ID_BYTES else b""


def _inside(data: bytes, wanted: int, left: list[int]) -> tuple[bytes, list[bytes]]:
    """Give the content of each `wanted` field, and all the other fields as they are; take their number off `left`."""
    contents: list[bytes] = []
    rest: list[bytes] = []
    at, bound = 0, left[0]
    while at < len(data):
        if len(contents) + len(rest) >= bound:
            raise TooManyError
        tag, content, end = _read(data, at)
        if tag == wanted:
            contents.append(data[content:end])
        else:
            rest.append(data[at:end])
        at = end
    left[0] -= len(contents) + len(rest)
    return b"".join(rest), contents


def _read(data: bytes, at: int) -> tuple[int, int, int]:
    """Read a field: its tag, where its content begins, where it ends."""
    tag, at = _varint(data, at)
    wire = tag & 7
    if wire == 2:
        size, at = _varint(data, at)
        end = at + size
    elif wire == 0:
        _, end = _varint(data, at)
    elif wire in _FIXED:
        end = at + _FIXED[wire]
    else:
        raise NotSplitError("a group of proto2")
    if end > len(data):
        raise NotSplitError("cut off")
    return tag, at, end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    try:
        byte = data[at]
        if byte < 0x80:
            return byte, at + 1
        value, shift = byte & 0x7F, 7
        while True:
            at += 1
            byte = data[at]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, at + 1
            shift += 7
            if shift > 63:
                raise NotSplitError("a number of more than 64 bits")
    except IndexError:
        raise NotSplitError("cut off") from None


def _field(tag: int, content: bytes) -> bytes:
    size, spelled = len(content), bytearray((tag,))
    while size > 0x7F:
        spelled.append(size & 0x7F | 0x80)
        size >>= 7
    spelled.append(size)
    return bytes(spelled) + content
