"""What OTLP 1.11 asks of a server, tried on the real Collector, on ours and on a real Phoenix; one table is printed."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from collector.conformance import RULES, Rule, Said, score, table, tried
from collector.ours import Ours, needs_ours, our_collector
from collector.probing import MIB, Target, ask, sized
from collector.real import (
    GATEWAY,
    PLAIN,
    ROOT,
    WITH_TOKEN,
    Collector,
    free_ports,
    needs_collector,
    running,
)
from reenact.values.span import SpanRecord
from waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PHOENIX = ROOT / ".venv-phoenix" / "bin" / "phoenix"
KNOWN_FAILINGS = {
    "partial_success is unset where all is taken",
    "over the limit is 413",
    "over the limit is 413 for JSON too, said in JSON",
    "JSON that cannot be decoded is 400",
    "a field's name in snake_case is no name",
    "the body of a 404 is a Status",
    "the body of a 405 is a Status",
    "the body of a 415 is a Status",
}
"""MUSTs of OTLP 1.11 that the Collector, at the version of `collector/builder.yaml`, does not meet."""
TABLE: dict[str, dict[Rule, Said]] = {}


def trying(seen: Target, choked: Target | None, asking: Target | None) -> dict[Rule, Said]:
    """Try all rules: those of a full server at once, those of the token where one is asked for, large requests last."""
    full = Target(name="", http=seen.http, grpc=seen.grpc, choked=choked)
    found = tried(full, [rule for rule in RULES if rule.probe.__name__.startswith("full_")])
    found |= tried(asking, [rule for rule in RULES if "token" in rule.words]) if asking else {}
    rest = [rule for rule in RULES if rule not in found]
    return found | tried(seen, sorted(rest, key=lambda rule: "MiB" in rule.words or "limit" in rule.words))


def every_must_was_tried(found: dict[Rule, Said]) -> None:
    assert found.keys() == set(RULES)
    assert score(found, "MUST").endswith(f" of {sum(rule.level == 'MUST' for rule in RULES)}")


def failed(found: dict[Rule, Said], level: str) -> dict[str, str]:
    return {rule.words: said.did for rule, said in found.items() if rule.level == level and said.met is False}


@needs_collector
def test_the_real_collector_fails_what_it_is_known_to_fail(tmp_path: Path) -> None:
    plain = Collector(tmp_path / "plain", configs=(PLAIN,))
    full = Collector(tmp_path / "full", settings={"BACKEND_QUEUE_BYTES": str(2 * MIB)})
    token = Collector(tmp_path / "token", configs=(GATEWAY, WITH_TOKEN), settings={"GATEWAY_TOKEN": "t-1"})
    with running(plain), running(full), running(token):
        choked = Target(name="", http=full.http, grpc=full.grpc)
        filled(choked)
        seen = Target(name="", http=plain.http, grpc=plain.grpc, stored=stored_in(plain))
        asking = Target(name="", http=token.http, grpc=token.grpc, token="t-1")
        TABLE["the real Collector"] = found = trying(seen, choked, asking)
    every_must_was_tried(found)
    assert failed(found, "MUST").keys() <= KNOWN_FAILINGS, failed(found, "MUST")


def filled(target: Target) -> None:
    """Send until no more is taken."""
    until(lambda: ask(target, sized(MIB)).status != 200, 60, lambda: "it takes whatever comes", 0)


@needs_ours
def test_ours_meets_every_must(tmp_path: Path) -> None:
    with contextlib.ExitStack() as servers:
        plain = servers.enter_context(our_collector(tmp_path / "plain"))
        full = servers.enter_context(our_collector(tmp_path / "full", "--max-in-flight", "1"))
        (tmp_path / "token").write_text("t-1")
        token = servers.enter_context(our_collector(tmp_path / "t", "--token-file", str(tmp_path / "token")))
        choked = Target(name="", http=full.http, grpc=full.grpc)
        servers.enter_context(stalled(full))
        seen = Target(name="", http=plain.http, grpc=plain.grpc, stored=plain.of)
        TABLE["reenact collect"] = found = trying(
            seen, choked, Target(name="", http=token.http, grpc=token.grpc, token="t-1")
        )
    every_must_was_tried(found)
    assert not failed(found, "MUST")
    assert not failed(found, "SHOULD")
    assert not failed(found, "also")


@contextlib.contextmanager
def stalled(server: Ours) -> Generator[None]:
    """Have a client that sent all but a little of what the server may hold, and goes no further."""
    place = urllib.parse.urlsplit(server.http)
    with socket.create_connection((place.hostname, place.port), timeout=10) as held:
        held.sendall(b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\n")
        held.sendall(b"Content-Length: %d\r\n\r\n" % MIB + bytes(MIB - 16))
        line = b"in_flight_bytes %d" % (MIB - 16)
        until(lambda: line in read(f"{server.http}/metrics"), 20, lambda: "it does not hold what came")
        yield


@pytest.mark.skipif(not PHOENIX.exists(), reason="Phoenix lives in an environment of its own: make test-phoenix")
def test_phoenix_is_asked_the_same(tmp_path: Path) -> None:
    ports = free_ports(2)
    settings = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PHOENIX_WORKING_DIR": str(tmp_path),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(ports[0]),
        "PHOENIX_GRPC_PORT": str(ports[1]),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(
            [str(PHOENIX), "serve"], env=settings, stdout=log, stderr=log, stdin=subprocess.DEVNULL
        )
    url = f"http://127.0.0.1:{ports[0]}"
    try:
        until(
            lambda: server.poll() is not None or read(f"{url}/healthz"),
            120,
            (tmp_path / "log").read_text,
            0.3,
        )
        assert server.poll() is None, (tmp_path / "log").read_text()[-2000:]
        seen = Target(name="", http=url, grpc=f"127.0.0.1:{ports[1]}", stored=shown_by(url))
        TABLE["Phoenix"] = found = trying(seen, None, None)
    finally:
        server.terminate()
        server.wait(30)
    assert found.keys() == set(RULES)
    assert failed(found, "MUST"), "it is no better than ours"


def read(url: str) -> bytes:
    """Give what is at a URL, nothing where nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return reply.read()  # type: ignore[no-any-return]
    except OSError:
        return b""


def shown_by(url: str) -> Callable[[str], list[SpanRecord]]:
    """Give a way to see what Phoenix has of a trace: times to the microsecond, no kind."""

    def stored(trace_id: str) -> list[SpanRecord]:
        end = time.monotonic() + 5
        while True:
            asked = f"{url}/v1/projects/default/spans?limit=10&trace_id={trace_id}"
            with contextlib.suppress(OSError), urllib.request.urlopen(asked, timeout=10) as reply:
                if found := json.loads(reply.read())["data"]:
                    return [phoenix_span(each) for each in found]
            if time.monotonic() > end:
                return []
            time.sleep(0.2)

    return stored


def phoenix_span(span: dict[str, object]) -> SpanRecord:
    context: dict[str, str] = span["context"]  # type: ignore[assignment]
    return SpanRecord(
        trace_id=context["trace_id"],
        span_id=context["span_id"],
        parent_id=None,
        name=str(span["name"]),
        start_ns=0,
        end_ns=0,
        attributes=span["attributes"],  # type: ignore[arg-type]
    )


def stored_in(collector: Collector) -> Callable[[str], list[SpanRecord]]:
    """Give a way to see what is in the archive, read here by hand: a reader of ours would judge itself."""

    def stored(trace_id: str) -> list[SpanRecord]:
        end = time.monotonic() + 2
        while True:
            with contextlib.suppress(FileNotFoundError):
                lines = (collector.archive / "spans.otlp.jsonl").read_text("utf-8", "replace").splitlines()
                if found := [span for line in lines if trace_id in line for span in spans_on(line)]:
                    return found
            if time.monotonic() > end:
                return []
            time.sleep(0.1)

    return stored


def spans_on(line: str) -> Iterator[SpanRecord]:
    for group in json.loads(line)["resourceSpans"]:
        for scope in group["scopeSpans"]:
            for span in scope["spans"]:
                yield SpanRecord(
                    trace_id=span["traceId"],
                    span_id=span.get("spanId", ""),
                    parent_id=None,
                    name=span["name"],
                    kind=span.get("kind", 0),
                    start_ns=int(span.get("startTimeUnixNano", 0)),
                    end_ns=int(span.get("endTimeUnixNano", 0)),
                    attributes={each["key"]: value_of(each["value"]) for each in span.get("attributes", [])},
                )


def value_of(value: dict[str, str]) -> str | int | bytes:
    ((name, held),) = value.items()
    return {"intValue": int, "bytesValue": base64.b64decode}.get(name, str)(held)


def test_the_table(record_property: Callable[[str, object], None]) -> None:
    """Last: print what was found."""
    if not TABLE:
        pytest.skip("nothing was tried before this")
    record_property("figure", "\n" + table(TABLE))
