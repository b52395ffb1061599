"""The server in a thread of the test, with settings that no command line has: time limits too short for people."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reenact.collect.server import Server
from reenact.collect.settings import Settings
from reenact.disk import frames as framing
from reenact.keep.collecting import decoding
from reenact.stores.frames import FrameStore, Placed


@dataclass
class Served:
    """A running server."""

    server: Server
    store: FrameStore
    said: list[str] = field(default_factory=list)

    @property
    def http(self) -> tuple[str, int]:
        return "127.0.0.1", self.server.http_port

    @property
    def grpc(self) -> tuple[str, int]:
        return "127.0.0.1", self.server.grpc_port


@contextlib.contextmanager
def served(folder: Path, **given: Any) -> Generator[Served]:
    """Run a server on free ports for a while."""
    store = FrameStore(folder)
    appender = store.appender()
    settings = Settings(decoding=decoding(), **{"http_port": 0, "grpc_port": 0} | given)
    ready, over = threading.Event(), asyncio.Event()
    found: list[Served] = []

    def note(written: Sequence[tuple[int, int, bytes]]) -> None:
        store.note(Placed(segment=number, at=at, size=len(f), frame=framing.head(f)) for number, at, f in written)

    async def run() -> None:
        said: list[str] = []
        server = Server(settings, appender, note, said.append)
        await server.start()
        found.append(Served(server, store, said))
        loops.append(asyncio.get_running_loop())
        ready.set()
        await over.wait()
        await server.close()

    loops: list[asyncio.AbstractEventLoop] = []
    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    assert ready.wait(60)
    try:
        yield found[0]
    finally:
        loops[0].call_soon_threadsafe(over.set)
        thread.join(30)
        appender.close()
        store.close()
    assert not thread.is_alive()
