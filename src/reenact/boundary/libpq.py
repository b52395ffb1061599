"""What libpq gives psycopg, written down and given back: results, and a stand-in for a connection to a server.

A result is kept as the server sent it: column descriptions and the text of each value (bytes as typed JSON where it is
no text). So in a replay psycopg's own loaders make the rows, custom ones included, and its own classes the errors. The
stand-in has the methods of `psycopg.pq.abc.PGconn` that psycopg's Python code calls. A question is asked when it is
sent; its answer is there once `release` let it through, until then the stand-in is busy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from reenact.boundary import databases
from reenact.boundary.function_outcome import until_released
from reenact.values import typed
from reenact.values.call import Streamed
from reenact.values.json import Json
from reenact.values.lenient import as_count, as_list, as_object, as_text
from reenact.values.query import Query

if TYPE_CHECKING:
    from reenact.contracts.doorman import Passage

SYSTEM: Final = "postgresql"
_OK, _BAD, _IDLE, _ACTIVE = 0, 1, 0, 1
_NAMES: Final = (
    *("EMPTY_QUERY", "COMMAND_OK", "TUPLES_OK", "COPY_OUT", "COPY_IN", "BAD_RESPONSE", "NONFATAL_ERROR", "FATAL_ERROR"),
    *("COPY_BOTH", "SINGLE_TUPLE", "PIPELINE_SYNC", "PIPELINE_ABORTED", "TUPLES_CHUNK"),
)
"""`ExecStatusType` of libpq, in its order."""
_TUPLES_OK, _FATAL, _SINGLE, _SYNC, _CHUNK = 2, 7, 9, 10, 12
_ENDLESS: Final = frozenset({3, 4, 8, _SYNC})
"""Results behind which no None comes: the three of a copy, and a pipeline's."""
_FIELDS: Final = {
    "severity": 83,
    "severity_nonlocalized": 86,
    "sqlstate": 67,
    "message": 77,
    "detail": 68,
    "hint": 72,
    "position": 80,
    "internal_position": 112,
    "internal_query": 113,
    "context": 87,
    "schema": 115,
    "table": 116,
    "column": 99,
    "datatype": 100,
    "constraint": 110,
    "source_file": 70,
    "source_line": 76,
    "source_function": 82,
}
"""`PG_DIAG_*` of libpq: the letters of the protocol's error fields."""
_SETTINGS: Final = (
    *("server_version", "server_encoding", "client_encoding", "application_name", "is_superuser"),
    *("session_authorization", "DateStyle", "IntervalStyle", "TimeZone", "integer_datetimes"),
    *("standard_conforming_strings", "default_transaction_read_only", "in_hot_standby", "search_path"),
)
"""What a server tells of itself and of the session."""
_ABOUT: Final = ("host", "hostaddr", "port", "db", "user", "options")
_CHANGES: Final = (b"SET", b"RESET", b"DISCARD", b"ROLLBACK", b"COMMIT", b"SELECT 1")
_INTEGERS: Final = frozenset({20, 21, 23, 26})
_ENCODED: Final = {"utf8": "utf-8", "latin1": "iso8859-1", "sql_ascii": "ascii"}


# writing down


def text(value: Any) -> Json:
    """Spell a value that passes as bytes: as text where it is UTF-8, else as typed JSON."""
    if value is None:
        return None
    data = bytes(value)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return typed.encode(data)


def unspelled(value: Json) -> bytes | None:
    """Read what `text` spelled."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    python_value = typed.decode(value)
    return python_value if isinstance(python_value, bytes) else str(python_value).encode()


def parameters(params: Sequence[Any] | None, types: Sequence[int] | None, formats: Sequence[int] | None) -> Json:
    """Spell the parameters of a statement; whole numbers that go in binary are told as such."""
    if params is None:
        return None
    spelled: list[Json] = []
    for at, value in enumerate(params):
        oid = types[at] if types is not None and at < len(types) else 0
        binary = formats is not None and at < len(formats) and int(formats[at]) == 1
        if value is None or not binary:
            spelled.append(text(value))
        elif oid in _INTEGERS:
            spelled.append(int.from_bytes(bytes(value), "big", signed=oid != 26))
        else:
            spelled.append(typed.encode(bytes(value)))
    return spelled


def column(result: Any, at: int) -> Json:
    """Describe a column."""
    spelling: dict[str, Json] = {"name": text(result.fname(at)), "type": result.ftype(at)}
    spelling |= {name: value for name, value in (("size", result.fsize(at)), ("mod", result.fmod(at))) if value != -1}
    if result.ftable(at):
        spelling["table"] = [result.ftable(at), result.ftablecol(at)]
    if result.fformat(at):
        spelling["binary"] = True
    return spelling


def rows(result: Any) -> list[Json]:
    """Give the rows of a result."""
    columns, value = range(result.nfields), result.get_value
    table: list[Json] = []
    for at in range(result.ntuples):
        row: list[Json] = []
        for number in columns:
            data = value(at, number)
            if data is None:
                row.append(None)
                continue
            try:
                row.append(data.decode())
            except UnicodeDecodeError:
                row.append(typed.encode(data))
        table.append(row)
    return table


def result_told(result: Any, *, with_rows: bool = True) -> dict[str, Json]:
    """Spell a result."""
    status = int(result.status)
    spelling: dict[str, Json] = {"status": _NAMES[status] if status < len(_NAMES) else str(status)}
    if status == _FATAL:
        fields = {name: text(result.error_field(code)) for name, code in _FIELDS.items()}
        spelling["error"] = {name: value for name, value in fields.items() if value is not None}
        spelling["message"] = text(result.error_message)
        return spelling
    if command := result.command_status:
        spelling["command"] = text(command)
    if (count := result.command_tuples) is not None:
        spelling["rowcount"] = count
    if result.nfields:
        spelling["columns"] = [column(result, at) for at in range(result.nfields)]
    if status in {_TUPLES_OK, _SINGLE, _CHUNK} and with_rows:
        spelling["rows"] = rows(result)
    if result.nparams:
        spelling["parameters"] = [result.param_type(at) for at in range(result.nparams)]
    return spelling


def answer_told(results: Iterable[Any], pgconn: Any, asked: str) -> Json:
    """Spell what came of a statement: its results, the state of the transaction, and what of the session changed."""
    result_list = list(results)
    spelling: dict[str, Json] = {"results": [result_told(each) for each in result_list]}
    if state := int(pgconn.transaction_status):
        spelling["transaction"] = state
    if int(pgconn.status) == _BAD:  # the server hung up behind its last word
        spelling["closed"] = True
    commands = [each.command_status or b"" for each in result_list]
    if any(each.startswith(_CHANGES[:-1]) for each in commands) or "set_config" in asked:
        spelling["settings"] = settings(pgconn)
    return spelling


def settings(pgconn: Any) -> Json:
    """Give what the server tells of itself and of the session."""
    values = {name: text(pgconn.parameter_status(name.encode())) for name in _SETTINGS}
    return {name: value for name, value in values.items() if value is not None}


def connection_told(pgconn: Any) -> Json:
    """Spell a connection that was made. Its password is left out."""
    about: dict[str, Json] = {name: text(getattr(pgconn, name, None)) for name in _ABOUT}
    return {
        **{name: value for name, value in about.items() if value},
        "server_version": pgconn.server_version,
        "protocol_version": pgconn.protocol_version,
        "pid": pgconn.backend_pid,
        "ssl": bool(pgconn.ssl_in_use),
        "settings": settings(pgconn),
    }


# giving back


class Result:
    """A recorded result, with what psycopg asks of a `PGresult`."""

    def __init__(self, spelling: Json) -> None:
        self._spelling = as_object(spelling)
        name = as_text(self._spelling.get("status"))
        self.status = _NAMES.index(name) if name in _NAMES else _FATAL
        self._columns = [as_object(each) for each in as_list(self._spelling.get("columns"))]
        self._rows = [as_list(each) for each in as_list(self._spelling.get("rows"))]
        self._error = as_object(self._spelling.get("error"))
        self._parameters = as_list(self._spelling.get("parameters"))
        self.nfields, self.ntuples, self.nparams = len(self._columns), len(self._rows), len(self._parameters)
        command = self._spelling.get("command")
        self.command_status = unspelled(command) if command is not None else b""
        self.command_tuples = as_count(self._spelling.get("rowcount"))
        self.oid_value = 0
        self.binary_tuples = int(any(each.get("binary") for each in self._columns))
        self.error_message = unspelled(self._spelling.get("message")) or b""

    def get_error_message(self, encoding: str = "utf-8") -> str:
        """Give the message without its severity, as psycopg does."""
        from psycopg.pq import misc

        return misc.strip_severity(self.error_message.decode(encoding, "replace")) or "no error details available"

    def error_field(self, code: int) -> bytes | None:
        """Give a field of the error."""
        name = next((each for each, number in _FIELDS.items() if number == int(code)), "")
        return unspelled(self._error.get(name))

    def get_value(self, row: int, at: int) -> bytes | None:
        """Give a value as the server sent it."""
        return unspelled(self._rows[row][at])

    def fname(self, at: int) -> bytes | None:
        """Give the name of a column; None where there is none."""
        return unspelled(self._columns[at].get("name")) if at < self.nfields else None

    def ftype(self, at: int) -> int:
        """Give the type's number."""
        return self._number(at, "type", 0)

    def fformat(self, at: int) -> int:
        """Give 1 for binary, 0 for text."""
        return int(at < self.nfields and self._columns[at].get("binary") is True)

    def fsize(self, at: int) -> int:
        """Give the type's size in bytes, -1 for any."""
        return self._number(at, "size", -1)

    def fmod(self, at: int) -> int:
        """Give the type's modifier, -1 for none."""
        return self._number(at, "mod", -1)

    def ftable(self, at: int) -> int:
        """Give the number of the table that a column is of."""
        return as_count(next(iter(as_list(self._columns[at].get("table"))), 0)) or 0

    def ftablecol(self, at: int) -> int:
        """Give the column's number in its table."""
        return as_count(next(iter(as_list(self._columns[at].get("table"))[1:]), 0)) or 0

    def param_type(self, at: int) -> int:
        """Give the type of a parameter."""
        return as_count(self._parameters[at]) or 0

    def clear(self) -> None:
        """Hold on to nothing."""

    def _number(self, at: int, name: str, default: int) -> int:
        number = as_count(self._columns[at].get(name)) if at < self.nfields else None
        return default if number is None else number


class _Sync:
    """Stands where a pipeline is synchronised."""

    status = _SYNC
    ntuples = nfields = nparams = 0
    command_status = b""
    command_tuples = None


_NO_END: Final = object()
"""Stands behind a piece of a stream, behind which no None comes."""


class StandIn:
    """Stands for the connection of libpq: asks the doorman what is sent, and gives what was recorded."""

    error_message, needs_password, used_password, used_gssapi = b"", False, False, False
    notify_handler: Callable[[Any], None] | None = None
    notice_handler: Callable[[Any], None] | None = None
    nonblocking, socket, tty, password = 1, -1, b"", b""
    pgconn_ptr = None

    def __init__(self, description: Json, server: str, namespace: str) -> None:
        about = as_object(description)
        self.server, self.namespace = server, namespace
        self.status, self.transaction_status, self.pipeline_status = _OK, _IDLE, 0
        self.host, self.hostaddr, self.port, self.db, self.user, self.options = (
            unspelled(as_text(about.get(name))) or b"" for name in _ABOUT
        )
        self.server_version = as_count(about.get("server_version")) or 0
        self.protocol_version = as_count(about.get("protocol_version")) or 3
        self.full_protocol_version = self.protocol_version * 10000
        self.backend_pid = as_count(about.get("pid")) or 0
        self.ssl_in_use = about.get("ssl") is True
        self._settings = as_object(about.get("settings"))
        self._questions: deque[Passage | _Sync] = deque()
        self._answers: deque[Any] = deque()
        self._prepared: dict[bytes, tuple[bytes, Any]] = {}
        self._copied_out: deque[bytes] | None = None
        self._copied_in: list[bytes] = []
        self._statement = ""
        self._stream: _Stream | None = None

    @property
    def info(self) -> list[Any]:
        """Give no options: a program that asks for the connection's parameters gets what it gave itself."""
        return []

    @property
    def _encoding(self) -> str:
        encoding_name = as_text(self._settings.get("client_encoding")).lower()
        return _ENCODED.get(encoding_name, encoding_name) or "utf-8"

    def parameter_status(self, name: bytes) -> bytes | None:
        """Give a setting of the session."""
        return unspelled(self._settings.get(bytes(name).decode()))

    def get_error_message(self, _encoding: str = "") -> str:
        """Give the last error of the connection itself."""
        return "the connection is closed"

    def finish(self) -> None:
        """Close."""
        self.status = _BAD

    # asking

    def _ask(self, operation: str, statement: Any, bound_values: Json = None) -> None:
        if self.status != _OK:
            from psycopg import OperationalError

            raise OperationalError("the connection is closed")
        spelling = text(statement)
        self._statement = spelling if isinstance(spelling, str) else str(spelling)
        query = Query(
            system=SYSTEM,
            operation=operation,
            text=self._statement,
            parameters=bound_values,
            server=self.server,
            namespace=self.namespace,
        )
        passage = databases.opened(query, over_stand_in=True)
        if passage is not None:
            self._questions.append(passage)
        self.transaction_status = _ACTIVE

    def send_query(self, command: Any) -> None:
        """Ask a statement."""
        self._ask("query", command)

    def send_query_params(
        self,
        command: Any,
        param_values: Sequence[Any] | None,
        param_types: Sequence[int] | None = None,
        param_formats: Sequence[int] | None = None,
        result_format: int = 0,  # noqa: ARG002 - the recorded one was asked for alike
    ) -> None:
        """Ask a statement with parameters."""
        self._ask("query", command, parameters(param_values or None, param_types, param_formats))

    def send_prepare(self, name: Any, command: Any, param_types: Any = None) -> None:
        """Remember a statement: which ones a connection has prepared is no question."""
        self._prepared[bytes(name)] = bytes(command), param_types
        self._answers.append([Result({"status": "COMMAND_OK"})])

    def send_query_prepared(
        self,
        name: Any,
        param_values: Sequence[Any] | None,
        param_formats: Sequence[int] | None = None,
        result_format: int = 0,  # noqa: ARG002 - as above
    ) -> None:
        """Ask a prepared statement."""
        command, types = self._prepared[bytes(name)]
        self._ask("query", command, parameters(param_values or None, types, param_formats))

    def send_describe_portal(self, name: Any) -> None:
        """Ask for the columns of a cursor."""
        self._ask("describe", name)

    def send_close_prepared(self, name: Any) -> None:
        """Forget a statement."""
        self._prepared.pop(bytes(name), None)
        self._answers.append([Result({"status": "COMMAND_OK"})])

    def set_single_row_mode(self) -> None:
        """Give rows one by one, as they were given."""

    def set_chunked_rows_mode(self, size: int) -> None:
        """Give rows so many at a time, as they were given."""

    # answers

    def is_busy(self) -> int:
        """Tell whether the next answer is not there yet."""
        return int(not self._answers and bool(self._questions or self._stream))

    def flush(self) -> int:
        """Have nothing left to send."""
        return 0

    def consume_input(self) -> None:
        """Read nothing."""

    def notifies(self) -> None:
        """Give no notification."""

    def release(self) -> None:
        """Wait until the next answer may be given, and give it."""
        passage = self._next()
        if passage is not None:
            passage.wait(self._order(passage))
            self._take(passage)

    async def release_async(self) -> None:
        """Wait likewise without blocking the loop."""
        passage = self._next()
        if passage is None:
            return
        if isinstance(passage.answer, Streamed):
            await passage.wait_async(self._order(passage))
        elif passage.answer is not None:
            await until_released(passage, passage.answer)
        self._take(passage)

    def _next(self) -> Passage | None:
        if self._stream is not None:
            return self._stream.passage
        if not self._questions:
            return None
        first = self._questions.popleft()
        if isinstance(first, _Sync):
            self._answers.append([first])
            return None
        if isinstance(first.answer, Streamed):
            self._stream = _Stream(first, first.answer)
        return first

    def _order(self, passage: Passage) -> int | None:
        return self._stream.order if self._stream is not None else passage.end_order

    def _take(self, passage: Passage) -> None:
        """Have the answer of a question, or the next piece of it, ready to be fetched."""
        if self._stream is not None:
            piece = self._stream.take()
            if self._stream.is_over:
                self.transaction_status = as_count(as_object(self._stream.result).get("transaction")) or _IDLE
                self._stream = None
                self._answers.append([piece])
            else:
                self._answers.append([piece, _NO_END])
            return
        try:
            answer = as_object(databases.recorded_answer(passage))
        except BaseException:  # the connection broke off
            self.status = _BAD
            raise
        self._answers.append([Result(each) for each in as_list(answer.get("results"))])
        if "data" in answer:
            self._copied_out = deque(unspelled(each) or b"" for each in as_list(answer["data"]))
        if not self._questions:
            self.transaction_status = as_count(answer.get("transaction")) or _IDLE
        if isinstance(settings := answer.get("settings"), dict):
            self._settings = settings
        if answer.get("closed") is True:
            self.status = _BAD

    def get_result(self) -> Any:
        """Give the next result; None behind the last one of a statement."""
        if not self._answers:
            return None
        first = self._answers[0]
        if not first:
            self._answers.popleft()
            return None
        result = first.pop(0)
        if result.status in _ENDLESS or (first and first[0] is _NO_END):
            self._answers.popleft()  # None follows on neither
        return result

    # pipelines

    def enter_pipeline_mode(self) -> None:
        """Begin a pipeline."""
        self.pipeline_status = 1

    def exit_pipeline_mode(self) -> None:
        """End a pipeline."""
        self.pipeline_status = 0

    def pipeline_sync(self) -> None:
        """Synchronise."""
        self._questions.append(_Sync())

    def send_flush_request(self) -> None:
        """Have nothing left to ask for."""

    # copies

    def get_copy_data(self, _async: int) -> tuple[int, Any]:
        """Give the next piece of what is copied out."""
        if self._copied_out is None:
            self._ask("copy out", self._statement.encode())
            self._copied_out = deque()
        if self._questions:
            return 0, memoryview(b"")
        if self._copied_out:
            data = self._copied_out.popleft()
            return len(data), memoryview(data)
        self._copied_out = None
        return -1, memoryview(b"")

    def put_copy_data(self, buffer: Any) -> int:
        """Take a piece of what is copied in."""
        self._copied_in.append(bytes(buffer))
        return 1

    def put_copy_end(self, error: bytes | None = None) -> int:
        """Ask what comes of what was copied in."""
        self._ask("copy in", self._statement.encode(), [text(b"".join(self._copied_in)), text(error)])
        self._copied_in = []
        return 1

    def get_cancel(self) -> StandIn:
        """Give what cancels: nothing runs."""
        return self

    cancel_conn = get_cancel

    def cancel(self) -> None:
        """Cancel nothing."""

    def start(self) -> None:
        """Begin to cancel nothing."""

    def poll(self) -> int:
        """Have it cancelled (`PGRES_POLLING_OK`)."""
        return 3


class _Stream:
    """Gives the recorded pieces of an answer that was read row by row."""

    def __init__(self, passage: Passage, answer: Streamed) -> None:
        self.passage, self._answer, self.result = passage, answer, answer.result
        self._columns: Json = None
        self._chunks = deque(answer.chunks)
        self.is_over = False

    @property
    def order(self) -> int | None:
        """The number of the next release."""
        return self._chunks[0].order if self._chunks else self.passage.end_order

    def take(self) -> Result:
        """Give the next piece, or how it ended."""
        if not self._chunks:
            self.is_over = True
            self.passage.ended(self._answer.end, None, self.result)
            return Result(self.result)
        chunk = self._chunks.popleft()
        piece = as_object(chunk.value)
        self._columns = piece.get("columns", self._columns)
        self.passage.chunk(value=chunk.value)
        return Result({**piece, "columns": self._columns})
