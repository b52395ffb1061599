"""A model call is a model call, whichever library carries it."""

from __future__ import annotations

import asyncio
import http.client
import json
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import httpx
import pytest
import requests
import urllib3

from held import Held
from reenact.boundary.reading import answered, asked
from reenact.errors import Miss
from reenact.values.call import CallKind
from reenact.values.message import Message, Text

HEADERS = {"content-type": "application/json", "authorization": "Bearer sk-stand-in"}
ANSWER = {
    "id": "c1",
    "object": "chat.completion",
    "created": 1,
    "model": "small-1",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "four"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8},
}


def pieces() -> Iterator[bytes]:
    head: dict[str, Any] = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "small-1"}
    for delta, reason in (({"role": "assistant", "content": "fo"}, None), ({"content": "ur"}, None), ({}, "stop")):
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        yield f"data: {json.dumps({**head, 'choices': [choice]})}\n\n".encode()
    yield f"data: {json.dumps({**head, 'choices': [], 'usage': ANSWER['usage']})}\n\n".encode()
    yield b"data: [DONE]\n\n"


class Provider(BaseHTTPRequestHandler):
    """Answers whole, or as a stream where one is asked for; and says how often it was asked."""

    asked = 0

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        type(self).asked += 1
        stream = body.get("stream") is True
        data = b"".join(pieces()) if stream else json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if stream else "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1/chat/completions"
    server.shutdown()
    server.server_close()


def by_urllib(url: str, body: bytes) -> str:
    with urllib.request.urlopen(urllib.request.Request(url, body, HEADERS)) as reply:
        return reply.read().decode()


def by_http_client(url: str, body: bytes) -> str:
    split = urlsplit(url)
    connection = http.client.HTTPConnection(split.netloc)
    connection.request("POST", split.path, body, HEADERS)
    try:
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def by_aiohttp(url: str, body: bytes) -> str:
    async def post() -> str:
        async with aiohttp.ClientSession() as session, session.post(url, data=body, headers=HEADERS) as reply:
            return await reply.text()

    return asyncio.run(post())


def by_requests_lines(url: str, body: bytes) -> str:
    with requests.post(url, data=body, headers=HEADERS, stream=True, timeout=30) as reply:
        return "\n".join(line.decode() for line in reply.iter_lines())


CLIENTS: dict[str, Callable[[str, bytes], str]] = {
    "urllib": by_urllib,
    "http.client": by_http_client,
    "requests": lambda url, body: requests.post(url, data=body, headers=HEADERS, timeout=30).text,
    "requests-lines": by_requests_lines,
    "urllib3": lambda url, body: urllib3.PoolManager().request("POST", url, body=body, headers=HEADERS).data.decode(),
    "aiohttp": by_aiohttp,
    "httpx": lambda url, body: httpx.post(url, content=body, headers=HEADERS).text,
}


def question(*, stream: bool, words: str = "two and two?", model: str = "small") -> bytes:
    told: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": words}]}
    return json.dumps(told | ({"stream": True} if stream else {})).encode()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_model_call_is_one_whichever_library_carries_it(
    client: str,
    stream: bool,  # noqa: FBT001
    url: str,
    tmp_path: Path,
) -> None:
    post, held = CLIENTS[client], Held(tmp_path)
    did = held.record(lambda: post(url, question(stream=stream)))
    [node] = did.calls
    assert node.kind is CallKind.LLM
    question_asked, reply = asked(node), answered(node)
    assert question_asked is not None
    assert question_asked.messages == (Message(role="user", parts=(Text("two and two?"),)),)
    assert reply is not None
    assert reply.messages == (Message(role="assistant", parts=(Text("four"),)),)
    assert (reply.usage.prompt, reply.usage.completion, reply.finish_reasons) == (7, 1, ("stop",))

    live = Provider.asked
    again = held.replay(did, lambda: post(url, question(stream=stream)))
    assert again.value == did.value
    assert again.result is not None
    assert again.result.result == "same"
    for other in (question(stream=stream, words="three?"), question(stream=stream, model="large")):
        missed = held.replay(did, lambda body=other: post(url, body))
        assert isinstance(missed.error, Miss)
    assert Provider.asked == live


def test_a_call_that_was_recorded_as_plain_http_reads_as_one_to_a_model(url: str, tmp_path: Path) -> None:
    from dataclasses import replace

    from reenact.dialects.openinference import DIALECT

    did = Held(tmp_path).record(lambda: by_urllib(url, question(stream=False)))
    [span] = [node.span for node in did.calls]
    older = {"reenact.shape": "http", "openinference.span.kind": "UNKNOWN"}
    call, _ = DIALECT.decode(replace(span, attributes={**span.attributes, **older}))
    assert call.kind is CallKind.LLM
    assert getattr(call.request, "shape", "") == "openai.chat"
