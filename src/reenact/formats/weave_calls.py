"""Calls of W&B Weave: lines of JSON as its API streams them, and CSV. From its documentation, not tried on data.

A field of a call stands under `weave.` and its name, objects as their JSON; CSV has columns such as `inputs.messages`,
which are put together again. Values may be references (`weave:///…`) whose content is not in the export: they stay as
they are, and the verdict says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, cast

from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.foreign.made_ids import identified
from reenact.foreign.records import attribute_text, is_said, nanoseconds, originals, rest, span_id, trace_id, unwrapped
from reenact.foreign.tables import columns, rows
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.skeleton import holds
from reenact.values.span import STATUS_ERROR, STATUS_UNSET, Attribute, Scope, SpanEvent, SpanRecord

_MARKS: Final = (("op_name", "trace_id", "started_at|inputs"), ("calls[].op_name",), ("data[].op_name",))
_FIELDS: Final = ("inputs", "output", "attributes", "summary", "exception", "thread_id", "turn_id", "wb_user_id")
_NESTED: Final = ("inputs", "output", "attributes", "summary")
_TAKEN: Final = frozenset({*_FIELDS, "id", "trace_id", "parent_id", "started_at", "ended_at", "op_name"})

_Call = dict[str, Json]


def _recognises(head: bytes) -> float:
    if columns(head) >= {"op_name", "trace_id"}:
        return 0.96
    return 0.96 if any(holds(head, *marks) for marks in _MARKS) else 0.0


@identified
def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    for line, document in rows(stream, str(path)):
        has_calls = False
        for each in cast("list[Json]", document) if isinstance(document, list) else [document]:
            for call in _calls(as_object(each)):
                has_calls = True
                yield _span(call)
        if not has_calls:
            raise InputError(f"{path}:{line}", "this is no call of Weave: it has no `op_name`")


def _calls(record: _Call) -> Iterator[_Call]:
    if "op_name" in record:
        yield _gathered(record)
        return
    for listed in ("calls", "data"):
        for item in map(as_object, as_list(record.get(listed))):
            if "op_name" in item:
                yield _gathered(item)


def _gathered(call: _Call) -> _Call:
    """Put the columns of CSV together: `inputs.messages` is a field of `inputs`."""
    whole: _Call = {name: value for name, value in call.items() if name.partition(".")[0] not in _NESTED}
    for name, value in call.items():
        top, dot, below = name.partition(".")
        if top not in _NESTED:
            continue
        if not dot:
            whole[top] = {**as_object(whole.get(top)), **read} if isinstance(read := unwrapped(value), dict) else value
        elif is_said(value) and isinstance(fields := whole.setdefault(top, {}), dict):
            fields[below] = unwrapped(value)
    return whole


def _span(call: _Call) -> SpanRecord:
    parent = call.get("parent_id")
    failed = as_text(call.get("exception"))
    ended = nanoseconds(call.get("ended_at"))
    attributes: dict[str, Attribute] = {"weave.op_name": as_text(call.get("op_name"))}
    for field in _FIELDS:
        if is_said(value := call.get(field)):
            attributes[f"weave.{field}"] = attribute_text(value)
    for name, field in (("session.id", "thread_id"), ("user.id", "wb_user_id")):
        if is_said(value := call.get(field)):
            attributes[name] = attribute_text(value)
    attributes |= originals("weave", call.get("trace_id"), call.get("id"), parent)
    if left := rest(call, _TAKEN):
        attributes["weave.record"] = left
    return SpanRecord(
        trace_id=trace_id(call.get("trace_id")),
        span_id=span_id(call.get("id")),
        parent_id=span_id(parent) if parent else None,
        name=as_text(call.get("display_name")) or _op(call),
        start_ns=nanoseconds(call.get("started_at")),
        end_ns=ended,
        status=STATUS_ERROR if failed else STATUS_UNSET,
        status_message=failed.strip().rpartition("\n")[2],
        attributes=attributes,
        events=(_exception(failed, ended),) if failed else (),
        scope=Scope(name="weave"),
    )


def _op(call: _Call) -> str:
    """Give an operation's name out of its reference, `weave:///team/project/op/name:digest`."""
    return as_text(call.get("op_name")).rpartition("/")[2].partition(":")[0]


def _exception(failed: str, time: int) -> SpanEvent:
    last = failed.strip().rpartition("\n")[2]
    kind, colon, message = last.partition(": ")
    attributes: dict[str, Attribute] = {
        "exception.type": kind if colon else "Exception",
        "exception.message": message if colon else last,
        "exception.stacktrace": failed,
    }
    return SpanEvent(name="exception", time_ns=time, attributes=attributes)


FORMAT = Format(
    name="weave",
    suffix=".weave.jsonl",
    recognises=_recognises,
    decode=_decode,
    most=0.96,
    marks=HeadMarks(keys=_MARKS, plain=(("op_name", "trace_id"),)),
)
