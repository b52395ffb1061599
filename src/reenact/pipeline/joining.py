"""The replaying process's side: reads the plan, takes charge, shuts the world out."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from opentelemetry.trace import Link, SpanContext, TraceFlags

from reenact.graph.build import build
from reenact.pipeline import recording
from reenact.pipeline.recording import Recording, Setup
from reenact.read.open import open_spans
from reenact.replay import guard
from reenact.replay.ledger import Ledger
from reenact.replay.ledger import read as read_ledger
from reenact.replay.policy import Policy, Source
from reenact.replay.replayer import Replayer
from reenact.replay.stubs import Stubs, process_of
from reenact.values.lenient import as_list
from reenact.values.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a replaying process is told."""

    run: str
    """The id of the run that is replayed."""
    spans: str
    """Path of a file with its spans, and those of its siblings."""
    ledger: str
    models: str
    tools: str
    store: str

    def write(self, path: Path) -> None:
        """Write the plan down."""
        path.write_text(json.dumps(asdict(self)))

    @staticmethod
    def read(path: Path) -> Plan:
        """Read a plan."""
        return Plan(**json.loads(path.read_text()))


class InProcess:
    """A replay in charge of this process."""

    def __init__(
        self,
        runs: Iterable[Run],
        selected: Run,
        ledger: Ledger,
        policy: Policy,
        store: Path | None,
        process: str | None = None,
    ) -> None:
        self.ledger = ledger
        self._process = _process(selected) if process is None else process
        self.stubs = Stubs(runs)
        self._stack = ExitStack()
        setup = Setup(
            store=store,
            salt=selected.salt,
            root={"reenact.replay.of": selected.id},
            links=_links(selected),
            doorman=self._doorman(policy),
        )
        self.recording: Recording = recording.start(setup)
        self._stack.callback(recording.stop, self.recording)
        self._stack.enter_context(guard.shut(ledger))

    def _doorman(self, policy: Policy) -> Callable[..., Any]:
        def make(recorder: Any, engine: Any) -> Replayer:
            replayer = Replayer(self.stubs, recorder, engine, self.ledger, policy, self._process)
            self._stack.callback(replayer.close)
            return replayer

        return make

    def close(self) -> None:
        """Give the process back."""
        self._stack.close()


def _links(run: Run) -> tuple[Link, ...]:
    """Point from the replay to what it replays."""
    if run.root is None:
        return ()
    context = SpanContext(int(run.id, 16), int(run.root.id, 16), is_remote=True, trace_flags=TraceFlags(1))
    return (Link(context, {"reenact.link": "replay.of"}),)


def join(path: str) -> None:
    """Make this process a replay, as the plan at `path` says."""
    plan = Plan.read(Path(path))
    ledger = Ledger(Path(plan.ledger))
    policy = Policy(models=Source(plan.models), tools=Source(plan.tools))
    if policy.closed:
        how = guard.enter_empty_network() if not os.environ.get("REENACT_GUARDED") else os.environ["REENACT_GUARDED"]
        if how:
            os.environ["REENACT_GUARDED"] = how  # children inherit the namespace
        ledger.note("guard", enforced=how is not None, how=how or "audit hook only")
    runs = build(open_spans(Path(plan.spans)))
    selected = next(run for run in runs if run.id == plan.run)
    process = _played(runs, selected, Path(plan.ledger))
    InProcess(runs, selected, ledger, policy, Path(plan.store), process)
    ledger.note("joined", pid=os.getpid(), process=process)


def _process(run: Run) -> str:
    return process_of(run.nodes[0]) if run.nodes else ""


def _played(runs: Sequence[Run], selected: Run, ledger: Path) -> str:
    """Say which recorded process this one is again: the first the selected run's, a child the one started alike."""
    taken = {entry.get("process") for entry in read_ledger(ledger) if entry["t"] == "joined"}
    if not taken:
        return _process(selected)
    alike = (run for run in runs if as_list(run.entry.get("argv"))[1:] == sys.orig_argv[1:])
    return next((process for run in alike if (process := _process(run)) not in taken), "")
