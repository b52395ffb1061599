"""Our own collector, `reenact collect`, in a process of its own on loopback."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

from collector.real import free_ports
from reenact.stores.directory import DirectoryStore
from reenact.values.span import SpanRecord

needs_ours = pytest.mark.skipif(
    any(importlib.util.find_spec(each) is None for each in ("reenact.cli.collect", "h11", "h2")),
    reason="`reenact collect` needs the extra: pip install 'reenact[collector]'",
)


@dataclass
class Ours:
    """A running `reenact collect`, and the store that it writes."""

    store: Path
    http: str
    grpc: str

    def kept(self) -> list[SpanRecord]:
        """Give every span that the store has, doubles too."""
        store = DirectoryStore(self.store)
        return [span for trace_id in store.trace_ids() for span in self.of(trace_id)]

    def of(self, trace_id: str, within_s: float = 10) -> list[SpanRecord]:
        """Give the spans of one trace, once there are any."""
        until = time.monotonic() + within_s
        while True:
            with contextlib.suppress(Exception):
                if found := list(DirectoryStore(self.store).spans(trace_id)):
                    return found
            if time.monotonic() > until:
                return []
            time.sleep(0.1)


@contextlib.contextmanager
def our_collector(folder: Path, *words: str) -> Generator[Ours]:
    """Run it, with further options."""
    folder.mkdir(parents=True, exist_ok=True)
    ports = free_ports(2)
    store = folder / ".reenact"
    command = [sys.executable, "-m", "reenact", "collect", "--store", str(store)]
    command += ["--http-port", str(ports[0]), "--grpc-port", str(ports[1]), *words]
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("REENACT_", "OTEL_"))}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=environ, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        listening(ports[0], process, folder / "log")
        yield Ours(store, f"http://127.0.0.1:{ports[0]}", f"127.0.0.1:{ports[1]}")
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


def listening(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 40
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        if process.poll() is not None or time.monotonic() > until:
            pytest.fail(f"it did not start:\n{log.read_text(errors='replace')[-3000:]}")
        time.sleep(0.05)
