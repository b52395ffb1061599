"""A provider and an OTLP receiver on loopback, each in a process of its own, that answer at once and nothing else.

    python serving.py provider | sink

Prints its port, serves until its standard input ends. The provider answers every POST with the same chat completion
but for its id and one number in its text, so that no two replies are equal; the sink accepts everything. Neither
parses a body: what is measured is what happens on the other side.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import sys

import orjson

_TEXT = "The invoice was checked against the order, line by line, and two of the amounts do not agree with it. " * 6


def completion(number: int) -> bytes:
    """Spell the reply with this number; all have the same length."""
    return orjson.dumps(
        {
            "id": f"chatcmpl-{number:012d}",
            "object": "chat.completion",
            "created": 1_760_000_000,
            "model": "bench-1",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": f"{_TEXT}{number:012d}", "refusal": None},
                    "logprobs": None,
                    "finish_reason": "stop",
                }
            ],
            "usage": {"prompt_tokens": 1234, "completion_tokens": 128, "total_tokens": 1362},
            "system_fingerprint": "fp_bench",
        }
    )


class _Answering(asyncio.Protocol):
    """HTTP/1.1 with keep-alive, as far as a client that sends Content-Length needs it."""

    _numbers = itertools.count()

    def __init__(self, *, sink: bool) -> None:
        self._sink, self._held = sink, bytearray()
        self._transport: asyncio.Transport | None = None
        self._wanted = -1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self._held += data
        while self._whole():
            del self._held[: self._wanted]
            self._wanted = -1
            self._answer()

    def _whole(self) -> bool:
        if self._wanted < 0:
            head = self._held.find(b"\r\n\r\n")
            if head < 0:
                return False
            lowered = bytes(self._held[:head]).lower()
            at = lowered.index(b"content-length:") + 15
            self._wanted = head + 4 + int(lowered[at:].split(b"\r\n", 1)[0])
        return len(self._held) >= self._wanted

    def _answer(self) -> None:
        body = b"" if self._sink else completion(next(self._numbers))
        kind = b"application/x-protobuf" if self._sink else b"application/json"
        head = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\nx-request-id: req_bench\r\ncontent-length: %d\r\n\r\n"
        assert self._transport is not None
        self._transport.write(head % (kind, len(body)) + body)


async def _serve(kind: str) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Answering(sink=kind == "sink"), "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await loop.run_in_executor(None, os.read, 0, 1)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(sys.argv[1]))
