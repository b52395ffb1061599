from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.values import typed
from reenact.values.difference import ABSENT
from reenact.values.json import Json, compact
from reenact.values.json_path import NoSuchPlace, Path, parse_path, spell, value_at, with_value
from strategies_call import json_values

steps = st.lists(st.text() | st.integers(-9, 9), max_size=5).map(tuple)


@given(steps)
def test_a_path_is_read_as_it_is_spelled(path: Path) -> None:
    assert parse_path(spell(path)) == path


def test_paths_as_people_write_them() -> None:
    assert parse_path("tool_calls[0].arguments.target") == ("tool_calls", 0, "arguments", "target")
    assert parse_path("[-1].text") == (-1, "text")
    assert parse_path("headers.x-should-retry") == ("headers", "x-should-retry")
    assert parse_path('a["b.c"]."d e"') == ("a", "b.c", "d e")
    assert parse_path("") == ()


@pytest.mark.parametrize("text", [".a", "a..b", "a[", "a[x]", "a]", 'a["b', "a.[0]"])
def test_what_is_no_path_is_refused_with_the_place(text: str) -> None:
    with pytest.raises(ValueError, match="makes no sense at"):
        parse_path(text)


def places(value: Json, here: Path = ()) -> list[Path]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [here, *(place for step, item in inside for place in places(item, (*here, step)))]


@given(json_values, st.data())
def test_what_is_set_is_found_and_nothing_else_changes(value: Json, data: st.DataObject) -> None:
    place = data.draw(st.sampled_from(places(value)))
    before = compact(value)
    changed = with_value(value, place, "set")
    assert value_at(changed, place) == "set"
    assert compact(value) == before
    if not isinstance(found := value_at(value, place), type(ABSENT)):
        assert compact(with_value(changed, place, found)) == before


@pytest.mark.parametrize("settings", [{}, {"indent": 2}, {"indent": 4}, {"ensure_ascii": False}])
def test_json_inside_a_text_is_set_and_spelled_as_it_was(settings: dict[str, int]) -> None:
    held: Json = {"where": "Köln", "ids": [1, 2]}
    text = json.dumps(held, **settings)  # type: ignore[arg-type]
    changed = with_value({"arguments": text}, ("arguments", "ids", 1), 7)
    assert changed == {"arguments": json.dumps({"where": "Köln", "ids": [1, 7]}, **settings)}  # type: ignore[arg-type]
    assert value_at(changed, ("arguments", "where")) == "Köln"


@dataclass
class Order:
    total: int
    goods: tuple[str, ...]
    places: dict[object, str]


def test_typed_json_is_passed_through() -> None:
    order = Order(5, ("kettle", "cup"), {1: "hall"})
    changed = with_value(typed.encode(order), ("goods", 1), "pot")
    changed = with_value(changed, ("total",), 6)
    assert typed.decode(changed) == Order(6, ("kettle", "pot"), {1: "hall"})
    pairs = typed.encode({"$set": 1, "b": 2})
    assert typed.decode(with_value(pairs, ("b",), 3)) == {"$set": 1, "b": 3}


def test_a_key_and_the_next_entry_of_a_list_are_added() -> None:
    assert with_value({"a": [1]}, ("a", 1), 2) == {"a": [1, 2]}
    assert with_value({}, ("a",), 1) == {"a": 1}


@pytest.mark.parametrize(
    ("value", "path", "said"),
    [
        ({"a": {"x": 1}}, "a.b.c", "a has no b; it is an object with x"),
        ({"a": [1]}, "a[5]", "a has no [5]; it is a list of 1"),
        ({"a": 1}, "a.b", "a is 1, and nothing inside"),
        ([], "x", "it has no x; it is a list of 0"),
        (None, "x", "it is nothing"),
    ],
)
def test_a_way_that_ends_early_is_told(value: Json, path: str, said: str) -> None:
    with pytest.raises(NoSuchPlace) as caught:
        with_value(value, parse_path(path), 1)
    assert str(caught.value) == said
    assert value_at(value, parse_path(path)) is ABSENT
