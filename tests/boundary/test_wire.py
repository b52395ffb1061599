"""What `http.client` makes of any reply, whole or broken, it makes again of what was told while it read."""

from __future__ import annotations

import http.client
import io
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.boundary import wire
from reenact.values import typed
from reenact.values.call import Body, Chunk, HttpReply, Outcome, Returned, Streamed, StreamEnd


class Told:
    """A passage that keeps what it is told, to be answered with."""

    def __init__(self, answer: Outcome | None = None) -> None:
        self.answer = answer
        self.head_order = self.end_order = self.took_s = None
        self.chunks: list[bytes] = []
        self.opened: tuple[int, tuple[tuple[str, str], ...]] | None = None
        self.outcome: Outcome | None = None

    def crossing(self) -> Any:
        return nullcontext()

    def wait(self, order: int | None) -> None:
        """Wait for nothing."""

    def head(self, status: int, headers: tuple[tuple[str, str], ...]) -> None:
        self.opened = (status, headers)

    def chunk(self, data: bytes | None = None, **_: object) -> None:
        assert self.outcome is None, "a piece after the end"
        self.chunks.append(data or b"")

    def replied(self, status: int, headers: tuple[tuple[str, str], ...], body: bytes) -> None:
        self.closed(Returned(payload=HttpReply(status=status, headers=headers, body=Body(body))))

    def closed(self, outcome: Outcome) -> None:
        assert self.outcome is None
        self.outcome = outcome

    def raised(self, error: BaseException) -> None:
        raise AssertionError(error)

    def ended(self, end: StreamEnd, error: BaseException | None = None, **_: object) -> None:
        assert self.outcome is None, "ended twice"
        assert self.opened is not None
        status, headers = self.opened
        chunks = tuple(Chunk(offset_us=0, order=0, data=data) for data in self.chunks)
        exception = typed.encode_exception(error) if error is not None else None
        self.outcome = Streamed(status=status, headers=headers, chunks=chunks, end=end, exception=exception)

    def miss(self, reason: str) -> BaseException:
        return AssertionError(reason)


class Wire:
    """A socket that gives these bytes, and nothing more."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, *_: object) -> io.BufferedReader:
        return io.BufferedReader(io.BytesIO(self._data))  # type: ignore[arg-type]


@st.composite
def replies(draw: st.DrawFn) -> bytes:
    """Draw a reply in each framing, perhaps cut short."""
    pieces = draw(st.lists(st.binary(min_size=1, max_size=40), max_size=6))
    body = b"".join(pieces)
    framing = draw(st.sampled_from(["length", "chunked", "end"]))
    head = b"HTTP/1.1 200 Fine\r\nX-A: 1\r\n"
    if framing == "length":
        data = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    elif framing == "chunked":
        data = head + b"Transfer-Encoding: chunked\r\n\r\n"
        data += b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    else:
        data = head + b"\r\n" + body
    begins = data.index(b"\r\n\r\n") + 4
    return data[: draw(st.integers(begins, len(data)))] if draw(st.booleans()) else data


READS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(0, 50)),
        st.tuples(st.just("read"), st.none()),
        st.tuples(st.just("read1"), st.integers(1, 50)),
        st.tuples(st.just("readline"), st.just(-1)),
        st.tuples(st.just("readinto"), st.integers(1, 50)),
    ),
    max_size=8,
)


def read(response: Any, how: list[tuple[str, int | None]]) -> list[Any]:
    """Read as an agent might, and take down what it got."""
    got: list[Any] = []
    for method, argument in how:
        try:
            if method == "readinto":
                buffer = bytearray(argument or 0)
                got.append(bytes(buffer[: response.readinto(buffer)]))
            else:
                got.append(getattr(response, method)(*(() if argument is None else (argument,))))
        except (http.client.HTTPException, OSError, ValueError) as error:
            got.append((type(error), str(error), getattr(error, "partial", None)))
            break
    return got


def begun(socket: Any) -> Any:
    response = http.client.HTTPResponse(socket, method="GET")
    response.begin()
    return response


class Connection:
    """What the exchange needs of a connection."""

    sock: Any = None


@given(replies(), READS, st.booleans())
def test_what_was_read_is_read_again(data: bytes, how: list[tuple[str, int | None]], whole: bool) -> None:  # noqa: FBT001 - hypothesis
    if whole:  # said of agents that get the body in one piece
        how = [("read", None)]
    bare = read(begun(Wire(data)), how)
    told = Told()
    exchange = wire.Exchange(told, whole=whole, decoded=True, tells_failure=True)  # type: ignore[arg-type]
    live = exchange.respond(Connection(), lambda _: begun(Wire(data)))
    assert read(live, how) == bare
    live.close()
    assert isinstance(told.outcome, Returned | Streamed)
    again = Told(told.outcome)
    socket = wire.RecordedSocket(again, "GET")  # type: ignore[arg-type]
    replayed = begun(socket)
    assert (replayed.status, replayed.reason, replayed.getheaders()) == (live.status, live.reason, live.getheaders())
    assert read(replayed, how) == bare
    replayed.close()
    assert kind(again.outcome) == kind(told.outcome)


def kind(outcome: Outcome | None) -> Any:
    return (type(outcome), outcome.end) if isinstance(outcome, Streamed) else type(outcome)


@pytest.mark.parametrize(
    ("parts", "url"),
    [
        (("http", "host", 80, "/a?b"), "http://host/a?b"),
        (("https", "host", 443, "/"), "https://host/"),
        (("https", "host", 8443, "/"), "https://host:8443/"),
        (("http", "::1", 8080, "/"), "http://[::1]:8080/"),
        (("http", "proxy", 3128, "http://far.example/x"), "http://far.example/x"),
        (("http", "host", 80, "/go?to=http://elsewhere/"), "http://host/go?to=http://elsewhere/"),
    ],
)
def test_the_address_of_a_request(parts: tuple[str, str, int, str], url: str) -> None:
    assert wire.full_url(*parts) == url
