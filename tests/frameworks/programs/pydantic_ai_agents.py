import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel
from pydantic_ai import Agent, RunContext
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel


class Trip(BaseModel):
    city: str
    number: int


@dataclass
class Desk:
    clerk: str
    done: list[str] = field(default_factory=list)

    def effect(self, text):
        self.done.append(text)
        with Path("effects.txt").open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")


agent = Agent(OpenAIChatModel("small"), deps_type=Desk, instructions="You book trips.")


@agent.tool
async def look_up(context: RunContext[Desk], city: str) -> str:
    """Look a city up."""
    await asyncio.sleep(0.01)
    context.deps.effect(f"looked {city} up")
    return f"{city} is rainy"


@agent.tool
def book(context: RunContext[Desk], city: str) -> str:
    """Book a trip."""
    context.deps.effect(f"booked {city}")
    return f"booked {city} with {context.deps.clerk}"


@agent.tool
def note(context: RunContext[Desk], text: str) -> str:
    """Note something down."""
    context.deps.effect(f"noted {text}")
    return f"noted as number {len(context.deps.done)}"


def in_function(model):
    """Make an agent whose tools are closures."""
    made, done = Agent(model, output_type=Trip), []

    def effect(text):
        done.append(text)
        with Path("effects.txt").open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")

    @made.tool_plain
    def look_up(city: str) -> str:
        """Look a city up."""
        effect(f"looked {city} up")
        return f"{city} is rainy"

    @made.tool_plain
    def book(city: str) -> str:
        """Book a trip."""
        effect(f"booked {city}")
        return f"booked {city}"

    @made.tool_plain
    async def note(text: str) -> str:
        """Note something down."""
        effect(f"noted {text}")
        return f"noted as number {len(done)}"

    return made, done


async def main():
    desk = Desk("Ada")
    async with agent.run_stream("Book me a trip.", deps=desk) as streamed:
        async for piece in streamed.stream_text(delta=True, debounce_by=None):
            print("piece", repr(piece))
    print("streamed", sorted(desk.done), desk.done[2:])
    made, done = in_function(AnthropicModel("small"))
    said = await made.run("Book me a trip.")
    print("awaited", said.output, sorted(done), said.usage.requests)


desk = Desk("Bo")
said = agent.run_sync("Book me a trip.", deps=desk)
print("sync", said.output, sorted(desk.done), len(said.all_messages()))
asyncio.run(main())
