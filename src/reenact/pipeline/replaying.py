"""Running a program against a recording, and judging what it did."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias

from reenact.boundary.variables import ADDED
from reenact.compare.judge import Outcome, ReplayResult, judge_replay
from reenact.disk import user_key
from reenact.disk.blob import cut
from reenact.errors import CannotJudge, InputError, ServersOwn
from reenact.find.sources import RunSource
from reenact.foreign.own_call_span import settled
from reenact.formats import otlp_json
from reenact.graph.verdict import judge
from reenact.keep.drain import Drain
from reenact.keep.journal_owner import owning
from reenact.keep.leftovers import say
from reenact.keep.scratch import Scratch
from reenact.pipeline import earlier_units, keyring, replay_files, settings, standby
from reenact.pipeline.appending import APPENDED_BY, append
from reenact.pipeline.bytecode import UNCACHED, write_caches
from reenact.pipeline.counterpart import counterpart
from reenact.pipeline.hook import injected
from reenact.pipeline.injection import ended
from reenact.pipeline.keyring import Keyring
from reenact.pipeline.own_replay import Started, mending
from reenact.pipeline.parentage import bound_to_us
from reenact.pipeline.replay_plan import Plan
from reenact.pipeline.sealed import Sealed, WorldAccess, levels, sealed, untried, without
from reenact.record.surroundings import commit
from reenact.redact import in_force
from reenact.replay import ledger
from reenact.replay.policy import Policy, Source, Writes
from reenact.stores.blobs import FolderBlobs
from reenact.stores.directory import DirectoryStore
from reenact.values import unit
from reenact.values.call import Unfinished
from reenact.values.file_writes import FileWrites, writes_of
from reenact.values.json import Json
from reenact.values.judgement import Strictness
from reenact.values.lenient import as_list, as_text
from reenact.values.output import is_noted, outputs
from reenact.values.run import PAUSES, STOPPED, Grade, Reason, Run
from reenact.values.terminal import tell

if TYPE_CHECKING:  # most replays let nothing out
    from reenact.compare.console_text import Parts
    from reenact.pipeline.ways_out import WaysOut

Start: TypeAlias = Callable[[Sequence[str], Path, Mapping[str, str]], int]
"""Runs a program: its words, folder and whole environment. Gives its exit code, negative for a signal."""
_LEDGER: Final = "ledger.jsonl"
_SLOWER: Final = 1.5
_UNTIL_SIGNAL_S: Final = 20.0
_APART_S: Final = 2.1
"""Two replays that are held against each other begin so far apart: times in archives are told in steps of two."""


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
    outcome: Outcome = field(default_factory=Outcome)
    """What both programs gave out, where that was noted."""
    uncommitted: tuple[bool | None, bool | None] = (None, None)
    """Whether the work tree had changes beyond the commit, when it was recorded and now; None where nobody knows."""
    judged: Callable[[Outcome], ReplayResult] | None = None
    """Judges the replay once more, with more known of the outcome."""

    @property
    def needs_another(self) -> bool:
        """Tell whether a second replay can tell if what differs is the program's doing."""
        result = self.result
        if result.result == "same":
            return bool(result.writes.undecided)
        return result.result == "diverged" and all("stream" in each or "line" in each for each in result.divergences)


def policy_note(run: Run, store: DirectoryStore) -> str:
    """Say why a replay here passes another policy than the recording did; empty where it passes the same."""
    guard = in_force.of_run(run, os.environ, store.folder)
    return guard.note if guard.otherwise else ""


def check_judgeable(recording: RunSource, argv: Sequence[str] = ()) -> list[Reason]:
    """Raise `CannotJudge` where nothing in the recording could answer a call, or its program would wait for ever.

    `argv` is the command that the user names, if any. Gives what the recording lacks.
    """
    if not argv:
        _check_is_no_server(recording)
    verdict = judge(recording.run, recording.history)
    if verdict.grade is Grade.NONE:
        why = verdict.reasons[0] if verdict.reasons else None
        lost = f"{why.call}: {why.lost}" if why else "no call was recorded"
        raise CannotJudge(f"run {recording.run.id[:12]} cannot be replayed: {lost}", hint=why.fix if why else "")
    return [each for each in verdict.reasons if each.field != "entry"]  # by now it is known


def _check_is_no_server(recording: RunSource) -> None:
    units = unit.units_served(recording.run)
    if units is None:
        return
    newest = max(
        (each for each in recording.siblings if unit.inbound(each) is not None),
        key=lambda run: run.started_ns,
        default=None,
    )
    why = f"run {recording.run.id[:12]} is of a server's own process: its program would wait for somebody who asks"
    if newest is None:
        hint = "it did nothing for others that is a run of its own; declare the function that does with @reenact.unit"
        raise CannotJudge(why, hint=hint)
    scope = f"of the {units} units that came in " if units > 1 else ""
    raise ServersOwn(why, hint=f"replay what it was asked for; {scope}the last is `reenact replay {newest.id[:12]}`")


def replay(
    recording: RunSource,
    argv: Sequence[str],
    cwd: Path,
    policy: Policy,
    store: DirectoryStore,
    *,
    start: Start | None = None,
    varied: bool = False,
) -> Replayed:
    """Run a program against a recording in a process of its own, and judge it.

    `start` runs the program; by default a new process does, on this one's standard streams (`printing`). Where
    `recording` is altered the program is judged against the altered run. It is run once more, with nobody to read
    what it prints, where only that can tell whether other bytes than recorded are the program's doing, and twice more
    where it waits: how often a program looks while it waits may be the same twice by chance. `varied` says
    that answers are others than the recorded ones, so that what it writes is not compared. Raises `CannotJudge` where
    the program cannot be started, `UsageError` where a change fits no call.
    """
    store = own_store(store)
    cwd = cwd.absolute()  # a fixture says `.`, which is `/` in a world whose root was made anew
    asked = policy
    if policy.keep:
        asked = replace(policy, keep=str(Path(policy.keep).absolute()))
    began = time.monotonic()
    with closing(Scratch("reenact-replay-")) as scratch:
        attempt = _replay(recording, argv, cwd, asked, store, scratch.path, start or printing(), compares=not varied)
    if not attempt.needs_another:
        return attempt
    if attempt.result.writes.undecided:
        time.sleep(max(0.0, _APART_S - (time.monotonic() - began)))
    quietly = replace(asked, writes=Writes.COPY, keep="")
    decided = attempt
    waits = any(PAUSES in node.span.attributes for node in recording.run.nodes)
    for _ in range(2 if waits else 1):
        with closing(Scratch("reenact-replay-")) as scratch:
            again = _replay(recording, argv, cwd, quietly, store, scratch.path, silent, tells=False)
        decided = _decided(attempt, again)
        if decided.result.result != "diverged":
            break
    return decided


def _decided(attempt: Replayed, again: Replayed) -> Replayed:
    """Decide by a second replay on what differs from the recording in bytes or numbers that may be chance.

    A program that drew of the clock or of chance what the recording does not hold prints another value each time, and
    that is its own doing: then nothing that differs is taken for chance.
    """
    from reenact.compare.file_writes import decided

    result = attempt.result
    printed = again.outcome.printed[1] if again.outcome.printed is not None else None
    second = again.outcome.wrote[1] if again.outcome.wrote is not None else None
    drew = bool(result.volatile)
    has_another = printed is not None or second is not None
    if result.result == "diverged" and attempt.judged is not None and has_another and not drew:
        result = attempt.judged(replace(attempt.outcome, printed_again=printed, wrote_again=second))
    wrote = attempt.outcome.wrote[1] if attempt.outcome.wrote is not None else None
    if wrote is not None and result.result == "same" and result.writes.undecided:
        divergences, left = decided(result.writes.undecided, wrote, second, drew=drew)
        result = replace(
            result,
            result="diverged" if divergences else result.result,
            divergences=divergences,
            writes=replace(result.writes, undecided=(), bytes_differ=tuple(left)),
        )
    return replace(attempt, result=result)


def own_store(store: DirectoryStore) -> DirectoryStore:
    """Give the store that a replay is kept in; where the one that is given cannot be written, one that goes with us."""
    chosen = store.to_write_to()
    if chosen is not store:
        say(f"{store.folder} cannot be written: the run that this replay makes is not kept")
    return chosen


def silent(argv: Sequence[str], cwd: Path, environ: Mapping[str, str]) -> int:
    """Run a program in a new process that reads nothing and prints to nobody."""
    with Path(os.devnull).open("r+b") as nobody:
        return _run(argv, cwd, environ, nobody, nobody, nobody)


def printing(stdout: IO[bytes] | None = None, stderr: IO[bytes] | None = None) -> Start:
    """Have a program run in a new process, printing to this one's standard streams or to what is given."""
    return partial(_run, stdout=stdout, stderr=stderr)


def _replay(  # noqa: PLR0913 - what is replayed, and how
    source: RunSource,
    argv: Sequence[str],
    cwd: Path,
    policy: Policy,
    store: DirectoryStore,
    scratch: Path,
    start: Start,
    *,
    tells: bool = True,
    compares: bool = True,
) -> Replayed:
    source = replace(source, run=_recorded_here(source.run))
    world, code, runs, entries = _run_again(source, argv, cwd, policy, store, scratch, start, tells=tells)
    own = counterpart(runs, source)
    everything, (entries, ledgers) = entries, earlier_units.apart(entries)
    outcome = Outcome(
        wrote=_wrote(source, own, runs) if world.changed is not None and policy.writes.copies else None,
        printed=_printed(source, own, runs),
        strictness=policy.outcome,
    )

    def judged(outcome: Outcome | None) -> ReplayResult:
        result = judge_replay(
            source.altered.run(source.run),
            () if unit.inbound(source.run) is not None else source.siblings,  # its process's start-up is owed to nobody
            own,
            entries,
            exit_code=code,
            recorded_exit=_recorded_exit(source.run),
            outcome=outcome,
            beside=runs,
        )
        full_result = _unless_unwitnessed(_with_copy(result, world, runs, everything), source, cwd)
        return earlier_units.judged(full_result, source.run, source.history.units, runs, ledgers)

    basis = _comparable(outcome, source, policy, entries, compares=compares)
    commits = source.run.surroundings.get("commit"), commit(cwd)
    return Replayed(
        outcome=outcome,
        judged=judged,
        result=judged(basis),
        run=own,
        recorded_commit=_commit_id(commits[0]),
        current_commit=_commit_id(commits[1]),
        uncommitted=(_uncommitted(commits[0]), _uncommitted(commits[1])),
        exit_code=code,
        appended=_append(source, runs, entries, policy, store) if source.altered.branch is None else 0,
        entries=tuple(entries),
    )


def _run_again(  # noqa: PLR0913 - what is replayed, and how
    source: RunSource,
    argv: Sequence[str],
    cwd: Path,
    policy: Policy,
    store: DirectoryStore,
    scratch: Path,
    start: Start,
    *,
    tells: bool,
) -> tuple[_World, int, Sequence[Run], list[dict[str, Any]]]:
    """Run the program against its recording: give its world, its exit code, the runs that it made, and the ledger."""
    user_key.take()  # no replayed process finds it
    recording = os.urandom(8).hex()
    environ = _environ(source, scratch, recording)
    ways = _ways(source, policy, environ)
    ring, plan = _plan(source, policy, store, scratch, ways)
    out = (ways.ordered(), ways.sockets()) if ways is not None else ((), ())
    begun = _begin(source, cwd, policy, tells=tells)
    world = _World(
        policy=policy,
        store=store,
        scratch=scratch,
        ring=ring,
        begin=begun,
        out=out,
        pid=_pid(source.run),
        umask=settings.umask(source),
    )
    with owning(store, recording):
        code = _started(argv, cwd, environ, world, start)
        started = Started(found=source, argv=argv, cwd=cwd, environ=environ)
        mend = mending(started, store, recording, ring.salt)
        runs = Drain(store, recording=recording, mend=mend).finish(exit_codes={})
    return world, code, runs, _entries(Path(plan.ledger), source.run, store)


def _comparable(
    outcome: Outcome, recording: RunSource, policy: Policy, entries: Sequence[Mapping[str, Json]], *, compares: bool
) -> Outcome | None:
    """Give what of the outcome can be held against the recording."""
    if Source.RECORDED_OR_LIVE in {policy.models, policy.tools} and any(each["t"] == "live" for each in entries):
        return Outcome(why="calls went live that the recording does not hold", strictness=policy.outcome)
    if any(APPENDED_BY in node.span.attributes for node in recording.run.nodes):
        return Outcome(why="calls of another replay were added to the recording", strictness=policy.outcome)
    return outcome if compares and not (recording.altered.branch or recording.altered.changes) else None


def _begin(recording: RunSource, cwd: Path, policy: Policy, *, tells: bool) -> replay_files.Begin:
    """Say how the files of the world begin; what cannot be as it was is told where `tells` says so."""
    if not policy.writes.copies:
        return replay_files.Begin()
    begun = replay_files.begin(recording, cwd, policy.reads)
    for each in begun.unlike if tells else ():
        tell(f"{each['path']} {each['line']}")
    return begun


def _as_laid(unlike: dict[str, Json], level: str) -> dict[str, Json]:
    """Say that a path was not put back, where this world could not have it as it was."""
    is_below = not as_text(unlike["path"]).startswith(os.sep)
    can_be = level == "namespaces" or (level == "landlock" and is_below)
    return unlike if can_be else {**unlike, "put_back": False}


def _unless_unwitnessed(result: ReplayResult, recording: RunSource, cwd: Path) -> ReplayResult:
    """Say nothing of a program that is the same but for files that no recording tells of, where it seemed whole.

    What stands there now, in the program's folder, is what the recorded run left, as far as is known. Where nothing
    does, nothing is held against the replay: the file is named.
    """
    others = [path for path in result.unwitnessed if Path(path).is_relative_to(cwd) and os.path.lexists(path)]
    if (
        result.result != "same"
        or not others
        or result.strictness is Strictness.IGNORE
        or "child" in result.ran_again  # a program that ran again may have written it: its files are of no recording
        or Grade.EXACT is not judge(recording.run, recording.history).grade
    ):
        return result
    names = ", ".join(others[:3])
    why = f"native code wrote what the recording does not hold, and it is not what is there now: {names}"
    return replace(result, result="unjudged", why=why)


def _with_copy(
    result: ReplayResult, world: _World, runs: Sequence[Run], entries: Sequence[Mapping[str, Json]]
) -> ReplayResult:
    """Add what the world was, and what was found in the copy of it."""
    refusals = without(world.refusals, world.level)
    unlike = [_as_laid(each, world.level) for each in world.begin.unlike]
    result = replace(result, level=world.level, levels_refused=refusals, unlike=unlike)
    if world.changed is None:
        return result
    notes = [note for run in runs if (note := writes_of(run)) is not None]
    unnamed = replay_files.unwitnessed(world.changed, notes, entries, world.begin)
    by_tools = {
        tool: [each.path for each in world.changed if not each.same and each.path in paths]
        for tool, paths in replay_files.by_tools(entries).items()
    }
    writes = replace(result.writes, kept=tuple(world.kept))
    return replace(result, unwitnessed=unnamed, by_tools=by_tools, writes=writes)


def _environ(source: RunSource, scratch: Path, recording: str) -> dict[str, str]:
    """Give the environment of the program."""
    environ = injected(os.environ, REENACT_REPLAY=str(scratch / "plan.json"), REENACT_RECORDING=recording)
    environ |= {name: value for name, value in settings.unset_ones(source).items() if name not in environ}
    environ |= settings.set_always(source)
    environ[ADDED] = ",".join(settings.added(source))
    environ.pop("REENACT_RECORD", None)
    environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")  # told apart by seconds, it would outlive a checkout of a bisect
    return environ


@dataclass(slots=True, kw_only=True)
class _World:
    """What a program is run in, and what became of it."""

    policy: Policy
    store: DirectoryStore
    scratch: Path
    ring: Keyring
    begin: replay_files.Begin
    out: tuple[Sequence[Mapping[str, Json]], Sequence[str]] = ((), ())
    """The hosts and the sockets that may be reached from there."""
    pid: int = 0
    umask: int | None = None
    """The number of the recorded process; 0 where it is not known."""
    changed: list[replay_files.Changed] | None = None
    """What was changed in the copy; None where there was none."""
    kept: list[str] = field(default_factory=list[str])
    level: str = "watched"
    refusals: dict[str, str] = field(default_factory=dict[str, str])
    """Why a stronger one could not be had."""


def _pid(run: Run) -> int:
    """Give the number of the recorded process; 0 where there is none."""
    number = run.root.span.resource.attributes.get("process.pid") if run.root is not None else None
    return number if isinstance(number, int) else 0


def _started(argv: Sequence[str], cwd: Path, environ: Mapping[str, str], world: _World, start: Start) -> int:
    """Run the program in a world of its own where there can be one, else with the audit hook alone."""
    writes, leads_out = world.policy.writes is Writes.ALLOW, any(world.out)
    left = levels(os.environ, leads_out=leads_out) if not writes else []
    world.refusals = untried(os.environ, leads_out=leads_out, writes=writes)
    openings = WorldAccess(
        *world.out, begin=world.begin.entries, handed=world.ring.spelled(), pid=world.pid, umask=world.umask
    )
    while left:
        with sealed(argv, cwd, world.store, world.scratch, left, openings) as copy:
            code = start(copy.words, cwd, _caching(keyring.without_ours(environ)))
            copy.take_out(world.store)
            refused = copy.refused()
            world.refusals |= copy.why
            if refused is None:
                world.level = "namespaces" if copy.folder is None else "landlock"
                _look_through(copy, cwd, world)
                return code
            if (world.scratch / _LEDGER).exists():  # it has run: a second run would be judged together with the first
                raise CannotJudge(
                    f"the program ran in a sealed world that left no word of itself: {refused}",
                    hint="replay it again, or without the seal: REENACT_ENFORCE=off",
                )
            left = copy.left
    keyring.leave(world.ring, world.scratch)
    return start(argv, cwd, environ)


def _caching(environ: Mapping[str, str]) -> Mapping[str, str]:
    """Let Python write its caches, which land in the copy: the program may list them, as the recorded one might."""
    if "PYTHONDONTWRITEBYTECODE" in os.environ:
        return environ
    return {name: value for name, value in environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _look_through(copy: Sealed, cwd: Path, world: _World) -> None:
    """See what of the copy was changed, before it goes, and take out what is to be kept."""
    left_out = (str(world.store.folder.absolute()), str(world.scratch))
    if copy.folder is None:
        world.changed = replay_files.changed(copy.upper, copy.copied, left_out)
    else:
        world.changed = replay_files.changed_in(copy.folder, copy.copied[0], copy.upper, left_out)
    if world.policy.writes is Writes.KEEP:
        entries = ledger.read(world.scratch / _LEDGER)
        wanted = replay_files.written_by(world.changed, entries, world.begin)
        try:
            world.kept = replay_files.keep(world.changed, Path(world.policy.keep), cwd, wanted)
        except OSError as error:
            raise InputError(str(error.filename), f"what was written cannot be kept: {error.strerror}") from error


def _wrote(recording: RunSource, own: Run | None, runs: Sequence[Run]) -> tuple[FileWrites | None, FileWrites | None]:
    """Give what the recorded program wrote, and what this one did; of a unit that came in, that unit alone."""
    if unit.inbound(recording.run) is not None:
        return writes_of(recording.run), writes_of(own) if own is not None else None
    return replay_files.of_all((recording.run, *recording.siblings)), replay_files.of_all(runs)


def _printed(recording: RunSource, own: Run | None, runs: Sequence[Run]) -> tuple[Parts | None, Parts | None]:
    """Give what the recorded program printed, and what this one did; of a unit that came in, that unit alone."""
    if unit.inbound(recording.run) is not None:
        pair: tuple[Sequence[Run], Sequence[Run]] = (recording.run,), () if own is None else (own,)
    else:
        pair = (recording.run, *recording.siblings), runs
    recorded, replay = (outputs(each) if any(map(is_noted, each)) else None for each in pair)
    if recorded is not None and replay is not None and not recording.run.own:  # whoever sent it may have added anything
        recorded = {key: part for key, part in recorded.items() if key in replay}
    return recorded, replay


def _entries(path: Path, run: Run, store: DirectoryStore) -> list[dict[str, Any]]:
    """Read the ledger. What it says of our own modules is done here, and no part of what the program did.

    What the kernel refused was written down by a process that knows no redaction.
    """
    entries = ledger.read(path)
    if kernel_entries := [each for each in entries if each.get("event") == "kernel"]:
        engine = in_force.of_run(run, os.environ, store.folder).engine(os.environ)
        for each in kernel_entries:
            each["what"] = as_text(
                engine.attributes({"reenact.ledger.what": each.get("what")}).get("reenact.ledger.what")
            )
    uncached = [each for each in entries if each["t"] == UNCACHED]
    write_caches(as_text(source) for each in uncached for source in as_list(each.get("sources")))
    return [each for each in entries if each["t"] != UNCACHED]


def _recorded_here(run: Run) -> Run:
    """Give an own run less the calls that others sent for its trace: they are shown, and answer nothing."""
    if not run.own or not any(node.span.sent for node in run.nodes):
        return run
    return replace(run, nodes=tuple(node for node in run.nodes if node.call.is_structure or not node.span.sent))


def _ways(recording: RunSource, policy: Policy, environ: Mapping[str, str]) -> WaysOut | None:
    """Say what may be reached, where anything may."""
    if policy.closed:
        return None
    from reenact.pipeline.ways_out import ways_out

    ways = ways_out(recording, policy, environ)
    for name in ways.shut:
        say(f"{name} names a proxy that would reach every host: `--allow-host` with its host and port lets it")
    return ways


def _plan(
    recording: RunSource, policy: Policy, store: DirectoryStore, scratch: Path, ways: WaysOut | None
) -> tuple[Keyring, Plan]:
    """Write down what the replaying processes are told, and give what they are told otherwise."""
    large = FolderBlobs(scratch / "blobs")
    history = recording.history
    nodes = [node for run in (recording.run, *recording.siblings, *history.units) for node in run.nodes]
    spans = [cut(settled(node), large.threshold, large.put) for node in nodes]
    ring, spans = Keyring.of(recording.run, os.environ, store).less(spans)
    (scratch / "recording.jsonl").write_bytes(otlp_json.encode(spans))
    plan = Plan(
        run=recording.run.id,
        spans=str(scratch / "recording.jsonl"),
        ledger=str(scratch / _LEDGER),
        models=policy.models.value,
        tools=policy.tools.value,
        writes=policy.writes.value,
        after=policy.after.value,
        hosts=[*policy.hosts],
        live_tools=[*policy.live_tools],
        stubs=[*policy.stubs],
        lifespan=policy.lifespan,
        ways=ways.lines() if ways else None,
        children=policy.children.value,
        store=str(store.folder),
        starts=recording.starts,
        history=[run.id for run in history.units],
        overlap=history.overlap,
        own=[run.root.id for run in recording.together if run.own and run.root is not None],
        signal=_ending_signal(recording.run),
        **recording.altered.in_plan(scratch),
    )
    plan.write(scratch / "plan.json")
    return ring, plan


def _ending_signal(run: Run) -> list[float]:
    """Give the signal without which the recorded program would have gone on, and when a replay has to send it.

    That is well behind the last of its calls, so far as a replay is as fast.
    """
    if run.root is None or unit.inbound(run) is not None:
        return []
    stopped, code = run.root.span.attributes.get(STOPPED), _recorded_exit(run)
    number = signal.Signals[str(stopped)] if stopped else -(code or 0)
    if number not in {signal.SIGTERM, signal.SIGHUP, signal.SIGINT}:
        return []
    last_ns = max((node.span.end_ns for node in run.nodes if node is not run.root), default=run.started_ns)
    return [float(number), _SLOWER * (last_ns - run.started_ns) / 1e9 + _UNTIL_SIGNAL_S]


def _run(
    argv: Sequence[str],
    cwd: Path,
    environ: Mapping[str, str],
    stdout: IO[bytes] | None = None,
    stderr: IO[bytes] | None = None,
    stdin: IO[bytes] | None = None,
) -> int:
    streams = [each.fileno() if each is not None else place for place, each in enumerate((stdin, stdout, stderr))]
    if (process := standby.launched(argv, str(cwd), environ, streams)) is not None:
        return ended(process)
    try:
        process = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=dict(environ),
            stdin=stdin,
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


def _uncommitted(value: Json) -> bool | None:
    flag = value.get("uncommitted") if isinstance(value, dict) else None
    return flag if isinstance(flag, bool) else None


def _commit_id(value: Json) -> str | None:
    commit_id = value.get("id") if isinstance(value, dict) else None
    return str(commit_id) if commit_id else None


def _append(
    recording: RunSource,
    runs: Sequence[Run],
    entries: Sequence[Mapping[str, Json]],
    policy: Policy,
    store: DirectoryStore,
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
    return append(recording, new, store)
