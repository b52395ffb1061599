"""Messages of a websocket as pieces of a stream, and the server that says them: held against the real library."""

from __future__ import annotations

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reenact.boundary.websocket_messages import Message, decode, encode
from reenact.boundary.websocket_server import Server

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.sampled_from(["sent", "received", "late"]), TEXTS | st.binary())
@example("received", "data: \n\nevent: sent\r\n")
@example("sent", b"a text\r\nof bytes")
def test_a_message_is_read_as_it_was_spelled(way: str, data: str | bytes) -> None:
    message = Message(way=way, data=data)  # type: ignore[arg-type]
    assert decode(encode(message)) == message


@pytest.mark.parametrize(
    "event",
    [
        b"",
        b"event: received",
        b"event: asked\ndata: x\n\n",
        b"received\ndata: x\n\n",
        b"event: received\nx\n\n",
        b"event: sent json\ndata: {\n\n",
        b"event: sent bytes base64\ndata: ~~~\n\n",
    ],
)
def test_what_is_no_message_is_none(event: bytes) -> None:
    assert decode(event) is None


@given(st.lists(TEXTS | st.binary(), max_size=5))
@example(["x" * 200, b"y" * 70_000])
def test_a_real_client_reads_what_the_server_says(messages: list[str | bytes]) -> None:
    client = pytest.importorskip("websockets.sync.client")
    server = Server(101, [("x-served-by", "recorded")])
    with client.connect("ws://shop.example/feed", sock=server.client, max_size=None) as connection:
        assert connection.response.headers["x-served-by"] == "recorded"
        connection.ping().wait(10)
        for message in messages:
            server.say(message)
        assert [connection.recv() for _ in messages] == messages
        server.close(4000, "enough")
        with pytest.raises(Exception, match="4000"):
            connection.recv(timeout=10)


def test_a_refused_handshake_is_refused_in_the_recorded_words() -> None:
    client = pytest.importorskip("websockets.sync.client")
    server = Server(403, [("content-type", "text/plain"), ("content-length", "99")], b"not you")
    with pytest.raises(Exception, match="403") as caught:
        client.connect("ws://shop.example/feed", sock=server.client)
    assert caught.value.response.body == b"not you"


def test_a_client_that_goes_in_the_middle_of_a_frame_ends_the_server() -> None:
    server = Server(101, [])
    server.client.sendall(b"GET / HTTP/1.1\r\nSec-WebSocket-Key: x\r\n\r\n")
    assert server.client.recv(12) == b"HTTP/1.1 101"
    server.client.sendall(struct.pack("!BB", 0x81, 0xFE))
    server.client.close()
    server.say("nobody hears it")
