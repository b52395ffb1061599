"""Calls and outcomes of every kind, for the laws of dialects."""

from __future__ import annotations

from hypothesis import strategies as st

from reenact.values.call import (
    Body,
    Call,
    CallKind,
    Chunk,
    ExceptionRecord,
    FunctionCall,
    HttpReply,
    HttpRequest,
    Outcome,
    Raised,
    Returned,
    Streamed,
    StreamEnd,
    Unfinished,
    Value,
)
from reenact.values.json import Json, canonical

numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
json_values: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | numbers | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
json_objects = st.dictionaries(st.text(), json_values, max_size=6)
bodies = st.one_of(
    st.binary(),
    st.text().map(str.encode),
    json_values.map(canonical),
).map(Body)
headers = st.lists(st.tuples(st.text(), st.text()), max_size=4).map(tuple)
small = st.integers(0, 2**40)
shape_names = st.sampled_from(["openai.chat", "openai.responses", "openai.embeddings", "unheard.of", ""])
urls = st.sampled_from(
    [
        "https://api.openai.com/v1/chat/completions",
        "https://us.openai.azure.com/openai/deployments/d/chat/completions?api-version=2026-01-01",
        "http://127.0.0.1:8080/v1/responses",
        "http://[::1",
        "",
    ],
)

exceptions: st.SearchStrategy[ExceptionRecord] = st.recursive(
    st.builds(
        ExceptionRecord,
        module=st.text(),
        qualname=st.text(min_size=1),
        message=st.text(st.characters()),
        bases=st.lists(st.text(), max_size=3).map(tuple),
        args=st.none() | st.lists(json_values, max_size=3),
        state=st.none() | json_objects,
        stacktrace=st.text(),
    ),
    lambda inner: st.builds(
        ExceptionRecord,
        module=st.just("m"),
        qualname=st.just("Q"),
        message=st.text(),
        cause=inner,
    ),
    max_leaves=3,
)

RESERVED = ("reenact.", "http.", "url.", "input.", "output.", "llm.", "embedding.", "retrieval.", "gen_ai.", "error.")
"""How the names begin that a dialect of ours writes by itself."""
DERIVED = frozenset({"openinference.span.kind", "tool.name", "agent.name", "server.address", "server.port"})
attribute_names = st.one_of(
    st.sampled_from(
        [
            "session.id",
            "user.id",
            "metadata",
            "tag.tags",
            "reenact.tenant",
            "tool.description",
            "llm.prompt_template.x",
        ],
    ),
    st.text(min_size=1).filter(lambda name: not name.startswith(RESERVED) and name not in DERIVED),
)
attributes = st.dictionaries(
    attribute_names,
    json_values | st.text() | numbers | st.booleans() | st.lists(st.text(), max_size=3),
    max_size=4,
)

http_requests = st.builds(
    HttpRequest,
    shape=shape_names,
    method=st.sampled_from(["POST", "GET"]),
    url=urls,
    body=bodies,
    attempt=st.integers(0, 3),
)
function_calls = st.builds(FunctionCall, function=st.text(), arguments=json_objects)
calls = st.builds(
    Call,
    kind=st.sampled_from(CallKind),
    name=st.text(min_size=1),
    request=http_requests | function_calls,
    attributes=attributes,
)

byte_chunks = st.builds(Chunk, offset_us=small, order=small, data=st.binary() | st.text().map(str.encode))
value_chunks = st.builds(Chunk, offset_us=small, order=small, value=json_values)


def streams(chunks: st.SearchStrategy[Chunk], statuses: st.SearchStrategy[int]) -> st.SearchStrategy[Streamed]:
    """Streams that ended in every way."""
    common = {"status": statuses, "headers": headers, "chunks": st.lists(chunks, max_size=5).map(tuple)}
    quiet = [end for end in StreamEnd if end is not StreamEnd.RAISED]
    return st.one_of(
        st.builds(Streamed, **common, end=st.sampled_from(quiet)),
        st.builds(Streamed, **common, end=st.just(StreamEnd.RAISED), exception=exceptions),
    )


failures = st.builds(Raised, exception=exceptions) | st.builds(Unfinished)
http_outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(Returned, payload=st.builds(HttpReply, status=st.integers(100, 599), headers=headers, body=bodies)),
    streams(byte_chunks, st.integers(100, 599)),
    failures,
)
function_outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(Returned, payload=st.builds(Value, json=json_values | st.text())),
    streams(value_chunks, st.just(200)),
    failures,
)


@st.composite
def crossings(draw: st.DrawFn) -> tuple[Call, Outcome]:
    """Draw a call, and an outcome that fits it."""
    call = draw(calls)
    fitting = http_outcomes if isinstance(call.request, HttpRequest) else function_outcomes
    return call, draw(fitting)
