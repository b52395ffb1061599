"""Has an emitter write a run down: `python tests/foreign/emitting.py EMITTER PYTHON OUT`.

PYTHON is an interpreter of an environment that holds the emitter and openai. A stand-in for the provider and for
whoever takes the spans in runs here, over loopback; what came is written to OUT as OTLP/JSON, spans and log events.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

SAID = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "call_a", "type": "function", "function": {"name": "find_order", "arguments": '{"number": "A-17"}'}},
        {
            "id": "call_b",
            "type": "function",
            "function": {"name": "check_stock", "arguments": '{"item": "desk lamp", "wanted": 2}'},
        },
    ],
}
ANSWER = ["Order A-17 ", "is 3 days late. ", "I could not look up the stock."]


class Standin(BaseHTTPRequestHandler):
    """Answers as the provider, and takes telemetry in."""

    protocol_version = "HTTP/1.1"
    asked = 0
    taken: ClassVar[list[tuple[str, bytes]]] = []

    def do_GET(self) -> None:
        """Say yes."""
        self._reply(200, b"{}")

    def do_POST(self) -> None:
        """Take in what was sent."""
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length) if length else self._chunked()
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        if not self.path.endswith("/chat/completions"):
            Standin.taken.append((self.path, body))
            self._reply(200, b"" if "/v1/" in self.path else b"{}")
            return
        Standin.asked += 1
        if Standin.asked == 1:
            self._reply(200, json.dumps(_whole()).encode(), "application/json")
        elif Standin.asked == 2:
            error = {
                "error": {"message": "slow down", "type": "requests", "param": None, "code": "rate_limit_exceeded"}
            }
            self._reply(429, json.dumps(error).encode(), "application/json")
        else:
            self._reply(200, "".join(f"data: {line}\n\n" for line in _pieces()).encode(), "text/event-stream")

    def _chunked(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline().strip() or b"0", 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _reply(self, status: int, body: bytes, kind: str = "application/x-protobuf") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def _whole() -> dict[str, Any]:
    usage = {"prompt_tokens": 91, "completion_tokens": 40, "total_tokens": 131}
    choice = {"index": 0, "message": SAID, "logprobs": None, "finish_reason": "tool_calls"}
    head = {"id": "chatcmpl-first", "object": "chat.completion", "created": 1790000000, "model": "small-2-2026-05-01"}
    return {**head, "choices": [choice], "usage": usage}


def _pieces() -> list[str]:
    head = {
        "id": "chatcmpl-last",
        "object": "chat.completion.chunk",
        "created": 1790000001,
        "model": "small-2-2026-05-01",
    }
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}, *({"content": text} for text in ANSWER)]
    chunks: list[dict[str, Any]] = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
    ]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    usage = {"prompt_tokens": 150, "completion_tokens": 17, "total_tokens": 167}
    chunks.append({**head, "choices": [], "usage": usage})
    return [*map(json.dumps, chunks), "[DONE]"]


def emit(emitter: str, python: str, out: Path) -> str:
    """Run the scenario with an emitter and write down what it sent. Gives what the program printed."""
    Standin.asked, Standin.taken = 0, []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Standin)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    place = f"http://127.0.0.1:{server.server_port}"
    environ = {
        **os.environ,
        "OPENAI_API_KEY": "inert",
        "OPENAI_BASE_URL": f"{place}/v1",
        "OTEL_EXPORTER_OTLP_ENDPOINT": place,
        "TRACELOOP_TRACE_CONTENT": "true",
    }
    script = Path(__file__).with_name("scenario.py")
    done = subprocess.run([python, str(script), emitter], env=environ, check=False, capture_output=True, text=True)
    server.shutdown()
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    out.write_text("".join(f"{_anywhere(line)}\n" for line in _lines(Standin.taken)), encoding="utf-8")
    return done.stdout


def _lines(taken: list[tuple[str, bytes]]) -> list[str]:
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    lines: list[str] = []
    for path, body in taken:
        kind = ExportTraceServiceRequest if path.endswith("/traces") else ExportLogsServiceRequest
        if path.endswith(("/traces", "/logs")):
            lines.append(json.dumps(_hex(MessageToDict(kind.FromString(body))), ensure_ascii=False))
    return lines


def _anywhere(line: str) -> str:
    """Take out of stack traces and facts about the process where on this machine things lie."""
    line = line.replace(f"{Path(__file__).parent}{os.sep}", "")
    return re.sub(r"(?<![\w/])/[\w./-]*?/(?=(?:site-packages|python3\.\d+|bin)/)", "", line)


def _hex(value: Any) -> Any:
    """Spell ids as OTLP/JSON has them: protobuf's own JSON has base64."""
    import base64

    if isinstance(value, list):
        return [_hex(item) for item in value]
    if not isinstance(value, dict):
        return value
    if isinstance(resource := value.get("resource"), dict):
        told = [item for item in resource.get("attributes", ()) if not item["key"].startswith(_OF_THE_MACHINE)]
        value = {**value, "resource": {**resource, "attributes": told}}
    ids = ("traceId", "spanId", "parentSpanId")
    return {key: base64.b64decode(item).hex() if key in ids else _hex(item) for key, item in value.items()}


_OF_THE_MACHINE = ("host.", "process.", "os.")


if __name__ == "__main__":
    sys.stdout.write(emit(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
