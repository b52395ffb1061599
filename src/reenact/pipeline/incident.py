"""An incident page out of what the store or a file holds."""

from __future__ import annotations

import gzip
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reenact.assess.check import check
from reenact.assess.evidence import is_complete
from reenact.assess.fix import judge_fix
from reenact.compare.align import compare
from reenact.disk.whole_file import write_whole
from reenact.errors import InputError
from reenact.find.sources import RunSource, find
from reenact.formats import otlp_json
from reenact.graph.build import build
from reenact.graph.verdict import judge
from reenact.keep.catalog import replay_of, status
from reenact.pipeline.judging import Judged
from reenact.pipeline.replay_from_spans import retold
from reenact.record.surroundings import commit
from reenact.redact import in_force
from reenact.report.incident.incident import Fix, Incident, Second
from reenact.report.incident.page import page
from reenact.report.incident.story import headline, lede
from reenact.stores.directory import DirectoryStore
from reenact.values.assertion import Finding, Placed
from reenact.values.difference import divergence_to_json
from reenact.values.json import Json
from reenact.values.judgement import Comparison, FixJudgement, ReplayResult
from reenact.values.run import Run, spans_of

MOST_TRACE = 24 << 20
"""Bytes up to which a recording, packed, is put into its page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a page is to hold."""

    assertions: tuple[Placed, ...] = ()
    title: str = ""
    trace: bool = True
    """Put the recording itself in, to be saved and replayed."""
    written: str = ""
    """When, RFC 3339."""


def other_run(recording: RunSource, selector: str, store: DirectoryStore) -> RunSource:
    """Find the run that an incident is held against; `last` is the newest replay of it. Raises `InputError`."""
    if selector != "last":
        return find(selector, store)
    newest = store.find([("replay_of = ?", recording.run.id)], newest=1)
    if not newest:
        hint = f"make one: reenact replay {recording.run.id[:12]} -- python your_agent.py"
        raise InputError(str(store.folder), f"holds no replay of {recording.run.id[:12]}", hint=hint)
    return find(newest[0].id, store)


def of_runs(recording: RunSource, other: RunSource | None, wanted: Wanted) -> Incident:
    """Put together the incident of a run, held against another one or none."""
    run, replaced = shareable(recording.run)
    incident = _begun(run, recording, replaced, wanted)
    if other is None:
        findings = check(run, wanted.assertions, complete=is_complete(run))
        return replace(incident, findings=findings, commits=(_commit(run), _here()))
    against, more = shareable(other.run)
    incident = replace(incident, replaced=Counter(replaced) + Counter(more), commits=(_commit(run), _commit(against)))
    if replay_of(against) != run.id:
        return _of_another(incident, against, wanted)
    result, comparison = retold(run, against)
    judgement = judge_fix(run, against, result, wanted.assertions) if wanted.assertions else None
    return _of_replay(incident, against, result, comparison, judgement)


def of_replay(judged: Judged, wanted: Wanted) -> Incident:
    """Put together the incident of a run that was replayed just now.

    What came of the replay is told again where the recording had to be redacted first: it quotes that recording.
    """
    run, replaced = shareable(judged.found.run)
    incident = _begun(run, judged.found, replaced, wanted)
    outcome, judgement = judged.outcome, judged.judgement
    incident = replace(incident, commits=(outcome.recorded_commit, outcome.current_commit))
    result, comparison = outcome.result, compare(run, outcome.run) if outcome.run is not None else None
    if replaced and outcome.run is not None and result.result in {"same", "diverged"}:
        told_again, comparison = retold(run, outcome.run)
        result = replace(told_again, world=result.world)
        judgement = judge_fix(run, outcome.run, result, wanted.assertions) if wanted.assertions else None
    return _of_replay(incident, outcome.run, result, comparison, judgement)


def _begun(run: Run, recording: RunSource, replaced: Mapping[str, int], wanted: Wanted) -> Incident:
    return Incident(
        run=run,
        verdict=judge(run, recording.history),
        status=status(run),
        title=wanted.title,
        replaced=replaced,
        trace=_packed((run, *(shareable(each)[0] for each in (*recording.siblings, *recording.history.units))))
        if wanted.trace
        else b"",
        written=wanted.written,
    )


def _of_another(incident: Incident, against: Run, wanted: Wanted) -> Incident:
    comparison = compare(incident.run, against)
    word = "same" if comparison.same else "other words" if comparison.same_path else "diverged"
    second = Second(
        run=against,
        word=word,
        divergences=tuple(divergence_to_json(each) for each in comparison.divergences),
        more=_more(comparison),
        is_replay=False,
        status=status(against),
        findings=check(against, wanted.assertions, complete=is_complete(against)),
    )
    findings = check(incident.run, wanted.assertions, complete=is_complete(incident.run))
    return replace(incident, second=second, findings=findings)


def _of_replay(
    incident: Incident,
    against: Run | None,
    result: ReplayResult,
    comparison: Comparison | None,
    judgement: FixJudgement | None,
) -> Incident:
    structural = any(each.get("structural") for each in result.divergences)
    word = "other words" if result.result == "diverged" and not structural else result.result
    second = Second(
        run=against,
        word=word,
        divergences=tuple(result.divergences),
        more=_more(comparison) if comparison is not None else {},
        status=status(against) if against is not None else "",
        why=result.why,
        world=result.world,
        not_reached=result.not_reached,
        stopped=bool(result.misses or result.refused),
        findings=judgement.replay if judgement is not None else (),
    )
    incident = replace(incident, second=second)
    if judgement is None:
        return incident
    fix = Fix(word=judgement.word.value, why=judgement.why)
    return replace(incident, findings=judgement.recorded, fix=fix)


def _more(comparison: Comparison) -> dict[str, tuple[dict[str, Json], ...]]:
    return {node_id: tuple(map(divergence_to_json, rest)) for node_id, rest in comparison.more.items()}


def shareable(run: Run) -> tuple[Run, Mapping[str, int]]:
    """Give a run as it may be shown: where its recorder did not redact it, credentials are replaced now.

    Also gives how many were, by class.
    """
    if run.root is not None and run.root.span.attributes.get("reenact.redaction.policy"):
        return run, {}
    engine = in_force.of_run(run, os.environ).engine(os.environ)
    spans = [
        replace(
            node.span,
            attributes=engine.attributes(node.span.attributes),
            status_message=engine.text(node.span.status_message),
            events=tuple(replace(each, attributes=engine.attributes(each.attributes)) for each in node.span.events),
        )
        for node in run.nodes
    ]
    if not engine.replaced:
        return run, {}
    (again,) = [each for each in build(spans, source=run.source) if each.id == run.id]
    return again, dict(engine.replaced)


def _packed(runs: Sequence[Run]) -> bytes:
    data = otlp_json.encode(spans_of(runs))
    packed = gzip.compress(data, compresslevel=6, mtime=0)
    return packed if len(packed) <= MOST_TRACE else b""


def _commit(run: Run) -> str | None:
    fields = run.surroundings.get("commit")
    commit_id = fields.get("id") if isinstance(fields, dict) else None
    return str(commit_id) if commit_id else None


def _here() -> str | None:
    commit_id = (commit(Path.cwd()) or {}).get("id")
    return str(commit_id) if commit_id else None


def write(incident: Incident, target: Path) -> int:
    """Write the page, whole or not at all, and give its size in bytes. Raises `InputError`."""
    data = page(incident).encode()
    write_whole(target, data)
    return len(data)


def incident_document(incident: Incident) -> dict[str, Json]:
    """Say in JSON what a page says: the document of `reenact incident --json`."""
    second = incident.second
    return {
        "run": incident.run.id,
        "headline": headline(incident),
        "lede": lede(incident),
        "status": incident.status,
        "verdict": incident.verdict.grade.value,
        "second": None if second is None else (second.run.id if second.run else None),
        "compared": None if second is None else second.word,
        "first": dict(second.divergences[0]) if second is not None and second.divergences else None,
        "fix": None if incident.fix is None else {"word": incident.fix.word, "why": incident.fix.why},
        "findings": {"recorded": _findings(incident.findings), "second": _findings(second.findings if second else ())},
        "commits": {"recorded": incident.commits[0], "current": incident.commits[1]},
        "replaced": dict[str, Json](incident.replaced),
        "trace_inside": bool(incident.trace),
    }


def _findings(findings: Sequence[Finding]) -> list[Json]:
    return [
        {"assertion": each.assertion, "standing": each.standing.value, "because": each.because, "calls": [*each.nodes]}
        for each in findings
    ]
