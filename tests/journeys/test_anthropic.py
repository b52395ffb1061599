"""An agent on Anthropic's SDK, which shows its calls on the application's own tracer provider as well."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from dataclasses import replace

import anthropic
import pytest

from desk import Desk
from golden_cases import GOLDEN
from matrix.serving import Provider, Reply
from matrix.test_anthropic_seam import EVENT_STREAM, EVENTS, error_body, message
from reenact.formats.otlp_json import FORMAT
from reenact.graph.build import build
from reenact.graph.verdict import facts
from reenact.read.open import open_spans

AGENT = """
import asyncio, json, os, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

kept = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(kept))
trace.set_tracer_provider(provider)

import anthropic
import reenact

ASKED = {"model": "stand-in-large-1", "max_tokens": 64}
QUESTION = [{"role": "user", "content": "Where is parcel 4711?"}]
LOCATE = {"name": "locate", "description": "Find.", "input_schema": {"type": "object", "properties": {}}}

@reenact.tool
def locate(parcel: int) -> str:
    assert "LIVE" in os.environ, "the tool ran for real"
    return f"{parcel} is in hall 7"

def turn(client):
    history = list(QUESTION)
    while True:
        said = client.messages.create(**ASKED, tools=[LOCATE], messages=history)
        if said.stop_reason != "tool_use":
            return said.content[-1].text
        blocks = [block.model_dump(exclude_unset=True) for block in said.content]
        history.append({"role": "assistant", "content": blocks})
        history.append({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": block.id, "content": locate(**block.input)}
            for block in said.content if block.type == "tool_use"]})

with trace.get_tracer("desk").start_as_current_span("ticket"):
    print([name for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY") if name in os.environ])
    client = anthropic.Anthropic(max_retries=2)
    print(turn(client))
    for event in client.messages.create(**ASKED, messages=QUESTION, stream=True):
        if event.type == "content_block_delta":
            print(event.delta.text, end="|")
    with client.messages.stream(**ASKED, messages=QUESTION) as stream:
        print(stream.get_final_text())
    async def vote():
        async with anthropic.AsyncAnthropic() as client:
            asked = [client.messages.create(**ASKED, messages=QUESTION) for _ in range(5)]
            return [said.content[0].text for said in await asyncio.gather(*asked)]
    print(asyncio.run(vote()))
    print(client.messages.count_tokens(model="stand-in-large-1", messages=QUESTION).input_tokens)
    try:
        client.messages.create(**ASKED, messages=[{"role": "user", "content": ""}])
    except anthropic.BadRequestError as error:
        print(type(error).__name__, error.status_code, error.body)

from reenact.export.readable import from_readable
from reenact.formats.otlp_json import FORMAT
if "LIVE" in os.environ:
    with open(sys.argv[1], "wb") as shown:
        shown.write(FORMAT.encode([from_readable(span) for span in kept.get_finished_spans()]))
"""
SOON = (("retry-after-ms", "5"),)


def tool_use() -> bytes:
    said = json.loads(message("Let me look."))
    call = {"type": "tool_use", "id": "toolu_1", "name": "locate", "input": {"parcel": 4711}}
    thought = {"type": "thinking", "thinking": "Look it up.", "signature": "c2lnbmVk"}
    return json.dumps({**said, "stop_reason": "tool_use", "content": [thought, *said["content"], call]}).encode()


REPLIES = (
    Reply(status=529, body=error_body("overloaded_error"), headers=SOON),
    Reply(body=tool_use()),
    Reply(body=message("It is in hall 7.")),
    Reply(pieces=EVENTS, content_type=EVENT_STREAM),
    Reply(pieces=EVENTS, content_type=EVENT_STREAM),
    *(Reply(body=message(f"vote {number}")) for number in range(5)),
    Reply(body=b'{"input_tokens": 12}'),
    Reply(status=400, body=error_body("invalid_request_error")),
)
CALLS = len(REPLIES) - 1
"""Calls of the SDK; the first was tried twice."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Desk, str]:
    """A folder with the recorded run, and what the program printed."""
    desk = Desk(tmp_path_factory.mktemp("desk"))
    program = desk.write("parcels.py", AGENT)
    with Provider() as provider:
        base_url = provider.answer("anthropic", *REPLIES).removesuffix("/v1")
        desk.environ |= {"ANTHROPIC_BASE_URL": base_url, "ANTHROPIC_API_KEY": "sk-none", "LIVE": "1"}
        desk.environ["ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE"] = "content"
        desk.environ["XDG_CACHE_HOME"] = str(desk.folder)  # what it writes there is no part of the run
        done = desk.reenact("run", "--", "python", program, "live.jsonl")
    assert done.returncode == 0, done.stderr
    return desk, done.stdout


@pytest.mark.skipif(int(anthropic.__version__.partition(".")[0]) < 2, reason="this anthropic opens no spans of its own")
def test_the_sdk_s_own_spans_double_no_record(
    recorded: tuple[Desk, str], record_property: Callable[[str, object], None]
) -> None:
    desk, _ = recorded
    summary = json.loads(desk.reenact("ls", "--json").stdout)["runs"][-1]
    assert (summary["calls"]["llm"], summary["calls"]["tool"]) == (len(REPLIES), 1)
    lost = [
        reason["lost"].partition(" at ")[0]
        for reason in json.loads(desk.reenact("doctor", "--json").stdout)["verdict"]["reasons"]
    ]
    assert lost == []
    shown = list(open_spans(desk.folder / "live.jsonl"))
    own = [span for span in shown if span.scope.name == "com.anthropic.sdk.python"]
    assert len(own) == CALLS
    assert any("gen_ai.output.messages" in span.attributes for span in own)
    exported = desk.folder / "exported.jsonl"
    assert desk.reenact("export", summary["id"], "-o", str(exported)).returncode == 0
    for spans in (shown, [*shown, *open_spans(exported)]):
        (run,) = build(spans)
        assert facts(run.nodes)["llm"] == len(REPLIES)
        assert all("reenact.schema_version" in node.span.attributes for node in run.nodes if node.kind == "LLM")
        told = f"{CALLS} calls, {len(REPLIES)} attempts, {len(own)} native spans, {facts(run.nodes)['llm']} records"
        record_property("figure", f"anthropic {anthropic.__version__} with its own spans on: {told}, 0 doubled")


def test_an_agent_on_anthropic_replays_offline(recorded: tuple[Desk, str]) -> None:
    desk, printed = recorded
    lines = printed.splitlines()
    assert lines[:3] == ["['ANTHROPIC_API_KEY']", "It is in hall 7.", "In |hall |7|.|In hall 7."]
    assert lines[-2:] == ["12", f"BadRequestError 400 {json.loads(error_body('invalid_request_error'))}"]
    run = next(each["id"] for each in json.loads(desk.reenact("ls", "--json").stdout)["runs"] if not each["replay_of"])
    done = desk.reenact("replay", run, environ=desk.bare())
    assert (done.returncode, done.stdout) == (0, printed), done.stderr
    assert f"{len(REPLIES)} llm, 1 tool calls answered from the recording, 0 live" in done.stderr


@pytest.mark.slow
def test_a_trace_with_the_sdk_s_own_spans_in_it_replays_the_same(recorded: tuple[Desk, str]) -> None:
    desk, printed = recorded
    run = next(each["id"] for each in json.loads(desk.reenact("ls", "--json").stdout)["runs"] if not each["replay_of"])
    assert desk.reenact("export", run, "-o", "ours.jsonl").returncode == 0
    mixed = desk.folder / "mixed.jsonl"
    mixed.write_bytes((desk.folder / "ours.jsonl").read_bytes() + (desk.folder / "live.jsonl").read_bytes())
    done = desk.reenact("replay", str(mixed), "--", "python", "parcels.py", "none.jsonl", environ=desk.bare())
    assert (done.returncode, done.stdout) == (0, printed), done.stderr
    shown = desk.reenact("replay", "live.jsonl", "--", "python", "parcels.py", "none.jsonl", environ=desk.bare())
    assert (shown.returncode, shown.stdout) == (0, printed), shown.stderr


FOREIGN = """
import anthropic
QUESTION = [{"role": "user", "content": "Where is parcel 4711?"}]
ASKED = {"model": "stand-in-large-1", "max_tokens": 64, "messages": QUESTION}
client = anthropic.Anthropic()
print(client.messages.create(**ASKED).content[0].text)
print([event.type for event in client.messages.create(**ASKED, stream=True)])
with client.messages.stream(**ASKED) as stream:
    print(stream.get_final_text())
"""


def test_openinference_s_spans_answer_calls_and_streams(desk: Desk) -> None:
    spans = [*open_spans(GOLDEN / "twins" / "anthropic" / "openinference" / "spans.jsonl")]
    theirs = [span for span in spans if span.scope.name in ("openinference.instrumentation.anthropic", "app")][:4]
    (desk.folder / "theirs.jsonl").write_bytes(FORMAT.encode([replace(span, parent_id=None) for span in theirs]))
    program = desk.write("asks.py", FOREIGN)
    done = desk.reenact("replay", "theirs.jsonl", "--", "python", program, environ=desk.bare())
    assert done.returncode == 0, done.stderr
    start, *events = ast.literal_eval(done.stdout.splitlines()[1])
    assert (start, events[-1]) == ("message_start", "message_stop")
    assert done.stdout.splitlines()[::2] == ["In hall 7.", "In hall 7."]


@pytest.mark.slow
def test_a_changed_tool_result_is_told_by_its_field(recorded: tuple[Desk, str]) -> None:
    desk, _ = recorded
    run = next(each["id"] for each in json.loads(desk.reenact("ls", "--json").stdout)["runs"] if not each["replay_of"])
    (desk.folder / "other.py").write_text(AGENT.replace("in hall 7", "in hall 8"))
    done = desk.reenact("replay", run, "--tools", "live", "--", "python", "other.py", "none.jsonl")
    assert done.returncode == 1
    first, *more = done.stderr.splitlines()
    assert 'tool locate #4: returned: recorded "4711 is in hall 7", replay "4711 is in hall 8"' in first
    assert any("messages[2].content[0].content" in line for line in more), done.stderr
