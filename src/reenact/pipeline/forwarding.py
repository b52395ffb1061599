"""What a collector took in goes on to backends: the segments are the queue, and the outbox says what is owed of them.

A span is owed once it is on disk, in the order of coming, and settled by the backend's own answer; whatever moment
anything is killed at, nothing is owed twice or forgotten. Log records are kept and not sent on.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence

from reenact.contracts.parcel import Parcel
from reenact.errors import InputError
from reenact.export.backends import backends_from_environment
from reenact.export.post import Post, Standing
from reenact.export.sender import Sender
from reenact.pipeline.posting import named, post_for
from reenact.stores.directory import DirectoryStore
from reenact.stores.frames import FrameStore, place_name
from reenact.stores.outbox import Outbox
from reenact.values import frames as framing

_RECORDING = "collected"
_LOOK_S = 0.2
_AT_ONCE = 500


def senders(urls: Sequence[str]) -> list[Sender]:
    """Give a sender for each URL; headers for them are in REENACT_EXPORT_HEADERS. Raises `InputError`."""
    told = {name: value for name, value in os.environ.items() if name.startswith("REENACT_EXPORT_")}
    return backends_from_environment({**told, "REENACT_EXPORT": ",".join(urls)})


class Forwarding:
    """Owes what is in the segments, in a thread of its own, and has couriers bring it."""

    def __init__(self, store: DirectoryStore, backends: Sequence[Sender], say: Callable[[str], None]) -> None:
        self._frames, self._outbox, self._say = FrameStore(store.folder), Outbox(store.folder), say
        self._numbers = list(self._outbox.register(_RECORDING, [each.name for each in named(backends)]).values())
        self._post: Post | None = post_for(store, backends, _RECORDING)
        self._cursors: dict[int, int] = {}
        """How far a segment is owed, in bytes."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reenact-owe", daemon=True)
        first = self._frames.needed_from()
        self._first = (
            first if first is not None else max((number for number, _ in self._frames.segments()), default=0) + 1
        )
        self._frames.need_from(self._first)
        self._thread.start()

    def close(self) -> list[Standing]:
        """Owe the rest, send for the moment that an exit may take, and say what came of it."""
        self._over.set()
        self._thread.join()
        standings = self._post.close(self._post.limits.exit_s) if self._post is not None else []
        self._frames.close()
        return standings

    def _run(self) -> None:
        over = False
        while not over:
            over = self._over.wait(_LOOK_S)
            try:
                if self._owe() and self._post is not None:
                    self._post.wake()
            except (InputError, OSError) as error:
                self._say(f"forwarding is behind: {error}")
                if self._over.wait(5 * _LOOK_S):
                    return

    def _owe(self) -> int:
        """Owe what came in since, and say how many frames that was."""
        count = 0
        segments = [each for each in self._frames.segments() if each[0] >= self._first]
        for number, path in segments:
            while path.stat().st_size > self._cursors.get(number, 0) and (done := self._owe_of(number)):
                count += done
        owed = self._outbox.first_owed(f"{place_name(0)[:-1]}%")
        newest = segments[-1][0] if segments else self._first
        self._first = min(int(owed.rpartition("/")[2]), newest) if owed else newest
        self._frames.need_from(self._first)
        for number in [each for each in self._cursors if each < self._first]:
            del self._cursors[number]
        return count

    def _owe_of(self, number: int) -> int:
        path = self._frames.segment(number)
        with self._outbox.taking_in(path.name, self._numbers) as intake, path.open("rb") as file:
            known = self._cursors.get(number)
            before = 0 if known is None else intake.carried
            parcels: list[Parcel] = []
            end, count = known or len(framing.MAGIC), 0
            for at, size, frame in framing.scan(file, end):
                end, count = at + size, count + 1
                if frame.kind == framing.SPANS:
                    before += frame.records
                    if before > intake.carried or known is not None:
                        name = place_name(number)
                        parcels.append(Parcel(trace_id=name, at=at, size=size, spans=frame.records))
                if len(parcels) >= _AT_ONCE:
                    break
            if parcels:
                intake.owe(parcels)
        self._cursors[number] = end
        return count
