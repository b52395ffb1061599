"""What stands behind the commands of the documents: programs, recordings and files, as a reader would have them.

`RUN` names, by page and by how the first command of a block begins, who makes the scene of that block; the commands of
the block are then run in it, one after the other. `NOT_RUN` says of each other command why it is not run so.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from desk import EXAMPLES, Desk
from reenact.demo.provider import StandIn

GOLDEN = Path(__file__).parent / "golden"
SEED = 5
"""With it the stand-in says what stands in the documents."""
Scene = Callable[[Desk], AbstractContextManager[Mapping[str, str]]]
"""Makes a folder as a block has it; gives what stands there for a word of the block, such as the id of a run."""

THREE_TOOLS = """
import reenact

@reenact.tool
def weigh(thing: str) -> str:
    return f"{thing}: 3 kg"

for thing in ("otter", "kettle", "crate"):
    print(weigh(thing))
"""
ORDER_DESK = """
import json, os
import reenact
from openai import OpenAI

@reenact.tool
def lookup_order(query: str, user_id: str = "") -> list:
    raise SystemExit("the tool ran for real")

@reenact.tool
def order_status(order_id: str) -> dict:
    raise SystemExit("the tool ran for real")

def schema(name, *parameters):
    properties = {each: {"type": "string"} for each in parameters}
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}

do = {"lookup_order": lookup_order, "order_status": order_status}
client = OpenAI(base_url="http://127.0.0.1:1/v1")
messages = [{"role": "system", "content": "You are the order desk. You serve user u-17."},
            {"role": "user", "content": os.environ.get("QUESTION", "Where is my order?")}]
tools = [schema("lookup_order", "query", "user_id"), schema("order_status", "order_id")]
while True:
    reply = client.chat.completions.create(model="stand-in-order-desk", messages=messages, tools=tools)
    said = reply.choices[0].message
    messages.append(said.model_dump(exclude_none=True))
    if not said.tool_calls:
        break
    for call in said.tool_calls:
        result = do[call.function.name](**json.loads(call.function.arguments))
        text = result if isinstance(result, str) else json.dumps(result)
        messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
print(said.content)
"""
ORDERS_BY_HAND = """
import json, openai

TOOLS = [{"type": "function", "function": {"name": "find_order", "description": "Find an order.", "parameters": {
    "type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}}}]

def find_order(order):
    raise SystemExit("the tool ran for real")

client = openai.OpenAI(max_retries=0)
messages = [{"role": "system", "content": "You look after orders."}, {"role": "user", "content": "Where is A-1?"}]
first = client.chat.completions.create(
    model="small", messages=messages, tools=TOOLS, tool_choice="auto", temperature=0.25)
call = first.choices[0].message.tool_calls[0]
result = find_order(**json.loads(call.function.arguments))
messages += [
    {"role": "assistant", "content": None, "tool_calls": [call.model_dump(exclude_none=True)]},
    {"role": "tool", "tool_call_id": call.id, "content": json.dumps(result, ensure_ascii=False)}]
print(client.chat.completions.create(model="small", messages=messages, temperature=0.25).choices[0].message.content)
try:
    client.chat.completions.create(model="broken", messages=[{"role": "user", "content": "Again?"}])
except openai.RateLimitError as refusal:
    print(type(refusal).__name__, refusal.status_code)
"""
SAFETY = """# what the clean-up may do
never called delete_accounts where target = "production"
called list_inactive_accounts before delete_accounts
arguments of delete_accounts fit its schema
answer contains "staging"
cost at most 0.05 usd
prose: answer says "accounts in production were deleted"
"""
JUDGES = """
def strict(answer, statement):
    return {"holds": False, "score": 0.1, "reason": "it says staging"}
"""
NOT_PRODUCTION = 'never called delete_accounts where target = "production"\n'


TRACED = """
import os
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
for name in ("weigh", "count"):
    with provider.get_tracer("another").start_as_current_span(name):
        pass
"""
SELF_RECORDED = """
import os, signal
import reenact

@reenact.tool
def step(number: int) -> int:
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number

with reenact.record():
    for number in range(3):
        step(number)
"""
WEIGHS = """
import os
import reenact
from openai import OpenAI

@reenact.tool
def weigh(unit: str) -> str:
    return "3"

print(OpenAI().chat.completions.create(model="stand-in-price", messages=[{"role": "user", "content": "Hello"}]).model)
weigh(os.environ["UNIT"])
"""
OPENAI_KEY = "sk-" + "proj-" + "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z" + "T3BlbkFJ" + "Zy9xWv8uTs7rQp6oNm5lKj4iHg3fEd2c"


def free_port() -> int:
    """Give a port of this machine that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def backend_after_a_status(desk: Desk, port: int) -> Iterator[None]:
    """Serve OTLP at a port once the file `up` is there."""
    with subprocess.Popen([sys.executable, "-c", BACKEND, str(port)], cwd=desk.folder) as server:
        try:
            yield
        finally:
            server.kill()


BACKEND = """
import http.server, os, sys, time

class Takes(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", "0")
        self.end_headers()
    def log_message(self, *_):
        pass

while not os.path.exists("up"):
    time.sleep(0.05)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Takes).serve_forever()
"""


def recorded(desk: Desk, *words: str, **settings: str) -> None:
    """Record an example, copied here, against a stand-in provider that slips; then nobody is there to talk to."""
    (name, *_), folder = words, desk.folder
    if not (folder / name).exists():
        shutil.copy(EXAMPLES / name, folder / name)
    with StandIn(SEED, slip=1.0, max_delay_ms=1) as provider:
        done = desk.reenact(
            "run", "-q", "--", "python", *words, environ={**desk.settings(), **provider.environment, **settings}
        )
    assert done.returncode == 0, done.stderr


def newest(desk: Desk) -> str:
    """Give the id of the newest run."""
    return str(json.loads(desk.reenact("ls", "--json").stdout)["runs"][0]["id"])


@contextmanager
def cleanup(desk: Desk) -> Iterator[Mapping[str, str]]:
    """The clean-up agent deleted in production."""
    recorded(desk, "cleanup_agent.py")
    yield {"RUN": newest(desk)}


@contextmanager
def cleanup_judged(desk: Desk) -> Iterator[Mapping[str, str]]:
    """The same, with a file of assertions and a judge of prose."""
    recorded(desk, "cleanup_agent.py")
    desk.write("safety.txt", SAFETY)
    desk.write("judges.py", JUDGES)
    yield {}


@contextmanager
def cleanup_checked(desk: Desk) -> Iterator[Mapping[str, str]]:
    """The same, with the assertions of the incident, and the agent with another wording."""
    recorded(desk, "cleanup_agent.py")
    desk.write("incident.check", NOT_PRODUCTION + "called list_inactive_accounts\n")
    source = (EXAMPLES / "cleanup_agent.py").read_text()
    desk.write("reworded.py", source.replace("inactive accounts in staging.", "inactive accounts in staging, please."))
    yield {}


@contextmanager
def cleanup_replayed(desk: Desk) -> Iterator[Mapping[str, str]]:
    """The same, and the last replay is that of the fix."""
    recorded(desk, "cleanup_agent.py")
    desk.reenact("replay", "last", "--", "python", "cleanup_agent.py", "--guarded")
    yield {}


@contextmanager
def cleanup_as_agent(desk: Desk) -> Iterator[Mapping[str, str]]:
    """The same by a program `agent.py`."""
    shutil.copy(EXAMPLES / "cleanup_agent.py", desk.folder / "agent.py")
    recorded(desk, "agent.py")
    yield {}


@contextmanager
def cassette(desk: Desk) -> Iterator[Mapping[str, str]]:
    """The cassette of an order desk, and that desk."""
    shutil.copy(GOLDEN / "formats" / "vcr_cassette" / "vcrpy" / "input.yaml", desk.folder / "orders.yaml")
    desk.write("agent.py", ORDER_DESK)
    yield {}


@contextmanager
def trader(desk: Desk) -> Iterator[Mapping[str, str]]:
    """The trader sold 1,000 shares, at the price of the documents."""
    source = (EXAMPLES / "trader_agent.py").read_text()
    desk.write("trader_agent.py", source.replace("round(random.gauss(208.40, 1.5), 2)", "209.69"))
    recorded(desk, "trader_agent.py")
    yield {}


@contextmanager
def three_tools(desk: Desk) -> Iterator[Mapping[str, str]]:
    """A program of three tools, recorded."""
    desk.write("agent.py", THREE_TOOLS)
    done = desk.reenact("run", "-q", "--", "python", "agent.py")
    assert done.returncode == 0, done.stderr
    yield {"RUN": newest(desk)}


@contextmanager
def beside(desk: Desk) -> Iterator[Mapping[str, str]]:
    """A program of three tools that another instrumentation traces as well."""
    desk.write("agent.py", THREE_TOOLS + TRACED)
    yield {}


@contextmanager
def kept_for_later(desk: Desk) -> Iterator[Mapping[str, str]]:
    """A program of three tools; a backend comes up once it was asked how things stand."""
    desk.write("agent.py", THREE_TOOLS)
    port = free_port()
    place, there = "http://127.0.0.1:4318", f"REENACT_EXPORT=http://127.0.0.1:{port}"
    with backend_after_a_status(desk, port):
        yield {
            f"REENACT_EXPORT={place} reenact status --send": f"touch up; sleep 1; {there} reenact status --send",
            place: f"http://127.0.0.1:{port}",
            "/home/me/agent/": "",
        }


@contextmanager
def foreign(desk: Desk) -> Iterator[Mapping[str, str]]:
    """A trace that a vendor's SDK wrote, and its program; one run as two vendors' emitters traced it."""
    shutil.copy(GOLDEN / "formats" / "langsmith" / "sdk_batch" / "input.json", desk.folder / "trace.jsonl")
    shutil.copy(GOLDEN / "foreign" / "openinference.jsonl", desk.folder / "monday.jsonl")
    shutil.copy(GOLDEN / "foreign" / "langsmith.jsonl", desk.folder / "tuesday.json")
    desk.write("agent.py", ORDERS_BY_HAND)
    yield {}


@contextmanager
def langfuse_trace(desk: Desk) -> Iterator[Mapping[str, str]]:
    """A trace as Langfuse's screen saves it."""
    shutil.copy(GOLDEN / "formats" / "langfuse" / "screen" / "input.json", desk.folder / "trace.json")
    yield {}


@contextmanager
def nearly_langfuse(desk: Desk) -> Iterator[Mapping[str, str]]:
    """A file that is nearly one of Langfuse's."""
    record = {"traceId": "t-1", "startTime": "2026-11-20T09:04:00Z", "type": "GENERATION", "name": "chat"}
    desk.write("export.json", json.dumps([record]))
    yield {}


@contextmanager
def misspelled_policy(desk: Desk) -> Iterator[Mapping[str, str]]:
    """A policy whose fourth line names no class."""
    desk.write("policy.toml", 'name = "ours"\n\n[classes]\ne_male = "keep"\n')
    yield {}


@contextmanager
def support_trace(desk: Desk) -> Iterator[Mapping[str, str]]:
    """A span of another vendor's with an address, a key and a telephone number."""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "small",
        "gen_ai.input.messages": json.dumps(
            [
                {
                    "role": "user",
                    "parts": [{"type": "text", "content": "Call +1 415 555 2671 or ada@engines.example.org"}],
                }
            ]
        ),
        "http.request.header.authorization": f"Bearer {OPENAI_KEY}",
    }
    span = {
        "traceId": "ab" * 16,
        "spanId": "cd" * 8,
        "name": "chat small",
        "startTimeUnixNano": "1763629440000000000",
        "endTimeUnixNano": "1763629441000000000",
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
        "status": {"code": 2, "message": "no mailbox ada@engines.example.org"},
    }
    desk.write("support.json", json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}))
    yield {}


@contextmanager
def killed(desk: Desk) -> Iterator[Mapping[str, str]]:
    """A program that recorded itself and was killed in its third tool."""
    desk.write("a.py", SELF_RECORDED)
    done = desk.run([sys.executable, "a.py"])
    assert done.returncode == -9, done.stderr
    yield {}


@contextmanager
def notebook(desk: Desk) -> Iterator[Mapping[str, str]]:
    """The agent that declares no tool."""
    recorded(desk, "notebook_agent.py")
    yield {}


@contextmanager
def own_agent(desk: Desk) -> Iterator[Mapping[str, str]]:
    """A program that nobody recorded yet."""
    desk.write("your_agent.py", THREE_TOOLS)
    yield {}


@contextmanager
def crew(desk: Desk) -> Iterator[Mapping[str, str]]:
    """A crew of children, and somebody for them to talk to."""
    (desk.folder / "examples").mkdir()
    shutil.copy(EXAMPLES / "crew_agent.py", desk.folder / "examples")
    with StandIn(max_delay_ms=1) as provider:
        desk.environ.update(provider.environment)
        yield {}


@contextmanager
def unit(desk: Desk) -> Iterator[Mapping[str, str]]:
    """An agent whose tool is told another unit by the environment."""
    desk.write("agent.py", WEIGHS)
    recorded(desk, "agent.py", UNIT="kg")
    yield {}


@contextmanager
def strangers(desk: Desk) -> Iterator[Mapping[str, str]]:
    """A recording that somebody else made of the order desk."""
    elsewhere = Desk(desk.folder / "elsewhere", {"REENACT_KEY": "another" * 5})
    elsewhere.folder.mkdir()
    shutil.copy(EXAMPLES / "order_desk.py", elsewhere.folder / "agent.py")
    recorded(elsewhere, "agent.py")
    done = elsewhere.reenact("export", "last", "-o", str(desk.folder / "incident.jsonl"))
    assert done.returncode == 0, done.stderr
    shutil.copy(EXAMPLES / "order_desk.py", desk.folder / "agent.py")
    yield {}


RUN: dict[tuple[str, str], Scene] = {
    ("docs/assertions.md", "reenact check last --assert"): cleanup,
    ("docs/assertions.md", "reenact check last --check safety.txt"): cleanup_judged,
    ("docs/carriers.md", "reenact replay orders.yaml"): cassette,
    ("docs/carriers.md", "reenact step orders.yaml"): cassette,
    ("docs/fork.md", "reenact fork last --at '#6'"): cleanup,
    ("docs/formats.md", "reenact export last --format jaeger"): cleanup,
    ("docs/fuzz.md", "reenact fuzz last --only tools"): trader,
    ("docs/incident-page.md", "reenact incident last"): cleanup_replayed,
    ("docs/judging-a-fix.md", "cat incident.check"): cleanup_checked,
    ("docs/judging-a-fix.md", "reenact replay last --assert 'called list_inactive"): cleanup_checked,
    ("docs/testing.md", "reenact promote last"): cleanup_as_agent,
    ("docs/semconv.md", "reenact export last --semconv genai"): cleanup,
    ("docs/tour.md", "reenact check last"): cleanup,
    ("docs/tour.md", "reenact fork last"): cleanup,
    ("docs/tour.md", "reenact fuzz last"): trader,
    ("docs/collector.md", "reenact run --collect"): beside,
    ("docs/export.md", "REENACT_EXPORT=http://127.0.0.1:4318"): kept_for_later,
    ("docs/export.md", "reenact export RUN -o run.jsonl"): three_tools,
    ("docs/collector.md", "reenact store prune"): cleanup,
    ("docs/finding-runs.md", "reenact ls"): cleanup,
    ("docs/foreign-traces.md", "reenact show"): foreign,
    ("docs/formats-records.md", "reenact doctor"): langfuse_trace,
    ("docs/formats.md", "reenact what"): nearly_langfuse,
    ("docs/policies.md", "reenact policy"): misspelled_policy,
    ("docs/policies.md", "reenact redact"): support_trace,
    ("docs/tour.md", "reenact redact"): support_trace,
    ("docs/reliability.md", "reenact recover"): killed,
    ("docs/tour.md", "reenact recover"): killed,
    ("docs/tour.md", "reenact run -- python examples/crew_agent.py"): crew,
    ("docs/tour.md", "reenact replay last"): notebook,
    ("docs/tour.md", "UNIT=g reenact replay last"): unit,
    ("docs/trust.md", "reenact replay incident.jsonl"): strangers,
    ("docs/tour.md", "pip install"): own_agent,
}
STAYS = "it stays until it is stopped: tests/collect/test_server.py, tests/collect/test_retention.py"
SERVER = "it needs a server that is not ours: tests/phoenix/test_phoenix.py, tests/clickhouse/test_clickhouse.py"
INSTALLS = "it installs: tests/house/test_wheel.py"
COLLECTOR = "it needs the Collector, built of Go modules: tests/collector/test_pipeline.py"
REAL = "its data are of others and not here: tests/journeys/test_cold.py, tests/journeys/test_vendor_records.py"
BISECT = "it needs a history of commits: tests/journeys/test_judging.py"
SERVICE = "it needs a service and a client: tests/journeys/test_services.py, tests/journeys/test_history.py"
ORDERS = "it needs a database when it is recorded: tests/databases/test_judging.py"
NOT_RUN: dict[tuple[str, str], str] = {
    ("README.md", "python -m reenact.demo.provider"): "tests/journeys/test_front_page.py",
    ("README.md", "reenact "): "tests/journeys/test_front_page.py",
    ("README.md", "pip install"): INSTALLS,
    ("README.md", "make demo"): "tests/demo/test_story.py",
    ("docs/backends.md", "reenact "): SERVER,
    ("docs/carriers.md", "reenact cold"): REAL,
    ("docs/coexistence.md", "curl"): SERVER,
    ("docs/coexistence.md", "reenact replay run.json"): SERVER,
    ("docs/collector.md", "pip install"): INSTALLS,
    ("docs/collector.md", "reenact collect"): STAYS,
    ("docs/fork.md", "reenact fork last --at '#4'"): "the model is asked by chance: tests/journeys/test_fork.py",
    ("docs/fuzz.md", "reenact fuzz RUN"): "it shows how the command is written: tests/journeys/test_fuzz.py",
    ("docs/fuzz.md", "reenact fuzz last --keys"): "tests/journeys/test_fuzz.py",
    ("docs/judging-a-fix.md", "git bisect"): BISECT,
    ("docs/judging-a-fix.md", "reenact replay last --assert 'response.charged"): ORDERS,
    ("docs/judging-a-fix.md", "reenact replay last --assert 'every"): ORDERS,
    ("docs/judging-a-fix.md", "reenact replay --all"): "tests/journeys/test_suite.py",
    ("docs/services.md", "reenact "): SERVICE,
    ("docs/workers.md", "reenact "): "it needs a worker and a broker: tests/journeys/test_history_of_workers.py",
    ("docs/tour.md", "reenact ls --user u-17"): SERVICE,
    ("docs/tour.md", "reenact show ef188cd6"): SERVICE,
    ("docs/tour.md", "reenact promote ef188cd6"): SERVICE,
    ("docs/tour.md", "ORDER_GUARD=1"): SERVICE,
    ("docs/tour.md", "pip install"): INSTALLS,
    ("docs/tour.md", "git bisect"): BISECT,
    ("docs/tour.md", "reenact replay braintrust"): REAL,
    ("docs/tour.md", "reenact step langsmith"): REAL,
    ("docs/tour.md", "reenact cold"): REAL,
    ("docs/tour.md", "collector/_build"): COLLECTOR,
    ("docs/tour.md", "REENACT_EXPORT"): COLLECTOR,
    ("docs/tour.md", "reenact replay archive"): COLLECTOR,
    ("collector/README.md", ""): COLLECTOR,
}
"""By page and by how a command begins: why it is not run here, or where else it is."""


def not_run(page: str, text: str) -> str | None:
    """Give why a command is not run in a scene, or None."""
    return next((why for (of, start), why in NOT_RUN.items() if of == page and text.startswith(start)), None)
