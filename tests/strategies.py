"""Anything that a span can be, for property tests."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from reenact.values.span import Resource, Scope, SpanEvent, SpanLink, SpanRecord

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
"""Unicode without surrogates, control characters included."""
RAGGED_TEXT = st.text(st.characters() | st.sampled_from("\ud800\udfff\0é😀"), max_size=20).filter(
    lambda text: text == text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
)
"""Unicode with lone surrogates; a pair of them is one character in any JSON text, so there is none here."""
INT64 = st.integers(-(2**63), 2**63 - 1)
UINT32 = st.integers(0, 2**32 - 1)
NANOSECONDS = st.integers(0, 2**64 - 1)
TRACE_ID = st.binary(min_size=16, max_size=16).map(bytes.hex)
SPAN_ID = st.binary(min_size=8, max_size=8).filter(any).map(bytes.hex)


def attribute(text: st.SearchStrategy[str] = TEXT, integers: st.SearchStrategy[int] = INT64) -> st.SearchStrategy[Any]:
    scalar = st.none() | st.booleans() | integers | st.floats(allow_nan=False) | text | st.binary(max_size=20)
    return st.recursive(
        scalar, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3), max_leaves=6
    )


def attributes(text: st.SearchStrategy[str] = TEXT, integers: st.SearchStrategy[int] = INT64) -> st.SearchStrategy[Any]:
    return st.dictionaries(text, attribute(text, integers), max_size=4)


def span_events(text: st.SearchStrategy[str] = TEXT) -> st.SearchStrategy[SpanEvent]:
    return st.builds(SpanEvent, name=text, time_ns=NANOSECONDS, attributes=attributes(text), dropped_attributes=UINT32)


def span_links(text: st.SearchStrategy[str] = TEXT) -> st.SearchStrategy[SpanLink]:
    return st.builds(
        SpanLink,
        trace_id=TRACE_ID,
        span_id=SPAN_ID,
        attributes=attributes(text),
        trace_state=text,
        dropped_attributes=UINT32,
        flags=UINT32,
    )


def resources(text: st.SearchStrategy[str] = TEXT) -> st.SearchStrategy[Resource]:
    return st.builds(Resource, attributes=attributes(text), schema_url=text, dropped_attributes=UINT32)


def scopes(text: st.SearchStrategy[str] = TEXT) -> st.SearchStrategy[Scope]:
    return st.builds(
        Scope, name=text, version=text, attributes=attributes(text), schema_url=text, dropped_attributes=UINT32
    )


def span_records(
    text: st.SearchStrategy[str] = TEXT, integers: st.SearchStrategy[int] = INT64
) -> st.SearchStrategy[SpanRecord]:
    """Spans whose every field is anything; few resources, scopes and traces, so that neighbours share them."""
    return st.builds(
        SpanRecord,
        trace_id=st.sampled_from(["0af7651916cd43dd8448eb211c80319c", "ffffffffffffffffffffffffffffffff"]) | TRACE_ID,
        span_id=SPAN_ID,
        parent_id=st.none() | SPAN_ID,
        name=text,
        start_ns=NANOSECONDS,
        end_ns=NANOSECONDS,
        kind=st.integers(0, 6),
        status=st.integers(0, 3),
        status_message=text,
        attributes=attributes(text, integers),
        events=st.lists(span_events(text), max_size=2).map(tuple),
        links=st.lists(span_links(text), max_size=2).map(tuple),
        resource=st.sampled_from([Resource(), Resource(attributes={"n": 1}), Resource(attributes={"n": True})])
        | resources(text),
        scope=st.sampled_from([Scope(), Scope(name="s", version="1")]) | scopes(text),
        trace_state=text,
        flags=UINT32,
        dropped_attributes=UINT32,
        dropped_events=UINT32,
        dropped_links=UINT32,
    )


def span_lists(
    text: st.SearchStrategy[str] = TEXT, integers: st.SearchStrategy[int] = INT64
) -> st.SearchStrategy[list[SpanRecord]]:
    return st.lists(span_records(text, integers), min_size=1, max_size=4)
