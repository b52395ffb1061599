from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.values.json import Json, canonical, compact, digest, parse, parsed_or_none

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_what_was_spelled_is_read_back(value: Json) -> None:
    for text in (compact(value), canonical(value), canonical(value).decode()):
        read = parse(text)
        assert read == value
        assert compact(read) == compact(value) or text != compact(value)


@given(st.dictionaries(st.text(), values))
def test_the_order_of_keys_makes_no_difference_to_a_digest(value: dict[str, Json]) -> None:
    turned = dict(reversed(value.items()))
    assert canonical(turned) == canonical(value)
    assert digest(turned) == digest(value)
    assert list(parse(compact(turned)) or {}) == list(turned)


@pytest.mark.parametrize(
    ("a", "b"), [(1, 1.0), (1, True), (0.0, -0.0), (2**64, 2.0**64), ("1", 1), (None, "null"), ([], {})]
)
def test_values_that_differ_have_different_digests(a: Json, b: Json) -> None:
    assert digest({"k": a}) != digest({"k": b})


@pytest.mark.parametrize("number", [2**53 + 1, 2**63, -(2**63) - 1, 2**64, 10**30, -(10**30)])
def test_integers_of_any_size_are_exact(number: int) -> None:
    for spelled in (f"{number}", f"[{number}]", f'{{"a": {number}, "b": [1,{number} ]}}', f"\n{number}\n"):
        assert parse(spelled) == json.loads(spelled)
    assert parse(compact([number])) == [number]
    assert parse(canonical({"n": number})) == {"n": number}


def test_lone_surrogates_are_escaped() -> None:
    assert compact({"a": "\ud800"}) == '{"a":"\\ud800"}'
    assert canonical({"b": 1, "a": "\ud800"}) == b'{"a":"\xed\xa0\x80","b":1}'


@pytest.mark.parametrize("text", ["", "{", "[1,]", '{"a":1} x', "NaN", "'a'", b'"\xff"'])
def test_what_is_no_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(ValueError, match="line 1"):
        parse(text)
    assert parsed_or_none(text) is None
