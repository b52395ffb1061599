"""aiomysql, under any loop: cut at a connection, where commands are sent and replies are read.

Its cursors and pools are Python and ask a connection, as pymysql's do, whose packets and errors it takes. What is
told, and what a replay fills with what was recorded, is the same (`mysql_questions` and `mysql_results`).
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import wraps
from typing import Any, Final

from reenact.boundary import databases, door, mysql_questions, mysql_results, pauses
from reenact.boundary.forgiving import forgive
from reenact.boundary.touches import NATIVE
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.json import Json
from reenact.values.query import Query

_SERVER_FACTS: Final = (
    *("protocol_version", "server_version", "server_thread_id", "server_capabilities", "server_language"),
    *("server_charset", "server_status", "host_info", "client_flag", "_server_auth_plugin", "_auth_plugin_used"),
    "_secure",
)
"""What a connection keeps of its server."""
_STATEMENT: Final = "_reenact_given"


# asking


async def _answered(connection: Any, query: Query) -> dict[str, Json]:
    """Ask over a stand-in, and give what was recorded. Raises what the server said."""
    try:
        return mysql_results.first_result(await databases.asked_async(query), connection.close)
    except asyncio.CancelledError:
        connection._close_on_cancel()  # noqa: SLF001 - as it does itself
        raise


async def _witnessed(
    connection: Any, query: Query, run: Callable[[], Awaitable[Any]], spell: Callable[[Any], dict[str, Json]]
) -> Any:
    """Ask for real, and tell what came back."""
    result = await databases.witnessed(
        query,
        lambda: mysql_results.outcome_async(run),
        lambda each: mysql_results.answer_json(connection, each, spell),
        made=mysql_questions.handshake_for(connection, query),
    )
    return mysql_results.value_of(result)


# sending


def _query(original: Any) -> Any:
    @wraps(original)
    async def query(self: Any, sql: Any, *args: Any, **kwargs: Any) -> Any:
        if mysql_questions.is_watched(self):
            try:
                mysql_questions.hear(self, sql)
            except Exception:  # our failure is never the agent's
                forgive("aiomysql.query")
        return await original(self, sql, *args, **kwargs)

    return query


def _execute_command(original: Any) -> Any:
    @wraps(original)
    async def _execute_command(self: Any, command: Any, sql: Any) -> Any:
        if not mysql_questions.is_watched(self):
            return await original(self, command, sql)
        query = mysql_questions.command(self, command, sql)
        result = await original(self, command, sql)
        mysql_questions.wait(self, query)
        return result

    return _execute_command


# reading


def _read_packet(original: Any) -> Any:
    async def answering(connection: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        query = mysql_questions.waiting(connection)
        if query is None:
            return await original(connection, *args, **kwargs)
        if mysql_questions.is_stand_in(connection):
            return mysql_results.native_packet(await _answered(connection, query))
        return await _witnessed(
            connection, query, lambda: original(connection, *args, **kwargs), mysql_results.packet_json
        )

    @wraps(original)
    def _read_packet(self: Any, *args: Any, **kwargs: Any) -> Any:  # of each packet, so it adds no coroutine
        if not mysql_questions.is_waiting(self):
            return original(self, *args, **kwargs)
        return answering(self, args, kwargs)

    return _read_packet


def _reads(operation: str) -> Callable[[Any], Any]:
    """Make a cut of what reads a result; `operation` is of one whose rows are read later."""

    def make(original: Any) -> Any:
        @wraps(original)
        async def reading(self: Any) -> Any:
            connection = self.connection
            if connection is None or not mysql_questions.is_watched(connection):
                return await original(self)
            query = mysql_questions.waiting(connection)
            if query is None:
                return await original(self)
            if operation:
                query = replace(query, operation=f"{query.operation}, {operation}")
            if mysql_questions.is_stand_in(connection):
                return mysql_results.fill(self, await _answered(connection, query))
            await _witnessed(connection, query, lambda: original(self), lambda _: mysql_results.result_json(self))
            mysql_results.begin_reading(self)
            return None

        return reading

    return make


def _next_row(original: Any) -> Any:
    @wraps(original)
    async def _read_rowdata_packet_unbuffered(self: Any) -> Any:
        ahead = mysql_results.rows_ahead(self)
        if ahead is None or not self.unbuffered_active:
            return await original(self)
        if not (ahead.rows or ahead.is_ended):
            await _read_ahead(self, ahead, original)
        return mysql_results.next_row(self, ahead)

    return _read_rowdata_packet_unbuffered


async def _read_ahead(result: Any, ahead: mysql_results.RowsAhead, read: Callable[[Any], Awaitable[Any]]) -> None:
    connection = ahead.connection
    query = mysql_questions.fetch(connection, ahead.size)
    if query is None:
        ahead.rows.extend(await mysql_results.read_batch_async(result, ahead, read))
    elif mysql_questions.is_stand_in(connection):
        with ahead.lost(result):
            ahead.take(await _answered(connection, query))
    else:
        batch: list[Any] = await _witnessed(
            connection,
            query,
            lambda: mysql_results.read_batch_async(result, ahead, read),
            lambda each: mysql_results.batch_json(ahead, each),
        )
        ahead.rows.extend(batch)
    ahead.grow()


def _finish(original: Any) -> Any:
    @wraps(original)
    async def _finish_unbuffered_query(self: Any) -> Any:
        ahead = mysql_results.rows_ahead(self)
        if ahead is None or not self.unbuffered_active or mysql_results.is_closed(ahead.connection):
            return await original(self)
        if ahead.is_last or mysql_questions.is_stand_in(ahead.connection):
            return ahead.stop(self)
        await original(self)
        if self.has_next and door.is_kept():
            sys.audit(NATIVE, "aiomysql (results behind one that was left)", "", False)
        return None

    return _finish_unbuffered_query


# cursors


def _execute(original: Any) -> Any:
    @wraps(original)
    async def execute(self: Any, query: Any, args: Any = None) -> Any:
        if args is not None and door.is_kept():
            databases.client_attributes(self)[_STATEMENT] = query, args
        return await original(self, query, args)

    return execute


def _escape_args(original: Any) -> Any:
    @wraps(original)
    def _escape_args(self: Any, args: Any, conn: Any) -> Any:
        escaped = original(self, args, conn)
        statement, given = databases.client_attributes(self).pop(_STATEMENT, (None, None))
        if statement is not None and given is args and isinstance(statement, str):
            try:
                mysql_questions.leave(conn, statement % escaped, statement, args)
            except (TypeError, ValueError, KeyError):  # the client raises it, too
                return escaped
        return escaped

    return _escape_args


def _do_execute_many(original: Any) -> Any:
    @wraps(original)
    async def _do_execute_many(self: Any, prefix: Any, values: Any, postfix: Any, args: Any, *rest: Any) -> Any:
        if not door.is_kept():
            return await original(self, prefix, values, postfix, args, *rest)
        connection = self.connection
        rows = mysql_questions.leave_rows(connection, (prefix, values, postfix), args)
        try:
            return await original(self, prefix, values, postfix, rows, *rest)
        finally:
            mysql_questions.forget_rows(connection)

    return _do_execute_many


# connecting


def _connect(original: Any) -> Any:
    @wraps(original)
    async def _connect(self: Any) -> Any:
        if not door.is_kept():
            return await original(self)
        query = mysql_questions.connecting(self)
        if query is None:
            return await original(self)
        if door.is_strict():
            passage = databases.opened(query)
            if passage is None or passage.answer is None:
                return await original(self)
            return _stand_in(self, query, await databases.answer_async(passage))
        mysql_questions.begin_making(self)
        try:
            await _witnessed(self, query, lambda: original(self), lambda _: _about(self))
        except BaseException:
            mysql_questions.remember(self, None)
            raise
        mysql_questions.keep_handshake(self, query, lambda: {"results": [_about(self)]})
        return None

    return _connect


def _about(connection: Any) -> dict[str, Json]:
    return mysql_results.about(connection, _SERVER_FACTS)


def _stand_in(connection: Any, query: Query, answer: Json) -> None:
    about = mysql_results.first_result(answer, connection.close)
    mysql_results.tell(connection, _SERVER_FACTS, about)
    connection._reader = connection._writer = mysql_questions.Nowhere()  # noqa: SLF001 - as it does itself, here and below
    connection._next_seq_id, connection.connected_time = 0, connection._loop.time()  # noqa: SLF001 - as above
    mysql_questions.remember(connection, databases.MadeConnection(query, answer))


def _install(patches: PatchSet) -> None:
    def cut_connections(module: Any) -> None:
        asking = {"query": _query, "_execute_command": _execute_command}
        mysql_questions.cut(patches, module.Connection, {**asking, "_read_packet": _read_packet, "_connect": _connect})
        reading = {"read": _reads(""), "init_unbuffered_query": _reads("unbuffered")}
        reading |= {"_read_rowdata_packet_unbuffered": _next_row, "_finish_unbuffered_query": _finish}
        mysql_questions.cut(patches, module.MySQLResult, reading)

    def cut_cursors(module: Any) -> None:
        cuts = {"execute": _execute, "_escape_args": _escape_args, "_do_execute_many": _do_execute_many}
        mysql_questions.cut(patches, module.Cursor, cuts)

    def cut_pools(module: Any) -> None:
        mysql_questions.cut(patches, module.Pool, {"_acquire": pauses.in_turns})

    patches.when_imported("aiomysql.connection", cut_connections)
    patches.when_imported("aiomysql.cursors", cut_cursors)
    patches.when_imported("aiomysql.pool", cut_pools)


INTEGRATION = Integration(
    name="aiomysql_connections",
    libraries=("aiomysql",),
    install=_install,
    hooks=("aiomysql.connection", "aiomysql.cursors", "aiomysql.pool"),
)
