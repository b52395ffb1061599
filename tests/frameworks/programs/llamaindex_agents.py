import asyncio
import os
from pathlib import Path

from llama_index.core.agent.workflow import AgentStream, AgentWorkflow, FunctionAgent, ToolCallResult
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from llama_index.llms.openai_like import OpenAILike

model = OpenAILike(
    model="small",
    api_base=os.environ["OPENAI_BASE_URL"],
    api_key="sk",
    is_chat_model=True,
    is_function_calling_model=True,
)


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


def note(text: str) -> str:
    """Note something down."""
    effect(f"noted {text}")
    return "noted"


def agent(name, tools, to=()):
    return FunctionAgent(
        name=name,
        description=f"{name} agent",
        system_prompt=f"You {name}.",
        llm=model,
        tools=tools,
        can_handoff_to=[*to],
    )


class Asked(Event):
    city: str


class Told(Event):
    text: str


class Survey(Workflow):
    @step
    async def begin(self, ctx: Context, event: StartEvent) -> Asked | None:
        await ctx.store.set("cities", event.cities)
        for city in event.cities:
            ctx.send_event(Asked(city=city))
        return None

    @step(num_workers=2)
    async def ask(self, event: Asked) -> Told:
        return Told(text=str(await model.acomplete(f"Tell me of {event.city}.")))

    @step
    async def end(self, ctx: Context, event: Told) -> StopEvent | None:
        cities = await ctx.store.get("cities")
        told = ctx.collect_events(event, [Told] * len(cities))
        return None if told is None else StopEvent(result=f"{cities}: {sorted(each.text for each in told)}")


async def main():
    print("whole", await agent("plan", [look_up, book, FunctionTool.from_defaults(note)]).run("Book me a trip."))
    team = AgentWorkflow(
        agents=[agent("plan", [look_up], ["desk"]), agent("desk", [book, note])],
        root_agent="plan",
        initial_state={"n": 0},
    )
    context = Context(team)
    handler = team.run(user_msg="Book me a trip.", ctx=context)
    async for event in handler.stream_events():
        if isinstance(event, AgentStream):
            print("piece", repr(event.delta))
        elif isinstance(event, ToolCallResult):
            print("tool", event.tool_name, event.tool_output)
    print("team", await handler, await context.store.get("state"))
    print("survey", await Survey().run(cities=["Oslo", "Bergen"]))


asyncio.run(main())
