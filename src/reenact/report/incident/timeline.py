"""The whole run at a glance: a bar a call, or columns of counts where there are too many to tell apart."""

from __future__ import annotations

from collections import Counter

from reenact.report.incident.markup import Html, el
from reenact.report.times import duration
from reenact.values.run import Run

_WIDE, _HIGH = 1000, 44
_BARS = 400
_LEVELS = 6
_LEAST = 2.0
_APART = 0.05
"""Calls that overlap by less follow each other: a twentieth of a thousandth of the run."""


def timeline(run: Run, parting: str | None) -> Html | None:
    """Draw when calls were under way; `parting` is the id of the call in which a second run parts from this one."""
    calls = [node for node in run.nodes if not node.call.is_structure]
    began, total = run.started_ns, max(1, run.ended_ns - run.started_ns)
    if not calls:
        return None
    spans = [
        (
            node.call.word,
            (node.span.start_ns - began) / total * _WIDE,
            max(0, node.span.end_ns - node.span.start_ns) / total * _WIDE,
        )
        for node in calls
    ]
    drawn = _bars(spans) if len(spans) <= _BARS else _columns(spans)
    at = next((x for node, (_, x, _) in zip(calls, spans, strict=True) if node.id == parting), None)
    if at is not None:
        drawn.append(el("rect", x=f"{min(max(at, 1), _WIDE - 2):.1f}", y=0, width=2, height=_HIGH, class_="parts"))
    label = f"When {len(calls):,} calls were under way, over {duration(total / 1e6)}"
    picture = el(
        "svg", *drawn, viewBox=f"0 0 {_WIDE} {_HIGH}", preserveAspectRatio="none", role="img", aria_label=label
    )
    ends = el(
        "div",
        el("span", "0"),
        el("span", duration(total / 2e6)),
        el("span", duration(total / 1e6)),
        class_="axis",
        aria_hidden="true",
    )
    return el("div", picture, ends, class_="overview")


def _bars(spans: list[tuple[str, float, float]]) -> list[Html]:
    """Draw each call on the first line that is free; calls at the same time lie below each other."""
    free: list[float] = []
    placed: list[tuple[str, float, float, int]] = []
    for kind, x, width in spans:
        wide = max(width, _LEAST)
        level = next((line for line, until in enumerate(free) if until <= x + _APART), len(free))
        if level == len(free):
            free.append(0)
        free[level] = x + wide
        placed.append((kind, x, wide, level % _LEVELS))
    lines = min(max(1, len(free)), _LEVELS)
    high = _HIGH / lines
    return [
        el(
            "rect",
            x=f"{min(x, _WIDE - _LEAST):.1f}",
            y=f"{level * high + 1:.1f}",
            width=f"{min(wide, _WIDE - min(x, _WIDE - _LEAST)):.1f}",
            height=f"{high - 2:.1f}",
            class_=f"k-{kind}",
        )
        for kind, x, wide, level in placed
    ]


def _columns(spans: list[tuple[str, float, float]]) -> list[Html]:
    """Count the calls that began in each column, by kind, one upon the other."""
    columns = 250
    counted = [Counter[str]() for _ in range(columns)]
    for kind, x, _ in spans:
        counted[min(columns - 1, max(0, int(x / _WIDE * columns)))][kind] += 1
    tallest = max(each.total() for each in counted)
    wide = _WIDE / columns
    drawn: list[Html] = []
    for column, kinds in enumerate(counted):
        top = float(_HIGH)
        for kind, number in sorted(kinds.items()):
            high = number / tallest * _HIGH
            top -= high
            drawn.append(
                el(
                    "rect",
                    x=f"{column * wide:.1f}",
                    y=f"{top:.1f}",
                    width=f"{wide - 0.6:.1f}",
                    height=f"{high:.1f}",
                    class_=f"k-{kind}",
                )
            )
    return drawn
