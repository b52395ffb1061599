"""What was found of assertions over a run, for a person and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from reenact.report import safe
from reenact.values.assertion import Checked, Finding, Standing
from reenact.values.json import Json

_WIDE = max(len(each.value) for each in Standing)


def checked(check: Checked, *, prose_counts: bool = False) -> list[str]:
    """Say each finding in one line, structure first, and what they come to."""
    lines = [_line(each) for each in check.structure]
    if check.prose:
        lines.append(f"prose, which {'counts here' if prose_counts else 'does not count'}:")
        lines += [f"  {_line(each)}" for each in check.prose]
    return [*lines, _summary(check, prose_counts=prose_counts)]


def _summary(check: Checked, *, prose_counts: bool) -> str:
    counted = check.findings if prose_counts else check.structure
    counts = Counter(each.standing for each in counted)
    if not counted:
        return "holds: nothing that counts was asserted"
    if counts[Standing.HOLDS] == len(counted):
        return f"holds: {'the assertion' if len(counted) == 1 else f'all {len(counted)} assertions'}"
    parts: list[str] = []
    if many := counts[Standing.FAILS]:
        parts.append(f"{many} of {len(counted)} assertions {'fails' if many == 1 else 'fail'}")
    if many := counts[Standing.UNDECIDED]:
        of = "" if parts else f" of {len(counted)} assertions"
        parts.append(f"{many}{of} {'is' if many == 1 else 'are'} undecided")
    return f"{check.standing(prose=prose_counts).value}: {', '.join(parts)}"


def _line(each: Finding) -> str:
    place = f" ({each.place})" if each.place else ""
    return f"{each.standing.value:<{_WIDE}}  " + safe.one_line(f"{each.assertion}{place} – {each.because}")


def check_document(
    check: Checked, *, source: str = "", judgement: str | None = None, prose_counts: bool = False
) -> Json:
    """Make the document of `reenact check --json`."""
    return {
        "run": check.run,
        "source": source,
        "standing": check.standing(prose=prose_counts).value,
        "findings": findings_document(check.findings),
        "judgement": judgement,
    }


def findings_document(findings: Iterable[Finding]) -> list[Json]:
    """Spell findings as every document does."""
    return [
        {
            "assertion": each.assertion,
            "standing": each.standing.value,
            "because": each.because,
            "calls": [*each.nodes],
            "layer": each.layer,
            "place": each.place,
        }
        for each in findings
    ]
