import os
from pathlib import Path

from smolagents import CodeAgent, OpenAIServerModel, tool


def effect(text):
    with Path("effects.txt").open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")


@tool
def look_up(city: str) -> str:
    """Look a city up.

    Args:
        city: The city.
    """
    effect(f"looked {city} up")
    return f"{city} is rainy"


@tool
def book(city: str) -> str:
    """Book a trip.

    Args:
        city: The city.
    """
    effect(f"booked {city}")
    return f"booked {city}"


model = OpenAIServerModel("small", api_base=os.environ["OPENAI_BASE_URL"], api_key="sk")
agent = CodeAgent(tools=[look_up, book], model=model, verbosity_level=0)
print(agent.run("Book me a trip."))
print([step.code_action for step in agent.memory.steps if hasattr(step, "code_action")])
