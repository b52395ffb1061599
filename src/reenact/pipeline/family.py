"""The children of a recorded or replaying process: where they hang, what they inherit, how they are taken in."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Protocol

from reenact.boundary import children, lanes, place
from reenact.boundary.children import VARIABLE, Descent
from reenact.boundary.lanes import Lane
from reenact.boundary.place import Place
from reenact.pipeline.hook import injected
from reenact.record.runs import Runs

_NOBODYS = Place(0, 0, whole=True)


class Replaying(Protocol):
    """What a child needs of the doorman who answers from a recording."""

    def take_in(self, lane: str) -> None:
        """Play the recorded process that was on `lane`."""

    def before_signal(self, lane: str, number: int) -> None:
        """Hold a signal back until the child on `lane` is as far as the recorded one was."""

    def forked(self) -> None:
        """Renew what a forked process must not share."""

    def refuse_child(self, what: str) -> None:
        """Note that a child was refused, and raise."""


class Family:
    """The host (`boundary.children`) of one recording."""

    def __init__(
        self,
        runs: Runs,
        inherited: Mapping[str, str],
        proving_it: Callable[[], Mapping[str, str]] = dict,
        *,
        replaying: Replaying | None,
        died_of: Callable[[BaseException], None],
        close: Callable[[int | None], None],
    ) -> None:
        """Know the process's runs.

        `inherited` are the variables (REENACT_*) by which a child program records itself or joins the replay, empty
        where it cannot; `proving_it` gives those by which it proves its runs, or redacts as this one.
        """
        self._runs, self._inherited, self._replaying = runs, dict(inherited), replaying
        self._proving = proving_it
        self._died_of, self._close = died_of, close
        self._copied = False

    def descent(self, name: str, lane: str | None = None) -> Descent | None:
        """Hang a child where the code now running stands, or below the process itself where that is outside of all."""
        here = place.current() or self._runs.parent()
        run = self._runs.with_root(here.root)
        return Descent(
            trace_id=here.trace_id,
            span_id=here.span_id,
            root=here.root,
            lane=lane or children.lane_for(name),
            name=name,
            identity={key: str(value) for key, value in run.identity.items()} if run is not None else {},
            within=self._runs.within or not self._runs.is_process(here),
        )

    def environment(self, variables: Mapping[str, str], descent: Descent) -> dict[str, str] | None:
        """Give `variables` with what a child needs; None where it would not join."""
        ours = {key: value for key, value in os.environ.items() if key.startswith("REENACT_")}
        inherited = {**self._inherited, **(ours if self._inherited else {})}
        if not inherited:
            return None
        with place.at(_NOBODYS):  # what is left for the child there is none of the agent's doing
            proving_it = self._proving()
        return injected({**variables, **inherited}, **proving_it, **{VARIABLE: descent.spelled()})

    def take_in(self, descent: Descent, *, eager: bool) -> None:
        """Make this process the child that `descent` describes."""
        lanes.restart(descent.lane)
        place.move(None)
        self._runs.take_in(descent, eager=eager)
        if self._replaying is not None:
            self._replaying.take_in(descent.lane)

    @contextmanager
    def job(self, descent: Descent) -> Generator[None]:
        """Surround a job that another process handed to this one."""
        with lanes.on(Lane(descent.lane)), self._runs.job(descent):
            yield

    def forked(self) -> None:
        """Leave to the original process what is its own."""
        self._copied = True
        self._runs.forked()
        if self._replaying is not None:
            self._replaying.forked()

    def signals(self, descent: Descent, number: int) -> None:
        """Let a child that replays come as far as the recorded one."""
        if self._replaying is not None:
            self._replaying.before_signal(descent.lane, number)

    def left(self, descent: Descent, exit_code: int, *, sent: bool) -> None:
        """Note on the run's root how a child ended that did not end well."""
        run = self._runs.with_root(descent.root)
        if run is not None and exit_code:
            run.children[descent.lane] = [exit_code, time.time_ns() if sent else None]

    def died_of(self, error: BaseException) -> None:
        """Note what ends this process."""
        self._died_of(error)

    def close(self, status: int) -> None:
        """End what stands for a process that is about to end without Python's clean-up, with that exit code.

        A unit of work that is still open stays so: it was cut off.
        """
        self._close(None if self._copied else status & 0xFF)

    def refuse(self, what: str) -> None:
        """Raise where a child would run for real beside the replay of this process."""
        if self._replaying is not None and not self._inherited:
            self._replaying.refuse_child(what)
