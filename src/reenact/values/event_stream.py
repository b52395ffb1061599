"""Amazon's event stream (`application/vnd.amazon.eventstream`): bytes to frames and events, and a frame again.

A frame is its length, that of its headers, a checksum of both, headers, payload and a checksum of it all. A payload is
the JSON of an event, or has it in base64 under `bytes`, as answers to `InvokeModelWithResponseStream` do.
"""

from __future__ import annotations

import binascii
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lenient import as_object

MEDIA_TYPE: Final = "application/vnd.amazon.eventstream"
_PRELUDE: Final = struct.Struct(">III")
_CHECKSUM: Final = 4
_LEAST: Final = _PRELUDE.size + _CHECKSUM
_LARGEST: Final = 1 << 25
_TEXT: Final = 7
"""The type of a header that is text."""
_SIZES: Final = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""How long the values of headers of other types are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One frame, and where it stands in its stream."""

    start: int
    end: int
    headers: bytes
    payload: bytes

    @property
    def named(self) -> dict[str, str]:
        """Its headers that are text, by name."""
        return dict(_texts(self.headers))


def _texts(data: bytes) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(data):
        size = data[at]
        name, kind = data[at + 1 : at + 1 + size], data[at + 1 + size : at + 2 + size]
        at += 2 + size
        if not kind or kind[0] not in {*_SIZES, 6, _TEXT}:
            return
        if kind[0] in {6, _TEXT}:
            length = int.from_bytes(data[at : at + 2])
            if kind[0] == _TEXT:
                yield name.decode("utf-8", "replace"), data[at + 2 : at + 2 + length].decode("utf-8", "replace")
            at += 2 + length
        else:
            at += _SIZES[kind[0]]


def is_event_stream(data: bytes) -> bool:
    """Tell an event stream by the checksum of its first frame's lengths."""
    if len(data) < _PRELUDE.size:
        return False
    total, headers, checksum = _PRELUDE.unpack_from(data)
    return _LEAST + headers <= total <= _LARGEST and zlib.crc32(data[:8]) == checksum


def frames(data: bytes) -> list[Frame]:
    """Give the whole frames at the beginning of a stream; what follows them was cut off, or is none."""
    whole_frames: list[Frame] = []
    at = 0
    while is_event_stream(data[at : at + _PRELUDE.size]):
        total, headers, _ = _PRELUDE.unpack_from(data, at)
        if at + total > len(data):
            break
        body = at + _PRELUDE.size
        payload = data[body + headers : at + total - _CHECKSUM]
        whole_frames.append(Frame(start=at, end=at + total, headers=data[body : body + headers], payload=payload))
        at += total
    return whole_frames


def framed(headers: bytes, payload: bytes) -> bytes:
    """Spell a frame, its lengths and checksums made anew."""
    total = _LEAST + len(headers) + len(payload)
    lengths = struct.pack(">II", total, len(headers))
    data = lengths + zlib.crc32(lengths).to_bytes(4) + headers + payload
    return data + zlib.crc32(data).to_bytes(4)


def event_frame(kind: str, event: Json) -> bytes:
    """Spell an event as a frame of this kind; a `chunk` holds it in base64."""
    content = compact(event).encode("utf-8", "replace")
    payload = b'{"bytes":"%s"}' % binascii.b2a_base64(content, newline=False) if kind == "chunk" else content
    fields = ((":event-type", kind), (":content-type", "application/json"), (":message-type", "event"))
    headers = b"".join(
        bytes([len(name)]) + name.encode() + bytes([_TEXT]) + len(value).to_bytes(2) + value.encode()
        for name, value in fields
    )
    return framed(headers, payload)


def inner(payload: bytes) -> bytes | None:
    """Give what a payload holds in base64, or None where it is the event itself."""
    encoded = as_object(parsed_or_none(payload)).get("bytes")
    if not isinstance(encoded, str):
        return None
    try:
        return binascii.a2b_base64(encoded, strict_mode=True)
    except ValueError:
        return None


def with_inner(payload: bytes, content: bytes) -> bytes:
    """Give a payload that holds other bytes in base64."""
    fields = as_object(parsed_or_none(payload))
    return compact({**fields, "bytes": binascii.b2a_base64(content, newline=False).decode()}).encode()


def events(data: bytes) -> list[Json]:
    """Give each event under its kind, as SDKs do: `{"messageStart": …}`; that of a `chunk` by itself.

    An exception stands under its type, such as `throttlingException`.
    """
    event_list: list[Json] = []
    for frame in frames(data):
        labels = frame.named
        content = inner(frame.payload)
        if content is not None and labels.get(":event-type", "chunk") == "chunk":
            event_list.append(parsed_or_none(content))
            continue
        kind = labels.get(":event-type") or labels.get(":exception-type") or labels.get(":error-code") or "error"
        decoded = parsed_or_none(frame.payload)
        event_list.append({kind: frame.payload.decode("utf-8", "replace") if decoded is None else decoded})
    return event_list
