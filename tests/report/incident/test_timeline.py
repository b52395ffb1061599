from __future__ import annotations

import re

from incidents import long_run
from made import NS, Made
from reenact.report.incident.timeline import timeline


def bars(markup: str) -> list[tuple[float, ...]]:
    found = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" class="k-', markup)
    return [tuple(map(float, each)) for each in found]


def test_calls_in_a_row_share_a_line_and_calls_at_once_do_not() -> None:
    made = Made(1)
    made.tool("a", {}, 1)
    made.tool("b", {}, 1, took=2 * NS)
    made.tool("c", {}, 1)
    drawn = bars(str(timeline(made.run(), None)))
    assert [y for _, y, _, _ in drawn] == [drawn[0][1], drawn[0][1], drawn[2][1]]
    assert drawn[2][1] > drawn[0][1]
    assert all(x >= 0 and x + width <= 1000 for x, _, width, _ in drawn)


def test_where_the_runs_part_is_marked() -> None:
    made = Made(1)
    made.tool("a", {}, 1)
    parting = made.tool("b", {}, 1)
    assert 'class="parts"' in str(timeline(made.run(), parting))
    assert 'class="parts"' not in str(timeline(made.run(), None))


def test_thousands_of_calls_become_columns_that_lie_inside() -> None:
    drawn = bars(str(timeline(long_run(1_000, 20), None)))
    assert 100 < len(drawn) <= 500
    assert all(0 <= x <= 1000 and y >= 0 and y + high <= 44.2 for x, y, _, high in drawn)


def test_a_run_without_calls_has_none() -> None:
    assert timeline(Made(1).run(), None) is None
