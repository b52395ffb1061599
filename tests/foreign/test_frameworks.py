"""Real frameworks replay from the trace that another emitter wrote of them, with nothing else: no tool runs again.

Skipped where the framework or the emitter is not installed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from foreign.replaying import replayed

PROGRAM = Path(__file__).with_name("framework.py")
ANSWER = "It rains, and the job is done."
NEEDS = {
    "openai": ("openai",),
    "pydantic_ai": ("pydantic_ai",),
    "langgraph": ("langgraph", "langchain_openai"),
    "own": ("pydantic_ai",),
    "openinference": ("openinference.instrumentation.openai",),
    "openllmetry": ("opentelemetry.instrumentation.openai",),
    "logfire": ("logfire",),
}
CELLS = [
    ("openai", "openinference"),
    ("openai", "openllmetry"),
    ("openai", "logfire"),
    ("pydantic_ai", "own"),
    ("pydantic_ai", "openinference"),
    ("pydantic_ai", "logfire"),
    ("langgraph", "openinference"),
]


class Provider(BaseHTTPRequestHandler):
    """Answers by how many tools have answered: a pair of calls, two more polls, words."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """Answer a chat completion, whole or streamed."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        told = sum(message["role"] == "tool" for message in body["messages"])
        wanted: list[tuple[str, dict[str, Any]]] = {
            0: [("rain", {"place": "Bath"}), ("poll", {"job": 1})],
            2: [("poll", {"job": 1})],
            3: [("poll", {"job": 1})],
        }.get(told, [])
        calls = [
            {"id": f"c{told}{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
            for n, (name, given) in enumerate(wanted)
        ]
        message = {
            "role": "assistant",
            "content": None if calls else ANSWER,
            **({"tool_calls": calls} if calls else {}),
        }
        usage = {"prompt_tokens": 20 + told, "completion_tokens": 5, "total_tokens": 25 + told}
        whole = {"id": f"r{told}", "created": 1_790_000_000, "model": "small-2026"}
        ended = "tool_calls" if calls else "stop"
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": ended}
            self._send(json.dumps({**whole, "object": "chat.completion", "choices": [choice], "usage": usage}))
            return
        whole["object"] = "chat.completion.chunk"
        deltas = [
            {**message, "tool_calls": [{"index": n, **call} for n, call in enumerate(calls)]} if calls else message
        ]
        pieces = [{**whole, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
        pieces += [
            {**whole, "choices": [{"index": 0, "delta": {}, "finish_reason": ended}]},
            {**whole, "choices": [], "usage": usage},
        ]
        self._send("".join(f"data: {json.dumps(piece)}\n\n" for piece in pieces) + "data: [DONE]\n\n", "event-stream")

    def _send(self, text: str, kind: str = "") -> None:
        self.send_response(200)
        self.send_header("content-type", f"text/{kind}" if kind else "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    server.server_close()


def is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.slow
@pytest.mark.parametrize("streamed", ["", "1"], ids=["whole", "streamed"])
@pytest.mark.parametrize(("framework", "emitter"), CELLS, ids=["-".join(cell) for cell in CELLS])
def test_a_framework_replays_from_a_trace_alone(
    framework: str, emitter: str, streamed: str, provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = {*NEEDS[framework], *NEEDS[emitter]}
    if missing := [module for module in needed if not is_there(module)]:
        pytest.skip(f"not installed: {', '.join(sorted(missing))}")
    trace, ran = tmp_path / "trace.pb", tmp_path / "ran"
    monkeypatch.setenv("STREAMED", streamed)
    monkeypatch.setenv("RAN", str(ran))
    traced = {**os.environ, "EMITTER": emitter, "TRACE": str(trace), "OPENAI_BASE_URL": provider, "OPENAI_API_KEY": "x"}
    done = subprocess.run([sys.executable, PROGRAM, framework], env=traced, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == ANSWER, done.stderr
    assert sorted(ran.read_text().split()) == ["poll", "poll", "poll", "rain"]
    ran.unlink()
    result, said = replayed(trace, tmp_path, str(PROGRAM), framework)
    assert (result["result"], result["divergences"]) == ("same", []), said
    assert result["answered"] == {"llm": 4, "tool": 4}
    assert ANSWER in said
    assert not ran.exists()
