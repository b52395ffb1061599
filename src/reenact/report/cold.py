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


def cold(cases: ColdCases, dimensions: Sequence[str] = (), *, width: int | None = None) -> list[str]:
    """Say how much is cold, and of what: a table for each dimension, or one for those that were asked for."""
    lines = [_head(cases)]
    if not cases.calls:
        return lines
    tables = [tuple(dimensions)] if dimensions else [(name,) for name in DIMENSIONS]
    for names in tables:
        groups = cases.by(names)
        if dimensions or any(any(group.key) for group in groups):
            lines += ["", *_table(names, groups, everything=bool(dimensions))]
    if fixes := dict.fromkeys(call.fix for call in cases.calls if call.fix):
        lines += ["", "what would keep them next time", *(f"  {one_line(fix)}" for fix in [*fixes][:_SHOWN])]
    return [fitted(line, width) for line in lines]


def _head(cases: ColdCases) -> str:
    if not cases.calls:
        return f"no cold case: each of {cases.calls_read} calls in {cases.runs_read} runs can be answered"
    calls = sum(bool(call.call) for call in cases.calls)
    return (
        f"{len(cases.runs)} of {cases.runs_read} runs cannot be replayed; "
        f"{calls} of {cases.calls_read} calls cannot be answered"
    )


def _table(names: Sequence[str], groups: Sequence[ColdGroup], *, everything: bool) -> Iterator[str]:
    rows = groups if everything else groups[:_SHOWN]
    cells = [[one_line(word) or _NONE for word in group.key] for group in rows]
    widths = [max(len(row[at]) for row in [[name.upper() for name in names], *cells]) for at in range(len(names))]
    yield (
        f"{'RUNS':>6} {'CALLS':>6}  "
        + "  ".join(name.upper().ljust(room) for name, room in zip(names, widths, strict=True)).rstrip()
    )
    for group, row in zip(rows, cells, strict=True):
        words = "  ".join(word.ljust(room) for word, room in zip(row, widths, strict=True)).rstrip()
        yield f"{group.runs:>6} {group.calls:>6}  {words}"
    if len(groups) > len(rows):
        yield f"{'':>13}  … and {len(groups) - len(rows)} more"


def cold_document(cases: ColdCases, dimensions: Sequence[str] = ()) -> dict[str, Json]:
    """Make the document of `reenact cold`."""
    names = tuple(dimensions) or DIMENSIONS
    return {
        "runs": {"read": cases.runs_read, "cold": len(cases.runs)},
        "calls": {"read": cases.calls_read, "cold": sum(bool(call.call) for call in cases.calls)},
        "by": {name: _groups(cases, (name,)) for name in names},
        "groups": _groups(cases, names),
        "cold": [
            {
                "id": run.id,
                "name": run.name,
                "started": run.started or None,
                "source": run.source,
                "reasons": [*run.reasons],
            }
            for run in cases.runs
        ],
    }


def _groups(cases: ColdCases, names: Sequence[str]) -> list[Json]:
    return [
        {**dict(zip(names, group.key, strict=True)), "runs": group.runs, "calls": group.calls}
        for group in cases.by(names)
    ]


def prometheus(cases: ColdCases, dimensions: Sequence[str]) -> list[str]:
    """Spell the counts in Prometheus' text format, version 0.0.4: gauges of this moment."""
    groups = cases.by(dimensions)
    lines: list[str] = []
    for name, text in _METRICS:
        lines += [f"# HELP {name} {text}", f"# TYPE {name} gauge"]
        if name.startswith("reenact_cold"):
            for group in groups:
                labels = dict(zip(dimensions, group.key, strict=True))
                lines.append(f"{name}{{{_labels(labels)}}} {group.runs if name.endswith('runs') else group.calls}")
        else:
            lines.append(f"{name} {cases.runs_read if name.endswith('runs') else cases.calls_read}")
    return lines


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(value: str) -> str:
    return one_line(value).replace("\\", "\\\\").replace('"', '\\"')
