import asyncio
from pathlib import Path

from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.anthropic_llm import AnthropicLlm
from google.adk.runners import InMemoryRunner
from google.adk.tools import ToolContext
from google.genai import types


def effect(text):
    with Path("effects.txt").open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")


def look_up(city: str) -> dict:
    """Look a city up."""
    effect(f"looked {city} up")
    return {"weather": f"{city} is rainy"}


async def book(city: str, tool_context: ToolContext) -> dict:
    """Book a trip."""
    effect(f"booked {city}")
    tool_context.state["booked"] = city
    return {"booked": city}


def note(text: str, tool_context: ToolContext) -> dict:
    """Note something down."""
    effect(f"noted {text}")
    notes = [*tool_context.state.get("notes", []), text]
    tool_context.state["notes"] = notes
    return {"number": len(notes), "for": tool_context.state["booked"]}


def agent(name, tools, **more):
    return LlmAgent(
        name=name, model=AnthropicLlm(model="claude-small"), instruction=f"You {name}.", tools=tools, **more
    )


async def run(name, root, streamed=False):
    runner = InMemoryRunner(agent=root, app_name="trips")
    session = await runner.session_service.create_session(app_name="trips", user_id="u")
    asked = types.Content(role="user", parts=[types.Part(text="Book me a trip.")])
    mode = RunConfig(streaming_mode=StreamingMode.SSE if streamed else StreamingMode.NONE)
    async for event in runner.run_async(user_id="u", session_id=session.id, new_message=asked, run_config=mode):
        parts = event.content.parts if event.content else []
        print(
            name,
            event.author,
            event.partial,
            [part.text or (part.function_call and part.function_call.name) for part in parts],
        )
    session = await runner.session_service.get_session(app_name="trips", user_id="u", session_id=session.id)
    print(name, dict(session.state), len(session.events))


async def main():
    await run("alone", agent("alone", [look_up, book, note]))
    await run("streamed", agent("streamed", [look_up, book, note]), streamed=True)
    booker = agent("booker", [book, note], description="Books.")
    await run("transfer", agent("planner", [look_up], sub_agents=[booker]))
    steps = [agent("writer", [], output_key="draft"), agent("critic", [])]
    await run("sequence", SequentialAgent(name="both", sub_agents=steps))


asyncio.run(main())
