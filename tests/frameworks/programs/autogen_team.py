import asyncio
from pathlib import Path

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import HandoffTermination, MaxMessageTermination, TextMentionTermination
from autogen_agentchat.messages import ModelClientStreamingChunkEvent
from autogen_agentchat.teams import RoundRobinGroupChat, Swarm
from autogen_core import CancellationToken
from autogen_core.tools import FunctionTool
from autogen_ext.models.openai import OpenAIChatCompletionClient


def effect(text):
    with Path("effects.txt").open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")


async def look_up(city: str) -> str:
    """Look a city up."""
    effect(f"looked {city} up")
    return f"{city} is rainy"


def book(city: str) -> str:
    """Book a trip."""
    effect(f"booked {city}")
    return f"booked {city}"


async def note(text: str, cancellation_token: CancellationToken) -> str:
    """Note something down."""
    effect(f"noted {text}")
    return f"noted {cancellation_token.is_cancelled()}"


def client():
    known = {
        "vision": False,
        "function_calling": True,
        "json_output": True,
        "family": "gpt-4o",
        "structured_output": True,
    }
    return OpenAIChatCompletionClient(model="small", model_info=known)


async def main():
    noting = FunctionTool(note, description="Note something down.")
    alone = AssistantAgent("alone", client(), tools=[look_up, book, noting], max_tool_iterations=3)
    print("alone", (await alone.run(task="Book me a trip.")).messages[-1].content)
    streaming = AssistantAgent(
        "streaming", client(), tools=[look_up, book, noting], max_tool_iterations=3, model_client_stream=True
    )
    async for event in streaming.run_stream(task="Book me a trip."):
        if isinstance(event, ModelClientStreamingChunkEvent):
            print("piece", repr(event.content))
        else:
            print(type(event).__name__)
    planner = AssistantAgent("planner", client(), tools=[look_up], handoffs=["booker"], system_message="You plan.")
    booker = AssistantAgent(
        "booker", client(), tools=[book, noting], handoffs=["user"], system_message="You book.", max_tool_iterations=3
    )
    ends = TextMentionTermination("booked.") | HandoffTermination("user") | MaxMessageTermination(20)
    team = Swarm([planner, booker], termination_condition=ends)
    for message in (await team.run(task="Book me a trip.")).messages:
        print("swarm", message.source, type(message).__name__)
    state = await team.save_state()
    print("state", sorted(state["agent_states"]))
    writer = AssistantAgent("writer", client(), system_message="You write.")
    critic = AssistantAgent("critic", client(), system_message="You judge.")
    said = await RoundRobinGroupChat([writer, critic], termination_condition=MaxMessageTermination(3)).run(
        task="Write a line."
    )
    print([message.content for message in said.messages], said.stop_reason)


asyncio.run(main())
