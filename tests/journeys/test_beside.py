"""`reenact run --collect`: what other parts of a program trace is in its store, and changes nothing else."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("h2", reason="the extra `collector` is not installed")

from click.testing import CliRunner

from desk import Desk
from receivers import http_receiver
from reenact.cli.main import reenact
from reenact.errors import InputError
from reenact.keep import collecting
from reenact.stores.directory import DirectoryStore
from reenact.stores.frames import FrameStore

SECRET = "sk-proj-" + "aZ3" * 16
PROGRAM = f"""
import subprocess, sys
import reenact
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)

@reenact.tool
def look(name):
    return name.upper()

with trace.get_tracer("theirs").start_as_current_span("their step") as span:
    span.set_attribute("input.value", "with {SECRET}")
    print(look("x"))
sys.exit(7)
"""
ANOTHER_LANGUAGE = """
import json, os, urllib.request
said = [{"key": "openinference.span.kind", "value": {"stringValue": "TOOL"}}]
span = {"traceId": "ab" * 16, "spanId": "cd" * 8, "name": "in another language", "attributes": said,
        "startTimeUnixNano": "1790000000000000000", "endTimeUnixNano": "1790000000000000009"}
body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()
url = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces"
urllib.request.urlopen(urllib.request.Request(url, body, {"content-type": "application/json"})).read()
"""
OVER_GRPC = """
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
provider.get_tracer("theirs").start_span("over gRPC").end()
"""
OF_ITS_OWN = """
import reenact

@reenact.tool
def own(name):
    return name

reenact.record()
own("x")
"""


def listed(desk: Desk) -> list[dict[str, Any]]:
    return json.loads(desk.reenact("ls", "--json").stdout)["runs"]


def runs(desk: Desk) -> dict[str, dict[str, Any]]:
    return {run["name"]: run for run in listed(desk)}


def collected(desk: Desk) -> list[str]:
    """The names of the spans that a collector took in."""
    kept = FrameStore(desk.folder / ".reenact")
    if not kept.folder.exists():
        return []
    return sorted(span.name for each in kept.trace_ids() for span in kept.records(each) or ())  # type: ignore[union-attr]


@pytest.mark.slow
def test_what_others_trace_is_there_and_what_we_record_is_as_it_is_without(desk: Desk) -> None:
    program = desk.write("agent.py", PROGRAM)
    alone = desk.reenact("run", "--", "python", program)
    (before,) = runs(desk).values()
    done = desk.reenact("run", "--collect", "--", "python", program)
    assert (done.returncode, done.stdout) == (alone.returncode, alone.stdout) == (7, "X\n")
    assert "set for the program: OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:" in done.stderr
    assert "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf" in done.stderr
    assert "2 spans and 0 log events of others were collected" in done.stderr
    assert collected(desk) == ["look", "their step"]
    run = next(run for run in listed(desk) if run["id"] != before["id"])
    assert run["calls"] == {**before["calls"], "unknown": 1}, "the tool is there once"
    assert {name: run[name] for name in ("name", "status", "verdict")} == {
        name: before[name] for name in ("name", "status", "verdict")
    }
    shown = json.loads(desk.reenact("show", run["id"], "--json").stdout)
    assert {call["name"] for call in shown["calls"]} == {"agent.py", "look", "their step"}
    assert not any("duplicate" in note for note in shown["run"]["notes"])
    replayed = desk.reenact("replay", run["id"])
    assert replayed.returncode == 0, replayed.stderr
    for path in (desk.folder / ".reenact").rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes()
    (span,) = (each for each in DirectoryStore(desk.folder / ".reenact").spans(run["id"]) if each.name == "their step")
    assert str(span.attributes["input.value"]).startswith("with REDACTED_")


def test_parts_in_other_languages_and_over_grpc_are_runs_of_their_own(desk: Desk) -> None:
    inner = f"{sys.executable} -I {desk.write('other.py', ANOTHER_LANGUAGE)}"
    done = desk.reenact("run", "--collect", "--", "sh", "-c", f"{inner}; exit 5")
    assert done.returncode == 5
    assert "1 spans and 0 log events of others were collected" in done.stderr
    desk.environ["OTEL_EXPORTER_OTLP_PROTOCOL"] = "grpc"
    over_grpc = desk.write("grpc.py", OVER_GRPC)
    done = desk.reenact("run", "--collect", "--", sys.executable, "-I", over_grpc)
    assert done.returncode == 0
    assert "the program's own are kept: OTEL_EXPORTER_OTLP_PROTOCOL=grpc" in done.stderr
    assert {name: run["calls"] for name, run in runs(desk).items()} == {
        "in another language": {"tool": 1},
        "over gRPC": {"unknown": 1},
    }
    assert "in another language" in desk.reenact("show", "abab").stdout


def test_a_program_that_sends_elsewhere_goes_on_to(desk: Desk) -> None:
    program = desk.write("agent.py", PROGRAM)
    with http_receiver() as theirs:
        desk.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = theirs.url.removesuffix("/v1/traces")
        done = desk.reenact("run", "--collect", "--", "python", program)
        names = [
            span.name
            for request in theirs.requests
            for group in request.resource_spans
            for scope in group.scope_spans
            for span in scope.spans
        ]
    assert (done.returncode, done.stdout) == (7, "X\n")
    assert "the program's own OTEL_EXPORTER_OTLP_ENDPOINT is kept" in done.stderr
    assert "their step" in names
    assert collected(desk) == []


def test_what_a_part_records_for_itself_is_there_once(desk: Desk) -> None:
    own = desk.write("own.py", OF_ITS_OWN)
    done = desk.reenact("run", "--collect", "-q", "--", sys.executable, "-I", own)
    assert done.returncode == 0, done.stderr
    run = runs(desk)["own.py"]
    assert run["calls"] == {"tool": 1}
    assert collected(desk) == [], "it sends nothing where it is in the store already"


@pytest.mark.slow
def test_a_store_that_somebody_else_collects_into_keeps_no_program_from_running(desk: Desk) -> None:
    program = desk.write("agent.py", PROGRAM)
    other = FrameStore(desk.folder / ".reenact").appender()
    done = desk.reenact("run", "--collect", "--", "python", program)
    other.close()
    assert (done.returncode, done.stdout) == (7, "X\n")
    assert "what others trace is not collected: " in done.stderr
    assert "another collector writes here" in done.stderr
    assert runs(desk)["agent.py"]["calls"] == {"tool": 1}


def test_without_the_extra_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "find_spec", lambda _: None)
    words = ["run", "--collect", "--store", str(tmp_path), "--", "touch", str(tmp_path / "started")]
    done = CliRunner().invoke(reenact, words)
    assert isinstance(done.exception, InputError)
    assert done.exception.exit_code == 3
    assert "pip install 'reenact[collector]'" in str(done.exception)
    assert not (tmp_path / "started").exists()
