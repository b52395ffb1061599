import asyncio
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    OpenAIResponsesModel,
    RunContextWrapper,
    Runner,
    SQLiteSession,
    function_tool,
    input_guardrail,
    set_trace_processors,
)
from agents.tracing import TracingProcessor
from openai import AsyncOpenAI


class Spans(TracingProcessor):
    """Counts the spans that ended."""

    def __init__(self):
        self.ended = Counter()

    def on_trace_start(self, trace): ...

    def on_trace_end(self, trace):
        self.ended[trace.name] += 1

    def on_span_start(self, span): ...

    def on_span_end(self, span):
        self.ended[span.span_data.type] += 1

    def shutdown(self): ...

    def force_flush(self): ...


spans = Spans()
set_trace_processors([spans])


@dataclass
class Desk:
    clerk: str
    done: list[str] = field(default_factory=list)


def effect(desk, text):
    desk.done.append(text)
    with Path("effects.txt").open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")


@function_tool
async def look_up(context: RunContextWrapper[Desk], city: str) -> str:
    """Look a city up."""
    await asyncio.sleep(0.01)
    effect(context.context, f"looked {city} up")
    return f"{city} is rainy"


@function_tool
def book(context: RunContextWrapper[Desk], city: str) -> str:
    """Book a trip."""
    effect(context.context, f"booked {city}")
    return f"booked {city} with {context.context.clerk}"


@function_tool
def note(context: RunContextWrapper[Desk], text: str) -> str:
    """Note something down."""
    effect(context.context, f"noted {text}")
    return f"noted as number {len(context.context.done)}"


checker = Agent(name="Checker", model="small", instructions="Is it about a trip?")


@input_guardrail
async def about_trips(context, agent, given):
    said = await Runner.run(checker, f"Check:{given}", context=context.context)
    return GuardrailFunctionOutput(output_info=said.final_output, tripwire_triggered="no" in said.final_output)


booker = Agent(name="Booker", model="small", instructions="You book.", tools=[book, note])
triage = Agent(
    name="Triage",
    model="small",
    instructions="You plan.",
    tools=[look_up],
    handoffs=[booker],
    input_guardrails=[about_trips],
)
alone = Agent(name="Alone", model="small", instructions="You do all.", tools=[look_up, book, note])


async def main():
    desk = Desk("Ada")
    said = await Runner.run(triage, "Book me a trip.", context=desk)
    print("hand-off", said.final_output, said.last_agent.name, len(said.new_items), desk.done)
    try:
        await Runner.run(triage, "Write me a poem.", context=desk)
    except InputGuardrailTripwireTriggered as error:
        print("guardrail", error.guardrail_result.output.output_info)
    session, desk = SQLiteSession("trip"), Desk("Bo")
    streamed = Runner.run_streamed(alone, "Book me a trip.", context=desk, session=session)
    async for event in streamed.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            print("piece", repr(event.data.delta))
        elif event.type == "run_item_stream_event":
            print(event.name)
    print("streamed", streamed.final_output, desk.done)
    again = await Runner.run(alone, "Thank you.", context=desk, session=session)
    print("session", again.final_output, len(await session.get_items()))


desk = Desk("Cy")
alone.model = OpenAIResponsesModel("small", AsyncOpenAI())
print("sync", Runner.run_sync(alone, "Book me a trip.", context=desk).final_output, desk.done)
alone.model = "small"
asyncio.run(main())
print(sorted(spans.ended.items()))
