"""How far a recording can be replayed and what would get it further, for a person."""

from __future__ import annotations

from collections.abc import Iterable

from reenact.report import safe
from reenact.values.run import Grade, KitItem, Reason, Verdict

MEANS = {
    Grade.EXACT: "everything that a replay needs was recorded",
    Grade.PARTIAL: "it can be replayed, less what is named here",
    Grade.NONE: "nothing in it can answer a call; it is kept as a cold case",
}
"""What each grade says, in half a sentence."""
_SIGNS = {"present": "+", "missing": "-", "partial": "~", "not applicable": " "}
_NAMED = 3


def verdict_line(verdict: Verdict) -> str:
    """Say a verdict in one line."""
    redaction = f", up to redaction ({verdict.redacted} values replaced)" if verdict.redacted else ""
    return f"{verdict.grade.value}{redaction}: {MEANS[verdict.grade]}"


def doctor(verdict: Verdict) -> list[str]:
    """Say a verdict, what was lost with the line that would keep it, and the replay kit item by item."""
    lines = [verdict_line(verdict)]
    for reason, calls in grouped(verdict.reasons):
        lines.append(f"  {listed(calls)}: {reason.field}: {reason.lost}")
        if reason.fix:
            lines.append(f"      {reason.fix}")
    if verdict.kit:
        lines.append("replay kit")
        wide = max(len(item.name) for item in verdict.kit)
        lines += [_item(item, wide) for item in verdict.kit]
    return [safe.clean(line).replace("\n", " ").rstrip() for line in lines]


def grouped(reasons: Iterable[Reason]) -> list[tuple[Reason, list[str]]]:
    """Put together what happened to several calls."""
    groups: dict[tuple[str, str, str], tuple[Reason, list[str]]] = {}
    for reason in reasons:
        _, calls = groups.setdefault((reason.field, reason.lost, reason.fix), (reason, []))
        calls.append(reason.call)
    return list(groups.values())


def listed(calls: list[str]) -> str:
    """Name some calls: the first three, and how many more."""
    if len(calls) <= _NAMED:
        return ", ".join(calls)
    return f"{', '.join(calls[:_NAMED])} and {len(calls) - _NAMED} more"


def _item(item: KitItem, wide: int) -> str:
    detail = item.detail or ("" if item.state == "present" else item.state)
    fix = f"; {item.fix}" if item.fix else ""
    return f"  {_SIGNS.get(item.state, '?')} {item.name:<{wide}}  {detail}{fix}"
