"""What comes of a tool that runs again, held against what was recorded."""

from __future__ import annotations

from typing import Any

import pytest

from made import Made
from reenact.errors import Miss
from reenact.redact.engine import Engine
from reenact.replay.ledger import Ledger
from reenact.replay.tool_rerun import Again
from reenact.values import typed
from reenact.values.call import CallKind, Chunk, FunctionCall, Outcome, Returned, Streamed, StreamEnd, Value
from reenact.values.json import Json

SECRET = "sk-proj-" + "a1B2" * 12


def returned(value: Json) -> Returned:
    return Returned(payload=Value(json=value))


def held_against(outcome: Outcome | BaseException, live: Any, *, engine: Engine | None = None) -> list[dict[str, Any]]:
    made = Made()
    if isinstance(outcome, BaseException):
        made.tool("t", raised=outcome)
    else:
        made.add(CallKind.TOOL, "t", FunctionCall(function="m:t", arguments={}), outcome)
    node = next(node for node in made.run().nodes if node.kind is CallKind.TOOL)
    ledger = Ledger()
    again = Again(node, engine or Engine(salt="00"), ledger)
    if isinstance(live, BaseException):
        again.raised(live)
    elif isinstance(live, list):
        for each in live[:-1]:
            again.piece(each)
        again.ended(live[-1], None, None)
    else:
        again.returned(live)
    return [{name: entry[name] for name in ("field", "recorded", "replay", "absent")} for entry in ledger.entries]


def test_the_same_says_nothing() -> None:
    assert held_against(returned({"a": [1, None]}), returned({"a": [1, None]})) == []
    assert held_against(ValueError("at 0x7f00aa11bb22"), ValueError("at 0x7f00cc33dd44")) == []


@pytest.mark.parametrize(
    ("recorded", "live", "field", "sides"),
    [
        (returned({"a": [1, 2]}), returned({"a": [1, 3]}), "result.a[1]", (2, 3, [])),
        (returned({"a": 1}), returned({}), "result.a", (1, None, ["replay"])),
        (returned({}), returned({"a": None}), "result.a", (None, None, ["recorded"])),
        (returned(1), returned(True), "result", (1, True, [])),
        (ValueError("x"), ValueError("y"), "raised.message", ("x", "y", [])),
        (ValueError("x"), KeyError("x"), "raised.type", ("builtins.ValueError", "builtins.KeyError", [])),
    ],
    ids=["changed", "missing", "further", "another type", "another message", "another class"],
)
def test_the_first_field_that_differs_is_named(recorded: Any, live: Any, field: str, sides: tuple[Any, ...]) -> None:
    (entry,) = held_against(recorded, live)
    assert (entry["field"], entry["recorded"], entry["replay"], entry["absent"]) == (field, *sides)


def test_returning_where_it_raised_is_another_outcome() -> None:
    (entry,) = held_against(ValueError("x"), returned(1))
    assert entry["field"] == "outcome"
    assert entry["replay"] == {"result": 1}


def test_what_a_generator_yields_is_compared() -> None:
    chunks = tuple(Chunk(offset_us=0, order=number, value=number) for number in (1, 2))
    recorded = Streamed(chunks=chunks)
    assert held_against(recorded, [1, 2, StreamEnd.FINISHED]) == []
    assert [each["field"] for each in held_against(recorded, [1, 3, StreamEnd.FINISHED])] == ["yielded[1]"]
    assert [each["field"] for each in held_against(recorded, [1, StreamEnd.ABANDONED])] == ["yielded[1]"]
    assert [each["field"] for each in held_against(recorded, [1, 2, StreamEnd.ABANDONED])] == ["end"]


def test_values_that_cannot_be_written_down_are_told_by_their_class_alone() -> None:
    one, other = object(), object()
    assert held_against(returned(typed.encode([one])), returned(typed.encode([other]))) == []
    assert held_against(returned(typed.encode([one])), returned(typed.encode([print]))) != []


def test_what_was_redacted_is_compared_redacted() -> None:
    engine = Engine(salt="00")
    assert held_against(returned(engine.text(SECRET)), returned(SECRET), engine=engine) == []
    assert engine.text(SECRET) != SECRET


def test_what_stops_the_replay_is_told_elsewhere() -> None:
    assert held_against(returned(1), Miss("asked for something else")) == []
