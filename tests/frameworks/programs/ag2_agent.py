import asyncio
from pathlib import Path

from ag2 import Agent, Context, tool
from ag2.config import OpenAIConfig


def effect(text):
    with Path("effects.txt").open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")


@tool
async def look_up(city: str) -> str:
    """Look a city up."""
    effect(f"looked {city} up")
    return f"{city} is rainy"


@tool
def book(city: str, context: Context) -> str:
    """Book a trip."""
    effect(f"booked {city}")
    context.variables["booked"] = city
    return f"booked {city}"


@tool
def note(text: str, context: Context) -> str:
    """Note something down."""
    effect(f"noted {text}")
    return f"noted for {context.variables['booked']}"


async def main():
    for streaming in (False, True):
        agent = Agent(
            "booker", "You book.", config=OpenAIConfig(model="small", streaming=streaming), tools=[look_up, book, note]
        )
        said = await agent.ask("Book me a trip.", variables={"clerk": "Ada"})
        again = await said.ask("Thank you.")
        print(streaming, await said.content(), await again.content())
        print(agent.variables, said.history is not None)


asyncio.run(main())
