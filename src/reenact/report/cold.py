"""Cold cases for a person, as a document, and as text that Prometheus reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from reenact.report.safe import fitted, one_line
from reenact.values.cold import DIMENSIONS, ColdCases, ColdGroup
from reenact.values.json import Json

_SHOWN: Final = 8
_NONE: Final = "–"
_METRICS: Final = (
    ("reenact_cold_runs", "Runs of which no replay can answer a call."),
    ("reenact_cold_calls", "Calls that no replay can answer."),
    ("reenact_runs", "Runs that were looked at."),
    ("reenact_calls", "Calls that were looked at."),
)


def cold(found: ColdCases, dimensions: Sequence[str] = (), *, width: int | None = None) -> list[str]:
    """Say how much is cold, and of what: a table for each dimension, or one for those that were asked for."""
    lines = [_head(found)]
    if not found.calls:
        return lines
    tables = [tuple(dimensions)] if dimensions else [(name,) for name in DIMENSIONS]
    for names in tables:
        groups = found.by(names)
        if dimensions or any(any(group.key) for group in groups):
            lines += ["", *_table(names, groups, everything=bool(dimensions))]
    if fixes := dict.fromkeys(call.fix for call in found.calls if call.fix):
        lines += ["", "what would keep them next time", *(f"  {one_line(fix)}" for fix in [*fixes][:_SHOWN])]
    return [fitted(line, width) for line in lines]


def _head(found: ColdCases) -> str:
    if not found.calls:
        return f"no cold case: each of {found.calls_read} calls in {found.runs_read} runs can be answered"
    calls = sum(bool(call.call) for call in found.calls)
    return (
        f"{len(found.runs)} of {found.runs_read} runs cannot be replayed; "
        f"{calls} of {found.calls_read} calls cannot be answered"
    )


def _table(names: Sequence[str], groups: Sequence[ColdGroup], *, everything: bool) -> Iterator[str]:
    shown = groups if everything else groups[:_SHOWN]
    cells = [[one_line(word) or _NONE for word in group.key] for group in shown]
    widths = [max(len(row[at]) for row in [[name.upper() for name in names], *cells]) for at in range(len(names))]
    yield (
        f"{'RUNS':>6} {'CALLS':>6}  "
        + "  ".join(name.upper().ljust(room) for name, room in zip(names, widths, strict=True)).rstrip()
    )
    for group, row in zip(shown, cells, strict=True):
        words = "  ".join(word.ljust(room) for word, room in zip(row, widths, strict=True)).rstrip()
        yield f"{group.runs:>6} {group.calls:>6}  {words}"
    if len(groups) > len(shown):
        yield f"{'':>13}  … and {len(groups) - len(shown)} more"


def cold_document(found: ColdCases, dimensions: Sequence[str] = ()) -> dict[str, Json]:
    """Make the document of `reenact cold`."""
    names = tuple(dimensions) or DIMENSIONS
    return {
        "runs": {"read": found.runs_read, "cold": len(found.runs)},
        "calls": {"read": found.calls_read, "cold": sum(bool(call.call) for call in found.calls)},
        "by": {name: _groups(found, (name,)) for name in names},
        "groups": _groups(found, names),
        "cold": [
            {
                "id": run.id,
                "name": run.name,
                "started": run.started or None,
                "source": run.source,
                "reasons": [*run.reasons],
            }
            for run in found.runs
        ],
    }


def _groups(found: ColdCases, names: Sequence[str]) -> list[Json]:
    return [
        {**dict(zip(names, group.key, strict=True)), "runs": group.runs, "calls": group.calls}
        for group in found.by(names)
    ]


def prometheus(found: ColdCases, dimensions: Sequence[str]) -> list[str]:
    """Spell the counts in Prometheus' text format, version 0.0.4: gauges of this moment."""
    groups = found.by(dimensions)
    lines: list[str] = []
    for name, text in _METRICS:
        lines += [f"# HELP {name} {text}", f"# TYPE {name} gauge"]
        if name.startswith("reenact_cold"):
            for group in groups:
                labels = dict(zip(dimensions, group.key, strict=True))
                lines.append(f"{name}{{{_labels(labels)}}} {group.runs if name.endswith('runs') else group.calls}")
        else:
            lines.append(f"{name} {found.runs_read if name.endswith('runs') else found.calls_read}")
    return lines


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(value: str) -> str:
    return one_line(value).replace("\\", "\\\\").replace('"', '\\"')
