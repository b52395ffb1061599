"""OpenAI's and Anthropic's APIs on loopback, with the same answer every time, so that spans can be compared."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

WEATHER = json.dumps({"city": "Delft"})


def openai_whole(*, tool: bool) -> dict[str, Any]:
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": WEATHER}}
    said = {"content": None, "tool_calls": [call]} if tool else {"content": "It is sunny in Delft."}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": "gpt-x-2026",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls" if tool else "stop",
                "message": {"role": "assistant", "refusal": None, **said},
            }
        ],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


def openai_stream() -> list[bytes]:
    head = {"id": "chatcmpl-2", "object": "chat.completion.chunk", "created": 1_790_000_000, "model": "gpt-x-2026"}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}, {"content": "It is "}, {"content": "sunny."}]
    chunks = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    usage = {"prompt_tokens": 11, "completion_tokens": 4, "total_tokens": 15}
    chunks.append({**head, "choices": [], "usage": usage})
    return [b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks] + [b"data: [DONE]\n\n"]


def anthropic_whole(*, tool: bool) -> dict[str, Any]:
    use = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Delft"}}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x-2026",
        "content": [use if tool else {"type": "text", "text": "It is sunny in Delft."}],
        "stop_reason": "tool_use" if tool else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 7},
    }


def anthropic_stream() -> list[bytes]:
    start = {**anthropic_whole(tool=False), "id": "msg_2", "content": [], "stop_reason": None}
    text = {"type": "text_delta"}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {**text, "text": "It is "}},
        {"type": "content_block_delta", "index": 0, "delta": {**text, "text": "sunny."}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 4},
        },
        {"type": "message_stop"},
    ]
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events]


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
        anthropic = self.path.endswith("/messages")
        if "refuse" in json.dumps(asked):
            error = {"type": "invalid_request_error", "message": "no such city"}
            self._send(400, "application/json", json.dumps({"type": "error", "error": error}).encode())
        elif asked.get("stream"):
            events = anthropic_stream() if anthropic else openai_stream()
            self._send(200, "text/event-stream; charset=utf-8", b"".join(events))
        else:
            whole = anthropic_whole if anthropic else openai_whole
            body = whole(tool="tools" in asked and len(asked["messages"]) == 1)
            self._send(200, "application/json", json.dumps(body).encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response_only(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.send_header("request-id", "req_1")
        self.send_header("x-request-id", "req_1")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


class StandIn:
    """Serves while its `with` block runs."""

    def __enter__(self) -> str:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_port}"

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
