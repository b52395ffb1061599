"""Killing agents at random instants, and counting what is left of what they were handed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeAlias

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from reenact.keep.recovering import recover
from reenact.stores.directory import DirectoryStore
from reenact.values.call import FunctionCall, HttpRequest, Returned, Streamed
from reenact.values.run import Node, Run

MORTAL = Path(__file__).parent / "faults" / "mortal.py"
SIGNALS = {"SIGKILL": signal.SIGKILL, "SIGTERM": signal.SIGTERM, "SIGHUP": signal.SIGHUP}
DEATHS = (*SIGNALS, "os._exit", "segfault", "exec", "exception", "sys.exit", "normal")
LONGEST_S = 0.25
"""Death comes up to so long after the recorder is in charge, for every fifth life after birth."""
A_LIFE_S = 0.25
"""What a short life takes where nobody else is working."""
MEASURED_EVERY = 5
"""After so many lives it is measured again how long one takes."""
EVENTS = 4
HUNG = 255
Begin: TypeAlias = "Callable[[dict[str, Any]], tuple[int, Callable[[], int]]]"
"""Begins a life: gives its process id, and what waits for its end."""


class Provider(BaseHTTPRequestHandler):
    """Answers chat calls at once, whole or in events, with the mark that was asked about."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        mark = asked["messages"][0]["content"].partition(" ")[0]
        if asked.get("stream"):
            self._stream(mark)
            return
        message = {"role": "assistant", "content": f"answer to {mark}"}
        self._whole({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    def _whole(self, reply: dict[str, Any]) -> None:
        body = json.dumps({"id": "c", "object": "chat.completion", "created": 1, "model": "stand-in", **reply}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, mark: str) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for number in range(EVENTS):
            choice = {"index": 0, "delta": {"content": f"{mark} event {number}"}, "finish_reason": None}
            event = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
            self._piece(f"data: {json.dumps(event)}\n\n".encode())
        self._piece(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _piece(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002 - its name there


class _Collector(BaseHTTPRequestHandler):
    """Takes OTLP over HTTP and keeps the spans."""

    protocol_version = "HTTP/1.1"
    spans: list[Any]

    def do_POST(self) -> None:
        request = ExportTraceServiceRequest()
        request.ParseFromString(self.rfile.read(int(self.headers["content-length"])))
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                self.spans.extend(scope.spans)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002 - its name there


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients die here."""


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Generator[int]:
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class Tally:
    """What became of some lives that ended alike."""

    lives: int = 0
    acknowledged: int = 0
    lost: int = 0
    runs: int = 0
    rootless: int = 0
    orphans: int = 0
    incomplete: int = 0
    hung: int = 0
    said: list[str] = field(default_factory=list[str])
    """What went wrong, in words."""

    @property
    def row(self) -> tuple[int, ...]:
        return self.lives, self.acknowledged, self.lost, self.runs, self.rootless, self.orphans


def killed(
    folder: Path, death: str, lives: int, *, begin: Begin, seed: int = 1, slowly: int = 1, ours: bool = True
) -> Tally:
    """Let agents live and die, one after the other, and count what is left."""
    folder.mkdir(parents=True)
    chance = random.Random(f"{seed} {death}")
    collected: list[Any] = []
    collector = type("Collector", (_Collector,), {"spans": collected})
    orders: list[dict[str, Any]] = []
    hung = 0
    with serving(Provider) as provider, serving(collector) as port:
        fixed: dict[str, Any] = {"provider": provider, "collector": port, "store": str(folder / "store")}
        pace = float(slowly)
        for trial in range(lives):
            if trial == 0 or (ours and trial % MEASURED_EVERY == 0):  # again, since others may be at work by now
                took = min(_a_life(begin, folder, fixed) for _ in range(2))  # the first may wait for the template
                pace = max(slowly, min(4, took / A_LIFE_S))
                collected.clear()
            order = {
                **fixed,
                "death": death,
                "trial": trial,
                "name": f"{trial:016x}",
                "from_birth": trial % 5 == 4,
                "after": chance.uniform(0, LONGEST_S) * pace,
                "acks": str(folder / f"{trial}.acks"),
                "stderr": str(folder / f"{trial}.stderr"),
                **({"rounds": chance.randrange(1, 4)} if death == "normal" else {}),
            }
            pid, ended = begin(order)
            _kill_in_time(order, pid)
            code = ended()
            if code == HUNG and not ours:
                hung += 1
            else:
                _as_ordered(order, code)
            orders.append(order)
    tally = _recovered(orders, folder / "store") if ours else _collected(orders, collected)
    tally.hung = hung
    return tally


def _a_life(begin: Begin, folder: Path, fixed: dict[str, Any]) -> float:
    """Measure how long a short life that ends well takes here and now, in seconds."""
    began = time.monotonic()
    named = {"acks": str(folder / "first.acks"), "stderr": str(folder / "first.stderr"), "name": "f" * 16}
    alone = {**fixed, **named, "store": str(folder / "first"), "death": "normal", "rounds": 1, "after": 0, "trial": -1}
    _, ended = begin({**alone, "from_birth": False})
    ended()
    return time.monotonic() - began


def _recovered(orders: list[dict[str, Any]], store: Path) -> Tally:
    tally = Tally(lives=len(orders))
    found = recover(DirectoryStore(store))
    by_recording = {str(run.recording): run for run in found.runs}
    tally.runs = len(found.runs)
    for order in orders:
        _count(tally, order, by_recording.get(order["name"]))
    return tally


def _environ() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("REENACT_", "OTEL_"))}


def cold(order: dict[str, Any]) -> tuple[int, Callable[[], int]]:
    """Start an agent as any program is started."""
    process = subprocess.Popen([sys.executable, str(MORTAL), "once", json.dumps(order)], env=_environ())
    return process.pid, process.wait


@contextmanager
def template(arm: str) -> Generator[Begin]:
    """Keep a process that has everything loaded, and forks an agent for each order."""
    command = [sys.executable, str(MORTAL), "template", arm]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_environ()) as process:
        given, told = process.stdin, process.stdout
        assert given is not None
        assert told is not None

        def begin(order: dict[str, Any]) -> tuple[int, Callable[[], int]]:
            given.write(json.dumps(order) + "\n")
            given.flush()
            return int(told.readline()), lambda: int(told.readline())

        yield begin
        given.close()


def _kill_in_time(order: dict[str, Any], pid: int) -> None:
    if order["death"] in SIGNALS:
        ready = Path(order["acks"])
        while not order["from_birth"] and not (ready.exists() and ready.stat().st_size):
            time.sleep(0.001)
        time.sleep(order["after"])
        with suppress(ProcessLookupError):
            os.kill(pid, SIGNALS[order["death"]])


def _as_ordered(order: dict[str, Any], code: int) -> None:
    death = order["death"]
    expected = {"os._exit": 7, "segfault": -signal.SIGSEGV, "exception": 1}.get(death, -SIGNALS.get(death, 0))
    said = Path(order["stderr"]).read_text() if Path(order["stderr"]).exists() else ""
    assert code == expected, f"{death}: ended with {code}\n{said}"
    if death not in {"segfault", "exception", "sys.exit"}:  # there the interpreter, or the SDK, says something
        assert "Traceback" not in said, said
    assert "reenact: " not in said, said
    assert "detach context" not in said, said


def acknowledged(order: dict[str, Any]) -> list[list[str]]:
    """Give what an agent was handed. It may have died in the middle of its last line."""
    path = Path(order["acks"])
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [said for line in lines if (said := json.loads(line)) != ["ready"]]


def _count(tally: Tally, order: dict[str, Any], run: Run | None) -> None:
    acks = acknowledged(order)
    tally.acknowledged += len(acks)
    if run is None:
        tally.lost += len(acks)
        if acks:
            tally.said.append(f"{order['name']}: no run, {len(acks)} acknowledged")
        return
    tally.rootless += run.root is None
    tally.orphans += sum(node.orphan for node in run.nodes)
    tally.incomplete += bool(run.root and run.root.span.attributes.get("reenact.incomplete"))
    held = [(_asked(node), _answered(node)) for node in run.nodes]
    for kind, mark, text in acks:
        if not any(mark in asked and text in answered for asked, answered in held):
            tally.lost += 1
            tally.said.append(f"{order['name']}: {kind} {mark} {text!r}")


def _asked(node: Node) -> str:
    match node.call.request:
        case HttpRequest(body=body):
            return body.data.decode()
        case FunctionCall(arguments=arguments):
            return json.dumps(arguments)


def _answered(node: Node) -> str:
    match node.outcome:
        case Returned(payload=payload):
            body = getattr(payload, "body", None)
            return body.data.decode() if body is not None else json.dumps(getattr(payload, "json", None))
        case Streamed(chunks=chunks):
            return "".join((chunk.data or b"").decode() or json.dumps(chunk.value) for chunk in chunks)
        case _:
            return ""


def _collected(orders: list[dict[str, Any]], spans: list[Any]) -> Tally:
    """Count the same of the stock SDK: an event is there if the span of its step is."""
    tally = Tally(lives=len(orders))
    traces: dict[bytes, list[Any]] = {}
    for span in spans:
        traces.setdefault(span.trace_id, []).append(span)
    there = {(span.name, each.value.string_value) for span in spans for each in span.attributes if each.key == "mark"}
    step = {"answer": "ask", "weigh": "weigh", "event": "stream", "item": "count"}
    for order in orders:
        acks = acknowledged(order)
        tally.acknowledged += len(acks)
        tally.lost += sum((step[kind], mark) not in there for kind, mark, _ in acks)
    tally.runs = len(traces)
    for found in traces.values():
        ids = {span.span_id for span in found}
        tally.rootless += not any(not span.parent_span_id for span in found)
        tally.orphans += sum(bool(span.parent_span_id) and span.parent_span_id not in ids for span in found)
    return tally
