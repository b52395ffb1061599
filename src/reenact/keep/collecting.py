"""The embedded collector at work on a store: what comes in is kept, found by `ls`, and replayed as any recording."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

from reenact.collect.intake import Decoding, Redact
from reenact.collect.settings import Settings
from reenact.disk.appender import Appender
from reenact.disk.frame_index import placed
from reenact.errors import InputError
from reenact.export.sender import Sender
from reenact.formats.otlp_proto import logs_of
from reenact.graph.logs import trace_of
from reenact.keep.forwarding import Forwarding
from reenact.keep.posting import undelivered
from reenact.stores.directory import DirectoryStore
from reenact.stores.frames import FrameStore

if TYPE_CHECKING:
    from reenact.collect.server import Server

_AGAIN_S = 5.0
"""So long after it died the keeper is started again."""


def require_extra(command: str) -> None:
    """Raise `InputError` where what a collector needs is not installed; `command` is what asked for it."""
    if find_spec("h11") is None or find_spec("h2") is None:
        raise InputError(command, "h11 and h2 are not installed", hint="pip install 'reenact[collector]'")


def decoding(redact: Redact | None = None) -> Decoding:
    """Say how requests are read, and what redacts them before they are written."""
    return Decoding(trace_of=trace_of, logs_of=logs_of, redact=redact)


def collect(
    store: DirectoryStore,
    settings: Settings,
    *,
    keeper: Sequence[str],
    backends: Sequence[Sender] = (),
    say: Callable[[str], None],
    ready: Callable[[Server], None] = lambda _: None,
) -> None:
    """Collect until SIGTERM or SIGINT. Raises `InputError` where the store cannot be written, `OSError` for ports.

    `keeper` holds the options of `reenact store keep`, which runs beside it.
    """
    store.prepare()
    frames = FrameStore(store.folder)
    appender = frames.appender()
    forwarding: Forwarding | None = None
    try:
        forwarding = Forwarding(store, backends, say) if backends else None
        asyncio.run(_collect(store, frames, appender, settings, keeper, say, ready))
    finally:
        appender.close()
        frames.close()
        for standing in forwarding.close() if forwarding is not None else ():
            say(undelivered(standing))


async def _collect(
    store: DirectoryStore,
    frames: FrameStore,
    appender: Appender,
    settings: Settings,
    keeper: Sequence[str],
    say: Callable[[str], None],
    ready: Callable[[Server], None],
) -> None:
    def note(new_frames: Sequence[tuple[int, int, bytes]]) -> None:
        frames.note(placed(new_frames))

    from reenact.collect.server import Server

    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, over.set)
    server = Server(settings, appender, note, say)
    keeping = asyncio.create_task(_keep_store(store, keeper, say))
    try:
        await server.start()
        ready(server)
        await over.wait()
    finally:
        await server.close()
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping


async def _keep_store(store: DirectoryStore, options: Sequence[str], say: Callable[[str], None]) -> None:
    """Have a process of its own keep the store, at a lower priority, as long as this one lives."""
    command = [sys.executable, "-m", "reenact", "store", "keep", "--store", str(store.folder), *options]
    while True:
        child = await asyncio.create_subprocess_exec(*command, stdin=subprocess.PIPE)
        try:
            code = await child.wait()
            say(f"the keeper of the store ended with {code}; it is started again")
            await asyncio.sleep(_AGAIN_S)
        except asyncio.CancelledError:
            if child.stdin is not None:
                child.stdin.close()  # its sign to end
            with suppress(TimeoutError, ProcessLookupError):
                async with asyncio.timeout(10):
                    await child.wait()
            if child.returncode is None:
                child.kill()
            raise
