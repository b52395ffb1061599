"""A stream that is teed ends for the agent where its end is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx

from reenact.boundary.byte_streams import byte_streams
from reenact.values.call import StreamEnd


class Wire(httpx.AsyncByteStream):
    """Sends one piece; to close it takes turns of the loop, as a connection that goes back to its pool does."""

    closed = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"piece"

    async def aclose(self) -> None:
        self.closed += 1
        for _ in range(3):
            await asyncio.sleep(0)


class Turns:
    """Counts the turns of a loop, and hears in which one a stream ended."""

    def __init__(self) -> None:
        self.now, self.ends = 0, list[tuple[StreamEnd, int]]()

    def piece(self, raw: bytes) -> None:
        assert raw == b"piece"

    def end(self, end: StreamEnd, error: BaseException | None = None) -> None:
        assert error is None
        self.ends.append((end, self.now))

    async def count(self) -> None:
        while True:
            self.now += 1
            await asyncio.sleep(0)


async def _read() -> tuple[Turns, int, int]:
    turns, wire = Turns(), Wire()
    counting = asyncio.create_task(turns.count())
    await asyncio.sleep(0)
    stream = byte_streams(httpx).tee_async(wire, turns)
    async for _ in stream:
        pass
    await stream.aclose()
    counting.cancel()
    return turns, turns.now, wire.closed


def test_no_other_task_goes_on_between_the_end_that_is_told_and_the_agent() -> None:
    turns, then, closed = asyncio.run(_read())
    assert turns.ends[0] == (StreamEnd.FINISHED, then)
    assert closed == 1
