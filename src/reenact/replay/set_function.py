"""Changing what a function's call came to: its result, what it raised, what it yielded."""

from __future__ import annotations

import builtins
import json
import re

from reenact.values import typed
from reenact.values.call import (
    Chunk,
    ExceptionRecord,
    Outcome,
    Raised,
    Returned,
    Streamed,
    StreamEnd,
    Unfinished,
    Value,
)
from reenact.values.change import CannotSet
from reenact.values.difference import ABSENT, Absent
from reenact.values.json import Json
from reenact.values.json_path import Path, value_at, with_value
from reenact.values.lenient import as_object, as_text

_RAISED = re.compile(r"([A-Za-z_][\w.]*)\s*(?::\s*(.*))?", re.DOTALL)
_PIECES = frozenset({"chunks", "yielded"})


def changed(outcome: Outcome, steps: Path, value: Json) -> Outcome:
    """Give an outcome with `value` at `steps`. Raises `ValueError` where there is no such place.

    The first step is `result`, `raised`, or `chunks` of a generator; any other is a place in the result.
    """
    match steps:
        case ("raised",):
            error = exception(value)
            if isinstance(outcome, Streamed):
                return Streamed(end=StreamEnd.RAISED, exception=error)
            return Raised(exception=error)
        case (str(word), *rest) if word in _PIECES and isinstance(outcome, Streamed):
            return _yielding(outcome, tuple(rest), value)
        case _:
            pass
    rest = steps[1:] if steps[:1] == ("result",) else steps
    if isinstance(outcome, Streamed):
        old_result = outcome.result
        return Streamed(chunks=outcome.chunks, result=with_value(old_result, rest, value))
    old_result = outcome.payload.json if isinstance(outcome, Returned) and isinstance(outcome.payload, Value) else None
    if rest and not isinstance(outcome, Returned):
        ending = "did not end" if isinstance(outcome, Unfinished) else "raised"
        raise CannotSet(f"it {ending} and has no result; set `result` as a whole")
    return Returned(payload=Value(json=with_value(old_result, rest, value)))


def value(outcome: Outcome, steps: Path) -> Json | Absent:
    """Give what lies at `steps` of an outcome, or ABSENT."""
    if steps == ("raised",):
        error = outcome.exception if isinstance(outcome, Raised | Streamed) else None
        return f"{error.qualname}: {error.message}" if error is not None else ABSENT
    if steps and steps[0] in _PIECES and isinstance(outcome, Streamed):
        return value_at([chunk.value for chunk in outcome.chunks], steps[1:])
    rest = steps[1:] if steps[:1] == ("result",) else steps
    if isinstance(outcome, Returned) and isinstance(outcome.payload, Value):
        return value_at(outcome.payload.json, rest)
    return value_at(outcome.result, rest) if isinstance(outcome, Streamed) else ABSENT


def exception(spelling: Json) -> ExceptionRecord:
    """Make an exception of `TimeoutError:"took too long"`, or of `{"type": …, "message": …}`. Raises `ValueError`.

    A name without a dot is one of Python's own; others are `module.Class`, found in the program when it is raised.
    """
    fields = as_object(spelling)
    match = _RAISED.fullmatch(as_text(spelling).strip()) if isinstance(spelling, str) else None
    if fields.get("type"):
        name, message = as_text(fields["type"]), as_text(fields.get("message"))
    elif match is not None:
        name, message = match[1], _unquoted(match[2] or "")
    else:
        raise CannotSet(f'an exception is spelled TimeoutError:"why", not {json.dumps(spelling)[:80]}')
    module, _, qualname = name.rpartition(".")
    if module in {"", "builtins"}:
        cls: object = getattr(builtins, qualname, None)
        if not (isinstance(cls, type) and issubclass(cls, BaseException)):
            raise CannotSet(f"{qualname} is no exception of Python's own; name another one with its module")
        return replace_trace(typed.encode_exception(cls(message) if message else cls()))
    bases = ("builtins:Exception", "builtins:BaseException", "builtins:object")
    args: list[Json] = [message] if message else []
    return ExceptionRecord(module=module, qualname=qualname, message=message, bases=bases, args=args)


def replace_trace(record: ExceptionRecord) -> ExceptionRecord:
    """Leave out a stack trace: nothing raised this yet."""
    return ExceptionRecord(
        module=record.module, qualname=record.qualname, message=record.message, bases=record.bases, args=record.args
    )


def _unquoted(text: str) -> str:
    try:
        read = json.loads(text) if text[:1] == '"' else text
    except ValueError:
        return text
    return read if isinstance(read, str) else text


def _yielding(outcome: Streamed, rest: Path, value: Json) -> Outcome:
    items = with_value([chunk.value for chunk in outcome.chunks], rest, value)
    if not isinstance(items, list):
        raise CannotSet("what a generator yields is a list")
    last = outcome.chunks[-1] if outcome.chunks else Chunk(offset_us=0, order=0)
    chunks = [
        Chunk(offset_us=old_chunk.offset_us, order=old_chunk.order, value=item)
        for at, item in enumerate(items)
        for old_chunk in [outcome.chunks[at] if at < len(outcome.chunks) else Chunk(offset_us=last.offset_us, order=0)]
    ]
    return Streamed(chunks=tuple(chunks), end=outcome.end, exception=outcome.exception, result=outcome.result)
