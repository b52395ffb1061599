"""What pymysql and aiomysql are told, written down and given back: results, rows, packets and errors.

Both keep what a server told in an object of the same attributes, and both take the classes of packets and errors from
pymysql. Rows are written down as the values that the connection's converters made.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, cast

from reenact.boundary import databases
from reenact.values import alarms, typed
from reenact.values.json import Json
from reenact.values.lenient import as_count, as_list, as_object, as_text

UNKNOWN_COUNT: Final = 18446744073709551615
"""How many rows an unbuffered result has, as both clients say."""
_AHEAD: Final = "_reenact_ahead"
_MOST_AHEAD: Final = 256
_IN_TRANSACTION: Final = 1
"""SERVER_STATUS_IN_TRANS of the protocol."""
_COLUMN: Final = {
    "table": "table_name",
    "original_table": "org_table",
    "original_name": "org_name",
    "charset": "charsetnr",
    "length": "length",
    "type": "type_code",
    "flags": "flags",
    "scale": "scale",
}
"""How a column is spelled, and the attributes of it; what is empty or nought is left out."""
_TEXTS: Final = frozenset({"table_name", "org_table", "org_name"})


# values and errors


def _value(value: Any) -> Json:
    return value if value is None or type(value) is int else typed.encode(value)


def _rows_json(rows: Iterable[Any]) -> list[Json]:
    return [[_value(each) for each in row] for row in rows]


def rows_of(answer: Mapping[str, Json]) -> list[tuple[Any, ...]]:
    """Make the rows again."""
    return [tuple(typed.decode(each) for each in as_list(row)) for row in as_list(answer.get("rows"))]


@dataclass(frozen=True, slots=True)
class Failure:
    """The client raised an error of its own."""

    error: Exception


def outcome(run: Callable[[], Any]) -> Any:
    """Ask for real, and give what came back, or the failure."""
    from pymysql import err

    try:
        return run()
    except err.MySQLError as error:
        return Failure(error)


async def outcome_async(run: Callable[[], Awaitable[Any]]) -> Any:
    """Do the same without blocking the loop."""
    from pymysql import err

    try:
        return await run()
    except err.MySQLError as error:
        return Failure(error)


def value_of(result: Any) -> Any:
    """Give what came back, or raise the failure."""
    if isinstance(result, Failure):
        raise result.error
    return result


def _error_json(error: Any) -> Json:
    number = next(iter(error.args), None)
    spelling: dict[str, Json] = {"class": type(error).__name__, "arguments": typed.encode([*error.args])}
    if isinstance(number, int) and number:
        spelling["code"] = str(number)
    if (sqlstate := getattr(error, "sqlstate", None)) is not None:
        spelling["sqlstate"] = str(sqlstate)
    original = getattr(error, "original_exception", None)
    if isinstance(original, OSError):
        spelling["original"] = typed.encode([*original.args])
    return spelling


def _native_error(spelling: Json) -> Exception:
    """Make an error of pymysql's own class."""
    from pymysql import err

    about = as_object(spelling)
    kind: Any = getattr(err, as_text(about.get("class")), err.MySQLError)
    error: Any = kind(*cast("list[Any]", typed.decode(about.get("arguments"))))
    if hasattr(error, "sqlstate") or "sqlstate" in about:
        error.sqlstate = about.get("sqlstate")
    if "original" in about:
        error.original_exception = OSError(*cast("list[Any]", typed.decode(about["original"])))
        error.traceback = ""
    return cast("Exception", error)


def answer_json(connection: Any, result: Any, spell: Callable[[Any], dict[str, Json]]) -> Json:
    """Spell what came back over a connection, and how that stands then."""
    first: dict[str, Json] = {"error": _error_json(result.error)} if isinstance(result, Failure) else spell(result)
    answer: dict[str, Json] = {"results": [first]}
    if isinstance(status := first.get("server_status"), int):
        answer["transaction"] = 2 if status & _IN_TRANSACTION else 0
    if is_closed(connection):
        answer["closed"] = True
    return answer


def is_closed(connection: Any) -> bool:
    """Tell whether a connection has no socket, or no stream's end, any more."""
    attributes = databases.client_attributes(connection)
    return (attributes.get("_writer") if "_writer" in attributes else getattr(connection, "_sock", None)) is None


def first_result(answer: Json, close: Callable[[], object]) -> dict[str, Json]:
    """Give the one result of an answer; raise what the server said, and first close a connection that it closed."""
    about = as_object(answer)
    first = as_object(next(iter(as_list(about.get("results"))), None))
    status, state = first.get("server_status"), about.get("transaction")
    if isinstance(status, int) and isinstance(state, int):  # an answer to another word of a transaction may stand here
        first["server_status"] = (status & ~_IN_TRANSACTION) | (_IN_TRANSACTION if state else 0)
    if about.get("closed") is True:
        close()
    if "error" in first:
        raise _native_error(first["error"])
    return first


def about(connection: Any, names: Iterable[str]) -> dict[str, Json]:
    """Spell what a connection keeps of its server."""
    return {name: typed.encode(getattr(connection, name, None)) for name in names}


def tell(connection: Any, names: Iterable[str], answer: Mapping[str, Json]) -> None:
    """Have a connection keep that of a recorded one."""
    for name in names:
        if name in answer:
            setattr(connection, name, typed.decode(answer[name]))


# packets


def packet_json(packet: Any) -> dict[str, Json]:
    """Spell a packet that says that something was done."""
    from pymysql.protocol import MysqlPacket, OKPacketWrapper

    data: bytes = packet.get_all_data()
    if not packet.is_ok_packet():
        return {"packet": typed.encode(bytes(data))}
    ok = OKPacketWrapper(MysqlPacket(data, "utf8"))
    return _done_json(ok)


def _done_json(ok: Any) -> dict[str, Json]:
    spelling: dict[str, Json] = {"rowcount": ok.affected_rows, "lastrowid": ok.insert_id}
    spelling |= {"server_status": ok.server_status, "warnings": ok.warning_count}
    return {**spelling, "message": bytes(ok.message).decode("latin-1")} if ok.message else spelling


def native_packet(answer: Mapping[str, Json]) -> Any:
    """Make the packet again."""
    from pymysql.protocol import MysqlPacket

    if "packet" in answer:
        return MysqlPacket(typed.decode(answer["packet"]), "utf8")
    counts = b"".join(_length(as_count(answer.get(name)) or 0) for name in ("rowcount", "lastrowid"))
    status, warnings = as_count(answer.get("server_status")) or 0, as_count(answer.get("warnings")) or 0
    return MysqlPacket(b"\0" + counts + struct.pack("<HH", status, warnings) + _message(answer), "utf8")


def _length(count: int) -> bytes:
    """Spell a number as the protocol does: in eight bytes, whatever it is."""
    return b"\xfe" + struct.pack("<Q", count)


def _message(answer: Mapping[str, Json]) -> bytes:
    return as_text(answer.get("message")).encode("latin-1", "replace")


# results


def result_json(result: Any) -> dict[str, Json]:
    """Spell a result that was read; of an unbuffered one only what was read so far, its columns."""
    if result.description is None:
        return {**_done_json(result), **_more_json(result)}
    columns: list[Json] = [_column_json(each) for each in result.fields]
    spelling: dict[str, Json] = {"columns": columns}
    if result.unbuffered_active:
        return spelling
    rows = _rows_json(result.rows)
    return {**spelling, "rows": rows, "rowcount": result.affected_rows, **_end_json(result)}


def _more_json(result: Any) -> dict[str, Json]:
    return {"more": result.has_next} if result.has_next else {}


def _end_json(result: Any) -> dict[str, Json]:
    return {"warnings": result.warning_count, **_more_json(result)}


def _column_json(column: Any) -> Json:
    spelling: dict[str, Json] = {"name": column.name}
    spelling |= {name: value for name, attribute in _COLUMN.items() if (value := getattr(column, attribute))}
    schema = bytes(column.db).decode("utf-8", "replace")
    return {**spelling, "schema": schema} if schema else spelling


def _native_column(spelling: Json) -> Any:
    from pymysql.protocol import FieldDescriptorPacket

    about = as_object(spelling)
    column: Any = FieldDescriptorPacket.__new__(FieldDescriptorPacket)
    column._data, column._position = b"", 0  # noqa: SLF001 - what its own class would have read it from
    column.catalog, column.db, column.name = b"def", as_text(about.get("schema")).encode(), as_text(about.get("name"))
    for name, attribute in _COLUMN.items():
        setattr(column, attribute, about.get(name, "" if attribute in _TEXTS else 0))
    return column


def fill(result: Any, answer: Mapping[str, Json]) -> None:
    """Fill a result with what was recorded, as its own reading would."""
    result.warning_count, result.has_next = answer.get("warnings") or 0, answer.get("more") or 0
    if "columns" not in answer:
        result.affected_rows, result.insert_id = answer.get("rowcount"), answer.get("lastrowid")
        result.server_status, result.message = answer.get("server_status"), _message(answer)
        result.connection = None
        return
    result.fields = [_native_column(each) for each in as_list(answer["columns"])]
    result.field_count, result.converters = len(result.fields), []
    result.description = tuple(column.description() for column in result.fields)
    if "rows" in answer:
        result.rows = tuple(rows_of(answer))
        result.affected_rows, result.connection = answer.get("rowcount"), None
    else:
        result.affected_rows, result.unbuffered_active, result.has_next = UNKNOWN_COUNT, True, None
        begin_reading(result)


# rows that are read one by one


@dataclass(slots=True)
class RowsAhead:
    """The rows of an unbuffered result that were read before the program asked: each reading takes twice as many."""

    connection: Any
    rows: deque[Any] = field(default_factory=deque[Any])
    size: int = 1
    is_ended: bool = False
    end: tuple[Any, Any] = (0, None)
    """How many warnings there are, and whether another result comes."""
    error: Exception | None = None
    """What reading the next row raised."""

    is_active: bool = True
    """Whether the result still counted as being read after that."""

    def grow(self) -> None:
        """Read twice as many the next time."""
        self.size = min(2 * self.size, _MOST_AHEAD)

    def stop(self, result: Any) -> None:
        """Have no more rows."""
        result.unbuffered_active, result.connection, result.rows = False, None, None
        result.warning_count, result.has_next = self.end

    def hold(self, result: Any) -> None:
        """Have the result stand as one does that was not read to its end."""
        if self.is_ended:
            self.end = result.warning_count, result.has_next
        result.unbuffered_active, result.connection = True, self.connection
        result.warning_count, result.has_next = 0, None

    def keep(self, result: Any, error: Exception) -> None:
        """Keep what a row raised until it is the next."""
        self.error, self.is_active = error, result.unbuffered_active
        self.hold(result)

    @property
    def is_last(self) -> bool:
        """Tell whether the server has no more to send."""
        return self.is_ended or self.error is not None

    def take(self, answer: Mapping[str, Json]) -> None:
        """Take a recorded batch."""
        self.rows.extend(rows_of(answer))
        self.is_ended = answer.get("done") is True
        self.end = answer.get("warnings") or 0, answer.get("more") or 0

    @contextmanager
    def lost(self, result: Any) -> Generator[None]:
        """Have a result count as read where the server says in the block that it ends."""
        from pymysql import err

        try:
            yield
        except err.MySQLError:
            result.unbuffered_active = is_closed(self.connection)
            raise

    def raise_kept(self, result: Any) -> None:
        """Raise what the row raised that is next."""
        error, self.error = self.error, None
        if error is not None:
            result.unbuffered_active = self.is_active
            raise error


def begin_reading(result: Any) -> None:
    """Have the rows of a result be read ahead."""
    if result.unbuffered_active:
        databases.client_attributes(result)[_AHEAD] = RowsAhead(result.connection)


def rows_ahead(result: Any) -> RowsAhead | None:
    """Give what was read ahead of a result; None where nobody does."""
    return databases.client_attributes(result).get(_AHEAD)


def next_row(result: Any, ahead: RowsAhead) -> Any:
    """Give the next row, as reading it alone would."""
    if not ahead.rows:
        return ahead.stop(result)
    row = ahead.rows.popleft()
    result.affected_rows, result.rows = 1, (row,)
    return row


def read_batch(result: Any, ahead: RowsAhead, read: Callable[[Any], Any]) -> list[Any]:
    """Read rows ahead; one that cannot be read is raised behind those before it."""
    ahead.raise_kept(result)
    batch: list[Any] = []
    for _ in range(ahead.size):
        try:
            row = read(result)
        except Exception as error:
            alarms.pass_on()
            if not batch:
                raise
            ahead.keep(result, error)
            return batch
        if row is None:
            ahead.is_ended = True
            break
        batch.append(row)
    ahead.hold(result)
    return batch


async def read_batch_async(result: Any, ahead: RowsAhead, read: Callable[[Any], Awaitable[Any]]) -> list[Any]:
    """Do the same without blocking the loop."""
    ahead.raise_kept(result)
    batch: list[Any] = []
    for _ in range(ahead.size):
        try:
            row = await read(result)
        except Exception as error:
            alarms.pass_on()
            if not batch:
                raise
            ahead.keep(result, error)
            return batch
        if row is None:
            ahead.is_ended = True
            break
        batch.append(row)
    ahead.hold(result)
    return batch


def batch_json(ahead: RowsAhead, batch: list[Any]) -> dict[str, Json]:
    """Spell a batch, and whether these are the last."""
    spelling: dict[str, Json] = {"rows": _rows_json(batch)}
    if not ahead.is_ended:
        return spelling
    warnings, more = ahead.end
    return {**spelling, "done": True, "warnings": warnings, **({"more": more} if more else {})}
