"""Byte streams of httpx's kind, sync and async: one that tells what passes, one that hands out what was recorded.

Both must derive from the client library's own classes, so they are made for a library when it is met.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import cache
from typing import Any, NamedTuple, Protocol

from reenact.boundary.cancelled import until_cancelled, was_cancelled
from reenact.boundary.forgiving import forgive
from reenact.contracts.doorman import Passage
from reenact.values import typed
from reenact.values.call import Chunk, ExceptionRecord, Streamed, StreamEnd

_TAIL = 256
"""Bytes of a stream that hold its last event, padded as providers pad it."""


class Listener(Protocol):
    """Who is told of a stream that passes."""

    def piece(self, raw: bytes) -> None:
        """Hear a piece, as it came off the wire, before the agent gets it. Never raises."""

    def end(self, end: StreamEnd, error: BaseException | None = None) -> None:
        """Hear how it ended; only the first time counts."""


class Tail:
    """The last bytes of a stream, by which its last event is known."""

    __slots__ = ("_ends", "_last_bytes")

    def __init__(self, ends: tuple[bytes, ...]) -> None:
        self._ends, self._last_bytes = ends, b""

    def add(self, data: bytes) -> None:
        """Take a piece."""
        self._last_bytes = (self._last_bytes + data)[-_TAIL:]

    def has_ended(self) -> bool:
        """Tell whether the last event is among them: nothing is left to come."""
        return any(last in self._last_bytes for last in self._ends)


class _Teeing:
    """What the two teeing streams share."""

    def __init__(self, stream: Any, listener: Listener) -> None:
        self._stream, self._listener = stream, listener

    def _tell(self, raw: bytes) -> None:
        try:
            self._listener.piece(raw)
        except Exception:
            forgive("stream.piece")

    def _tell_end(self, end: StreamEnd, error: BaseException | None = None) -> None:
        try:
            self._listener.end(end, error)
        except Exception:
            forgive("stream.end")

    def __del__(self) -> None:
        self._tell_end(StreamEnd.ABANDONED)


class _TeeSync(_Teeing):
    def __iter__(self) -> Iterator[bytes]:
        try:
            for raw in self._stream:
                self._tell(raw)
                yield raw
        except GeneratorExit:
            raise
        except BaseException as error:
            self._tell_end(StreamEnd.RAISED, error)
            raise
        self._tell_end(StreamEnd.FINISHED)

    def close(self) -> None:
        self._stream.close()
        self._tell_end(StreamEnd.ABANDONED)


class _TeeAsync(_Teeing):
    _is_closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for raw in self._stream:
                self._tell(raw)
                yield raw
            await self._stream.aclose()  # it lets other tasks on: the end has its place among answers behind that
            self._is_closed = True
        except GeneratorExit:
            raise
        except BaseException as error:
            self._tell_end(StreamEnd.RAISED, error)
            raise
        self._tell_end(StreamEnd.FINISHED)

    async def aclose(self) -> None:
        if not self._is_closed:
            await self._stream.aclose()
        self._tell_end(StreamEnd.ABANDONED)


class _Recorded:
    """What the two replaying streams share."""

    def __init__(
        self,
        answer: Streamed,
        passage: Passage,
        request: Any,
        ends: tuple[bytes, ...] = (),
        failure: Callable[[ExceptionRecord], BaseException] = typed.decode_exception,
    ) -> None:
        self._answer, self._passage, self._request, self._failure = answer, passage, request, failure
        self._rest_count, self._tail = len(answer.chunks), Tail(ends)
        self._open = True

    def _piece(self, chunk: Chunk) -> bytes:
        data = chunk.data or b""
        self._rest_count -= 1
        self._tail.add(data)
        self._passage.chunk(data)
        return data

    def _finish(self) -> None:
        """Come to the recorded end: silently, with the recorded error, or with a miss if the agent reads on."""
        answer = self._answer
        match answer.end:
            case StreamEnd.FINISHED:
                self._end(StreamEnd.FINISHED)
            case StreamEnd.RAISED if answer.exception is not None:
                error = with_request(self._failure(answer.exception), self._request)
                self._end(StreamEnd.RAISED, error)
                raise error
            case _:
                self._end(StreamEnd.ABANDONED)
                raise self._passage.miss(
                    f"the agent reads on where the recorded run left this stream ({answer.end}), "
                    f"after {len(answer.chunks)} pieces"
                )

    def _close(self) -> None:
        """Hear that the agent wants no more."""
        whole = self._answer.end is StreamEnd.FINISHED and not self._rest_count
        self._end(StreamEnd.FINISHED if whole or self._tail.has_ended() else StreamEnd.ABANDONED)

    def _end(self, end: StreamEnd, error: BaseException | None = None) -> None:
        if self._open:
            self._open = False
            self._passage.ended(end, error)

    def __del__(self) -> None:
        self._close()


class _RecordedSync(_Recorded):
    def __iter__(self) -> Iterator[bytes]:
        try:
            for chunk in self._answer.chunks:
                self._passage.wait(chunk.order)
                yield self._piece(chunk)
            if self._answer.end is not StreamEnd.ABANDONED:
                self._passage.wait(self._passage.end_order)
            self._finish()
        except GeneratorExit:
            raise
        except BaseException as error:
            self._end(StreamEnd.RAISED, error)
            raise

    def close(self) -> None:
        self._close()


class _RecordedAsync(_Recorded):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            for chunk in self._answer.chunks:
                await self._passage.wait_async(chunk.order)
                yield self._piece(chunk)
            if was_cancelled(self._answer):
                await until_cancelled(self._passage)
            if self._answer.end is not StreamEnd.ABANDONED:
                await self._passage.wait_async(self._passage.end_order)
            self._finish()
        except GeneratorExit:
            raise
        except BaseException as error:
            self._end(StreamEnd.RAISED, error)
            raise

    async def aclose(self) -> None:
        self._close()


class ByteStreams(NamedTuple):
    """A client library, `httpx` or one that is made like it, and our stream classes for it.

    `tee(stream, listener)` passes a stream on; `recorded(answer, passage, request, ends, failure)` hands out a
    recorded one, in which nothing comes after one of `ends`, and whose error is made by `failure`.
    """

    module: Any
    tee: type[Any]
    tee_async: type[Any]
    recorded: type[Any]
    recorded_async: type[Any]


@cache
def byte_streams(module: Any) -> ByteStreams:
    """Make the stream classes for a client library, once."""
    sync, asynchronous = module.SyncByteStream, module.AsyncByteStream
    return ByteStreams(
        module=module,
        tee=type("TeeStream", (_TeeSync, sync), {}),
        tee_async=type("AsyncTeeStream", (_TeeAsync, asynchronous), {}),
        recorded=type("RecordedStream", (_RecordedSync, sync), {}),
        recorded_async=type("AsyncRecordedStream", (_RecordedAsync, asynchronous), {}),
    )


def with_request(error: BaseException, request: Any) -> BaseException:
    """Give an error of the library's the request that it is about, which its class knows as `request`."""
    if hasattr(type(error), "request"):
        error.request = request  # type: ignore[attr-defined]  # not every class of errors has one
    return error
