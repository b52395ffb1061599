"""Whether a condition is true of a value: yes, no, or not to be known, since the value was lost or redacted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from reenact.assess.calls import CallView, Known, Lost
from reenact.assess.plain_values import unstable
from reenact.values import globs
from reenact.values.assertion import Calls, Condition, Op, Part, Step
from reenact.values.automaton import PatternRefused, TooHard, automaton
from reenact.values.call import ExceptionRecord, HttpRequest
from reenact.values.difference import ABSENT, Absent, short_json
from reenact.values.json import Json, compact
from reenact.values.lenient import as_list

TOKEN: Final = re.compile(r"REDACTED_[a-z0-9_]+?_[0-9a-f]{20}|__REDACTED__")


@dataclass(frozen=True, slots=True)
class Unknown:
    """It cannot be known; `why` says what is missing."""

    why: str


Truth: TypeAlias = bool | Unknown


def all_of(truths: Iterable[Truth]) -> Truth:
    """True where all are; false as soon as one is."""
    unknown: Unknown | None = None
    for each in truths:
        if each is False:
            return False
        if isinstance(each, Unknown):
            unknown = unknown or each
    return unknown or True


def any_of(truths: Iterable[Truth]) -> Truth:
    """True as soon as one is; false where none is."""
    unknown: Unknown | None = None
    for each in truths:
        if each is True:
            return True
        if isinstance(each, Unknown):
            unknown = unknown or each
    return unknown or False


def negated(truth: Truth) -> Truth:
    """Turn yes into no."""
    return truth if isinstance(truth, Unknown) else not truth


def glob(pattern: str, name: str) -> bool:
    """Tell whether a name fits a pattern in which `*` stands for any characters and `?` for one."""
    if "*" not in pattern and "?" not in pattern:
        return pattern == name
    return globs.compiled(pattern, one="?").fullmatch(name) is not None


def has_name(calls: Calls, each: CallView) -> bool:
    """Tell whether a call has the kind and name that are meant, apart from `where`."""
    if calls.kind and calls.kind != each.word:
        return False
    if not calls.kind and each.is_structure:
        return False
    return glob(calls.name, each.name)


def is_meant(calls: Calls, each: CallView) -> Truth:
    """Tell whether a call is one of those that are meant."""
    if not has_name(calls, each):
        return False
    truth = all_of(holds(condition, each) for condition in calls.where)
    return Unknown(each.doubt) if truth is True and each.doubt else truth


def holds(condition: Condition, each: CallView) -> Truth:
    """Tell whether a condition is true of a call."""
    return comparison(reached(part_of(condition, each), steps_of(condition)), condition.op, condition.value)


def steps_of(condition: Condition) -> tuple[Step, ...]:
    """Give the path below the part."""
    return condition.path if condition.part in {Part.ARGUMENTS, Part.RESULT} else ()


def part_of(condition: Condition, each: CallView) -> Known:
    """Give the value that a condition's path begins at."""
    match condition.part:
        case Part.ARGUMENTS:
            return each.arguments
        case Part.RESULT:
            return each.result
        case Part.RAISED:
            raised = each.raised
            if not isinstance(raised, ExceptionRecord):
                return raised
            return raised.message if condition.path == ("message",) else raised.qualname
        case Part.CALL:
            return _fact(condition.path, each)


def _fact(path: tuple[Step, ...], each: CallView) -> Known:
    request = each.node.call.request
    match path:
        case ("status",):
            return each.status
        case ("model",):
            model = each.asked.model if each.asked is not None else None
            return model or _or_absent(each.node.call.attributes.get("llm.model_name"))
        case ("url",):
            return request.url if isinstance(request, HttpRequest) and request.url else ABSENT
        case ("method",):
            return request.method if isinstance(request, HttpRequest) else ABSENT
        case _:
            return ABSENT


def _or_absent(value: Json) -> Known:
    return ABSENT if value is None else value


def reached(value: Known, path: tuple[Step, ...]) -> tuple[Known, ...]:
    """Follow a path down from `value`; `[*]` leads to many values, and a way that ends early to an absent one."""
    values: list[Known] = [value]
    many = False
    for step in path:
        many = many or step is None
        values = [below for each in values for below in _below(each, step)]
    values_reached = tuple(each for each in values if not (many and each is ABSENT))
    return values_reached or (ABSENT,)


def _below(value: Known, step: Step) -> Iterator[Known]:
    if isinstance(value, Lost):
        yield value
    elif step is None:
        yield from value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    elif isinstance(step, int):
        fits = isinstance(value, list) and -len(value) <= step < len(value)
        yield value[step] if isinstance(value, list) and fits else ABSENT
    elif isinstance(value, dict) and step in value:
        yield value[step]
    else:
        yield ABSENT


_NEGATIONS: Final = {
    Op.DIFFERENT: Op.EQUAL,
    Op.LACKS: Op.CONTAINS,
    Op.MISMATCHES: Op.MATCHES,
    Op.NOT_IN: Op.IN,
    Op.ABSENT: Op.EXISTS,
}


def comparison(values: tuple[Known, ...], op: Op, other: Json) -> Truth:
    """Hold values against another: true where it is of any of them; a negation is true where it is of none."""
    if (positive := _NEGATIONS.get(op)) is not None:
        return negated(comparison(values, positive, other))
    return any_of(_truth_of(value, op, other) for value in values)


def _truth_of(value: Known, op: Op, other: Json) -> Truth:
    if isinstance(value, Lost):
        return Unknown(value.why)
    if isinstance(value, Absent) or op is Op.EXISTS:
        return not isinstance(value, Absent)
    if unstable(value):
        return Unknown(f"{short_json(value)} could not be written down as data")
    match op:
        case Op.IN:
            return any_of(_equal(value, each) for each in as_list(other))
        case Op.EQUAL:
            return _equal(value, other)
        case Op.CONTAINS:
            return _contains(value, other)
        case Op.MATCHES:
            return _matches(value, str(other))
        case _:
            return _ordered(value, op, other)


def same(a: Json, b: Json) -> bool:
    """Tell whether two values are equal as JSON: 1 is 1.0, and true is not 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(value, b[name]) for name, value in a.items())
    return a == b


def _redacted(value: Json) -> str:
    match = TOKEN.search(value if isinstance(value, str) else compact(value))
    return match[0] if match else ""


def _equal(value: Json, other: Json) -> Truth:
    if same(value, other):
        return True
    token = _redacted(value)
    if not token or _redacted(other) or not _could_be(value, other):
        return False
    return Unknown(f"redaction replaced it by {token}, which says only whether two values are equal")


def _could_be(value: Json, other: Json) -> bool:
    """Tell whether a value could have been `other` before it was redacted."""
    if isinstance(value, str):
        if not isinstance(other, str):
            return TOKEN.fullmatch(value) is not None
        pieces = [re.escape(piece) for piece in TOKEN.split(value)]
        pieces[1:] = [f".{piece}" for piece in pieces[1:]]  # a token stands for one character at least
        return re.fullmatch(globs.starred(pieces, "."), other, re.DOTALL) is not None
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(
            same(a, b) or _could_be(a, b) for a, b in zip(value, other, strict=True)
        )
    if isinstance(value, dict) and isinstance(other, dict):
        names = value.keys() == other.keys()
        return names and all(same(item, other[name]) or _could_be(item, other[name]) for name, item in value.items())
    return False


def _contains(value: Json, other: Json) -> Truth:
    if isinstance(value, str):
        if isinstance(other, str) and other in value:
            return True
        token = _redacted(value) if isinstance(other, str) else ""
        return Unknown(f"redaction replaced a part of it by {token}") if token else False
    if isinstance(value, list):
        return any_of(_equal(item, other) for item in value)
    if isinstance(value, dict) and isinstance(other, dict):
        return all_of(_equal(value[name], item) if name in value else False for name, item in other.items())
    return isinstance(value, dict) and isinstance(other, str) and other in value


def _matches(value: Json, pattern: str) -> Truth:
    if not isinstance(value, str):
        return False
    token = _redacted(value)
    try:
        if not token and automaton(pattern).search(value):
            return True
    except TooHard:
        return Unknown(f"{len(value)} characters are too many to search for {compact(pattern)}")
    except PatternRefused as refused:
        return Unknown(str(refused))
    return Unknown(f"redaction replaced a part of it by {token}") if token else False


def _ordered(value: Json, op: Op, other: Json) -> Truth:
    numbers = _is_number(value) and _is_number(other)
    texts = isinstance(value, str) and isinstance(other, str)
    if isinstance(value, str) and (token := _redacted(value)):
        return Unknown(f"redaction replaced it by {token}")
    if not (numbers or texts):
        return False
    a: Any = value
    b: Any = other
    match op:
        case Op.LESS:
            return bool(a < b)
        case Op.AT_MOST:
            return bool(a <= b)
        case Op.MORE:
            return bool(a > b)
        case _:
            return bool(a >= b)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
