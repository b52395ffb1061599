"""Spans of the GenAI conventions, made for tests: what an emitter says that keeps messages and no bodies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reenact.formats import otlp_json
from reenact.values.span import STATUS_ERROR, Resource, Scope, SpanEvent, SpanRecord

NS = 10**9
START = 1_790_000_000 * NS
QUESTION = "Is it raining?"
ANSWER = "It is."


def said(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "content": content}


def called(name: str, arguments: Any, call_id: str | None = "c1") -> dict[str, Any]:
    return {"type": "tool_call", "name": name, "arguments": arguments, **({"id": call_id} if call_id else {})}


def came(response: Any, call_id: str | None = "c1") -> dict[str, Any]:
    return {"type": "tool_call_response", "response": response, **({"id": call_id} if call_id else {})}


def chat(
    number: int,
    asked: list[dict[str, Any]],
    answered: list[dict[str, Any]] | None = None,
    *,
    provider: str = "openai",
    operation: str = "chat",
    model: str | None = "small",
    trace: str = "1" * 32,
    parent: str | None = None,
    error: tuple[str, str] | None = None,
    **more: Any,
) -> SpanRecord:
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": provider,
        "gen_ai.input.messages": json.dumps(asked),
        **({"gen_ai.request.model": model} if model else {}),
        **({"gen_ai.output.messages": json.dumps(answered)} if answered is not None else {}),
        "gen_ai.response.model": "small-2026-01-01",
        "gen_ai.response.id": f"r-{number}",
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 2,
        **more,
    }
    told = {"exception.type": error[0], "exception.message": error[1]} if error else {}
    return span(number, f"{operation} {model}", attributes, trace=trace, parent=parent, told=told)


def span(
    number: int,
    name: str,
    attributes: dict[str, Any],
    *,
    trace: str = "1" * 32,
    parent: str | None = None,
    told: dict[str, Any] | None = None,
) -> SpanRecord:
    return SpanRecord(
        trace_id=trace,
        span_id=f"{number:016x}",
        parent_id=parent,
        name=name,
        start_ns=START + number * NS,
        end_ns=START + number * NS + NS // 2,
        attributes=attributes,
        status=STATUS_ERROR if told else 0,
        events=(SpanEvent(name="exception", time_ns=START, attributes=told),) if told else (),
        resource=Resource(attributes={"service.name": "rain"}),
        scope=Scope(name="opentelemetry.instrumentation.genai.openai"),
    )


def tool(number: int, name: str, arguments: Any, result: Any = None, **more: Any) -> SpanRecord:
    attributes: dict[str, Any] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    attributes |= {"gen_ai.tool.call.arguments": json.dumps(arguments)} if arguments is not None else {}
    attributes |= {"gen_ai.tool.call.result": json.dumps(result)} if result is not None else {}
    return span(number, f"execute_tool {name}", attributes, **more)


def written(folder: Path, *spans: SpanRecord) -> Path:
    path = folder / "trace.otlp.jsonl"
    path.write_bytes(otlp_json.encode(spans))
    return path
