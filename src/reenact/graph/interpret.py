"""Which dialect reads a span: the surest one. No other is loaded than those that may be (`discover.surest`)."""

from __future__ import annotations

import functools
from typing import Final

from reenact.contracts.dialect import Dialect, SpanMarks
from reenact.discover import Candidate, candidates, surest
from reenact.values.call import Call, CallKind, FunctionCall, HttpRequest, Outcome, Unfinished
from reenact.values.span import SpanRecord

_MODELS = frozenset({CallKind.LLM, CallKind.EMBEDDING})


@functools.cache
def dialects() -> tuple[Candidate[Dialect, SpanRecord], ...]:
    """Give every dialect, those that can be surest first."""
    return candidates("dialects", Dialect, SpanMarks.read)


def likely(span: SpanRecord) -> tuple[Candidate[Dialect, SpanRecord], ...]:
    """Give the dialects that may read a span, by their marks: spans of one kind show the same, and are many."""
    if span.events:  # their names and attributes are marks as well
        return dialects()
    attributes = span.attributes
    values = tuple(value if isinstance(value := attributes.get(name), str) else None for name in _telling())
    kind = (*attributes, None, *values, span.scope.name, span.name)
    matches = _LIKELY.get(kind)
    if matches is None:
        if len(_LIKELY) >= _MOST_KINDS:
            _LIKELY.clear()
        matches = tuple(each for each in dialects() if each.marks is None or each.marks.on(span))
        _LIKELY[kind] = matches
    return matches


_MOST_KINDS: Final = 2048
_LIKELY: Final[dict[tuple[str | None, ...], tuple[Candidate[Dialect, SpanRecord], ...]]] = {}


@functools.cache
def _telling() -> tuple[str, ...]:
    """Give the names of the attributes whose values are marks of some dialect."""
    marks = [each.marks for each in dialects() if isinstance(each.marks, SpanMarks)]
    return tuple(sorted({name for each in marks for name, _ in each.values}))


def interpret(span: SpanRecord) -> tuple[Call, Outcome]:
    """Decode a span with the dialect that is surest of it; a span that no dialect knows becomes an unknown call.

    Two vendors may write on one span. Where the surest dialect finds a model call without its request, the next one
    that finds the request decodes the span.
    """
    _, dialect = surest(likely(span), span)
    if dialect is None:
        request = FunctionCall(function="", arguments={})
        return Call(kind=CallKind.UNKNOWN, name=span.name, request=request), Unfinished()
    call, outcome = dialect.decode(span)
    if call.kind in _MODELS and isinstance(call.request, FunctionCall) and "reenact.boundary" not in span.attributes:
        return _told_by_another(span, dialect, call) or (call, outcome)
    return call, outcome


def _told_by_another(span: SpanRecord, first: Dialect, call: Call) -> tuple[Call, Outcome] | None:
    """Read a call of a model, of which one dialect cannot tell what was asked, with the surest of those that can."""
    rated = sorted((-sure, each.place, each) for each in dialects() if (sure := each.sure(span)) > 0)
    for _, _, each in rated:
        if (other := each.entry.load()) is not first:
            reading = other.decode(span)
            if reading[0].kind is call.kind and isinstance(reading[0].request, HttpRequest):
                return reading
    return None
