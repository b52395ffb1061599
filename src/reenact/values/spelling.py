"""The walk through a value that spells it as typed JSON, and the spelling of each type that has one."""

from __future__ import annotations

import base64
import dataclasses
import traceback
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum
from math import isfinite
from pathlib import PurePath
from types import SimpleNamespace
from typing import Any, Final, TypeAlias, cast
from uuid import UUID

from reenact.values import alarms
from reenact.values.call import ExceptionRecord
from reenact.values.classes import (
    BUILTIN_BASES,
    RECORD,
    SCALARS,
    TAGS,
    class_of,
    findable,
    reference,
    text_json,
    unstable,
    unstable_places,
)
from reenact.values.exception_record import exception_to_json
from reenact.values.json import Json, canonical

DEEPEST: Final = 500
"""Levels of JSON that a value may nest; what lies deeper is unstable."""
MOST_CAUSES: Final = 8
LONGEST_STACKTRACE: Final = 32_768
"""Characters kept of an exception's stack trace: its end, which names the place."""

_SMALLEST, _LARGEST = -(2**63), 2**64 - 1
_MICROSECOND = timedelta(microseconds=1)
_SLOTS = ("errno", "strerror", "filename", "filename2", "name", "path")
"""Attributes that some built-in exceptions keep outside `args` and `__dict__`."""

Writer: TypeAlias = "Callable[[Encoding, Any], Json]"


class Encoding:
    """One walk through one value."""

    __slots__ = ("_depth", "_open")

    def __init__(self) -> None:
        self._depth = 0
        self._open: set[int] = set()
        """The containers around the one in hand, by id."""

    def write(self, value: Any) -> Json:
        """Spell one value. One frame a level, so that deep ones stay within Python's recursion limit."""
        kind = cast("type[Any]", type(value))
        if scalar := _SCALARS.get(kind):
            return scalar(value)
        if self._depth >= DEEPEST or id(value) in self._open:
            return unstable(value)
        self._depth += 1
        self._open.add(id(value))
        try:
            if kind is list:
                items: list[Json] = []
                for item in value.copy():
                    items.append(self.write(item))  # noqa: PERF401 -- a comprehension would be a second frame
                return items
            if kind is dict and _plain_keys(value := value.copy()):
                pairs: dict[str, Json] = {}
                for key, item in value.items():
                    pairs[key] = self.write(item)
                return pairs
            return _writer(value, kind)(self, value)
        except Exception:  # noqa: BLE001 -- the value's own code failed, or no stack is left
            alarms.pass_on()
            return unstable(value)
        finally:
            self._depth -= 1
            self._open.discard(id(value))

    def items(self, values: Iterable[object]) -> list[Json]:
        """Spell each value as an array inside a tag."""
        self._depth += 1
        try:
            return [self.write(value) for value in values]
        finally:
            self._depth -= 1

    def pairs(self, value: dict[Any, Any]) -> list[Json]:
        """Spell a dict as an array of key and value, in its order."""
        return [self.items(pair) for pair in list(dict[Any, Any].items(value))]

    def record(self, error: BaseException, causes: int = MOST_CAUSES) -> ExceptionRecord:
        """Write down an exception; never raises an `Exception`."""
        cls = type(error)
        own_record = vars(error).get(RECORD)
        if isinstance(own_record, ExceptionRecord):
            return own_record
        state: dict[str, Json] = {}
        for name, value in _state(error).items():
            spelling = self.write(value)
            if not unstable_places(spelling):
                state[name] = spelling
        cause = error.__cause__
        context = error.__context__ if cause is None and not error.__suppress_context__ else None
        stacktrace = _attempt(lambda: "".join(traceback.format_exception(error, chain=False)))
        return ExceptionRecord(
            module=cls.__module__,
            qualname=cls.__qualname__,
            message=_attempt(lambda: str(error)),
            bases=tuple(reference(base) for base in cls.__mro__[1:]),
            args=self.items(error.args),
            state=state or None,
            cause=self.record(cause, causes - 1) if cause is not None and causes > 0 else None,
            context=self.record(context, causes - 1) if context is not None and causes > 0 else None,
            stacktrace=stacktrace[-LONGEST_STACKTRACE:],
        )


def _plain_keys(value: dict[Any, Any]) -> bool:
    for key in value:
        if type(key) is not str or key in TAGS or not (key.isascii() or text_json(key) is key):
            return False
    return True


def _state(error: BaseException) -> dict[str, object]:
    state: dict[str, object] = {name: value for name, value in vars(error).items() if type(name) is str}
    if isinstance(error, OSError | ImportError | NameError | AttributeError):
        for name in _SLOTS:
            try:
                value = getattr(error, name, None)
            except Exception:  # noqa: BLE001 -- a property of a subclass
                alarms.pass_on()
                continue
            if value is not None:
                state.setdefault(name, value)
    return state


def _attempt(say: Callable[[], str]) -> str:
    try:
        return str.__str__(say())
    except Exception as failure:  # noqa: BLE001 -- the exception's own code
        alarms.pass_on()
        return f"<raised {type(failure).__name__}>"


def _integer(value: int) -> Json:
    if _SMALLEST <= value <= _LARGEST:
        return value
    return {"$int": hex(value)}  # decimal digits are limited to 4,300 by Python, hexadecimal ones are not


def _float(value: float) -> Json:
    return value if isfinite(value) else {"$float": repr(value)}


def _same(value: Any) -> Json:
    return cast("Json", value)


_SCALARS: dict[type, Callable[[Any], Json]] = {
    type(None): _same,
    bool: _same,
    int: _integer,
    float: _float,
    str: text_json,
}


def _base64(value: bytes | bytearray) -> str:
    return base64.b64encode(value).decode()


def _sorted(encoding: Encoding, value: set[Any] | frozenset[Any]) -> list[Json]:
    """Spell members in an order that does not hang on Python's hash seed."""
    return sorted(encoding.items(value), key=canonical)


def _zone(zone: tzinfo, offset: timedelta | None) -> Json:
    microseconds = None if offset is None else offset // _MICROSECOND
    if type(zone) is timezone:
        name = zone.tzname(None)
        unnamed = timezone(zone.utcoffset(None)).tzname(None) == name
        return {"offset": microseconds} if unnamed else {"offset": microseconds, "name": text_json(name)}
    key = getattr(zone, "key", None)
    if type(zone).__module__ in ("zoneinfo", "zoneinfo._zoneinfo") and isinstance(key, str):
        return {"zone": key}
    return {**unstable(zone), "offset": microseconds}


def _moment(tag: str, value: datetime | time) -> Json:
    spelled: dict[str, Json] = {tag: value.replace(tzinfo=None).isoformat()}
    if value.tzinfo is not None:
        spelled["tz"] = _zone(value.tzinfo, value.utcoffset())
    if value.fold:
        spelled["fold"] = value.fold
    return spelled


def _defaultdict(encoding: Encoding, value: defaultdict[Any, Any]) -> Json:
    return {"$defaultdict": encoding.pairs(value), "factory": encoding.write(value.default_factory)}


_EXACT: dict[type, Writer] = {
    dict: lambda encoding, value: {"$dict": encoding.pairs(value)},
    bytes: lambda _, value: {"$bytes": _base64(value)},
    bytearray: lambda _, value: {"$bytearray": _base64(value)},
    tuple: lambda encoding, value: {"$tuple": encoding.items(value)},
    set: lambda encoding, value: {"$set": _sorted(encoding, value.copy())},
    frozenset: lambda encoding, value: {"$frozenset": _sorted(encoding, value)},
    complex: lambda _, value: {"$complex": [_float(value.real), _float(value.imag)]},
    range: lambda _, value: {"$range": [_integer(value.start), _integer(value.stop), _integer(value.step)]},
    datetime: lambda _, value: _moment("$datetime", value),
    time: lambda _, value: _moment("$time", value),
    date: lambda _, value: {"$date": value.isoformat()},
    timedelta: lambda _, value: {"$timedelta": [value.days, value.seconds, value.microseconds]},
    Decimal: lambda _, value: {"$decimal": str(value)},
    UUID: lambda _, value: {"$uuid": str(value)},
    OrderedDict: lambda encoding, value: {"$ordereddict": encoding.pairs(value)},
    defaultdict: _defaultdict,
    deque: lambda encoding, value: {"$deque": encoding.items(value.copy()), "maxlen": value.maxlen},
}


def _writer(value: object, kind: type) -> Writer:
    """Choose the spelling of a value that is neither plain nor a container of plain things."""
    if exact := _EXACT.get(kind):
        return exact
    if isinstance(value, PurePath):
        return _path
    if isinstance(value, BaseException):
        return _exception
    if kind is SimpleNamespace:
        return _namespace
    if f"{kind.__module__}:{kind.__qualname__}" in SCALARS:
        return _scalar
    if not findable(value if isinstance(value, type) else kind):
        return _unstable
    return next((writer for fits, writer in _FAMILIES if fits(value, kind)), _unstable)


def _unstable(_: Encoding, value: object) -> Json:
    return unstable(value)


def _namespace(encoding: Encoding, value: SimpleNamespace) -> Json:
    return {"$namespace": encoding.pairs(dict(vars(value)))}


def _scalar(_: Encoding, value: object) -> Json:
    if getattr(value, "key", "") is None:  # a time zone that was read from a file
        return unstable(value)
    return {"$scalar": class_of(value), "value": str(value)}


def _path(_: Encoding, value: PurePath) -> Json:
    kind = type(value)
    if not kind.__module__.startswith("pathlib"):
        return unstable(value)
    return {"$path": kind.__name__, "value": text_json(str(value))}


def _exception(encoding: Encoding, value: BaseException) -> Json:
    return {"$exception": exception_to_json(encoding.record(value))}


def _enum(encoding: Encoding, value: Enum) -> Json:
    return {"$enum": class_of(value), "name": value.name, "value": encoding.write(value.value)}


def _namedtuple(encoding: Encoding, value: tuple[Any, ...]) -> Json:
    return {"$namedtuple": class_of(value), "values": encoding.items(tuple[Any, ...].__iter__(value))}


def _fields_of(value: Any, names: Iterable[str]) -> dict[str, object]:
    """Read what is set of the named fields, slots included, and whatever else the instance holds."""
    fields: dict[str, object] = dict(getattr(value, "__dict__", {}))
    for name in names:
        try:
            fields.setdefault(name, object.__getattribute__(value, name))
        except AttributeError:  # a field that was never set
            continue
    return fields


def _dataclass(encoding: Encoding, value: Any) -> Json:
    fields = _fields_of(value, (field.name for field in dataclasses.fields(value)))
    return {"$dataclass": class_of(value), "fields": encoding.write(fields)}


def _attrs(encoding: Encoding, value: Any) -> Json:
    fields = _fields_of(value, [attribute.name for attribute in value.__attrs_attrs__])
    return {"$attrs": class_of(value), "fields": encoding.write(fields)}


def _model(encoding: Encoding, value: Any) -> Json:
    """Spell a pydantic model by the four things that pydantic's own copying and pickling carry."""
    spelled: dict[str, Json] = {
        "$model": class_of(value),
        "fields": encoding.write(dict(value.__dict__)),
        "set": [text_json(name) for name in sorted(value.__pydantic_fields_set__)],
    }
    if (extra := value.__pydantic_extra__) is not None:
        spelled["extra"] = encoding.write(dict(extra))
    if (private := value.__pydantic_private__) is not None:
        spellings = {name: encoding.write(item) for name, item in private.items()}
        spelled["private"] = {name: item for name, item in spellings.items() if not unstable_places(item)}
    return spelled


def _subclass(encoding: Encoding, value: Any) -> Json:
    base = next(base for base in BUILTIN_BASES if isinstance(value, base))
    plain = dict(dict[Any, Any].items(value)) if base is dict else base(_raw(base, value))
    spelled: dict[str, Json] = {
        "$subclass": class_of(value),
        "of": base.__name__,
        "value": encoding.write(plain),
    }
    if state := getattr(value, "__dict__", None):
        spelled["state"] = encoding.write(dict(state))
    return spelled


def _raw(base: Any, value: Any) -> Any:
    """Take the built-in value out of a subclass's instance, past the methods that the subclass replaced."""
    if base in (tuple, list, set, frozenset):
        return cast("Any", base.__iter__(value))
    own: dict[type, Callable[[Any], Any]] = {
        str: str.__str__,
        int: int.__int__,
        float: float.__float__,
        complex: lambda number: complex(float.__float__(number.real), float.__float__(number.imag)),
    }
    return own.get(base, lambda original: original)(value)


def _is_data(marker: str) -> Callable[[object, type], bool]:
    return lambda value, kind: hasattr(kind, marker) and not isinstance(value, BUILTIN_BASES)


_FAMILIES: tuple[tuple[Callable[[Any, Any], bool], Writer], ...] = (
    (lambda value, _: isinstance(value, type), lambda _, value: {"$class": reference(value)}),
    (lambda value, _: isinstance(value, Enum), _enum),
    (lambda value, kind: isinstance(value, tuple) and isinstance(getattr(kind, "_fields", None), tuple), _namedtuple),
    (_is_data("__pydantic_fields_set__"), _model),
    (_is_data("__dataclass_fields__"), _dataclass),
    (_is_data("__attrs_attrs__"), _attrs),
    (lambda value, _: isinstance(value, BUILTIN_BASES), _subclass),
)
"""Families of classes by what marks them, the most particular first."""
