"""Finding the run that somebody named: `last`, an id or its prefix, a path, `path#id`, or `-`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import overload

from reenact.errors import InputError, UsageError
from reenact.find.altering import Altered
from reenact.graph.build import build
from reenact.graph.history import NONE, NOTHING, StoredRuns, history
from reenact.keep.catalog import NO_FORK, fork_of, records_of, replay_of
from reenact.stores.directory import DirectoryStore
from reenact.values import unit
from reenact.values.call import Streamed
from reenact.values.history import MOST, History
from reenact.values.lenient import as_list, as_text
from reenact.values.log import Record
from reenact.values.run import LANDINGS, PAUSES, Node, Run

ALL = "all"
"""`path#all` names every trace of a file as one run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSource:
    """A run, and the other runs of the same recording, which the same program made."""

    run: Run
    siblings: Sequence[Run]
    """Of a run in a store they are read when they are first asked for: one process may have made thousands."""
    source: str
    altered: Altered = field(default_factory=Altered)
    """What is changed in the run before it answers a replay."""
    trusted: bool = False
    """The user saw what the run would start, and said yes to it."""
    earlier: StoredRuns = field(default=NONE, compare=False)
    """The earlier units of its process, where they are kept."""
    also: tuple[str, ...] = ()
    """Ids of further units of its process that are delivered before it: those of its session."""
    most: int = MOST
    """So many earlier units are delivered before a unit at most."""
    _followed: dict[object, History] = field(default_factory=dict[object, History])

    @property
    def history(self) -> History:
        """The earlier units on which a unit that came in stands."""
        if not (unit.stands_on(self.run) or self.also):
            return NOTHING
        asked = id(self.earlier), self.most, self.also, self.run.own
        if asked not in self._followed:
            self._followed[asked] = history(self.run, self.earlier, self.siblings, self.most, self.also)
        return self._followed[asked]

    @property
    def together(self) -> tuple[Run, ...]:
        """The run, those beside it, and the earlier units that a replay delivers before it."""
        return (self.run, *self.siblings, *self.history.units)

    @property
    def starts(self) -> bool:
        """Whether what the run says of how its program is started may be used: it is the user's own, or trusted."""
        return self.run.own or self.trusted


def find(selector: str, store: DirectoryStore) -> RunSource:
    """Find one run. Raises `InputError` where there is none, `UsageError` where several fit."""
    if is_backend(selector):
        from reenact.find import remote

        run, others, source = remote.remote_run(selector)
        around = _around(run, others) if unit.inbound(run) is not None else others
        return RunSource(run=run, siblings=around, source=source, earlier=among(others))
    if _is_path(selector):
        path, _, wanted = selector.partition("#")
        return _in_file(Path(path), wanted)
    from reenact.keep.leftovers import leftovers

    leftovers(store)
    if selector == "last":
        newest = store.find(NO_FORK, newest=1, replays=False)
        if not newest:
            raise InputError(
                str(store.folder), "holds no run", hint="record one: `reenact run -- python your_agent.py`"
            )
        return _of_the_first_process(_in_store(store, newest[0].id), store)
    ids = store.resolve(selector.lower())
    if not ids:
        hint = "`reenact ls` lists what is there; a file is named by its path"
        raise InputError(str(store.folder), f"holds no run {selector!r}", hint=hint)
    if len(ids) > 1:
        raise UsageError(f"{selector!r} fits {len(ids)} runs: {', '.join(each[:12] for each in ids[:5])}")
    return _in_store(store, ids[0])


def is_backend(selector: str) -> bool:
    """Tell whether this is the URL of a place in a backend, of whatever kind."""
    return "://" in selector


def _is_path(selector: str) -> bool:
    if selector == "last":  # whatever lies about under that name is reached as `./last`
        return False
    return selector == "-" or "/" in selector or "#" in selector or "." in selector or Path(selector).exists()


def _built(store: DirectoryStore, trace_id: str) -> list[Run]:
    from reenact.keep import run_proof

    return build(run_proof.marked(records_of(store, trace_id), store), source="store")


def _in_store(store: DirectoryStore, trace_id: str) -> RunSource:
    run = _read(store, trace_id)
    siblings: Sequence[Run] = ()
    if unit.inbound(run) is not None:  # what came in is replayed alone
        siblings = _Later(lambda: _around(run, _process_in(store, run)))
    elif run.recording and replay_of(run) is None:
        siblings = _Later(lambda: _others(store, run))
    return RunSource(run=run, siblings=siblings, source=str(store.folder), earlier=kept_in(store))


def _read(store: DirectoryStore, trace_id: str) -> Run:
    return _only(_built(store, trace_id), trace_id)


def among(runs: Iterable[Run]) -> StoredRuns:
    """Keep some runs."""
    by_id = {run.id: run for run in runs}
    return StoredRuns(by_id.get)


def kept_in(store: DirectoryStore) -> StoredRuns:
    """Keep what a store keeps."""

    def read(trace_id: str) -> Run | None:
        try:
            return _read(store, trace_id)
        except InputError:  # it has been deleted
            return None

    return StoredRuns(read)


def _others(store: DirectoryStore, run: Run) -> Iterable[Run]:
    """Read every other run of the recording, newest first."""
    entries = store.find([("recording = ?", run.recording), ("id != ?", run.id)])
    others = (_read(store, entry.id) for entry in entries)
    # A name of the recording alone joins nobody to it.
    return _of_its_process(run, [other for other in others if other.own is run.own])


def _of_its_process(run: Run, others: Sequence[Run]) -> list[Run]:
    """Choose the runs that the process of a run made, or one that descends from it: a replay starts that process.

    `sh -c 'python a.py; python b.py'` is one recording of two, and so is a program that is another one from `execv` on.
    """
    own, number, _ = _process(run)
    if own is None or not isinstance(number, int):
        return [*others]
    family = {number}
    for _ in others:
        below = {pid for _, pid, parent in map(_process, others) if parent in family and isinstance(pid, int)}
        if below <= family:
            break
        family |= below
    return [other for other in others if _process(other)[0] in {own, None} or _process(other)[2] in family]


def _process(run: Run) -> tuple[object, object, object]:
    """Give the name of a run's process, its number, and its parent's; None of what is not known."""
    if not run.nodes:
        return None, None, None
    known = run.nodes[0].span.resource.attributes
    return known.get("reenact.process.id"), known.get("process.pid"), known.get("process.parent_pid")


class _Later(Sequence[Run]):
    """Runs that are read when they are first asked for."""

    def __init__(self, read: Callable[[], Iterable[Run]]) -> None:
        self._reader = read
        self._runs: tuple[Run, ...] | None = None

    def _read_once(self) -> tuple[Run, ...]:
        if self._runs is None:
            self._runs = tuple(self._reader())
        return self._runs

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Run]: ...
    def __getitem__(self, index: int | slice) -> Run | Sequence[Run]:
        return self._read_once()[index]

    def __len__(self) -> int:
        return len(self._read_once())


def _process_in(store: DirectoryStore, run: Run) -> list[Run]:
    trace_id = unit.around(run)
    try:
        return [other for other in _built(store, trace_id) if other.own is run.own] if trace_id else []
    except InputError:  # it has been deleted
        return []


def _around(run: Run, others: Iterable[Run]) -> tuple[Run, ...]:
    """Give what the process had called outside of every unit before `run` came in: its start-up, made in a replay too.

    In no order: not all of it is made again, and nothing may wait for what is not.
    """
    startup_runs: list[Run] = []
    for other in others:
        if other.id == unit.around(run):
            before = [node for node in other.nodes if node is other.root or _was_before(node, run)]
            nodes = tuple(_unordered(node, run) for node in before[:_MOST_AROUND])
            startup_runs.append(replace(other, nodes=nodes))
    return tuple(startup_runs)


def _was_before(node: Node, run: Run) -> bool:
    """Tell whether a call was over when a unit came in, or is a session with a server that was open then."""
    is_session = node.call.is_mcp and isinstance(node.outcome, Streamed)
    return (node.span.start_ns if is_session else node.span.end_ns) <= run.started_ns


def _unordered(node: Node, run: Run) -> Node:
    """Take its places in the order from a call; of a session that goes on, nobody can say what was said by then."""
    attributes = {name: value for name, value in node.span.attributes.items() if name not in _ORDERS}
    unordered = replace(node, span=replace(node.span, attributes=attributes))
    if not isinstance(node.outcome, Streamed) or node.span.end_ns <= run.started_ns:
        return unordered
    return replace(unordered, outcome=replace(node.outcome, chunks=()))


_LOOKED_AT = 100
"""So many runs of a recording are looked through for a unit: its processes are fewer."""
_MOST_AROUND = 1000
"""So many calls of the process are looked at: those of its start-up come first."""
_ORDERS = frozenset({"reenact.order.head", "reenact.order.end", "reenact.lane.ends", PAUSES, LANDINGS})


def _of_the_first_process(source: RunSource, store: DirectoryStore) -> RunSource:
    """Go from a run of a child process to the newest one of the program that started it, process by process."""
    if unit.units_served(source.run) is not None:  # nobody means what a server did for nobody
        return _last_unit(source, store)
    visits = {source.run.id}
    while unit.inbound(source.run) is None and (above := _above(source.run, store)) is not None and above not in visits:
        visits.add(above)
        source = _in_store(store, above)
    return source


def _last_unit(source: RunSource, store: DirectoryStore) -> RunSource:
    """Go from the run of a server's process to the newest unit of work of its recording, where it did any."""
    entries = store.find([*NO_FORK, ("recording = ?", source.run.recording)], newest=_LOOKED_AT, replays=False)
    units = (each for entry in entries if unit.inbound((each := _in_store(store, entry.id)).run) is not None)
    return next(units, source)


def _above(run: Run, store: DirectoryStore) -> str | None:
    """Give the newest run of the same recording that the parent of a run's process made, by the index."""
    parent = run.nodes[0].span.resource.attributes.get("process.parent_pid") if run.nodes else None
    return store.newest_of_process(run.recording, parent) if run.recording and isinstance(parent, int) else None


def _only(runs: list[Run], trace_id: str) -> Run:
    if not runs:
        raise InputError(trace_id, "its file in the store holds no span")
    return runs[0]


def runs_in(path: Path, only: str = "", report: Callable[[str], object] | None = None) -> list[Run]:
    """Read every run of a file or folder (or of standard input for `-`), oldest first. Raises `InputError`.

    With `only`, those whose ids begin so, and whatever belongs to a recording of ours: the rest is not kept in memory.
    What there is to say of the whole is in the notes of each, and `report` is told it.
    """
    from reenact.keep.bundles import whole
    from reenact.read.open import open_recording

    opened = open_recording(path)
    records = (record for record in opened.records if _wanted(record, only)) if only else opened.records
    runs = build(whole(records, path), source=str(path))
    if not runs:
        raise InputError(str(path), "holds no span")
    if report is not None:
        for note in opened.notes:
            report(note)
    return [replace(run, notes=(*run.notes, *opened.notes)) for run in runs] if opened.notes else runs


def _wanted(record: Record, only: str) -> bool:
    return record.trace_id.startswith(only) or "reenact.recording.id" in record.resource.attributes


def _in_file(path: Path, wanted: str) -> RunSource:
    from reenact.read.open import is_big

    if is_big(path) and (indexed := _in_index(path, wanted)) is not None:
        return indexed
    hexed = wanted.lower() if not set(wanted.lower()) - set("0123456789abcdef") else ""
    runs = runs_in(path, hexed if is_big(path) else "")
    around = {unit.around(run) for run in runs}
    if wanted == ALL:
        runs, wanted = [_as_one(runs)], ""
    fitting = [run for run in runs if run.id.startswith(wanted.lower())] if wanted else _recorded(runs)
    fitting = [run for run in fitting if run.id not in around] or fitting
    if not fitting:
        raise InputError(str(path), f"holds no run {wanted!r}", hint=_names(path, runs))
    if len(fitting) > 1 and not wanted:
        below = {as_text(each) for run in fitting for each in as_list(unit.stands_on(run).get("units"))}
        fitting = _belonging([run for run in fitting if run.id not in below] or fitting)
    if len(fitting) > 1:
        raise UsageError(f"{path} holds {len(fitting)} runs, name one", hint=_names(path, fitting))
    run = fitting[0]
    siblings = [other for other in runs if other is not run and run.recording and other.recording == run.recording]
    if unit.inbound(run) is None:
        siblings = _of_its_process(run, siblings)
    if unit.inbound(run) is not None:
        return RunSource(
            run=run, siblings=_around(run, siblings), source=str(path), earlier=among(runs), most=len(runs)
        )
    return RunSource(run=run, siblings=tuple(siblings), source=str(path))


def _in_index(path: Path, wanted: str) -> RunSource | None:
    """Find a run of a big file by the file's index; None where the file can have none."""
    from reenact.find import big_files

    with ExitStack() as closing:
        index = big_files.opened(path, closing)
        if index is None:
            return None
        run, others = big_files.chosen(index, wanted)
        siblings = _around(run, others) if unit.inbound(run) is not None else tuple(_of_its_process(run, others))
        return RunSource(run=run, siblings=siblings, source=str(path), earlier=among(others))


def _belonging(runs: list[Run]) -> list[Run]:
    """Choose among the traces of a file: those that hold a call at all, as one where they are one conversation."""
    telling = [run for run in runs if any(not node.call.is_structure for node in run.nodes)]
    if len(telling) == 1 and len(runs) > 1:
        note = f"{len(runs) - 1} other traces of the file hold no call of a model or tool"
        return [replace(telling[0], notes=(*telling[0].notes, note))]
    from reenact.graph.conversation_traces import go_on

    chosen = telling or runs
    return [_as_one(chosen)] if go_on(chosen) else runs


def _as_one(runs: list[Run]) -> Run:
    """Put the traces of a file together that belong to one execution: those that go on, or all that were asked for."""
    if len(runs) == 1:
        return runs[0]
    from reenact.graph.conversation_traces import together

    [run] = build(together(runs), source=runs[0].source)
    remark = f"{len(runs)} traces of the file are read as one run, by the time of their calls"
    return replace(run, notes=(*run.notes, remark, *(note for note in runs[0].notes if note not in run.notes)))


def _recorded(runs: Iterable[Run]) -> list[Run]:
    """Leave out replays and forks where there is anything else."""
    all_runs = list(runs)
    return [run for run in all_runs if replay_of(run) is None and fork_of(run) is None] or all_runs


def _names(path: Path, runs: Iterable[Run]) -> str:
    all_runs = list(runs)
    together = f"; or all as one: {path}#{ALL}" if len(all_runs) > 1 else ""
    return "one of: " + "  ".join(f"{path}#{run.id[:12]}" for run in all_runs[:8]) + together
