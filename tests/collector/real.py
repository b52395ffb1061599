"""The real OpenTelemetry Collector, in a process of its own on loopback."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BINARY = ROOT / "collector" / "_build" / "otelcol-reenact"
GATEWAY = ROOT / "otel-collector-config.yaml"
AGENT = ROOT / "collector" / "agent.yaml"
WITH_TOKEN = ROOT / "collector" / "with-token.yaml"
PLAIN = Path(__file__).parent / "plain.yaml"
"""OTLP in, a file out, nothing between."""
needs_collector = pytest.mark.skipif(
    not BINARY.exists(), reason="the OpenTelemetry Collector is not built here: `make collector`"
)


@dataclass
class Collector:
    """A Collector that can be killed and started again at the same ports, with the same queue and archive."""

    folder: Path
    configs: tuple[Path, ...] = (GATEWAY,)
    settings: dict[str, str] = field(default_factory=dict[str, str])
    sets: tuple[str, ...] = ()
    """As `--set` takes them."""
    gates: str = ""
    ports: list[int] = field(default_factory=list[int])
    process: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.ports = self.ports or free_ports(5)

    @property
    def http(self) -> str:
        return f"http://127.0.0.1:{self.ports[0]}"

    @property
    def grpc(self) -> str:
        return f"127.0.0.1:{self.ports[1]}"

    @property
    def archive(self) -> Path:
        return self.folder / "archive"

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def environ(self) -> dict[str, str]:
        own: dict[str, str] = {}
        for tier in ("GATEWAY", "AGENT"):
            places = zip(("HTTP", "GRPC", "HEALTH", "ZPAGES"), self.ports, strict=False)
            own |= {f"{tier}_{what}": f"127.0.0.1:{port}" for what, port in places}
            own |= {f"{tier}_METRICS_PORT": str(self.ports[4]), f"{tier}_QUEUE": str(self.folder / "queue")}
        own |= {"GATEWAY_ARCHIVE": str(self.archive), "BACKEND_ENDPOINT": "http://127.0.0.1:9"}  # nobody there
        return {"PATH": os.environ["PATH"], **own, **self.settings}

    def start(self) -> Collector:
        argv = [str(BINARY), *(word for config in self.configs for word in ("--config", str(config)))]
        argv += [word for each in self.sets for word in ("--set", each)]
        argv += [f"--feature-gates={self.gates}"] if self.gates else []
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                argv, cwd=self.folder, env=self.environ(), stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        self.wait()
        return self

    def wait(self, seconds: float = 40) -> None:
        """Wait until it listens."""
        until = time.monotonic() + seconds
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.ports[0]), timeout=1):
                return
            if not self.process or self.process.poll() is not None or time.monotonic() > until:
                pytest.fail(f"the Collector did not start:\n{self.log[-3000:]}")
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill it as the kernel would."""
        assert self.process
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)

    def stop(self) -> None:
        """End it as its service manager would; it drains what it can."""
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()

    def metric(self, name: str) -> float:
        """Give the sum of one of its own metrics."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[4]}/metrics", timeout=10) as reply:
            lines = reply.read().decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


@contextlib.contextmanager
def running(collector: Collector) -> Generator[Collector]:
    try:
        yield collector.start()
    finally:
        collector.stop()


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as held:
        asked = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in asked:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in asked]
