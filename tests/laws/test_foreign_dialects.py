"""Laws of every dialect that is only read: nothing of a span is lost, and none is too strange."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from golden_cases import GOLDEN
from golden_spans import span_of
from reenact.contracts.dialect import Dialect
from reenact.discover import members
from reenact.foreign.foreign_call import said_of
from reenact.graph.build import interpret
from reenact.graph.logs import joined
from reenact.read.open import open_spans
from reenact.values.call import Call, Outcome
from strategies_call import json_values

DIALECTS = members("dialects", Dialect)
FOREIGN = [dialect for dialect in DIALECTS if dialect.writing is None]


def written_spans() -> list[dict[str, Any]]:
    """Every span of the dialects' golden cases."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted((GOLDEN / "dialects").rglob("span.json"))]


WRITTEN = written_spans()
NAMES = sorted({name for span in WRITTEN for name in span["attributes"]})
SCOPES = sorted({span.get("scope", "") for span in WRITTEN})
EVENTS = sorted({event["name"] for span in WRITTEN for event in span.get("events", ())} | {"exception"})
EVENT_NAMES = sorted(
    {name for span in WRITTEN for event in span.get("events", ()) for name in event.get("attributes", {})} | {"body"}
)
VALUES = [value for span in WRITTEN for value in span["attributes"].values()]
"""The vocabulary of all dialects."""

numbers = st.sampled_from(["0", "7", "1000000000", "-1", "__proto__", "constructor", "²"])
names = st.sampled_from(NAMES) | st.builds(
    lambda name, number: name.replace(".0.", f".{number}."), st.sampled_from(NAMES), numbers
)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
values = st.sampled_from(VALUES) | plain | json_values.map(json.dumps)
told = st.fixed_dictionaries(
    {"name": st.sampled_from(EVENTS), "attributes": st.dictionaries(st.sampled_from(EVENT_NAMES), values, max_size=4)}
)
bags = st.fixed_dictionaries(
    {
        "name": st.sampled_from([span["name"] for span in WRITTEN]) | st.text(),
        "scope": st.sampled_from(SCOPES),
        "attributes": st.dictionaries(names, values, max_size=10),
        "events": st.lists(told, max_size=4),
        "status": st.sampled_from([0, 2]),
    }
)
real = st.builds(
    lambda span, changed: {**span, "attributes": {**span["attributes"], **changed}},
    st.sampled_from(WRITTEN),
    st.dictionaries(names, values, max_size=3),
)
"""A real span of which a few attributes are of another type than anybody expects."""


@given(bags | real)
def test_no_bag_of_known_names_is_too_strange(written: dict[str, Any]) -> None:
    span = span_of(written)
    for dialect in DIALECTS:
        assert 0 <= dialect.recognises(span) <= 1
        call, outcome = dialect.decode(span)
        assert isinstance(call, Call)
        assert isinstance(outcome, Outcome)


def lost(dialect: Dialect, written: Any) -> list[str]:
    """Attributes of a span that stand nowhere in what a dialect makes of it."""
    span = written if not isinstance(written, dict) else span_of(written)
    call, _ = dialect.decode(span)
    said = {name: value for name, value in said_of(span).items() if not name.startswith("reenact.")}
    return [name for name, value in said.items() if call.attributes.get(name) != value]


OPEN_BOOKS = [dialect for dialect in FOREIGN if dialect.name != "http-exchange"]
"""Dialects whose calls carry all attributes as they came."""


@given(real)
def test_no_attribute_is_lost(written: dict[str, Any]) -> None:
    for dialect in OPEN_BOOKS:
        if dialect.recognises(span_of(written)) > 0:
            gone = lost(dialect, written)
            assert [name for name in gone if "nan" not in str(written["attributes"][name]).lower()] == []


def test_the_id_that_an_emitter_gives_a_tool_call_is_kept_beside_its_own_word_for_it() -> None:
    for written in WRITTEN:
        named = {**written, "attributes": {**written["attributes"], "gen_ai.tool.call.id": "another"}}
        for dialect in OPEN_BOOKS:
            if dialect.recognises(span_of(named)) > 0:
                assert lost(dialect, named) == []


def test_no_attribute_of_a_real_span_is_lost(shared_data: Path) -> None:
    count = 0
    for path in sorted((shared_data / "traces").rglob("*.otlp.jsonl")):
        for span in joined(open_spans(path)):
            best = max(DIALECTS, key=lambda dialect: dialect.recognises(span))
            if best in OPEN_BOOKS and best.recognises(span) > 0:
                assert lost(best, span) == [], (path.name, span.name)
                count += 1
    assert count > 300


def test_whoever_is_surest_is_named_on_the_call(shared_data: Path) -> None:
    for path in sorted((shared_data / "traces" / "rosetta").glob("*.otlp.jsonl")):
        for span in joined(open_spans(path)):
            call, _ = interpret(span)
            assert call.attributes.get("reenact.dialect"), (path.name, span.name)
