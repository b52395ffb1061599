"""A model on loopback that wants one tool, and is content when it has been called."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class _Answers(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        call = {"id": "call_1", "type": "function", "function": {"name": "act", "arguments": "{}"}}
        message: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [call]}
        if asked["messages"][-1]["role"] == "tool":
            message = {"role": "assistant", "content": "Done."}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        whole = {"id": "c-1", "object": "chat.completion", "created": 1, "model": "m-1", "choices": [choice]}
        data = json.dumps(whole | {"usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def model() -> Iterator[str]:
    """Serve; gives the address of its chat completions."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/chat/completions"
    finally:
        server.shutdown()
        server.server_close()
