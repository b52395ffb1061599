import asyncio
from pathlib import Path

from mirascope import llm


def effect(text):
    with Path("effects.txt").open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")


@llm.tool
def look_up(city: str) -> str:
    """Look a city up."""
    effect(f"looked {city} up")
    return f"{city} is rainy"


@llm.tool
def book(city: str) -> str:
    """Book a trip."""
    effect(f"booked {city}")
    return f"booked {city}"


@llm.tool
def note(text: str) -> str:
    """Note something down."""
    effect(f"noted {text}")
    return "noted"


@llm.call("openai/small:completions", tools=[look_up, book, note])
def plan(what: str):
    return f"Book me {what}."


@llm.call("openai/small:completions")
async def tell(city: str):
    return f"Tell me of {city}."


said = plan("a trip")
while said.tool_calls:
    said = said.resume(said.execute_tools())
print("sync", said.text())
streamed = plan.stream("a trip")
while True:
    for piece in streamed.chunk_stream():
        print(type(piece).__name__)
    if not streamed.tool_calls:
        break
    streamed = streamed.resume(streamed.execute_tools())


async def main():
    for each in await asyncio.gather(tell("Oslo"), tell("Bergen")):
        print("awaited", each.text())


asyncio.run(main())
