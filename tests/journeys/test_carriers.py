"""Cassettes, archives and message lists, replayed with an agent of one's own: no trace was ever made of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from desk import Desk
from stories import ORDER_DESK as DESK

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "formats"
PRICES = """
import os
import httpx
from openai import NotFoundError, OpenAI

client = OpenAI(max_retries=0)
asked = {"model": "stand-in-price", "messages": [{"role": "user", "content": "Price of KETTLE-2L?"}]}
print(client.chat.completions.create(**asked).choices[0].message.tool_calls[0].function.name)
print(sum(1 for _ in client.chat.completions.create(**asked, stream=True)) > 1)
if os.environ.get("QUOTE", "1") == "1":
    print(httpx.get("http://127.0.0.1:8817/pricing/quote?sku=KETTLE-2L").json()["sku"])
try:
    client.chat.completions.create(**{**asked, "model": "nobody"})
except NotFoundError as error:
    print("refused:", error.status_code)
"""
WEATHER = """
import json
import reenact
from openai import OpenAI

@reenact.tool
def weather(city: str) -> str:
    raise SystemExit("the tool ran for real")

client = OpenAI()
tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Weather in Delft?"}]
first = client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=[tool]).choices[0].message
(call,) = first.tool_calls
messages.append({"role": "assistant", "tool_calls": [{"id": call.id, "type": "function", "function": {
    "name": call.function.name, "arguments": call.function.arguments}}]})
messages.append({"role": "tool", "tool_call_id": call.id, "content": weather(**json.loads(call.function.arguments))})
print(client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=[tool]).choices[0].message.content)
"""


@pytest.mark.parametrize("case", ["vcrpy/input.yaml", pytest.param("vcrpy_json/input.json", marks=pytest.mark.slow)])
def test_a_cassette_answers_the_agent_and_its_tools(desk: Desk, case: str) -> None:
    cassette = str(GOLDEN / "vcr_cassette" / case)
    program = desk.write("orders.py", DESK)
    done = desk.reenact("replay", cassette, "--json", "--", "python", program)
    said = json.loads(done.stdout)
    assert (said["result"], said["live"], said["misses"], said["unconsumed"]) == ("same", 0, [], []), done.stderr
    assert said["answered"] == {"llm": 3, "tool": 2}
    printed = desk.reenact("replay", cassette, "--", "python", program)
    assert "A-1001" in printed.stdout


@pytest.mark.slow
def test_a_changed_question_leaves_the_cassette(desk: Desk) -> None:
    desk.environ["QUESTION"] = "Where is my bill?"
    program = desk.write("orders.py", DESK)
    done = desk.reenact("replay", str(GOLDEN / "vcr_cassette/vcrpy/input.yaml"), "--", "python", program)
    assert done.returncode == 1
    assert "messages[1].content" in done.stderr.splitlines()[0]


@pytest.mark.slow
def test_what_nock_recorded_of_a_model_and_of_plain_http_answers_alike(desk: Desk) -> None:
    recording = str(GOLDEN / "nock/recorded/input.json")
    program = desk.write("prices.py", PRICES)
    done = desk.reenact("replay", recording, "--", "python", program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:4] == ["current_price", "True", "KETTLE-2L", "refused: 404"]
    desk.environ["QUOTE"] = "0"
    less = desk.reenact("replay", recording, "--", "python", program)
    assert less.returncode == 1, less.stderr


def test_a_browsers_archive_answers_the_calls_of_models(desk: Desk) -> None:
    shown = json.loads(desk.reenact("show", str(GOLDEN / "har/proxy/input.har"), "--json").stdout)
    facts = next(call["attributes"] for call in shown["calls"] if call["attributes"].get("reenact.run.root"))
    assert facts["har.left_out"] == 2
    assert json.loads(facts["har.left_out.hosts"]) == {"fonts.example.com": 1, "telemetry.example.com": 1}
    lost = {reason["lost"] for reason in shown["run"]["verdict"]["reasons"]}
    assert any("without the bodies" in each for each in lost), lost
    assert any("net::ERR_ABORTED" in each for each in lost), lost


@pytest.mark.parametrize(
    "case", ["messages/bare_list/input.json", pytest.param("trajectory/atif/input.json", marks=pytest.mark.slow)]
)
def test_a_list_of_messages_is_enough_for_its_agent(desk: Desk, case: str) -> None:
    source = str(GOLDEN / case)
    program = desk.write("weather.py", WEATHER.replace("Weather in Delft?", "Weather?") if "atif" in case else WEATHER)
    if "atif" in case:
        program = desk.write(
            "weather.py",
            (desk.folder / "weather.py").read_text().replace('{"role": "system", "content": "Be brief."}, ', ""),
        )
    done = desk.reenact("replay", source, "--", "python", program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("It rains.")
    verdict = json.loads(desk.reenact("doctor", source, "--json").stdout)["verdict"]
    assert verdict["grade"] == "partial"
    assert {"parameters", "tools"} <= {reason["field"] for reason in verdict["reasons"]}, verdict


ELSEWHERE = """
import sys
import httpx, yaml
for each in yaml.safe_load(open(sys.argv[1]))["interactions"]:
    asked = each["request"]
    reply = httpx.request(asked["method"].upper(), asked["uri"], content=asked["body"])
    print(reply.status_code, len(reply.content) > 0)
"""


@pytest.mark.parametrize(
    "case",
    [
        "google-genai/test_interactions_instrumentation/test_generate_interactions_simple_message[False].yaml",
    ],
)
@pytest.mark.slow
def test_an_api_that_nobody_reads_answers_as_plain_http(desk: Desk, shared_data: Path, case: str) -> None:
    cassette = str(shared_data / "cassettes" / case)
    program = desk.write("elsewhere.py", ELSEWHERE)
    done = desk.reenact("replay", cassette, "--", "python", program, cassette)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split("\n")) == {"200 True", ""}
    (lost,) = {
        reason["lost"]
        for reason in json.loads(desk.reenact("doctor", cassette, "--json").stdout)["verdict"]["reasons"]
        if reason["call"] != "run" and reason["field"] == "shape"
    }
    assert "does not read" in lost
