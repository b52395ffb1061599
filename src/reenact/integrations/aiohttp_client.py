"""aiohttp's client: cut where a session asks its connector for a connection, and where the response is read from it.

One hop is one call: redirects, retries, cookies and errors are aiohttp's own doing in a replay too, and so is the
response object. Web sockets are not recorded.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, ClassVar, Final

from reenact.boundary import door, lanes, plain_http
from reenact.boundary.cancelled import until_cancelled, was_cancelled
from reenact.boundary.plain_http import Telling
from reenact.contracts.doorman import Passage
from reenact.contracts.integration import Integration, PatchSet
from reenact.values import alarms
from reenact.values.call import Call, Chunk, HttpReply, Outcome, Raised, Returned, Streamed, StreamEnd
from reenact.values.run import ENDED_LATER

_log = logging.getLogger("reenact")
_PASSAGE: Final = "_reenact_passage"
_BUFFER: Final = 2**16


async def _call(request: Any) -> Call | None:
    """Make a call of a request, or None where it cannot be written down exactly."""
    body = await _body(request.body)
    if body is None or "upgrade" in request.headers:
        door.pass_by(f"{request.method} {request.url}: a stream cannot be written down")
        return None
    return plain_http.call(request.method, str(request.url), body)


async def _body(payload: Any) -> bytes | None:
    if not payload:
        return b""
    if isinstance(payload, bytes):
        return payload
    kind = type(payload).__name__
    if isinstance(value := getattr(payload, "_value", None), bytes):
        return value
    if kind == "AsyncIterablePayload" or not hasattr(payload, "as_bytes"):
        return None
    return bytes(await payload.as_bytes())


async def _enter(request: Any) -> Passage | None:
    doorman = plain_http.doorman(request.url.host, request.url.port)
    if doorman is None:
        return None
    try:
        call = await _call(request)
    except Exception:  # our failure is never the agent's
        alarms.pass_on()
        _log.debug("reenact could not read a request", exc_info=True)
        return None
    return None if call is None else plain_http.opened(doorman, call)


def _connect(original: Any) -> Any:
    @wraps(original)
    async def connect(self: Any, req: Any, *args: Any, **kwargs: Any) -> Any:
        passage = await _enter(req)
        if passage is None:
            return await original(self, req, *args, **kwargs)
        answer = passage.answer
        if answer is not None:
            if isinstance(answer, Raised) and not _failed_receiving(answer):
                raise await _failure(passage, answer)
            return _Standing(passage)
        try:
            with passage.crossing(), lanes.aside():
                connection = await original(self, req, *args, **kwargs)
        except BaseException as error:
            passage.raised(error)
            raise
        vars(connection)[_PASSAGE] = passage
        return connection

    return connect


async def _receive_response(original: Any, response: Any, connection: Any) -> Any:
    """Wait for a response; the name of this frame tells in a recorded stack trace that the request was sent."""
    return await original(response, connection)


def _failed_receiving(answer: Raised) -> bool:
    return f"in {_receive_response.__name__}\n" in answer.exception.stacktrace


async def _failure(passage: Passage, answer: Raised) -> BaseException:
    try:
        await passage.wait_async(passage.end_order)
        if was_cancelled(answer):
            await until_cancelled(passage)
    except BaseException as error:
        passage.raised(error)
        raise
    error = plain_http.failure(answer.exception)
    passage.raised(error)
    return error


def _start(original: Any) -> Any:
    @wraps(original)
    async def start(self: Any, connection: Any) -> Any:
        if isinstance(connection, _Standing):
            return await _answered(self, connection)
        passage: Passage | None = connection.__dict__.pop(_PASSAGE, None)
        if passage is None:
            return await original(self, connection)
        try:
            with passage.crossing(), lanes.aside():
                response = await _receive_response(original, self, connection)
        except BaseException as error:
            passage.raised(error)
            raise
        pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in self.raw_headers]
        headers = plain_http.reply_headers(pairs, self.status, self.reason, decoded=True)
        _tee(self.content, Telling(passage, self.status, headers, whole=False))
        return response

    return start


async def _answered(response: Any, connection: _Standing) -> Any:
    """Fill a response as aiohttp does, from the recording."""
    from aiohttp import HttpVersion11
    from multidict import CIMultiDict, CIMultiDictProxy

    passage = connection.passage
    answer = passage.answer
    match answer:
        case Raised():
            raise await _failure(passage, answer)
        case Returned(payload=HttpReply(status=status, headers=headers)):
            await passage.wait_async(passage.end_order)
            passage.closed(answer)
        case Streamed(status=status, headers=headers):
            await passage.wait_async(passage.head_order)
            passage.head(status, headers)
        case other:
            raise passage.miss(f"the recording holds no reply for this call ({type(other).__name__.lower()})")
    pairs, reason = plain_http.split_reason(headers, status)
    raw = tuple((name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in pairs)
    content = _recorded()(connection, answer, bodiless=response.method == "HEAD")
    filled = {
        "_closed": False,
        "_protocol": connection.protocol,
        "_connection": connection,
        "_headers": CIMultiDictProxy(CIMultiDict(pairs)),
        "_raw_headers": raw,
        "version": HttpVersion11,
        "status": status,
        "reason": reason,
        "content": content,
    }
    for name, value in filled.items():
        setattr(response, name, value)
    _set_cookies(response, tuple(value for name, value in pairs if name.lower() == "set-cookie"))
    content.on_eof(getattr(response, "_response_eof"))  # noqa: B009 - private, and what `start` does
    return response


def _set_cookies(response: Any, headers: tuple[str, ...]) -> None:
    if not headers:
        return
    if hasattr(response, "_raw_cookie_headers"):
        setattr(response, "_raw_cookie_headers", headers)  # noqa: B010 - private, and what `start` does
    else:  # before 3.12.7
        for header in headers:
            response.cookies.load(header)


class _Nowhere(asyncio.Transport):
    """Takes a request, whose question was asked already."""

    def write(self, data: Any) -> None:
        """Take it."""

    def writelines(self, list_of_data: Any) -> None:
        """Take them."""

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        """Have nothing to close."""

    abort = pause_reading = resume_reading = close


class _Standing:
    """Stands where a connection would: the request goes nowhere, the response comes from the recording."""

    force_close = False

    def __init__(self, passage: Passage) -> None:
        from aiohttp.client_proto import ResponseHandler

        self.passage = passage
        self.protocol: Any = ResponseHandler(loop=asyncio.get_running_loop())
        self.protocol.connection_made(_Nowhere())
        self.transport, self._connector, self.closed = self.protocol.transport, self, False

    def add_callback(self, callback: Callable[[], None]) -> None:
        """Hold no connection that could be given back."""

    def close(self) -> None:
        """Let go of the timers that aiohttp set."""
        self.closed = True
        self.protocol.close()

    release = close


if TYPE_CHECKING:

    class _Reader:
        """What is used of aiohttp's `StreamReader`, which stands behind ours where a class is made of both."""

        def __init__(self, *args: Any, **kwargs: Any) -> None: ...
        def _read_nowait_chunk(self, n: int) -> bytes: ...
        def _read_nowait(self, n: int) -> bytes: ...
        async def read(self, n: int = -1) -> bytes: ...
        async def _wait(self, func_name: str) -> None: ...
        def at_eof(self) -> bool: ...
        def feed_data(self, data: bytes) -> bool: ...
        def feed_eof(self) -> None: ...
        def set_exception(self, exc: Any, *args: Any) -> None: ...

else:
    _Reader = object


class _Told:
    """What the tee of one response remembers."""

    __slots__ = ("busy", "telling")

    def __init__(self, telling: Telling) -> None:
        self.telling, self.busy = telling, False


def _tee(reader: Any, telling: Telling) -> None:
    """Tell what leaves the reader of a live response. The reader has slots, so its class is what can be changed."""
    if reader.at_eof():
        telling.end(StreamEnd.FINISHED)
        return
    try:
        bases: tuple[type[Any], ...] = (_Teeing, reader.__class__)
        reader.__class__ = type("StreamReader", bases, {"__slots__": (), "tee": _Told(telling)})
    except TypeError:  # a reader of another making, or of a later aiohttp
        _log.debug("reenact cannot tee a reader of aiohttp's", exc_info=True)
        door.pass_by("a reply of aiohttp's whose body could not be read along")
        telling.end(StreamEnd.UNFINISHED)


class _Teeing(_Reader):
    """Before a stream reader's class: tells each piece as the agent takes it."""

    __slots__ = ()
    tee: ClassVar[_Told]

    def _read_nowait_chunk(self, n: int) -> bytes:
        return self._taking(super()._read_nowait_chunk, n)

    def _read_nowait(self, n: int) -> bytes:
        return self._taking(super()._read_nowait, n)

    def _taking(self, take: Callable[[int], bytes], n: int) -> bytes:
        tee = self.tee
        if tee.busy:
            return take(n)
        tee.busy = True
        try:
            data = take(n)
        finally:
            tee.busy = False
        tee.telling.piece(data)
        self._tell_end()
        return data

    async def read(self, n: int = -1) -> bytes:
        tee = self.tee
        if n >= 0 or tee.busy:
            return await super().read(n)
        tee.busy = True  # the agent gets one piece
        try:
            data = await super().read(n)
        finally:
            tee.busy = False
        tee.telling.piece(data)
        self._tell_end()
        return data

    async def _wait(self, func_name: str) -> None:
        try:
            await super()._wait(func_name)
        except BaseException as error:
            self.tee.telling.end(StreamEnd.RAISED, error)
            raise

    def _tell_end(self) -> None:
        if not self.tee.busy and self.at_eof():
            self.tee.telling.end(StreamEnd.FINISHED)

    def feed_eof(self) -> None:
        super().feed_eof()
        if not self.tee.busy and self.at_eof():
            self.tee.telling.end_later()
        self._tell_end()

    def set_exception(self, exc: Any, *args: Any) -> None:
        left = type(exc).__name__ == "ClientConnectionError" and str(exc) == "Connection closed"
        self.tee.telling.end(StreamEnd.ABANDONED if left else StreamEnd.RAISED, None if left else exc)
        super().set_exception(exc, *args)

    def __del__(self) -> None:
        self.tee.telling.end(StreamEnd.ABANDONED)


class _Recorded(_Reader):
    """Before a stream reader's class: gives what was recorded, each piece in its turn."""

    def __init__(self, connection: _Standing, answer: Outcome, *, bodiless: bool) -> None:
        super().__init__(connection.protocol, _BUFFER, loop=asyncio.get_running_loop())
        self._passage, self._answer, self._open = connection.passage, answer, isinstance(answer, Streamed)
        self._pieces: Iterator[Chunk] = iter(answer.chunks if isinstance(answer, Streamed) else ())
        self._rest_count = len(answer.chunks) if isinstance(answer, Streamed) else 0
        self._ends_later = bool(self._passage.recorded(ENDED_LATER))
        if isinstance(answer, Returned):
            payload = answer.payload
            self.feed_data(payload.body.data if isinstance(payload, HttpReply) and not bodiless else b"")
            self.feed_eof()
        elif isinstance(answer, Streamed) and not self._rest_count and answer.end is StreamEnd.FINISHED:
            self._finish(StreamEnd.FINISHED)

    async def _wait(self, func_name: str) -> None:
        del func_name
        chunk = next(self._pieces, None)
        if chunk is None:
            await self._come_to_the_end()
            return
        await self._passage.wait_async(chunk.order)
        self._rest_count -= 1
        self._passage.chunk(chunk.data or b"")
        self.feed_data(chunk.data or b"")
        is_finished = isinstance(self._answer, Streamed) and self._answer.end is StreamEnd.FINISHED
        if is_finished and not self._rest_count and not self._ends_later:
            self._finish(StreamEnd.FINISHED)

    async def _come_to_the_end(self) -> None:
        answer, passage = self._answer, self._passage
        if self._ends_later:
            await passage.wait_async(passage.end_order)
            self._finish(StreamEnd.FINISHED)
            return
        if not isinstance(answer, Streamed) or answer.exception is None:
            self._finish(StreamEnd.ABANDONED)
            raise passage.miss("the agent reads on where the recorded run left this reply")
        if was_cancelled(answer):
            await until_cancelled(passage)
        await passage.wait_async(passage.end_order)
        error = plain_http.failure(answer.exception)
        self._finish(StreamEnd.RAISED, error)
        self.set_exception(error)
        raise error

    def _finish(self, end: StreamEnd, error: BaseException | None = None) -> None:
        if self._open:
            self._open = False
            self._passage.ended(end, error)
        if end is StreamEnd.FINISHED:
            self.feed_eof()

    def __del__(self) -> None:
        if self._open:
            self._finish(StreamEnd.ABANDONED)


@cache
def _recorded() -> type[Any]:
    from aiohttp import StreamReader

    return type("StreamReader", (_Recorded, StreamReader), {})


def _install(patches: PatchSet) -> None:
    def cut_connector(module: Any) -> None:
        patches.replace(module.BaseConnector, "connect", _connect)

    def cut_response(module: Any) -> None:
        patches.replace(module.ClientResponse, "start", _start)

    patches.when_imported("aiohttp.connector", cut_connector)
    patches.when_imported("aiohttp.client_reqrep", cut_response)


INTEGRATION = Integration(
    name="aiohttp_client",
    libraries=("aiohttp",),
    install=_install,
    hooks=("aiohttp.connector", "aiohttp.client_reqrep"),
)
