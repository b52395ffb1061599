"""pymysql: cut at a connection, where commands are sent and replies are read.

Theory of operation. All of pymysql is Python: its cursors, and yours, ask a connection, which sends a command and reads
a result into an object. That reading is told, as one question with its answer; what a connection does to be made
(greeting, password, character set) belongs to the call of it. In a replay a connection sends to nowhere, and its
results are filled with what was recorded, so that everything above runs again as it is. Rows of an unbuffered cursor
are read ahead in batches, each a question of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, Final

from reenact.boundary import databases, door, mysql_questions, mysql_results
from reenact.boundary.forgiving import forgive
from reenact.boundary.touches import NATIVE
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.json import Json
from reenact.values.query import Query

_SERVER_FACTS: Final = (
    *("protocol_version", "server_version", "server_thread_id", "server_capabilities", "server_language"),
    *("server_charset", "server_status", "host_info", "client_flag", "_auth_plugin_name", "_secure"),
)
"""What a connection keeps of its server."""
_UNSENT: Final = "_reenact_unsent"


# asking


def _answered(connection: Any, query: Query) -> dict[str, Json]:
    """Ask over a stand-in, and give what was recorded. Raises what the server said."""
    return mysql_results.first_result(databases.ask_stand_in(query), connection._force_close)  # noqa: SLF001 - as it does itself


def _witnessed(connection: Any, query: Query, run: Callable[[], Any], spell: Callable[[Any], dict[str, Json]]) -> Any:
    """Ask for real, and tell what came back."""
    result = databases.witness(
        query,
        lambda: mysql_results.outcome(run),
        lambda each: mysql_results.answer_json(connection, each, spell),
        made=mysql_questions.handshake_for(connection, query),
    )
    return mysql_results.value_of(result)


# sending


def _query(original: Any) -> Any:
    @wraps(original)
    def query(self: Any, sql: Any, *args: Any, **kwargs: Any) -> Any:
        if mysql_questions.is_watched(self):
            try:
                mysql_questions.hear(self, sql)
            except Exception:  # our failure is never the agent's
                forgive("pymysql.query")
        return original(self, sql, *args, **kwargs)

    return query


def _execute_command(original: Any) -> Any:
    @wraps(original)
    def _execute_command(self: Any, command: Any, sql: Any) -> Any:
        if not mysql_questions.is_watched(self):
            return original(self, command, sql)
        query = mysql_questions.command(self, command, sql)
        try:
            result = original(self, command, sql)
        except Exception as error:
            _tell_unsent(self, query, error)
            raise
        mysql_questions.wait(self, query)
        return result

    return _execute_command


def _tell_unsent(connection: Any, query: Query | None, error: Exception) -> None:
    """Tell a command that could not be sent, since the server had hung up."""
    if query is None or databases.client_attributes(connection).pop(_UNSENT, None) is None:
        return

    def run() -> Any:
        raise error

    try:
        _witnessed(connection, query, run, mysql_results.packet_json)
    except Exception as raised:
        if raised is not error:
            forgive("pymysql.unsent")


def _write_bytes(original: Any) -> Any:
    @wraps(original)
    def _write_bytes(self: Any, data: Any) -> Any:
        try:
            return original(self, data)
        except Exception:
            databases.client_attributes(self)[_UNSENT] = True
            raise

    return _write_bytes


# reading


def _read_packet(original: Any) -> Any:
    @wraps(original)
    def _read_packet(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not mysql_questions.is_waiting(self):
            return original(self, *args, **kwargs)
        query = mysql_questions.waiting(self)
        if query is None:
            return original(self, *args, **kwargs)
        if mysql_questions.is_stand_in(self):
            return mysql_results.native_packet(_answered(self, query))
        return _witnessed(self, query, lambda: original(self, *args, **kwargs), mysql_results.packet_json)

    return _read_packet


def _reads(operation: str) -> Callable[[Any], Any]:
    """Make a cut of what reads a result; `operation` is of one whose rows are read later."""

    def make(original: Any) -> Any:
        @wraps(original)
        def reading(self: Any) -> Any:
            connection = self.connection
            if connection is None or not mysql_questions.is_watched(connection):
                return original(self)
            query = mysql_questions.waiting(connection)
            if query is None:
                return original(self)
            if operation:
                query = replace(query, operation=f"{query.operation}, {operation}")
            if mysql_questions.is_stand_in(connection):
                return mysql_results.fill(self, _answered(connection, query))
            _witnessed(connection, query, lambda: original(self), lambda _: mysql_results.result_json(self))
            mysql_results.begin_reading(self)
            return None

        return reading

    return make


def _next_row(original: Any) -> Any:
    @wraps(original)
    def _read_rowdata_packet_unbuffered(self: Any) -> Any:
        ahead = mysql_results.rows_ahead(self)
        if ahead is None or not self.unbuffered_active:
            return original(self)
        if not (ahead.rows or ahead.is_ended):
            _read_ahead(self, ahead, original)
        return mysql_results.next_row(self, ahead)

    return _read_rowdata_packet_unbuffered


def _read_ahead(result: Any, ahead: mysql_results.RowsAhead, read: Callable[[Any], Any]) -> None:
    connection = ahead.connection
    query = mysql_questions.fetch(connection, ahead.size)
    if query is None:
        ahead.rows.extend(mysql_results.read_batch(result, ahead, read))
    elif mysql_questions.is_stand_in(connection):
        with ahead.lost(result):
            ahead.take(_answered(connection, query))
    else:
        batch: list[Any] = _witnessed(
            connection,
            query,
            lambda: mysql_results.read_batch(result, ahead, read),
            lambda each: mysql_results.batch_json(ahead, each),
        )
        ahead.rows.extend(batch)
    ahead.grow()


def _finish(original: Any) -> Any:
    @wraps(original)
    def _finish_unbuffered_query(self: Any) -> Any:
        ahead = mysql_results.rows_ahead(self)
        if ahead is None or not self.unbuffered_active or mysql_results.is_closed(ahead.connection):
            return original(self)
        if ahead.is_last or mysql_questions.is_stand_in(ahead.connection):
            return ahead.stop(self)
        original(self)
        if self.has_next and door.is_kept():
            sys.audit(NATIVE, "pymysql (results behind one that was left)", "", False)
        return None

    return _finish_unbuffered_query


# cursors


def _mogrify(original: Any) -> Any:
    @wraps(original)
    def mogrify(self: Any, query: Any, args: Any = None) -> Any:
        statement = original(self, query, args)
        if args is not None and door.is_kept():
            mysql_questions.leave(self.connection, statement, query, args)
        return statement

    return mogrify


def _do_execute_many(original: Any) -> Any:
    @wraps(original)
    def _do_execute_many(self: Any, prefix: Any, values: Any, postfix: Any, args: Any, *rest: Any) -> Any:
        if not door.is_kept():
            return original(self, prefix, values, postfix, args, *rest)
        connection = self.connection
        rows = mysql_questions.leave_rows(connection, (prefix, values, postfix), args)
        try:
            return original(self, prefix, values, postfix, rows, *rest)
        finally:
            mysql_questions.forget_rows(connection)

    return _do_execute_many


# connecting


def _connect(original: Any) -> Any:
    @wraps(original)
    def connect(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not door.is_kept():
            return original(self, *args, **kwargs)
        query = mysql_questions.connecting(self)
        if query is None:
            return original(self, *args, **kwargs)
        if door.is_strict():
            passage = databases.opened(query)
            if passage is None or passage.answer is None:
                return original(self, *args, **kwargs)
            return _stand_in(self, query, databases.answer(passage))
        mysql_questions.begin_making(self)
        try:
            _witnessed(self, query, lambda: original(self, *args, **kwargs), lambda _: _about(self))
        except BaseException:
            mysql_questions.remember(self, None)
            raise
        mysql_questions.keep_handshake(self, query, lambda: {"results": [_about(self)]})
        return None

    return connect


def _about(connection: Any) -> dict[str, Json]:
    return mysql_results.about(connection, _SERVER_FACTS)


def _stand_in(connection: Any, query: Query, answer: Json) -> None:
    connection._closed = False  # noqa: SLF001 - as the connection does itself, here and below
    about = mysql_results.first_result(answer, connection._force_close)  # noqa: SLF001 - as above
    mysql_results.tell(connection, _SERVER_FACTS, about)
    for name in ("user", "db"):
        value = getattr(connection, name)
        if isinstance(value, str):
            setattr(connection, name, value.encode(connection.encoding))
    connection._sock = connection._rfile = mysql_questions.Nowhere()  # noqa: SLF001 - as above
    connection._current_timeout, connection._next_seq_id = connection._read_timeout, 0  # noqa: SLF001 - as above
    mysql_questions.remember(connection, databases.MadeConnection(query, answer))


def _install(patches: PatchSet) -> None:
    def cut_connections(module: Any) -> None:
        asking = {"query": _query, "_execute_command": _execute_command, "_write_bytes": _write_bytes}
        mysql_questions.cut(patches, module.Connection, {**asking, "_read_packet": _read_packet, "connect": _connect})
        reading = {"read": _reads(""), "init_unbuffered_query": _reads("unbuffered")}
        reading |= {"_read_rowdata_packet_unbuffered": _next_row, "_finish_unbuffered_query": _finish}
        mysql_questions.cut(patches, module.MySQLResult, reading)

    def cut_cursors(module: Any) -> None:
        filling = "_mogrify" if hasattr(module.Cursor, "_mogrify") else "mogrify"
        mysql_questions.cut(patches, module.Cursor, {filling: _mogrify, "_do_execute_many": _do_execute_many})

    patches.when_imported("pymysql.connections", cut_connections)
    patches.when_imported("pymysql.cursors", cut_cursors)


INTEGRATION = Integration(
    name="pymysql_connections",
    libraries=("pymysql",),
    install=_install,
    hooks=("pymysql.connections", "pymysql.cursors"),
)
