"""Forking a run: recorded up to a call, changed there, then by policy. A fork is a run of its own, its parent named."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from reenact.assess.check import check
from reenact.compare.consequences import MISSED, ForkChange, consequences
from reenact.compare.ending import died_of
from reenact.compare.path import path_of
from reenact.errors import CannotJudge, UsageError
from reenact.find.altering import Altered, Branch
from reenact.find.sources import RunSource
from reenact.pipeline.parentage import bound_to_us
from reenact.pipeline.replaying import Replayed, Start, printing, replay
from reenact.redact import in_force
from reenact.replay.after_divergence import EVIDENCE
from reenact.replay.call_lookup import call_named
from reenact.replay.changes import Changed, asks, describe_changes, resolved
from reenact.replay.forking import Fork
from reenact.replay.policy import MODELS, Policy, Source
from reenact.stores.directory import DirectoryStore
from reenact.values.assertion import Finding, Placed, Standing
from reenact.values.call import HttpRequest
from reenact.values.change import Change
from reenact.values.difference import Absent
from reenact.values.fork_outcome import Forked, Repeated
from reenact.values.json import Json, compact, parse
from reenact.values.json_path import parse_path
from reenact.values.judgement import Basis
from reenact.values.run import FORK_AT, FORK_CHANGES, FORK_PARAMETERS, FORK_PARENT, Node, Run

_NOWHERE = Path()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a fork is to change."""

    at: str
    """The call, as somebody named it; empty for the beginning."""
    values: tuple[tuple[str, Json], ...]
    """Paths of the call, and what to set there."""
    parameters: Mapping[str, Json]
    """What every model call from there on is to be asked with; null takes a field away."""
    policy: Policy
    """What answers from there on."""
    assertions: tuple[Placed, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A fork that makes sense, ready to be run."""

    found: RunSource
    """The run, altered."""
    policy: Policy
    at: Node | None
    changed: tuple[Changed, ...]
    asked: frozenset[str]
    """Ids of calls that are asked something else."""
    parameters: Mapping[str, Json]
    assertions: tuple[Placed, ...]
    notes: tuple[str, ...] = ()


def prepare(recording: RunSource, wanted: Wanted, environ: Mapping[str, str] | None = None) -> Prepared:
    """Check what is wanted against the run. Raises `UsageError` where it makes no sense; nothing has run then.

    Values pass the redaction of the recording: where one holds a credential, its token is set.
    """
    run = recording.run
    if not wanted.at and wanted.values:
        raise UsageError("--set needs --at CALL: the call in which it is set", hint=_calls(run))
    if not wanted.at and not wanted.parameters and wanted.policy.models is Source.RECORDED:
        raise UsageError("nothing is changed: give --at CALL with --set, or --model, --temperature or --param")
    node = call_named(run, wanted.at) if wanted.at else None
    clean = _redaction(run, os.environ if environ is None else environ)
    edits = [(path, value, clean(path, value)) for path, value in (*wanted.values, *wanted.parameters.items())]
    notes = tuple(f"{path} holds a credential: its token is set" for path, value, setting in edits if setting != value)
    cleaned = [(path, setting) for path, _, setting in edits[: len(wanted.values)]]
    changes = tuple(Change(call=node.id, path=path, value=value) for path, value in cleaned if node is not None)
    if node is not None and not changes:
        resolved(run, [Change(call=node.id, path="", value=None)])
    parameters = {path: setting for path, _, setting in edits[len(wanted.values) :]}
    policy = replace(wanted.policy, models=Source.LIVE) if parameters else wanted.policy
    asked = frozenset(change.call for change in changes if asks(change))
    changed = tuple(describe_changes(run, changes))
    _check(node, changes, asked, parameters, policy)
    fork = Fork(
        marker=_NOWHERE,
        at=frozenset([node.id] if node is not None else []),
        sent=_live_calls(node, changes, asked, policy),
        requests={node.id: tuple(filter(asks, changes))} if node is not None else {},
        parameters=parameters,
    )
    branch = Branch(fork=fork, root=_root(run, node, changed, parameters))
    altered = Altered(changes=tuple(each for each in changes if not asks(each)), branch=branch)
    return Prepared(
        found=replace(recording, altered=altered),
        policy=policy,
        at=node,
        changed=changed,
        asked=asked,
        parameters=parameters,
        assertions=wanted.assertions,
        notes=notes,
    )


def _calls(run: Run) -> str:
    labels = [node.label for node in run.nodes if not node.call.is_structure][:20]
    return f"its calls are {', '.join(labels)}"


def _check(
    node: Node | None,
    changes: Sequence[Change],
    asked: frozenset[str],
    parameters: Mapping[str, Json],
    policy: Policy,
) -> None:
    if "stream" in parameters:
        raise UsageError("the program chose whether it reads a stream: `stream` cannot be set")
    for name in parameters:
        try:
            parse_path(name)
        except ValueError as error:
            raise UsageError(str(error)) from error
    if node is None:
        return
    if asked and policy.models is not Source.LIVE:
        raise UsageError(
            f"{node.label}: with another request it has to be asked again, and no recording answers that",
            hint="add `--models live`: the model is asked then, here and from here on",
        )
    if asked and not all(map(asks, changes)):
        raise UsageError(
            f"{node.label}: set its request or its answer, not both: a new question gets an answer of its own"
        )
    if not changes and policy.models is Source.RECORDED:
        raise UsageError(
            f"nothing is changed at {node.label}",
            hint="say what: `--set path=value`, or ask the model from here on again: `--models live`, `--model NAME`",
        )


def _live_calls(node: Node | None, changes: Sequence[Change], asked: frozenset[str], policy: Policy) -> frozenset[str]:
    """Say which calls go out although they were recorded: the one that is forked at, unless its answer is set."""
    if node is None or policy.models is not Source.LIVE or node.kind not in MODELS:
        return asked
    over_http = isinstance(node.call.request, HttpRequest)
    return asked | frozenset([node.id] if over_http and all(map(asks, changes)) else [])


def _redaction(run: Run, environ: Mapping[str, str]) -> Callable[[str, Json], Json]:
    engine = in_force.of_run(run, environ).engine(environ)

    def clean(path: str, value: Json) -> Json:
        """Scrub a value under the name that it gets: some names make a secret of anything."""
        try:
            name = str(next(iter(reversed(parse_path(path))), ""))
        except ValueError:
            name = ""
        cleaned = parse(engine.text(compact({name: value})))
        return cleaned[name] if isinstance(cleaned, dict) and name in cleaned else value

    return clean


def _root(run: Run, node: Node | None, changed: Sequence[Changed], parameters: Mapping[str, Json]) -> dict[str, Json]:
    attributes: dict[str, Json] = {FORK_PARENT: run.id}
    if node is not None:
        attributes[FORK_AT] = node.label
    if changed:
        attributes[FORK_CHANGES] = compact([change_document(each) for each in changed])
    if parameters:
        attributes[FORK_PARAMETERS] = compact(dict(parameters))
    return attributes


def change_document(changed: Changed) -> dict[str, Json]:
    """Spell a change as documents and spans have it."""
    document: dict[str, Json] = {"call": changed.node.label, "id": changed.node.id, "path": changed.path}
    if not isinstance(changed.before, Absent):
        document["from"] = changed.before
    return document | {"to": changed.after}


def fork(
    prepared: Prepared,
    argv: Sequence[str],
    cwd: Path,
    store: DirectoryStore,
    *,
    stdout: IO[bytes] | None = None,
    start: Start | None = None,
) -> Forked:
    """Run the program as a fork. Raises `CannotJudge` where it cannot be started."""
    replayed = replay(prepared.found, argv, cwd, prepared.policy, store, start=start or printing(stdout))
    return _forked(prepared, replayed)


def _forked(prepared: Prepared, replayed: Replayed) -> Forked:
    parent, own, result = prepared.found.run, replayed.run, replayed.result
    at = next((at for at, entry in enumerate(replayed.entries) if entry["t"] == "forked"), None)
    ends = [entry for entry in replayed.entries if entry["t"] in {"miss", "refused"} and not entry.get("onward")]
    stopped = _stopped(own, ends)
    word = "forked" if at is not None else ("diverged" if result.result in {"same", "diverged"} else result.result)
    intervention = ForkChange(
        answered=frozenset(each.node.id for each in prepared.changed) - prepared.asked,
        asked=prepared.asked,
        parameters=frozenset(prepared.parameters),
        stopped=bool(ends),
    )
    followed = consequences(parent, own, intervention) if own is not None and word == "forked" else ()
    findings = check(own, prepared.assertions, complete=not ends) if own is not None and prepared.assertions else ()
    return Forked(
        result=word,
        parent=parent.id,
        run=own.id if own is not None else None,
        at=prepared.at.label if prepared.at is not None else "",
        changes=tuple(change_document(each) for each in prepared.changed),
        parameters=dict(prepared.parameters),
        consequences=followed,
        recorded_path=path_of(parent),
        path=path_of(own) if own is not None else (),
        stopped=stopped,
        died="" if ends else _died(own, replayed.exit_code),
        notes=(*prepared.notes, *_unfit(replayed.entries)),
        replay=result,
        findings=findings,
        bases=_bases(own, prepared.assertions, findings) if own is not None else (),
    )


def _bases(own: Run, assertions: Sequence[Placed], findings: Sequence[Finding]) -> tuple[Basis | None, ...]:
    """Say what decided each finding: what came before the first answer that is not the recorded one, or that."""
    if not findings:
        return ()
    marks = {"live": "reenact.replay.live", "other": EVIDENCE}
    first = {
        what: min((node.number for node in own.nodes if node.span.attributes.get(name)), default=None)
        for what, name in marks.items()
    }
    cuts = [number for number in first.values() if number is not None]
    if not cuts:
        return tuple(Basis.RECORDED if each.standing is not Standing.UNDECIDED else None for each in findings)
    before = replace(own, nodes=tuple(node for node in own.nodes if node.number < min(cuts)))
    early = check(before, assertions, complete=False)
    later = Basis.NEAREST if first["other"] is not None else Basis.LIVE
    return tuple(
        None if each.standing is Standing.UNDECIDED else Basis.RECORDED if earlier.standing is each.standing else later
        for each, earlier in zip(findings, early, strict=True)
    )


def _unfit(entries: Sequence[Mapping[str, Json]]) -> list[str]:
    """Say which parameters had no place in how many requests."""
    counts = Counter(str(entry["parameter"]) for entry in entries if entry["t"] == "unfit")
    return [f"{name} has no place in {times} of the requests that went out" for name, times in counts.items()]


def _died(own: Run | None, code: int) -> str:
    return (died_of(own) if own is not None else None) or (f"exit code {code}" if code else "")


def _stopped(own: Run | None, ends: Sequence[Mapping[str, Json]]) -> str:
    """Say what ended it: the first call that nobody recorded, or the first side effect that was refused."""
    if not ends:
        return ""
    first = ends[0]
    missed = next((node for node in own.nodes if MISSED in node.span.attributes), None) if own is not None else None
    if first["t"] == "miss" and missed is not None:
        return missed.label
    return str(first.get("what") if first["t"] == "refused" else first.get("call"))


def repeat(
    prepared: Prepared,
    argv: Sequence[str],
    cwd: Path,
    store: DirectoryStore,
    times: int,
    *,
    heard: Callable[[int, Forked], None] | None = None,
) -> Repeated:
    """Fork the same way several times, one after the other, what the program prints thrown away, and count."""
    forks: list[Forked] = []
    for number in range(1, times + 1):
        forks.append(fork(_numbered(prepared, number), argv, cwd, store, start=_quietly))
        if heard is not None:
            heard(number, forks[-1])
    return counted(forks, prepared.found.run)


def _numbered(prepared: Prepared, number: int) -> Prepared:
    """Have what each fork of several wrote kept in a folder of its own."""
    policy = prepared.policy
    if not policy.keep:
        return prepared
    return replace(prepared, policy=replace(policy, keep=str(Path(policy.keep, str(number)))))


def _quietly(argv: Sequence[str], cwd: Path, environ: Mapping[str, str]) -> int:
    null = subprocess.DEVNULL
    try:
        process = subprocess.run(
            list(argv),
            cwd=cwd,
            env=dict(environ),
            stdin=null,
            stdout=null,
            stderr=null,
            check=False,
            preexec_fn=bound_to_us(),
        )
    except OSError as error:
        raise CannotJudge(f"cannot start {argv[0]!r}: {error.strerror}", hint="give the program after `--`") from error
    return process.returncode


def counted(forks: Sequence[Forked], parent: Run) -> Repeated:
    """Sum several forks up."""
    paths = Counter((*each.path, *(["…"] if each.stopped else [])) for each in forks)
    recorded = _functions(path_of(parent))
    calls, where = Counter[str](), Counter[str]()
    for each in forks:
        used = _functions(each.path)
        calls.update(used)
        where.update(used.keys())
    findings: dict[str, Counter[str]] = {}
    for each in forks:
        for finding in each.findings:
            findings.setdefault(finding.assertion, Counter()).update([finding.standing.value])
    names = sorted({*calls, *recorded})
    return Repeated(
        forks=tuple(forks),
        same_path=sum(each.same_path for each in forks),
        paths=tuple(paths.most_common()),
        tools={name: (calls[name], where[name], recorded[name]) for name in names},
        findings=findings,
    )


def _functions(path: Sequence[str]) -> Counter[str]:
    """Count the functions of a path, by name."""
    return Counter(step.partition("(")[0] for step in path if "(" in step)
