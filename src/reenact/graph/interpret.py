"""Which dialect reads a span: the surest one. No other is loaded than those that may be (`discover.surest`)."""

from __future__ import annotations

import functools

from reenact.contracts.dialect import Dialect, SpanMarks
from reenact.discover import Candidate, candidates, surest
from reenact.values.call import Call, CallKind, FunctionCall, HttpRequest, Outcome, Unfinished
from reenact.values.span import SpanRecord

_MODELS = frozenset({CallKind.LLM, CallKind.EMBEDDING})


@functools.cache
def dialects() -> tuple[Candidate[Dialect, SpanRecord], ...]:
    """Give every dialect, those that can be surest first."""
    return candidates("dialects", Dialect, SpanMarks.read)


def interpret(span: SpanRecord) -> tuple[Call, Outcome]:
    """Read a span with the dialect that is surest of it; what none knows stays an unknown call.

    Where the surest finds a call of a model of which it cannot tell what was asked, a dialect that can, on a span that
    two vendors wrote upon, reads it instead.
    """
    _, dialect = surest(dialects(), span)
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
            told = other.decode(span)
            if told[0].kind is call.kind and isinstance(told[0].request, HttpRequest):
                return told
    return None
