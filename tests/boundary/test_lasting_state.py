"""What tells one state of a variable that outlives a unit from another one."""

from __future__ import annotations

import pytest

from reenact.boundary import lasting_state
from reenact.boundary.lasting_state import NameUse, prints


@pytest.mark.always
@pytest.mark.parametrize(("members", "tells"), [(10, True), (1_500, True), (30_000, False)])
def test_a_table_of_plain_data_is_told_by_its_contents_to_a_bound(members: int, *, tells: bool) -> None:
    prices = {f"item {number}": number for number in range(members)}
    before = prints(prices, frozenset())
    prices["item 7"] += 1
    assert (prints(prices, frozenset()) != before) is tells
    prices["new"] = 1
    assert prints(prices, frozenset()) != before


class _Pool:
    def __init__(self) -> None:
        self._pool = [1]


@pytest.mark.always
@pytest.mark.parametrize(("module", "names"), [("psycopg_pool.pool", []), ("some_library", ["app:pool.pool"])])
def test_connections_in_a_pool_are_no_state(module: str, names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pool = _Pool()
    monkeypatch.setattr(_Pool, "__module__", module)

    def asks() -> object:
        return pool._pool

    used = NameUse(iter([asks]))
    used.either |= {"pool"}
    assert [root.name for root in lasting_state._of_library("app:pool", pool, used)] == names
