"""psycopg2: what connections and cursors are asked and what they give; in a replay stand-ins of the same classes.

Theory of operation. `connect` makes a connection of a class that lies between the wanted one and psycopg2's own in C,
and that makes its cursors likewise. So whatever cursor class a program uses, its own Python code runs above ours, and
all that it does with the server passes through. Rows are written down as the values that psycopg2's loaders made.
In a replay the same classes stand over an object in C that never was connected and counts as closed.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import cache, wraps
from typing import Any, Final, cast

from reenact.boundary import databases, door, psycopg2_rows
from reenact.boundary.forgiving import forgive
from reenact.boundary.touches import NATIVE
from reenact.contracts.integration import Integration, PatchSet
from reenact.values import typed
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.query import CONNECT, Query, settled

_SYSTEM: Final = "postgresql"
_MADE, _TOLD, _STATE, _ROWS = "_reenact_made", "_reenact_told", "_reenact_state", "_reenact_rows"
_SETTINGS: Final = (
    *("server_version", "server_encoding", "client_encoding", "is_superuser", "session_authorization", "DateStyle"),
    *("IntervalStyle", "TimeZone", "integer_datetimes", "standard_conforming_strings", "application_name"),
)
_answer: ContextVar[Json] = ContextVar("reenact_psycopg2_answer", default=None)
"""What was told of the connection whose stand-in is being made."""


# questions


def _handshake_of(connection: Any) -> databases.MadeConnection:
    handshake: databases.MadeConnection = databases.client_attributes(connection).get(_MADE, databases.NOT_SEEN)
    return handshake


def _query(connection: Any, operation: str, text: str, parameters: Json = None) -> Query:
    handshake = _handshake_of(connection)
    if text[:6].upper() == "LISTEN":  # what comes of it comes unasked
        sys.audit(NATIVE, "psycopg2 (notifications)", "", False)
    return Query(
        system=_SYSTEM,
        operation=operation,
        text=text,
        parameters=parameters,
        server=handshake.query.server,
        namespace=handshake.query.namespace,
    )


def _watch(connection: Any, query: Callable[[], Query], run: Callable[[], Any], spell: Callable[[], Json]) -> Any:
    """Ask for real, and tell what came back."""
    if not door.is_kept():
        return run()
    import psycopg2

    try:
        passage = databases.opened(query(), made=_handshake_of(connection))
    except Exception:
        forgive("psycopg2.query")
        passage = None
    if passage is None:
        return run()
    answer: dict[str, Json] = {}
    try:
        with passage.crossing():
            result = run()
    except psycopg2.Error as error:
        answer = {"error": psycopg2_rows.error_told(error)}
        databases.describe_answer(passage, {"results": [answer], "transaction": connection.get_transaction_status()})
        raise
    except BaseException as error:
        databases.failed(passage, error)
        raise
    try:
        answer = as_object(spell())
    except Exception:
        forgive("psycopg2.told")
    databases.describe_answer(passage, {"results": [answer], "transaction": connection.get_transaction_status()})
    return result


def _asked(connection: Any, query: Query) -> dict[str, Json]:
    """Ask over a stand-in, and give what was recorded. Raises what the server said."""
    if connection.closed:
        import psycopg2

        raise psycopg2.InterfaceError("connection already closed")
    answer = as_object(databases.ask_stand_in(query))
    databases.client_attributes(connection)[_STATE] = answer.get("transaction")
    first_answer = as_object((as_list(answer.get("results")) or [{}])[0])
    if "error" in first_answer:
        raise psycopg2_rows.error_made(first_answer["error"])
    return first_answer


# recording


class _HeardConnection:
    """Between a class of connections and psycopg2's own."""

    def cursor(self, name: Any = None, cursor_factory: Any = None, **kwargs: Any) -> Any:
        own: Any = self
        wanted = cursor_factory or own.cursor_factory or _in_c("cursor")
        if not isinstance(wanted, type):
            sys.audit(NATIVE, "psycopg2 (a cursor factory that is no class)", "", False)
            return cast("Any", super()).cursor(name, cursor_factory, **kwargs)
        options = {} if name is None else {"name": name}
        return cast("Any", super()).cursor(**options, cursor_factory=_over(wanted, _HeardCursor, "cursor"), **kwargs)

    def commit(self) -> None:
        _watch(self, lambda: _query(self, "query", "COMMIT"), cast("Any", super()).commit, lambda: {"status": "COMMIT"})

    def rollback(self) -> None:
        run = cast("Any", super()).rollback
        _watch(self, lambda: _query(self, "query", "ROLLBACK"), run, lambda: {"status": "ROLLBACK"})

    def lobject(self, *args: Any, **kwargs: Any) -> Any:
        sys.audit(NATIVE, "psycopg2 (large objects)", "", False)
        return cast("Any", super()).lobject(*args, **kwargs)

    def tpc_begin(self, *args: Any, **kwargs: Any) -> Any:
        sys.audit(NATIVE, "psycopg2 (two-phase commit)", "", False)
        return cast("Any", super()).tpc_begin(*args, **kwargs)


class _HeardCursor:
    """Between a class of cursors and psycopg2's own."""

    def execute(self, query: Any, vars: Any = None) -> Any:  # noqa: A002 - psycopg2's name
        own, run = cast("Any", self), cast("Any", super()).execute
        asked = self._question("query", query, lambda: psycopg2_rows.arguments(vars))
        return _watch(own.connection, asked, lambda: run(query, vars), self._result)

    def executemany(self, query: Any, vars_list: Any) -> Any:
        own, run, listed = cast("Any", self), cast("Any", super()).executemany, [*vars_list]
        asked = self._question("executemany", query, lambda: [psycopg2_rows.arguments(each) for each in listed])
        return _watch(own.connection, asked, lambda: run(query, listed), self._result)

    def callproc(self, procname: Any, parameters: Any = None) -> Any:
        own, run = cast("Any", self), cast("Any", super()).callproc
        asked = self._question("callproc", procname, lambda: psycopg2_rows.arguments(parameters))
        return _watch(own.connection, asked, lambda: run(procname, parameters), self._result)

    def copy_expert(self, sql: Any, file: Any, size: int = 8192) -> Any:
        own, run = cast("Any", self), cast("Any", super()).copy_expert
        text = psycopg2_rows.text_of(sql, own.connection)
        comes = _comes_in(text)
        data = _bytes(file.read()) if comes else b""
        buffer = io.BytesIO(data)
        asked = self._question("copy", text, lambda: _bytes_json(data) if comes else None)

        def spell_copy() -> Json:
            return {"rowcount": own.rowcount, **({} if comes else {"copied": _bytes_json(buffer.getvalue())})}

        _watch(own.connection, asked, lambda: run(text, buffer, size), spell_copy)
        return None if comes else _write(file, buffer.getvalue())

    def copy_from(self, file: Any, table: str, sep: str = "\t", null: str = "\\N", size: int = 8192,
                  columns: Any = None) -> Any:  # fmt: skip
        return self.copy_expert(_copy(table, columns, "FROM STDIN", sep, null), file, size)

    def copy_to(self, file: Any, table: str, sep: str = "\t", null: str = "\\N", columns: Any = None) -> Any:
        return self.copy_expert(_copy(table, columns, "TO STDOUT", sep, null), file)

    def fetchone(self) -> Any:
        run = cast("Any", super()).fetchone
        return self._fetched("fetch 1", run) if self._is_named else run()

    def fetchmany(self, size: Any = None) -> Any:
        run, many = cast("Any", super()).fetchmany, cast("Any", self).arraysize if size is None else size
        return self._fetched(f"fetch {many}", lambda: run(many)) if self._is_named else run(many)

    def fetchall(self) -> Any:
        run = cast("Any", super()).fetchall
        return self._fetched("fetch all", run) if self._is_named else run()

    def __next__(self) -> Any:
        row = self.fetchone() if self._is_named else cast("Any", super()).__next__()
        if row is None:
            raise StopIteration
        return row

    @property
    def _is_named(self) -> bool:
        return cast("Any", self).name is not None

    def _fetched(self, text: str, run: Callable[[], Any]) -> Any:
        """Fetch from the server, where the cursor is one of its own."""
        own, batches = cast("Any", self), list[Any]()
        factory, own.row_factory = own.row_factory, None
        try:
            asked = self._question("fetch", text, lambda: settled(str(own.name)))
            _watch(own.connection, asked, lambda: batches.append(run()), lambda: self._batch(batches[0]))
        finally:
            own.row_factory = factory
        several = isinstance(batches[0], list)
        rows = psycopg2_rows.rows_made(own, cast("list[Any]", batches[0]) if several else [batches[0]])
        return rows if several else rows[0]

    def _batch(self, batch: Any) -> Json:
        rows = cast("list[Any]", batch) if isinstance(batch, list) else [] if batch is None else [batch]
        return {**_described(self), "rows": [[psycopg2_rows.spelled(each) for each in row] for row in rows]}

    def _question(self, operation: str, statement: Any, parameters: Callable[[], Json]) -> Callable[[], Query]:
        connection = cast("Any", self).connection
        return lambda: _query(connection, operation, psycopg2_rows.text_of(statement, connection), parameters())

    def _result(self) -> Json:
        own = cast("Any", self)
        answer = _described(own)
        if own.description is not None and own.name is None:
            factory, own.row_factory = own.row_factory, None
            try:
                rows = _in_c("cursor").fetchall(own)
                if rows:
                    _in_c("cursor").scroll(own, 0, "absolute")
            finally:
                own.row_factory = factory
            answer["rows"] = [[psycopg2_rows.spelled(each) for each in row] for row in rows]
        return answer


def _described(cursor: Any) -> dict[str, Json]:
    facts: dict[str, Json] = {"status": cursor.statusmessage, "rowcount": cursor.rowcount}
    if cursor.description is not None:
        facts["columns"] = [[*column] for column in cursor.description]
    return facts


def _comes_in(text: str) -> bool:
    return "stdin" in text.lower()


def _copy(table: str, columns: Any, way: str, sep: str, null: str) -> str:
    quoted = [f'"{each}"' for each in (*table.split("."),)]
    listed = f" ({', '.join(columns)})" if columns else ""
    return f"COPY {'.'.join(quoted)}{listed} {way} WITH DELIMITER AS '{sep}' NULL AS '{null}'"


def _bytes(data: Any) -> bytes:
    return data.encode() if isinstance(data, str) else bytes(data)


def _bytes_json(data: bytes) -> Json:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return typed.encode(data)


def _write(file: Any, data: bytes) -> None:
    file.write(data.decode() if isinstance(file, io.TextIOBase) else data)


# a replay


class _Info:
    """Stands for `connection.info`."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        about = _about(self._connection)
        if name in {"transaction_status", "status"}:
            return databases.client_attributes(self._connection).get(_STATE) or 0 if name == "transaction_status" else 0
        if name not in about:
            raise AttributeError(name)
        return typed.decode(about[name])

    def parameter_status(self, name: str) -> Any:
        return self._connection.get_parameter_status(name)


def _about(connection: Any) -> dict[str, Json]:
    return as_object(databases.client_attributes(connection).get(_TOLD))


class _StandingConnection:
    """Stands for a connection: over an object in C that counts as closed, so that nothing can pass it by."""

    autocommit = False
    isolation_level: Any = None
    readonly = deferrable = None
    closed = 0
    notices = notifies = ()

    def __init__(self, *_: Any, **__: Any) -> None:
        _in_c("connection").close(self)
        databases.client_attributes(self)[_TOLD] = _answer.get()

    def cursor(self, name: Any = None, cursor_factory: Any = None, *_: Any, **kwargs: Any) -> Any:
        own: Any = self
        stand_in: Any = _over(cursor_factory or self.cursor_factory or _in_c("cursor"), _StandingCursor, "cursor")(own)
        databases.client_attributes(stand_in).update({"name": name, **kwargs})
        return stand_in

    cursor_factory: Any = None

    def commit(self) -> None:
        _asked(self, _query(self, "query", "COMMIT"))

    def rollback(self) -> None:
        _asked(self, _query(self, "query", "ROLLBACK"))

    def close(self) -> None:
        self.closed = 1

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.rollback() if kind else self.commit()

    @property
    def info(self) -> _Info:
        return _Info(self)

    @property
    def encoding(self) -> str:
        return as_text(_about(self).get("encoding"))

    @property
    def dsn(self) -> str:
        return as_text(_about(self).get("dsn"))

    @property
    def server_version(self) -> Any:
        return _about(self).get("server_version")

    @property
    def protocol_version(self) -> Any:
        return _about(self).get("protocol_version")

    @property
    def status(self) -> int:
        return 2 if databases.client_attributes(self).get(_STATE) else 1

    def get_transaction_status(self) -> Any:
        return databases.client_attributes(self).get(_STATE) or 0

    def get_backend_pid(self) -> Any:
        return _about(self).get("backend_pid")

    def get_parameter_status(self, name: str) -> Any:
        return as_object(_about(self).get("settings")).get(name)

    def get_dsn_parameters(self) -> Any:
        return dict(as_object(_about(self).get("dsn_parameters")))

    def set_session(self, **kwargs: Any) -> None:
        vars(self).update({name: each for name, each in kwargs.items() if each is not None})

    def set_isolation_level(self, level: Any) -> None:
        self.isolation_level, self.autocommit = level, level == 0

    def set_client_encoding(self, _encoding: str) -> None: ...

    def reset(self) -> None:
        self.rollback()


class _StandingCursor:
    """Stands for a cursor of it."""

    description: Any = None
    rowcount = -1
    statusmessage: Any = None
    query: Any = None
    rownumber = 0
    lastrowid = 0
    name: Any = None
    scrollable: Any = None
    withhold = False
    closed = False

    def execute(self, query: Any, vars: Any = None) -> None:  # noqa: A002 - psycopg2's name
        self._ask("query", query, psycopg2_rows.arguments(vars))

    def executemany(self, query: Any, vars_list: Any) -> None:
        self._ask("executemany", query, [psycopg2_rows.arguments(each) for each in vars_list])

    def callproc(self, procname: Any, parameters: Any = None) -> Any:
        self._ask("callproc", procname, psycopg2_rows.arguments(parameters))
        return parameters

    def copy_expert(self, sql: Any, file: Any, _size: int = 8192) -> None:
        text = psycopg2_rows.text_of(sql, cast("Any", self).connection)
        comes = _comes_in(text)
        answer = self._ask("copy", text, _bytes_json(_bytes(file.read())) if comes else None)
        if not comes:
            copied = answer.get("copied")
            _write(file, copied.encode() if isinstance(copied, str) else cast("bytes", typed.decode(copied)))

    copy_from = _HeardCursor.copy_from
    copy_to = _HeardCursor.copy_to

    def fetchone(self) -> Any:
        if self.name is not None:
            self._fetch("fetch 1")
        return self._next()

    def fetchmany(self, size: Any = None) -> Any:
        many = cast("Any", self).arraysize if size is None else size
        if self.name is not None:
            self._fetch(f"fetch {many}")
        rows = self._rows[self.rownumber : self.rownumber + many]
        self.rownumber += len(rows)
        return psycopg2_rows.rows_made(self, rows)

    def fetchall(self) -> Any:
        if self.name is not None:
            self._fetch("fetch all")
        return self.fetchmany_left()

    def fetchmany_left(self) -> Any:
        """Give all rows that are left."""
        rows, self.rownumber = self._rows[self.rownumber :], len(self._rows)
        return psycopg2_rows.rows_made(self, rows)

    def scroll(self, value: int, mode: str = "relative") -> None:
        self.rownumber = value if mode == "absolute" else self.rownumber + value

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def close(self) -> None:
        self.closed = True

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def cast(self, _oid: int, value: Any) -> Any:
        return value

    def mogrify(self, query: Any, vars: Any = None) -> bytes:  # noqa: A002 - psycopg2's name
        text = psycopg2_rows.text_of(query, cast("Any", self).connection)
        if vars is None:
            return text.encode()
        if isinstance(vars, Mapping):
            quoted_values = {name: psycopg2_rows.quoted(each) for name, each in cast("Mapping[str, Any]", vars).items()}
            return (text % quoted_values).encode()
        return (text % tuple(psycopg2_rows.quoted(each) for each in vars)).encode()

    @property
    def _rows(self) -> list[Any]:
        rows: list[Any] = databases.client_attributes(self).setdefault(_ROWS, [])
        return rows

    def _next(self) -> Any:
        if self.rownumber >= len(self._rows):
            return None
        self.rownumber += 1
        return psycopg2_rows.rows_made(self, [self._rows[self.rownumber - 1]])[0]

    def _fetch(self, text: str) -> None:
        self._ask("fetch", text, settled(str(self.name)))

    def _ask(self, operation: str, statement: Any, parameters: Json) -> dict[str, Json]:
        connection = cast("Any", self).connection
        text = psycopg2_rows.text_of(statement, connection)
        answer = _asked(connection, _query(connection, operation, text, parameters))
        rows = [tuple(psycopg2_rows.unspelled(each) for each in as_list(row)) for row in as_list(answer.get("rows"))]
        databases.client_attributes(self)[_ROWS], self.rownumber = rows, 0
        self.statusmessage, self.rowcount = answer.get("status"), cast("int", answer.get("rowcount"))
        self.query, columns = text.encode(), answer.get("columns")
        column: Any = _in_c("Column")
        self.description = None if columns is None else tuple(column(*as_list(each)) for each in as_list(columns))
        return answer


# connecting


def _in_c(name: str) -> Any:
    from psycopg2 import extensions

    return getattr(extensions, name)


@cache
def _over(kind: type, ours: type, in_c: str) -> type:
    """Make a class between `kind` and psycopg2's own, by `ours`."""
    if issubclass(kind, ours):
        return kind
    below = type(in_c, (ours, _in_c(in_c)), {})
    identity = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    return below if kind is _in_c(in_c) else type(kind.__name__, (kind, below), identity)


def _where(dsn: Any, kwargs: Mapping[str, Any]) -> Query:
    from psycopg2 import extensions

    parameters = extensions.parse_dsn(extensions.make_dsn(dsn, **kwargs))
    server = databases.server_of(parameters.get("host") or parameters.get("hostaddr"), parameters.get("port") or "5432")
    return Query(system=_SYSTEM, operation=CONNECT, server=server, namespace=str(parameters.get("dbname") or ""))


def _told_of(connection: Any) -> Json:
    info = connection.info
    names = ("dbname", "user", "host", "port", "server_version", "protocol_version", "backend_pid", "options")
    facts: dict[str, Json] = {name: getattr(info, name, None) for name in names}
    settings: dict[str, Json] = {name: connection.get_parameter_status(name) for name in _SETTINGS}
    more: dict[str, Json] = {"encoding": connection.encoding, "dsn": connection.dsn, "settings": settings}
    asked = {name: each for name, each in connection.get_dsn_parameters().items() if name != "passfile"}
    return facts | more | {"dsn_parameters": typed.encode(asked)}


def _connected(query: Query, run: Callable[[], Any]) -> tuple[Any, Json]:
    """Connect for real, and tell what came of it."""
    import psycopg2

    passage = databases.opened(query)
    if passage is None:
        return run(), None
    try:
        with passage.crossing():
            connection = run()
    except psycopg2.Error as error:
        databases.describe_answer(passage, {"error": psycopg2_rows.error_told(error)})
        raise
    except BaseException as error:
        databases.failed(passage, error)
        raise
    about: Json = None
    try:
        about = _told_of(connection)
    except Exception:
        forgive("psycopg2.connected")
    databases.describe_answer(passage, about)
    return connection, about


def _connect(original: Any) -> Any:
    @wraps(original)
    def connect(dsn: Any = None, connection_factory: Any = None, cursor_factory: Any = None, **kwargs: Any) -> Any:
        wanted = connection_factory or _in_c("connection")
        options = {name: each for name, each in kwargs.items() if name not in {"async", "async_"}}
        if not door.is_kept() or len(options) < len(kwargs) or not isinstance(wanted, type):
            sys.audit(NATIVE, "psycopg2", str(kwargs.get("host") or ""), False)
            return original(dsn, connection_factory, cursor_factory, **kwargs)
        query = _where(dsn, options)
        if door.is_strict():
            answer = databases.ask_stand_in(query)
            if "error" in as_object(answer):
                raise psycopg2_rows.error_made(as_object(answer)["error"])
            token = _answer.set(answer)
            try:
                connection: Any = _over(wanted, _StandingConnection, "connection")(dsn)
            finally:
                _answer.reset(token)
            about = databases.client_attributes(connection)[_TOLD]
        else:
            over = _over(wanted, _HeardConnection, "connection")
            connection, about = _connected(query, lambda: original(dsn, over, cursor_factory, **kwargs))
        if cursor_factory is not None:
            connection.cursor_factory = cursor_factory
        databases.client_attributes(connection)[_MADE] = databases.MadeConnection(query, about)
        return connection

    return connect


def _quote_ident(original: Any) -> Any:
    @wraps(original)
    def quote_ident(text: str, scope: Any) -> str:
        over = getattr(scope, "connection", scope)
        if isinstance(over, _StandingConnection):
            return '"' + text.replace('"', '""') + '"'
        return str(original(text, scope))

    return quote_ident


def _install(patches: PatchSet) -> None:
    def cut(module: Any) -> None:
        from psycopg2 import extensions

        patches.replace(module, "connect", _connect)
        patches.replace(extensions, "quote_ident", _quote_ident)

    patches.when_imported("psycopg2", cut)


INTEGRATION = Integration(name="psycopg2_connections", libraries=("psycopg2",), install=_install, hooks=("psycopg2",))
