import asyncio
import os
from pathlib import Path

import dspy


def effect(text):
    with Path("effects.txt").open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")


def look_up(city: str) -> str:
    """Look a city up."""
    effect(f"looked {city} up")
    return f"{city} is rainy"


def book(city: str) -> str:
    """Book a trip."""
    effect(f"booked {city}")
    return f"booked {city}"


async def note(text: str) -> str:
    """Note something down."""
    effect(f"noted {text}")
    return "noted"


dspy.configure(lm=dspy.LM("openai/small", api_base=os.environ["OPENAI_BASE_URL"], api_key="sk", cache=False))
said = dspy.ReAct("question -> answer", tools=[look_up, book])(question="Book me a trip.")
print(said.answer, sorted(said.trajectory))
said = asyncio.run(dspy.ReAct("question -> answer", tools=[look_up, note]).acall(question="Note me a trip."))
print(said.answer, said.trajectory["observation_0"])
print(dspy.ChainOfThought("question -> answer")(question="Why?").answer)
