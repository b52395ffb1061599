"""A trace that another vendor's emitter wrote, replayed with an agent of one's own."""

from __future__ import annotations

import json
from pathlib import Path

from desk import Desk

AGENT = """
import json, os
import reenact
from openai import OpenAI

@reenact.tool
def get_current_weather(location: str) -> str:
    raise SystemExit("the tool ran for real")

schema = {"type": "function", "function": {
    "name": "get_current_weather", "description": "Get the current weather in a given location",
    "parameters": {"type": "object", "properties": {
        "location": {"type": "string", "description": "The city and state, e.g. Boston, MA"}},
        "required": ["location"], "additionalProperties": False}}}
messages = [
    {"role": "system", "content": "You're a helpful assistant."},
    {"role": "user", "content": os.environ.get("QUESTION", "What's the weather in Seattle and San Francisco today?")},
]
client = OpenAI()
first = client.chat.completions.create(model="gpt-4o-mini", messages=messages, tool_choice="auto", tools=[schema])
calls = first.choices[0].message.tool_calls
messages.append({"role": "assistant", "tool_calls": [
    {"id": c.id, "type": "function", "function": {"name": c.function.name, "arguments": c.function.arguments}}
    for c in calls]})
for call in calls:
    result = get_current_weather(**json.loads(call.function.arguments))
    messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
print(client.chat.completions.create(model="gpt-4o-mini", messages=messages).choices[0].message.content)
"""


def test_an_openinference_trace_answers_the_agent(desk: Desk, shared_data: Path) -> None:
    trace = str(shared_data / "traces" / "rosetta" / "openinference.otlp.jsonl")
    program = desk.write("weather.py", AGENT)
    done = desk.reenact("replay", trace, "--", "python", program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Today, the weather in Seattle is 50 degrees and raining")
    verdict = json.loads(desk.reenact("doctor", trace, "--json").stdout)["verdict"]
    assert verdict["grade"] == "partial"
    assert {"reply", "entry"} <= {reason["field"] for reason in verdict["reasons"]}


def test_a_changed_question_leaves_a_foreign_trace(desk: Desk, shared_data: Path) -> None:
    trace = str(shared_data / "traces" / "rosetta" / "openinference.otlp.jsonl")
    program = desk.write("weather.py", AGENT)
    desk.environ["QUESTION"] = "What's the weather in Oslo?"
    done = desk.reenact("replay", trace, "--", "python", program)
    assert done.returncode == 1
    assert "messages[1].content" in done.stderr.splitlines()[0]
