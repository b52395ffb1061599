"""Recorder, real Collector, file, replay: the whole way, in every framing that the Collector writes."""

from __future__ import annotations

import json
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from collector.ours import needs_ours, our_collector
from collector.real import AGENT, GATEWAY, WITH_TOKEN, Collector, needs_collector, running
from desk import EXAMPLES, Desk
from reenact.demo.provider import StandIn
from reenact.find.sources import runs_in
from reenact.read.open import open_spans
from reenact.values.span import SpanRecord

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), needs_collector]

ARCHIVE = "exporters::file/archive"
FRAMINGS = {
    "json": ((), ""),
    "json zstd": ((f"{ARCHIVE}::compression=zstd",), ""),
    "proto": ((f"{ARCHIVE}::format=proto",), ""),
    "proto zstd": ((f"{ARCHIVE}::format=proto", f"{ARCHIVE}::compression=zstd"), ""),
    "json zstd native": ((f"{ARCHIVE}::compression=zstd",), "exporter.file.nativeCompression"),
    "proto zstd native": (
        (f"{ARCHIVE}::format=proto", f"{ARCHIVE}::compression=zstd"),
        "exporter.file.nativeCompression",
    ),
}


@dataclass(frozen=True)
class Recorded:
    """What a program printed while it was recorded to a Collector, and where that put it."""

    desk: Desk
    stdout: str
    archive: Path
    ours: Path
    """The same run as the local store has it."""


def record(folder: Path, example: str, to: str, collector: Collector) -> Recorded:
    with StandIn(slip=1.0, max_delay_ms=5) as provider:
        environ = {
            "OPENAI_BASE_URL": provider.base_url,
            "OPENAI_API_KEY": "x",
            "CLEANUP_DATA": str(folder / "data"),
            "REENACT_EXPORT": to,
            "REENACT_EXPORT_EXIT_SECONDS": "20",
        }
        desk = Desk(folder, environ)
        done = desk.reenact("run", "--user", "u-17", "--", "python", str(EXAMPLES / example))
    assert done.returncode == 0, done.stderr
    status = json.loads(desk.reenact("status", "--send", "--within", "20", "--json").stdout)
    (backend,) = status["backends"]
    assert not backend["waiting"], backend
    assert not backend["dropped"], backend
    assert backend["exported"] == backend["created"] > 0
    assert desk.reenact("export", "last", "-o", "ours.jsonl").returncode == 0
    return Recorded(desk, done.stdout, collector.archive, folder / "ours.jsonl")


@pytest.mark.parametrize(
    ("framing", "over"), [(each, "http") for each in FRAMINGS] + [("json", "grpc"), ("proto", "grpc")]
)
def test_what_the_collector_archived_is_shown_and_replayed(
    framing: str, over: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    sets, gates = FRAMINGS[framing]
    with running(Collector(tmp_path / "gateway", sets=sets, gates=gates)) as collector:
        to = f"{collector.http}/v1/traces" if over == "http" else f"grpc://{collector.grpc}"
        recorded = record(tmp_path, "everything.py", to, collector)
    source = str(recorded.archive)
    (run,) = json.loads(recorded.desk.reenact("ls", source, "--json").stdout)["runs"]
    assert run["verdict"] == "exact"
    assert recorded.desk.reenact("show", source).returncode == 0
    same_as_the_store_has_it(recorded)
    replayed = recorded.desk.reenact("replay", "--trust", source, "--store", "elsewhere", environ=recorded.desk.bare())
    assert replayed.returncode == 0, replayed.stderr
    assert replayed.stdout == recorded.stdout
    assert "same: " in replayed.stderr
    assert ", 0 live" in replayed.stderr
    size = sum(file.stat().st_size for file in recorded.archive.iterdir())
    record_property("figure", f"Collector, {over}, {framing}: {size:,} bytes archived, replayed with 0 live, 0 misses")


def same_as_the_store_has_it(recorded: Recorded) -> None:
    (ours,) = runs_in(recorded.ours)
    (theirs,) = runs_in(recorded.archive)
    assert Counter(node.id for node in theirs.nodes) == Counter(node.id for node in ours.nodes)
    spans = {node.id: node.span for node in ours.nodes}
    for node in theirs.nodes:
        wanted, found = spans[node.id], node.span
        # what was sent while the process ran cannot say how it ended
        missing = wanted.attributes.keys() - found.attributes.keys()
        assert missing <= {"process.exit.code"}
        assert {name: value for name, value in wanted.attributes.items() if name not in missing} == dict(
            found.attributes
        )
        assert (found.name, found.kind, found.start_ns, found.end_ns) == (
            wanted.name,
            wanted.kind,
            wanted.start_ns,
            wanted.end_ns,
        )
        assert (found.status, found.status_message) == (wanted.status, wanted.status_message)
        assert [(e.name, e.time_ns, e.attributes) for e in found.events] == [
            (e.name, e.time_ns, e.attributes) for e in wanted.events
        ]


def test_a_run_goes_through_the_agent_tier_and_the_gateway(tmp_path: Path) -> None:
    """Both ask for what they are set to: the gateway for a token, the agent for nothing."""
    gateway = Collector(tmp_path / "gateway", configs=(GATEWAY, WITH_TOKEN), settings={"GATEWAY_TOKEN": "t-1"})
    with running(gateway):
        settings = {
            "GATEWAY_ENDPOINT": gateway.grpc,
            "GATEWAY_HEADERS": '{authorization: "Bearer t-1"}',
            "AGENT_HOST": "machine-7",
            "AGENT_ENVIRONMENT": "staging",
        }
        with running(Collector(tmp_path / "agent", configs=(AGENT,), settings=settings)) as agent:
            recorded = record(tmp_path, "cleanup_agent.py", f"{agent.http}/v1/traces", agent)
            until = time.monotonic() + 30
            wanted = {node.id for (run,) in [list(runs_in(recorded.ours))] for node in run.nodes}
            while wanted - {each.span_id for each in archived(gateway)} and time.monotonic() < until:
                time.sleep(0.2)
            assert healthy(agent)
            assert healthy(gateway)
            assert gateway.metric("otelcol_receiver_accepted_spans") >= len(wanted)
    (run,) = runs_in(gateway.archive)
    assert {node.id for node in run.nodes} == wanted
    assert {node.span.resource.attributes["deployment.environment.name"] for node in run.nodes} == {"staging"}
    assert all(node.span.resource.attributes["host.name"] for node in run.nodes)
    replayed = recorded.desk.reenact(
        "replay", "--trust", str(gateway.archive), "--store", "elsewhere", environ=recorded.desk.bare()
    )
    assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout), replayed.stderr
    assert ", 0 live" in replayed.stderr


def archived(collector: Collector) -> list[SpanRecord]:
    """Give the spans of an archive that may not be there yet."""
    if not any(collector.archive.glob("*")):
        return []
    return [each for each in open_spans(collector.archive) if isinstance(each, SpanRecord)]


def healthy(collector: Collector) -> bool:
    with urllib.request.urlopen(f"http://127.0.0.1:{collector.ports[2]}/", timeout=10) as reply:
        return b"Server available" in reply.read()


def test_runs_that_lie_in_several_files_are_read_from_the_folder(tmp_path: Path) -> None:
    """The archive is rotated while runs are written, and one run is cut in two."""
    desk = Desk(tmp_path)
    program = desk.write("agent.py", LONG)
    with running(Collector(tmp_path / "gateway", sets=(f"{ARCHIVE}::rotation::max_megabytes=1",))) as collector:
        environ = {"REENACT_EXPORT": f"{collector.http}/v1/traces", "REENACT_EXPORT_BATCH_SPANS": "16"}
        for _ in range(2):
            done = Desk(tmp_path, environ).reenact("run", "--", "python", program)
            assert done.returncode == 0, done.stderr
        sent = Desk(tmp_path, environ).reenact("status", "--send", "--within", "20")
        assert sent.returncode == 0, sent.stdout
    files = list(collector.archive.iterdir())
    assert len(files) >= 3
    assert max(file.stat().st_size for file in files) <= 1 << 20
    runs = json.loads(desk.reenact("ls", str(collector.archive), "--json").stdout)["runs"]
    assert [run["verdict"] for run in runs] == ["exact"] * 2
    for run in runs:
        replayed = desk.reenact(
            "replay", "--trust", f"{collector.archive}#{run['id']}", "--store", "elsewhere", environ=desk.bare()
        )
        assert replayed.returncode == 0, replayed.stderr
        assert "same: 250 tool" in replayed.stderr
    holding = [{each.trace_id for each in open_spans(file) if isinstance(each, SpanRecord)} for file in files]
    parts = [sum(any(each.startswith(run["id"]) for each in traces) for traces in holding) for run in runs]
    assert max(parts) > 1, "one lies in two files"


LONG = """
import reenact

@reenact.tool
def step(number: int) -> str:
    return f"did {number} " + "." * 8000

for number in range(250):
    step(number)
print("done")
"""


@needs_ours
def test_the_gateway_sends_on_to_our_store_and_that_replays(tmp_path: Path) -> None:
    """What `collector/compose.yaml` starts: programs, gateway with a token, `reenact collect` with another."""
    (tmp_path / "token").write_text("t-2")
    with our_collector(tmp_path / "behind", "--token-file", str(tmp_path / "token")) as ours:
        settings = {"BACKEND_ENDPOINT": ours.http, "BACKEND_HEADERS": '{authorization: "Bearer t-2"}'}
        with running(Collector(tmp_path / "gateway", settings=settings)) as gateway:
            recorded = record(tmp_path, "cleanup_agent.py", f"{gateway.http}/v1/traces", gateway)
            (run,) = runs_in(recorded.ours)
            trace_id = run.nodes[0].span.trace_id
            until = time.monotonic() + 30
            while len(ours.of(trace_id)) < len(run.nodes) and time.monotonic() < until:
                time.sleep(0.2)
    words = ("replay", "--trust", trace_id, "--store", str(ours.store))
    replayed = recorded.desk.reenact(*words, environ=recorded.desk.bare())
    assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout), replayed.stderr
    assert ", 0 live" in replayed.stderr
