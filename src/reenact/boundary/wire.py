"""HTTP/1.1 on the wire, for libraries that stand on `http.client`: what is read is told, and a recording is read again.

While recording, a response's own file is read through `Tee`, behind the headers: it sees each piece that the library
takes, follows the framing (RFC 9112, section 6) and tells the payload. In a replay `RecordedSocket` gives the library
the bytes of a response made of what was recorded, so that parsing, errors and objects are all its own.
"""

from __future__ import annotations

import http.client
import io
from collections.abc import Iterator
from typing import Any, Final

from reenact.boundary import plain_http
from reenact.boundary.decoding import Decoder, decoder_for
from reenact.boundary.plain_http import Telling
from reenact.contracts.doorman import Passage
from reenact.values import alarms
from reenact.values.call import HttpReply, Raised, Returned, Streamed, StreamEnd

RECEIVING: Final = "_receive_response"
"""The name of the frame that tells in a recorded stack trace that a failure came after the request was sent."""
_EXCHANGE: Final = "_reenact_exchange"
_ANY: Final = 0
"""Asked for as much as there is."""
_CUT_SHORT: Final = "the connection ended before the body did"
"""Of a chunked body the error also says how many bytes of its last chunk are missing, and whether any came."""


class Exchange:
    """One request and its reply on one connection of `http.client`."""

    def __init__(self, passage: Passage, *, whole: bool, decoded: bool, tells_failure: bool) -> None:
        self.passage, self._whole, self._decoded, self._tells_failure = passage, whole, decoded, tells_failure

    def attach(self, connection: Any) -> None:
        """Wait on the connection for its response."""
        connection.__dict__[_EXCHANGE] = self

    def respond(self, connection: Any, original: Any) -> Any:
        """Get the response from the outside world, to be told as it is read, or from the recording."""
        passage = self.passage
        answer = passage.answer
        if answer is None:
            try:
                with passage.crossing():
                    response = _receive_response(connection, original)
            except BaseException as error:
                if self._tells_failure:
                    passage.raised(error)
                raise
            self._tee(response)
            return response
        if isinstance(answer, Raised):  # the outside world took the request and failed then
            passage.wait(passage.end_order)
            error = plain_http.failure(answer.exception, passage)
            passage.raised(error)
            raise error
        with passage.crossing():
            response = original(connection)
        if connection.sock is not None and not response.will_close:
            connection.sock = None  # nothing stands behind it for a next request
        return response

    def _tee(self, response: Any) -> None:
        header_pairs = [(str(name), str(value)) for name, value in response.headers.items()]
        coding = response.headers.get("content-encoding", "")
        safe_headers = plain_http.reply_headers(
            header_pairs,
            response.status,
            response.reason,
            decoded=self._decoded,
            recorded=self.passage.answer is not None,
        )
        telling = Telling(self.passage, response.status, safe_headers, whole=self._whole)
        decoder = decoder_for({"content-encoding": coding if self._decoded else ""})
        encoded = bool(coding) and self._decoded
        length = None if response.chunked else response.length
        if response.fp is None:
            telling.end(StreamEnd.FINISHED)
            return
        response.fp = Tee(response.fp, telling, decoder, length, chunked=response.chunked, encoded=encoded)


def taken_from(connection: Any) -> Exchange | None:
    """Take the exchange that waits on a connection."""
    return connection.__dict__.pop(_EXCHANGE, None)


def _receive_response(connection: Any, original: Any) -> Any:
    return original(connection)


def failed_receiving(answer: Raised) -> bool:
    """Tell whether a recorded failure came after the request was sent."""
    return f"in {RECEIVING}\n" in answer.exception.stacktrace


class Tee:
    """The file behind a response, as `http.client` and urllib3 read it; each piece is told before it is given."""

    def __init__(
        self, file: Any, telling: Telling, decoder: Decoder, length: int | None, *, chunked: bool, encoded: bool
    ) -> None:
        self._file, self._telling, self._decoder, self._encoded = file, telling, decoder, encoded
        self._rest_size = length
        """Bytes of the body, or of the chunk, that are still to come; None until the end of the connection."""
        self._byte_count = 0
        self._chunked = chunked
        if chunked:
            self._rest_size = 0
        elif length == 0:
            self._telling.end(StreamEnd.FINISHED)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def read(self, size: int | None = -1) -> bytes:
        """Read a piece of the body."""
        if size == 0:
            return b""
        return self._took(self._reading(self._file.read, size), -1 if size is None else size)

    def read1(self, size: int = -1) -> bytes:
        """Read what is there."""
        return self._took(self._reading(self._file.read1, size), _ANY)

    def readinto(self, buffer: Any) -> int:
        """Read a piece of the body into a buffer."""
        count = self._reading(self._file.readinto, buffer) or 0
        self._took(bytes(memoryview(buffer)[:count]), len(memoryview(buffer)))
        return count

    def readline(self, limit: int = -1) -> bytes:
        """Read a line: of the chunked framing, or of a body that the agent reads by lines."""
        line = self._reading(self._file.readline, limit)
        if not self._chunked:
            ended = not line.endswith(b"\n") and (limit < 0 or len(line) < limit)
            return self._took(line, -1 if ended else _ANY)
        if self._rest_size == 0 and line.strip():
            self._opens_chunk(line)
        elif not line:
            self._end(StreamEnd.RAISED, EOFError(_CUT_SHORT))
        return line

    def _opens_chunk(self, line: bytes) -> None:
        try:
            self._rest_size = int(line.split(b";")[0], 16)
        except ValueError:
            return
        if self._rest_size == 0:
            self._end(StreamEnd.FINISHED)

    def close(self) -> None:
        """Hear that nobody reads on."""
        self._file.close()
        self._end(StreamEnd.ABANDONED)

    def _reading(self, read: Any, argument: Any) -> Any:
        try:
            return read(argument)
        except BaseException as error:
            self._end(StreamEnd.RAISED, error)
            raise

    def _took(self, data: bytes, wanted: int) -> bytes:
        if self._chunked:
            self._took_of_chunk(data, wanted)
            return data
        self._byte_count += len(data)
        if self._rest_size is not None:
            self._rest_size -= len(data)
        self._tell(data)
        ended = not data or len(data) < wanted or wanted < 0
        if self._rest_size == 0 or (self._rest_size is None and ended):
            self._end(StreamEnd.FINISHED)
        elif self._rest_size and ended:
            self._end(StreamEnd.RAISED, self._cut_short(self._rest_size))
        return data

    def _cut_short(self, missing: int) -> Exception:
        """Say how a body ended that was promised longer. Decoded it has no promise that tells, so the error has to."""
        return http.client.IncompleteRead(bytes(self._byte_count), missing) if self._encoded else EOFError(_CUT_SHORT)

    def _took_of_chunk(self, data: bytes, wanted: int) -> None:
        if not self._rest_size:  # the line's end behind a chunk
            if len(data) < wanted:
                self._end(StreamEnd.RAISED, EOFError(_CUT_SHORT, 0, True))
            return
        self._tell(data[: self._rest_size])
        self._rest_size -= min(len(data), self._rest_size)
        if not data or len(data) < wanted:
            self._end(StreamEnd.RAISED, EOFError(_CUT_SHORT, self._rest_size, bool(data)))

    def _tell(self, data: bytes) -> None:
        try:
            self._telling.piece(self._decoder.decode(data))
        except Exception:  # a broken coding is the agent's to meet, and cannot be kept decoded
            alarms.pass_on()
            self._telling.end(StreamEnd.UNFINISHED)

    def _end(self, end: StreamEnd, error: BaseException | None = None) -> None:
        self._telling.end(end, error)

    def __del__(self) -> None:
        self._end(StreamEnd.ABANDONED)


class RecordedSocket:
    """Stands where a connection's socket would: swallows the request, and gives the recorded response."""

    def __init__(self, passage: Passage, method: str) -> None:
        self._passage, self._method = passage, method

    def sendall(self, data: Any) -> None:
        """Take the request, whose question was asked already."""

    def makefile(self, *_: Any, **__: Any) -> Any:
        """Open the recorded response, from its status line."""
        return io.BufferedReader(_Recorded(self._passage, self._method))

    def settimeout(self, seconds: float | None) -> None:
        """Take any limit: a recording keeps nobody waiting for longer than it does."""

    def gettimeout(self) -> None:
        """Give no limit."""

    def setsockopt(self, *_: Any) -> None:
        """Take any option."""

    def shutdown(self, how: int) -> None:
        """Have nothing to shut down."""

    def close(self) -> None:
        """Have nothing to close."""


class _Recorded(io.RawIOBase):
    """The bytes of a recorded response, each piece of the body released in its turn."""

    def __init__(self, passage: Passage, method: str) -> None:
        self._passage = passage
        self._has_ended = False
        self._rest = b""
        self._segments = _segments(self, passage, method)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = next(self._segments, b"")
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

    def end(self, end: StreamEnd, error: BaseException | None = None) -> None:
        """Tell the end of a stream, once."""
        if not self._has_ended and isinstance(self._passage.answer, Streamed):
            self._has_ended = True
            self._passage.ended(end, error)

    def close(self) -> None:
        """Hear that nobody reads on."""
        if not self.closed:
            self.end(StreamEnd.ABANDONED)
        super().close()


def _segments(file: _Recorded, passage: Passage, method: str) -> Iterator[bytes]:
    match passage.answer:
        case Returned(payload=HttpReply(status=status, headers=headers, body=body)) as answer:
            passage.wait(passage.end_order)
            passage.closed(answer)
            yield _head(status, headers if method == "HEAD" else _fitting(headers, len(body.data)))
            if method != "HEAD":
                chunked = _is_chunked(headers)
                yield _framed(body.data) + _LAST_CHUNK if chunked else body.data
        case Streamed(status=status, headers=headers) as answer:
            passage.wait(passage.head_order)
            passage.head(status, headers)
            bodiless = method == "HEAD" or status in {204, 304}
            if bodiless or (not answer.chunks and answer.end is StreamEnd.FINISHED):
                file.end(answer.end)
            if not bodiless and answer.end is StreamEnd.FINISHED:
                headers = _fitting(headers, sum(len(chunk.data or b"") for chunk in answer.chunks))
            yield _head(status, headers)
            if not bodiless:
                yield from _pieces(file, passage, answer, chunked=_is_chunked(headers))
        case other:
            raise passage.miss(f"the recording holds no reply for this call ({type(other).__name__.lower()})")


def _pieces(file: _Recorded, passage: Passage, answer: Streamed, *, chunked: bool) -> Iterator[bytes]:
    last = len(answer.chunks) - 1
    missing, begun = _missing(answer)
    for number, chunk in enumerate(answer.chunks):
        passage.wait(chunk.order)
        data = chunk.data or b""
        passage.chunk(data)
        if number == last and not chunked and answer.end is StreamEnd.FINISHED:
            file.end(StreamEnd.FINISHED)  # with its last byte the body is whole, and nobody asks for more
        if chunked:
            yield b"%x\r\n%b" % (len(data) + missing, data) if begun and number == last else _framed(data)
        else:
            yield data
    if answer.end is not StreamEnd.ABANDONED:
        passage.wait(passage.end_order)
    if answer.end is StreamEnd.FINISHED:
        file.end(StreamEnd.FINISHED)
        if chunked:
            yield _LAST_CHUNK
    else:
        yield from _broken_off(file, passage, answer, chunked=chunked)


def _broken_off(file: _Recorded, passage: Passage, answer: Streamed, *, chunked: bool) -> Iterator[bytes]:
    """Come to an end that is none: the recorded failure, or a miss where the agent reads on."""
    if answer.end is StreamEnd.RAISED and answer.exception is not None:
        error = plain_http.failure(answer.exception)
        file.end(StreamEnd.RAISED, error)
        missing, begun = _missing(answer)
        if missing and not begun:
            yield b"%x\r\n" % missing
        if not isinstance(error, EOFError):  # what the library makes of a connection that ends is its own
            raise error
        return
    if chunked:
        yield b"1\r\n"  # to look whether more comes is not to read it
    file.end(StreamEnd.ABANDONED)
    pieces = f"({answer.end}), after {len(answer.chunks)} pieces"
    raise passage.miss(f"the agent reads on where the recorded run left this reply {pieces}")


def _missing(answer: Streamed) -> tuple[int, bool]:
    """Say how many bytes of its last chunk a broken connection kept, and whether it kept the end of one that began."""
    match answer.exception.args if answer.exception is not None else None:
        case [_, int(missing), bool(begun)]:
            return missing, begun
        case _:
            return 0, False


def _fitting(headers: tuple[tuple[str, str], ...], length: int) -> tuple[tuple[str, str], ...]:
    """Promise the length that the body has now: redaction may have changed it."""
    return tuple((name, str(length) if name.lower() == "content-length" else value) for name, value in headers)


def _is_chunked(headers: tuple[tuple[str, str], ...]) -> bool:
    return any(name.lower() == "transfer-encoding" and value.lower() == "chunked" for name, value in headers)


def _framed(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


def _head(status: int, headers: tuple[tuple[str, str], ...]) -> bytes:
    header_pairs, reason = plain_http.split_reason(headers, status)
    lines = [f"HTTP/1.1 {status} {reason}", *(f"{name}: {value}" for name, value in header_pairs), "", ""]
    return "\r\n".join(lines).encode("latin-1", "replace")


_LAST_CHUNK: Final = b"0\r\n\r\n"


def full_url(scheme: str, host: str, port: int | None, target: str) -> str:
    """Make the absolute URL of a request; the target may be one already, as proxies get it."""
    if "://" in target.partition("?")[0]:
        return target
    host_part = f"[{host}]" if ":" in host and not host.startswith("[") else host
    usual = port in (None, {"http": 80, "https": 443}.get(scheme))
    return f"{scheme}://{host_part}{target}" if usual else f"{scheme}://{host_part}:{port}{target}"


def request_of(connection: http.client.HTTPConnection) -> tuple[str, str, int | None]:
    """Give scheme, host and port that a connection speaks to in the end, a tunnel's far side."""
    attributes: dict[str, Any] = vars(connection)
    host = attributes.get("_tunnel_host")
    scheme = "https" if isinstance(connection, http.client.HTTPSConnection) else "http"
    return (scheme, str(host), attributes.get("_tunnel_port")) if host else (scheme, connection.host, connection.port)
