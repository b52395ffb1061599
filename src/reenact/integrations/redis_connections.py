"""redis-py, sync and asyncio: cut at a connection, where commands are sent and replies are read.

A command is told when its reply is read; pipelines, transactions and scripts are commands like any other. What a
connection does to be made (HELLO, AUTH, SELECT) belongs to the call of it, so that no password is written down. In a
replay a connection writes to nowhere and reads what was recorded. Messages of a subscription come unasked: nobody
records them, and the verdict says so.
"""

from __future__ import annotations

import os
import re
import sys
from collections import deque
from collections.abc import Iterable, Mapping
from functools import wraps
from typing import Any, Final, cast

from reenact.boundary import databases, door
from reenact.boundary.forgiving import forgive
from reenact.boundary.touches import NATIVE
from reenact.contracts.integration import Integration, PatchSet
from reenact.values import typed
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.query import CONNECT, PING, Query

_SYSTEM: Final = "redis"
_TAG: Final = "$redis"
_SENT, _SEEN = "_reenact_sent", "_reenact_seen"
_ADDRESS: Final = re.compile(r'("reply_to": ?")[0-9a-f-]{36}(?=")')
"""Where Celery would have its answer sent: a digest of process, thread and memory address."""
_SECRET: Final = frozenset({"AUTH", "HELLO", "ACL", "MIGRATE"})
"""Commands whose arguments hold passwords."""
_TWO_WORDS: Final = frozenset({"CLIENT", "CLUSTER", "CONFIG", "SCRIPT", "FUNCTION", "XINFO", "XGROUP", "OBJECT"})


# values


def spelled(value: Any, *, as_bytes: bool) -> Json:
    """Spell a reply. A plain text stands for bytes where `as_bytes`, else for a text."""
    kind = cast("Any", type)(value)
    if value is None or kind is int or kind is bool:
        return typed.encode(value)
    if kind is bytes or kind is str:
        return _text(value, plain=(kind is bytes) == as_bytes)
    if kind is list:
        return [spelled(each, as_bytes=as_bytes) for each in value]
    if kind is dict:
        pairs: list[Json] = [[spelled(each, as_bytes=as_bytes) for each in pair] for pair in value.items()]
        return {_TAG: "map", "of": pairs}
    if kind is set or kind is tuple:
        return {_TAG: kind.__name__, "of": [spelled(each, as_bytes=as_bytes) for each in value]}
    if isinstance(value, Exception):
        return {_TAG: "error", "name": kind.__name__, "of": str(value)}
    return typed.encode(value)


def _text(value: Any, *, plain: bool) -> Json:
    if isinstance(value, bytes):
        try:
            text = value.decode()
        except UnicodeDecodeError:
            return typed.encode(value)
        return text if plain else {_TAG: "bytes", "of": text}
    return typed.encode(value) if plain else {_TAG: "text", "of": typed.encode(value)}


def unspelled(value: Json, *, as_bytes: bool) -> Any:
    """Make the reply again."""
    if isinstance(value, str):
        return value.encode() if as_bytes else value
    if isinstance(value, list):
        return [unspelled(each, as_bytes=as_bytes) for each in value]
    if not isinstance(value, dict) or _TAG not in value:
        return typed.decode(value)
    of = value.get("of")
    match value[_TAG]:
        case "bytes" | "text" as name:
            return as_text(of).encode() if name == "bytes" else typed.decode(of)
        case "map":
            return {
                unspelled(key, as_bytes=as_bytes): unspelled(each, as_bytes=as_bytes)
                for key, each in map(as_list, as_list(of))
            }
        case "set" | "tuple" as name:
            items = [unspelled(each, as_bytes=as_bytes) for each in as_list(of)]
            return {*items} if name == "set" else tuple(items)
        case _:
            from redis import exceptions

            kind = getattr(exceptions, as_text(value.get("name")), exceptions.ResponseError)
            return kind(as_text(of))


def _reply(value: Any) -> Json:
    listed = cast("list[Any]", value) if isinstance(value, list) else [value]
    as_bytes = not any(type(each) is str for each in listed)
    return {"value": spelled(value, as_bytes=as_bytes), "bytes": as_bytes}


def _replied(answer: Json) -> Any:
    about = as_object(answer)
    return unspelled(about.get("value"), as_bytes=about.get("bytes") is not False)


def _argument(value: Any) -> Json:
    if isinstance(value, bytes | bytearray | memoryview):
        text = _text(bytes(cast("bytes", value)), plain=True)
        return _settled(text) if isinstance(text, str) else text
    return typed.encode(_settled(value) if isinstance(value, str) else value)


def _settled(text: str) -> str:
    """Leave the process out of what Celery says of who sent a job: it is another one each time."""
    own = f"gen{os.getpid()}@" if "gen" in text else ""
    if not own or own not in text:
        return text
    return _ADDRESS.sub(r"\1{process}", text.replace(own, "gen{process}@"))


# questions


def _where(connection: Any) -> tuple[str, str]:
    attributes = databases.client_attributes(connection)
    path = attributes.get("path")
    server = str(path) if path else databases.server_of(getattr(connection, "host", ""), getattr(connection, "port", 0))
    return server, str(getattr(connection, "db", 0) or 0)


def _query(connection: Any, args: Iterable[Any]) -> Query:
    words = [*args]
    if words and isinstance(words[0], str | bytes):  # a name may hold the first word of a subcommand
        first = words[0].decode("latin-1") if isinstance(words[0], bytes) else words[0]
        words[:1] = first.split(" ") if " " in first else [first]
    name = str(words[0]).upper() if words else ""
    behind = words[1:]
    if name in _TWO_WORDS and behind:
        name = f"{name} {_argument(behind[0])}".upper()
        behind = behind[1:]
    parameters: list[Json] = [_argument(each) for each in behind] if name.split(" ")[0] not in _SECRET else []
    server, namespace = _where(connection)
    return Query(
        system=_SYSTEM,
        operation=PING if name == "PING" else "command",
        text=name,
        parameters=parameters or None,
        server=server,
        namespace=namespace,
    )


def _pending(connection: Any) -> deque[tuple[Any, ...]]:
    waiting: deque[tuple[Any, ...]] = databases.client_attributes(connection).setdefault(_SENT, deque())
    return waiting


def _is_stand_in(connection: Any) -> bool:
    return isinstance(
        databases.client_attributes(connection).get("_sock") or getattr(connection, "_writer", None), _Nowhere
    )


class _Nowhere:
    """Stands where a socket would, or a stream's ends: takes everything, gives nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._nothing

    def _nothing(self, *_: Any, **__: Any) -> None: ...

    async def drain(self) -> None: ...

    async def wait_closed(self) -> None: ...

    def at_eof(self) -> bool:
        return False

    def is_closing(self) -> bool:
        return False

    def get_extra_info(self, _name: str, default: Any = None) -> Any:
        return default


# sending


def _send_command(original: Any) -> Any:
    @wraps(original)
    def send_command(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_watched(self):
            if door.is_strict():
                _ready(self)
            else:
                was_open = _is_open(self)
                try:
                    original(self, *args, **kwargs)
                except Exception as error:
                    _unsent(self, args, error, was_open=was_open)
                    raise
            _pending(self).append(args)
            return None
        return original(self, *args, **kwargs)

    return send_command


def _sent_async(original: Any) -> Any:
    @wraps(original)
    async def send_command(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_watched(self):
            if door.is_strict():
                await _ready_async(self)
            else:
                was_open = _is_open(self)
                try:
                    await original(self, *args, **kwargs)
                except Exception as error:
                    _unsent(self, args, error, was_open=was_open)
                    raise
            _pending(self).append(args)
            return None
        return await original(self, *args, **kwargs)

    return send_command


def _unsent(connection: Any, args: tuple[Any, ...], error: Exception, *, was_open: bool) -> None:
    """Tell a command that could not be sent, since the server had hung up; failing to connect is told by itself."""
    if not was_open:
        return
    try:
        passage = databases.opened(_query(connection, args), made=_greeting(connection))
    except Exception:
        forgive("redis.unsent")
        return
    if passage is not None:
        databases.failed(passage, error)


def _is_watched(connection: Any) -> bool:
    """Tell whether a command is to be told: it is no part of a connection's being made."""
    return door.is_kept() and databases.client_attributes(connection).get(_SEEN) != "making"


def _ready(connection: Any) -> None:
    if not _is_stand_in(connection):
        connection.connect()


async def _ready_async(connection: Any) -> None:
    if not _is_stand_in(connection):
        await connection.connect()


def _packed(original: Any) -> Any:
    @wraps(original)
    def pack_commands(self: Any, commands: Any) -> Any:
        if not _is_watched(self):
            return original(self, commands)
        listed = [*commands]
        result = original(self, listed)
        _pending(self).extend(tuple(each) for each in listed)
        return result

    return pack_commands


def _packed_sent(original: Any) -> Any:
    @wraps(original)
    def send_packed_command(self: Any, command: Any, *args: Any, **kwargs: Any) -> Any:
        if door.is_strict() and _is_watched(self):
            return _ready(self)
        return original(self, command, *args, **kwargs)

    return send_packed_command


def _packed_sent_async(original: Any) -> Any:
    @wraps(original)
    async def send_packed_command(self: Any, command: Any, *args: Any, **kwargs: Any) -> Any:
        if door.is_strict() and _is_watched(self):
            return await _ready_async(self)
        return await original(self, command, *args, **kwargs)

    return send_packed_command


# reading


def _next(connection: Any) -> Query | None:
    """Give what the next reply answers; None where none was asked for, or nobody listens."""
    waiting = _pending(connection)
    if not waiting:
        sys.audit(NATIVE, "redis (messages of a subscription)", _where(connection)[0], False)
        return None
    try:
        return _query(connection, waiting.popleft())
    except Exception:  # our failure is never the agent's
        forgive("redis.query")
        return None


def _read(original: Any) -> Any:
    @wraps(original)
    def read_response(self: Any, *args: Any, **kwargs: Any) -> Any:
        query = _next(self) if _is_watched(self) else None
        if query is None:
            return original(self, *args, **kwargs)
        if _is_stand_in(self):
            return _raised(_replied(databases.ask_stand_in(query)))
        return databases.witness(query, lambda: original(self, *args, **kwargs), _reply, made=_greeting(self))

    return read_response


def _read_async(original: Any) -> Any:
    @wraps(original)
    async def read_response(self: Any, *args: Any, **kwargs: Any) -> Any:
        query = _next(self) if _is_watched(self) else None
        if query is None:
            return await original(self, *args, **kwargs)
        if _is_stand_in(self):
            return _raised(_replied(await databases.asked_async(query)))
        return await databases.witnessed(query, lambda: original(self, *args, **kwargs), _reply, made=_greeting(self))

    return read_response


def _greeting(connection: Any) -> databases.MadeConnection:
    handshake: Any = databases.client_attributes(connection).get(_SEEN)
    return handshake if isinstance(handshake, databases.MadeConnection) else databases.NOT_SEEN


def _raised(reply: Any) -> Any:
    if isinstance(reply, Exception):
        raise reply
    return reply


def _can_read(original: Any) -> Any:
    @wraps(original)
    def can_read(self: Any, *args: Any, **kwargs: Any) -> Any:
        return False if _is_stand_in(self) else original(self, *args, **kwargs)

    return can_read


def _can_read_async(original: Any) -> Any:
    @wraps(original)
    async def can_read(self: Any, *args: Any, **kwargs: Any) -> Any:
        return False if _is_stand_in(self) else await original(self, *args, **kwargs)

    return can_read


# connecting


def _is_open(connection: Any) -> bool:
    return bool(databases.client_attributes(connection).get("_sock") or getattr(connection, "_writer", None))


def _making(connection: Any) -> Query | None:
    if not door.is_kept() or _is_open(connection) or databases.client_attributes(connection).get(_SEEN) == "making":
        return None
    server, namespace = _where(connection)
    return Query(system=_SYSTEM, operation=CONNECT, server=server, namespace=namespace)


def _about(_: Any) -> Json:
    return {"connected": True}


def _connect(original: Any) -> Any:
    @wraps(original)
    def connect(self: Any, *args: Any, **kwargs: Any) -> Any:
        query = _making(self)
        if query is None:
            return original(self, *args, **kwargs)
        if door.is_strict():
            passage = databases.opened(query)
            if passage is None or passage.answer is None:
                return original(self, *args, **kwargs)
            databases.answer(passage)
            self._sock = _Nowhere()
            for callback in _callbacks(self):
                callback(self)
            return None
        before = databases.client_attributes(self).get(_SEEN)
        databases.client_attributes(self)[_SEEN] = "making"
        try:
            result = databases.witness(query, lambda: original(self, *args, **kwargs), _about)
            before = databases.MadeConnection(query, _about(None))
            return result
        finally:
            databases.client_attributes(self)[_SEEN] = before

    return connect


def _connect_async(original: Any) -> Any:
    @wraps(original)
    async def connect(self: Any, *args: Any, **kwargs: Any) -> Any:
        query = _making(self)
        if query is None:
            return await original(self, *args, **kwargs)
        if door.is_strict():
            passage = databases.opened(query)
            if passage is None or passage.answer is None:
                return await original(self, *args, **kwargs)
            await databases.answer_async(passage)
            self._reader = self._writer = _Nowhere()
            for callback in _callbacks(self):
                awaitable = callback(self)
                if hasattr(awaitable, "__await__"):
                    await awaitable
            return None
        before = databases.client_attributes(self).get(_SEEN)
        databases.client_attributes(self)[_SEEN] = "making"
        try:
            result = await databases.witnessed(query, lambda: original(self, *args, **kwargs), _about)
            before = databases.MadeConnection(query, _about(None))
            return result
        finally:
            databases.client_attributes(self)[_SEEN] = before

    return connect


def _callbacks(connection: Any) -> list[Any]:
    """Give what a subscription has done when a connection is made anew."""
    references: Any = getattr(connection, "_connect_callbacks", ())
    return [callback for each in references if (callback := each()) is not None]


def _disconnect(original: Any) -> Any:
    @wraps(original)
    def disconnect(self: Any, *args: Any, **kwargs: Any) -> Any:
        _pending(self).clear()
        return original(self, *args, **kwargs)

    return disconnect


def _cut(patches: PatchSet, kind: Any, cuts: Mapping[str, Any]) -> None:
    for name, make in cuts.items():
        if name in vars(kind):
            patches.replace(kind, name, make)


def _install(patches: PatchSet) -> None:
    def cut(module: Any) -> None:
        kind = module.AbstractConnection
        connect = "connect_check_health" if hasattr(kind, "connect_check_health") else "connect"
        cuts = {"pack_commands": _packed, "disconnect": _disconnect}
        if module.__name__ == "redis.connection":
            cuts |= {connect: _connect, "send_command": _send_command, "send_packed_command": _packed_sent}
            cuts |= {"read_response": _read, "can_read": _can_read}
        else:
            cuts |= {connect: _connect_async, "send_command": _sent_async, "send_packed_command": _packed_sent_async}
            cuts |= {"read_response": _read_async, "can_read": _can_read_async, "can_read_destructive": _can_read_async}
        _cut(patches, kind, cuts)

    for name in ("redis.connection", "redis.asyncio.connection"):
        patches.when_imported(name, cut)


INTEGRATION = Integration(
    name="redis_connections",
    libraries=("redis",),
    install=_install,
    hooks=("redis.connection", "redis.asyncio.connection"),
)
