"""An agent that calls a model six times, with a peer's instrumentation and ours in some order.

    python agent.py SDK PEER OURS URL [FILE]

SDK is `openai` or `anthropic`. OURS is `none`; `first` or `last` for `reenact.record()` before or after the peer (and
before or after the SDK is imported); `hook` under `reenact run`; followed by `-ours-gone` or `-peer-gone` where that
one is taken away first, the model is called again, and again when both are gone. Stdout is JSON: the spans that the
application's exporter got less ours, ids and times replaced by what they mean. FILE gets all of them, ours too, as
OTLP.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

CALLS = 6
ASK = [{"role": "user", "content": "How is the weather in Delft?"}]
REFUSED = [{"role": "user", "content": "refuse this"}]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def _instrumentor(module: str, name: str) -> Callable[[], Callable[[], None]]:
    def instrument() -> Callable[[], None]:
        made = getattr(__import__(module, fromlist=[name]), name)()
        made.instrument(tracer_provider=trace.get_tracer_provider())
        return made.uninstrument  # type: ignore[no-any-return]

    return instrument


def _logfire(sdk: str) -> Callable[[], Callable[[], None]]:
    def instrument() -> Callable[[], None]:
        import logfire

        logfire.configure(
            send_to_logfire=False, console=False, additional_span_processors=[SimpleSpanProcessor(EXPORTER)]
        )
        undo = getattr(logfire, f"instrument_{sdk}")()

        def uninstrument() -> None:
            with undo:
                pass

        return uninstrument

    return instrument


def _two(first: Callable[[], Callable[[], None]], second: Callable[[], Callable[[], None]]) -> Any:
    def instrument() -> Callable[[], None]:
        undo = [first(), second()]

        def uninstrument() -> None:
            for each in undo:
                each()

        return uninstrument

    return instrument


def peers(sdk: str) -> dict[str, Callable[[], Callable[[], None]]]:
    """How each peer is installed; each gives what takes it away again."""
    classes = {"openai": "OpenAIInstrumentor", "anthropic": "AnthropicInstrumentor"}
    openinference = _instrumentor(f"openinference.instrumentation.{sdk}", classes[sdk])
    openllmetry = _instrumentor(f"opentelemetry.instrumentation.{sdk}", classes[sdk])
    return {
        "none": lambda: nothing,
        "openinference": openinference,
        "openllmetry": openllmetry,
        "logfire": _logfire(sdk),
        "native": lambda: nothing,
        "httpx": _instrumentor("opentelemetry.instrumentation.httpx", "HTTPXClientInstrumentor"),
        "both": _two(openinference, openllmetry),
    }


EXPORTER = InMemorySpanExporter()


def ask_openai(url: str) -> None:
    import openai

    tools: Any = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0)
    client.chat.completions.create(model="gpt-x", messages=ASK, tools=tools)
    client.chat.completions.create(model="gpt-x", messages=ASK, temperature=0.5)
    list(client.chat.completions.create(model="gpt-x", messages=ASK, stream=True))
    with contextlib.suppress(openai.BadRequestError):
        client.chat.completions.create(model="gpt-x", messages=REFUSED)

    async def later() -> None:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0) as client:
            await client.chat.completions.create(model="gpt-x", messages=ASK)
            async for _ in await client.chat.completions.create(model="gpt-x", messages=ASK, stream=True):
                pass

    asyncio.run(later())


def ask_anthropic(url: str) -> None:
    import anthropic

    tools: Any = [{"name": "weather", "input_schema": SCHEMA}]
    client = anthropic.Anthropic(base_url=url, api_key="x", max_retries=0, **_native())
    client.messages.create(model="claude-x", max_tokens=50, messages=ASK, tools=tools)
    client.messages.create(model="claude-x", max_tokens=50, messages=ASK, system="Be brief.")
    list(client.messages.create(model="claude-x", max_tokens=50, messages=ASK, stream=True))
    with contextlib.suppress(anthropic.BadRequestError):
        client.messages.create(model="claude-x", max_tokens=50, messages=REFUSED)

    async def later() -> None:
        async with anthropic.AsyncAnthropic(base_url=url, api_key="x", max_retries=0, **_native()) as client:
            await client.messages.create(model="claude-x", max_tokens=50, messages=ASK)
            async with client.messages.stream(model="claude-x", max_tokens=50, messages=ASK) as stream:
                await stream.get_final_message()

    asyncio.run(later())


def ask_without_an_sdk(url: str) -> None:
    import httpx

    with httpx.Client() as client:
        for _ in range(CALLS):
            client.post(f"{url}/v1/chat/completions", json={"model": "gpt-x", "messages": ASK}).raise_for_status()


def _native() -> dict[str, Any]:
    """Turn the SDK's own spans on, in full, where they are the peer, and off elsewhere."""
    if sys.argv[2] != "native":
        return {"open_telemetry": False}
    return {"open_telemetry": {"traces": {"content_mode": "content"}}}


def told(spans: Iterable[ReadableSpan]) -> list[Any]:
    """Spell spans without what differs from run to run."""
    everything = list(spans)
    names = {span.context.span_id: span for span in everything if span.context}
    kept = [span for span in everything if scope(span) != "reenact"]

    def above(span: ReadableSpan) -> str | None:
        if span.parent is None:
            return None
        parent = names.get(span.parent.span_id)
        return f"{scope(parent)}: {parent.name}" if parent else "a span that is not here"

    return [
        {
            "scope": scope(span),
            "name": span.name,
            "parent": above(span),
            "kind": span.kind.name,
            "status": [span.status.status_code.name, span.status.description],
            "attributes": {key: timeless(key, value) for key, value in (span.attributes or {}).items()},
            "events": [
                [event.name, {k: timeless(k, v) for k, v in (event.attributes or {}).items()}] for event in span.events
            ],
            "links": len(span.links),
        }
        for span in kept
    ]


def timeless(key: str, value: Any) -> Any:
    """Replace what a clock, a port or a line number gave."""
    if key == "logfire.msg":
        return re.sub(r"took [\d.]+s", "took …", value)
    if "time" in key or "duration" in key or key in {"server.port", "url.full", "gen_ai.openai.api_base", "thread.id"}:
        return "…"
    if key == "exception.stacktrace":
        return "…"  # it names the wrappers that stand between
    return json.loads(json.dumps(value).replace(URL.rpartition(":")[2], "PORT"))


def scope(span: ReadableSpan) -> str:
    return span.instrumentation_scope.name if span.instrumentation_scope else ""


def main(sdk: str, peer: str, ours: str, _url: str, file: str = "") -> None:
    order, _, gone = ours.partition("-")
    if peer != "logfire":
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(EXPORTER))
        trace.set_tracer_provider(provider)
    stop = record() if order == "first" else nothing
    undo = peers(sdk)[peer]()
    if order == "last":
        __import__(sdk)
        stop = record()
    asking = {"openai": ask_openai, "anthropic": ask_anthropic, "httpx": ask_without_an_sdk}
    ask = asking["httpx" if peer == "httpx" else sdk]
    tracer = trace.get_tracer("application")
    with tracer.start_as_current_span("request"):
        ask(URL)
    for take_away in (stop, undo) if gone == "ours-gone" else (undo, stop):
        take_away()
        if gone:
            with tracer.start_as_current_span("request"):
                ask(URL)
    trace.get_tracer_provider().force_flush()  # type: ignore[attr-defined]
    spans = EXPORTER.get_finished_spans()
    sys.stdout.write(json.dumps(told(spans), indent=1, sort_keys=True) + "\n")
    if file:
        from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

        Path(file).write_bytes(encode_spans(spans).SerializeToString())


def record() -> Callable[[], object]:
    import reenact

    return reenact.record().stop


def nothing() -> None:
    """Take nothing away."""


if __name__ == "__main__":
    URL = sys.argv[4]
    main(*sys.argv[1:])
