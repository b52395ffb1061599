"""Recording and replaying a piece of work inside the process that runs the tests."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import reenact
from reenact.find.sources import RunSource
from reenact.keep.drain import Drain
from reenact.pipeline import recording
from reenact.pipeline.recording import Recording, Setup
from reenact.values.judgement import ReplayResult
from reenact.values.run import Node, Run


@dataclass(frozen=True)
class Did:
    """What a piece of work gave or raised, and what was written down of it."""

    value: Any
    error: BaseException | None
    runs: tuple[Run, ...]
    result: ReplayResult | None = None

    @property
    def found(self) -> RunSource:
        """The first run, as replays take it."""
        return RunSource(run=self.runs[0], siblings=self.runs[1:], source="test")

    @property
    def calls(self) -> list[Node]:
        """Every call but the roots, in causal order."""
        return [node for run in self.runs for node in run.nodes if not node.span.attributes.get("reenact.run.root")]

    def call(self, name: str) -> Node:
        """The only call of this name."""
        (node,) = [node for node in self.calls if node.call.name == name]
        return node


class Held:
    """Records and replays into a store in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.store = folder / "store"

    def start(self, environ: Mapping[str, str] | None = None, **setup: Any) -> Recording:
        """Start a recording that looks at no folder of others: the tests beside this one write into the tree."""
        self.store.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.chdir(self.store.parent):
            return recording.start(Setup(store=self.store, **setup), environ or {})

    def finish(self, made: Recording) -> tuple[Run, ...]:
        """Stop a recording and give its runs."""
        recording.stop(made)
        return tuple(Drain(made.store, recording=made.id).finish())

    def record(self, work: Callable[[], Any], environ: Mapping[str, str] | None = None, **setup: Any) -> Did:
        """Do a piece of work with a recorder in charge."""
        made = self.start(environ, **setup)
        try:
            value, error = attempted(work)
        finally:
            runs = self.finish(made)
        return Did(value, error, runs)

    def replay(self, did: Did, work: Callable[[], Any], *, models: str = "recorded", tools: str = "recorded") -> Did:
        """Do it again, answered from the recording."""
        value: Any = None
        error: BaseException | None = None
        with reenact.replay(did.found, models=models, tools=tools, strict=False, store=self.store) as handle:
            value, error = attempted(work)
        return Did(value, error, (), handle.result)


def attempted(work: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """Give what a piece of work gave, and what it raised."""
    try:
        return work(), None
    except BaseException as failure:  # noqa: BLE001 - a miss is none of the ordinary ones
        return None, failure
