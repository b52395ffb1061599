"""The outside world of the agent that carries canaries: providers and services on loopback that say what a cell wants.

The first part of each path names what is to be said and the second the cell, so that a URL holds no canary by itself:
`/v1-content/<cell>/chat/completions`.
"""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import quote, urlsplit

Event = dict[str, Any]
_CHAT = {"id": "chatcmpl-1", "created": 1, "model": "stand-in"}
_USAGE = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}


def _chat(message: Event) -> Event:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    return {**_CHAT, "object": "chat.completion", "choices": [choice], "usage": _USAGE}


def _tool_calls(arguments: str) -> Event:
    call = {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": arguments}}
    return {"content": None, "tool_calls": [call]}


def _response(text: str) -> Event:
    part = {"type": "output_text", "text": text, "annotations": []}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    facts = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "stand-in"}
    options = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return {**facts, **options, "output": [message]}


def _anthropic(content: list[Event]) -> Event:
    usage = {"input_tokens": 9, "output_tokens": 9}
    facts = {"id": "msg_1", "type": "message", "role": "assistant", "model": "stand-in", "usage": usage}
    return {**facts, "content": content, "stop_reason": "end_turn", "stop_sequence": None}


def _delta(delta: Event, index: int = 0) -> Event:
    choice = {"index": index, "delta": delta, "finish_reason": None}
    return {**_CHAT, "object": "chat.completion.chunk", "choices": [choice]}


def _deltas(pieces: Iterable[str]) -> Iterator[Event]:
    yield from (_delta({"content": piece}) for piece in pieces)


def _two_choices(pieces: Iterable[str]) -> Iterator[Event]:
    """Two answers at a time, a piece of this and a piece of that."""
    for piece in pieces:
        yield _delta({"content": piece})
        yield _delta({"content": "and so on, "}, 1)


def _argument_deltas(pieces: Iterable[str]) -> Iterator[Event]:
    function: Event = {"name": "look_up", "arguments": ""}
    yield _delta({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]})
    for piece in ('{"query": "', *(json.dumps(piece)[1:-1] for piece in pieces), '"}'):
        yield _delta({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})


def _response_events(pieces: Iterable[str]) -> Iterator[Event]:
    given = list(pieces)
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    yield {"type": "response.created", "sequence_number": 0, "response": {**_response(""), "output": []}}
    for number, piece in enumerate(given, 1):
        text = {"delta": piece, "logprobs": []}
        yield {"type": "response.output_text.delta", "sequence_number": number, **at, **text}
    whole = _response("".join(given))
    yield {"type": "response.completed", "sequence_number": len(given) + 1, "response": whole}


def _blocks(kind: str, field: str, first: Event) -> Callable[[Iterable[str]], Iterator[Event]]:
    def events(pieces: Iterable[str]) -> Iterator[Event]:
        yield {"type": "message_start", "message": {**_anthropic([]), "stop_reason": None}}
        yield {"type": "content_block_start", "index": 0, "content_block": first}
        for piece in pieces:
            yield {"type": "content_block_delta", "index": 0, "delta": {"type": kind, field: piece}}
        yield {"type": "content_block_stop", "index": 0}
        yield {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}
        yield {"type": "message_stop"}

    return events


def _input_pieces(pieces: Iterable[str]) -> Iterator[str]:
    yield from ('{"query": "', *(json.dumps(piece)[1:-1] for piece in pieces), '"}')


_TOOL_USE = {"type": "tool_use", "id": "toolu_1", "name": "look_up", "input": {}}
_json_blocks = _blocks("input_json_delta", "partial_json", _TOOL_USE)

STREAMS: Mapping[str, Callable[[Iterable[str]], Iterable[Event]]] = {
    "chat text": _deltas,
    "chat, two choices": _two_choices,
    "chat tool arguments": _argument_deltas,
    "responses text": _response_events,
    "messages text": _blocks("text_delta", "text", {"type": "text", "text": ""}),
    "messages thinking": _blocks("thinking_delta", "thinking", {"type": "thinking", "thinking": "", "signature": ""}),
    "messages tool input": lambda pieces: _json_blocks(_input_pieces(pieces)),
}
"""Which streams of events there are, and how each tells a text that comes in pieces."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: World

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length) if length else b""
        self.server.seen.append(f"{self.command} {self.path}\n{self.headers}".encode("latin-1", "replace") + body)
        kind, cell, *_ = [*urlsplit(self.path).path.strip("/").split("/"), ""]
        text = self.server.cells.get(cell, "")
        getattr(self, f"say_{kind.replace('-', '_')}", self.say_nothing)(text, cell)

    do_GET = do_PUT = do_POST  # noqa: N815 - as http.server calls them

    def reply(self, status: int, body: bytes, *headers: tuple[str, str], kind: str = "application/json") -> None:
        self.send_response(status)
        for name, value in (("content-type", kind), ("content-length", str(len(body))), *headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def json(self, value: Any, *headers: tuple[str, str], status: int = 200) -> None:
        self.reply(status, json.dumps(value, ensure_ascii=False).encode(), *headers)

    def say_nothing(self, text: str, cell: str) -> None:
        del text, cell
        if self.path.endswith("/embeddings"):
            one = {"object": "embedding", "index": 0, "embedding": [0.25, -0.5]}
            self.json({"object": "list", "data": [one], "model": "stand-in", "usage": _USAGE})
        elif self.path.endswith("/responses"):
            self.json(_response("All done."))
        elif self.path.endswith("/messages"):
            self.json(_anthropic([{"type": "text", "text": "All done."}]))
        elif "/chat/" in self.path:
            self.json(_chat({"content": "All done."}))
        else:
            self.json({"fine": True})

    def say_content(self, text: str, cell: str) -> None:
        del cell
        if self.path.endswith("/responses"):
            self.json(_response(text))
        elif self.path.endswith("/messages"):
            self.json(_anthropic([{"type": "text", "text": text}]))
        else:
            self.json(_chat({"content": text}))

    def say_calls(self, text: str, cell: str) -> None:
        del cell
        if self.path.endswith("/messages"):
            self.json(_anthropic([{**_TOOL_USE, "input": {"query": text}}]))
        else:
            self.json(_chat(_tool_calls(json.dumps({"query": text}))))

    def say_error(self, text: str, cell: str) -> None:
        del cell
        status = 429 if "429" in self.path else 400
        self.json({"error": {"message": text, "type": "invalid_request_error", "code": None}}, status=status)

    def say_page(self, text: str, cell: str) -> None:
        del cell
        self.reply(502, f"<html><body>Bad gateway: {text}</body></html>".encode(), kind="text/html")

    def say_text(self, text: str, cell: str) -> None:
        del cell
        self.reply(200, text.encode(), kind="text/plain; charset=utf-8")

    def say_zipped(self, text: str, cell: str) -> None:
        del cell
        body = gzip.compress(json.dumps({"note": text}).encode(), mtime=0)
        self.reply(200, body, ("content-encoding", "gzip"))

    def say_mixed(self, text: str, cell: str) -> None:
        """Say it among bytes that are no text."""
        del cell
        self.reply(200, b"\xff\xfe\x00\x9c " + text.encode() + b" \x81\x00", kind="application/octet-stream")

    def say_lines(self, text: str, cell: str) -> None:
        del cell
        lines = [{"n": 1, "text": "first"}, {"n": 2, "text": text}, {"n": 3, "text": "last"}]
        self.reply(200, "".join(f"{json.dumps(line)}\n" for line in lines).encode(), kind="application/x-ndjson")

    def say_moved(self, text: str, cell: str) -> None:
        del cell
        self.reply(302, b"", ("location", f"/nothing/at/all?note={quote(text, safe='')}"))

    def say_header(self, text: str, cell: str) -> None:
        del cell
        self.json({"fine": True}, ("x-note", text))

    def say_cookie(self, text: str, cell: str) -> None:
        del cell
        self.json({"fine": True}, ("set-cookie", f"note={text}"))

    def say_hangup(self, text: str, cell: str) -> None:
        del text, cell
        self.close_connection = True

    def say_stream(self, text: str, cell: str) -> None:
        """Send events; `text` is JSON: the stream's name and the pieces."""
        del cell
        name, pieces = json.loads(text)
        events = list(STREAMS[name](pieces))
        told = [f"event: {each['type']}\n" if "type" in each else "" for each in events]
        data = [f"{head}data: {json.dumps(each)}\n\n".encode() for head, each in zip(told, events, strict=True)]
        self.pieces([*data, b"data: [DONE]\n\n"] if name.startswith("chat") else data, "text/event-stream")

    def say_pieces(self, text: str, cell: str) -> None:
        """Send text as it stands, cut where the cell says."""
        del cell
        self.pieces([piece.encode("utf-8", "surrogateescape") for piece in json.loads(text)[1]], "text/plain")

    def pieces(self, pieces: list[bytes], kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"".join(b"%x\r\n%b\r\n" % (len(data), data) for data in pieces if data) + b"0\r\n\r\n")

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


class World(ThreadingHTTPServer):
    """Serves while its `with` block runs. `cells` says what is told in each cell, `seen` keeps what it was sent."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, cells: Mapping[str, str]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.cells = cells
        self.seen: list[bytes] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *_: object) -> None:
        """Let clients go away as they like."""

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()
