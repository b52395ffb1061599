"""What a unit of work that came in was answered, held against what it is answered in a replay."""

from __future__ import annotations

from collections.abc import Iterator

from reenact.compare.ending import of_run
from reenact.compare.fields import field_differences
from reenact.values.difference import ABSENT, Absent, Divergence
from reenact.values.json import Json, parsed_or_none
from reenact.values.run import Run
from reenact.values.unit import answer_of, inbound, job_of, request_of, result_of

Headers = tuple[tuple[str, str], ...]


def answer_differences(a: Run, b: Run) -> Iterator[Divergence]:
    """Yield in what the answers differ: the status, the headers, then the body, field by field where both are JSON.

    Of a client that went away only what it had by then is compared. A body that was too large to be kept is not.
    """
    if job_of(a) is not None and job_of(b) is not None:
        yield from _result_differences(a, b)
        return
    before, now = answer_of(a), answer_of(b)
    if before is None or inbound(b) is None:  # a program of the user's own made the calls
        return
    if now is None:
        yield of_run(a, b, "answer", f"status {before.status}", ABSENT)
        return
    if before.status != now.status:
        yield of_run(a, b, "answer.status", before.status, now.status)
    if before.headers is not None and now.headers is not None:
        yield from _header_differences(a, b, before.headers, now.headers)
    if before.body is None or now.body is None or before.body == now.body:
        return
    request = request_of(a)
    if request is not None and request.left_after is not None and now.body[: len(before.body)] == before.body:
        return
    left, right = parsed_or_none(before.body), parsed_or_none(now.body)
    if isinstance(left, dict | list) and isinstance(right, dict | list):
        differences = list(field_differences(left, right, "answer.body"))
        yield from (of_run(a, b, each.path, each.a, each.b) for each in differences)
        if differences:
            return
    yield of_run(a, b, "answer.body", before.body.decode("utf-8", "replace"), now.body.decode("utf-8", "replace"))


def _header_differences(a: Run, b: Run, before: Headers, now: Headers) -> Iterator[Divergence]:
    from reenact.compare.answer_headers import header_differences  # for units that came in over HTTP
    from reenact.compare.volatile import Side

    sides = [Side(began_ns=run.started_ns, ended_ns=run.ended_ns) for run in (a, b)]
    for name, one, other in header_differences(before, now, *sides):
        yield of_run(a, b, f"answer.headers.{name}", one, other)


def _result_differences(a: Run, b: Run) -> Iterator[Divergence]:
    """Yield in what the results of a job differ. One that raised has none; how it ended is compared elsewhere."""
    before, now = result_of(a), result_of(b)
    if before is ABSENT or now is ABSENT:
        return
    left, right = {"result": _plain(before)}, {"result": _plain(now)}
    yield from (of_run(a, b, each.path, each.a, each.b) for each in field_differences(left, right, ""))


def _plain(value: Json | Absent) -> Json:
    return None if isinstance(value, Absent) else value
