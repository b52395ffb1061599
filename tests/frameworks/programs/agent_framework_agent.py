import asyncio
from pathlib import Path
from typing import Annotated

from agent_framework import tool
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient


def effect(text):
    with Path("effects.txt").open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")


@tool(approval_mode="never_require")
def look_up(city: Annotated[str, "The city"]) -> str:
    """Look a city up."""
    effect(f"looked {city} up")
    return f"{city} is rainy"


@tool(approval_mode="never_require")
async def book(city: str) -> str:
    """Book a trip."""
    effect(f"booked {city}")
    return f"booked {city}"


def note(text: str) -> str:
    """Note something down."""
    effect(f"noted {text}")
    return "noted"


async def main():
    for client in (OpenAIChatCompletionClient(model="small"), OpenAIChatClient(model="small")):
        agent = client.as_agent(name="Booker", instructions="You book.", tools=[look_up, book, note])
        session = agent.create_session()
        said = await agent.run("Book me a trip.", session=session)
        print("whole", said.text, len(said.messages))
        async for piece in agent.run("Thank you.", stream=True, session=session):
            print("piece", repr(piece.text))


asyncio.run(main())
