"""Any assertion that can be made, for property tests."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from reenact.values import assertion as a

TEXT = st.text(st.characters() | st.sampled_from("\"'\\#*?.:-_ \u2028\x85\r\n"), max_size=12)
WORDS = st.sampled_from(
    [
        "delete_accounts",
        "mcp__fs.read-file",
        "before",
        "where",
        "tool",
        "refusal",
        "times",
        "exit",
        "*",
        "del*",
        "7up",
        "",
    ]
)
NAMES = WORDS | TEXT
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
AMOUNTS = st.integers(0, 10**6) | st.floats(0, 1e12)
SCALARS = st.booleans() | st.integers(-(2**70), 2**70) | FLOATS | TEXT
JSON: Any = st.recursive(
    SCALARS | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
KNOWN = st.sampled_from(["check", "pay", "p*", "search", "delete_accounts", "list_accounts", "*", "ChatCompletion"])
"""Names that occur in the runs of `runs_asserted`."""
STEPS = st.sampled_from([("key",), ("to", None), ("ok",), ("amount",), ("target",)]) | st.lists(
    NAMES | st.integers(-3, 9) | st.none(), max_size=3
).map(tuple)
ORDERED = {a.Op.LESS, a.Op.AT_MOST, a.Op.MORE, a.Op.AT_LEAST}


def compared(op: a.Op) -> st.SearchStrategy[Any]:
    if op in ORDERED:
        return st.integers() | FLOATS | TEXT
    if op in {a.Op.MATCHES, a.Op.MISMATCHES}:
        return st.sampled_from(["a.c", "^x$", r"\d+", 'say "yes"', "("]).filter(lambda text: text != "(")
    if op in {a.Op.IN, a.Op.NOT_IN}:
        return st.lists(JSON, max_size=3)
    return st.none() if op in {a.Op.EXISTS, a.Op.ABSENT} else JSON


@st.composite
def conditions(draw: st.DrawFn) -> a.Condition:
    part, op = draw(st.sampled_from(a.Part)), draw(st.sampled_from(a.Op))
    paths: dict[a.Part, Any] = {
        a.Part.RAISED: st.sampled_from([(), ("message",)]),
        a.Part.CALL: st.sampled_from([("status",), ("model",), ("url",), ("method",)]),
    }
    return a.Condition(part=part, path=draw(paths.get(part, STEPS)), op=op, value=draw(compared(op)))


KINDS = st.sampled_from(["", "", "tool", "llm", "http", "retriever", "agent"])
CALLS = st.builds(a.Calls, kind=KINDS, name=KNOWN | NAMES, where=st.lists(conditions(), max_size=2).map(tuple))
COUNTS = st.sampled_from([(1, None), (0, 0), (2, 2), (3, None), (0, 4), (2, 5), (1, 1)])
SHAPES: Any = st.deferred(
    lambda: (
        st.builds(
            a.Simple,
            name=st.sampled_from(["string", "number", "integer", "boolean", "null", "object", "list", "any"]),
        )
        | st.builds(a.Exactly, value=SCALARS)
        | st.builds(a.ListOf, item=SHAPES)
        | st.builds(a.OneOf, options=st.lists(SHAPES, min_size=2, max_size=3).map(tuple))
        | RECORDS
    )
)
FIELDS = st.builds(a.Field, name=NAMES | st.just("nothing"), shape=SHAPES, optional=st.booleans())
RECORDS: Any = st.builds(a.Record, fields=st.lists(FIELDS, max_size=3).map(tuple), more=st.booleans())


@st.composite
def saying(draw: st.DrawFn) -> a.Says:
    subject, op = draw(st.sampled_from(a.Subject)), draw(st.sampled_from(a.Op))
    path = () if subject in {a.Subject.STATUS, a.Subject.STDOUT, a.Subject.STDERR} else draw(STEPS)
    return a.Says(subject=subject, path=path, op=op, value=draw(compared(op)))


ENDS = (
    st.just(a.Ends())
    | st.builds(a.Ends, ending=st.just(a.Ending.RAISED), exception=NAMES)
    | st.builds(a.Ends, ending=st.just(a.Ending.EXIT_CODE), code=st.integers(-64, 255))
)
MEMBERS: dict[type, st.SearchStrategy[Any]] = {
    a.Called: st.builds(lambda calls, count: a.Called(calls=calls, least=count[0], most=count[1]), CALLS, COUNTS),
    a.Before: st.builds(a.Before, first=CALLS, then=CALLS),
    a.OnlyAfter: st.builds(a.OnlyAfter, calls=CALLS, after=CALLS),
    a.PathIs: st.builds(
        a.PathIs, mode=st.sampled_from(a.PathMode), steps=st.lists(CALLS, min_size=1, max_size=3).map(tuple)
    ),
    a.ArgumentsAre: st.builds(a.ArgumentsAre, calls=CALLS, shape=RECORDS),
    a.ArgumentsFit: st.builds(a.ArgumentsFit, calls=CALLS),
    a.Every: st.builds(a.Every, calls=CALLS, has=st.lists(conditions(), min_size=1, max_size=2).map(tuple)),
    a.NoneAfter: st.builds(a.NoneAfter, calls=CALLS, after=st.none() | CALLS),
    a.Says: saying(),
    a.Wrote: st.builds(a.Wrote, path=NAMES, never=st.booleans()),
    a.Total: st.builds(
        a.Total,
        measure=st.sampled_from(a.Measure),
        bound=AMOUNTS,
        upper=st.booleans(),
        calls=st.none() | CALLS,
    ),
    a.ModelIs: st.builds(a.ModelIs, names=st.lists(NAMES, min_size=1, max_size=2).map(tuple), answered=st.booleans()),
    a.Ends: ENDS,
    a.Grounded: st.builds(a.Grounded, ground=st.sampled_from(a.Ground)),
    a.Prose: st.builds(
        a.Prose, asks=st.sampled_from(a.Asks), text=TEXT, least=st.none() | st.floats(0, 1), judge=NAMES
    ),
    a.Price: st.builds(
        a.Price,
        model=NAMES,
        input=AMOUNTS,
        output=AMOUNTS,
        cached=st.none() | AMOUNTS,
        written=st.none() | AMOUNTS,
    ),
}
"""A strategy for every member of the union."""
