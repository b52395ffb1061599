"""Runs made up for tests: through the dialect that records, and through the room that builds graphs."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from reenact.dialects.openinference import WRITING
from reenact.graph.build import build
from reenact.values import typed
from reenact.values.call import (
    Body,
    Call,
    CallKind,
    Chunk,
    FunctionCall,
    HttpReply,
    HttpRequest,
    Outcome,
    Raised,
    Request,
    Returned,
    Streamed,
    StreamEnd,
    Unfinished,
    Value,
)
from reenact.values.json import Json, canonical, compact
from reenact.values.run import Run
from reenact.values.span import STATUS_ERROR, STATUS_OK, SpanRecord

NS = 10**9
START = 1_790_000_000 * NS


class Made:
    """A run under construction. Calls follow each other at one second's distance; ids of providers are random."""

    def __init__(self, seed: int = 0, *, salt: str = "", lanes: bool = True) -> None:
        self._chance = random.Random(seed)
        self.trace_id = self._hex(32)
        self.root = self._hex(16)
        self.spans: list[SpanRecord] = []
        self._salt, self._lanes = salt, lanes
        self._order = 0
        self._now = START + seed * 3600 * NS

    def _hex(self, digits: int) -> str:
        return f"{self._chance.getrandbits(digits * 4) | 1:0{digits}x}"

    def _next(self) -> int:
        self._order += 1
        return self._order

    def add(
        self,
        kind: CallKind,
        name: str,
        request: Request,
        outcome: Outcome,
        *,
        lane: str = "main",
        parent: str | None = None,
        more: Mapping[str, Any] | None = None,
        took: int = NS,
    ) -> str:
        """Add a call and give its id."""
        call = Call(kind=kind, name=name, request=request)
        span_id = self._hex(16)
        start, self._now = self._now, self._now + NS
        attributes: dict[str, Any] = {
            **WRITING.encode_call(call),
            "reenact.order.start": self._next(),
            **({"reenact.lane": lane} if self._lanes else {}),
            **(more or {}),
        }
        if isinstance(outcome, Unfinished):
            attributes["reenact.incomplete"] = True
        else:
            attributes |= {**WRITING.encode_outcome(call, outcome), "reenact.order.end": self._next()}
        self.spans.append(
            SpanRecord(
                trace_id=self.trace_id,
                span_id=span_id,
                parent_id=parent or self.root,
                name=name,
                start_ns=start,
                end_ns=start + took,
                status=STATUS_ERROR if isinstance(outcome, Raised) else STATUS_OK,
                attributes=attributes,
            )
        )
        return span_id

    def llm(
        self,
        messages: Sequence[Json],
        says: str | None = None,
        *,
        tools: Sequence[tuple[str, Json]] = (),
        stream: bool = False,
        body: Mapping[str, Json] | None = None,
        status: int = 200,
        **place: Any,
    ) -> str:
        """Add a model call that answers with text, tool calls, or both."""
        asked: dict[str, Json] = {"model": "gpt-4o", "messages": [*messages], **(body or {})}
        calls = [
            {
                "id": f"call_{self._hex(8)}",
                "type": "function",
                "function": {"name": name, "arguments": compact(arguments)},
            }
            for name, arguments in tools
        ]
        reply: dict[str, Json] = {
            "id": f"chatcmpl-{self._hex(8)}",
            "created": self._now // NS,
            "model": "gpt-4o-2024-08-06",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "tool_calls" if calls else "stop",
                    "message": {"role": "assistant", "content": says, **({"tool_calls": calls} if calls else {})},
                }
            ],
            "usage": {"prompt_tokens": self._chance.randrange(9999), "completion_tokens": self._chance.randrange(99)},
        }
        if status != 200:
            reply = {"error": {"message": says, "type": "requests"}}
        request = HttpRequest(
            shape="openai.chat", method="POST", url="https://api.example/v1/chat/completions", body=_body(asked)
        )
        outcome: Outcome = Returned(payload=HttpReply(status=status, headers=(), body=_body(reply)))
        if stream:
            outcome = self._streamed(says or "")
        return self.add(CallKind.LLM, "ChatCompletion", request, outcome, **place)

    def _streamed(self, says: str) -> Streamed:
        pieces = [says[at : at + 4] for at in range(0, len(says), 4)]
        identity = f"chatcmpl-{self._hex(8)}"
        chunks = [
            {"id": identity, "model": "gpt-4o-2024-08-06", "choices": [{"index": 0, "delta": {"content": piece}}]}
            for piece in pieces
        ]
        chunks.append({"id": identity, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        data = [f"data: {compact(chunk)}\n\n".encode() for chunk in chunks] + [b"data: [DONE]\n\n"]
        return Streamed(
            chunks=tuple(
                Chunk(offset_us=place * 1000, order=self._next(), data=piece) for place, piece in enumerate(data)
            )
        )

    def tool(
        self,
        name: str,
        arguments: Json = None,
        returned: Json = None,
        *,
        raised: BaseException | None = None,
        unfinished: bool = False,
        kind: CallKind = CallKind.TOOL,
        **place: Any,
    ) -> str:
        """Add a call of a function."""
        outcome: Outcome = Returned(payload=Value(json=returned))
        if raised is not None:
            outcome = Raised(exception=typed.encode_exception(raised))
        if unfinished:
            outcome = Unfinished()
        request = FunctionCall(function=f"agent:{name}", arguments={} if arguments is None else arguments)
        return self.add(kind, name, request, outcome, **place)

    def run(self, *, exit_code: int | None = 0, died: tuple[str, str] | None = None, cut_off: bool = False) -> Run:
        """End the run and build its graph."""
        attributes: dict[str, Any] = {
            "openinference.span.kind": "CHAIN",
            "reenact.schema_version": "1",
            "reenact.run.root": True,
            "reenact.redaction.salt": self._salt,
        }
        if exit_code is not None:
            attributes["process.exit.code"] = exit_code
        if died is not None:
            attributes |= {"reenact.outcome": "raised", "exception.type": died[0], "exception.message": died[1]}
        if cut_off:
            attributes["reenact.incomplete"] = True
        root = SpanRecord(
            trace_id=self.trace_id,
            span_id=self.root,
            parent_id=None,
            name="agent.py",
            start_ns=min((span.start_ns for span in self.spans), default=self._now),
            end_ns=self._now,
            attributes=attributes,
        )
        (run,) = build([root, *self.spans])
        return run


def _body(value: Json) -> Body:
    return Body(canonical(value))


def user(text: str) -> Json:
    """Make a message of a user."""
    return {"role": "user", "content": text}


def called(identity: str, name: str, arguments: Json) -> Json:
    """Make the assistant's message that calls a tool."""
    function: Json = {"name": name, "arguments": compact(arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": identity, "type": "function", "function": function}],
    }


def reported(identity: str, content: str) -> Json:
    """Make the message that reports a tool's result."""
    return {"role": "tool", "tool_call_id": identity, "content": content}


__all__ = ["NS", "START", "Made", "StreamEnd", "called", "reported", "user"]
