"""Every answer that is no success, as OTLP 1.11 has it: a `google.rpc.Status` in the encoding of the request.

Only 429, 502, 503 and 504 are sent again by clients, and over gRPC only what is temporary; RESOURCE_EXHAUSTED with
`RetryInfo` alone. The messages are those of google/rpc/status.proto and error_details.proto.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import orjson

CANCELLED, INVALID, DEADLINE, NOT_FOUND, DENIED, EXHAUSTED, UNIMPLEMENTED, INTERNAL, UNAVAILABLE, UNAUTHENTICATED = (
    1, 3, 4, 5, 7, 8, 12, 13, 14, 16,
)  # fmt: skip
_MOST_SAID = 1000
_TYPE: Final = "type.googleapis.com/google.rpc."


@dataclass(eq=False)
class Refusal(Exception):  # not frozen: what raises it on its way writes into it
    """A request that is not taken, or not now. No traceback is of use: it is the sender's."""

    code: int
    """google.rpc.Code."""
    http: int
    reason: str
    retry_s: int | None = None
    """When to try again; None where that would change nothing."""
    violation: str = ""
    """What is wrong with the request, where that is the cause."""
    headers: tuple[tuple[str, str], ...] = ()

    def as_protobuf(self) -> bytes:
        """Spell the Status in protobuf."""
        status = b"\x08" + _varint(self.code) + _bytes(2, self.reason[:_MOST_SAID].encode("utf-8", "replace"))
        if self.retry_s is not None:
            status += _bytes(3, _any("RetryInfo", _bytes(1, b"\x08" + _varint(self.retry_s))))
        if self.violation:
            status += _bytes(3, _any("BadRequest", _bytes(1, _bytes(2, self.violation[:_MOST_SAID].encode()))))
        return status

    def as_json(self) -> bytes:
        """Spell the Status in JSON."""
        details: list[Mapping[str, object]] = []
        if self.retry_s is not None:
            details.append({"@type": f"{_TYPE}RetryInfo", "retryDelay": f"{self.retry_s}s"})
        if self.violation:
            description = self.violation[:_MOST_SAID]
            details.append({"@type": f"{_TYPE}BadRequest", "fieldViolations": [{"description": description}]})
        status: dict[str, object] = {"code": self.code, "message": self.reason[:_MOST_SAID]}
        return orjson.dumps(status | ({"details": details} if details else {}))


def malformed(problem: str) -> Refusal:
    """Refuse what cannot be decoded: for good."""
    return Refusal(INVALID, 400, f"the request cannot be decoded: {problem}", violation=problem)


def too_large(limit: int) -> Refusal:
    """Refuse what is over the limit of one request, before or after decompression: for good."""
    return Refusal(EXHAUSTED, 413, f"the request is over the limit of {limit} bytes, counted after decompression")


def too_many(most: int) -> Refusal:
    """Refuse what has more parts than anybody sends who means well: for good."""
    return Refusal(EXHAUSTED, 413, f"the request has more than {most} parts")


def busy(why: str, seconds: int = 1) -> Refusal:
    """Refuse for now."""
    return Refusal(UNAVAILABLE, 503, f"{why}; try again", retry_s=seconds)


def _varint(number: int) -> bytes:
    spelled = bytearray()
    while number > 0x7F:
        spelled.append(number & 0x7F | 0x80)
        number >>= 7
    spelled.append(number)
    return bytes(spelled)


def _bytes(field: int, content: bytes) -> bytes:
    return bytes((field << 3 | 2,)) + _varint(len(content)) + content


def _any(kind: str, content: bytes) -> bytes:
    return _bytes(1, f"{_TYPE}{kind}".encode()) + _bytes(2, content)
