"""asyncpg, under any loop: cut at its protocol object, on which its connections, pools, cursors and transactions stand.

The protocol is in Cython and speaks to the server; all above it is Python. In a replay a stand-in with the methods that
asyncpg calls stands in its place, and rows are records again. Values are spelled as asyncpg decoded them, codecs of the
program's own included. That a statement was prepared, and which types were looked up for it, is no question.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, cast

from reenact.boundary import databases, door, pauses, place
from reenact.boundary.forgiving import forgive
from reenact.boundary.place import Place
from reenact.boundary.touches import NATIVE
from reenact.contracts.integration import Integration, PatchSet
from reenact.values import typed
from reenact.values.json import Json
from reenact.values.lenient import as_count, as_list, as_object, as_text
from reenact.values.query import COLUMNS, CONNECT, PREPARE, Query

if TYPE_CHECKING:
    from reenact.contracts.doorman import Passage

_SYSTEM: Final = "postgresql"
_HUNG_UP: Final = ("08", "57P0")
"""How the SQLSTATE of an error begins with which a connection ends."""
_TAG: Final = "$asyncpg"
_MADE: Final[dict[int, databases.MadeConnection]] = {}
"""Of protocols: their connection. An entry goes with its protocol."""
_SETTINGS: Final = (
    *("server_version", "server_encoding", "client_encoding", "application_name", "is_superuser", "DateStyle"),
    *("session_authorization", "IntervalStyle", "TimeZone", "integer_datetimes", "standard_conforming_strings"),
    *("default_transaction_read_only", "in_hot_standby", "search_path", "padb_revision", "crdb_version"),
)
_PLAIN: Final = frozenset({str, int, float, bool, type(None)})


# values


def spelled(value: Any) -> Json:
    """Spell a value that asyncpg decoded or is to encode; its own classes by name."""
    kind = cast("Any", type)(value)
    if kind in _PLAIN:
        return typed.encode(value) if kind is str or kind is float else value
    if kind is list:
        return [spelled(each) for each in value]
    from asyncpg import Record

    if isinstance(value, Record):
        return {_TAG: "Record", "names": [str(name) for name in value.keys()], "of": [*map(spelled, value.values())]}  # noqa: SIM118 - a record is no mapping
    if kind.__module__.startswith("asyncpg."):
        return _own(value, kind.__name__)
    if kind.__module__ == "ipaddress":
        return {_TAG: kind.__name__, "of": str(value)}
    if kind is tuple:
        return {_TAG: "tuple", "of": [spelled(each) for each in value]}
    return typed.encode(value)


def _own(value: Any, name: str) -> Json:
    if name == "UUID":
        return {_TAG: name, "of": str(value)}
    if name == "Range":
        bounds: list[Json] = [spelled(value.lower), spelled(value.upper)]
        return {_TAG: name, "of": [*bounds, value.lower_inc, value.upper_inc, value.isempty]}
    if name == "BitString":
        return {_TAG: name, "of": value.as_string()}
    return typed.encode(value)


def unspelled(value: Json) -> Any:
    """Make the value again."""
    if isinstance(value, list):
        return [unspelled(each) for each in value]
    if not isinstance(value, dict) or _TAG not in value:
        return typed.decode(value) if isinstance(value, dict) else value
    return _native_value(as_text(value[_TAG]), value, value.get("of"))


def _native_value(name: str, value: dict[str, Json], of: Any) -> Any:
    """Make a value of asyncpg's own, or of `ipaddress`; a token of redaction's is given as it is."""
    if name == "Record":
        return record([as_text(each) for each in as_list(value.get("names"))], of)
    if name == "tuple":
        return tuple(unspelled(each) for each in as_list(of))
    if name == "Range":
        from asyncpg import Range

        lower, upper, lower_inc, upper_inc, empty = of
        return Range(unspelled(lower), unspelled(upper), lower_inc=lower_inc, upper_inc=upper_inc, empty=empty)
    import ipaddress

    from asyncpg import BitString
    from asyncpg.pgproto.pgproto import UUID

    kind: Any = {"UUID": UUID, "BitString": BitString}.get(name) or getattr(ipaddress, name)
    try:
        return kind(of)
    except ValueError:
        return of


def record(names: list[str], values: Json) -> Any:
    """Make a record."""
    from asyncpg.protocol import protocol

    make: Any = getattr(protocol, "_create_record")  # noqa: B009 - which its types do not tell of
    mapping = {name: at for at, name in enumerate(names)}
    return make(mapping or None, tuple(unspelled(each) for each in as_list(values)))


def _rows(records: Iterable[Any], state: Any) -> dict[str, Json]:
    record_list = list(records)
    names: Json = [[str(name)] for name in record_list[0].keys()] if record_list else []  # noqa: SIM118 - as above
    return {
        "columns": names if state is None else _columns_of(state),
        "rows": [[spelled(value) for value in each.values()] for each in record_list],
    }


def _records(answer: Mapping[str, Json]) -> list[Any]:
    names = [as_text(as_list(each)[0]) for each in as_list(answer.get("columns"))]
    return [record(names, row) for row in as_list(answer.get("rows"))]


# recording


def _query(protocol: Any, operation: str, text: str, parameters: Json = None) -> Query:
    of = protocol.made.query if isinstance(protocol, _StandIn) else _made_of(protocol).query
    return Query(
        system=_SYSTEM,
        operation=operation,
        text=text,
        parameters=parameters,
        server=of.server,
        namespace=of.namespace,
    )


def _made_of(protocol: Any) -> databases.MadeConnection:
    return _MADE.get(id(protocol), databases.NOT_SEEN)


_COLUMNS: Final[dict[int, tuple[Any, Json]]] = {}
"""Of prepared statements: the statement, so that its number stays its own, and its columns."""
_MOST: Final = 2000


def _columns_of(state: Any) -> Json:
    """Give the columns of a statement, which a client asks for once, and may need again in a replay of a part."""
    entry = _COLUMNS.get(id(state))
    if entry is None:
        if len(_COLUMNS) > _MOST:
            _COLUMNS.clear()
        entry = _COLUMNS[id(state)] = state, _descriptions(state._get_attributes())  # noqa: SLF001 - of the client's own
    return entry[1]


def _answered(protocol: Any, result: Mapping[str, Json]) -> Json:
    answer: dict[str, Json] = {"results": [dict(result)]}
    if protocol.is_in_transaction():
        answer["transaction"] = True
    return answer


def _args(args: Iterable[Any], limit: int = 0) -> Json:
    values: list[Json] = [spelled(each) for each in args]
    if limit:
        return {"arguments": values, "limit": limit}
    return values or None


def _asks(read: Callable[..., tuple[str, str, Json]], tell: Callable[..., dict[str, Json]]) -> Callable[[Any], Any]:
    """Make a cut of a method: `read` gives operation, text and parameters, `tell` spells what came back."""

    def make(original: Any) -> Any:
        @wraps(original)
        async def asking(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not door.is_kept() or _is_inside():
                return await original(self, *args, **kwargs)
            try:
                query = _query(self, *read(*args, **kwargs))
            except Exception:  # our failure is never the agent's
                forgive("asyncpg.read")
                return await original(self, *args, **kwargs)
            return await databases.witnessed(
                query,
                lambda: original(self, *args, **kwargs),
                lambda result: _answered(self, tell(result, *args)),
                made=_made_of(self),
            )

        return asking

    return make


def _is_inside() -> bool:
    """Tell whether asyncpg asks for itself, within a call of ours or while it looks up types."""
    here = place.current()
    return here is not None and here.recorded is _INSIDE


_INSIDE: Final = object()


def _of_query(query: Any, *_: Any) -> tuple[str, str, Json]:
    return "query", query, None


def _of_execution(state: Any, args: Any, *rest: Any, **kwargs: Any) -> tuple[str, str, Json]:
    return "query", state.query, _args(args, kwargs["limit"] if "limit" in kwargs else rest[1])  # behind the portal


def _of_binding(state: Any, args: Any, *_: Any, **__: Any) -> tuple[str, str, Json]:
    return "bind", state.query, _args(args)


def _of_fetch(state: Any, _portal: Any, limit: int, *_: Any, **__: Any) -> tuple[str, str, Json]:
    return "fetch", state.query, [limit]


def _nothing(*_: Any) -> dict[str, Json]:
    return {}


def _status(result: Any, *_: Any) -> dict[str, Json]:
    return {"status": result} if isinstance(result, str) else {}


def _extra(result: Any, state: Any = None, *_: Any) -> dict[str, Json]:
    """Spell rows, which come with the status and whether these were all where that was asked for."""
    if isinstance(result, tuple):
        rows, status, done = cast("tuple[Any, Any, bool]", result)
        return {**_rows(rows, state), "status": typed.encode(status), "done": done}
    return _rows(cast("list[Any]", result), state) if isinstance(result, list) else {}


def _many(original: Any) -> Any:
    @wraps(original)
    async def bind_execute_many(self: Any, state: Any, args: Any, *rest: Any, **kwargs: Any) -> Any:
        if not door.is_kept():
            return await original(self, state, args, *rest, **kwargs)
        argument_sets = [*args]
        query = _query(self, "executemany", state.query, [_args(each) for each in argument_sets])
        return await databases.witnessed(
            query,
            lambda: original(self, state, argument_sets, *rest, **kwargs),
            lambda result: _answered(self, _extra(result)),
            made=_made_of(self),
        )

    return bind_execute_many


def _prepared(original: Any) -> Any:
    @wraps(original)
    async def prepare(self: Any, stmt_name: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
        if not door.is_kept() or _is_inside():
            return await original(self, stmt_name, query, *args, **kwargs)
        return await databases.witnessed(
            _query(self, PREPARE, query),
            lambda: original(self, stmt_name, query, *args, **kwargs),
            lambda _: _answered(self, {"status": "prepared"}),
            made=_made_of(self),
        )

    return prepare


def _copied_out(original: Any) -> Any:
    @wraps(original)
    async def copy_out(self: Any, copy_stmt: Any, sink: Any, *rest: Any) -> Any:
        if not door.is_kept():
            return await original(self, copy_stmt, sink, *rest)
        pieces: list[Json] = []

        async def hearing(data: Any) -> None:
            pieces.append(typed.encode(bytes(data)))
            await sink(data)

        return await databases.witnessed(
            _query(self, "copy out", copy_stmt),
            lambda: original(self, copy_stmt, hearing, *rest),
            lambda status: _answered(self, {"status": typed.encode(status), "data": pieces}),
            made=_made_of(self),
        )

    return copy_out


async def _copied(reader: Any, data: Any, records: Any) -> tuple[Any, Any, Any, Json]:
    """Read what is copied in, so that it can be told before it is sent."""
    if records is not None:
        rows = [row async for row in records] if hasattr(records, "__aiter__") else [*records]
        return None, None, rows, [[spelled(value) for value in row] for row in rows]
    if reader is not None:
        data = b"".join([piece async for piece in reader])
    return None, data, None, typed.encode(None if data is None else bytes(data))


def _copied_in(original: Any) -> Any:
    @wraps(original)
    async def copy_in(self: Any, copy_stmt: Any, reader: Any, data: Any, records: Any, *rest: Any) -> Any:
        if not door.is_kept():
            return await original(self, copy_stmt, reader, data, records, *rest)
        reader, data, records, parameters = await _copied(reader, data, records)
        return await databases.witnessed(
            _query(self, "copy in", copy_stmt, parameters),
            lambda: original(self, copy_stmt, reader, data, records, *rest),
            lambda status: _answered(self, {"status": typed.encode(status)}),
            made=_made_of(self),
        )

    return copy_in


def _of_statement(original: Any) -> Any:
    """Make a cut of what gives the columns of a statement, or its parameters: SQLAlchemy makes its rows by them."""
    name = str(original.__name__)

    @wraps(original)
    def getting(self: Any) -> Any:
        protocol = self._connection._protocol  # noqa: SLF001 - the server is known by it
        if not door.is_kept():
            return original(self)
        query = _query(protocol, COLUMNS, self._query, name)
        if isinstance(protocol, _StandIn):
            columns = databases.ask_stand_in(query)
            if isinstance(columns, dict):  # the answer to the statement itself
                columns = as_object(next(iter(as_list(columns.get("results"))), None)).get("columns")
            return tuple(map(_description, as_list(columns)))
        return databases.witness(query, lambda: original(self), _descriptions, made=_made_of(protocol))

    return getting


def _descriptions(items: Any) -> Json:
    """Spell attributes or types: name, number, type, kind and schema; a type has no name of its own."""
    pairs = [(each.name, each.type) if hasattr(each, "type") else (None, each) for each in items]
    return [[name, kind.oid, kind.name, kind.kind, kind.schema] for name, kind in pairs]


def _description(description: Json) -> Any:
    from asyncpg.types import Attribute, Type

    of: Any = description
    kind = Type(*of[1:])
    return kind if of[0] is None else Attribute(of[0], kind)


def _introspected(original: Any) -> Any:
    @wraps(original)
    async def _introspect_types(self: Any, *args: Any, **kwargs: Any) -> Any:
        here = place.current() or Place(0, 0)
        before = place.move(Place(here.trace_id, here.span_id, _INSIDE, here.root, whole=True))
        try:
            return await original(self, *args, **kwargs)
        finally:
            place.move(before)

    return _introspect_types


def _listened(original: Any) -> Any:
    @wraps(original)
    async def add_listener(self: Any, *args: Any, **kwargs: Any) -> Any:
        if door.is_kept():
            sys.audit(NATIVE, "asyncpg (notifications)", "", False)
        return await original(self, *args, **kwargs)

    return add_listener


def _ended(original: Any) -> Any:
    """Make a cut of what ends a connection: the program did it, and no server."""

    @wraps(original)
    def ending(self: Any, *args: Any, **kwargs: Any) -> Any:
        _MADE.pop(id(self), None)
        return original(self, *args, **kwargs)

    return ending


def _lost(original: Any) -> Any:
    @wraps(original)
    def connection_lost(self: Any, exc: Any) -> Any:
        handshake = _MADE.pop(id(self), None)
        if handshake is not None and door.is_kept():  # it hung up by itself: no call tells a replay when
            before = place.move(None)
            try:
                sys.audit(NATIVE, "asyncpg (the server hung up)", handshake.query.server, False)
            finally:
                place.move(before)
        return original(self, exc)

    return connection_lost


# connecting


def _connected(original: Any) -> Any:
    @wraps(original)
    async def _connect_addr(*, addr: Any, loop: Any, params: Any, config: Any, **kwargs: Any) -> Any:
        async def run() -> Any:
            return await original(addr=addr, loop=loop, params=params, config=config, **kwargs)

        if not door.is_kept():
            return await run()
        server = addr if isinstance(addr, str) else databases.server_of(*addr[:2])
        namespace = str(params.database or params.user or "")
        query = Query(system=_SYSTEM, operation=CONNECT, server=server, namespace=namespace)
        passage = databases.opened(query)
        if passage is None:
            return await run()
        if passage.answer is not None:
            about = await databases.answer_async(passage)
            stand_in = _StandIn(databases.MadeConnection(query, about), kwargs["record_class"])
            return kwargs["connection_class"](stand_in, stand_in, loop, addr, config, params)
        try:
            with passage.crossing():
                connection = await run()
        except BaseException as error:
            databases.failed(passage, error)
            raise
        _remember(connection._protocol, passage, query)  # noqa: SLF001 - its server is asked over it
        return connection

    return _connect_addr


def _remember(protocol: Any, passage: Passage, query: Query) -> None:
    import weakref

    try:
        about, key = _about(protocol), id(protocol)
        _MADE[key] = databases.MadeConnection(query, about)
        weakref.finalize(protocol, _MADE.pop, key, None).atexit = False
        databases.describe_answer(passage, about)
    except Exception:
        forgive("asyncpg.connected")


def _about(protocol: Any) -> Json:
    settings = protocol.get_settings()
    setting_values = {name: getattr(settings, name, None) for name in _SETTINGS}
    return {
        "pid": protocol.get_server_pid(),
        "ssl": bool(protocol.is_ssl),
        "settings": {name: str(value) for name, value in setting_values.items() if value is not None},
    }


# giving back


class _Settings:
    """What a server told of itself; codecs are no matter, since values are given decoded."""

    def __init__(self, values: Mapping[str, Json]) -> None:
        for name, value in values.items():
            setattr(self, name, value)

    def _nothing(self, *_: Any, **__: Any) -> None:
        """Take a codec, and need none."""

    add_python_codec = clear_type_cache = register_data_types = remove_python_codec = _nothing
    set_builtin_type_codec = _nothing


class _Statement:
    """A prepared statement."""

    closed, prepared, refs = False, True, 0

    def __init__(self, name: str, query: str, record_class: Any, ignore_custom_codec: bool) -> None:  # noqa: FBT001 - asyncpg's own
        self.name, self.query, self.record_class = name, query, record_class
        self.ignore_custom_codec = ignore_custom_codec

    def _get_parameters(self) -> tuple[Any, ...]:
        return ()

    def _get_attributes(self) -> tuple[Any, ...]:
        return ()

    def _init_types(self) -> set[int]:
        return set()

    def _init_codecs(self) -> None: ...

    def attach(self) -> None:
        self.refs += 1

    def detach(self) -> None:
        self.refs -= 1

    def mark_closed(self) -> None:
        self.closed = True

    def mark_unprepared(self) -> None:
        self.prepared = False


class _StandIn:
    """Stands for the protocol of a connection, and for its transport."""

    backend_secret = None

    def __init__(self, handshake: databases.MadeConnection, record_class: Any) -> None:
        about = as_object(handshake.about)
        self.made, self._record_class = handshake, record_class
        self._settings = _Settings(as_object(about.get("settings")))
        self.backend_pid = as_count(about.get("pid")) or 0
        self.is_ssl = about.get("ssl") is True
        self._open, self._in_transaction = True, False
        self.queries_count = 0

    async def _ask(self, operation: str, text: str, parameters: Json = None) -> dict[str, Json]:
        self.queries_count += 1
        try:
            answer = as_object(await databases.asked_async(_query(self, operation, text, parameters)))
        except Exception as error:
            if isinstance(error, OSError) or str(getattr(error, "sqlstate", "")).startswith(_HUNG_UP):
                self._open = False
            raise
        self._in_transaction = answer.get("transaction") is True
        return as_object(next(iter(as_list(answer.get("results"))), None))

    async def prepare(self, stmt_name: str, query: str, timeout: Any = None, **kwargs: Any) -> Any:  # noqa: ARG002, ASYNC109 - asyncpg's own
        await self._ask(PREPARE, query)
        kind = kwargs.get("record_class") or self._record_class
        return _Statement(stmt_name, query, kind, kwargs.get("ignore_custom_codec", False))

    async def query(self, query: str, timeout: Any = None) -> Any:  # noqa: ARG002, ASYNC109 - as above
        return as_text((await self._ask("query", query)).get("status"))

    async def bind_execute(self, state: Any, args: Any, *rest: Any, **kwargs: Any) -> Any:
        asked = _of_execution(state, args, *rest, **kwargs)
        with_extra = kwargs["return_extra"] if "return_extra" in kwargs else rest[2]  # behind the portal and the limit
        return _fetch_reply(await self._ask(*asked), with_extra)

    async def bind_execute_many(self, state: Any, args: Any, *rest: Any, **kwargs: Any) -> Any:
        answer = await self._ask("executemany", state.query, [_args(each) for each in args])
        wanted = kwargs.get("return_rows", rest[2] if len(rest) > 2 else False)
        return _records(answer) if "rows" in answer or wanted else None

    async def bind(self, state: Any, args: Any, *_: Any, **__: Any) -> Any:
        await self._ask("bind", state.query, _args(args))

    async def execute(self, state: Any, _portal: str, limit: int, return_extra: Any, *_: Any, **__: Any) -> Any:
        return _fetch_reply(await self._ask("fetch", state.query, [limit]), return_extra)

    async def close_portal(self, *_: Any) -> None: ...

    async def close_statement(self, *_: Any) -> None: ...

    async def copy_out(self, copy_stmt: str, sink: Any, _timeout: Any) -> Any:
        answer = await self._ask("copy out", copy_stmt)
        for piece in as_list(answer.get("data")):
            await sink(typed.decode(piece))
        return typed.decode(answer.get("status"))

    async def copy_in(self, copy_stmt: str, reader: Any, data: Any, records: Any, *_: Any) -> Any:
        parameters = (await _copied(reader, data, records))[-1]
        return typed.decode((await self._ask("copy in", copy_stmt, parameters)).get("status"))

    def set_connection(self, _connection: Any) -> None: ...

    def get_server_pid(self) -> int:
        return self.backend_pid

    def get_settings(self) -> Any:
        return self._settings

    def get_record_class(self) -> Any:
        return self._record_class

    def is_in_transaction(self) -> bool:
        return self._in_transaction

    def is_connected(self) -> bool:
        return self._open

    def is_closed(self) -> bool:
        return not self._open

    def abort(self) -> None:
        self._open = False

    async def close(self, _timeout: Any = None) -> None:
        self._open = False

    def _get_timeout(self, timeout: Any) -> Any:
        return timeout if isinstance(timeout, int | float) else None

    def _is_cancelling(self) -> bool:
        return False

    async def _wait_for_cancellation(self, timeout: Any = None) -> Any:  # noqa: ASYNC109 - as above
        return timeout

    def is_closing(self) -> bool:
        return not self._open

    def get_extra_info(self, _name: str, default: Any = None) -> Any:
        return default


def _fetch_reply(answer: Mapping[str, Json], with_extra: Any) -> Any:
    records = _records(answer)
    return (records, typed.decode(answer.get("status")), answer.get("done") is True) if with_extra else records


def _install(patches: PatchSet) -> None:
    def cut(_module: Any) -> None:
        from asyncpg import connect_utils, connection, prepared_stmt
        from asyncpg.protocol import protocol

        kind = protocol.Protocol
        cuts: dict[str, Callable[[Any], Any]] = {
            "query": _asks(_of_query, _status),
            "bind_execute": _asks(_of_execution, _extra),
            "bind": _asks(_of_binding, _nothing),
            "execute": _asks(_of_fetch, _extra),
            "bind_execute_many": _many,
            "prepare": _prepared,
            "copy_out": _copied_out,
            "copy_in": _copied_in,
            "close": _ended,
            "abort": _ended,
            "connection_lost": _lost,
        }
        for name, make in cuts.items():
            patches.replace(kind, name, make)
        for name in ("get_attributes", "get_parameters"):
            patches.replace(prepared_stmt.PreparedStatement, name, _of_statement)
        patches.replace(connection.Connection, "_introspect_types", _introspected)
        patches.replace(connection.Connection, "add_listener", _listened)
        patches.replace(connect_utils, "_connect_addr", _connected)

    def cut_pool(module: Any) -> None:
        patches.replace(module.Pool, "_acquire", pauses.in_turns)

    patches.when_imported("asyncpg", cut)
    patches.when_imported("asyncpg.pool", cut_pool)


INTEGRATION = Integration(
    name="asyncpg_connections", libraries=("asyncpg",), install=_install, hooks=("asyncpg", "asyncpg.pool")
)
