"""Reads `google.rpc.Status` (google/rpc/status.proto, error_details.proto) off the wire.

Both transports of OTLP carry it in errors. Three fields of it are of use here, which is less than a dependency.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_RETRY_INFO = b"google.rpc.RetryInfo"


@dataclass(frozen=True, slots=True, kw_only=True)
class RpcStatus:
    """The parts of a Status that say what to do next."""

    message: str = ""
    retry_after_s: float | None = None
    """`RetryInfo.retry_delay` in seconds, or None where no RetryInfo came along."""


def read_status(data: bytes) -> RpcStatus:
    """Read a Status, as far as it can be read. Never raises: of bytes that are no Status it gives an empty one."""
    message, delay = "", None
    try:
        for number, value in _fields(data):
            if number == 2 and isinstance(value, bytes):
                message = value.decode("utf-8", "replace")
            elif number == 3 and isinstance(value, bytes):
                detail = dict(_fields(value))
                kind, content = detail.get(1, b""), detail.get(2, b"")
                if isinstance(kind, bytes) and kind.endswith(_RETRY_INFO) and isinstance(content, bytes):
                    delay = _duration(dict(_fields(content)).get(1, b""))
    except (IndexError, ValueError):
        return RpcStatus()
    return RpcStatus(message=message, retry_after_s=delay)


def _duration(data: int | bytes) -> float:
    """Read a google.protobuf.Duration: seconds and nanoseconds. A negative one means now."""
    fields = dict(_fields(data)) if isinstance(data, bytes) else {}
    seconds, nanos = fields.get(1, 0), fields.get(2, 0)
    if not isinstance(seconds, int) or not isinstance(nanos, int) or seconds >= 1 << 63:
        return 0.0
    return seconds + nanos / 1e9


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Give number and value of each field of a message; fixed-width ones as their bytes."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield tag >> 3, value
            continue
        if wire == 2:
            size, at = _varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError("a group, or no protobuf at all")
        if at + size > len(data):
            raise ValueError("cut off")
        yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError("a varint of more than 64 bits")
