from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from reenact.values.skeleton import holds, skeleton
from strategies_call import json_values


def test_keys_are_told_with_their_places() -> None:
    text = b'\xef\xbb\xbf [{"data": [{"id": "x, \\"y\\": {", "meta": {"a": 1}}], "n": {"m": []}}]'
    assert skeleton(text) == {"data", "data[].id", "data[].meta", "data[].meta.a", "n", "n.m"}


def test_lines_an_array_and_one_document_are_alike() -> None:
    one, two = {"a": {"b": 1}}, {"a": {"c": 2}}
    lines = f"{json.dumps(one)}\n{json.dumps(two)}\n".encode()
    assert skeleton(lines) == skeleton(json.dumps([one, two]).encode()) == {"a", "a.b", "a.c"}


def test_either_of_several_keys_will_do() -> None:
    assert holds(b'{"a": {"b": 1}}', "x|a.b", "a")
    assert not holds(b'{"a": {"b": 1}}', "x|y", "a")


@given(json_values, st.integers(0, 200))
def test_a_document_that_is_cut_off_tells_no_key_that_it_does_not_have(value: object, end: int) -> None:
    whole = json.dumps({"top": value}, ensure_ascii=False).encode("utf-8", "replace")
    if b"\\" not in whole and b'"' not in whole[end:].split(b":")[0]:
        assert skeleton(whole[:end]) <= skeleton(whole)


@given(st.binary(max_size=200))
def test_noise_is_no_json(noise: bytes) -> None:
    assert isinstance(skeleton(noise), frozenset)
    assert not skeleton(b"noise " + noise)
