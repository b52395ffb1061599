import asyncio
import operator
from pathlib import Path
from typing import Annotated, TypedDict

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Send


class Trip(MessagesState):
    notes: Annotated[list[str], operator.add]


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
    """Book a trip."""
    effect(f"booked {city}")
    return f"booked {city}"


@tool
def note(text: str) -> str:
    """Note something down."""
    effect(f"noted {text}")
    return "noted"


model = ChatOpenAI(model="small")
able = model.bind_tools([look_up, book, note])


def plan(state):
    return {"messages": [able.invoke(state["messages"])], "notes": ["planned"]}


async def aplan(state):
    return {"messages": [await able.ainvoke(state["messages"])], "notes": ["planned"]}


def built(planner, checkpointer=None):
    graph = StateGraph(Trip)
    graph.add_node("plan", planner)
    graph.add_node("tools", ToolNode([look_up, book, note]))
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", tools_condition)
    graph.add_edge("tools", "plan")
    return graph.compile(checkpointer=checkpointer)


class Words(TypedDict):
    cities: list[str]
    told: Annotated[list[str], operator.add]


async def tell(city):
    return {"told": [(await model.ainvoke(f"Tell me of {city}.")).text]}


def spread(state):
    return [Send("tell", city) for city in state["cities"]]


def whole():
    graph = StateGraph(Words)
    graph.add_node("tell", tell)
    graph.add_node("left", lambda state: {"told": [f"left of {len(state['cities'])}"]})
    graph.add_node("right", lambda state: {"told": [f"right of {len(state['cities'])}"]})
    graph.add_edge(START, "left")
    graph.add_edge(START, "right")
    graph.add_conditional_edges(START, spread, ["tell"])
    graph.add_edge("tell", END)
    return graph.compile()


def show(name, graph, config):
    state = graph.get_state(config)
    print(name, state.values["notes"], [message.text for message in state.values["messages"]], state.next)
    print(name, [(each.metadata["step"], each.next) for each in graph.get_state_history(config)])


ASKED = {"messages": [("user", "Book me a trip.")], "notes": []}


async def main():
    saver = MemorySaver()
    graph, config = built(aplan, saver), {"configurable": {"thread_id": "b"}}
    async for event in graph.astream(ASKED, config, stream_mode="updates"):
        print("astream", *event)
    show("astream", graph, config)
    print((await whole().ainvoke({"cities": ["Oslo", "Bergen", "Bodø"], "told": []}))["told"])
    # The graph of before as a node of another.
    outer = StateGraph(Trip)
    outer.add_node("trip", built(aplan))
    outer.add_node("end", lambda state: {"notes": [f"after {len(state['messages'])} messages"]})
    outer.add_edge(START, "trip")
    outer.add_edge("trip", "end")
    graph, config = outer.compile(checkpointer=saver), {"configurable": {"thread_id": "c"}}
    await graph.ainvoke(ASKED, config)
    show("subgraph", graph, config)


graph, config = built(plan, MemorySaver()), {"configurable": {"thread_id": "a"}}
graph.invoke(ASKED, config)
show("invoked", graph, config)
print("checkpoint", graph.get_state(config).config["configurable"]["checkpoint_id"])
asyncio.run(main())
