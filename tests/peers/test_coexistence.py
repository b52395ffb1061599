"""Other instrumentations beside ours, before and after it: one call, one record, and nothing of theirs changes."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from desk import Desk

HERE = Path(__file__).resolve().parent
AGENT = str(HERE / "agent.py")
CALLS = 6

if find_spec("logfire") is None or find_spec("openinference.instrumentation.anthropic") is None:
    pytest.skip(
        "the other instrumentations live in an environment of their own: make test-peers", allow_module_level=True
    )

SDKS = ("openai", "anthropic")
PEERS = ("none", "openinference", "openllmetry", "both", "logfire", "native", "httpx")
"""`both` is OpenInference and OpenLLMetry together; `native` the SDK's own spans (Anthropic has some, OpenAI none);
`httpx` OpenTelemetry's instrumentation of the client beneath."""
REMOVABLE = ("openinference", "openllmetry", "both", "logfire", "httpx")
EMITTED = {"none": 0, "both": 2}
"""Spans of the peer for one call; 1 where not named."""


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    source = "import sys; sys.path.insert(0, sys.argv[1])\nfrom stand_in import StandIn\n"
    source += "with StandIn() as url:\n    print(url, flush=True)\n    sys.stdin.read()\n"
    server = subprocess.Popen(
        [sys.executable, "-c", source, str(HERE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin is not None
    assert server.stdout is not None
    yield server.stdout.readline().strip()
    server.stdin.close()
    server.wait()


@functools.cache
def alone(sdk: str, peer: str, gone: str, url: str) -> str:
    """What the peer says with no recorder about."""
    with tempfile.TemporaryDirectory() as folder:
        done = Desk(Path(folder), cold=True).run([sys.executable, AGENT, sdk, peer, f"none{gone}", url])
    assert done.returncode == 0, done.stderr
    return done.stdout


def llm_records(desk: Desk, *words: str) -> tuple[int, str]:
    """How many model calls a store or file holds, and its verdicts."""
    done = desk.reenact("ls", "--json", *words)
    assert done.returncode == 0, done.stderr
    runs = json.loads(done.stdout)["runs"]
    return sum(run["calls"].get("llm", 0) for run in runs), ",".join(sorted({run["verdict"] for run in runs}))


@pytest.mark.parametrize("order", ["first", "last", "hook"])
@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("sdk", SDKS)
def test_one_call_is_one_record_and_nothing_of_the_others_changes(
    tmp_path: Path, url: str, sdk: str, peer: str, order: str, record_property: Callable[[str, object], None]
) -> None:
    desk = Desk(tmp_path, cold=True)
    argv = [AGENT, sdk, peer, order, url]
    done = desk.reenact("run", "--", "python", *argv) if order == "hook" else desk.run([sys.executable, *argv])
    assert done.returncode == 0, done.stderr
    assert done.stdout == alone(sdk, peer, "", url), "what the peer's exporter got"
    spans = json.loads(done.stdout)
    theirs = [span for span in spans if span["scope"] != "application"]
    silent = peer == "native" and sdk == "openai"
    assert (len(theirs) >= CALLS * EMITTED.get(peer, 1)) or silent
    assert all((span["parent"] or "").partition(":")[0] != "reenact" for span in spans)
    assert llm_records(desk) == (CALLS, "exact")
    kept = f"calls {CALLS}, our LLM records {CALLS}, spans of the peer {len(theirs):2}, unchanged"
    record_property("figure", f"coexistence: {sdk:9} {peer:13} {order:5} {kept}")


@pytest.mark.parametrize("gone", ["-ours-gone", "-peer-gone"])
@pytest.mark.parametrize("order", ["first", "last"])
@pytest.mark.parametrize("peer", REMOVABLE)
@pytest.mark.parametrize("sdk", SDKS)
def test_each_may_be_taken_away_before_the_other(
    tmp_path: Path, url: str, sdk: str, peer: str, order: str, gone: str
) -> None:
    desk = Desk(tmp_path, cold=True)
    done = desk.run([sys.executable, AGENT, sdk, peer, f"{order}{gone}", url])
    assert done.returncode == 0, done.stderr
    assert done.stdout == alone(sdk, peer, gone, url)
    assert llm_records(desk)[0] == (CALLS if gone == "-ours-gone" else 2 * CALLS)


@pytest.mark.parametrize("peer", ["none", "openinference", "openllmetry", "both", "native"])
@pytest.mark.parametrize("sdk", SDKS)
def test_the_application_s_trace_with_ours_and_theirs_reads_as_one_record_a_call(
    tmp_path: Path, url: str, sdk: str, peer: str
) -> None:
    desk = Desk(tmp_path, cold=True)
    done = desk.run([sys.executable, AGENT, sdk, peer, "first", url, "application.otlp"])
    assert done.returncode == 0, done.stderr
    records, _ = llm_records(desk, "application.otlp")
    assert records == CALLS


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("sdk", SDKS)
def test_a_replay_beside_the_others_is_the_same(tmp_path: Path, url: str, sdk: str, peer: str) -> None:
    desk = Desk(tmp_path, cold=True)
    recorded = desk.reenact("run", "--", "python", AGENT, sdk, peer, "hook", url)
    assert recorded.returncode == 0, recorded.stderr
    # no replay reaches what lies beneath the place where it answers, and this agent prints it
    beneath = peer == "httpx"
    replayed = desk.reenact("replay", "last", *(["--outcome", "ignore"] if beneath else []))
    assert replayed.returncode == 0, replayed.stderr
    if not beneath:
        assert replayed.stdout == recorded.stdout
    assert f"same: {CALLS} llm calls answered" in replayed.stderr


EXPORTING = """
import sys
from openai import OpenAI
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from openinference.instrumentation.openai import OpenAIInstrumentor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(sys.argv[2]), schedule_delay_millis=50))
trace.set_tracer_provider(provider)
OpenAIInstrumentor().instrument(tracer_provider=provider)
client = OpenAI(base_url=sys.argv[1] + "/v1", api_key="x", max_retries=0)
for _ in range(3):
    made = client.chat.completions.create(model="gpt-x", messages=[{"role": "user", "content": "Hello?"}])
    print(made.choices[0].message.content)
    provider.force_flush()
"""


def test_an_agent_that_exports_its_own_spans_is_recorded_whole_and_replays(
    tmp_path: Path, url: str, backend: tuple[str, list[int]]
) -> None:
    desk = Desk(tmp_path, cold=True)
    name = desk.write("exporting.py", EXPORTING)
    address, posts = backend
    recorded = desk.reenact("run", "--", "python", name, url, f"{address}/v1/traces")
    assert recorded.returncode == 0, recorded.stderr
    assert posts, "the application's own exporter delivers as ever"
    assert llm_records(desk) == (3, "exact"), recorded.stderr
    shown = json.loads(desk.reenact("show", "last", "--json").stdout)
    assert {call["kind"] for call in shown["calls"]} <= {"llm", "agent", "chain"}, "exporting is no call of the agent's"
    before = len(posts)
    replayed = desk.reenact("replay", "last", "--json")
    assert (replayed.returncode, json.loads(replayed.stdout)["result"]) == (0, "same"), replayed.stderr
    assert len(posts) == before, "nothing is exported from a replay"


@pytest.fixture
def backend() -> Iterator[tuple[str, list[int]]]:
    """An OTLP endpoint that counts what it gets."""
    import threading
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    posts: list[int] = []

    class Takes(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posts.append(len(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Takes)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", posts
    server.shutdown()
    server.server_close()
