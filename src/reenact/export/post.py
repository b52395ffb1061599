"""Several couriers at work, each in a thread of its own: a dead backend holds up no other, nor whoever recorded."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

from reenact.errors import InputError
from reenact.export.courier import Courier, Wares
from reenact.export.limits import Limits
from reenact.export.sender import Sender
from reenact.stores.outbox import Outbox

_LOOK_S = 5.0
"""How often a courier looks by itself whether there is anything to do."""
_ELSEWHERE_S = 0.2
_LEISURE = 2.0
"""So many times as long as it worked, a courier rests that lives in the program which it serves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What came of serving one backend."""

    backend: str
    exported: int
    """Spans that it accepted, of those that this process sent."""
    dropped: Mapping[str, int]
    """Spans that will not be sent again, by reason."""
    waiting: int
    """Spans that it is still to have, whoever recorded them."""
    reason: str
    """What went wrong last, or nothing."""


class _Desk:
    """One courier and its thread."""

    def __init__(self, courier: Courier, *, gentle: bool) -> None:
        self.courier, self._gentle = courier, gentle
        self._wake, self.idle = threading.Event(), threading.Event()
        self._force = False
        self._thread = threading.Thread(target=self._work, name="reenact-export", daemon=True)
        with contextlib.suppress(RuntimeError):  # the interpreter is ending and starts no more threads
            self._thread.start()

    def wake(self, *, force: bool = False) -> None:
        """Have the courier look for something to do."""
        self._force = self._force or force
        self.idle.clear()
        self._wake.set()

    def wait(self, seconds: float) -> None:
        """Wait until there is nothing to do or nothing can be done, so long at most."""
        if self._thread.is_alive():
            self.idle.wait(max(0.0, seconds))
            return
        if not self.courier.over.is_set():
            end = time.monotonic() + seconds
            while time.monotonic() < end and self._once():
                pass

    def stop(self) -> None:
        """Have the thread end after the request under way."""
        self.courier.over.set()
        self._wake.set()

    def _work(self) -> None:
        while not self.courier.over.is_set():
            self._wake.clear()
            spent = time.thread_time()
            if self._once():
                self._rest(time.thread_time() - spent)
                continue
            if not self._wake.is_set():
                self.idle.set()
            self._wake.wait(self._pause())
        self.idle.set()

    def _rest(self, spent_s: float) -> None:
        """Leave the processor to the program that this is a guest of, unless there is no time."""
        if self._gentle and self.courier.deadline is None and not self._force:
            self.courier.over.wait(_LEISURE * spent_s)

    def _once(self) -> bool:
        force, self._force = self._force, False
        try:
            return self.courier.serve(force=force)
        except Exception as error:
            self.courier.reason = str(error) if isinstance(error, InputError) else repr(error)
            return False

    def _pause(self) -> float:
        try:
            return min(_LOOK_S, self.courier.next_try_s() or _LOOK_S)
        except Exception:
            return _LOOK_S


class Post:
    """Serves the backends of one process until it is closed. `gentle`, it leaves the process most of the processor."""

    def __init__(
        self,
        senders: Mapping[int, Sender],
        outbox: Outbox,
        wares: Wares,
        limits: Limits,
        *,
        gentle: bool = False,
    ) -> None:
        self._outbox, self.limits = outbox, limits
        self._desks = [
            _Desk(Courier(sender, number, outbox, wares, limits), gentle=gentle) for number, sender in senders.items()
        ]

    def wake(self) -> None:
        """Have what was taken in sent."""
        for desk in self._desks:
            desk.wake()

    def wait(self, within_s: float) -> bool:
        """Wait until there is nothing to send or nothing can be sent now, so many seconds at most; tell whether so."""
        self._wait(time.monotonic() + within_s)
        return all(desk.idle.is_set() for desk in self._desks)

    def flush(self, within_s: float) -> bool:
        """Send what waits, trying at once what had been put off, and tell whether nothing waits any more.

        A backend that asked to be left alone for a while is.
        """
        end = time.monotonic() + within_s
        for desk in self._desks:
            desk.wake(force=True)
        self._wait(end)
        while behind := [desk for desk in self._desks if self._outbox.waiting(desk.courier.number)]:
            pauses = [desk.courier.next_try_s() for desk in behind]
            if time.monotonic() + min(pauses) >= end:
                return False
            time.sleep(max(_ELSEWHERE_S, min(pauses)))  # put off, or another process is sending it
            for desk, pause in zip(behind, pauses, strict=True):
                if pause <= min(pauses) + _ELSEWHERE_S:
                    desk.wake()
            self._wait(end)
        return True

    def close(self, within_s: float, *, force: bool = True) -> list[Standing]:
        """Send what waits, for so many seconds at most, then stop; what is left goes out next time.

        With `force` a backend that was to be left alone for a while is tried once more, unless it asked for that.
        """
        end = time.monotonic() + within_s
        for desk in self._desks:
            desk.courier.deadline = end
            desk.wake(force=force)
        self._wait(end)
        for desk in self._desks:
            desk.stop()
        return self.standings()

    def standings(self) -> list[Standing]:
        """Say what came of it so far."""
        return [self._standing(desk.courier) for desk in self._desks]

    def _standing(self, courier: Courier) -> Standing:
        try:
            waiting = self._outbox.waiting(courier.number)
        except InputError as error:
            waiting, courier.reason = 0, str(error)
        return Standing(
            backend=courier.sender.name,
            exported=courier.exported,
            dropped=dict(courier.dropped),
            waiting=waiting,
            reason=courier.reason,
        )

    def _wait(self, end: float) -> None:
        for desk in self._desks:
            desk.wait(end - time.monotonic())
