"""What differs between two runs, for a person."""

from __future__ import annotations

from reenact.report import safe
from reenact.values.difference import Divergence, one_line
from reenact.values.judgement import Comparison

_SIGNS = {"changed": "~", "missing": "-", "extra": "+", "reordered": "↕"}


def first_line(comparison: Comparison) -> str:
    """Say in one line whether two runs are the same, else where they part first."""
    first = comparison.first
    if first is None:
        return f"same: {comparison.calls_a} calls, no difference"
    verdict = "diverged" if not comparison.same_path else "same path, other words"
    return safe.one_line(f"{verdict}: {one_line(first, a='a', b='b')}")


def diff(comparison: Comparison, *, most: int | None = 50) -> list[str]:
    """Say what differs, the first divergence first; `most` limits how many are listed, None lists all.

    Each is signed: `-` only in a, `+` only in b, `~` changed, `↕` in another order; `·` after the sign is a change of
    wording that leaves the path as it was.
    """
    lines = [first_line(comparison)]
    if comparison.first is None:
        return lines
    structural = sum(each.structural for each in comparison.divergences)
    wording = len(comparison.divergences) - structural
    lines.append(
        f"{comparison.calls_a} calls in a, {comparison.calls_b} in b; "
        f"{structural} structural divergences, {wording} of wording"
    )
    divergences = comparison.divergences if most is None else comparison.divergences[:most]
    seen_ids: set[str] = set()
    for divergence in divergences:
        lines.append(f"  {_sign(divergence)} {one_line(divergence, a='a', b='b')}")
        rest = () if divergence.node_a in seen_ids else comparison.more.get(divergence.node_a or "", ())
        seen_ids.add(divergence.node_a or "")
        if rest:
            names = ", ".join(each.field for each in rest[:4])
            lines.append(f"      also {names}{f' and {len(rest) - 4} more' if len(rest) > 4 else ''}")
    if hidden := len(comparison.divergences) - len(divergences):
        lines.append(f"  … {hidden} more not shown")
    return [safe.clean(line).replace("\n", " ") for line in lines]


def _sign(divergence: Divergence) -> str:
    return f"{_SIGNS.get(divergence.kind, '?')}{' ' if divergence.structural else '·'}"
