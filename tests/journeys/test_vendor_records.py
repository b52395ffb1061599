"""Records that vendors' own SDKs made of a run answer the program that was run: replies, a tool, and a refusal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from desk import Desk
from golden_cases import GOLDEN
from stories import ORDERS_BY_HAND as AGENT


def test_a_batch_of_langsmiths_sdk_answers_the_agent(desk: Desk) -> None:
    records = str(GOLDEN / "formats" / "langsmith" / "sdk_batch" / "input.json")
    done = desk.reenact("replay", records, "--", "python", desk.write("agent.py", AGENT))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Order A-1 was shipped to Zoë.\nRateLimitError 429\n"
    assert done.stderr.startswith("same: 3 llm, 1 tool calls answered from the recording, 0 live")


def test_what_a_vendor_did_not_write_down_is_not_made_up(desk: Desk) -> None:
    records = str(GOLDEN / "formats" / "braintrust" / "sdk_rows" / "input.jsonl")
    done = desk.reenact("replay", records, "--", "python", desk.write("agent.py", AGENT))
    assert done.returncode == 125, done.stderr  # this SDK's row of the refused call has neither output nor error
    assert done.stdout.startswith("Order A-1 was shipped to Zoë.\n")
    assert "2 llm, 1 tool calls answered from the recording, 0 live" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["langfuse.otlp.jsonl", "langsmith.otlp.jsonl", "langsmith.runs.jsonl", "mlflow.trace.json",
     "braintrust.rows.jsonl", "datadog-llmobs.events.jsonl", "openai-agents.tracing.jsonl"],
)  # fmt: skip
def test_every_vendors_record_of_one_exchange_answers_the_agent(
    name: str, desk: Desk, shared_data: Path, record_property: Callable[[str, object], None]
) -> None:
    records = shared_data / "traces" / "rosetta" / name
    if not records.exists():
        pytest.skip(f"no {name} in ../shared/data")
    done = desk.reenact("replay", str(records), "--", "python", desk.write("weather.py", WEATHER))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Today, the weather in Seattle is 50 degrees and raining")
    assert done.stderr.startswith("same: 2 llm, 2 tool calls answered from the recording, 0 live")
    verdict = json.loads(desk.reenact("doctor", str(records), "--json").stdout)["verdict"]
    lost = sorted({reason["field"] for reason in verdict["reasons"] if reason["call"] != "run"})
    record_property("figure", f"{name}: replayed, tools not run; verdict {verdict['grade']}, lost: {', '.join(lost)}")


WEATHER = """
import json, openai

SCHEMA = {"type": "function", "function": {
    "name": "get_current_weather", "description": "Get the current weather in a given location",
    "parameters": {"type": "object", "properties": {
        "location": {"type": "string", "description": "The city and state, e.g. Boston, MA"}},
        "required": ["location"], "additionalProperties": False}}}

def get_current_weather(location):
    raise SystemExit("the tool ran for real")

messages = [
    {"role": "system", "content": "You're a helpful assistant."},
    {"role": "user", "content": "What's the weather in Seattle and San Francisco today?"}]
client = openai.OpenAI()
first = client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=[SCHEMA], tool_choice="auto")
calls = first.choices[0].message.tool_calls
messages.append({"role": "assistant", "tool_calls": [
    {"id": c.id, "type": "function", "function": {"name": c.function.name, "arguments": c.function.arguments}}
    for c in calls]})
for call in calls:
    result = get_current_weather(**json.loads(call.function.arguments))
    messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
print(client.chat.completions.create(model="gpt-4o-mini", messages=messages).choices[0].message.content)
"""
