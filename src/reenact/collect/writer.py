"""One thread writes what all requests bring: what waits while a write is on its way to the disk goes out with the next.

A request is answered when its frames are on disk (`fdatasync`). The index is told afterwards, by a thread of its own:
it is no part of what is promised.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from reenact.collect.meters import Meters
from reenact.collect.refusals import Refusal, busy

_MOST_BYTES = 32 << 20
"""So much goes to the disk in one piece."""
_NOTED_AT_ONCE = 200


class Segments(Protocol):
    """What appends (`disk.appender`)."""

    number: int

    def append(self, frames: Sequence[bytes]) -> list[int]:
        """Append frames and have them on disk."""
        ...

    def close(self) -> None:
        """Let go."""
        ...


@dataclass(slots=True)
class _Waiting:
    frames: tuple[bytes, ...]
    future: asyncio.Future[None]


Note = Callable[[Sequence[tuple[int, int, bytes]]], None]
"""Is told of frames that were written: segment, byte, and the frame."""


class Writer:
    """Belongs to one event loop."""

    def __init__(self, segments: Segments, note: Note, meters: Meters, say: Callable[[str], None]) -> None:
        self._segments, self._note, self._meters, self._say = segments, note, meters, say
        self._loop = asyncio.get_running_loop()
        self._waiting: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._note_queue: queue.SimpleQueue[tuple[int, int, bytes] | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._write, name="reenact-write", daemon=True),
            threading.Thread(target=self._noting, name="reenact-note", daemon=True),
        ]
        self._failing = False
        for thread in self._threads:
            thread.start()

    async def put(self, frames: tuple[bytes, ...]) -> None:
        """Have frames on disk. Raises `Refusal` where they cannot be written: then none of them is there."""
        if not frames:
            return
        waiting = _Waiting(frames, self._loop.create_future())
        self._waiting.put(waiting)
        await waiting.future

    async def close(self) -> None:
        """Write what waits, and end."""
        self._waiting.put(None)
        await asyncio.to_thread(self._threads[0].join)
        self._note_queue.put(None)
        await asyncio.to_thread(self._threads[1].join)
        self._segments.close()

    def _write(self) -> None:
        over = False
        while not over:
            first = self._waiting.get()
            if first is None:
                return
            group = [first]
            size = sum(map(len, first.frames))
            while size < _MOST_BYTES:
                try:
                    more = self._waiting.get_nowait()
                except queue.Empty:
                    break
                if more is None:
                    over = True
                    break
                group.append(more)
                size += sum(map(len, more.frames))
            self._write_group(group, size)

    def _write_group(self, group: Sequence[_Waiting], size: int) -> None:
        flat = [frame for each in group for frame in each.frames]
        began = time.monotonic()
        refusal: Refusal | None = None
        try:
            places = self._segments.append(flat)
        except OSError as error:
            refusal = busy(f"the store cannot be written to: {error.strerror}", 5)
            self._meters.write_failures += 1
            if not self._failing:
                self._say(f"{refusal.reason}: nothing is acknowledged until it can")
            self._failing = True
        else:
            if self._failing:
                self._say("the store can be written to again")
            self._failing = False
            number = self._segments.number
            for at, frame in zip(places, flat, strict=True):
                self._note_queue.put((number, at, frame))
            self._meters.commits += 1
            self._meters.written_bytes += size
            self._meters.commit_seconds += time.monotonic() - began
        self._loop.call_soon_threadsafe(_settle, group, refusal)

    def _noting(self) -> None:
        over = False
        while not over:
            batch: list[tuple[int, int, bytes]] = []
            each = self._note_queue.get()
            while each is not None:
                batch.append(each)
                if len(batch) >= _NOTED_AT_ONCE:
                    break
                try:
                    each = self._note_queue.get_nowait()
                except queue.Empty:
                    break
            over = each is None
            if batch:
                try:
                    self._note(batch)
                except Exception as error:  # noqa: BLE001 - it is found at the ends of the segments, and noted later
                    self._meters.note_failures += 1
                    self._say(f"the index is behind: {error}")
                    time.sleep(0.2)


def _settle(group: Sequence[_Waiting], refusal: Refusal | None) -> None:
    for each in group:
        if each.future.done():
            continue  # whoever asked is gone
        if refusal is None:
            each.future.set_result(None)
        else:
            each.future.set_exception(refusal)
