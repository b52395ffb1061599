"""What passes over one websocket: told message by message while recorded, answered by the recorded ones in a replay.

Theory of operation. A connection is one call over HTTP whose answer is a stream (`websocket_messages`): the pieces are
the messages both ways, in the order in which the program sent them or was given them. In a replay the client library
talks to `websocket_server`. A message that the program sends is held against the next one that the recording sent, and
waits for its place among the answers, so that two tasks take turns as they did. When the program asks for a message,
the next recorded one has its turn waited for, is written to the library, and comes out of it as it does from a real
server. Behind the last one the server closes as the recorded one did; where the program did that, nothing comes.

The end of the stream says who closed the connection: `{"by": "server" | "client" | "nobody", "code": …, "reason": …}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, cast
from urllib.parse import urlsplit

from reenact.boundary import plain_http
from reenact.boundary.forgiving import forgive
from reenact.boundary.websocket_messages import Message, decode, encode
from reenact.boundary.websocket_server import SWITCHED, Server
from reenact.contracts.doorman import Passage
from reenact.values import locks
from reenact.values.call import Call, HttpReply, Raised, Returned, Streamed, StreamEnd
from reenact.values.json import Json
from reenact.values.lenient import as_object, as_text

Closer: TypeAlias = Literal["server", "client", "nobody"]
_PORTS: Final = {"ws": 80, "wss": 443}
_EVENTS: Final = ("content-type", "text/event-stream")
"""Says how the pieces are spelled; no handshake has it."""


@dataclass(frozen=True, slots=True)
class Close:
    """How a connection was closed (RFC 6455, 7.1): with no code where it was lost."""

    by: Closer
    code: int = 0
    reason: str = ""

    def to_json(self) -> Json:
        """Spell it for the end of a recorded stream."""
        return {"by": self.by, "code": self.code, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class _Item:
    """A recorded message, and its place among all answers."""

    order: int
    message: Message


def opened(url: str) -> Passage | None:
    """Let a connection in; None where it goes straight through."""
    try:
        parts = urlsplit(url)
        doorman = plain_http.doorman(parts.hostname, parts.port or _PORTS.get(parts.scheme))
        call = None if doorman is None else _call(url)
    except Exception:  # a URL that its client will refuse
        forgive("websocket.call")
        return None
    return None if doorman is None or call is None else plain_http.opened(doorman, call)


def _call(url: str) -> Call:
    return replace(plain_http.call("GET", url, b""), name=f"WEBSOCKET {urlsplit(url).hostname or ''}".strip())


def plain_address(url: str) -> str:
    """Give the address of the same place without TLS: in a replay the other end is in this process."""
    parts = urlsplit(url)
    if parts.scheme != "wss":
        return url
    netloc = parts.netloc if parts.port else f"{parts.netloc}:{_PORTS['wss']}"
    return parts._replace(scheme="ws", netloc=netloc).geturl()


class Talk:
    """One connection, from its handshake on."""

    def __init__(self, passage: Passage) -> None:
        self.passage = passage
        """The connection's call."""
        self._lock = locks.lock()
        self._is_over = False
        self._waiting = 0
        """Messages that were written to the library and not given to the program."""
        answer = passage.answer
        self.is_recorded = answer is not None
        self.server: Server | None = None
        self._left: list[_Item] = []
        self._sent_count = 0
        self._end = Close("nobody")
        if isinstance(answer, Streamed):
            end = as_object(answer.result)
            code = end.get("code")
            by: Closer = "server" if end.get("by") == "server" else "client" if end.get("by") == "client" else "nobody"
            self._end = Close(by, code if isinstance(code, int) else 0, as_text(end.get("reason")))
            items = ((each.order, decode(each.data or b"")) for each in answer.chunks)
            self._left = [_Item(order, message) for order, message in items if message is not None]
            self.is_spoilt = len(self._left) < len(answer.chunks)

    # the handshake

    def begin(self) -> Server:
        """Make the server that stands in for the recorded one, before the handshake. Raises the recorded error."""
        passage, answer = self.passage, self.passage.answer
        match answer:
            case Streamed() if not self.is_spoilt:
                self.server = Server(SWITCHED, answer.headers)
            case Returned(payload=HttpReply(status=status, headers=headers, body=body)):
                self.server = Server(status, headers, body.data)
            case Raised(exception=exception):
                error = plain_http.failure(exception, passage)
                passage.raised(error)
                raise error
            case Streamed():
                raise passage.miss("a recorded message of this websocket cannot be read any more")
            case other:
                raise passage.miss(f"the recording holds no end of this handshake ({type(other).__name__.lower()})")
        return self.server

    @property
    def handshake_order(self) -> int | None:
        """In a replay, the place of the end of the handshake among all answers."""
        passage = self.passage
        return passage.head_order if isinstance(passage.answer, Streamed) else passage.end_order

    def tell_handshake(self, headers: Iterable[tuple[str, str]]) -> None:
        """Tell that the connection is open, with the headers of the server's answer."""
        try:
            kept = plain_http.headers(headers, SWITCHED, None, decoded=False)
            self.passage.head(SWITCHED, (*(pair for pair in kept if pair[0].lower() != _EVENTS[0]), _EVENTS))
        except Exception:
            forgive("websocket.shaken")

    def tell_refusal(self, status: int, headers: Iterable[tuple[str, str]], body: bytes) -> None:
        """Tell that the server answered the handshake with another status than 101."""
        self._is_over = True
        try:
            kept = plain_http.headers(headers, status, None, decoded=False)
            self.passage.replied(status, kept, body)
        except Exception:
            forgive("websocket.refused")

    def tell_failure(self, error: BaseException) -> None:
        """Tell that there was no handshake, or what ended it."""
        if not self._is_over:
            self._is_over = True
            self.passage.raised(error)

    # while it is recorded, and in a replay when a message was sent or given

    def tell_message(self, way: Literal["sent", "received", "late"], data: str | bytes = "") -> None:
        """Tell that a message was sent, or is about to reach the program; `late` that none came in time."""
        if way == "received":
            with self._lock:
                self._waiting = max(0, self._waiting - 1)
        try:
            self.passage.chunk(encode(Message(way=way, data=data)))
        except Exception:
            forgive("websocket.message")

    def tell_close(self, close: Close) -> None:
        """Tell how the connection ended, once. In a replay, messages that were not sent or read by then are told."""
        with self._lock:
            if self._is_over:
                return
            self._is_over = True
            left = len(self._left)
        if left and self.is_recorded:
            answer = self.passage.answer
            count = len(answer.chunks) if isinstance(answer, Streamed) else 0
            self.passage.differs("messages", count, count - left)
        try:
            end = StreamEnd.ABANDONED if close.by == "nobody" else StreamEnd.FINISHED
            self.passage.ended(end, None, close.to_json() if end is StreamEnd.FINISHED else None)
        except Exception:
            forgive("websocket.end")

    def tell_loss(self) -> None:
        """Tell that nobody has the connection any more."""
        self.tell_close(Close("nobody"))

    # in a replay

    def order_to_send(self, data: str | bytes) -> int | None:
        """Give the place of a message that the program sends. Raises a divergence where it sends another.

        None where the recorded server had closed the connection by then.
        """
        with self._lock:
            sends = [each for each in self._left if each.message.way == "sent"]
            item = next((each for each in sends if each.message.data == data), None)
            number, first = self._sent_count, sends[0] if sends else None
        if item is None and first is None and self._end.by == "server":
            return None
        if item is None:
            recorded = None if first is None else _spell(first.message.data)
            error = self.passage.differs(f"message {number + 1}", recorded, _spell(data))
            if error is not None:
                raise error
            if first is None:
                raise self.passage.miss("the program sends a message more than the recording holds")
            item = first
        with self._lock:
            self._sent_count += 1
            if item in self._left:
                self._left.remove(item)
        return item.order

    def next_received(self) -> _Item | None:
        """Give the next message that the program was given, or was not given in time; None where there is none."""
        with self._lock:
            if self._waiting:  # the library has one that nobody took
                return None
            return next((each for each in self._left if each.message.way != "sent"), None)

    def hand_over(self, item: _Item) -> None:
        """Write a message to the library, its turn having come. Raises `TimeoutError` where none came in time."""
        with self._lock:
            if item in self._left:
                self._left.remove(item)
        if item.message.way == "late":
            self.tell_message("late", item.message.data)
            raise TimeoutError(*filter(None, [item.message.data]))
        with self._lock:
            self._waiting += 1
        if self.server is not None:
            self.server.say(item.message.data)

    @property
    def close_order(self) -> int | None:
        """The place at which the recorded server closed the connection; None where it did not, or has more to say."""
        with self._lock:
            has_more = self._waiting or any(each.message.way != "sent" for each in self._left)
            is_next = self._end.by == "server" and not has_more
        return self.passage.end_order if is_next else None

    def close_as_recorded(self) -> None:
        """Close the connection as the recorded server did."""
        if self.server is not None:
            self.server.close(self._end.code, self._end.reason)


def _spell(data: str | bytes) -> Json:
    return data if isinstance(data, str) else {"bytes": data.decode("latin-1")}


def read_message(message: Any) -> tuple[Any, str | bytes | None]:
    """Give a message as the library gets it, and all of it; None where it is none that the library takes.

    A message in fragments is an iterable, which becomes a list.
    """
    if isinstance(message, str):
        return message, message
    if isinstance(message, bytes | bytearray | memoryview):
        octets = bytes(cast("bytes", message))
        return octets, octets
    if not isinstance(message, Iterable) or isinstance(message, Mapping):
        return cast("Any", message), None
    pieces = [*cast("Iterable[Any]", message)]
    if pieces and all(isinstance(each, str) for each in pieces):
        return pieces, "".join(pieces)
    fits = pieces and all(isinstance(each, bytes | bytearray | memoryview) for each in pieces)
    return pieces, b"".join(map(bytes, pieces)) if fits else None
