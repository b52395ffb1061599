"""A model that asks for the weather of two cities at once, and then tells what it heard."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class _Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        heard = [each for each in asked["messages"] if each["role"] == "tool"]
        said: dict[str, Any] = {"role": "assistant", "content": f"{[each['content'] for each in heard]}"}
        if not heard:
            name = next(
                each["function"]["name"] for each in asked["tools"] if "get_weather" in each["function"]["name"]
            )
            said = {"role": "assistant", "content": None, "tool_calls": [called(name, city) for city in CITIES]}
        choice = {"index": 0, "message": said, "finish_reason": "stop" if heard else "tool_calls"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        reply = {"id": f"c{random.random()}", "object": "chat.completion", "created": 1, "model": "stand-in"}
        body = json.dumps({**reply, "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


CITIES = ("Oslo", "Bergen")


def called(name: str, city: str) -> dict[str, Any]:
    arguments = json.dumps({"city": city})
    return {"id": f"call_{city}", "type": "function", "function": {"name": name, "arguments": arguments}}


@contextmanager
def standing() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()
