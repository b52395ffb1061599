"""The replaying process's side: reads the plan, takes charge, shuts the world out."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opentelemetry.trace import Link, SpanContext, TraceFlags

from reenact.boundary import children, lanes, side_effects
from reenact.find.altering import Altered, Branch
from reenact.pipeline import keyring, recording
from reenact.pipeline.bytecode import UNCACHED, leave_uncached, missing_caches
from reenact.pipeline.recording import Recording, Setup
from reenact.pipeline.replay_plan import Plan
from reenact.record import standard_input
from reenact.redact import in_force
from reenact.replay import guard
from reenact.replay.draws import Draws
from reenact.replay.ledger import Ledger
from reenact.replay.ledger import read as read_ledger
from reenact.replay.policy import After, Children, Policy, Source, Writes
from reenact.replay.replayer import Replayer
from reenact.replay.stubs import Stubs, process_of
from reenact.seal import kernel
from reenact.values import unit
from reenact.values.json import parsed_or_none
from reenact.values.lenient import as_list, as_object
from reenact.values.run import NATIVE_CODE, WRITTEN, Node, Run

if TYPE_CHECKING:
    from reenact.values.way import Way


class InProcess:
    """A replay in charge of this process."""

    def __init__(  # noqa: PLR0913 - what a plan says
        self,
        runs: Iterable[Run],
        selected: Run,
        ledger: Ledger,
        policy: Policy,
        store: Path | None,
        process: str | None = None,
        branch: Branch | None = None,
        *,
        sealed: bool = False,
        history: Sequence[str] = (),
        block: bool = False,
    ) -> None:
        """Take charge; `sealed` says that whatever this process writes goes to a copy.

        `history` are the ids of units that are delivered before the selected one. A `block` of code plays the selected
        run alone, and no program from its beginning.
        """
        self.ledger, self._branch = ledger, branch
        self._replayer: Replayer | None = None
        self._process = _process(selected) if process is None else process
        runs = tuple(runs)
        self.stubs = self._stubs(runs, selected.id, history, block=block)
        self._draws = Draws(runs, selected, ledger, lambda: self._process, block=block, is_closed=policy.closed)
        self._stack = ExitStack()
        setup = self._setup(selected, policy, store, history, writes=sealed and policy.writes.copies)
        self.recording: Recording = recording.start(setup)
        self._stack.callback(recording.stop, self.recording)
        self._put_in_place(policy.stubs)
        self._stack.enter_context(guard.shut(ledger, policy.writes, policy.hosts, policy.ways, sealed=sealed))
        self._give_back_folders(runs)

    def _put_in_place(self, stubs: Sequence[str]) -> None:
        """Give functions of the agent's the bodies that the user names."""
        if stubs:
            from reenact.replay.substitutes import Substitute, put_in_place  # most replays have none

            self._stack.callback(put_in_place([*map(Substitute.read, stubs)], self.ledger.note))

    def _give_back_folders(self, runs: Iterable[Run]) -> None:
        """Have names in folders come in the recorded order."""
        attributes = ((run, str(node.span.attributes.get(WRITTEN))) for run in runs for node in run.nodes)
        runs = [run for run, written in attributes if '"folders":' in written]
        if not runs:
            return
        from reenact.replay import folder_order  # most programs list none
        from reenact.values.file_writes import writes_of

        folders: dict[str, Sequence[str]] = {}
        for writes in filter(None, map(writes_of, runs)):
            here = Path.cwd()
            for folder, names in writes.folders.items():
                name = "" if folder == writes.cwd else writes.named(folder)
                folders.setdefault(str(here / name), names)  # a whole path stays
        self._stack.callback(folder_order.give_back(folders))

    def _setup(
        self, selected: Run, policy: Policy, store: Path | None, history: Sequence[str], *, writes: bool
    ) -> Setup:
        """Say how the replay records itself."""
        branch, alone = self._branch, unit.inbound(selected) is not None
        of: dict[str, Any] = {"reenact.replay.of": selected.id}
        root = of if branch is None else dict(branch.root)
        return Setup(
            store=store,
            user=selected.user if alone else None,  # a header named them, by a setting that may not stand here
            session=selected.session if alone else None,
            tenant=selected.tenant if alone else None,
            salt=selected.salt,
            recorded=in_force.told_by(selected),
            root=root,
            roots={each: {"reenact.replay.of": each, "reenact.replay.before": selected.id} for each in history},
            # The fork is the unit. The process around it only delivers it again, and is listed with no fork.
            around_unit={**dict.fromkeys(root), **of} if alone else {},
            links=_links(selected, "replay.of" if branch is None else "fork.of"),
            doorman=self._doorman(policy),
            answers=self._draws,
            taped=self._draws.is_taped,
            generators=self._draws.generators,
            writes=writes,
            wrote=lambda paths: self.ledger.note("wrote", paths=[*paths], temporary=side_effects.temporary_paths()),
        )

    def _stubs(self, runs: Sequence[Run], selected: str, history: Sequence[str], *, block: bool) -> Stubs:
        if history:
            self.ledger.unit = _earlier({*history})
        units = (*history, selected) if history else ()
        return Stubs(runs, sealed=guard.is_sealed(), units=units, first=selected if block else "")

    def _doorman(self, policy: Policy) -> Callable[..., Any]:
        def make(recorder: Any, engine: Any) -> Replayer:
            arguments = (self.stubs, recorder, engine, self.ledger, policy, self._process)
            replayer = Replayer(*arguments) if self._branch is None else _fork_replayer(*arguments, self._branch.fork)
            replayer.crossed = self._draws.crossed
            self._draws.process = lambda: replayer.process
            self._stack.callback(replayer.close)
            self._replayer = replayer
            return replayer

        return make

    def finish(self) -> None:
        """Wait, at the end of a program, for what its daemon threads had done by then."""
        if self._replayer is not None and not self._replayer.stopped:
            self._replayer.pacing.finish()

    def close(self) -> None:
        """Give the process back."""
        self._stack.close()


def _earlier(history: Collection[str]) -> Callable[[], str]:
    """Make what names the earlier unit whose code runs now, or nothing."""

    def name() -> str:
        again = lanes.current().reel.again
        return again if again in history else ""

    return name


def _fork_replayer(*arguments: Any) -> Replayer:
    from reenact.replay.forking import ForkReplayer

    return ForkReplayer(*arguments)


def _links(run: Run, what: str) -> tuple[Link, ...]:
    """Point from the replay to what it replays, or from a fork to its parent."""
    if run.root is None:
        return ()
    context = SpanContext(int(run.id, 16), int(run.root.id, 16), is_remote=True, trace_flags=TraceFlags(1))
    return (Link(context, {"reenact.link": what}),)


def join(path: str) -> None:
    """Make this process a replay, as the plan at `path` says."""
    plan = Plan.read(Path(path))
    keyring.take(Path(path).parent)
    ledger = Ledger(Path(plan.ledger))
    policy = Policy(
        models=Source(plan.models),
        tools=Source(plan.tools),
        writes=Writes(plan.writes),
        after=After(plan.after),
        hosts=tuple(plan.hosts),
        live_tools=tuple(plan.live_tools),
        stubs=tuple(plan.stubs),
        ways=None if plan.ways is None else _ways(plan.ways),
        children=Children(plan.children),
    )
    how = os.environ.get(guard.VARIABLE, "")
    if policy.closed and not how and (how := guard.enter_empty_network()):
        os.environ[guard.VARIABLE] = how  # children inherit the namespace
        with suppress(OSError):  # the program's own servers are reached by it, and nobody else's
            kernel.raise_loopback()
    ledger.note("guard", world=guard.world(policy, how), ways=plan.ways or [])
    runs = plan.runs()
    recorded = next(run for run in runs if run.id == plan.run)
    altered = Altered.read(plan.changes, plan.branch)
    selected = altered.run(recorded)
    runs = [selected if run is recorded else run for run in runs]
    descent = children.read(os.environ.get(children.VARIABLE, ""))
    if descent is None and unit.inbound(selected) is None:
        # Of own runs alone: a program that runs what it reads, such as a shell, would run a stranger's words.
        standard_input.give_back(
            node for run in (selected, *runs) if run.own for node in run.nodes if not node.span.sent
        )
    process = _played(runs, selected, Path(plan.ledger), descent.lane if descent is not None else "")
    sealed = guard.is_sealed()
    options: dict[str, Any] = {"sealed": sealed, "history": plan.history}
    joined = InProcess(runs, selected, ledger, policy, Path(plan.store), process, altered.branch, **options)
    ledger.note("joined", pid=os.getpid(), process=process)
    if unit.inbound(selected) is None:
        ledger.halted = _end_where_it_stands_still
        if plan.signal and descent is None:
            from reenact.replay import standstill

            standstill.end_by_signal(int(plan.signal[0]), plan.signal[1])
    _prepare_end(joined, ledger, sealed=sealed)


def _prepare_end(joined: InProcess, ledger: Ledger, *, sealed: bool) -> None:
    """Have what is to be done at the end of the program done then, the last first."""
    atexit.register(joined.finish)
    if not sealed:
        from reenact.boundary import native_libraries  # a sealed world needs none

        native_libraries.hear(lambda name: ledger.note("unwatched", what=f"native code of {name}"))
        atexit.register(_note_rings, ledger)
    if sys.dont_write_bytecode:
        atexit.register(lambda: _note_missing_caches(ledger, missing_caches()))
    elif sealed:
        sources = leave_uncached()
        atexit.register(lambda: _note_missing_caches(ledger, sources))


def _end_where_it_stands_still(entry: str) -> None:
    from reenact.replay import standstill  # most replays do not stop

    standstill.watch(entry)


def _ways(spelled: Sequence[str]) -> tuple[Way, ...]:
    from reenact.values import way  # most replays let nothing out

    return way.read(spelled)


def _note_rings(ledger: Ledger) -> None:
    """Name the ring by which orders went past everybody."""
    from reenact.boundary import native_libraries

    if native_libraries.rings():
        ledger.note("unwatched", what=f"{NATIVE_CODE}io_uring")


def _note_missing_caches(ledger: Ledger, sources: Sequence[str]) -> None:
    """Have the parent write the caches that this process may not write."""
    with suppress(Exception):  # the program is over, and only the next one's speed is at stake
        if sources:
            ledger.note(UNCACHED, sources=sources)


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
    process_ids = {entry.get("process") for entry in read_ledger(ledger) if entry["t"] == "joined"}
    if lane and (lane_nodes := _on_lane(runs, lane)):
        free = [node for node in lane_nodes if process_of(node) not in process_ids] or lane_nodes
        alike = [node for node in free if _words(node) == sys.orig_argv[1:]]
        return process_of((alike or free)[0])
    if not process_ids:
        return _process(selected)
    alike = (run for run in runs if as_list(run.entry.get("argv"))[1:] == sys.orig_argv[1:])
    return next((process for run in alike if (process := _process(run)) not in process_ids), "")
