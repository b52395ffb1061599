"""When each of several units that are delivered again begins and ends, and what of them is seen.

The earlier units of a process on which a unit stands come first, in the order in which they came in. Units that were
under way at the same time are so again: a unit begins when everything has reached agent code that had reached it by
then, and counts as over in its turn (`replay.release`). What earlier ones print is heard, and not shown.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from reenact.boundary.inbound import does_again
from reenact.pipeline import recording
from reenact.values.run import THREAD, Run

if TYPE_CHECKING:
    from reenact.replay.replayer import Replayer


class Turns:
    """The units of one delivery: the `earlier` ones, and the one that is asked for."""

    def __init__(self, earlier: Sequence[Run], asked_for: Run, *, overlap: bool) -> None:
        self.earlier, self.asked_for, self.overlap = tuple(earlier), asked_for, overlap
        self._replayer: Replayer | None = getattr(recording.current(), "doorman", None) if earlier else None
        self._quiet = Quiet()
        if self.earlier:
            self._quiet.begin()

    @property
    def stopped(self) -> bool:
        """Whether an earlier unit left its recording, so that nothing that follows is evidence."""
        return self._replayer is not None and self._replayer.stopped

    @contextmanager
    def does(self, run: Run) -> Generator[None]:
        """Have the unit that begins in the block be a recorded one, on a thread of the recorded name.

        Where it is delivered alone nobody need know which one it is.
        """
        thread = threading.current_thread()
        name, recorded = thread.name, run.root.span.attributes.get(THREAD) if run.root is not None else None
        thread.name = recorded if isinstance(recorded, str) else name
        try:
            with does_again(run.id if self.earlier else ""):
                yield
        finally:
            thread.name = name

    def begin(self, run: Run) -> None:
        """Block until a unit may begin."""
        if self._replayer is not None:
            gate, (order, _), lane = self._replayer.turn_of(run.id)
            gate.wait(order or None, lane)
        self._let_on(run)

    def end(self, run: Run) -> None:
        """Block until a unit may be over."""
        if self._replayer is not None:
            self._let_go()
            gate, (_, order), lane = self._replayer.turn_of(run.id)
            gate.drop([self._replayer.stubs.replied(run.id)])
            gate.settled(lane)
            gate.wait(order or None, lane)
            gate.settled(lane)
            self._replayer.ledger.note("over", run=run.id)

    async def begin_async(self, run: Run) -> None:
        """Wait until a unit may begin."""
        if self._replayer is not None:
            gate, (order, _), lane = self._replayer.turn_of(run.id)
            await gate.wait_async(order or None, lane)
        self._let_on(run)

    async def receive_async(self, run: Run) -> None:
        """Wait until the body of a request was there."""
        if self._replayer is not None:
            gate, _, lane = self._replayer.turn_of(run.id)
            await gate.wait_async(self._replayer.stubs.received(run.id) or None, lane)

    async def reply_async(self, run: Run) -> None:
        """Wait until the answer to a request was handed over: its client may have gone on by that."""
        if self._replayer is not None and (order := self._replayer.stubs.replied(run.id)):
            gate, _, lane = self._replayer.turn_of(run.id)
            gate.settled(lane)
            await gate.wait_async(order, lane)

    def reply(self, run: Run) -> None:
        """Block until the answer to a request was handed over."""
        if self._replayer is not None and (order := self._replayer.stubs.replied(run.id)):
            gate, _, lane = self._replayer.turn_of(run.id)
            gate.settled(lane)
            gate.wait(order, lane)

    async def end_async(self, run: Run) -> None:
        """Wait until a unit may be over."""
        if self._replayer is not None:
            self._let_go()
            gate, (_, order), lane = self._replayer.turn_of(run.id)
            gate.drop([self._replayer.stubs.replied(run.id)])  # it ends without an answer
            gate.settled(lane)
            await gate.wait_async(order or None, lane)
            gate.settled(lane)
            self._replayer.ledger.note("over", run=run.id)

    def _let_go(self) -> None:
        """Wait for nothing more where nothing that follows is evidence."""
        if self.stopped and self._replayer is not None:
            self._replayer.forget_order()

    def _let_on(self, run: Run) -> None:
        if run is self.asked_for:
            self._quiet.end()


class Quiet:
    """Has what is printed go nowhere, at the descriptors: the program's own streams stay what they are."""

    def __init__(self) -> None:
        self._duplicates: list[tuple[int, int]] = []

    def begin(self) -> None:
        """Show nothing from here on."""
        _flush()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for descriptor in (1, 2):
            with suppress(OSError):  # it is closed
                self._duplicates.append((descriptor, os.dup(descriptor)))
                os.dup2(nowhere, descriptor)
        os.close(nowhere)

    def end(self) -> None:
        """Show what is printed again."""
        _flush()
        while self._duplicates:
            descriptor, duplicate = self._duplicates.pop()
            os.dup2(duplicate, descriptor)
            os.close(duplicate)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # there is none, or it is closed
            stream.flush()
