"""psycopg 3, sync and async: what is sent to libpq and what it gives; in a replay a stand-in for libpq's connection.

Theory of operation. All of psycopg sends through a few methods of cursors and connections and reads by a few
generators. The first are heard of to know what was asked, round the second the call is made; so ordinary, prepared,
pipelined, streamed and server-side statements, transactions and copies are all the same to us. In a replay
`boundary.libpq.StandIn` stands where the connection of libpq would, and psycopg's own Python code runs on it: its parts
in C reach into libpq's own structures, and are left out where psycopg is imported.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from reenact.boundary import databases, door, libpq, pauses
from reenact.boundary.forgiving import forgive
from reenact.boundary.libpq import StandIn
from reenact.boundary.touches import NATIVE
from reenact.contracts.integration import Integration, PatchSet
from reenact.values import alarms
from reenact.values.call import StreamEnd
from reenact.values.json import Json
from reenact.values.query import CONNECT, Query

if TYPE_CHECKING:
    from reenact.contracts.doorman import Passage

_Generators: TypeAlias = Callable[..., Generator[Any, Any, Any]]
_MADE, _QUEUE = "_reenact_made", "_reenact_sent"
_answering: ContextVar[StandIn | None] = ContextVar("reenact_psycopg_answer", default=None)


@dataclass(slots=True)
class _Sent:
    """A question on its way."""

    connection: Any
    operation: str
    text: str
    parameters: Json = None
    passage: Passage | None = None
    columns: bool = False
    copied: list[bytes] | None = None

    def opened(self) -> Passage | None:
        """Let it in."""
        handshake: databases.MadeConnection = databases.client_attributes(self.connection).get(
            _MADE, databases.NOT_SEEN
        )
        query = Query(
            system=libpq.SYSTEM,
            operation=self.operation,
            text=self.text,
            parameters=self.parameters,
            server=handshake.query.server,
            namespace=handshake.query.namespace,
        )
        return databases.opened(query, made=handshake)


_sent: Final[dict[int, _Sent]] = {}
"""By connection of libpq: what was sent, and not yet asked for."""
_streams: Final[dict[int, _Sent]] = {}
_copies: Final[dict[int, _Sent]] = {}


def _note(connection: Any, operation: str, text: Any, parameters: Json = None) -> None:
    """Hear that something is sent; in a pipeline it waits for its turn."""
    try:
        pgconn = connection.pgconn
        if type(pgconn) is StandIn or not door.is_kept():
            return
        query = _Sent(connection, operation, text if isinstance(text, str) else bytes(text).decode("utf-8", "replace"))
        query.parameters = parameters
        if query.text[:6].upper() == "LISTEN":  # what comes of it comes unasked
            sys.audit(NATIVE, "psycopg (notifications)", "", False)
        if connection._pipeline is not None:  # noqa: SLF001 - psycopg tells by it which way it goes
            _queue(connection).append(query)
        else:
            _sent[id(pgconn)] = query
    except Exception:
        forgive("psycopg.note")


def _queue(connection: Any) -> deque[_Sent | None]:
    waiting: deque[_Sent | None] = databases.client_attributes(connection._pipeline).setdefault(_QUEUE, deque())  # noqa: SLF001 - as above
    return waiting


def _record_answer(statement: _Sent, passage: Passage, results: Sequence[Any], pgconn: Any) -> None:
    try:
        answer = libpq.answer_told(results, pgconn, statement.text)
    except Exception:
        forgive("psycopg.told")
        return
    databases.describe_answer(passage, answer)


# what is sent


def _executed(original: Any) -> Any:
    @wraps(original)
    def _execute_send(self: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, query, *args, **kwargs)
        _note(self._conn, "query", query.query, _parameters(query))
        return result

    return _execute_send


def _parameters(query: Any) -> Json:
    return libpq.parameters(
        getattr(query, "params", None) or None, getattr(query, "types", None), getattr(query, "formats", None)
    )


def _client_side(original: Any) -> Any:
    @wraps(original)
    def _execute_send(self: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, query, *args, **kwargs)
        _note(self._conn, "query", query.query)
        return result

    return _execute_send


def _prepared(original: Any) -> Any:
    @wraps(original)
    def _send_query_prepared(self: Any, name: Any, pgq: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, name, pgq, *args, **kwargs)
        _note(self._conn, "query", pgq.query, _parameters(pgq))
        return result

    return _send_query_prepared


def _pass_through(holder: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make what lets something through a pipeline that is no question: its result has a place in the order."""

    def make(original: Any) -> Any:
        @wraps(original)
        def passing(self: Any, *args: Any, **kwargs: Any) -> Any:
            connection = holder(self)
            if connection._pipeline is not None and type(connection.pgconn) is not StandIn:  # noqa: SLF001 - as above
                _queue(connection).append(None)
            return original(self, *args, **kwargs)

        return passing

    return make


def _commanded(original: _Generators) -> Any:
    @wraps(original)
    def _exec_command(self: Any, command: Any, *args: Any, **kwargs: Any) -> Any:
        text = command
        if hasattr(command, "as_bytes"):
            text = command.as_bytes(self)
        _note(self, "query", text)
        result: Any = yield from original(self, command, *args, **kwargs)
        return result

    return _exec_command


def _described(original: _Generators) -> Any:
    @wraps(original)
    def _describe_gen(self: Any) -> Any:
        _note(self._conn, "describe", self._name)
        result: Any = yield from original(self)
        return result

    return _describe_gen


# what is read


def _execute(original: Any) -> Any:
    @wraps(original)
    def execute(pgconn: Any) -> Any:
        statement = _sent.pop(id(pgconn), None)
        return original(pgconn) if statement is None else _executing(original, pgconn, statement)

    return execute


def _executing(original: _Generators, pgconn: Any, statement: _Sent) -> Generator[Any, Any, Any]:
    passage = statement.opened()
    if passage is None:
        result: Any = yield from original(pgconn)
        return result
    try:
        with passage.crossing():
            results: Any = yield from original(pgconn)
    except BaseException as error:
        databases.failed(passage, error)
        raise
    _record_answer(statement, passage, results, pgconn)
    if results and int(results[-1].status) in {3, 4}:
        _copies[id(pgconn)] = _Sent(statement.connection, "copy", statement.text, copied=[])
    return results


def _processed(original: Any) -> Any:
    @wraps(original)
    def _process_results(self: Any, queued: Any, results: Any) -> Any:
        queue = databases.client_attributes(self).get(_QUEUE)
        statement: _Sent | None = queue.popleft() if queue else None
        passage = statement.opened() if statement is not None else None
        if statement is not None and passage is not None:
            _record_answer(statement, passage, results, self.pgconn)
        return original(self, queued, results)

    return _process_results


def _send(original: Any) -> Any:
    @wraps(original)
    def send(pgconn: Any) -> Any:
        statement = _sent.pop(id(pgconn), None)
        if statement is not None:
            statement.passage = statement.opened()
            if statement.passage is not None:
                _streams[id(pgconn)] = statement
        return original(pgconn)

    return send


def _fetch(original: Any) -> Any:
    @wraps(original)
    def fetch(pgconn: Any) -> Any:
        statement = _streams.get(id(pgconn))
        return original(pgconn) if statement is None else _fetching(original, pgconn, statement)

    return fetch


def _fetching(original: _Generators, pgconn: Any, statement: _Sent) -> Generator[Any, Any, Any]:
    """Read a piece of an answer that is read row by row."""
    passage = statement.passage
    if passage is None:
        result: Any = yield from original(pgconn)
        return result
    try:
        with passage.crossing():
            result = yield from original(pgconn)
    except BaseException as error:
        _streams.pop(id(pgconn), None)
        passage.ended(StreamEnd.RAISED, error)
        raise
    try:
        _piece(pgconn, statement, passage, result)
    except Exception:
        forgive("psycopg.stream")
    return result


def _piece(pgconn: Any, statement: _Sent, passage: Passage, result: Any) -> None:
    if result is None:
        _streams.pop(id(pgconn), None)
        return
    answer = libpq.result_told(result)
    if "rows" in answer and int(result.status) != 2:  # TUPLES_OK says that there are no more
        if statement.columns:
            answer.pop("columns", None)
        statement.columns = True
        passage.chunk(value=answer)
        return
    _streams.pop(id(pgconn), None)
    if state := int(pgconn.transaction_status):
        answer["transaction"] = state
    passage.ended(StreamEnd.FINISHED, None, answer)


# copies


def _copy_from(original: Any) -> Any:
    @wraps(original)
    def copy_from(pgconn: Any) -> Any:
        statement = _copies.get(id(pgconn))
        return original(pgconn) if statement is None else _copying_out(original, pgconn, statement)

    return copy_from


def _copying_out(original: _Generators, pgconn: Any, statement: _Sent) -> Generator[Any, Any, Any]:
    if statement.passage is None:
        statement.operation = "copy out"
        statement.passage = statement.opened()
    passage = statement.passage
    try:
        data: Any = yield from original(pgconn)
    except BaseException as error:
        _copies.pop(id(pgconn), None)
        if passage is not None:
            databases.failed(passage, error)
        raise
    if statement.copied is not None and isinstance(data, bytes | bytearray | memoryview):
        statement.copied.append(bytes(cast("bytes", data)))
        return cast("Any", data)
    _copies.pop(id(pgconn), None)
    if passage is not None:
        answer = libpq.answer_told([data], pgconn, statement.text)
        pieces: list[Json] = [libpq.text(each) for each in statement.copied or ()]
        databases.describe_answer(passage, {**answer, "data": pieces} if isinstance(answer, dict) else answer)
    return data


def _copy_to(original: Any) -> Any:
    @wraps(original)
    def copy_to(pgconn: Any, buffer: Any, *args: Any, **kwargs: Any) -> Any:
        statement = _copies.get(id(pgconn))
        if statement is not None and statement.copied is not None:
            statement.copied.append(bytes(buffer))
        return original(pgconn, buffer, *args, **kwargs)

    return copy_to


def _copy_end(original: Any) -> Any:
    @wraps(original)
    def copy_end(pgconn: Any, error: Any) -> Any:
        statement = _copies.pop(id(pgconn), None)
        return original(pgconn, error) if statement is None else _copying_in(original, pgconn, error, statement)

    return copy_end


def _copying_in(original: _Generators, pgconn: Any, error: Any, statement: _Sent) -> Generator[Any, Any, Any]:
    statement.operation = "copy in"
    statement.parameters = [libpq.text(b"".join(statement.copied or ())), libpq.text(error)]
    passage = statement.opened()
    if passage is None:
        result = yield from original(pgconn, error)
        return result
    try:
        with passage.crossing():
            result = yield from original(pgconn, error)
    except BaseException as failure:
        databases.failed(passage, failure)
        raise
    _record_answer(statement, passage, [result], pgconn)
    return result


# connections


def _asked(conninfo: Any, kwargs: dict[str, Any]) -> Query:
    from psycopg.conninfo import conninfo_to_dict

    known_names = set(_names())
    parameters = conninfo_to_dict(conninfo, **{name: value for name, value in kwargs.items() if name in known_names})
    host = parameters.get("host") or parameters.get("hostaddr") or os.environ.get("PGHOST")
    port = parameters.get("port") or os.environ.get("PGPORT")
    namespace = parameters.get("dbname") or os.environ.get("PGDATABASE") or parameters.get("user")
    return Query(
        system=libpq.SYSTEM,
        operation=CONNECT,
        server=databases.server_of(host, port),
        namespace=str(namespace or ""),
    )


def _names() -> list[str]:
    from psycopg import pq

    return [each.keyword.decode() for each in pq.Conninfo.get_defaults()]


def _connecting(conninfo: Any, kwargs: dict[str, Any]) -> tuple[Query, Passage] | None:
    if not door.is_kept():
        return None
    try:
        query = _asked(conninfo, kwargs)
    except Exception:  # psycopg will say so itself
        alarms.pass_on()
        return None
    passage = databases.opened(query)
    return None if passage is None else (query, passage)


def _connected(passage: Passage, query: Query, connection: Any) -> Any:
    try:
        about = libpq.connection_told(connection.pgconn)
        databases.client_attributes(connection)[_MADE] = databases.MadeConnection(query, about)
        databases.describe_answer(passage, about)
    except Exception:
        forgive("psycopg.connected")
    return connection


def _connect(original: Any) -> Any:
    function = original.__func__

    @wraps(function)
    def connect(cls: Any, conninfo: Any = "", **kwargs: Any) -> Any:
        opened = _connecting(conninfo, kwargs)
        if opened is None:
            return function(cls, conninfo, **kwargs)
        query, passage = opened
        if passage.answer is not None:
            stand_in = StandIn(databases.answer(passage), query.server, query.namespace)
            before = _answering.get()
            _answering.set(stand_in)
            try:
                return function(cls, conninfo, **kwargs)
            finally:
                _answering.set(before)
        try:
            with passage.crossing():
                connection = function(cls, conninfo, **kwargs)
        except BaseException as error:
            databases.failed(passage, error)
            raise
        return _connected(passage, query, connection)

    return classmethod(connect)


def _connect_async(original: Any) -> Any:
    function = original.__func__

    @wraps(function)
    async def connect(cls: Any, conninfo: Any = "", **kwargs: Any) -> Any:
        opened = _connecting(conninfo, kwargs)
        if opened is None:
            return await function(cls, conninfo, **kwargs)
        query, passage = opened
        if passage.answer is not None:
            stand_in = StandIn(await databases.answer_async(passage), query.server, query.namespace)
            before = _answering.get()
            _answering.set(stand_in)
            try:
                return await function(cls, conninfo, **kwargs)
            finally:
                _answering.set(before)
        try:
            with passage.crossing():
                connection = await function(cls, conninfo, **kwargs)
        except BaseException as error:
            databases.failed(passage, error)
            raise
        return _connected(passage, query, connection)

    return classmethod(connect)


def _connect_gen(original: Any) -> Any:
    function: _Generators = original.__func__

    @wraps(function)
    def _connect_gen(cls: Any, *args: Any, **kwargs: Any) -> Any:
        stand_in = _answering.get()
        if stand_in is not None:
            return cls(stand_in)
        result: Any = yield from function(cls, *args, **kwargs)
        return result

    return classmethod(_connect_gen)


def _attempts(original: Any) -> Any:
    @wraps(original)
    def conninfo_attempts(params: Any) -> Any:
        return original(params) if _answering.get() is None else [dict(params)]

    return conninfo_attempts


def _attempts_async(original: Any) -> Any:
    @wraps(original)
    async def conninfo_attempts_async(params: Any) -> Any:
        return (await original(params)) if _answering.get() is None else [dict(params)]

    return conninfo_attempts_async


_READY = 3
"""`psycopg.waiting.Ready.RW`."""


def _wait(original: Any) -> Any:
    @wraps(original)
    def wait(self: Any, gen: Any, *args: Any, **kwargs: Any) -> Any:
        pgconn = self.pgconn
        if type(pgconn) is not StandIn:
            return original(self, gen, *args, **kwargs)
        try:
            asks = next(gen)
            while True:
                try:
                    if int(asks) & 1:
                        pgconn.release()
                except BaseException as error:  # psycopg's own way out of its generators
                    asks = gen.throw(error)
                else:
                    asks = gen.send(_ready(asks))
        except StopIteration as end:
            return end.value

    return wait


def _wait_async(original: Any) -> Any:
    @wraps(original)
    async def wait(self: Any, gen: Any, *args: Any, **kwargs: Any) -> Any:
        pgconn = self.pgconn
        if type(pgconn) is not StandIn:
            return await original(self, gen, *args, **kwargs)
        try:
            asks = next(gen)
            while True:
                try:
                    if int(asks) & 1:
                        await pgconn.release_async()
                except BaseException as error:  # as above
                    asks = gen.throw(error)
                else:
                    asks = gen.send(_ready(asks))
        except StopIteration as end:
            return end.value

    return wait


def _ready(asks: Any) -> Any:
    from psycopg.waiting import Ready

    return Ready(int(asks))


def _notifies(original: Any) -> Any:
    @wraps(original)
    def notifies(pgconn: Any) -> Any:
        sys.audit(NATIVE, "psycopg (notifications)", "", False)
        return original(pgconn)

    return notifies


class _Escaping:
    """Escapes as libpq does where strings conform to the standard, without a connection."""

    def __init__(self, conn: Any = None) -> None:
        self.conn = conn

    def escape_string(self, data: Any) -> bytes:
        return bytes(data).replace(b"'", b"''")

    def escape_literal(self, data: Any) -> bytes:
        raw_bytes = bytes(data)
        if b"\\" in raw_bytes:
            return b" E'" + raw_bytes.replace(b"\\", b"\\\\").replace(b"'", b"''") + b"'"
        return b"'" + self.escape_string(raw_bytes) + b"'"

    def escape_identifier(self, data: Any) -> bytes:
        return b'"' + bytes(data).replace(b'"', b'""') + b'"'

    def escape_bytea(self, data: Any) -> bytes:
        return b"\\x" + bytes(data).hex().encode()

    def unescape_bytea(self, data: Any) -> bytes:
        raw_bytes = bytes(data)
        return bytes.fromhex(raw_bytes[2:].decode()) if raw_bytes.startswith(b"\\x") else raw_bytes


def _install(patches: PatchSet) -> None:
    def without_c(module: Any) -> None:
        if door.is_strict():
            patches.replace(module, "_psycopg", lambda _: None)

    def escaping(module: Any) -> None:
        if door.is_strict():
            patches.replace(module, "Escaping", lambda _: _Escaping)

    patches.when_imported("psycopg._cmodule", without_c)
    patches.when_imported("psycopg.pq", escaping)
    patches.when_imported("psycopg", lambda module: _cut(patches, module))
    patches.when_imported("psycopg_pool.pool_async", lambda module: _install_pool(patches, module))


def _cut(patches: PatchSet, psycopg: Any) -> None:
    from psycopg import (
        _connection_base,  # pyright: ignore[reportPrivateUsage] - what it executes by is imported there
        _copy,
        _copy_async,
        _copy_base,
        _cursor_base,
        _pipeline_base,
        _server_cursor_base,
        client_cursor,
        connection,
        connection_async,
        generators,
    )

    base = _connection_base.BaseConnection
    patches.replace(_cursor_base.BaseCursor, "_execute_send", _executed)
    patches.replace(client_cursor.ClientCursorMixin, "_execute_send", _client_side)
    patches.replace(_cursor_base.BaseCursor, "_send_query_prepared", _prepared)
    patches.replace(_cursor_base.BaseCursor, "_send_prepare", _pass_through(_connection_of))
    patches.replace(base, "_exec_command", _commanded)
    if getattr(_connection_base, "_HAS_SEND_CLOSE", False):
        patches.replace(base, "_deallocate", _pass_through(lambda owner: owner))
    patches.replace(_pipeline_base.BasePipeline, "_enqueue_sync", _pass_through(_connection_of))
    patches.replace(_pipeline_base.BasePipeline, "_process_results", _processed)
    patches.replace(_server_cursor_base.ServerCursorMixin, "_describe_gen", _described)
    for module in (generators, _cursor_base, _server_cursor_base):
        patches.replace(module, "execute", _execute)
    patches.replace(_cursor_base, "send", _send)
    patches.replace(_cursor_base, "fetch", _fetch)
    patches.replace(_copy_base, "copy_from", _copy_from)
    for module in (_copy, _copy_async):
        patches.replace(module, "copy_to", _copy_to)
        patches.replace(module, "copy_end", _copy_end)
    patches.replace(base, "_connect_gen", _connect_gen)
    for module, kind, name, connect, attempts, wait in (
        (connection, "Connection", "conninfo_attempts", _connect, _attempts, _wait),
        (connection_async, "AsyncConnection", "conninfo_attempts_async", _connect_async, _attempts_async, _wait_async),
    ):
        patches.replace(module, name, attempts)
        patches.replace(module, "notifies", _notifies)
        patches.replace(getattr(module, kind), "connect", connect)
        patches.replace(getattr(module, kind), "wait", wait)
    patches.replace(psycopg, "connect", lambda _: connection.Connection.connect)


def _install_pool(patches: PatchSet, module: Any) -> None:
    patches.replace(module.AsyncConnectionPool, "getconn", pauses.in_turns)


def _connection_of(thing: Any) -> Any:
    """Give the connection of a cursor or a pipeline."""
    return thing._conn  # noqa: SLF001 - so do they


INTEGRATION = Integration(
    name="psycopg_connections",
    libraries=("psycopg",),
    install=_install,
    hooks=("psycopg._cmodule", "psycopg.pq", "psycopg", "psycopg_pool.pool_async"),
)
