from __future__ import annotations

from datetime import date

import pytest

from reenact.values import typed
from reenact.values.finding import MOST_ARGUMENTS, Filters, ToolUse, argument_pairs, sought
from reenact.values.json import Json


def has(arguments: Json, path: str, value: str) -> bool:
    return ToolUse(id="a", tool="t", arguments=argument_pairs(arguments)).fits(Filters(arguments=((path, value),)))


ARGUMENTS: Json = {
    "target": {"env": "production", "region": {"name": "eu"}},
    "ids": ["a-1", 7],
    "dry_run": False,
    "limit": 10,
    "ratio": 0.5,
    "nothing": None,
    "": "unnamed",
    "a.b": "dotted",
    "rows": [{"id": 1}, {"id": 2}],
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("target.env", "production"),
        ("target.region.name", "eu"),
        ("target.region", '{"name": "eu"}'),
        ("target", '{"region":{"name":"eu"}, "env":"production"}'),
        ("ids", '["a-1", 7]'),
        ("ids", "a-1"),
        ("ids", "7"),
        ("ids.0", "a-1"),
        ("dry_run", "false"),
        ("limit", "10"),
        ("ratio", "0.5"),
        ("nothing", "null"),
        ("a.b", "dotted"),
        ("rows.1.id", "2"),
        ("rows", '{"id": 2}'),
    ],
)
def test_an_argument_is_found_where_a_person_would_look(path: str, value: str) -> None:
    assert has(ARGUMENTS, path, value)


@pytest.mark.parametrize(
    ("path", "value"), [("target.env", "prod"), ("ids.1", "a-1"), ("env", "production"), ("", "{}")]
)
def test_what_was_not_given_is_not_found(path: str, value: str) -> None:
    assert not has(ARGUMENTS, path, value)


def test_typed_values_are_found_by_what_they_stand_for() -> None:
    arguments = typed.encode({"when": date(2026, 11, 20), "pair": ("x", 2), "deep": [{"$odd": 1}]})
    assert has(arguments, "when", "2026-11-20")
    assert has(arguments, "pair", "x")
    assert has(arguments, "pair.1", "2")


def test_fields_of_a_dataclass_lie_below_it() -> None:
    arguments: Json = {"account": {"$dataclass": "app:Account", "fields": {"id": "a-1", "owner": {"name": "Acme"}}}}
    assert has(arguments, "account.id", "a-1")
    assert has(arguments, "account.owner.name", "Acme")


def test_what_is_huge_or_endless_is_cut_from_below() -> None:
    wide: Json = {"rows": [{"id": number} for number in range(5000)], "target": "production"}
    pairs = argument_pairs(wide)
    assert MOST_ARGUMENTS <= len(pairs) < MOST_ARGUMENTS + 3
    assert has(wide, "target", "production")
    deep: Json = "end"
    for _ in range(200):
        deep = {"a": deep}
    assert len(argument_pairs(deep)) == 12


def test_a_tool_and_its_arguments_are_of_one_call() -> None:
    use = ToolUse(id="a", tool="delete", arguments=argument_pairs({"target": "production", "count": 3}))
    assert use.fits(Filters(tool="delete", arguments=(("target", "production"), ("count", "3"))))
    assert not use.fits(Filters(tool="list", arguments=(("target", "production"),)))
    assert not use.fits(Filters(arguments=(("target", "production"), ("count", "4"))))


@pytest.mark.parametrize("text", ["{broken", "[", "plain", "", "{", "[1, 2"])
def test_text_that_only_looks_like_json_is_text(text: str) -> None:
    assert sought(text) == text
