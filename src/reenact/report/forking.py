"""What came of a fork, or of many made alike: for a person, and as a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from reenact.report import safe
from reenact.report.check_report import findings_document
from reenact.report.documents import replay_document
from reenact.values.assertion import Standing
from reenact.values.difference import divergence_to_json, one_line, short_json
from reenact.values.effects import sentence
from reenact.values.fork_outcome import Forked, Repeated
from reenact.values.json import Json
from reenact.values.judgement import Basis
from reenact.values.lenient import as_object, as_text

_MOST = 10
_WIDE = 400


def forked(fork: Forked, name: str) -> list[str]:
    """Say what was changed, what followed from it, how the path went on, and what to do next."""
    lines = [_head(fork, name)]
    lines += [f"  set {line}" for line in changes(fork.changes, fork.parameters)]
    lines += [f"  note: {note}" for note in fork.notes]
    lines += [f"  {line}" for line in _followed(fork)]
    lines += [f"  {line}" for line in _paths(fork)]
    lines += [f"  {line}" for line in _how(fork)]
    lines += [f"  {line}" for line in _finding_lines(fork)]
    if fork.run and fork.result == "forked":
        lines.append(f"  next: reenact show {fork.run[:12]}   reenact diff {fork.parent[:12]} {fork.run[:12]}")
    return [safe.clean(line).replace("\n", " ") for line in lines]


def _head(fork: Forked, name: str) -> str:
    where = f"at {fork.at}" if fork.at else "from its beginning"
    match fork.result:
        case "forked":
            return f"forked {name} {fork.parent[:12]} {where} as {(fork.run or '?')[:12]}"
        case "diverged":
            first = fork.replay.divergences[0] if fork.replay.divergences else None
            why = one_line(first, b="now") if first else "the program never asked for the changed call"
            return f"diverged before {where.removeprefix('at ')}: {why}"
        case other:
            return f"{other}: {fork.replay.why or 'nothing can be said of it'}"


def changes(changed: Sequence[dict[str, Json]], parameters: dict[str, Json]) -> Iterator[str]:
    """Say what was set, one line each."""
    for each in changed:
        before = short_json(each["from"]) if "from" in each else "absent"
        yield f"{as_text(each.get('path'))}: {before} → {short_json(each.get('to'))}"
    for name, value in parameters.items():
        yield f"{name} of every model call that goes out: {short_json(value)}"


def _followed(fork: Forked) -> Iterator[str]:
    if fork.result != "forked":
        return
    if not fork.consequences:
        yield "nothing followed: every later call was asked and answered as recorded"
    for place, each in enumerate(fork.consequences[:_MOST]):
        yield f"{'first' if not place else 'then'} {one_line(each, b='fork')}"
    if (hidden := len(fork.consequences) - _MOST) > 0:
        yield f"… {hidden} more"


def _paths(fork: Forked) -> Iterator[str]:
    if fork.result != "forked":
        return
    if fork.same_path:
        yield "path: as recorded"
        return
    shared = _shared(fork.recorded_path, fork.path)
    yield f"path, recorded: {_spelled(fork.recorded_path, shared)}"
    yield f"path, fork:     {_spelled(fork.path, shared)}{', and stopped there' if fork.stopped else ''}"


def _shared(a: Sequence[str], b: Sequence[str]) -> int:
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _spelled(path: Sequence[str], shared: int) -> str:
    """Spell a path; what it shares with the other one at its beginning is counted where it is long."""
    start = max(0, shared - 2)
    steps = [*([f"{start} calls"] if start else []), *path[start:]]
    text = " → ".join(steps) if steps else "no call"
    return text if len(text) <= _WIDE else f"{text[:_WIDE]} …"


def _how(fork: Forked) -> Iterator[str]:
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(fork.replay.answered.items())) or "no"
    beyond = f" ({fork.replay.beyond} with the nearest answer: no evidence)" if fork.replay.beyond else ""
    yield f"{counts} calls answered from the recording{beyond}, {fork.replay.live} live"
    for miss in fork.replay.misses[-1:] if fork.stopped else []:
        yield f"stopped at {fork.stopped}, asked at {as_text(miss.get('where'))}: nobody recorded it"
    for entry in fork.replay.refused[:_MOST]:
        yield f"refused: {as_text(entry.get('what'))} at {as_text(entry.get('where'))}"
    if fork.stopped and fork.replay.misses:
        model = fork.stopped.startswith(("llm ", "embedding "))
        live = "--after live-models or --models live" if model else "or --tools live, which calls it for real"
        yield f"to go on there: --after nearest, {live}; or say what it answers, in a fork of this fork"
    if fork.replay.world:
        yield f"outside world: {sentence(fork.replay.world, fork.replay.ways_out)}"


_BASES = {Basis.NEAREST: "; on answers that are no evidence", Basis.LIVE: "; on live answers"}


def _finding_lines(fork: Forked) -> Iterator[str]:
    """Say how assertions stand, and what decided them."""
    for each, basis in zip(fork.findings, fork.bases, strict=True):
        on = _BASES.get(basis, "") if basis is not None else ""
        yield f"{each.standing.value}: {each.assertion} ({each.because}{on})"


def repeated(several: Repeated, name: str) -> list[str]:
    """Sum up several forks: how many took the recorded path, which others there were, what was called how often."""
    count = len(several.forks)
    first = several.forks[0]
    where = f"at {first.at}" if first.at else "from its beginning"
    lines = [f"forked {name} {first.parent[:12]} {where} {count} times: {several.same_path} took the recorded path"]
    lines += [f"  set {line}" for line in changes(first.changes, first.parameters)]
    failed = [each for each in several.forks if each.result != "forked"]
    lines += [f"  {each.result}: {each.replay.why or _head(each, name)}" for each in failed[:_MOST]]
    lines.append(f"  {len(several.paths)} distinct paths:")
    for path, times in several.paths[:_MOST]:
        mark = " (recorded)" if path == first.recorded_path else ""
        lines.append(f"    {times}×{mark} {_spelled(path, 0)}")
    if (hidden := len(several.paths) - _MOST) > 0:
        lines.append(f"    … {hidden} more")
    died = Counter(each.died for each in several.forks if each.died)
    lines += [f"  {times} ended with {what}" for what, times in died.most_common(_MOST)]
    for tool, (calls, forks, recorded) in several.tools.items():
        lines.append(f"  {tool}: {calls} calls in {forks} of {count} forks; recorded {recorded}")
    for assertion, standings in several.findings.items():
        verdicts = ", ".join(f"{standing.value} in {standings[standing.value]}" for standing in Standing)
        lines.append(f"  {assertion}: {verdicts}")
    live = sum(each.replay.live for each in several.forks)
    lines += [f"  note: {note}" for note in dict.fromkeys(note for each in several.forks for note in each.notes)]
    lines.append(f"  {live} live model calls; runs {_run_list([each.run or '?' for each in several.forks])}")
    return [safe.clean(line).replace("\n", " ") for line in lines]


def _run_list(runs: Sequence[str]) -> str:
    shown_runs = ", ".join(run[:12] for run in runs[:5])
    return f"{shown_runs}{f' and {len(runs) - 5} more' if len(runs) > 5 else ''}"


def fork_document(fork: Forked) -> dict[str, Json]:
    """Make the document of `reenact fork`. `replay` is as in the document of a replay."""
    first = fork.consequences[0] if fork.consequences else None
    return {
        "result": fork.result,
        "parent": fork.parent,
        "fork": fork.run,
        "at": fork.at,
        "changes": [dict(each) for each in fork.changes],
        "parameters": dict(fork.parameters),
        "first": divergence_to_json(first) if first is not None else None,
        "consequences": [divergence_to_json(each) for each in fork.consequences],
        "same_path": fork.same_path,
        "path": {"recorded": [*fork.recorded_path], "fork": [*fork.path]},
        "stopped": fork.stopped or None,
        "died": fork.died or None,
        "notes": [*fork.notes],
        "exit_code": fork.replay.exit_code,
        "findings": [
            {**as_object(finding), "basis": basis.value if basis is not None else None}
            for finding, basis in zip(findings_document(fork.findings), fork.bases, strict=True)
        ],
        "replay": as_object(replay_document(fork.replay, recorded=fork.parent)),
    }


def repeated_document(several: Repeated) -> dict[str, Json]:
    """Make the document of `reenact fork --repeat`."""
    first = several.forks[0]
    return {
        "parent": first.parent,
        "at": first.at,
        "changes": [dict(each) for each in first.changes],
        "parameters": dict(first.parameters),
        "count": len(several.forks),
        "same_path": several.same_path,
        "paths": [
            {"times": times, "path": [*path], "recorded": path == first.recorded_path} for path, times in several.paths
        ],
        "tools": {
            name: {"calls": calls, "forks": forks, "recorded": recorded}
            for name, (calls, forks, recorded) in several.tools.items()
        },
        "findings": {name: dict[str, Json](standings) for name, standings in several.findings.items()},
        "forks": [fork_document(each) for each in several.forks],
    }
