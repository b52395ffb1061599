import asyncio
from pathlib import Path
from typing import Annotated

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import tool


def effect(text):
    with Path("effects.txt").open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")


@tool
def look_up(city: Annotated[str, "The city"]) -> str:
    """Look a city up."""
    effect(f"looked {city} up")
    return f"{city} is rainy"


@tool(outputs_to_state={"booked": {"source": "city"}})
def book(city: Annotated[str, "The city"]) -> dict:
    """Book a trip."""
    effect(f"booked {city}")
    return {"city": city}


@tool(inputs_from_state={"booked": "where"})
def note(text: Annotated[str, "The text"], where: Annotated[str, "Where"] = "nowhere") -> str:
    """Note something down."""
    effect(f"noted {text}")
    return f"noted for {where}"


def made(**more):
    return Agent(
        chat_generator=OpenAIChatGenerator(model="small"),
        tools=[look_up, book, note],
        state_schema={"booked": {"type": str}},
        **more,
    )


ASKED = [ChatMessage.from_user("Book me a trip.")]


async def piece(chunk):
    print("piece", repr(chunk.content))


async def main():
    said = await made().run_async(messages=ASKED, streaming_callback=piece)
    print("awaited", said["last_message"].text, said["booked"])


said = made().run(messages=ASKED)
print("sync", said["last_message"].text, said["booked"], [message.role.value for message in said["messages"]])
asyncio.run(main())
