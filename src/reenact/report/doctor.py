"""How far a recording can be replayed and what would get it further, for a person."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from reenact.report import safe
from reenact.values.protection import Protection, in_words
from reenact.values.redaction_marks import spelled
from reenact.values.run import SIDE_EFFECT, Grade, KitItem, Reason, ReplacedInputs, Verdict

MEANS = {
    Grade.EXACT: "everything that a replay needs was recorded",
    Grade.PARTIAL: "it can be replayed, less what is named here",
    Grade.NONE: "nothing in it can answer a call; it is kept as a cold case",
}
"""What each grade says, in half a sentence."""
_SIGNS = {"present": "+", "missing": "-", "partial": "~", "not applicable": " "}
_EFFECT = re.compile(r"(?P<verb>\w+ )(?P<what>.+) at (?P<line>.+:\d+)(?P<rest>: .*)", re.DOTALL)
"""A side effect, as the verdict tells it: `write /srv/a.txt at agent.py:8: a replay refuses it`."""
_NAMED = 3
_GIVEN = 10


def verdict_line(verdict: Verdict) -> str:
    """Say a verdict in one line."""
    redaction = f", up to redaction ({verdict.redacted} values replaced)" if verdict.redacted else ""
    return f"{verdict.grade.value}{redaction}: {MEANS[verdict.grade]}"


def verdict_words(verdict: Verdict) -> str:
    """Say a verdict in two words, for a line that says other things."""
    return f"{verdict.grade.value}{', up to redaction' if verdict.replaced_inputs else ''}"


def doctor(verdict: Verdict, redaction: Protection | None = None) -> list[str]:
    """Say a verdict, what was lost with the line that would keep it, the replay kit item by item, and the redaction."""
    lines = [verdict_line(verdict), *given_lines(verdict.replaced_inputs)]
    protected = in_words(redaction) if redaction is not None else ""
    if redaction is not None and redaction.failed:
        lines.append(f"  {protected}")
    for reason, calls in grouped(verdict.reasons):
        lines.append(f"  {listed(calls)}: {reason.field}: {reason.lost}")
        if reason.fix:
            lines.append(f"      {reason.fix}")
    if verdict.kit:
        lines.append("replay kit")
        wide = max(len(item.name) for item in verdict.kit)
        lines += [_item(item, wide) for item in verdict.kit]
    if redaction is not None and protected and not redaction.failed:
        lines.append(protected)
        if redaction.unscanned:
            lines.append(f"  {redaction.unscanned} texts could not be scanned in time, and were replaced whole")
    return [safe.clean(line).replace("\n", " ").rstrip() for line in lines]


def given_lines(values: Iterable[ReplacedInputs]) -> list[str]:
    """Say call by call which replaced values the program was given, and how to keep them."""
    entries = [f"{each.call}: {each.field}: {_values(each.classes)}, given to the program as tokens" for each in values]
    lines = [f"  {line}" for line in entries[:_GIVEN]]
    if (more := len(entries) - _GIVEN) > 0:
        lines.append(f"  … and so in {more} more places")
    if entries:
        lines.append("      what the program reads out of a token (a domain, last digits, a number) is not as recorded")
    return lines


def _values(classes: Mapping[str, int]) -> str:
    count = sum(classes.values())
    return f"{spelled(classes)} {'was' if count == 1 else 'were'} replaced"


def grouped(reasons: Iterable[Reason]) -> list[tuple[Reason, list[str]]]:
    """Put together what happened to several calls, and the side effects of one line of code."""
    groups: dict[tuple[str, str, str], tuple[Reason, list[str]]] = {}
    for reason in _by_line(reasons):
        _, calls = groups.setdefault((reason.field, reason.lost, reason.fix), (reason, []))
        calls.append(reason.call)
    return list(groups.values())


def _by_line(reasons: Iterable[Reason]) -> Iterator[Reason]:
    """Make one reason of all side effects of one kind on one line: `write a.txt and 5 more at agent.py:8: …`."""
    lines: dict[tuple[str, str, str], list[Reason]] = {}
    for number, reason in enumerate(reasons):
        effect = _EFFECT.fullmatch(reason.lost) if reason.field == SIDE_EFFECT else None
        key = (reason.call, effect["verb"], effect["line"]) if effect else (reason.call, "", str(number))
        lines.setdefault(key, []).append(reason)
    for (_, verb, line), alike in lines.items():
        first = alike[0]
        if (effect := _EFFECT.fullmatch(first.lost)) is not None and verb and len(alike) > 1:
            lost = f"{verb}{effect['what']} and {len(alike) - 1} more at {line}{effect['rest']}"
            first = replace(first, lost=lost)
        yield first


def listed(calls: list[str]) -> str:
    """Name some calls: the first three, and how many more."""
    if len(calls) <= _NAMED:
        return ", ".join(calls)
    return f"{', '.join(calls[:_NAMED])} and {len(calls) - _NAMED} more"


def _item(item: KitItem, wide: int) -> str:
    detail = item.detail or ("" if item.state == "present" else item.state)
    fix = f"; {item.fix}" if item.fix else ""
    return f"  {_SIGNS.get(item.state, '?')} {item.name:<{wide}}  {detail}{fix}"
