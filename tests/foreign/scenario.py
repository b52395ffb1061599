"""A second everyday run, for emitters to write down: two tools at once, one of which fails, a refusal, a stream.

Runs in an environment of its own that holds the emitter: `python scenario.py EMITTER`, with OPENAI_BASE_URL set to the
provider's stand-in and OTEL_EXPORTER_OTLP_ENDPOINT to who takes the spans in (`emitting.py` starts it so).
"""

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from openai import OpenAI, RateLimitError

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "find_order",
            "description": "Find an order by its number",
            "parameters": {
                "type": "object",
                "properties": {"number": {"type": "string", "description": "such as A-17"}},
                "required": ["number"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "check_stock",
            "description": "Count what is left of an item",
            "parameters": {
                "type": "object",
                "properties": {"item": {"type": "string"}, "wanted": {"type": "integer"}},
                "required": ["item", "wanted"],
            },
        },
    },
]
SYSTEM = "You answer for a shop that sells lamps. Be brief."
QUESTION = "Where is my order A-17, and could I have 2 more of these?"


def find_order(number: str) -> dict[str, Any]:
    """Find an order by its number"""
    return {"number": number, "item": "desk lamp", "state": "late", "days": 3}


def check_stock(item: str, wanted: int) -> int:
    """Count what is left of an item"""
    raise LookupError(f"no item {item!r} in stock list, {wanted} wanted")


def run(traced: Callable[[Callable[..., Any]], Callable[..., Any]]) -> str:
    """Answer the question."""
    client = OpenAI(max_retries=0)
    tools = {tool.__name__: traced(tool) for tool in (find_order, check_stock)}
    messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
    asked: dict[str, Any] = {"model": "small-2", "tools": TOOLS, "temperature": 0.2, "max_tokens": 300}
    said = client.chat.completions.create(messages=messages, tool_choice="auto", **asked).choices[0].message
    calls = [call.model_dump(exclude_none=True) for call in said.tool_calls or ()]
    messages.append({"role": "assistant", "content": said.content, "tool_calls": calls})
    for call in calls:
        function = call["function"]
        try:
            result = json.dumps(tools[function["name"]](**json.loads(function["arguments"])))
        except LookupError as error:
            result = f"failed: {error}"
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    for _ in range(3):
        try:
            pieces = client.chat.completions.create(
                messages=messages, stream=True, stream_options={"include_usage": True}, **asked
            )
            return "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices)
        except RateLimitError:
            continue
    return ""


def provider() -> Any:
    """Set up a tracer provider that sends all it hears."""
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    made = TracerProvider(resource=Resource({"service.name": "shop"}))
    made.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(made)
    return made


def logs() -> Any:
    """Set up a logger provider likewise."""
    from opentelemetry._logs import set_logger_provider
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
    from opentelemetry.sdk.resources import Resource

    made = LoggerProvider(resource=Resource({"service.name": "shop"}))
    made.add_log_record_processor(SimpleLogRecordProcessor(OTLPLogExporter()))
    set_logger_provider(made)
    return made


def _untraced(tool: Callable[..., Any]) -> Callable[..., Any]:
    return tool


def plain() -> str:
    """Nobody: the program as it is replayed."""
    return run(_untraced)


def openinference() -> str:
    """OpenInference's instrumentor, its decorator on the tools."""
    from openinference.instrumentation import TracerProvider, using_attributes
    from openinference.instrumentation.openai import OpenAIInstrumentor
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    made = TracerProvider()
    made.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
    OpenAIInstrumentor().instrument(tracer_provider=made)
    tracer = made.get_tracer("shop")
    with using_attributes(session_id="s-1", user_id="u-1"):
        return str(tracer.agent(name="shop")(lambda _: run(tracer.tool))(QUESTION))


def openllmetry() -> str:
    """OpenLLMetry's instrumentor alone: no span of a tool."""
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor

    made = provider()
    OpenAIInstrumentor().instrument(tracer_provider=made)
    with made.get_tracer("shop").start_as_current_span("shop"):
        return run(_untraced)


def genai() -> str:
    """The instrumentor of the conventions' own repository, on spans."""
    os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"
    from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor

    made, logged = provider(), logs()
    OpenAIInstrumentor().instrument(tracer_provider=made, logger_provider=logged)
    with made.get_tracer("shop").start_as_current_span("shop"):
        return run(_untraced)


def langfuse() -> str:
    """Langfuse's wrapped client and decorator."""
    import langfuse as vendor
    import langfuse.openai as wrapped

    os.environ |= {"LANGFUSE_PUBLIC_KEY": "pk", "LANGFUSE_SECRET_KEY": "sk"}
    os.environ["LANGFUSE_HOST"] = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"]
    globals()["OpenAI"] = wrapped.OpenAI
    said = vendor.observe(as_type="agent", name="shop")(lambda: run(vendor.observe(as_type="tool")))()
    vendor.get_client().flush()
    return str(said)


def langsmith() -> str:
    """LangSmith's wrapped client and decorator, through its OpenTelemetry exporter."""
    os.environ |= {"LANGSMITH_TRACING": "true", "LANGSMITH_OTEL_ENABLED": "true", "LANGSMITH_OTEL_ONLY": "true"}
    os.environ |= {"LANGSMITH_API_KEY": "k", "LANGSMITH_ENDPOINT": os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"]}
    made = provider()
    import langsmith as vendor
    from langsmith.wrappers import wrap_openai

    plain = OpenAI
    globals()["OpenAI"] = lambda **more: wrap_openai(plain(**more))
    said = vendor.traceable(run_type="chain", name="shop")(lambda: run(vendor.traceable(run_type="tool")))()
    vendor.Client().flush()
    time.sleep(3)
    made.force_flush()
    return str(said)


def logfire() -> str:
    """Logfire's instrumentation."""
    import logfire as vendor
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    more = [SimpleSpanProcessor(OTLPSpanExporter())]
    vendor.configure(send_to_logfire=False, console=False, additional_span_processors=more, service_name="shop")
    vendor.instrument_openai()
    with vendor.span("shop"):
        return run(vendor.instrument(record_return=True))


def openlit() -> str:
    """OpenLIT."""
    import openlit as vendor

    vendor.init(otlp_endpoint=os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"], application_name="shop", disable_batch=True)
    return run(_untraced)


if __name__ == "__main__":
    sys.stdout.write(str(globals()[sys.argv[1]]()) + "\n")
