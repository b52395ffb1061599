"""The arguments of a call whose stream broke off: they stay arguments that end too early, and no word is left."""

from __future__ import annotations

import functools
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reenact.redact import policy
from reenact.redact.engine import Engine
from reenact.redact.truncated_json import as_cut_off, completed

WORDS = ("Lovelace", "Paris", "late order")
LEAVES = st.sampled_from(WORDS) | st.integers(-9, 99) | st.booleans() | st.none() | st.just('a "quote" and \\ such')
DOCUMENTS = st.dictionaries(
    st.sampled_from(["a", "b", "c"]),
    st.recursive(LEAVES, lambda of: st.lists(of, max_size=3) | st.dictionaries(st.sampled_from("xyz"), of, max_size=3)),
    min_size=1,
    max_size=3,
)


@functools.cache
def whole_engine() -> Engine:
    return Engine(policy.parse('payloads = "pseudonymise"').plan(), key=b"k" * 32, shared=False)


@given(DOCUMENTS, st.floats(0, 1), st.sampled_from([None, 1]))
def test_the_beginning_of_a_document_is_completed_or_nothing(
    document: dict[str, Any], part: float, indent: int | None
) -> None:
    whole = json.dumps(document, indent=indent)
    begun = whole[: int(len(whole) * part)]
    end = completed(begun)
    if end is not None:
        json.loads(begun + end)
    assert completed(whole) == ""


def test_what_is_none_is_not_completed() -> None:
    assert completed('{"a": ]') is None
    assert completed('{"a": tru') is None
    assert completed('{"a": "\\') is None
    assert completed("}") is None
    assert completed('{"a": 1, ') == '"":null}'
    assert completed('{"a": [1, {"b') == '":null}]}'


@given(DOCUMENTS, st.floats(0, 1))
def test_no_word_is_left_and_what_is_left_is_the_beginning_of_a_document(document: dict[str, Any], part: float) -> None:
    engine = whole_engine()
    whole = json.dumps({"said": "Lovelace", **document})
    begun = whole[: max(1, int(len(whole) * part))]

    def redact(text: str) -> str:
        return str(json.loads(engine.text(json.dumps([text])))[0])

    new = as_cut_off(begun, redact)
    assert new[:1] == "{"
    assert [word for word in WORDS if word in new] == []


def test_numbers_and_names_stay_where_a_stream_breaks_off() -> None:
    assert as_cut_off('{"parcel": 47, "to": "Par', lambda text: text.replace("Par", "T")) == '{"parcel": 47, "to": "T'
    assert as_cut_off('{"parcel": tru', lambda _: "T") == '{"redacted": "T"'
    assert as_cut_off("no JSON", lambda _: "T") == "T"
