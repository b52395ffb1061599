"""Programs that talk over websockets, by the real library: what passed is recorded, and comes again with no server."""

from __future__ import annotations

import json
import shutil
import ssl
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from desk import Desk

SECRET = ("you sk-proj-abcdef", "ghijklmnopqrstuvwxyz0123456789")
BLOCKING = """
import sys
from websockets.sync.client import connect

with connect(sys.argv[1] + "/feed", additional_headers={"x-who": "agent"}) as feed:
    feed.send("tea")
    print(feed.recv())
    feed.send(bytes([0, 255]))
    print(feed.recv())
    feed.send(["frag", "ments"])
    print([*feed.recv_streaming()])
    feed.send("slow")
    try:
        feed.recv(timeout=0.1)
    except TimeoutError as error:
        print("late:", error)
    print(feed.recv())
    feed.send("close")
    print([*feed], feed.protocol.close_code, feed.protocol.close_reason)
left_open = connect(sys.argv[1] + "/feed")
left_open.send("milk")
print(left_open.recv())
try:
    connect(sys.argv[1] + "/refused")
except Exception as error:
    print(type(error).__name__, error.response.status_code)
try:
    connect("ws://127.0.0.1:1/")
except OSError as error:
    print(type(error).__name__)
"""
ASYNCIO = """
import asyncio, sys
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

async def main():
    async with connect(sys.argv[1] + "/feed") as feed:
        async def read():
            async for message in feed:
                print("read", message)
        reader = asyncio.create_task(read())
        for number in range(3):
            await feed.send(f"item {number}")
            await asyncio.sleep(0.02)
        await feed.send("close")
        await reader
        print(feed.protocol.close_code, feed.protocol.close_reason)
    async with connect(sys.argv[1] + "/feed") as feed:
        await feed.send("slow")
        try:
            await asyncio.wait_for(feed.recv(), 0.1)
        except TimeoutError:
            print("late")
        print(await feed.recv())
        await feed.send("fail")
        for act in (feed.recv(), feed.send("more")):
            try:
                print(await act)
            except ConnectionClosed as error:
                print(type(error).__name__, error)

asyncio.run(main())
"""
REALTIME = """
import asyncio, sys
from openai import AsyncOpenAI, OpenAI

options = {"api_key": "sk-none", "base_url": sys.argv[1].replace("ws:", "http:") + "/v1"}
question = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Say hello."}]}

async def main():
    text = ""
    async with AsyncOpenAI(**options).realtime.connect(model="gpt-realtime") as talk:
        await talk.conversation.item.create(item=question)
        await talk.response.create()
        async for event in talk:
            text += getattr(event, "delta", "")
            if event.type == "response.done":
                print(text, event.response.usage.total_tokens)
                return

asyncio.run(main())
with OpenAI(**options).realtime.connect(model="gpt-realtime") as talk:
    talk.conversation.item.create(item=question)
    talk.response.create()
    print([event.type for event, _ in zip(talk, range(4))])
"""


class Feed:
    """A server of the real library: it echoes, closes, and speaks as OpenAI's realtime API does."""

    def __init__(self) -> None:
        from websockets.sync.server import serve

        self.asked: list[Any] = []
        self._server = serve(self._talk, "127.0.0.1", 0, process_request=self._refuse)
        self.url = f"ws://127.0.0.1:{self._server.socket.getsockname()[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Serve no more."""
        self._server.shutdown()

    def _refuse(self, connection: Any, request: Any) -> Any:
        self.asked.append(request.path)
        return connection.respond(403, "not you\n") if request.path == "/refused" else None

    def _talk(self, connection: Any) -> None:
        pause = threading.Event()
        for message in connection:
            self.asked.append(message)
            if message == "close":
                connection.close(1000, "as asked")
            elif message == "fail":
                connection.close(4001, "cannot")
            elif isinstance(message, str) and message.startswith("{"):
                self._model(connection, json.loads(message)["type"])
            else:
                pause.wait(0.6 if message == "slow" else 0)
                connection.send(f"{len(self.asked)}: {message}" if isinstance(message, str) else message[::-1])

    def _model(self, connection: Any, kind: str) -> None:
        place = {"event_id": "e", "response_id": "r", "item_id": "i", "output_index": 0, "content_index": 0}
        usage = {"total_tokens": 30, "input_tokens": 20, "output_tokens": 10}
        events: list[dict[str, Any]] = [{"type": "session.created", "event_id": "e", "session": {"type": "realtime"}}]
        if kind == "response.create":
            events = [{"type": "response.output_text.delta", **place, "delta": text} for text in ("Hello ", *SECRET)]
            events.append({"type": "response.done", "event_id": "e", "response": {"id": "r", "usage": usage}})
        for event in events:
            connection.send(json.dumps(event))


@pytest.fixture
def feed() -> Iterator[Feed]:
    pytest.importorskip("websockets.asyncio.client")
    server = Feed()
    yield server
    server.stop()


@pytest.mark.parametrize(
    ("code", "connections"), [(BLOCKING, 4), (ASYNCIO, 2), (REALTIME, 2)], ids=["blocking", "asyncio", "realtime"]
)
@pytest.mark.parametrize("level", ["", "landlock", "off"], ids=["A", "B", "C"])
def test_a_talk_comes_again_with_no_server(desk: Desk, feed: Feed, code: str, connections: int, level: str) -> None:
    desk.write("agent.py", code)
    live = desk.reenact("run", "--", sys.executable, "agent.py", feed.url)
    assert live.returncode == 0, live.stderr
    assert "replayable: exact" in live.stderr
    asked = [*feed.asked]
    done = desk.reenact("replay", "last", environ={**desk.bare(), "REENACT_ENFORCE": level})
    assert done.returncode == 0, done.stderr
    assert f"same: {connections} http calls answered" in done.stderr
    if code != REALTIME:  # it was given a token in place of a secret
        assert done.stdout == live.stdout
    assert feed.asked == asked


ENCRYPTED = """
import asyncio, ssl, sys
from websockets.asyncio.client import connect
from websockets.sync.client import connect as connect_now

trusted = ssl.create_default_context(cafile="server.pem")

async def main():
    async with connect(sys.argv[1], ssl=trusted) as feed:
        await feed.send("tea")
        print(await feed.recv(), feed.request.headers["Host"])

asyncio.run(main())
with connect_now(sys.argv[1], ssl=trusted) as feed:
    feed.send("milk")
    print(feed.recv(), feed.request.headers["Host"])
"""


def test_an_encrypted_talk_comes_again(desk: Desk) -> None:
    server = pytest.importorskip("websockets.sync.server")
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not here to make a certificate")
    words = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out server.pem -days 2 -subj /CN=localhost"
    made = desk.run([*words.split(), "-addext", "subjectAltName=DNS:localhost"])
    assert made.returncode == 0, made.stderr
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(desk.folder / "server.pem", desk.folder / "key.pem")
    desk.write("agent.py", ENCRYPTED)
    feed = server.serve(lambda talk: [talk.send(f"{each} is there") for each in talk], "localhost", 0, ssl=context)
    with feed:
        threading.Thread(target=feed.serve_forever, daemon=True).start()
        url = f"wss://localhost:{feed.socket.getsockname()[1]}/"
        live = desk.reenact("run", "--", sys.executable, "agent.py", url)
        assert "tea is there" in live.stdout, live.stderr
    done = desk.reenact("replay", "last", environ=desk.bare())
    assert (done.returncode, done.stdout) == (0, live.stdout), done.stderr
    assert "same: 2 http calls answered" in done.stderr


def test_what_the_program_sends_is_part_of_the_question(desk: Desk, feed: Feed) -> None:
    desk.write("agent.py", ASYNCIO)
    assert desk.reenact("run", "--", sys.executable, "agent.py", feed.url).returncode == 0
    desk.write("agent.py", ASYNCIO.replace('f"item {number}"', 'f"item {number % 2}"'))
    done = desk.reenact("replay", "last", environ=desk.bare())
    assert done.returncode == 1
    assert 'message 3: recorded "item 2", replay "item 0"' in done.stderr
    desk.write("agent.py", ASYNCIO.replace("range(3)", "range(4)"))
    assert desk.reenact("replay", "last", environ=desk.bare()).returncode == 1
    desk.write("agent.py", ASYNCIO.replace("range(3)", "range(2)"))
    assert desk.reenact("replay", "last", environ=desk.bare()).returncode == 1


def test_a_secret_over_two_messages_is_written_down_nowhere(desk: Desk, feed: Feed) -> None:
    desk.write("agent.py", REALTIME)
    live = desk.reenact("run", "--", sys.executable, "agent.py", feed.url)
    assert "".join(SECRET) in live.stdout
    for path in desk.folder.rglob("*"):
        if path.is_file() and ".reenact" in path.parts:
            assert not any(half.removeprefix("you ").encode() in path.read_bytes() for half in SECRET), path
