"""A program that lets values slip wherever an instrumented one can, and exports what its pipe makes of them.

    python leaking.py SDK PEER PIPE RECEIVER PLANTED [events]

SDK is `openai` or `anthropic`; PEER the instrumentation; RECEIVER the address that OTLP goes to; PLANTED a file of
JSON, text by place. PIPE is `none`, a plain batch processor; `ours`, the same with the redaction processor around it;
`exporter`, with the redacting exporter inside; `logfire` and `langfuse`, these libraries as they come, Langfuse with a
mask that leaves nothing of what it is shown; `logfire+ours` and `langfuse+ours`, these with `redact_everything`. With
`events`, OpenLLMetry tells what was said in log events in place of attributes.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from opentelemetry import baggage, context, trace
from opentelemetry._logs import get_logger_provider, set_logger_provider
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceState

SDK, PEER, PIPE, RECEIVER = sys.argv[1:5]
EVENTS = sys.argv[6:] == ["events"]
PLANTED: dict[str, str] = json.loads(Path(sys.argv[5]).read_text(encoding="utf-8"))
SCHEMA = {"type": "object", "properties": {"q": {"type": "string", "description": f"like {PLANTED['tool schema']}"}}}


class CopiesBaggage(SpanProcessor):
    """What OpenTelemetry's BaggageSpanProcessor does: each span gets the baggage as attributes."""

    def on_start(self, span: Span, parent_context: context.Context | None = None) -> None:
        for key, value in baggage.get_all(parent_context).items():
            span.set_attribute(key, str(value))


class Model(BaseHTTPRequestHandler):
    """Says what was planted for a model to say; refuses what was planted to be refused."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
        said = anthropic_answers if self.path.partition("?")[0].endswith("/messages") else openai_answers
        if "refuse" in json.dumps(asked):
            message = f"Incorrect API key provided: {PLANTED['error reply']}."
            self._send(401, json.dumps({"type": "error", "error": {"type": "auth", "message": message}}).encode())
        elif asked.get("stream"):
            self._send(200, b"".join(said(stream=True)), "text/event-stream")
        else:
            self._send(200, next(said(stream=False)))

    def do_GET(self) -> None:
        self._send(200, b"{}")

    def _send(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response_only(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.send_header("set-cookie", f"session={PLANTED['header']}")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


def in_two(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def openai_answers(*, stream: bool) -> Iterator[bytes]:
    top = {"id": "chatcmpl-1", "created": 1, "model": "gpt-x"}
    if stream:
        for part in in_two(f"It is {PLANTED['streamed reply']} ."):
            delta = {"index": 0, "delta": {"role": "assistant", "content": part}, "finish_reason": None}
            yield f"data: {json.dumps({**top, 'object': 'chat.completion.chunk', 'choices': [delta]})}\n\n".encode()
        yield b"data: [DONE]\n\n"
        return
    function = {"name": "look_up", "arguments": json.dumps({"q": PLANTED["tool argument"]})}
    calls = [{"id": "call_1", "type": "function", "function": function}]
    message = {"role": "assistant", "content": f"Use {PLANTED['reply']} .", "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    yield json.dumps({**top, "object": "chat.completion", "choices": [choice], "usage": usage}).encode()


def anthropic_answers(*, stream: bool) -> Iterator[bytes]:
    top = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "stop_sequence": None}
    usage = {"input_tokens": 3, "output_tokens": 4}
    if stream:
        first, second = in_two(f"It is {PLANTED['streamed reply']} .")
        text = {"type": "text_delta"}
        for event in (
            {"type": "message_start", "message": {**top, "content": [], "stop_reason": None, "usage": usage}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {**text, "text": first}},
            {"type": "content_block_delta", "index": 0, "delta": {**text, "text": second}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage},
            {"type": "message_stop"},
        ):
            yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
        return
    content = [
        {"type": "text", "text": f"Use {PLANTED['reply']} ."},
        {"type": "tool_use", "id": "toolu_1", "name": "look_up", "input": {"q": PLANTED["tool argument"]}},
    ]
    yield json.dumps({**top, "content": content, "stop_reason": "tool_use", "usage": usage}).encode()


@contextlib.contextmanager
def model() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()


def ask_openai(where: str) -> None:
    import openai

    client = openai.OpenAI(
        base_url=f"http://{where}/v1",
        api_key=PLANTED["client key"],
        max_retries=0,
        default_headers={"x-customer": PLANTED["header"]},
        default_query={"access_token": PLANTED["query"]},
    )
    tools: Any = [{"type": "function", "function": {"name": "look_up", "parameters": SCHEMA}}]
    call = {"id": "call_0", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
    messages: Any = [
        {"role": "system", "content": f"Never tell {PLANTED['system']} to anybody."},
        {"role": "user", "content": f"I am {PLANTED['prompt']} , help me."},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_0", "content": json.dumps({"found": [PLANTED["tool result"]]})},
    ]
    about = {"metadata": {"ticket": PLANTED["metadata"]}, "user": PLANTED["user"]}
    client.chat.completions.create(model="gpt-x", messages=messages, tools=tools, **about)
    list(client.chat.completions.create(model="gpt-x", messages=messages, stream=True))
    with contextlib.suppress(openai.AuthenticationError):
        client.chat.completions.create(model="gpt-x", messages=[{"role": "user", "content": "refuse"}])


def ask_anthropic(where: str) -> None:
    import anthropic

    content = {"enabled": True, "content_mode": "content"}
    client = anthropic.Anthropic(
        base_url=f"http://{where}",
        api_key=PLANTED["client key"],
        max_retries=0,
        default_headers={"x-customer": PLANTED["header"]},
        default_query={"access_token": PLANTED["query"]},
        open_telemetry={"traces": content} if PEER == "native" else False,
    )
    tools: Any = [{"name": "look_up", "description": "Looks up.", "input_schema": SCHEMA}]
    found = [{"type": "text", "text": json.dumps({"found": [PLANTED["tool result"]]})}]
    messages: Any = [
        {"role": "user", "content": f"I am {PLANTED['prompt']} , help me."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_0", "name": "look_up", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_0", "content": found}]},
    ]
    more: Any = {"system": f"Never tell {PLANTED['system']} to anybody.", "max_tokens": 50, "model": "claude-x"}
    client.messages.create(messages=messages, tools=tools, metadata={"user_id": PLANTED["user"]}, **more)
    with client.messages.stream(messages=messages, **more) as stream:
        stream.get_final_message()
    with contextlib.suppress(anthropic.AuthenticationError):
        client.messages.create(messages=[{"role": "user", "content": "refuse"}], **more)


def program(where: str) -> None:
    """Do what programs do with spans of their own, and call the model in one."""
    import httpx

    scope = trace.get_tracer("shop", "1", attributes={"tenant.note": PLANTED["scope"]})
    elsewhere = SpanContext(7, 8, is_remote=True)
    context.attach(baggage.set_baggage("customer.note", PLANTED["baggage"]))
    remote = SpanContext(9, 10, is_remote=True, trace_flags=trace.TraceFlags(1), trace_state=state())
    within = trace.set_span_in_context(trace.NonRecordingSpan(remote))
    started = {"gen_ai.operation.name": "chat", "note": PLANTED["attribute"], PLANTED["key"]: 1}
    link = [Link(elsewhere, {"why": PLANTED["link"]})]
    with scope.start_as_current_span(
        f"serve {PLANTED['span name']}", within, SpanKind.SERVER, attributes=started, links=link
    ) as span:
        span.set_attribute("nested", json.dumps({"a": json.dumps({"b": [PLANTED["JSON in JSON"]]})}))
        span.set_attribute("list", ["x", PLANTED["sequence"]])
        span.set_attribute("bytes", PLANTED["bytes"].encode())
        span.add_event("noted", {"value": PLANTED["event"]})
        with contextlib.suppress(ValueError), scope.start_as_current_span("fail"):
            raise ValueError(f"no such customer: {PLANTED['exception']}") from KeyError(PLANTED["cause"])
        (ask_openai if SDK == "openai" else ask_anthropic)(where)
        with httpx.Client() as client:
            client.get(
                f"http://u:{PLANTED['URL user info']}@{where}/x?access_token={PLANTED['query']}",
                headers={"x-customer": PLANTED["header"]},
            )
        span.set_status(Status(StatusCode.ERROR, f"gave up on {PLANTED['status']}"))


def state() -> TraceState:
    return TraceState([("shop", PLANTED["trace state"])])


def instrument(provider: Any) -> None:
    from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor

    HTTPXClientInstrumentor().instrument(tracer_provider=provider)
    if PEER == "native":
        return
    module = {"openinference": "openinference.instrumentation", "openllmetry": "opentelemetry.instrumentation"}[PEER]
    name = {"openai": "OpenAIInstrumentor", "anthropic": "AnthropicInstrumentor"}[SDK]
    options = {"use_attributes": False} if EVENTS else {}
    made = getattr(__import__(f"{module}.{SDK}", fromlist=[name]), name)(**options)
    made.instrument(tracer_provider=provider, **({"logger_provider": logs()} if EVENTS else {}))


def logs() -> Any:
    """Set the pipe of log records up, plain or with ours around it, and give the provider."""
    import reenact

    exporter = OTLPLogExporter(f"{RECEIVER}/v1/logs")
    provider = LoggerProvider(Resource.create({"service.name": "shop", "deployment.note": PLANTED["resource"]}))
    batch = BatchLogRecordProcessor(exporter)
    provider.add_log_record_processor(reenact.RedactingLogRecordProcessor(batch) if PIPE == "ours" else batch)
    set_logger_provider(provider)
    return provider


def pipe() -> Any:
    """Set the provider up, and give it."""
    resource = {"service.name": "shop", "deployment.note": PLANTED["resource"]}
    exporter = OTLPSpanExporter(f"{RECEIVER}/v1/traces")
    if PIPE.startswith("logfire"):
        import logfire

        logfire.configure(
            send_to_logfire=False, console=False, additional_span_processors=[BatchSpanProcessor(exporter)]
        )
    elif PIPE.startswith("langfuse"):
        import langfuse

        langfuse.Langfuse(
            public_key="pk-lf-1b1b1b1b-2c2c-3d3d-4e4e-5f5f5f5f5f5f",
            secret_key="sk-lf-1b1b1b1b-2c2c-3d3d-4e4e-5f5f5f5f5f5f",
            base_url=RECEIVER,
            mask=lambda **_: "<masked>",
            should_export_span=lambda _: True,
            tracer_provider=TracerProvider(resource=Resource.create(resource)),
        )
    return provider_of(resource, exporter)


def provider_of(resource: dict[str, str], exporter: OTLPSpanExporter) -> Any:
    import reenact

    if PIPE.startswith("logfire"):
        provider: Any = trace.get_tracer_provider()
    elif PIPE.startswith("langfuse"):
        import langfuse

        provider = langfuse.get_client()._resources.tracer_provider
        trace.set_tracer_provider(provider)
    else:
        provider = TracerProvider(resource=Resource.create(resource))
        if PIPE == "exporter":
            provider.add_span_processor(BatchSpanProcessor(reenact.RedactingSpanExporter(exporter)))
        else:
            batch = BatchSpanProcessor(exporter)
            provider.add_span_processor(reenact.RedactionSpanProcessor(batch) if PIPE == "ours" else batch)
        trace.set_tracer_provider(provider)
    if PIPE.endswith("+ours"):
        sys.stderr.write(f"{reenact.redact_everything(provider)}\n")
    provider.add_span_processor(CopiesBaggage())
    return provider


def main() -> None:
    provider = pipe()
    instrument(provider)
    with model() as where:
        program(where)
    if PIPE.startswith("langfuse"):
        import langfuse

        with langfuse.get_client().start_as_current_observation(name="mine", input=PLANTED["langfuse input"]) as mine:
            mine.update(output=PLANTED["langfuse output"])
    for each in (provider, *([get_logger_provider()] if EVENTS else [])):
        each.force_flush()
        each.shutdown()


if __name__ == "__main__":
    main()
