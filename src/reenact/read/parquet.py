"""Parquet as a packing: its rows come out as lines of JSON, which the formats then tell apart as they do any other.

Vendors export the same records as rows that they give as JSON (Phoenix's and Arize's dataframes, LangSmith's bulk
exports, Langfuse's, ClickHouse's). Rows are read in batches, so that memory does not grow with the file. Instants
become ISO 8601 to the nanosecond, maps objects, bytes base64; what is null or not a number is left out. Needs the
extra `[parquet]`.
"""

from __future__ import annotations

import base64
import math
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, BinaryIO, Final, cast

import orjson

from reenact.errors import InputError
from reenact.values.limits import RAISE_THE_UNPACKED_LIMIT, max_unpacked_bytes, spelled

_BATCH: Final = 256
_PIECE: Final = 1 << 20
_CONTENT: Final = ("attributes", "input", "output", "SpanAttributes", "events")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def json_lines(stream: BinaryIO, place: str) -> Iterator[bytes]:
    """Read the rows of a Parquet file as lines of JSON, one object each, in the order of the file.

    Raises `InputError` where pyarrow is not installed (naming the extra), for a file that is damaged or cut off, and
    for one whose rows unpack to more than `limits.max_unpacked_bytes`.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        hint = "install it: pip install 'reenact[parquet]'"
        raise InputError(place, "a Parquet file needs pyarrow, which is not installed", hint=hint) from None
    limit, bytes_yielded = max_unpacked_bytes(), 0
    with tempfile.TemporaryFile() as spooled:
        while piece := stream.read(_PIECE):
            spooled.write(piece)
        spooled.seek(0)
        try:
            file: Any = parquet.ParquetFile(spooled)
            readers: list[tuple[str, Callable[[Any], Any]]] = [
                (str(field.name), _reader(pa, field.type)) for field in file.schema_arrow
            ]
            for batch in file.iter_batches(batch_size=_BATCH):
                for row in _rows(batch, readers, pa):
                    line = orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE, default=str)
                    bytes_yielded += len(line)
                    if bytes_yielded > limit:
                        problem = f"its rows unpack to more than the limit of {spelled(limit)}"
                        raise InputError(place, problem, hint=RAISE_THE_UNPACKED_LIMIT)
                    yield line
        except _refusals(pa) as refusal:
            reason = " ".join(str(refusal).split())[:200]
            raise InputError(place, f"this Parquet file cannot be read: {reason}", hint=_DAMAGED) from None


def _refusals(arrow: Any) -> tuple[type[Exception], ...]:
    """List what pyarrow raises on a damaged file: its own errors, and whatever they derive from."""
    return (arrow.ArrowException, OSError, ValueError, TypeError, OverflowError, KeyError, IndexError)


_DAMAGED: Final = "It was damaged or not yet written to its end: copy it again."


def _rows(batch: Any, readers: list[tuple[str, Callable[[Any], Any]]], arrow: Any) -> Iterator[dict[str, Any]]:
    columns = [_column(column, arrow) for column in batch.columns]
    ordered = sorted(zip(readers, columns, strict=True), key=_long_last)
    for at in range(batch.num_rows):
        row: dict[str, Any] = {}
        for (name, read), column in ordered:
            if (value := column[at]) is not None and (value := read(value)) is not None:
                row[name] = value
        yield row


def _long_last(pair: tuple[tuple[str, Any], Any]) -> bool:
    """Put columns of content last, so that the beginning of the first line says what it is."""
    return pair[0][0].startswith(_CONTENT)


def _column(column: Any, arrow: Any) -> list[Any]:
    """Give a column's values; instants as whole numbers, since Python's have no nanoseconds."""
    return column.cast(_without_instants(column.type, arrow), safe=False).to_pylist()


def _without_instants(kind: Any, arrow: Any) -> Any:
    types = arrow.types
    if types.is_timestamp(kind):
        return arrow.int64()
    if types.is_dictionary(kind):
        return _without_instants(kind.value_type, arrow)
    if types.is_list(kind):
        return arrow.list_(_without_instants(kind.value_type, arrow))
    if types.is_large_list(kind):
        return arrow.large_list(_without_instants(kind.value_type, arrow))
    if types.is_map(kind):
        return arrow.map_(kind.key_type, _without_instants(kind.item_type, arrow))
    if types.is_struct(kind):
        return arrow.struct([field.with_type(_without_instants(field.type, arrow)) for field in kind])
    return kind


def _reader(arrow: Any, kind: Any) -> Callable[[Any], Any]:
    """Make what turns a value of a column into JSON, by the column's type."""
    types = arrow.types
    if types.is_timestamp(kind):
        scale = 10**9 // _PER_SECOND[kind.unit]
        return lambda value: _instant(value * scale)
    if types.is_dictionary(kind):
        return _reader(arrow, kind.value_type)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        item = _reader(arrow, kind.value_type)
        return lambda value: [None if each is None else item(each) for each in value]
    if types.is_map(kind):
        item = _reader(arrow, kind.item_type)
        return lambda value: {str(name): item(each) for name, each in value if each is not None}
    if types.is_struct(kind):
        fields = {str(field.name): _reader(arrow, field.type) for field in kind}
        return lambda value: {
            name: json_value
            for name, read in fields.items()
            if (field_value := value.get(name)) is not None and (json_value := read(field_value)) is not None
        }
    return _plain


def _plain(value: Any) -> Any:
    match value:
        case float():
            return value if math.isfinite(value) else None
        case bytes() | bytearray():
            try:
                return cast("bytes", value).decode()
            except UnicodeDecodeError:
                return base64.b64encode(value).decode()
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case Decimal():
            return int(value) if value == value.to_integral_value() and abs(value) < 2**63 else float(value)
        case int() if not -(2**63) <= value < 2**64:
            return str(value)
        case _:
            return value


def _instant(ns: int) -> str | None:
    seconds, rest = divmod(ns, 10**9)
    try:
        moment = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return None
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"
