"""What looking around a recorded run brought to light, for a person and as the document of `reenact fuzz --json`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from reenact.report import safe
from reenact.values.difference import Absent, shown
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


def fuzz_lines(told: Fuzzed) -> list[str]:
    """Say what was found, each thing with the case that shows it and the command that shows it again."""
    lines = [_head(told)]
    if told.before != "same":
        lines.append(f"  with no variation this code already leaves the recording: {told.before_first}")
    for number, found in enumerate(told.discoveries, 1):
        lines += [f"  {line}" for line in _discovery(number, found, told)]
    lines += [f"  {line}" for line in _keys(told)]
    lines += [f"  {line}" for line in _tried(told)]
    return [safe.one_line(line) if not line.startswith(" ") else _indented(line) for line in lines]


def _indented(line: str) -> str:
    blanks = len(line) - len(line.lstrip(" "))
    return " " * blanks + safe.clean(line[blanks:]).replace("\n", " ")


def _head(told: Fuzzed) -> str:
    altered = sum(each.path is Honesty.ALTERED for each in told.keys)
    count = len(told.discoveries)
    beyond = sum(each.basis is Basis.NEAREST for each in told.discoveries)
    found = [f"found {count}"] if count else []
    found += [f"{beyond} of them beyond the evidence"] if beyond else []
    heeded = "1 ignored field that alters" if altered == 1 else f"{altered} ignored fields that alter"
    found += [f"{'' if found else 'found '}{heeded} the path"] if altered else []
    nothing = "nothing tried" if told.nothing_tried else "nothing found"
    return f"{', '.join(found) or nothing}: {told.name} {told.run[:12]}, {_cases(told.cases)}, seed {told.seed}"


def _cases(count: int) -> str:
    return "1 case" if count == 1 else f"{count} cases"


def _discovery(number: int, found: Discovery, told: Fuzzed) -> Iterator[str]:
    yield f"{number}. {found.harm.value}: {found.what}{f'  at {found.where}' if found.where else ''}"
    for each in found.case.variations:
        yield f"     {variation(each)}"
    if found.because:
        yield f"     {found.because}"
    if found.also:
        yield f"     likewise: {'; '.join(found.also[:4])}"
    if aside := _ASIDE[found.basis]:
        yield f"     {aside}"
    if not found.steady:
        yield "     not seen again when the case was run once more"
    times = "once" if found.seen == 1 else f"in {found.seen} cases"
    yield f"     seen {times}; again: {again(found, told)}"
    if fork := forked(found.case, told):
        yield f"     as a fork: {fork}"


def variation(each: Variation) -> str:
    """Say a variation in one line: the call, the place, both values."""
    at = f"{each.call}: {each.path}" if each.path else each.call
    if isinstance(each.before, Absent) and isinstance(each.after, Absent):
        return f"{at}: {each.said}"
    after = "left out" if isinstance(each.after, Absent) else shown(each.after, _WIDTH)
    before = "" if isinstance(each.before, Absent) else f"{shown(each.before, _WIDTH)} → "
    return f"{at}: {before}{after}  ({each.said})"


def again(found: Discovery, told: Fuzzed) -> str:
    """Give the command that runs exactly this case again: a replay of its run, or the case by its number."""
    if found.run and found.replays:
        return f"reenact replay {found.run[:12]}"
    only = "" if len(told.groups) == len(Group) else f" --only {','.join(told.groups)}"
    program = f" -- {shlex.join(told.command)}" if told.command else ""
    return f"reenact fuzz {shlex.quote(told.named)} --seed {told.seed}{only} --case {found.case.number}{program}"


def forked(case: Case, told: Fuzzed) -> str:
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
    program = f" -- {shlex.join(told.command)}" if told.command else ""
    change = shlex.quote(f"{first.path}={value}")
    return f"reenact fork {shlex.quote(told.named)} --at '#{number}' --set {change} --after nearest{program}"


def _keys(told: Fuzzed) -> Iterator[str]:
    if not told.keys:
        return
    width = max(len(each.field) for each in told.keys)
    yield f"{'ignored field':{width}}  calls  path"
    for each in told.keys:
        first = f": {each.first}" if each.first else ""
        shows = f"; again: reenact replay {each.run[:12]}" if each.run else ""
        word = "altered, the key is not honest about it" if each.path is Honesty.ALTERED else each.path.value
        yield f"{each.field:{width}}  {each.calls:5}  {word}{first}{shows}"


def _tried(told: Fuzzed) -> Iterator[str]:
    counts = [f"{told.tried[group.value]} {group.value}" for group in Group if told.tried.get(group.value)]
    yield f"tried: {', '.join(counts) or 'nothing'}{'; there is nothing left to vary' if told.exhausted else ''}"
    if told.kinds:
        yield f"ways: {', '.join(f'{count} {kind}' for kind, count in sorted(told.kinds.items()))}"
    for group, why in told.untouched.items():
        yield f"not tried: {group}: {why}"
    if told.stopped:
        yield f"stopped by {told.stopped}: what was found until then is told, and not made smaller or kept in the store"
    if told.unjudged:
        yield f"{_cases(told.unjudged)} could not be judged"
    speed = told.runs / told.seconds if told.seconds else 0.0
    yield f"{told.runs} runs of the program in {told.seconds:.1f} s, {speed:.1f} a second, {told.jobs} at a time"


def fuzz_document(told: Fuzzed) -> dict[str, Json]:
    """Make the document of `reenact fuzz`."""
    return {
        "run": told.run,
        "name": told.name,
        "seed": told.seed,
        "cases": told.cases,
        "tried": dict[str, Json](told.tried),
        "kinds": dict[str, Json](told.kinds),
        "not_tried": dict[str, Json](told.untouched),
        "exhausted": told.exhausted,
        "unjudged": told.unjudged,
        "after": told.after,
        "before": {"result": told.before, "first": told.before_first or None},
        "found": [_found_document(each, told) for each in told.discoveries],
        "keys": [
            {
                "field": each.field,
                "calls": each.calls,
                "path": each.path.value,
                "first": each.first or None,
                "run": each.run or None,
            }
            for each in told.keys
        ],
        "runs": told.runs,
        "seconds": round(told.seconds, 3),
        "jobs": told.jobs,
        "ready": told.ready,
        "stopped": told.stopped or None,
    }


def _found_document(found: Discovery, told: Fuzzed) -> dict[str, Json]:
    return {
        "harm": found.harm.value,
        "what": found.what,
        "where": found.where or None,
        "because": found.because or None,
        "also": [*found.also],
        "basis": found.basis.value,
        "seen": found.seen,
        "steady": found.steady,
        "run": found.run or None,
        "again": again(found, told),
        "fork": forked(found.case, told) or None,
        "case": {
            "number": found.case.number,
            "size": found.case.size,
            "variations": [_variation_document(each) for each in found.case.variations],
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
        "said": each.said,
    }
