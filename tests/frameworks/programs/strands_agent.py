import asyncio
from pathlib import Path

from strands import Agent, ToolContext, tool
from strands.models.openai import OpenAIModel


def effect(text):
    with Path("effects.txt").open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")


@tool
def look_up(city: str) -> str:
    """Look a city up."""
    effect(f"looked {city} up")
    return f"{city} is rainy"


@tool(context=True)
def book(city: str, tool_context: ToolContext) -> str:
    """Book a trip."""
    effect(f"booked {city}")
    tool_context.agent.state.set("booked", city)
    return f"booked {city}"


@tool(context=True)
async def note(text: str, tool_context: ToolContext) -> str:
    """Note something down."""
    effect(f"noted {text}")
    return f"noted for {tool_context.agent.state.get('booked')}"


def made():
    return Agent(OpenAIModel(model_id="small"), tools=[look_up, book, note], callback_handler=None)


async def main():
    agent = made()
    async for event in agent.stream_async("Book me a trip."):
        if "data" in event:
            print("piece", repr(event["data"]))
    print("streamed", agent.state.get(), len(agent.messages))


agent = made()
print("sync", str(agent("Book me a trip.")).strip(), agent.state.get())
asyncio.run(main())
