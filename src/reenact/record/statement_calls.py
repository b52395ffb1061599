"""Statements to databases in the process, written down as calls at the end of the unit that asked them.

Each is a call like one to a server (`boundary.databases`), at the time and in the place in which it was asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from opentelemetry.trace import SpanKind
from opentelemetry.trace.status import StatusCode

from reenact.boundary.place import Place
from reenact.boundary.sqlite_statements import Statement
from reenact.contracts.dialect import Writing
from reenact.record.span import CallSpans
from reenact.values.call import Returned, Value
from reenact.values.query import facts


def write_statements(
    spans: CallSpans,
    dialect: Writing,
    root: Place,
    identity: Mapping[str, Any],
    statements: Iterable[Statement],
    since_ns: int,
) -> None:
    """Write statements down below the root of a run that is about to end, which began at `since_ns`.

    The run of a process begins with its first call, which may be after a statement: none is older than its run.
    """
    for each in statements:
        call, answer = each.query().call(), each.answer()
        shared, attributes = dialect.split_call(call)
        attributes |= {**identity, "reenact.lane": each.lane, "reenact.order.start": each.numbers[0]}
        above = each.parent if each.parent is not None and each.parent.trace_id == root.trace_id else root
        span = spans.start(call.name, above, SpanKind.CLIENT, attributes, shared, began_ns=max(each.began_ns, since_ns))
        code, message = (StatusCode.ERROR, str(each.error["class"])) if each.error else (StatusCode.OK, "")
        outcome = dialect.encode_outcome(call, Returned(payload=Value(json=answer)))
        ended_ns = max(each.ended_ns, since_ns)
        span.end({**outcome, **facts(answer)}, code, message, lambda: each.numbers[1], ended_ns=ended_ns)  # noqa: B023 - called at once
