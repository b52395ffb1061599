"""OTLP clients that others wrote, into the real Collector and into ours: each span once, and the same in both."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from collector.clients.stream import stream, write
from collector.ours import needs_ours, our_collector
from collector.real import PLAIN, ROOT, Collector, needs_collector, running
from reenact.read.open import open_spans
from reenact.values.span import SpanRecord

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), needs_collector]

BUILT = ROOT / "collector" / "_build"
HERE = Path(__file__).parent
COUNT, IN_ONE = 60, "20"


@dataclass(frozen=True)
class Client:
    """A program that sends a file of spans, to the address of the one transport or of the other."""

    name: str
    argv: Callable[[str, str, str], list[str]]
    """Given the file, `http://HOST:PORT` and `HOST:PORT` of gRPC."""
    needs: Path | str

    def __str__(self) -> str:
        return self.name

    def send(self, file: Path, http: str, grpc: str) -> None:
        if not (Path(self.needs).exists() or shutil.which(str(self.needs))):
            pytest.skip(f"{self.needs} is not here: `make test-collector` builds the clients")
        argv = self.argv(str(file), http, grpc)
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stdout + done.stderr


def clients() -> list[Client]:
    """Every client, transport, encoding and compression."""
    made: list[Client] = []
    for packing in ("none", "gzip"):
        for over in ("http", "grpc"):
            made += [python(over, packing), go(over, packing)]
        made += [javascript(over, packing) for over in ("proto", "json", "grpc")]
    return made


def python(over: str, packing: str) -> Client:
    def argv(file: str, http: str, grpc: str) -> list[str]:
        to = f"{http}/v1/traces" if over == "http" else grpc
        return [sys.executable, str(HERE / "clients" / "python_send.py"), file, over, to, packing, IN_ONE]

    return Client(f"Python {over} {packing}", argv, sys.executable)


def javascript(over: str, packing: str) -> Client:
    def argv(file: str, http: str, grpc: str) -> list[str]:
        to = f"http://{grpc}" if over == "grpc" else f"{http}/v1/traces"
        return ["node", str(BUILT / "js" / "send.mjs"), file, over, to, packing, IN_ONE]

    return Client(f"JavaScript {over} {packing}", argv, BUILT / "js" / "node_modules")


def go(over: str, packing: str) -> Client:
    def argv(file: str, http: str, grpc: str) -> list[str]:
        to = grpc if over == "grpc" else http.removeprefix("http://")
        return [str(BUILT / "otlp-go"), file, over, to, packing, IN_ONE]

    return Client(f"Go {over} {packing}", argv, BUILT / "otlp-go")


def generator(over: str) -> Client:
    """The Collector's own load generator. Its ids and times are of chance, and differ from one stream to the next."""

    def argv(_file: str, http: str, grpc: str) -> list[str]:
        to = grpc if over == "grpc" else http.removeprefix("http://")
        words = ["traces", "--otlp-insecure", "--otlp-endpoint", to, *(["--otlp-http"] if over == "http" else [])]
        shape = ["--traces", "20", "--child-spans", "2", "--workers", "1", "--rate", "0", "--size", "0"]
        more = ["--otlp-attributes", 'tenant="acme"', "--telemetry-attributes", "number=7", "--status-code", "Error"]
        return [str(BUILT / "telemetrygen"), *words, *shape, *more]

    return Client(f"telemetrygen {over}", argv, BUILT / "telemetrygen")


def in_the_collector(folder: Path, client: Client, file: Path) -> list[SpanRecord]:
    """Give all that the Collector's file exporter wrote of what a client sent."""
    with running(Collector(folder, configs=(PLAIN,))) as collector:
        client.send(file, collector.http, collector.grpc)
    return [each for each in open_spans(collector.archive) if isinstance(each, SpanRecord)]


@pytest.mark.parametrize("client", clients(), ids=str)
def test_the_collector_has_each_span_as_it_was_made(client: Client, tmp_path: Path) -> None:
    written = in_the_collector(tmp_path / "theirs", client, write(tmp_path / "stream.json", COUNT))
    assert Counter(each.span_id for each in written) == {each["spanId"]: 1 for each in stream(COUNT)["spans"]}
    wanted = {each["spanId"]: each for each in stream(COUNT)["spans"]}
    for each in written:
        as_it_was_made(each, wanted[each.span_id])


def as_it_was_made(found: SpanRecord, wanted: dict[str, Any]) -> None:
    assert (found.trace_id, found.parent_id or "", found.name) == (
        wanted["traceId"],
        wanted["parentId"],
        wanted["name"],
    )
    assert (found.kind, str(found.start_ns), str(found.end_ns)) == (wanted["kind"], wanted["start"], wanted["end"])
    assert (found.status, found.status_message) == (wanted["status"], wanted["message"])
    assert dict(found.attributes) == {each["key"]: each["value"] for each in wanted["attributes"]}
    assert [(each.name, str(each.time_ns)) for each in found.events] == [
        (each["name"], each["time"]) for each in wanted["events"]
    ]
    assert [(each.trace_id, each.span_id) for each in found.links] == [
        (each["traceId"], each["spanId"]) for each in wanted["links"]
    ]
    assert found.resource.attributes.items() >= {"service.name": "client", "service.instance": 4}.items()


@needs_ours
@pytest.mark.parametrize("client", clients(), ids=str)
def test_ours_has_what_the_collector_wrote(
    client: Client, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    file = write(tmp_path / "stream.json", COUNT)
    theirs = in_the_collector(tmp_path / "theirs", client, file)
    with our_collector(tmp_path / "ours") as ours:
        client.send(file, ours.http, ours.grpc)
    kept = ours.kept()
    assert len(kept) == len(theirs) == COUNT, "each once"
    assert {each.span_id: each for each in kept} == {each.span_id: each for each in theirs}
    record_property("figure", f"{client}: {len(kept)} of {COUNT} spans once, equal to the Collector's file")


@needs_ours
@pytest.mark.parametrize("client", [generator("http"), generator("grpc")], ids=str)
def test_ours_has_what_telemetrygen_sent(
    client: Client, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    theirs = in_the_collector(tmp_path / "theirs", client, tmp_path)
    with our_collector(tmp_path / "ours") as ours:
        client.send(tmp_path, ours.http, ours.grpc)
    kept = ours.kept()
    assert len({each.span_id for each in kept}) == len(kept) == len(theirs) == 60
    assert sorted(map(without_chance, kept), key=repr) == sorted(map(without_chance, theirs), key=repr)
    roots = {each.span_id: each.trace_id for each in kept if each.parent_id is None}
    assert len(roots) == 20
    assert all(roots[each.parent_id] == each.trace_id for each in kept if each.parent_id)
    record_property("figure", f"{client}: {len(kept)} spans once, equal to the Collector's file but for ids and times")


def without_chance(span: SpanRecord) -> tuple[object, ...]:
    """Give what telemetrygen makes alike each time."""
    took = span.end_ns - span.start_ns
    return (
        (span.name, span.kind, span.status, span.status_message, span.parent_id is None, span.flags, took),
        sorted(span.attributes.items()),
        span.resource,
        span.scope,
        len(span.events),
        len(span.links),
    )
