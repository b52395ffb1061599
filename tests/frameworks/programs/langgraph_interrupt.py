import asyncio
from pathlib import Path

from langchain.agents import create_agent
from langchain.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt


def effect(text):
    with Path("effects.txt").open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")


@tool
def look_up(city: str) -> str:
    """Look a city up."""
    effect(f"looked {city} up")
    return f"{city} is rainy"


@tool
def book(city: str) -> str:
    """Book a trip, when somebody has said yes."""
    effect(f"asked for {city}")
    said = interrupt({"question": f"Book {city}?"})
    return f"booked {city}: {said}"


@tool
def note(text: str) -> str:
    """Note something down."""
    effect(f"noted {text}")
    return "noted"


model = ChatOpenAI(model="small")
ASKED = {"messages": [("user", "Book me a trip.")]}


def in_tool():
    agent = create_agent(model, tools=[look_up, book, note], checkpointer=MemorySaver())
    config = {"configurable": {"thread_id": "a"}}
    state = agent.invoke(ASKED, config)
    print("asked", [each.value for each in state["__interrupt__"]], agent.get_state(config).next)
    state = agent.invoke(Command(resume="yes"), config)
    print("resumed", [message.text for message in state["messages"]])


async def write(state):
    return {"messages": [await model.ainvoke(state["messages"])]}


async def ask(state):
    said = interrupt(state["messages"][-1].text)
    return {"messages": [("user", said)]}


async def in_node():
    graph = StateGraph(MessagesState)
    graph.add_node("write", write)
    graph.add_node("ask", ask)
    graph.add_node("again", write)
    graph.add_edge(START, "write")
    graph.add_edge("write", "ask")
    graph.add_edge("ask", "again")
    made, config = graph.compile(checkpointer=MemorySaver()), {"configurable": {"thread_id": "b"}}
    async for event in made.astream(ASKED, config):
        print("node", *event)
    print("asked", [each.value for each in (await made.aget_state(config)).interrupts])
    async for event in made.astream(Command(resume="shorter"), config):
        print("node", *event)
    state = await made.aget_state(config)
    print([message.text for message in state.values["messages"]], state.next)
    # Back to an earlier state, changed, and on from there.
    first = [each async for each in made.aget_state_history(config) if each.next == ("ask",)][-1]
    forked = await made.aupdate_state(first.config, {"messages": [("user", "longer")]}, as_node="ask")
    await made.ainvoke(None, forked)
    print([message.text for message in (await made.aget_state(config)).values["messages"]])


in_tool()
asyncio.run(in_node())
