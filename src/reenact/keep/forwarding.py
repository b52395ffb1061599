"""What a collector took in goes on to backends: the segments are the queue, and the outbox says what is owed of them.

A span is owed once it is on disk, in the order of coming, and settled by the backend's own answer; whatever moment
anything is killed at, nothing is owed twice or forgotten. So is a log record, to a backend of its own in the outbox:
however a backend answers to these, it holds up no span.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence

from reenact.contracts.parcel import Parcel
from reenact.disk import envelopes
from reenact.disk import frames as framing
from reenact.disk.envelopes import Part
from reenact.errors import InputError
from reenact.export.backends import backends_from_environment
from reenact.export.courier import Leaving, Wares
from reenact.export.limits import limits_from
from reenact.export.log_events import SUFFIX, for_log_events
from reenact.export.post import Post, Standing
from reenact.export.sender import Sender
from reenact.keep.posting import post_for, with_names
from reenact.stores.directory import DirectoryStore
from reenact.stores.frames import FrameStore, place_name
from reenact.stores.outbox import Outbox

_RECORDING = "collected"
_LOOK_S = 0.2
_AT_ONCE = 500


def senders(urls: Sequence[str]) -> list[Sender]:
    """Give a sender for each URL; headers for them are in REENACT_EXPORT_HEADERS. Raises `InputError`."""
    settings = {name: value for name, value in os.environ.items() if name.startswith("REENACT_EXPORT_")}
    return backends_from_environment({**settings, "REENACT_EXPORT": ",".join(urls)})


class Forwarding:
    """Owes what is in the segments, in a thread of its own, and has couriers bring it."""

    def __init__(self, store: DirectoryStore, backends: Sequence[Sender], say: Callable[[str], None]) -> None:
        self._store, self._say = store, say
        self._frames, self._outbox = FrameStore(store.folder), Outbox(store.folder)
        self._numbers = list(self._outbox.register(_RECORDING, [each.name for each in with_names(backends)]).values())
        self._posts = [post] if (post := post_for(store, backends, _RECORDING)) is not None else list[Post]()
        self._logs = _log_events(backends, say)
        """Senders of log events; none any more once they are at work."""
        self._log_numbers: list[int] = []
        if self._outbox.known([each.name for each in self._logs]):
            self._begin_logs()
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
        standings = [standing for post in self._posts for standing in post.close(post.limits.exit_s)]
        self._frames.close()
        return standings

    def _run(self) -> None:
        over = False
        while not over:
            over = self._over.wait(_LOOK_S)
            try:
                if self._owe():
                    for post in self._posts:
                        post.wake()
            except (InputError, OSError) as error:
                self._say(f"forwarding is behind: {error}")
                if self._over.wait(5 * _LOOK_S):
                    return

    def _begin_logs(self) -> None:
        """Begin to send log events, when the first of them comes: who has none sees nothing of them in `status`."""
        wares = Wares(load=self._log_records, dress=lambda part, _: Leaving(span=part))
        numbers = self._outbox.register(f"{_RECORDING}{SUFFIX}", [each.name for each in self._logs])
        served = {numbers[each.name]: each for each in self._logs}
        self._posts.append(Post(served, self._outbox, wares, limits_from(os.environ)))
        self._logs, self._log_numbers = [], list(numbers.values())

    def _log_records(self, parcel: Parcel) -> list[Part]:
        return list(envelopes.parts(self._frames.request(parcel)))

    def _owe(self) -> int:
        """Owe what came in since, and say how many frames that was."""
        count = 0
        segments = [each for each in self._frames.segments() if each[0] >= self._first]
        for number, path in segments:
            while path.stat().st_size > self._cursors.get(number, 0) and (frame_count := self._owe_of(number)):
                count += frame_count
        owed = self._outbox.first_owed(f"{place_name(0)[:-1]}%")
        newest = segments[-1][0] if segments else self._first
        self._first = min(int(owed.rpartition("/")[2]), newest) if owed else newest
        self._frames.need_from(self._first)
        for number in [each for each in self._cursors if each < self._first]:
            del self._cursors[number]
        return count

    def _owe_of(self, number: int) -> int:
        path, cursor = self._frames.segment(number), self._cursors.get(number)
        names = {framing.SPANS: path.name, framing.LOGS: f"{path.name}{SUFFIX}"}
        with self._outbox.snapshot() as owed:  # how many records are owed already, by the kind of their frames
            left = {kind: owed.carried(name) if cursor is None else 0 for kind, name in names.items()}
        parcels: dict[int, list[Parcel]] = {kind: [] for kind in names}
        end, count = cursor or len(framing.MAGIC), 0
        with path.open("rb") as file:
            for at, size, frame in framing.scan(file, end):
                end, count = at + size, count + 1
                if frame.kind in parcels:
                    left[frame.kind] -= frame.records
                    if left[frame.kind] < 0:
                        parcel = Parcel(trace_id=place_name(number), at=at, size=size, spans=frame.records)
                        parcels[frame.kind].append(parcel)
                if sum(map(len, parcels.values())) >= _AT_ONCE:
                    break
        if parcels[framing.LOGS] and self._logs:
            self._begin_logs()
        with self._outbox.taking_in(path.name, self._numbers) as intake:
            if parcels[framing.SPANS]:
                intake.owe(parcels[framing.SPANS])
            if parcels[framing.LOGS] and self._log_numbers:
                intake.beside(names[framing.LOGS], self._log_numbers).owe(parcels[framing.LOGS])
        self._cursors[number] = end
        return count


def _log_events(backends: Sequence[Sender], say: Callable[[str], None]) -> list[Sender]:
    log_senders: list[Sender] = []
    for backend in backends:
        if (sender := for_log_events(backend)) is not None:
            log_senders.append(sender)
        else:
            say(f"{backend.name} gets no log events: its URL does not end in /v1/traces, so nobody knows where to")
    return with_names(log_senders)
