"""One agent in several frameworks: `python framework.py FRAMEWORK`. EMITTER traces it to the file TRACE.

Its first reply calls two tools at once: one is polled until it is done and answers with text, the other answers with an
object. Each tool that runs leaves a mark in the file RAN. STREAMED has the answers come in pieces.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

QUESTION, SYSTEM = "Does it rain in Bath, and is job 1 done?", "Be brief."
EMITTER, STREAMED = os.environ.get("EMITTER", ""), bool(os.environ.get("STREAMED"))
asked: list[int] = []


def rain(place: str) -> dict[str, Any]:
    """Tell whether it rains."""
    _mark("rain")
    return {"place": place, "rain": True, "mm": 4}


def poll(job: int) -> str:
    """Ask how a job stands."""
    _mark("poll")
    asked.append(job)
    return f"job {job} is done" if len(asked) == 3 else "pending"


def _mark(name: str) -> None:
    with Path(os.environ.get("RAN", "ran")).open("a") as file:
        file.write(f"{name}\n")


def traced() -> None:
    """Have an emitter write its spans to a file."""
    if not EMITTER:
        return
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

    class ToFile(SpanExporter):
        def export(self, spans: Any) -> SpanExportResult:
            with Path(os.environ["TRACE"]).open("ab") as file:
                file.write(encode_spans(spans).SerializeToString())
            return SpanExportResult.SUCCESS

    processor = SimpleSpanProcessor(ToFile())
    if EMITTER == "logfire":
        import logfire

        logfire.configure(send_to_logfire=False, console=False, additional_span_processors=[processor])
        getattr(logfire, {"pydantic_ai": "instrument_pydantic_ai"}.get(sys.argv[1], "instrument_openai"))()
        return
    provider = TracerProvider()
    provider.add_span_processor(processor)
    trace.set_tracer_provider(provider)
    EMITTERS[EMITTER](provider)


def _own(provider: Any) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.agent import InstrumentationSettings

    Agent.instrument_all(InstrumentationSettings(tracer_provider=provider))


def _openinference(provider: Any) -> None:
    if sys.argv[1] == "langgraph":
        from openinference.instrumentation.langchain import LangChainInstrumentor as Instrumentor
    else:
        from openinference.instrumentation.openai import OpenAIInstrumentor as Instrumentor
    Instrumentor().instrument(tracer_provider=provider)


def _openllmetry(provider: Any) -> None:
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor

    OpenAIInstrumentor().instrument(tracer_provider=provider)


EMITTERS: dict[str, Callable[[Any], None]] = {
    "own": _own,
    "openinference": _openinference,
    "openllmetry": _openllmetry,
}


def openai() -> str | None:
    """Run the loop over the SDK itself."""
    from openai import OpenAI

    client, messages = OpenAI(), [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
    functions: dict[str, Callable[..., Any]] = {"rain": rain, "poll": poll}
    tools = [_schema("rain", "place", "string"), _schema("poll", "job", "integer")]
    while True:
        more: dict[str, Any] = {"model": "small", "messages": messages, "tools": tools}
        if STREAMED:
            with client.chat.completions.stream(**more) as stream:
                said = stream.get_final_completion().choices[0].message
        else:
            said = client.chat.completions.create(**more).choices[0].message
        if not said.tool_calls:
            return said.content
        messages.append(said.to_dict(mode="json"))  # type: ignore[arg-type]
        for call in said.tool_calls:
            came = functions[call.function.name](**json.loads(call.function.arguments))
            text = came if isinstance(came, str) else json.dumps(came)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": text})


def _schema(name: str, argument: str, kind: str) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {argument: {"type": kind}}, "required": [argument]}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


def pydantic_ai() -> str:
    """Run pydantic-ai's agent."""
    from pydantic_ai import Agent

    agent = Agent("openai-chat:small", instructions=SYSTEM, tools=[rain, poll])

    async def run() -> str:
        if not STREAMED:
            return (await agent.run(QUESTION)).output
        async with agent.run_stream(QUESTION) as stream:
            return await stream.get_output()

    return asyncio.run(run())


def langgraph() -> str:
    """Run LangGraph's agent."""
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from langgraph.prebuilt import create_react_agent

    agent = create_react_agent(ChatOpenAI(model="small", streaming=STREAMED), [tool(rain), tool(poll)], prompt=SYSTEM)
    return str(agent.invoke({"messages": [("user", QUESTION)]})["messages"][-1].content)


if __name__ == "__main__":
    traced()
    sys.stdout.write(f"{globals()[sys.argv[1]]()}\n")
