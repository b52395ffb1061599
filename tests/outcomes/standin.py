"""A provider on loopback that answers by a script: chat completions, responses, messages, embeddings; streams too.

A line of the script is an answer, given in the order of the requests; `\\n` in it is a line break.

    Delft is rainy.                      a text
    call look_up {"city": "Delft"}       the model wants a tool; ` && ` parts several
    @status=429 slow down                an error of the provider
    @delay=40 @for=Delft It rains.       after 40 ms, whenever the last message holds the word
    GET /rates {"EUR": 1.1}              no model: what a plain request for this path gets
"""

from __future__ import annotations

import json
import re
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PAUSE_S = 0.002
"""Between two pieces of a stream."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said to one request."""

    text: str
    word: str = ""
    delay_s: float = 0
    status: int = 200

    @property
    def wanted(self) -> list[tuple[str, str]]:
        """The tools that the model asks for, with their arguments as JSON."""
        if not self.text.startswith("call "):
            return []
        return [tuple(each.split(" ", 2)[1:]) for each in self.text.split(" && ")]  # type: ignore[misc]


@dataclass
class Script:
    """What is answered to whom, and what was asked."""

    queue: list[Answer] = field(default_factory=list[Answer])
    fixed: list[Answer] = field(default_factory=list[Answer])
    routes: dict[str, str] = field(default_factory=dict[str, str])
    asked: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, last: str) -> Answer:
        """Give the answer to a request whose last message is this."""
        with self.lock:
            self.asked += 1
            found = next((each for each in self.fixed if each.word in last), None)
            if found is None and self.queue:
                found = self.queue.pop(0)
            return found or Answer("the script has no answer left", status=500)


def script(text: str) -> Script:
    """Read a script."""
    made = Script()
    for line in text.splitlines():
        if route := re.match(r"([A-Z]+ /\S*) (.*)", line):
            made.routes[route[1]] = route[2]
            continue
        said: dict[str, str] = {}
        rest = line
        while option := re.match(r"@(\w+)=(\S+) ?", rest):
            said[option[1]] = option[2]
            rest = rest[option.end() :]
        word = said.get("for", "")
        answer = Answer(
            rest.replace("\\n", "\n"), word, int(said.get("delay", 0)) / 1000, int(said.get("status", "200"))
        )
        (made.fixed if word else made.queue).append(answer)
    return made


class _Provider(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: Script

    def do_GET(self) -> None:
        self._route("GET")

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path.partition("?")[0]
        if f"POST {path}" in self.script.routes:
            self._route("POST")
            return
        body = json.loads(data)
        if path.endswith("/embeddings"):
            self._give(_embedded(body))
            return
        answer = self.script.answer(_last(body))
        time.sleep(answer.delay_s)
        if answer.status != 200:
            self._give({"error": {"message": answer.text, "type": "error", "code": None}}, answer.status)
        elif path.endswith("/messages"):
            self._either(body, _message(body, answer), _message_events(body, answer))
        elif path.endswith("/responses"):
            self._either(body, _response(body, answer), _response_events(body, answer))
        else:
            self._either(body, _completion(body, answer), _chunks(body, answer))

    def _route(self, method: str) -> None:
        found = self.script.routes.get(f"{method} {self.path.partition('?')[0]}")
        self._give(json.loads(found) if found else {"error": "no such thing"}, 200 if found else 404)

    def _give(self, body: Any, status: int = 200) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        with suppress(BrokenPipeError):  # a client may have waited long enough
            self.wfile.write(data)

    def _either(self, body: dict[str, Any], whole: dict[str, Any], events: Iterator[tuple[str, Any]]) -> None:
        if not body.get("stream"):
            self._give(whole)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for name, event in events:
            head = f"event: {name}\n" if name else ""
            said = event if isinstance(event, str) else json.dumps(event)
            self.wfile.write(f"{head}data: {said}\n\n".encode())
            self.wfile.flush()
            time.sleep(PAUSE_S)
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _last(body: dict[str, Any]) -> str:
    said = body.get("messages") or body.get("input") or [""]
    return json.dumps(said[-1] if isinstance(said, list) else said, ensure_ascii=False)


def _pieces(text: str) -> list[str]:
    return re.findall(r"\S+\s*|\s+", text)


def _id(prefix: str) -> str:
    return f"{prefix}{uuid.uuid4().hex[:24]}"


def _tokens(body: dict[str, Any], answer: Answer) -> tuple[int, int]:
    return len(_last(body).split()) + 7, max(1, len(_pieces(answer.text)))


def _completion(body: dict[str, Any], answer: Answer) -> dict[str, Any]:
    wanted = [
        {"id": _id("call_"), "type": "function", "function": {"name": name, "arguments": arguments}}
        for name, arguments in answer.wanted
    ]
    message: dict[str, Any] = {"role": "assistant", "content": None if wanted else answer.text, "refusal": None}
    if wanted:
        message["tool_calls"] = wanted
    asked, said = _tokens(body, answer)
    return {
        "id": _id("chatcmpl-"),
        "object": "chat.completion",
        "created": int(time.time()),
        "model": body["model"],
        "choices": [
            {"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls" if wanted else "stop"}
        ],
        "usage": {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said},
    }


def _chunks(body: dict[str, Any], answer: Answer) -> Iterator[tuple[str, Any]]:
    whole = _completion(body, answer)
    choice = whole["choices"][0]
    head = {key: whole[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> tuple[str, Any]:
        return "", head | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for place, call in enumerate(choice["message"].get("tool_calls", [])):
        yield chunk({"tool_calls": [{"index": place, **call}]})
    for piece in _pieces(choice["message"]["content"] or ""):
        yield chunk({"content": piece})
    yield chunk({}, choice["finish_reason"])
    if (body.get("stream_options") or {}).get("include_usage"):
        yield "", head | {"choices": [], "usage": whole["usage"]}
    yield "", "[DONE]"


def _message(body: dict[str, Any], answer: Answer) -> dict[str, Any]:
    wanted = [
        {"type": "tool_use", "id": _id("toolu_"), "name": name, "input": json.loads(arguments)}
        for name, arguments in answer.wanted
    ]
    asked, said = _tokens(body, answer)
    return {
        "id": _id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": wanted or [{"type": "text", "text": answer.text}],
        "stop_reason": "tool_use" if wanted else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": asked, "output_tokens": said},
    }


def _message_events(body: dict[str, Any], answer: Answer) -> Iterator[tuple[str, Any]]:
    whole = _message(body, answer)
    yield "message_start", {"type": "message_start", "message": whole | {"content": [], "stop_reason": None}}
    for place, block in enumerate(whole["content"]):
        empty = {"text": ""} if block["type"] == "text" else {"input": {}}
        yield "content_block_start", {"type": "content_block_start", "index": place, "content_block": block | empty}
        deltas: list[dict[str, str]] = (
            [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
            if block["type"] == "text"
            else [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        )
        for delta in deltas:
            yield "content_block_delta", {"type": "content_block_delta", "index": place, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": place}
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": ended, "usage": whole["usage"]}
    yield "message_stop", {"type": "message_stop"}


def _response(body: dict[str, Any], answer: Answer) -> dict[str, Any]:
    asked, said = _tokens(body, answer)
    output: list[dict[str, Any]] = [
        {"type": "function_call", "id": _id("fc_"), "call_id": _id("call_"), "name": name, "arguments": arguments}
        for name, arguments in answer.wanted
    ] or [
        {
            "type": "message",
            "id": _id("msg_"),
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": answer.text, "annotations": []}],
        }
    ]
    return {
        "id": _id("resp_"),
        "object": "response",
        "created_at": int(time.time()),
        "status": "completed",
        "model": body["model"],
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": body.get("tools", []),
        "usage": {
            "input_tokens": asked,
            "output_tokens": said,
            "total_tokens": asked + said,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def _response_events(body: dict[str, Any], answer: Answer) -> Iterator[tuple[str, Any]]:
    whole = _response(body, answer)
    begun = whole | {"status": "in_progress", "output": [], "usage": None}
    said: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
    for place, item in enumerate(whole["output"]):
        of = {"output_index": place, "item_id": item["id"]}
        empty = item | ({"arguments": ""} if "arguments" in item else {"content": [], "status": "in_progress"})
        said.append({"type": "response.output_item.added", "output_index": place, "item": empty})
        if "arguments" in item:
            given = item["arguments"]
            said.append({"type": "response.function_call_arguments.delta", **of, "delta": given})
            said.append(
                {"type": "response.function_call_arguments.done", **of, "arguments": given, "name": item["name"]}
            )
        else:
            part = item["content"][0]
            of |= {"content_index": 0}
            said.append({"type": "response.content_part.added", **of, "part": part | {"text": ""}})
            said += (
                {"type": "response.output_text.delta", **of, "delta": piece, "logprobs": []}
                for piece in _pieces(part["text"])
            )
            said.append({"type": "response.output_text.done", **of, "text": part["text"], "logprobs": []})
            said.append({"type": "response.content_part.done", **of, "part": part})
        said.append({"type": "response.output_item.done", "output_index": place, "item": item})
    said.append({"type": "response.completed", "response": whole})
    yield from ((each["type"], each | {"sequence_number": number}) for number, each in enumerate(said))


def _embedded(body: dict[str, Any]) -> dict[str, Any]:
    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
    # A vector of how often each of a few letters stands in the text.
    data = [
        {
            "object": "embedding",
            "index": place,
            "embedding": [str(text).lower().count(letter) / 10 for letter in "aeinorst"],
        }
        for place, text in enumerate(texts)
    ]
    return {"object": "list", "data": data, "model": body["model"], "usage": {"prompt_tokens": 3, "total_tokens": 3}}


@contextmanager
def standin(text: str, port: int = 0) -> Iterator[tuple[str, Script]]:
    """Serve a script; gives the address of the provider, and what was asked."""
    made = script(text)
    server = ThreadingHTTPServer(("127.0.0.1", port), type("Provider", (_Provider,), {"script": made}))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", made
    finally:
        server.shutdown()
        server.server_close()
