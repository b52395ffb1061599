"""Cold cases of a store or of files: which runs and calls no replay can answer, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from reenact.boundary.reading import asked, frames
from reenact.find.sources import runs_in
from reenact.graph.build import build
from reenact.graph.verdict import judge
from reenact.keep.catalog import fork_of, records_of, replay_of
from reenact.keep.leftovers import leftovers
from reenact.report.times import instant
from reenact.stores.directory import DirectoryStore
from reenact.values.call import STRUCTURE, CallKind, HttpRequest, Unfinished
from reenact.values.cold import ColdCall, ColdCases, ColdRun, joined
from reenact.values.json import parsed_or_none
from reenact.values.lenient import as_object
from reenact.values.run import Grade, Node, Reason, Run, Verdict

_MODELS = frozenset({CallKind.LLM, CallKind.EMBEDDING})
_NOT_ASKED = "what it was asked was not kept, so that no call of a replay can be matched with it"
_NO_CALL = "no call of a model or tool was recorded"
_EXACT = Grade.EXACT.value
_STRUCTURE = frozenset(kind.lower() for kind in STRUCTURE)


def cold_cases(store: DirectoryStore, sources: Sequence[str]) -> ColdCases:
    """Find what is cold in these trace files, or in the store where none is named. Replays and forks do not count.

    Raises `InputError` for a source that cannot be read.
    """
    if sources:
        return joined(_of_runs(runs_in(Path(source)), source) for source in sources)
    leftovers(store)
    return joined(_in_store(store))


def _in_store(store: DirectoryStore) -> Iterator[ColdCases]:
    """Judge the runs of a store; those that its index knows to be exact are counted and not read."""
    for entry in store.find(replays=False):
        summary = as_object(parsed_or_none(entry.summary))
        if summary.get("verdict") == _EXACT:
            calls = as_object(summary.get("calls"))
            counts = [each for word, each in calls.items() if word not in _STRUCTURE and isinstance(each, int)]
            yield ColdCases(runs_read=1, calls_read=sum(counts))
            continue
        runs = build(records_of(store, entry.id), source="store")
        yield _of_runs(runs, str(store.folder))


def _of_runs(runs: Iterable[Run], source: str) -> ColdCases:
    return joined(_of_run(run, source) for run in runs if replay_of(run) is None and fork_of(run) is None)


def _of_run(run: Run, source: str) -> ColdCases:
    verdict = judge(run)
    outer = frames(run.nodes)
    calls = [node for node in run.nodes if not node.call.is_structure and node.id not in outer]
    reasons = {reason.call: reason for reason in reversed(verdict.reasons) if reason.field in {"outcome", "request"}}
    hour = instant(run.started_ns)[:13] if run.started_ns else ""
    cold_calls = [_cold(run, node, reasons, hour) for node in calls if _is_cold(node)]
    if verdict.grade is not Grade.NONE:
        return ColdCases(runs_read=1, calls_read=len(calls), calls=tuple(cold_calls))
    if not cold_calls:
        why = _of_all(verdict)
        tenant = run.tenant or ""
        cold_calls = [ColdCall(run=run.id, tenant=tenant, hour=hour, reason=why.lost, fix=why.fix)]
    cold = ColdRun(
        id=run.id,
        name=run.name,
        started=instant(run.started_ns) if run.started_ns else "",
        source=source,
        reasons=tuple(dict.fromkeys(call.reason for call in cold_calls)),
    )
    return ColdCases(runs_read=1, calls_read=len(calls), runs=(cold,), calls=tuple(cold_calls))


def _is_cold(node: Node) -> bool:
    return isinstance(node.outcome, Unfinished) or not _can_be_asked(node)


def _can_be_asked(node: Node) -> bool:
    """Tell whether a question of a replay could be found to be this one."""
    request = node.call.request
    if isinstance(request, HttpRequest):
        return bool(request.body.data) or request.method not in ("POST", "PUT", "PATCH") or bool(request.url)
    return node.kind not in _MODELS or bool(request.function) or bool(request.arguments)


def _cold(run: Run, node: Node, reasons: dict[str, Reason], hour: str) -> ColdCall:
    reason = reasons.get(node.label)
    lost, fix = (
        (reason.lost, reason.fix) if reason is not None else (_NOT_ASKED, "turn on content capture in the emitter")
    )
    return ColdCall(
        run=run.id,
        call=node.label,
        model=_model(node) if node.kind in _MODELS else "",
        tool=node.call.name if node.kind is CallKind.TOOL else "",
        tenant=run.tenant or "",
        hour=hour,
        reason=lost,
        fix=fix,
    )


def _model(node: Node) -> str:
    """Name the model as far as anything of the call says which it was."""
    request = asked(node)
    if request is not None and request.model:
        return request.model
    names = ("gen_ai.request.model", "gen_ai.response.model", "llm.model_name", "model")
    models = (node.span.attributes.get(name) for name in names)
    return next((name for name in models if isinstance(name, str) and name), "")


def _of_all(verdict: Verdict) -> Reason:
    fitting = [reason for reason in verdict.reasons if reason.field == "calls"]
    return fitting[-1] if fitting else Reason(call="run", field="calls", lost=_NO_CALL, fix="")
