from pathlib import Path

from crewai import LLM, Agent, Crew, Process, Task
from crewai.tools import BaseTool, tool


def effect(text):
    with Path("effects.txt").open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")


@tool("look_up")
def look_up(city: str) -> str:
    """Look a city up."""
    effect(f"looked {city} up")
    return f"{city} is rainy"


@tool("book")
def book(city: str) -> str:
    """Book a trip."""
    effect(f"booked {city}")
    return f"booked {city}"


class Note(BaseTool):
    name: str = "note"
    description: str = "Note something down."
    kept: list[str] = []

    def _run(self, text: str) -> str:
        effect(f"noted {text}")
        self.kept.append(text)
        return f"noted as number {len(self.kept)}"


note = Note()
model = LLM(model="openai/gpt-4o-mini")
planner = Agent(role="Planner", goal="Plan a trip", backstory="You plan.", llm=model, tools=[look_up])
booker = Agent(role="Booker", goal="Book a trip", backstory="You book.", llm=model, tools=[book, note])
plan = Task(description="Plan a trip.", expected_output="A plan.", agent=planner)
booking = Task(description="Book the trip.", expected_output="A number.", agent=booker, context=[plan])
crew = Crew(agents=[planner, booker], tasks=[plan, booking], process=Process.sequential)
said = crew.kickoff()
print(said.raw, [each.raw for each in said.tasks_output], note.kept, said.token_usage.successful_requests)
