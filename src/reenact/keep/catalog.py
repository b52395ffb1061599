"""What a run is found by, and what `ls` says of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from reenact.boundary.reading import answered, asked
from reenact.disk.run_index import Entry
from reenact.errors import InputError
from reenact.graph.build import build
from reenact.graph.history import StoredRuns, history
from reenact.graph.verdict import facts, judge
from reenact.report.times import instant, milliseconds
from reenact.stores.directory import DirectoryStore, IndexDamagedError
from reenact.values import unit
from reenact.values.call import CallKind, FunctionCall, Raised
from reenact.values.finding import REVISIONS, Filters, ToolUse, argument_pairs
from reenact.values.history import History
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.log import Record
from reenact.values.message import ToolCall
from reenact.values.run import FORK_PARENT, STOPPED, Node, Run
from reenact.values.span import STATUS_ERROR

_BATCH = 200
NO_FORK = (("summary NOT LIKE ?", '%,"fork_of":"%'),)
"""Of the store's index: runs that were recorded. A fork is none of them and is named by its id."""
_CLOCK_NS = 2 * 10**9
"""How far the clock of a file system may lie behind ours."""


def status(run: Run) -> str:
    """Say how a run ended: `ok`, `error`, `interrupted`, or `unset`."""
    if run.root is None:
        return "error" if any(node.span.status == STATUS_ERROR for node in run.nodes) else "unset"
    if run.root.span.attributes.get("reenact.incomplete"):
        return "ok" if STOPPED in run.root.span.attributes else "interrupted"  # a server has no end: a deploy ends it
    code = run.root.span.attributes.get("process.exit.code")
    return "error" if run.root.span.status == STATUS_ERROR or code not in (None, 0) else "ok"


def summary(run: Run, *, source: str = "", history: History | None = None) -> dict[str, Json]:
    """Say of a run what `ls --json` promises; of a unit that came in, by what is kept of its history."""
    verdict = judge(run, history)
    fields: dict[str, Json] = {
        "id": run.id,
        "name": run.name,
        "started": instant(run.started_ns) if run.started_ns else None,
        "duration_ms": milliseconds(run.started_ns, run.ended_ns),
        "status": status(run),
        "calls": dict(facts(run.nodes)),
        "verdict": verdict.grade.value,
        "session": run.session,
        "user": run.user,
        "tenant": run.tenant,
        "models": [*models(run)],
        "tools": [*sorted({node.call.name for node in run.nodes if node.kind is CallKind.TOOL})],
        "source": source or run.source,
        "replay_of": replay_of(run),
        "fork_of": fork_of(run),
    }
    if history is not None and history.units:
        fields["earlier"] = [each.id for each in history.units]
    return fields


def models(run: Run) -> tuple[str, ...]:
    """Give the names of the models that a run asked, sorted."""
    return tuple(sorted({name for node in run.nodes if (name := _model(node))}))


def entries(run: Run) -> tuple[str, ...]:
    """Give what the program of a run is called: the run's name, its main file, its service."""
    main = run.entry.get("main")
    names = {run.name, *([main] if isinstance(main, str) else [])}
    return tuple(sorted(names.union(*(_of_resource(node, ("service.name",)) for node in run.nodes)) - {""}))


def commits(run: Run) -> tuple[str, ...]:
    """Give the commits that the program of a run was at, as git and OpenTelemetry's `vcs` attributes tell."""
    commit = run.surroundings.get("commit")
    commit_id = commit.get("id") if isinstance(commit, dict) else None
    commit_ids = {commit_id} if isinstance(commit_id, str) else set[str]()
    return tuple(sorted(commit_ids.union(*(_of_resource(node, REVISIONS) for node in run.nodes)) - {""}))


def _of_resource(node: Node, names: Iterable[str]) -> Iterator[str]:
    attributes = node.span.resource.attributes
    return (value for name in names if isinstance(value := attributes.get(name), str))


def _model(node: Node) -> str | None:
    request = asked(node) if node.kind in {CallKind.LLM, CallKind.EMBEDDING} else None
    return request.model if request else None


def replay_of(run: Run) -> str | None:
    """Give the id of the run that this one replays."""
    nodes = (run.root,) if run.root else run.nodes  # of a run that goes on only its children may have ended
    value = next((of for node in nodes if (of := node.span.attributes.get("reenact.replay.of"))), None)
    return str(value) if value else None


def fork_of(run: Run) -> str | None:
    """Give the id of the run that this one was forked from."""
    nodes = (run.root,) if run.root else run.nodes
    value = next((of for node in nodes if (of := node.span.attributes.get(FORK_PARENT))), None)
    return str(value) if value else None


def entry(run: Run, others: StoredRuns | None = None) -> Entry:
    """Make the store's index entry for a run; `others` are the runs beside it."""
    fields = summary(run, history=history(run, others) if others is not None and unit.stands_on(run) else None)
    return Entry(
        id=run.id,
        name=run.name,
        started=run.started_ns,
        ended=max(run.started_ns, run.ended_ns),
        status=status(run),
        session=run.session,
        user=run.user,
        tenant=run.tenant,
        recording=run.recording,
        replay_of=replay_of(run),
        summary=compact(fields),
        models=models(run),
        entries=entries(run),
        commits=commits(run),
        uses=tuple(uses(run)),
        process=process(run),
    )


def process(run: Run) -> int | None:
    """Give the number of the process that a run of ours is of."""
    pid = run.nodes[0].span.resource.attributes.get("process.pid") if run.nodes and run.recording else None
    return pid if isinstance(pid, int) else None


def uses(run: Run) -> Iterator[ToolUse]:
    """Give the tool calls of a run, as they are searched for.

    What a model asked for counts where the recording holds no call of it: an emitter that kept model calls alone, a
    tool that the program dispatched by itself.
    """
    seen_ids = set[str]()
    for node in run.nodes:
        if node.kind is CallKind.TOOL and isinstance(node.call.request, FunctionCall):
            if node.tool_call_id:
                seen_ids.add(node.tool_call_id)
            yield ToolUse(id=node.id, tool=node.call.name, arguments=argument_pairs(node.call.request.arguments))
    for node in run.nodes:
        if node.kind is CallKind.LLM and (reply := answered(node)) is not None:
            asked_for = (part for message in reply.messages for part in message.parts if isinstance(part, ToolCall))
            for number, part in enumerate(asked_for):
                if part.id not in seen_ids:
                    pairs = argument_pairs(parsed_or_none(part.arguments))
                    yield ToolUse(id=f"{node.id}.{number}", tool=part.name, arguments=pairs)


def fits(run: Run, filters: Filters) -> bool:
    """Tell whether a run fits all that was asked for but the text; the same as asking the store's index."""
    if filters.window is not None:
        first, last = filters.window
        if run.started_ns > last or max(run.started_ns, run.ended_ns) < first:
            return False
    for name, value in (("user", run.user), ("session", run.session), ("tenant", run.tenant)):
        if getattr(filters, name) not in (None, value):
            return False
    if filters.status not in (None, status(run)) or (not filters.replays and replay_of(run) is not None):
        return False
    if filters.model is not None and not any(filters.model in name for name in models(run)):
        return False
    if filters.entry is not None and not any(filters.entry in name for name in entries(run)):
        return False
    if filters.commit is not None and not any(name.startswith(filters.commit) for name in commits(run)):
        return False
    if filters.tool is None and not filters.arguments:
        return True
    return any(use.fits(filters) for use in uses(run))


def index(store: DirectoryStore, trace_ids: Iterable[str], say: Callable[[str], None] | None = None) -> list[Run]:
    """Rebuild the runs of these traces and note them in the store's index; one that is damaged is made again, and said.

    Raises `InputError` for a damaged trace, `IndexUnusableError` for an index that cannot be written now.
    """
    runs = [run for trace_id in trace_ids for run in runs_of(store, trace_id)]
    if not runs:
        return runs
    stored_runs = kept_in(store)
    entries = [entry(run, stored_runs) for run in runs]
    for later in {each for run in runs for each in stored_runs.missed.pop(run.id, ())} - {run.id for run in runs}:
        entries += [entry(run, stored_runs) for run in runs_of(store, later)]  # it ended before one on which it stands
    try:
        store.index(entries)
    except IndexDamagedError as error:
        mended(store, error, say)
        store.index(entries)
    return runs


def note_taken_in(store: DirectoryStore, within_s: float) -> int:
    """Note runs that a collector took in and nobody noted yet, for so long at most; say how many are seen to be left.

    Raises `IndexUnusableError`. A trace that is damaged is told when it is asked for.
    """
    end, left = time.monotonic() + within_s, 0
    for further in store.further():
        while time.monotonic() < end and (trace_ids := further.unnoted(_AT_A_GLANCE)):
            entries: list[Entry] = []
            noted_ids: list[str] = []
            at = time.time_ns()
            for trace_id in trace_ids:
                with suppress(InputError):
                    entries += [entry(run, kept_in(store)) for run in runs_of(store, trace_id)]
                entries += around(store, trace_id)
                noted_ids.append(trace_id)
                if time.monotonic() > end:
                    break
            store.prepare()
            store.index(entries)
            further.noted(noted_ids, at)
        left += len(further.unnoted(_AT_A_GLANCE))
    return left


_AT_A_GLANCE = 50


def records_of(store: DirectoryStore, trace_id: str) -> Iterable[Record]:
    """Read a trace of the store, with the stray log events that are about it where a collector keeps any."""
    if not store.further():
        return store.records(trace_id)
    from reenact.keep import stray_log_events

    return stray_log_events.records(store, trace_id)


def runs_of(store: DirectoryStore, trace_id: str) -> list[Run]:
    """Rebuild the runs of a trace, less those that hold processes and nothing that any of them did.

    The master of a service is one: it starts workers, and their units of work are runs of their own.
    """
    runs = build(records_of(store, trace_id), source="store")
    return [run for run in runs if not all(node.span.attributes.get("reenact.process.root") for node in run.nodes)]


def around(store: DirectoryStore, trace_id: str) -> list[Entry]:
    """Note anew the runs that stray log events come to or are taken from, now that a trace has grown."""
    entries: list[Entry] = []
    if not store.further():
        return entries
    from reenact.keep import stray_log_events

    for other in stray_log_events.concerned(store, trace_id):
        with suppress(InputError):
            runs = runs_of(store, other)
            entries += [entry(run) for run in runs]
            if not runs:
                store.unlist(other)
    return entries


@lru_cache(maxsize=4)
def _kept_in(folder: Path) -> StoredRuns:
    def read(trace_id: str) -> Run | None:
        with suppress(InputError):  # it has been deleted
            return next(iter(runs_of(DirectoryStore(folder), trace_id)), None)
        return None

    return StoredRuns(read)


def kept_in(store: DirectoryStore) -> StoredRuns:
    """Keep what a store keeps, nobody's own, with what was read of it last: units stand on those just before them."""
    return _kept_in(store.folder)


def mended(store: DirectoryStore, damage: IndexDamagedError, say: Callable[[str], None] | None = None) -> None:
    """Make a damaged index again and say so. A damaged trace is left out, and told when it is asked for."""
    if say is not None:
        say(f"{damage.place}: {damage.problem}; it is made again from the traces")
    with suppress(InputError):
        index_anew(store)


def index_anew(store: DirectoryStore, progress: Callable[[int, int], None] | None = None) -> None:
    """Make the index again from the traces. Raises `InputError` where one is damaged, when the rest is done.

    `progress` is told how many of how many traces are done. Traces that come in meanwhile are noted at the end.
    """
    damaged: list[InputError] = []
    began = time.time_ns() - _CLOCK_NS

    def entries(trace_ids: Iterable[str]) -> list[Entry]:
        batch_entries: list[Entry] = []
        for trace_id in trace_ids:
            try:
                batch_entries += [entry(run, kept_in(store)) for run in runs_of(store, trace_id)]
            except InputError as error:
                damaged.append(error)
        return batch_entries

    with store.index_anew() as note:
        known_ids = sorted(store.trace_ids())
        for start in range(0, len(known_ids), _BATCH):
            note(entries(known_ids[start : start + _BATCH]))
            if progress is not None:
                progress(min(start + _BATCH, len(known_ids)), len(known_ids))
    if late := store.changed_since(began):
        store.index(entries(late))
    if damaged:
        raise damaged[0]


def died(run: Run) -> str | None:
    """Say what a run died of, as `Class: message`, or None."""
    if run.root is None or run.root.span.attributes.get("reenact.outcome") != "raised":
        return None
    attributes = run.root.span.attributes
    return f"{attributes.get('exception.type')}: {attributes.get('exception.message')}"


def raised_by(node: Node) -> str | None:
    """Say what a call raised, or None."""
    if isinstance(node.outcome, Raised):
        return f"{node.outcome.exception.qualname}: {node.outcome.exception.message}"
    return None
