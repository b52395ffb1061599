"""What a run is found by, and what `ls` says of it."""

from __future__ import annotations

from collections.abc import Iterable

from reenact.boundary.reading import asked
from reenact.graph.build import build
from reenact.graph.verdict import facts, judge
from reenact.report.times import instant
from reenact.stores.directory import DirectoryStore, Entry
from reenact.values.call import CallKind, FunctionCall, Raised
from reenact.values.json import Json, compact
from reenact.values.run import Node, Run
from reenact.values.span import STATUS_ERROR


def status(run: Run) -> str:
    """Say how a run ended: `ok`, `error`, `interrupted`, or `unset`."""
    if run.root is None:
        return "error" if any(node.span.status == STATUS_ERROR for node in run.nodes) else "unset"
    if run.root.span.attributes.get("reenact.incomplete"):
        return "interrupted"
    code = run.root.span.attributes.get("process.exit.code")
    return "error" if run.root.span.status == STATUS_ERROR or code not in (None, 0) else "ok"


def summary(run: Run, *, source: str = "") -> dict[str, Json]:
    """Say of a run what `ls --json` promises."""
    verdict = judge(run)
    said: dict[str, Json] = {
        "id": run.id,
        "name": run.name,
        "started": instant(run.started_ns),
        "duration_ms": round((run.ended_ns - run.started_ns) / 1e6, 3),
        "status": status(run),
        "calls": dict(facts(run.nodes)),
        "verdict": verdict.grade.value,
        "session": run.session,
        "user": run.user,
        "tenant": run.tenant,
        "models": [*sorted({name for node in run.nodes if (name := _model(node))})],
        "tools": [*sorted({node.call.name for node in run.nodes if node.kind is CallKind.TOOL})],
        "source": source or run.source,
        "replay_of": replay_of(run),
    }
    return said


def _model(node: Node) -> str | None:
    request = asked(node) if node.kind in {CallKind.LLM, CallKind.EMBEDDING} else None
    return request.model if request else None


def replay_of(run: Run) -> str | None:
    """Give the id of the run that this one replays."""
    value = run.root.span.attributes.get("reenact.replay.of") if run.root else None
    return str(value) if value else None


def entry(run: Run) -> Entry:
    """Make the store's index entry for a run: its summary, and each tool call's arguments for `--arg`."""
    said = summary(run)
    said["arguments"] = [
        [node.call.name, node.call.request.arguments]
        for node in run.nodes
        if node.kind is CallKind.TOOL and isinstance(node.call.request, FunctionCall)
    ]
    return Entry(
        id=run.id,
        name=run.name,
        started=run.started_ns,
        ended=run.ended_ns,
        status=status(run),
        session=run.session,
        user=run.user,
        tenant=run.tenant,
        recording=run.recording,
        replay_of=replay_of(run),
        summary=compact(said),
    )


def index(store: DirectoryStore, trace_ids: Iterable[str]) -> list[Run]:
    """Rebuild the runs of these traces and note them in the store's index."""
    runs = [run for trace_id in trace_ids for run in build(store.spans(trace_id), source="store")]
    if runs:
        store.index([entry(run) for run in runs])
    return runs


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
