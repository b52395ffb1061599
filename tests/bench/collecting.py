"""What taking spans in costs, ours beside the OpenTelemetry Collector and Phoenix, and what is then on disk.

    python tests/bench/run.py --part collecting

Every server gets the same requests (`mix.py`) from the same sender, eight connections of OTLP/HTTP in protobuf. A
server's rate is what was stored by the time that it was stored: ours acknowledges what is on disk; the Collector's
queue, where it has one, likewise; Phoenix acknowledges at once and is waited for.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import queue
import random
import shutil
import signal
import socket
import sqlite3
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mix
from figures import table

_ROOT = Path(__file__).parents[2]
_COLLECTOR = _ROOT / "collector" / "_build" / "otelcol-reenact"
_PHOENIX = _ROOT / ".venv-phoenix" / "bin" / "phoenix"
_CLIENTS = 8
_SPANS, _PHOENIX_SPANS = 50_000, 4_000
SAID = "eight connections of OTLP/HTTP, 50 spans of 8 KB on average a request"


@dataclass(frozen=True, slots=True)
class Taken:
    """What one server did with the mix."""

    spans: int
    seconds: float
    cpu_s: float
    most_bytes: int
    """Of memory."""
    disk: int
    raw: int
    p50_ms: float
    p99_ms: float

    def json(self) -> dict[str, float]:
        """Give it for `--json`."""
        return {
            "spans_per_s": round(self.spans / self.seconds),
            "cpu_us_per_span": round(self.cpu_s / self.spans * 1e6, 1),
            "memory_mb": round(self.most_bytes / 1e6),
            "disk_mb": round(self.disk / 1e6, 1),
            "raw_mb": round(self.raw / 1e6, 1),
            "p50_ms": round(self.p50_ms, 1),
            "p99_ms": round(self.p99_ms, 1),
        }


# --------------------------------------------------------------------------------------------------------- the sender


def send(port: int, path: Path, clients: int) -> None:
    """Post the bodies in a file, and print how long it took and how long each was waited for."""
    data = path.read_bytes()
    waiting: queue.SimpleQueue[memoryview] = queue.SimpleQueue()
    at = 0
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at)
        waiting.put(memoryview(data)[at + 4 : at + 4 + size])
        at += 4 + size
    took: list[float] = []
    bad: list[int] = []

    def work() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        while True:
            try:
                body = waiting.get_nowait()
            except queue.Empty:
                return
            began = time.perf_counter()
            while True:
                connection.request("POST", "/v1/traces", body, {"content-type": "application/x-protobuf"})
                answer = connection.getresponse()
                answer.read()
                if answer.status not in (429, 503):
                    break
                time.sleep(0.05)
            if answer.status != 200:
                bad.append(answer.status)
            took.append(time.perf_counter() - began)

    began = time.perf_counter()
    threads = [threading.Thread(target=work) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - began
    took.sort()
    told = {"seconds": seconds, "bad": len(bad), "p50": took[len(took) // 2], "p99": took[int(len(took) * 0.99)]}
    sys.stdout.write(json.dumps(told))


def _sent(port: int, path: Path) -> dict[str, float]:
    command = [sys.executable, __file__, str(port), str(path), str(_CLIENTS)]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    if told["bad"]:
        raise RuntimeError(f"{told['bad']} requests were refused for good")
    return told  # type: ignore[no-any-return]


def written(folder: Path, spans: int, seed: int = 1) -> tuple[Path, int]:
    """Write the bodies of requests that hold so many spans, and say how many bytes they are."""
    path = folder / f"mix-{spans}-{seed}"
    raw = 0
    with path.open("wb") as file:
        for body in mix.requests(spans, seed=seed):
            file.write(struct.pack("<I", len(body)) + body)
            raw += len(body)
    return path, raw


# -------------------------------------------------------------------------------------------------------- the servers


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _up(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 90
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise RuntimeError(f"{process.args!r} does not listen")


@contextlib.contextmanager
def _running(command: list[str], port: int, environ: dict[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=quiet, stderr=quiet, env={**os.environ, **(environ or {})})
    try:
        _up(port, process)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _used(pid: int) -> tuple[float, int]:
    """Give the seconds of processor that a process and its children used, and the most memory that it had."""
    ticks = os.sysconf("SC_CLK_TCK")
    total = 0.0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(path.parent.name) == pid or int(fields[1]) == pid:
                total += sum(map(int, fields[11:15])) / ticks
    status = Path(f"/proc/{pid}/status").read_text()
    most = next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM"))
    return total, most


def _size(folder: Path, pattern: str = "**/*") -> int:
    return sum(path.stat().st_size for path in folder.glob(pattern) if path.is_file())


def _measured(
    folder: Path, command: list[str], port: int, work: tuple[Path, int, int], *, pattern: str = "**/*",
    stored: Callable[[], bool] | None = None, environ: dict[str, str] | None = None,
) -> Taken:  # fmt: skip
    path, spans, raw = work
    with _running(command, port, environ) as process:
        cpu, _ = _used(process.pid)
        began = time.perf_counter()
        told = _sent(port, path)
        seconds = told["seconds"]
        if stored is not None:
            while not stored():
                time.sleep(0.1)
            seconds = time.perf_counter() - began
        after, most = _used(process.pid)
        disk = _size(folder, pattern)
    return Taken(spans, seconds, after - cpu, most, disk, raw, told["p50"] * 1e3, told["p99"] * 1e3)


def ours(folder: Path, work: tuple[Path, int, int]) -> Taken:
    """Have `reenact collect` take the mix in; its keeper compacts nothing meanwhile."""
    port = _port()
    command = [sys.executable, "-m", "reenact", "collect", "--store", str(folder), "--http-port", str(port)]
    return _measured(folder, [*command, "--grpc-port", "0", "--idle", "100000"], port, work, pattern="frames/seg-*")


def collector(folder: Path, work: tuple[Path, int, int], *, fsync: bool | None) -> Taken:
    """Have the Collector write the mix to a file; `fsync` of the queue before it, None for no queue."""
    port, inner = _port(), _port()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "queue").mkdir()
    receiver = "{{protocols: {{http: {{endpoint: '127.0.0.1:{}', max_request_body_size: 67108864}}}}}}"
    last = f"file: {{path: {folder}/spans.pb, format: proto}}"
    queued = f"""
  otlp_http/on:
    endpoint: http://127.0.0.1:{inner}
    compression: none
    sending_queue: {{storage: file_storage, sizer: requests, queue_size: 100000, block_on_overflow: true}}"""
    second = "\n    traces/second: {receivers: [otlp/second], exporters: [file]}"
    first, second = ("file", "") if fsync is None else ("otlp_http/on", second)
    config = f"""
receivers:
  otlp: {receiver.format(port)}
  otlp/second: {receiver.format(inner)}
exporters:
  {last}{"" if fsync is None else queued}
extensions:
  file_storage: {{directory: {folder}/queue, fsync: {str(bool(fsync)).lower()}}}
service:
  telemetry: {{metrics: {{level: none}}, logs: {{level: error}}}}
  extensions: [file_storage]
  pipelines:
    traces: {{receivers: [otlp], exporters: [{first}]}}{second}
"""
    (folder / "config.yaml").write_text(config)
    command = [str(_COLLECTOR), "--config", str(folder / "config.yaml")]
    return _measured(folder, command, port, work, pattern="spans.pb")


def phoenix(folder: Path, work: tuple[Path, int, int]) -> Taken:
    """Have Phoenix take the mix in, until its database has it."""
    port = _port()
    environ = {
        "PHOENIX_PORT": str(port), "PHOENIX_GRPC_PORT": str(_port()), "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_HOST": "127.0.0.1", "PHOENIX_TELEMETRY_ENABLED": "false",
    }  # fmt: skip
    folder.mkdir(parents=True)

    def stored() -> bool:
        with contextlib.closing(sqlite3.connect(f"file:{folder}/phoenix.db?mode=ro", uri=True)) as database:
            return int(database.execute("SELECT count(*) FROM spans").fetchone()[0]) >= work[1]

    return _measured(
        folder, [str(_PHOENIX), "serve"], port, work, stored=stored, environ=environ, pattern="phoenix.db*"
    )


# ------------------------------------------------------------------------------------------------------------ reading


def compacted(folder: Path) -> dict[str, float]:
    """Put what was taken in together, and measure that, what is on disk then, and how long a look takes."""
    from reenact.keep.trace_assembly import compacted as compact
    from reenact.stores.directory import DirectoryStore
    from reenact.stores.frames import FrameStore
    from reenact.values.finding import Filters

    store, frames = DirectoryStore(folder), FrameStore(folder)
    ids = frames.trace_ids()
    some = random.Random(1).sample(ids, min(300, len(ids)))
    hot = _timed([lambda one=one: frames.raw(one) for one in some])
    began, count = time.process_time(), 0
    while done := compact(store, 0.0):
        count += done
    spent = time.process_time() - began
    cold = _timed([lambda one=one: frames.raw(one) for one in some])
    looks = [Filters(), Filters(tool="refund_order"), Filters(user="user-77"), Filters(model="claude", status="error")]
    pages = _timed([lambda each=each: store.search(each, newest=20) for each in looks * 5])
    return {
        "traces": len(ids),
        "compacting_cpu_s": round(spent, 2),
        "packs_mb": round(_size(folder, "frames/pack-*") / 1e6, 1),
        "index_mb": round((_size(folder, "frames/index-*") + _size(folder, "index-*")) / 1e6, 1),
        "hot_p50_ms": round(statistics.median(hot), 2),
        "get_p50_ms": round(statistics.median(cold), 3),
        "get_p99_ms": round(sorted(cold)[int(len(cold) * 0.99)], 2),
        "page_p50_ms": round(statistics.median(pages), 2),
        "page_max_ms": round(max(pages), 2),
    }


def _timed(looks: list[Callable[[], Any]]) -> list[float]:
    found: list[float] = []
    for look in looks:
        began = time.perf_counter()
        look()
        found.append((time.perf_counter() - began) * 1e3)
    return found


def measured(rounds: int = 1) -> dict[str, Any]:
    """Measure every server that is here, one after another, `rounds` times."""
    scratch = Path(tempfile.mkdtemp(prefix="reenact-collecting-"))
    found: dict[str, Any] = {}
    try:
        path, raw = written(scratch, _SPANS)
        work = (path, _SPANS, raw)
        small, small_raw = written(scratch, _PHOENIX_SPANS)
        servers: dict[str, Callable[[Path], Taken]] = {"reenact collect": lambda folder: ours(folder, work)}
        if _COLLECTOR.exists():
            servers["Collector, file exporter"] = lambda folder: collector(folder, work, fsync=None)
            servers["Collector, queue without fsync"] = lambda folder: collector(folder, work, fsync=False)
            servers["Collector, queue with fsync"] = lambda folder: collector(folder, work, fsync=True)
        if _PHOENIX.exists():
            servers["Phoenix"] = lambda folder: phoenix(folder, (small, _PHOENIX_SPANS, small_raw))
        for number in range(rounds):
            for name, serve in servers.items():
                folder = scratch / f"{number}-{len(found)}-{name.replace(' ', '-').replace(',', '')}"
                found.setdefault(name, []).append(serve(folder).json())
                if name == "reenact collect" and number == rounds - 1:
                    found["store"] = compacted(folder)
                shutil.rmtree(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return found


def laid_out(found: dict[str, Any]) -> str:
    """Lay the figures out."""
    head = ["", "spans/s stored", "CPU µs/span", "p50 ms", "p99 ms", "memory MB", "disk/raw"]
    rows: list[list[str]] = []
    for name, taken in found.items():
        if name == "store":
            continue
        best = {key: statistics.median(each[key] for each in taken) for key in taken[0]}
        rows.append(
            [
                name, f"{best['spans_per_s']:,.0f}", f"{best['cpu_us_per_span']:.0f}", f"{best['p50_ms']:.1f}",
                f"{best['p99_ms']:.1f}", f"{best['memory_mb']:.0f}", f"{best['disk_mb'] / best['raw_mb']:.2f}",
            ]
        )  # fmt: skip
    kept = found["store"]
    raw = found["reenact collect"][-1]["raw_mb"]
    said = (
        f"  put together: {kept['traces']} traces, {kept['packs_mb']} MB of {raw} MB raw"
        f" (1/{raw / kept['packs_mb']:.1f}),"
        f" {kept['compacting_cpu_s'] / _SPANS * 1e6:.0f} µs of processor a span; a trace in {kept['get_p50_ms']} ms"
        f" (p99 {kept['get_p99_ms']}; before it is put together {kept['hot_p50_ms']}),"
        f" a page of `ls` in {kept['page_p50_ms']} ms (most {kept['page_max_ms']})"
    )
    return f"{table(head, rows)}\n\n{said}"


if __name__ == "__main__":
    send(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
