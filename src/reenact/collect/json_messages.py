"""OTLP/JSON into the protobuf messages that it maps to, several hundred times as fast as protobuf's own JSON reader.

The mapping is that of the OTLP specification 1.11, "JSON Protobuf Encoding": ids in hexadecimal, enums as numbers,
64-bit integers as decimal strings or numbers, unknown fields ignored. The names of the .proto files and of enum values,
which some writers send, are read as well where the right name is not there, as the OpenTelemetry Collector does.
"""

from __future__ import annotations

import base64
import binascii
import functools
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

import orjson
from google.protobuf.message_factory import GetMessageClass

from reenact.collect.refusals import malformed, too_many

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
    from google.protobuf.message import Message

M = TypeVar("M", bound="Message")
_IDS = frozenset({"trace_id", "span_id", "parent_span_id"})
Reader = Callable[[Any], Any]


_OBJECTS = 4


class _Local(threading.local):
    left = 0
    """How many more items of lists may come."""
    rejected: dict[str, int] | None = None
    """Spans and log records that are left out, counted by what is wrong with them; None where none may be."""


_local = _Local()
_RECORDS: Mapping[str, str] = {"Span": "spans", "LogRecord": "log records"}
_WITHIN = frozenset({"ResourceSpans", "ScopeSpans", "ResourceLogs", "ScopeLogs", *_RECORDS})
"""What is left out as a whole where a number in it is none; what it holds is counted."""


class NoNumberError(ValueError):
    """What stands where a number should be is none, or does not fit."""


def read_json(body: bytes, kind: type[M], most: int) -> tuple[M, Mapping[str, int]]:
    """Read a message from its JSON, with `most` items in all its lists together.

    A number that is none, or does not fit, costs the span or log record that it is in: gives the message, and how many
    were left out by what is wrong with them. Raises `Refusal`.
    """
    try:
        return _read(body, kind, most, None), {}
    except NoNumberError:  # read once more, each record by itself: this costs twice as much, and is rare
        rejected: dict[str, int] = {}
        return _read(body, kind, most, rejected), rejected


def _read(body: bytes, kind: type[M], most: int, rejected: dict[str, int] | None) -> M:
    _local.left, _local.rejected = most, rejected
    if body.count(b"{") + body.count(b"[") > _OBJECTS * most:  # those in texts count as well: there is room for them
        raise too_many(_OBJECTS * most)
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise malformed(f"this is not JSON ({error})") from None
    try:
        return kind(**_message(document, cast("Descriptor", kind.DESCRIPTOR)))
    except RecursionError:
        raise malformed("a value is nested too deep") from None
    except _TooManyError:
        raise too_many(most) from None
    except NoNumberError as error:
        if rejected is None:
            raise
        raise malformed(str(error)[:200]) from None
    except ValueError as error:  # protobuf's own: what was read does not fit
        if rejected is None:
            raise NoNumberError(str(error)) from None
        raise malformed(str(error)[:200]) from None
    except (TypeError, OverflowError) as error:
        raise malformed(str(error)[:200]) from None


class _TooManyError(Exception):
    """There are more items than may come."""


def _message(payload: Any, descriptor: Descriptor) -> dict[str, Any]:
    if not isinstance(payload, dict):
        raise TypeError(f"expected an object for {descriptor.name}, found {type(payload).__name__}")
    readers = _readers(descriptor)
    fields: dict[str, Any] = {}
    members = cast("dict[str, Any]", payload)
    names = sorted(members, key=_last) if any("_" in name for name in members) else members
    for name in names:
        value = members[name]
        if value is not None and (reader := readers.get(name)) is not None:
            try:
                fields[reader[0]] = reader[1](value)
            except (TypeError, ValueError) as error:
                raise type(error)(_placed(name, error)) from None
    return fields


def _last(name: str) -> bool:
    """Sort the names of the .proto files first, so that the names of the specification count where both are there."""
    return "_" not in name


def _placed(name: str, error: Exception) -> str:
    text = str(error)
    return f"{name}.{text}" if text.partition(":")[0].replace(".", "").isalnum() and ":" in text else f"{name}: {text}"


@functools.cache
def _readers(descriptor: Descriptor) -> Mapping[str, tuple[str, Reader]]:
    readers: dict[str, tuple[str, Reader]] = {}
    for field in descriptor.fields:
        one = _reader(field)
        reader: Reader = one
        if field.is_repeated:
            kind = field.message_type
            reader = functools.partial(_each, one)
            if kind is not None and kind.name in _WITHIN:
                reader = functools.partial(_each_by_itself, one, kind)
        readers[field.name] = readers[field.json_name] = (field.name, reader)
    return readers


def _reader(field: FieldDescriptor) -> Reader:
    if field.message_type is not None:
        return functools.partial(_below, field.message_type)
    if field.enum_type is not None:
        return functools.partial(_enum, field.enum_type)
    if field.type == field.TYPE_BYTES:
        return _hex if field.name in _IDS else _base64
    if field.type == field.TYPE_STRING:
        return _text
    if field.type in (field.TYPE_DOUBLE, field.TYPE_FLOAT):
        return _double
    return _bool if field.type == field.TYPE_BOOL else _whole


def _below(descriptor: Descriptor, payload: Any) -> dict[str, Any]:
    return _message(payload, descriptor)


def _each(one: Reader, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list, found {type(value).__name__}")
    items = cast("list[Any]", value)
    _local.left -= len(items)
    if _local.left < 0:
        raise _TooManyError
    return [one(item) for item in items]


def _each_by_itself(one: Reader, kind: Descriptor, value: Any) -> list[Any]:
    """Read items of which each may be left out for a number."""
    rejected = _local.rejected
    if rejected is None or not isinstance(value, list):
        return _each(one, value)

    messages: list[Any] = []
    message_class = GetMessageClass(kind)
    for item in cast("list[Any]", value):
        try:
            message = _each(one, [item])[0]
            message_class(**message)  # a number that does not fit is told here
        except NoNumberError as error:
            _reject(kind, item, str(error), rejected)
        except ValueError as error:
            if not str(error).startswith("Value out of range"):
                raise
            _reject(kind, item, str(error), rejected)
        else:
            messages.append(message)
    return messages


def _reject(kind: Descriptor, item: Any, why: str, rejected: dict[str, int]) -> None:
    """Count the records in what is left out."""
    what = _RECORDS["LogRecord" if "Log" in kind.name else "Span"]
    first_cause = next((cause for cause in rejected if cause.startswith(what)), None)  # the first is told of, of many
    cause = first_cause or f"{what} with a number that is none or does not fit, such as {why[:120]}"
    rejected[cause] = rejected.get(cause, 0) + _records_in(item)


def _records_in(item: Any) -> int:
    if not isinstance(item, dict):
        return 0
    members = cast("dict[str, Any]", item)
    lists = [members[name] for name in _LISTS if isinstance(members.get(name), list)]
    return sum(_records_in(each) for some in lists for each in some) if lists else 1


_LISTS = ("scopeSpans", "scope_spans", "spans", "scopeLogs", "scope_logs", "logRecords", "log_records")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a string, found {type(value).__name__}")
    return value


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"expected true or false, found {type(value).__name__}")
    return value


def _whole(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and len(value) < 24:
        try:
            return int(value)
        except ValueError:
            raise NoNumberError(f"expected a whole number, found {value!r}") from None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise NoNumberError(f"expected a whole number, found {type(value).__name__}")


def _double(value: Any) -> float:
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            return float(value)
        except (ValueError, OverflowError):
            raise NoNumberError(f"expected a number, found {str(value)[:40]!r}") from None
    raise NoNumberError(f"expected a number, found {type(value).__name__}")


def _enum(enum: EnumDescriptor, value: Any) -> int:
    if isinstance(value, str):
        enum_value = enum.values_by_name.get(value)
        return enum_value.number if enum_value is not None else _whole(value)
    return _whole(value)


def _hex(value: Any) -> bytes:
    try:
        return bytes.fromhex(_text(value))
    except ValueError:
        raise ValueError(f"expected hexadecimal, found {value[:40]!r}") from None


def _base64(value: Any) -> bytes:
    text = _text(value).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        raise ValueError(f"expected base64, found {text[:40]!r}") from None
