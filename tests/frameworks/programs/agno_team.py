import asyncio
from pathlib import Path

from agno.agent import Agent
from agno.models.openai import OpenAIChat
from agno.run import RunContext
from agno.team import Team


def effect(text):
    with Path("effects.txt").open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")


def look_up(run_context: RunContext, city: str) -> str:
    """Look a city up."""
    effect(f"looked {city} up")
    run_context.session_state["seen"].append(city)
    return f"{city} is rainy"


def book(run_context: RunContext, city: str) -> str:
    """Book a trip."""
    effect(f"booked {city}")
    run_context.session_state["seen"].append(city)
    return f"booked {city}"


def note(run_context: RunContext, text: str) -> str:
    """Note something down."""
    effect(f"noted {text}")
    return f"noted for {len(run_context.session_state['seen'])}"


def made(tools, name="Booker"):
    return Agent(
        name=name,
        model=OpenAIChat(id="small"),
        tools=tools,
        session_state={"seen": []},
        instructions="You book.",
        telemetry=False,
    )


async def main():
    agent = made([look_up, book, note])
    async for event in agent.arun("Book me a trip.", stream=True, stream_events=True):
        print(event.event)
    print("streamed", sorted((await agent.aget_session_state())["seen"]) if agent.db else "no database")


said = made([look_up, book, note]).run("Book me a trip.")
print("whole", said.content, sorted(said.session_state["seen"]))
team = Team(
    name="Desk",
    model=OpenAIChat(id="small"),
    members=[made([look_up, book], "planner"), made([note], "writer")],
    session_state={"seen": []},
    telemetry=False,
)
print("team", team.run("Book me a trip.").content)
asyncio.run(main())
