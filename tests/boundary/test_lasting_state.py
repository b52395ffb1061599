"""What tells one state of a variable that outlives a unit from another one."""

from __future__ import annotations

import pytest

from reenact.boundary.lasting_state import prints


@pytest.mark.always
@pytest.mark.parametrize(("members", "tells"), [(10, True), (1_500, True), (30_000, False)])
def test_a_table_of_plain_data_is_told_by_its_contents_to_a_bound(members: int, *, tells: bool) -> None:
    prices = {f"item {number}": number for number in range(members)}
    before = prints(prices, frozenset())
    prices["item 7"] += 1
    assert (prints(prices, frozenset()) != before) is tells
    prices["new"] = 1
    assert prints(prices, frozenset()) != before
