from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.encodings import python_repr

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(plain)
def test_what_repr_wrote_is_read_back(value: Any) -> None:
    assert python_repr.read(repr(value)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(1, 'a')", [1, "a"]),
        ("{1, 2}", [1, 2]),
        ("{1: 'a'}", {"1": "a"}),
        ("Text(text='hi', n=1)", {"$class": "Text", "text": "hi", "n": 1}),
        ("datetime.datetime(2020, 1, 2)", {"$class": "datetime.datetime", "args": [2020, 1, 2]}),
        ("[<Role.USER: 'user'>]", ["user"]),
        ("[<object at 0x7f>]", ["<object at 0x7f>"]),
        ("'a' \"b\"", "ab"),
        ("b'a'", "a"),
        ("[nan]", ["nan"]),
        ("{'a': None,}", {"a": None}),
    ],
)
def test_objects_are_read_by_what_they_show(text: str, value: Any) -> None:
    assert python_repr.read(text) == value


@pytest.mark.parametrize(
    "text", ["", "0__", "[1_.5]", "x y", "[1", "'a", "{'a': }", "__import__('os').system('x')[", "[" * 5000, "f(a=)"]
)
def test_what_is_no_repr_is_none(text: str) -> None:
    assert python_repr.read(text) is None


def test_nothing_is_called() -> None:
    assert python_repr.read("__import__('os')") == {"$class": "__import__", "args": ["os"]}


def test_a_long_one_is_read() -> None:
    assert python_repr.read(f"[{', '.join(['1'] * 20_000)}]") == [1] * 20_000
    assert python_repr.read("[" * 100_000) is None
    assert python_repr.read("'" + "\\'" * 50_000) is None


@given(st.text(alphabet="[](){}<>:,=.'\"\\ab1 \n-") | st.text())
def test_no_text_is_too_strange(text: str) -> None:
    python_repr.read(text)
