import asyncio
import sys
from pathlib import Path

from agents import Agent, OpenAIChatCompletionsModel, Runner, SQLiteSession, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

set_tracing_disabled(True)


def effect(text):
    with Path("effects.txt").open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")


@function_tool
def look_up(city: str) -> str:
    """Look a city up."""
    effect(f"looked {city} up")
    return f"{city} is rainy"


@function_tool
def book(city: str) -> str:
    """Book a trip."""
    effect(f"booked {city}")
    return f"booked {city}"


@function_tool
def note(text: str) -> str:
    """Note something down."""
    effect(f"noted {text}")
    return "noted"


async def main():
    model = OpenAIChatCompletionsModel(model="small", openai_client=AsyncOpenAI())
    agent = Agent(name="Alone", model=model, instructions="You do all.", tools=[look_up, book, note])
    session = SQLiteSession("trip", "sessions.db")
    print((await Runner.run(agent, sys.argv[1], session=session)).final_output)
    print([each["content"] for each in await session.get_items() if each.get("role")])


asyncio.run(main())
