"""The realistic mix of spans: agent runs whose chat calls carry the whole conversation so far, forty of them at once.

    100,000 spans: mean 8 KB, median a few hundred bytes, the largest some hundred kilobytes of protobuf

The texts are those of this project's own sources and documents, so that they compress as text does.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

_ROOT = Path(__file__).parents[2]
_NOW = 1_790_000_000_000_000_000
_TOOLS = ("search_orders", "refund_order", "read_file", "run_query", "send_mail", "list_users", "fetch_page", "plan")
_MODELS = ("gpt-5.4", "claude-sonnet-5", "gpt-5.4-mini", "gemini-3-pro", "llama-4-70b")
PER_REQUEST = 50
AT_ONCE = 40


@cache
def _texts() -> list[str]:
    files = [*(_ROOT / "src").rglob("*.py"), *(_ROOT / "docs").glob("*.md")]
    text = "\n".join(path.read_text("utf-8") for path in sorted(files))
    return text.split("\n\n")


@dataclass(slots=True)
class _Run:
    """One run of an agent that talks to a model and calls tools; gives its spans one at a time, the root last."""

    rng: random.Random
    number: int
    turns: int
    trace_id: bytes = b""
    messages: list[dict[str, str]] = field(default_factory=list)

    def spans(self) -> Iterator[Span]:
        rng, self.trace_id = self.rng, self.rng.randbytes(16)
        start = _NOW + self.number * 40_000_000
        root, model = rng.randbytes(8), rng.choice(_MODELS)
        who = {"session.id": f"session-{self.number // 3}", "user.id": f"user-{rng.randrange(5000)}"}
        self.messages.append({"role": "system", "content": self._text(6_000)})
        tools = json.dumps([{"name": name, "description": self._text(250)} for name in _TOOLS])
        at = start
        for turn in range(self.turns):
            self.messages.append(
                {"role": "user" if turn == 0 else "tool", "content": self._text(rng.paretovariate(1.2) * 500)}
            )
            asked = json.dumps({"model": model, "messages": self.messages, "tools": tools, "temperature": 0.2})
            said = self._text(rng.expovariate(1 / 500))
            tool = rng.choice(_TOOLS)
            called = json.dumps({"id": rng.randrange(10**6), "query": said[:60], "dry_run": rng.random() < 0.5})
            self.messages.append({"role": "assistant", "content": said})
            at += rng.randrange(10**8, 10**9)
            yield self._span(
                f"chat {model}", root, at, who,
                {
                    "openinference.span.kind": "LLM", "llm.model_name": model, "input.value": asked,
                    "output.value": json.dumps({"choices": [{"message": {"role": "assistant", "content": said}}]}),
                    "llm.token_count.prompt": len(asked) // 4, "llm.token_count.completion": len(said) // 4,
                },
            )  # fmt: skip
            yield self._span(
                tool, root, at, who,
                {"openinference.span.kind": "TOOL", "tool.name": tool, "input.value": called, "output.value": "ok"},
            )  # fmt: skip
            for name in ("GET /v1/orders", "SELECT orders"):
                yield self._span(name, root, at, {}, {"http.request.method": "GET", "server.address": "db.internal"})
        failed = rng.random() < 0.05
        last = self._span("agent", b"", start, who, {"openinference.span.kind": "AGENT"}, end=at, failed=failed)
        last.span_id = root
        yield last

    def _span(
        self, name: str, parent: bytes, at: int, who: dict[str, str], attributes: dict[str, str | int], *,
        end: int = 0, failed: bool = False,
    ) -> Span:  # fmt: skip
        span = Span(
            trace_id=self.trace_id, span_id=self.rng.randbytes(8), parent_span_id=parent, name=name, kind=1,
            start_time_unix_nano=at, end_time_unix_nano=end or at + self.rng.randrange(10**6, 10**9),
        )  # fmt: skip
        for key, value in (who | attributes).items():
            pair = span.attributes.add(key=key)
            if isinstance(value, int):
                pair.value.int_value = value
            else:
                pair.value.string_value = value
        if failed:
            span.status.code = 2
        return span

    def _text(self, size: float) -> str:
        texts, out, length = _texts(), [], 0
        while length < min(size, 40_000):
            out.append(self.rng.choice(texts))
            length += len(out[-1])
        return "\n".join(out)[: int(min(size, 40_000))]


def spans(count: int, seed: int = 1) -> Iterator[Span]:
    """Give `count` spans in the order in which they end, of `AT_ONCE` runs at a time."""
    rng, number = random.Random(seed), 0
    going: list[Iterator[Span]] = []
    while count > 0:
        while len(going) < AT_ONCE:
            turns = min(50, max(1, int(rng.lognormvariate(1.6, 1.05))))
            going.append(_Run(random.Random(rng.getrandbits(64)), number, turns).spans())
            number += 1
        place = rng.randrange(len(going))
        span = next(going[place], None)
        if span is None:
            going.pop(place)
            continue
        count -= 1
        yield span


def requests(count: int, per_request: int = PER_REQUEST, seed: int = 1) -> Iterator[bytes]:
    """Give the bodies of export requests that hold `count` spans between them."""
    batch: list[Span] = []
    for span in spans(count, seed):
        batch.append(span)
        if len(batch) == per_request:
            yield _request(batch)
            batch = []
    if batch:
        yield _request(batch)


def _request(batch: list[Span]) -> bytes:
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    for key, value in (
        ("service.name", "shop-agent"),
        ("service.version", "4.1.0"),
        ("telemetry.sdk.language", "python"),
    ):
        group.resource.attributes.add(key=key).value.string_value = value
    scope = group.scope_spans.add()
    scope.scope.name, scope.scope.version = "openinference.instrumentation.openai", "0.1.40"
    scope.spans.extend(batch)
    return request.SerializeToString()
