"""Running a program against a recording, and judging what it did."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias

from reenact.boundary.settled import settled
from reenact.compare.judge import ReplayResult, judge_replay
from reenact.errors import CannotJudge
from reenact.formats import otlp_json
from reenact.graph.verdict import judge
from reenact.pipeline import keyring, settings
from reenact.pipeline.appending import append
from reenact.pipeline.bytecode import UNCACHED, write_caches
from reenact.pipeline.counterpart import counterpart
from reenact.pipeline.drain import Drain
from reenact.pipeline.hook import injected
from reenact.pipeline.injection import ended
from reenact.pipeline.keyring import Keyring
from reenact.pipeline.leftovers import say
from reenact.pipeline.own_replay import Started, mending
from reenact.pipeline.owning import owning
from reenact.pipeline.parentage import bound_to_us
from reenact.pipeline.replay_plan import Plan
from reenact.pipeline.scratch import Scratch
from reenact.pipeline.sealed import levels, sealed
from reenact.pipeline.sources import Found
from reenact.record.surroundings import commit
from reenact.redact import in_force
from reenact.replay import ledger
from reenact.replay.policy import Policy, Source, Writes
from reenact.stores.blobs import FolderBlobs
from reenact.stores.directory import DirectoryStore
from reenact.values import unit, user_key
from reenact.values.blob import cut
from reenact.values.call import Unfinished
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_text
from reenact.values.run import Grade, Run

if TYPE_CHECKING:  # most replays let nothing out
    from reenact.pipeline.ways_out import WaysOut

Start: TypeAlias = Callable[[Sequence[str], Path, Mapping[str, str]], int]
"""Runs a program: its words, folder and whole environment. Gives its exit code, negative for a signal."""
_LEDGER: Final = "ledger.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What came of a replay."""

    result: ReplayResult
    run: Run | None
    """The replay's own run."""
    recorded_commit: str | None
    current_commit: str | None
    exit_code: int
    """Of the program."""
    appended: int = 0
    """How many calls that went live were added to the recording."""
    entries: tuple[Mapping[str, Json], ...] = ()
    """The ledger."""


def policy_note(run: Run, store: DirectoryStore) -> str:
    """Say why a replay here passes another policy than the recording did; empty where it passes the same."""
    found = in_force.of_run(run, os.environ, store.folder)
    return found.note if found.otherwise else ""


def check_judgeable(found: Found) -> None:
    """Raise `CannotJudge` where nothing in the recording could answer a call."""
    verdict = judge(found.run)
    if verdict.grade is Grade.NONE:
        why = verdict.reasons[0] if verdict.reasons else None
        lost = f"{why.call}: {why.lost}" if why else "no call was recorded"
        raise CannotJudge(f"run {found.run.id[:12]} cannot be replayed: {lost}", hint=why.fix if why else "")


def replay(
    found: Found,
    argv: Sequence[str],
    cwd: Path,
    policy: Policy,
    store: DirectoryStore,
    *,
    start: Start | None = None,
) -> Replayed:
    """Run a program against a recording in a process of its own, and judge it.

    `start` runs the program; by default a new process does, on this one's standard streams (`printing`). Where `found`
    is altered the program is judged against the altered run. Raises `CannotJudge` where the program cannot be started,
    `UsageError` where a change fits no call.
    """
    store = own_store(store)
    with closing(Scratch("reenact-replay-")) as scratch:
        return _replay(found, argv, cwd, policy, store, scratch.path, start or printing())


def own_store(store: DirectoryStore) -> DirectoryStore:
    """Give the store that a replay is kept in; where the one that is given cannot be written, one that goes with us."""
    chosen = store.to_write_to()
    if chosen is not store:
        say(f"{store.folder} cannot be written: the run that this replay makes is not kept")
    return chosen


def printing(stdout: IO[bytes] | None = None, stderr: IO[bytes] | None = None) -> Start:
    """Have a program run in a new process, printing to this one's standard streams or to what is given."""
    return partial(_run, stdout=stdout, stderr=stderr)


def _replay(
    found: Found,
    argv: Sequence[str],
    cwd: Path,
    policy: Policy,
    store: DirectoryStore,
    scratch: Path,
    start: Start,
) -> Replayed:
    found = replace(found, run=_recorded_here(found.run))
    answering = found.altered.run(found.run)
    user_key.take()  # no replayed process finds it
    recording = os.urandom(8).hex()
    environ = injected(os.environ, REENACT_REPLAY=str(scratch / "plan.json"), REENACT_RECORDING=recording)
    environ |= {name: value for name, value in settings.unset_ones(found).items() if name not in environ}
    environ |= settings.set_always(found)
    environ.pop("REENACT_RECORD", None)
    environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")  # told apart by seconds, it would outlive a checkout of a bisect
    ways = _ways(found, policy, environ)
    ring, plan = _plan(found, policy, store, scratch, ways)
    begin = _unsealed(start, ring, scratch)
    if policy.writes is Writes.REFUSE:
        begin = _sealing(start, begin, store, scratch, ways, ring)
    with owning(store, recording):
        code = begin(argv, cwd, environ)
        started = Started(found=found, argv=argv, cwd=cwd, environ=environ)
        mend = mending(started, store, recording, ring.salt)
        runs = Drain(store, recording=recording, mend=mend).finish(exit_codes={})
    entries = _entries(Path(plan.ledger))
    own = counterpart(runs, found)
    result = judge_replay(
        answering,
        () if unit.inbound(found.run) is not None else found.siblings,  # its process's start-up is owed to nobody
        own,
        entries,
        exit_code=code,
        recorded_exit=_recorded_exit(found.run),
    )
    return Replayed(
        result=result,
        run=own,
        recorded_commit=_commit_id(found.run.surroundings.get("commit")),
        current_commit=_commit_id(commit(cwd)),
        exit_code=code,
        appended=_append(found, runs, entries, policy, store) if found.altered.branch is None else 0,
        entries=tuple(entries),
    )


def _unsealed(start: Start, ring: Keyring, scratch: Path) -> Start:
    """Have a program run with the audit hook alone."""

    def run(argv: Sequence[str], cwd: Path, environ: Mapping[str, str]) -> int:
        keyring.leave(ring, scratch)
        return start(argv, cwd, environ)

    return run


def _sealing(
    start: Start, instead: Start, store: DirectoryStore, scratch: Path, ways: WaysOut | None, ring: Keyring
) -> Start:
    """Have a program run in a world of its own where there can be one, else by `instead`."""
    out = (ways.ordered(), ways.sockets()) if ways is not None else ((), ())

    def run(argv: Sequence[str], cwd: Path, environ: Mapping[str, str]) -> int:
        left = levels(os.environ, leads_out=any(out))
        while left:
            with sealed(argv, cwd, store, scratch, left, out, ring.spelled()) as world:
                code = start(world.words, cwd, keyring.without_ours(environ))
                world.take_out(store)
                refused = world.refused()
                if refused is None:
                    return code
                if (scratch / _LEDGER).exists():  # it has run: a second run would be judged together with the first
                    raise CannotJudge(
                        f"the program ran in a sealed world that left no word of itself: {refused}",
                        hint="replay it again, or without the seal: REENACT_ENFORCE=off",
                    )
                left = world.left
        return instead(argv, cwd, environ)

    return run


def _entries(path: Path) -> list[dict[str, Any]]:
    """Read the ledger. What it says of our own modules is done here, and no part of what the program did."""
    entries = ledger.read(path)
    uncached = [each for each in entries if each["t"] == UNCACHED]
    write_caches(as_text(source) for each in uncached for source in as_list(each.get("sources")))
    return [each for each in entries if each["t"] != UNCACHED]


def _recorded_here(run: Run) -> Run:
    """Give an own run less the calls that others sent for its trace: they are shown, and answer nothing."""
    if not run.own or not any(node.span.sent for node in run.nodes):
        return run
    return replace(run, nodes=tuple(node for node in run.nodes if node.call.is_structure or not node.span.sent))


def _ways(found: Found, policy: Policy, environ: Mapping[str, str]) -> WaysOut | None:
    """Say what may be reached, where anything may."""
    if policy.closed:
        return None
    from reenact.pipeline.ways_out import ways_out

    ways = ways_out(found, policy, environ)
    for name in ways.shut:
        say(f"{name} names a proxy that would reach every host: `--allow-host` with its host and port lets it")
    return ways


def _plan(
    found: Found, policy: Policy, store: DirectoryStore, scratch: Path, ways: WaysOut | None
) -> tuple[Keyring, Plan]:
    """Write down what the replaying processes are told, and give what they are told otherwise."""
    large = FolderBlobs(scratch / "blobs")
    nodes = [node for run in (found.run, *found.siblings) for node in run.nodes]
    spans = [cut(settled(node), large.threshold, large.put) for node in nodes]
    ring, spans = Keyring.of(found.run, os.environ, store).less(spans)
    (scratch / "recording.jsonl").write_bytes(otlp_json.encode(spans))
    plan = Plan(
        run=found.run.id,
        spans=str(scratch / "recording.jsonl"),
        ledger=str(scratch / _LEDGER),
        models=policy.models.value,
        tools=policy.tools.value,
        writes=policy.writes.value,
        after=policy.after.value,
        hosts=[*policy.hosts],
        ways=ways.told() if ways else None,
        store=str(store.folder),
        starts=found.starts,
        own=[run.root.id for run in (found.run, *found.siblings) if run.own and run.root is not None],
        **found.altered.in_plan(scratch),
    )
    plan.write(scratch / "plan.json")
    return ring, plan


def _run(
    argv: Sequence[str],
    cwd: Path,
    environ: Mapping[str, str],
    stdout: IO[bytes] | None = None,
    stderr: IO[bytes] | None = None,
) -> int:
    try:
        process = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=dict(environ),
            stdout=stdout,
            stderr=stderr,
            preexec_fn=bound_to_us(),  # noqa: PLW1509 - it does two system calls
        )
    except OSError as error:
        raise CannotJudge(f"cannot start {argv[0]!r}: {error.strerror}", hint="give the program after `--`") from error
    return ended(process)


def _recorded_exit(run: Run) -> int | None:
    if unit.inbound(run) is not None:
        return None  # its process went on
    code = run.root.span.attributes.get("process.exit.code") if run.root else None
    return code if isinstance(code, int) else None


def _commit_id(value: Json) -> str | None:
    found = value.get("id") if isinstance(value, dict) else None
    return str(found) if found else None


def _append(
    found: Found, runs: Sequence[Run], entries: Sequence[Mapping[str, Json]], policy: Policy, store: DirectoryStore
) -> int:
    """Add what `recorded-or-live` had to fetch to the recording, in the store."""
    if Source.RECORDED_OR_LIVE not in {policy.models, policy.tools} or any(entry.get("onward") for entry in entries):
        return 0  # what followed a divergence belongs to another run
    fetched = {str(entry["span"]) for entry in entries if entry["t"] == "live"}
    new = [
        node for run in runs for node in run.nodes if node.id in fetched and not isinstance(node.outcome, Unfinished)
    ]
    if not new:
        return 0
    return append(found, new, store)
