import asyncio
from pathlib import Path
from typing import Annotated

from langchain.agents import AgentState, create_agent
from langchain.messages import ToolMessage
from langchain.tools import InjectedToolCallId, ToolRuntime, tool
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command


class Trip(AgentState):
    booked: str


def effect(text):
    with Path("effects.txt").open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")


@tool
def look_up(city: str) -> str:
    """Look a city up."""
    effect(f"looked {city} up")
    return f"{city} is rainy"


@tool
def book(city: str, runtime: ToolRuntime[None, Trip], tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
    """Book a trip."""
    effect(f"booked {city} after {len(runtime.state['messages'])} messages")
    trips = runtime.store.get(("trips",), "all")
    runtime.store.put(("trips",), "all", {"cities": [*(trips.value["cities"] if trips else ()), city]})
    return Command(update={"booked": city, "messages": [ToolMessage(f"booked {city}", tool_call_id=tool_call_id)]})


@tool
async def anote(text: str, runtime: ToolRuntime) -> str:
    """Note something down."""
    effect(f"noted {text}")
    await asyncio.sleep(0.01)
    return f"noted for {runtime.state['booked']}"


@tool
def note(text: str, runtime: ToolRuntime) -> str:
    """Note something down."""
    effect(f"noted {text}")
    return f"noted for {runtime.state['booked']}"


anote.name = "note"
STORE = InMemoryStore()
ASKED = {"messages": [{"role": "user", "content": "Book me a trip."}]}


def agent(model, last):
    tools = [look_up, book, last]
    return create_agent(model, tools=tools, state_schema=Trip, store=STORE, system_prompt="You book trips.")


def tell(name, state):
    print(name, [message.text for message in state["messages"]], state["booked"])


async def main():
    tell("awaited", await agent(ChatOpenAI(model="small"), anote).ainvoke(ASKED))
    claude = ChatAnthropic(model="small", max_tokens=100)
    async for kind, piece in agent(claude, anote).astream(ASKED, stream_mode=["updates", "messages"]):
        print(kind, sorted(piece) if kind == "updates" else piece[0].text)


tell("invoked", agent(ChatOpenAI(model="small"), note).invoke(ASKED))
for piece in agent(ChatOpenAI(model="small"), note).stream(ASKED, stream_mode="values"):
    print("streamed", len(piece["messages"]), piece.get("booked"))
asyncio.run(main())
print("kept", STORE.get(("trips",), "all").value)
