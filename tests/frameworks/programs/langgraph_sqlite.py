import sys
from pathlib import Path

from langchain.agents import create_agent
from langchain.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite import SqliteSaver
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
    """Book a trip."""
    effect(f"booked {city}")
    return f"booked {city}"


@tool
def note(text: str) -> str:
    """Note something down, when somebody has said where."""
    where = interrupt(f"Where do I note {text!r}?")
    effect(f"noted {text} {where}")
    return f"noted {where}"


with SqliteSaver.from_conn_string("checkpoints.db") as saver:
    agent = create_agent(ChatOpenAI(model="small"), tools=[look_up, book, note], checkpointer=saver)
    config = {"configurable": {"thread_id": "trip"}}
    if sys.argv[1] == "begin":
        given = {"messages": [{"role": "user", "content": "Book me a trip."}]}
    else:
        given = Command(resume="on paper")
    for state in agent.stream(given, config, stream_mode="values"):
        print(len(state["messages"]), [each.value for each in state.get("__interrupt__", ())])
    state = agent.get_state(config)
    print(state.next, [message.text for message in state.values["messages"]])
    print(len(list(agent.get_state_history(config))), "checkpoints")
