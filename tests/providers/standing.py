"""A stand-in for every provider on the loopback. Each reply has a running number, so that no two agree."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from reenact.values.event_stream import MEDIA_TYPE, event_frame

Told = tuple[str, bytes]
_CITY = {"city": "Bonn"}


def whole(value: Any) -> Told:
    return "application/json", json.dumps(value).encode()


def events(values: Iterable[dict[str, Any]]) -> Told:
    lines = (f"event: {each.get('type')}\n" * ("type" in each) + f"data: {json.dumps(each)}\n\n" for each in values)
    return "text/event-stream", "".join(lines).encode()


def frames(values: Iterable[tuple[str, Any]]) -> Told:
    return MEDIA_TYPE, b"".join(event_frame(*each) for each in values)


class Replies:
    """What each provider says, by the ending of the path."""

    def __init__(self, path: str, body: dict[str, Any], number: int) -> None:
        self.path, self.body, self.number = path.partition("?")[0], body, number
        self.asked = json.dumps(body)
        self.calls = ("tools" in self.asked or "toolConfig" in self.asked) and "rain in" not in self.asked

    def told(self) -> Told | None:
        for ending, say in _SAID.items():
            if self.path.endswith(ending):
                return say(self)
        return None

    def gemini(self, *parts: dict[str, Any]) -> dict[str, Any]:
        candidate = {"content": {"role": "model", "parts": [*parts]}, "finishReason": "STOP", "index": 0}
        usage = {"promptTokenCount": 9, "candidatesTokenCount": 5, "totalTokenCount": 14}
        told = {"modelVersion": "small-001", "responseId": f"r{self.number}"}
        return {"candidates": [candidate], "usageMetadata": usage, **told}

    def generate(self) -> Told:
        if self.calls:
            call = {"functionCall": {"name": "get_weather", "args": _CITY}, "thoughtSignature": "c2ln"}
            return whole(self.gemini(call))
        return whole(self.gemini({"text": f"It is {self.number}."}))

    def stream_generate(self) -> Told:
        return events(self.gemini({"text": text}) for text in ("It", " is ", str(self.number)))

    def ollama(self) -> Told:
        head = {"model": self.body["model"], "created_at": "2026-01-01T00:00:00Z"}
        ends = {"done": True, "done_reason": "stop", "prompt_eval_count": 9, "eval_count": 5}
        prompted = "prompt" in self.body

        def said(text: str, **more: Any) -> dict[str, Any]:
            message = {"response": text} if prompted else {"message": {"role": "assistant", "content": text, **more}}
            return {**head, **message, "done": False}

        if self.calls:
            return whole({**said("", tool_calls=[{"function": {"name": "get_weather", "arguments": _CITY}}]), **ends})
        if self.body.get("stream") is False:
            return whole({**said(f"It is {self.number}."), **ends})
        lines = [said("It"), said(" is "), {**said(str(self.number)), **ends}]
        return "application/x-ndjson", "".join(f"{json.dumps(line)}\n" for line in lines).encode()

    def converse(self) -> Told:
        content: list[Any] = [{"text": f"It is {self.number}."}]
        if self.calls:
            content.append({"toolUse": {"toolUseId": f"t{self.number}", "name": "get_weather", "input": _CITY}})
        return whole(
            {
                "output": {"message": {"role": "assistant", "content": content}},
                "stopReason": "tool_use" if self.calls else "end_turn",
                "usage": {"inputTokens": 9, "outputTokens": 5, "totalTokens": 14},
                "metrics": {"latencyMs": 7},
            }
        )

    def converse_stream(self) -> Told:
        deltas = [
            ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": text}})
            for text in ("It", " is ", str(self.number))
        ]
        usage = {"inputTokens": 9, "outputTokens": 5, "totalTokens": 14}
        return frames(
            [
                ("messageStart", {"role": "assistant"}),
                *deltas,
                ("contentBlockStop", {"contentBlockIndex": 0}),
                ("messageStop", {"stopReason": "end_turn"}),
                ("metadata", {"usage": usage, "metrics": {"latencyMs": 7}}),
            ]
        )

    def claude(self) -> dict[str, Any]:
        return {
            "id": f"msg_{self.number}",
            "type": "message",
            "role": "assistant",
            "model": "small-1",
            "content": [{"type": "text", "text": f"It is {self.number}."}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 9, "output_tokens": 5},
        }

    def claude_events(self) -> list[dict[str, Any]]:
        deltas = [
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
            for text in ("It", " is ", str(self.number))
        ]
        return [
            {"type": "message_start", "message": {**self.claude(), "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            *deltas,
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
            {"type": "message_stop"},
        ]

    def cohere(self) -> Told:
        usage = {"tokens": {"input_tokens": 9, "output_tokens": 5}}
        if self.body.get("stream"):
            empty = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
            pieces = [
                {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": text}}}}
                for text in ("It", " is ", str(self.number))
            ]
            begins = {"message": {"content": {"type": "text", "text": ""}}}
            return events(
                [
                    {"type": "message-start", "id": f"c{self.number}", "delta": {"message": empty}},
                    {"type": "content-start", "index": 0, "delta": begins},
                    *pieces,
                    {"type": "content-end", "index": 0},
                    {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": usage}},
                ]
            )
        message: dict[str, Any] = {
            "role": "assistant",
            "content": [{"type": "text", "text": f"It is {self.number}."}],
        }
        if self.calls:
            function = {"name": "get_weather", "arguments": json.dumps(_CITY)}
            calls = [{"id": "get_weather0", "type": "function", "function": function}]
            message = {"role": "assistant", "tool_plan": "I look.", "tool_calls": calls}
        reason = "TOOL_CALL" if self.calls else "COMPLETE"
        return whole({"id": f"c{self.number}", "finish_reason": reason, "message": message, "usage": usage})

    def completion(self) -> Told:
        head = {"id": f"cmpl-{self.number}", "object": "text_completion", "created": 1, "model": self.body["model"]}
        if self.body.get("stream"):
            return events(
                {**head, "choices": [{"index": 0, "text": text, "finish_reason": None, "logprobs": None}]}
                for text in (" It is ", str(self.number))
            )
        choice = {"index": 0, "text": f" It is {self.number}", "finish_reason": "stop", "logprobs": None}
        usage = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
        return whole({**head, "choices": [choice], "usage": usage})

    def ranking(self) -> list[dict[str, Any]]:
        return [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.1}]

    def vector(self) -> list[float]:
        return [0.5, float(self.number)]


_SAID: dict[str, Any] = {
    ":generateContent": Replies.generate,
    ":streamGenerateContent": Replies.stream_generate,
    ":countTokens": lambda of: whole({"totalTokens": of.number}),
    ":batchEmbedContents": lambda of: whole({"embeddings": [{"values": of.vector()} for _ in of.body["requests"]]}),
    "/api/chat": Replies.ollama,
    "/api/generate": Replies.ollama,
    "/api/embed": lambda of: whole({"model": of.body["model"], "embeddings": [of.vector()], "prompt_eval_count": 4}),
    "/converse": Replies.converse,
    "/converse-stream": Replies.converse_stream,
    "/invoke": lambda of: whole(of.claude()),
    ":rawPredict": lambda of: whole(of.claude()),
    "/invoke-with-response-stream": lambda of: frames(("chunk", each) for each in of.claude_events()),
    ":streamRawPredict": lambda of: events(of.claude_events()),
    "/v2/chat": Replies.cohere,
    "/v2/embed": lambda of: whole({"id": "e", "embeddings": {"float": [of.vector()]}, "texts": of.body["texts"]}),
    "/v2/rerank": lambda of: whole({"id": "k", "results": of.ranking()}),
    "/rerank": lambda of: whole(
        {"object": "list", "data": of.ranking(), "model": "rank", "usage": {"total_tokens": 8}}
    ),
    "/embeddings": lambda of: whole(
        {
            "object": "list",
            "data": [{"object": "embedding", "index": 0, "embedding": of.vector()}],
            "model": of.body["model"],
            "usage": {"total_tokens": 8},
        }
    ),
    "/completions": Replies.completion,
    "/images/generations": lambda of: whole({"created": 1, "data": [{"b64_json": f"iVBO{of.number:04}"}]}),
    "/moderations": lambda of: whole(
        {
            "id": f"modr-{of.number}",
            "model": "small",
            "results": [
                {"flagged": False, "categories": {}, "category_scores": {}, "category_applied_input_types": {}}
            ],
        }
    ),
}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Standing

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        self.server.asked += 1
        told = Replies(self.path, body, self.server.asked).told()
        status = 200
        if told is None or '"fail"' in json.dumps(body):
            error = {"code": 400, "message": f"no {self.server.asked}", "status": "INVALID_ARGUMENT"}
            status, told = 400, whole({"error": error if "v1" in self.path else "no", "message": "no"})
        self.send_response(status)
        self.send_header("content-type", told[0])
        self.send_header("content-length", str(len(told[1])))
        self.send_header("x-amzn-bedrock-input-token-count", str(self.server.asked))
        self.end_headers()
        self.wfile.write(told[1])

    def log_message(self, *_: Any) -> None: ...


class Standing(ThreadingHTTPServer):
    """The stand-in, which counts what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked = 0
        self.base = f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.shutdown()
        self.server_close()
