import os
from pathlib import Path

from smolagents import OpenAIServerModel, Tool, ToolCallingAgent, tool


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


class Notes(Tool):
    name = "note"
    description = "Note something down."
    inputs = {"text": {"type": "string", "description": "The text."}}
    output_type = "string"

    def __init__(self):
        super().__init__()
        self.kept = []

    def forward(self, text: str) -> str:
        effect(f"noted {text}")
        self.kept.append(text)
        return f"noted as number {len(self.kept)}"


def made(model, notes):
    return ToolCallingAgent(tools=[look_up, book, notes], model=model, verbosity_level=0, max_tool_threads=2)


model = OpenAIServerModel("small", api_base=os.environ["OPENAI_BASE_URL"], api_key="sk")
notes = Notes()
agent = made(model, notes)
print(agent.run("Book me a trip."), notes.kept, len(agent.memory.steps))
for step in made(model, notes).run("Book me a trip.", stream=True):
    print(type(step).__name__)
print(notes.kept)
