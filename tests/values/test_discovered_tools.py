"""Which calls of found tools run again: those that touched nothing and reach no state that was lost."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from made import Made
from reenact.values.discovered_tools import CHANGED, FOUND, HELD, REACHES, STATE, TOUCHED, acted, follow, run_again
from reenact.values.run import Run


def found(**lists: list[str]) -> dict[str, Any]:
    names = {"touched": TOUCHED, "held": HELD, "changed": CHANGED, "state": STATE}
    return {FOUND: True, REACHES: "[]", **{names[name]: json.dumps(listed) for name, listed in lists.items()}}


def again(run: Run) -> set[str]:
    chosen = run_again(run.nodes)
    return {node.call.name for node in run.nodes if node.id in chosen}


def test_a_tool_runs_again_where_it_touched_nothing() -> None:
    made = Made()
    made.tool("declared")
    made.tool("quiet", more=found(state=["m:CART"], changed=["m:CART"]))
    made.tool("raising", raised=ValueError("x"), more=found())
    made.tool("loud", more=found(touched=["write a"]))
    made.tool("holding", more=found(held=["sqlite3.Connection m:DB"]))
    run = made.run()
    assert again(run) == {"quiet", "raising"}
    assert [acted(node) for node in run.nodes if node.call.name in {"loud", "holding"}] == [
        ["write a"],
        ["use sqlite3.Connection m:DB"],
    ]


def test_state_that_was_not_made_again_takes_along_all_that_reaches_it() -> None:
    made = Made()
    made.tool("first", more=found(state=["m:B"], changed=["m:B"]))
    made.tool("loud", more=found(touched=["write a"], state=["m:A", "m:B"], changed=["m:A"]))
    made.tool("next", more=found(state=["m:A", "m:C"], changed=["m:C"]))
    made.tool("last", more=found(state=["m:C"]))
    made.tool("apart", more=found(state=["m:D"], changed=["m:D"]))
    assert again(made.run()) == {"first", "apart"}


def test_of_calls_side_by_side_that_share_state_the_later_end_begins_later() -> None:
    cart, other = found(state=["m:CART"], changed=["m:CART"]), found(state=["m:X"], changed=["m:X"])
    made = Made()
    first = made.tool("first", more={**cart, "reenact.order.start": 1})
    apart = made.tool("apart", more={**other, "reenact.order.start": 1})
    outer = made.tool("outer", more={**cart, "reenact.order.start": 1})
    made.tool("inner", more=found(), parent=outer)
    reads = made.tool("reads", more={**found(state=["m:CART"]), "reenact.order.start": 1})
    later = made.tool("later", more=cart)
    run = made.run()
    ends = {node.id: node.end_order for node in run.nodes}
    after = follow(run.nodes, run_again(run.nodes))
    assert after == {reads: ends[outer]}  # one with calls inside waits for none, what came later needs not
    assert {first, apart, later}.isdisjoint(after)


@pytest.mark.parametrize("error", [asyncio.CancelledError(), KeyboardInterrupt()])
def test_what_was_given_up_from_outside_does_not_run_again(error: BaseException) -> None:
    made = Made()
    made.tool("cancelled", raised=error, more=found())
    made.tool("unfinished", unfinished=True, more=found())
    assert again(made.run()) == set()


def test_damaged_lists_are_read_as_far_as_they_go() -> None:
    made = Made()
    made.tool("odd", more={FOUND: True, REACHES: "[]", TOUCHED: "[", STATE: '{"a":1}', CHANGED: 7})
    assert again(made.run()) == {"odd"}
