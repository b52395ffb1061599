import asyncio
from pathlib import Path
from typing import Annotated

from semantic_kernel.agents import ChatCompletionAgent, ChatHistoryAgentThread
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.functions import kernel_function


def effect(text):
    with Path("effects.txt").open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")


class Travel:
    def __init__(self):
        self.done = []

    @kernel_function(description="Look a city up.")
    def look_up(self, city: Annotated[str, "The city"]) -> str:
        effect(f"looked {city} up")
        self.done.append(city)
        return f"{city} is rainy"

    @kernel_function(description="Book a trip.")
    async def book(self, city: str) -> str:
        effect(f"booked {city}")
        self.done.append(city)
        return f"booked {city}"

    @kernel_function(name="note", description="Note something down.")
    def write(self, text: str) -> str:
        effect(f"noted {text}")
        self.done.append(text)
        return f"noted as number {len(self.done)}"


async def main():
    travel = Travel()
    agent = ChatCompletionAgent(
        service=OpenAIChatCompletion(ai_model_id="small", api_key="sk"),
        name="Booker",
        instructions="You book.",
        plugins=[travel],
    )
    said = await agent.get_response("Book me a trip.")
    print("whole", said.content, sorted(travel.done))
    thread = ChatHistoryAgentThread()
    async for piece in agent.invoke_stream("Book me a trip.", thread=thread):
        print("piece", repr(str(piece.content)))
    print(sorted(travel.done), [str(message.role) async for message in thread.get_messages()])


asyncio.run(main())
