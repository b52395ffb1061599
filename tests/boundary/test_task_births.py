"""Futures of a set are gone through as they were made, and not by address."""

from __future__ import annotations

from concurrent.futures import Future

from reenact.boundary import task_births
from reenact.boundary.task_births import InOrder


def test_futures_of_a_set_are_listed_as_their_lanes_made_them() -> None:
    made = [Future[int]() for _ in range(50)]
    for number, each in enumerate(made):
        task_births.note(each, f"main/{number % 2}")
    assert task_births.in_order(set(made)) == made[::2] + made[1::2]
    assert task_births.in_order([*made, made[0]]) == made
    assert task_births.in_order({"of no lane"}) == ["of no lane"]
    assert task_births.places({made[3], made[1]}, made) == (1, 3)


def test_a_set_in_order_is_a_set() -> None:
    held = InOrder(["c", "a", "b"])
    assert [*held] == ["c", "a", "b"]
    assert held == {"a", "b", "c"}
    held.discard("a")
    held.add("d")
    assert [*held] == ["c", "b", "d"]
    assert held.pop() == "c"
    assert repr(InOrder([1])) == "{1}"
    assert type(held - {"b"}) is set
