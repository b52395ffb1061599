"""What looking around a recorded run brought to light, for a person and as the document of `reenact fuzz --json`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from reenact.report import safe
from reenact.values.difference import Absent, short_json
from reenact.values.fuzz_outcome import Fuzzed
from reenact.values.json import Json, compact
from reenact.values.variation import Basis, Case, Discovery, Group, Honesty, Variation

_WIDTH = 100
_LONGEST_SET = 200
_SETTABLE = ("result", "reply", "tool_calls", "text", "raised", "status")
"""How places begin that `reenact fork --set` knows."""
_ASIDE = {
    Basis.EVIDENCE: "",
    Basis.NEAREST: "before it a request that nobody recorded got the nearest recorded answer: that part is no evidence",
}


def fuzz_lines(fuzz: Fuzzed) -> list[str]:
    """Say what was found, each thing with the case that shows it and the command that shows it again."""
    lines = [_head(fuzz)]
    if fuzz.before != "same":
        lines.append(f"  with no variation this code already leaves the recording: {fuzz.before_first}")
    for number, discovery in enumerate(fuzz.discoveries, 1):
        lines += [f"  {line}" for line in _discovery(number, discovery, fuzz)]
    lines += [f"  {line}" for line in _keys(fuzz)]
    lines += [f"  {line}" for line in _tried(fuzz)]
    return [safe.one_line(line) if not line.startswith(" ") else _indented(line) for line in lines]


def _indented(line: str) -> str:
    blanks = len(line) - len(line.lstrip(" "))
    return " " * blanks + safe.clean(line[blanks:]).replace("\n", " ")


def _head(fuzz: Fuzzed) -> str:
    altered = sum(each.path is Honesty.ALTERED for each in fuzz.keys)
    count = len(fuzz.discoveries)
    beyond = sum(each.basis is Basis.NEAREST for each in fuzz.discoveries)
    phrases = [f"found {count}"] if count else []
    phrases += [f"{beyond} of them beyond the evidence"] if beyond else []
    heeded = "1 ignored field that alters" if altered == 1 else f"{altered} ignored fields that alter"
    phrases += [f"{'' if phrases else 'found '}{heeded} the path"] if altered else []
    nothing = "nothing tried" if fuzz.nothing_tried else "nothing found"
    return f"{', '.join(phrases) or nothing}: {fuzz.name} {fuzz.run[:12]}, {_cases(fuzz.cases)}, seed {fuzz.seed}"


def _cases(count: int) -> str:
    return "1 case" if count == 1 else f"{count} cases"


def _discovery(number: int, discovery: Discovery, fuzz: Fuzzed) -> Iterator[str]:
    yield f"{number}. {discovery.harm.value}: {discovery.what}{f'  at {discovery.where}' if discovery.where else ''}"
    for each in discovery.case.variations:
        yield f"     {variation(each)}"
    if discovery.because:
        yield f"     {discovery.because}"
    if discovery.also:
        yield f"     likewise: {'; '.join(discovery.also[:4])}"
    if aside := _ASIDE[discovery.basis]:
        yield f"     {aside}"
    if not discovery.steady:
        yield "     not seen again when the case was run once more"
    times = "once" if discovery.seen == 1 else f"in {discovery.seen} cases"
    yield f"     seen {times}; again: {again(discovery, fuzz)}"
    if fork := forked(discovery.case, fuzz):
        yield f"     as a fork: {fork}"


def variation(each: Variation) -> str:
    """Say a variation in one line: the call, the place, both values."""
    at = f"{each.call}: {each.path}" if each.path else each.call
    if isinstance(each.before, Absent) and isinstance(each.after, Absent):
        return f"{at}: {each.description}"
    after = "left out" if isinstance(each.after, Absent) else short_json(each.after, _WIDTH)
    before = "" if isinstance(each.before, Absent) else f"{short_json(each.before, _WIDTH)} → "
    return f"{at}: {before}{after}  ({each.description})"


def again(discovery: Discovery, fuzz: Fuzzed) -> str:
    """Give the command that runs exactly this case again: a replay of its run, or the case by its number."""
    if discovery.run and discovery.replays:
        return f"reenact replay {discovery.run[:12]}"
    only = "" if len(fuzz.groups) == len(Group) else f" --only {','.join(fuzz.groups)}"
    program = f" -- {shlex.join(fuzz.command)}" if fuzz.command else ""
    return f"reenact fuzz {shlex.quote(fuzz.named)} --seed {fuzz.seed}{only} --case {discovery.case.number}{program}"


def forked(case: Case, fuzz: Fuzzed) -> str:
    """Give the command that makes a fork with this one change; empty where a fork has no word for it."""
    first = case.variations[0]
    number = first.call.rpartition("#")[2]
    if isinstance(first.after, Absent) or not (first.path.startswith(_SETTABLE) and number.isdigit()):
        return ""
    if len(case.variations) > 1 or (first.path == "status" and first.edits[0].before):
        return ""
    value = compact(first.after)
    if len(value) > _LONGEST_SET:
        return ""
    program = f" -- {shlex.join(fuzz.command)}" if fuzz.command else ""
    change = shlex.quote(f"{first.path}={value}")
    return f"reenact fork {shlex.quote(fuzz.named)} --at '#{number}' --set {change} --after nearest{program}"


def _keys(fuzz: Fuzzed) -> Iterator[str]:
    if not fuzz.keys:
        return
    width = max(len(each.field) for each in fuzz.keys)
    yield f"{'ignored field':{width}}  calls  path"
    for each in fuzz.keys:
        first = f": {each.first}" if each.first else ""
        shows = f"; again: reenact replay {each.run[:12]}" if each.run else ""
        word = "altered, the key is not honest about it" if each.path is Honesty.ALTERED else each.path.value
        yield f"{each.field:{width}}  {each.calls:5}  {word}{first}{shows}"


def _tried(fuzz: Fuzzed) -> Iterator[str]:
    counts = [f"{fuzz.tried[group.value]} {group.value}" for group in Group if fuzz.tried.get(group.value)]
    yield f"tried: {', '.join(counts) or 'nothing'}{'; there is nothing left to vary' if fuzz.exhausted else ''}"
    if fuzz.kinds:
        yield f"ways: {', '.join(f'{count} {kind}' for kind, count in sorted(fuzz.kinds.items()))}"
    for group, why in fuzz.untouched.items():
        yield f"not tried: {group}: {why}"
    if fuzz.stopped:
        yield f"stopped by {fuzz.stopped}: what was found until then is told, and not made smaller or kept in the store"
    if fuzz.unjudged:
        yield f"{_cases(fuzz.unjudged)} could not be judged"
    speed = fuzz.runs / fuzz.seconds if fuzz.seconds else 0.0
    yield f"{fuzz.runs} runs of the program in {fuzz.seconds:.1f} s, {speed:.1f} a second, {fuzz.jobs} at a time"


def fuzz_document(fuzz: Fuzzed) -> dict[str, Json]:
    """Make the document of `reenact fuzz`."""
    return {
        "run": fuzz.run,
        "name": fuzz.name,
        "seed": fuzz.seed,
        "cases": fuzz.cases,
        "tried": dict[str, Json](fuzz.tried),
        "kinds": dict[str, Json](fuzz.kinds),
        "not_tried": dict[str, Json](fuzz.untouched),
        "exhausted": fuzz.exhausted,
        "unjudged": fuzz.unjudged,
        "after": fuzz.after,
        "before": {"result": fuzz.before, "first": fuzz.before_first or None},
        "found": [_found_document(each, fuzz) for each in fuzz.discoveries],
        "keys": [
            {
                "field": each.field,
                "calls": each.calls,
                "path": each.path.value,
                "first": each.first or None,
                "run": each.run or None,
            }
            for each in fuzz.keys
        ],
        "runs": fuzz.runs,
        "seconds": round(fuzz.seconds, 3),
        "jobs": fuzz.jobs,
        "ready": fuzz.ready,
        "stopped": fuzz.stopped or None,
    }


def _found_document(discovery: Discovery, fuzz: Fuzzed) -> dict[str, Json]:
    return {
        "harm": discovery.harm.value,
        "what": discovery.what,
        "where": discovery.where or None,
        "because": discovery.because or None,
        "also": [*discovery.also],
        "basis": discovery.basis.value,
        "seen": discovery.seen,
        "steady": discovery.steady,
        "run": discovery.run or None,
        "again": again(discovery, fuzz),
        "fork": forked(discovery.case, fuzz) or None,
        "case": {
            "number": discovery.case.number,
            "size": discovery.case.size,
            "variations": [_variation_document(each) for each in discovery.case.variations],
        },
    }


def _variation_document(each: Variation) -> dict[str, Json]:
    absent: list[Json] = [
        side for side, value in (("before", each.before), ("after", each.after)) if isinstance(value, Absent)
    ]
    return {
        "kind": each.kind,
        "group": each.group.value,
        "call": each.call,
        "node": each.node or None,
        "path": each.path or None,
        "before": None if isinstance(each.before, Absent) else each.before,
        "after": None if isinstance(each.after, Absent) else each.after,
        "absent": absent,
        "said": each.description,
    }
