"""Requests with files, as OpenAI's SDK sends them: calls of models that replay offline, sound and images included."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import io, sys
from openai import OpenAI

client = OpenAI()
sound = ("call.wav", bytes(range(256)) * 8, "audio/wav")
whole = client.audio.transcriptions.create(model="gpt-4o-transcribe", file=sound, language="en")
print(whole.text, whole.usage.total_tokens)
for event in client.audio.transcriptions.create(model="gpt-4o-transcribe", file=sound, stream=True):
    print(event.type, getattr(event, "delta", None) or event.text)
print(client.audio.transcriptions.create(model="whisper-1", file=sound, response_format="text"), end="")
print(client.audio.translations.create(model="whisper-1", file=sound, prompt=PROMPT).text)
image = client.images.edit(model="gpt-image-1", image=("cat.png", b"\\x89PNG\\r\\n\\xff", "image/png"), prompt="a hat")
print(image.data[0].b64_json)
"""


class _Provider(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Any

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.asked += 1
        kind, reply = "application/json", json.dumps({"text": f"hello {self.server.asked}"}).encode()
        if b'name="stream"' in body:
            done = {"type": "transcript.text.done", "text": "hel lo", "usage": {"type": "tokens", "total_tokens": 9}}
            events = [{"type": "transcript.text.delta", "delta": each} for each in ("hel", " lo")] + [done]
            kind, reply = "text/event-stream", b"".join(b"data: %s\n\n" % json.dumps(e).encode() for e in events)
        elif b'name="response_format"' in body:
            kind, reply = "text/plain", b"in plain words\n"
        elif self.path.endswith("/images/edits"):
            reply = json.dumps({"created": 1, "data": [{"b64_json": "aGF0"}], "usage": {"total_tokens": 3}}).encode()
        elif b'name="language"' in body:
            usage = {"type": "tokens", "input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
            reply = json.dumps({"text": "my card is cut", "usage": usage}).encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_: Any) -> None: ...


@contextmanager
def provider() -> Iterator[Any]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), _Provider)
    server.asked = 0
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def run(tmp_path: Path) -> Any:
    def run(base: str, *words: str, prompt: str = "names") -> subprocess.CompletedProcess[str]:
        (tmp_path / "agent.py").write_text(PROGRAM.replace("PROMPT", repr(prompt)), encoding="utf-8")
        own = ("REENACT_", "OTEL_", "OPENAI_")
        environ = {name: value for name, value in os.environ.items() if not name.startswith(own)}
        environ |= {"OPENAI_BASE_URL": base, "OPENAI_API_KEY": "sk-of-nobody"}
        command = [sys.executable, "-m", "reenact", *words]
        return subprocess.run(
            command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False, timeout=120
        )

    return run


def test_requests_with_files_are_calls_of_models_and_replay(run: Any) -> None:
    with provider() as server:
        base = f"http://127.0.0.1:{server.server_port}/v1"
        recorded = run(base, "run", "--", sys.executable, "agent.py")
        assert recorded.returncode == 0, recorded.stderr
        assert "replayable: exact" in recorded.stderr
        asked = server.asked
        assert asked == 5
        again = run(base, "replay", "last")
        assert (again.returncode, again.stdout) == (0, recorded.stdout), again.stderr
        assert "same: 5 llm calls answered from the recording, 0 live" in again.stderr
        other = run(base, "replay", "last", prompt="other names")
        assert other.returncode == 1
        assert "diverged" in other.stderr
        assert server.asked == asked
    spans = json.loads(run(base, "export", "last", "--output", "-").stdout)
    by_name: dict[str, list[dict[str, Any]]] = {}
    for span in spans["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        attributes = {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}
        by_name.setdefault(span["name"], []).append(attributes)
    whole, streamed, _, _ = sorted(by_name["CreateTranscription"], key=lambda each: int(each["reenact.order.start"]))
    assert whole["openinference.span.kind"] == "LLM"
    assert whole["llm.model_name"] == "gpt-4o-transcribe"
    assert json.loads(whole["llm.invocation_parameters"])["language"] == "en"
    assert whole["llm.output_messages.0.message.content"] == "my card is cut"
    assert [int(whole[f"llm.token_count.{each}"]) for each in ("prompt", "completion", "total")] == [5, 2, 7]
    assert streamed["llm.output_messages.0.message.content"] == "hel lo"
    edited = by_name["EditImages"][0]
    said = edited["llm.input_messages.0.message.contents.0.message_content.text"]
    assert "a hat" in said, edited
