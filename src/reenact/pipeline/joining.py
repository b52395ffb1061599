"""The replaying process's side: reads the plan, takes charge, shuts the world out."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from opentelemetry.trace import Link, SpanContext, TraceFlags

from reenact.boundary import children
from reenact.graph.build import build
from reenact.pipeline import recording
from reenact.pipeline.altering import Altered, Branch
from reenact.pipeline.bundles import whole
from reenact.pipeline.recording import Recording, Setup
from reenact.read.open import open_spans
from reenact.redact import in_force
from reenact.replay import guard
from reenact.replay.draws import Draws
from reenact.replay.forking import ForkReplayer
from reenact.replay.ledger import Ledger
from reenact.replay.ledger import read as read_ledger
from reenact.replay.policy import After, Policy, Source, Writes
from reenact.replay.replayer import Replayer
from reenact.replay.stubs import Stubs, process_of
from reenact.values.json import parsed_or_none
from reenact.values.lenient import as_list, as_object
from reenact.values.run import Node, Run
from reenact.values.span import SpanRecord


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
    starts: bool = False
    """What the selected run says of how its application is made may be used (`Found.starts`)."""
    own: list[str] = field(default_factory=list[str])
    """Ids of the roots that are the user's own."""
    writes: str = "refuse"
    after: str = "stop"
    """What happens after the first divergence (`replay.policy.After`)."""
    changes: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """What is changed in the recorded calls before they answer: each a `values.change.Change` as JSON."""
    branch: dict[str, Any] | None = None
    """Where the run is forked (`pipeline.altering.Branch` as JSON); None where this is a replay."""

    def write(self, path: Path) -> None:
        """Write the plan down."""
        path.write_text(json.dumps(asdict(self)))

    @staticmethod
    def read(path: Path) -> Plan:
        """Read a plan."""
        return Plan(**json.loads(path.read_text()))

    def runs(self) -> list[Run]:
        """Build the runs that answer, the user's own marked as such."""
        own = frozenset(self.own)
        spans = whole(open_spans(Path(self.spans)), Path(self.spans))
        marked = (
            replace(span, own=True) if span.span_id in own else span for span in spans if isinstance(span, SpanRecord)
        )
        return build(marked)


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
        branch: Branch | None = None,
    ) -> None:
        self.ledger, self._branch = ledger, branch
        self._process = _process(selected) if process is None else process
        runs = tuple(runs)
        self.stubs = Stubs(runs)
        self._draws = Draws(runs, selected, ledger, lambda: self._process)
        self._stack = ExitStack()
        setup = Setup(
            store=store,
            salt=selected.salt,
            recorded=in_force.told_by(selected),
            root={"reenact.replay.of": selected.id} if branch is None else dict(branch.root),
            links=_links(selected, "replay.of" if branch is None else "fork.of"),
            doorman=self._doorman(policy),
            answers=self._draws,
            taped=self._draws.is_taped,
            generators=self._draws.generators,
        )
        self.recording: Recording = recording.start(setup)
        self._stack.callback(recording.stop, self.recording)
        self._stack.enter_context(guard.shut(ledger, policy.writes))

    def _doorman(self, policy: Policy) -> Callable[..., Any]:
        def make(recorder: Any, engine: Any) -> Replayer:
            told = (self.stubs, recorder, engine, self.ledger, policy, self._process)
            replayer = Replayer(*told) if self._branch is None else ForkReplayer(*told, self._branch.fork)
            replayer.crossed = self._draws.crossed
            self._draws.process = lambda: replayer.process
            self._stack.callback(replayer.close)
            return replayer

        return make

    def close(self) -> None:
        """Give the process back."""
        self._stack.close()


def _links(run: Run, what: str) -> tuple[Link, ...]:
    """Point from the replay to what it replays, or from a fork to its parent."""
    if run.root is None:
        return ()
    context = SpanContext(int(run.id, 16), int(run.root.id, 16), is_remote=True, trace_flags=TraceFlags(1))
    return (Link(context, {"reenact.link": what}),)


def join(path: str) -> None:
    """Make this process a replay, as the plan at `path` says."""
    plan = Plan.read(Path(path))
    ledger = Ledger(Path(plan.ledger))
    policy = Policy(
        models=Source(plan.models), tools=Source(plan.tools), writes=Writes(plan.writes), after=After(plan.after)
    )
    if policy.closed:
        how = guard.enter_empty_network() if not os.environ.get("REENACT_GUARDED") else os.environ["REENACT_GUARDED"]
        if how:
            os.environ["REENACT_GUARDED"] = how  # children inherit the namespace
        ledger.note("guard", enforced=how is not None, how=how or "audit hook only")
    runs = plan.runs()
    recorded = next(run for run in runs if run.id == plan.run)
    altered = Altered.read(plan.changes, plan.branch)
    selected = altered.run(recorded)
    runs = [selected if run is recorded else run for run in runs]
    descent = children.read(os.environ.get(children.VARIABLE, ""))
    process = _played(runs, selected, Path(plan.ledger), descent.lane if descent is not None else "")
    InProcess(runs, selected, ledger, policy, Path(plan.store), process, altered.branch)
    ledger.note("joined", pid=os.getpid(), process=process)


def _on_lane(runs: Sequence[Run], lane: str) -> list[Node]:
    """Give what stands for a recorded process on `lane`, oldest first."""
    roots = [node for run in runs for node in run.nodes if node.span.attributes.get("reenact.process.root") is True]
    return [node for node in roots if node.lane == lane and node.parent is not None]


def _words(node: Node) -> list[str]:
    entry = parsed_or_none(str(node.span.attributes.get("reenact.entry") or ""))
    return [str(word) for word in as_list(as_object(entry).get("argv"))[1:]]


def _process(run: Run) -> str:
    return process_of(run.nodes[0]) if run.nodes else ""


def _played(runs: Sequence[Run], selected: Run, ledger: Path, lane: str) -> str:
    """Say which recorded process this one is again: the first the selected run's, a child the one on the same lane.

    Where several stood there, or the recording names no lane, it is one that was started alike.
    """
    taken = {entry.get("process") for entry in read_ledger(ledger) if entry["t"] == "joined"}
    if lane and (found := _on_lane(runs, lane)):
        free = [node for node in found if process_of(node) not in taken] or found
        alike = [node for node in free if _words(node) == sys.orig_argv[1:]]
        return process_of((alike or free)[0])
    if not taken:
        return _process(selected)
    alike = (run for run in runs if as_list(run.entry.get("argv"))[1:] == sys.orig_argv[1:])
    return next((process for run in alike if (process := _process(run)) not in taken), "")
