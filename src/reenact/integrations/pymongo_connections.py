"""pymongo, blocking and asynchronous (and so what stands on it): commands, and the documents that came back.

Theory of operation. All that pymongo asks goes through `send_message` and `receive_message` of its connections, the
greeting of a server and the monitors' included. A question is the command in the message, less what pymongo puts in
for itself (sessions, cluster times); an answer is the document that came back. In a replay a connection stands over no
socket: it greets as the recorded server did and answers from the recording, and pymongo's own code makes documents,
cursors and errors of that. Monitors ask for no news then. Ids that pymongo draws for documents are taped.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from math import isfinite
from sys import _getframe  # pyright: ignore[reportPrivateUsage] - what the running code is called costs least so
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakKeyDictionary

from reenact.boundary import databases, door, tape
from reenact.boundary.forgiving import forgive
from reenact.boundary.tape import Sites, Source
from reenact.boundary.touches import NATIVE
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.json import Json
from reenact.values.lenient import as_object, as_text
from reenact.values.query import CONNECT, PING, Query

if TYPE_CHECKING:
    from reenact.contracts.doorman import Passage

_SYSTEM: Final = "mongodb"
_TAG: Final = "$bson"
_GREETS: Final = "_reenact_greets"
"""The attribute of a socket whose server has not greeted yet: the passage of its making."""
_OP_MSG: Final = 2013
_MORE_TO_COME: Final = 2
_GREETINGS: Final = frozenset({"hello", "ismaster", "isMaster"})
_OF_A_CONNECTION: Final = frozenset(
    (*_GREETINGS, "endSessions", "killCursors", "saslStart", "saslContinue", "authenticate", "logout")
)
"""Commands that pymongo sends by itself, or when it likes, and that tell nobody anything."""
_OWN_FIELDS: Final = frozenset({"lsid", "$clusterTime", "txnNumber", "$db"})
_OWN_NEWS: Final = frozenset(
    ("topologyVersion", "speculativeAuthenticate", "saslSupportedMechs", "$clusterTime", "operationTime", "localTime")
)
_ids: Final = Sites(
    Source(name="bson.ObjectId", spell=lambda value: bytes(value).hex(), read=lambda value: bytes.fromhex(str(value))),
    libraries=True,
)


class _Talk:
    """What is known of a connection: how it was made, what it was told, and whether it stands for one."""

    __slots__ = ("about", "command", "made", "standing")

    def __init__(self, about: Json = None, *, standing: bool = False) -> None:
        self.about, self.standing = about, standing
        self.made = databases.NOT_SEEN
        self.command: dict[str, Any] | None = None


_talks: Final[WeakKeyDictionary[Any, _Talk]] = WeakKeyDictionary()


def _talk(connection: Any) -> _Talk:
    talk = _talks.get(connection)
    if talk is None:
        nowhere = connection.conn if isinstance(connection.conn, _Nowhere) else None
        talk = _talks[connection] = _Talk(nowhere.about if nowhere else None, standing=nowhere is not None)
        if nowhere is not None:
            talk.made = nowhere.made
    return talk


# documents


def _spelled(value: Any) -> Json:
    kind: type = type(cast("object", value))
    if value is None or kind in {str, int, float, bool}:
        return value if kind is not float or isfinite(cast("float", value)) else _further(value)
    if isinstance(value, Mapping):
        return {str(name): _spelled(each) for name, each in cast("Mapping[Any, Any]", value).items()}
    if kind is list:
        return [_spelled(each) for each in value]
    from bson import Int64, ObjectId

    if kind is ObjectId:
        return {_TAG: "id", "of": str(value)}
    return {_TAG: "long", "of": int(value)} if kind is Int64 else _further(value)


def _further(value: Any) -> Json:
    from bson import json_util

    return {_TAG: "further", "of": json_util.dumps({"of": value}, json_options=json_util.CANONICAL_JSON_OPTIONS)}


def _unspelled(value: Json) -> Any:
    if isinstance(value, list):
        return [_unspelled(each) for each in value]
    if not isinstance(value, dict):
        return value
    if _TAG not in value:
        return {name: _unspelled(each) for name, each in value.items()}
    from bson import Int64, ObjectId, json_util

    match value[_TAG]:
        case "id":
            return ObjectId(as_text(value.get("of")))
        case "long":
            return Int64(cast("int", value.get("of")))
        case _:
            return json_util.loads(as_text(value.get("of")), json_options=json_util.CANONICAL_JSON_OPTIONS)["of"]


def _decoded(data: bytes | memoryview) -> dict[str, Any]:
    import bson
    from bson.binary import UuidRepresentation
    from bson.codec_options import CodecOptions, DatetimeConversion

    options = cast("Any", CodecOptions)(
        tz_aware=True,
        uuid_representation=UuidRepresentation.UNSPECIFIED,
        datetime_conversion=DatetimeConversion.DATETIME_AUTO,
    )
    return dict(bson.decode(bytes(data), codec_options=options))


def _read(message: bytes) -> tuple[dict[str, Any], int]:
    """Read a message: its command with all documents in it, and its flags. Raises `ValueError` where it is none."""
    if struct.unpack_from("<i", message, 12)[0] != _OP_MSG:
        raise ValueError("it is compressed, or of another kind")
    (flags,) = struct.unpack_from("<I", message, 16)
    at, end = 20, len(message) - (4 if flags & 1 else 0)
    command: dict[str, Any] = {}
    while at < end:
        kind, (size,) = message[at], struct.unpack_from("<i", message, at + 1)
        section = message[at + 1 : at + 1 + size]
        if kind == 0:
            command = {**_decoded(section), **command}
        else:
            name, _, documents = section[4:].partition(b"\0")
            command[name.decode()] = [_decoded(each) for each in _each(documents)]
        at += 1 + size
    return command, flags


def _each(documents: bytes) -> list[bytes]:
    pieces: list[bytes] = []
    while documents:
        (size,) = struct.unpack_from("<i", documents)
        pieces.append(documents[:size])
        documents = documents[size:]
    return pieces


def _message(document: Mapping[str, Any]) -> Any:
    """Make what `receive_message` gives of a document."""
    import bson
    from pymongo.message import _OpMsg  # pyright: ignore[reportPrivateUsage] - the only class of messages

    return cast("Any", _OpMsg)(0, bson.encode(document))


# questions


def _server(connection: Any) -> str:
    host, port = (*connection.address, None)[:2]
    return databases.server_of(host, port)


def _query(connection: Any, command: Mapping[str, Any]) -> Query:
    name, first = next(iter(command.items()))
    target = first if isinstance(first, str) else command.get("collection")
    fields = {each: value for each, value in command.items() if each not in _OWN_FIELDS and each != name}
    asked = as_object(_spelled(fields))
    if not isinstance(first, str) and first not in (1, 1.0, True):
        asked["of"] = _spelled(first)
    return Query(
        system=_SYSTEM,
        operation=PING if name == "ping" else "command",
        text=f"{name} {target}" if isinstance(target, str) else name,
        parameters=asked or None,
        server=_server(connection),
        namespace=str(command.get("$db") or ""),
        target=target if isinstance(target, str) else "",
    )


def _greeting(server: str) -> Query:
    return Query(system=_SYSTEM, operation=CONNECT, server=server)


def _told_by(reply: Any) -> Json:
    document = _decoded(reply.raw_command_response())
    return _spelled({name: each for name, each in document.items() if name not in {"$clusterTime", "operationTime"}})


def _note_message(connection: Any, message: bytes) -> tuple[_Talk, int]:
    """Hear of a message that is sent; of one that cannot be read only that it is."""
    talk = _talk(connection)
    talk.command = None
    try:
        talk.command, flags = _read(message)
        return talk, flags
    except Exception:
        forgive("pymongo.read")
        sys.audit(NATIVE, "pymongo (a message that is compressed)", _server(connection), False)
        return talk, 0


def _name(talk: _Talk) -> str:
    return next(iter(talk.command), "") if talk.command else ""


def _asked_in_vain(talk: _Talk, connection: Any) -> Query | None:
    """Give the question that a message just sent asks where no reply comes; it is told at once."""
    if talk.command is None or _name(talk) in _OF_A_CONNECTION:
        return None
    return _query(connection, talk.command)


def _question(connection: Any, request_id: Any) -> tuple[_Talk, Query | None]:
    """Give what the next reply answers; None where it is told by itself, or nobody asked."""
    talk = _talk(connection)
    if request_id is None:
        sys.audit(NATIVE, "pymongo (replies that come unasked)", _server(connection), False)
        return talk, None
    if talk.command is None or _name(talk) in _OF_A_CONNECTION:
        return talk, None
    try:
        return talk, _query(connection, talk.command)
    except Exception:
        forgive("pymongo.query")
        return talk, None


def _greeted(connection: Any, talk: _Talk, reply: Any) -> None:
    """Tell how a server greeted, once for each connection."""
    passage = databases.client_attributes(connection.conn).pop(_GREETS, None)
    if passage is None or _name(talk) not in _GREETINGS:
        return
    about: Json = None
    try:
        document = _decoded(reply.raw_command_response())
        about = _spelled({name: each for name, each in document.items() if name not in _OWN_NEWS})
        talk.made = databases.MadeConnection(_greeting(_server(connection)), about)
    except Exception:
        forgive("pymongo.greeted")
    databases.describe_answer(passage, about)


def _unheard(connection: Any, error: BaseException) -> None:
    """Tell that a server did not greet."""
    passage = databases.client_attributes(connection.conn).pop(_GREETS, None)
    if passage is not None:
        databases.failed(passage, error)


def _own_answer(talk: _Talk) -> dict[str, Any]:
    return {**_unspelled(talk.about), "ok": 1.0} if _name(talk) in _GREETINGS else {"ok": 1.0}


def _send(original: Any) -> Any:
    @wraps(original)
    def send_message(self: Any, message: bytes, *args: Any, **kwargs: Any) -> Any:
        if not door.is_kept() and not _talk(self).standing:
            return original(self, message, *args, **kwargs)
        talk, flags = _note_message(self, message)
        query = _asked_in_vain(talk, self) if flags & _MORE_TO_COME else None
        if talk.standing:
            return None if query is None else databases.ask_stand_in(query) and None
        if query is None:
            return original(self, message, *args, **kwargs)
        run = lambda: original(self, message, *args, **kwargs)  # noqa: E731 - it is used once, here
        return databases.witness(query, run, lambda _: {"sent": True}, made=talk.made)

    return send_message


def _send_async(original: Any) -> Any:
    @wraps(original)
    async def send_message(self: Any, message: bytes, *args: Any, **kwargs: Any) -> Any:
        if not door.is_kept() and not _talk(self).standing:
            return await original(self, message, *args, **kwargs)
        talk, flags = _note_message(self, message)
        query = _asked_in_vain(talk, self) if flags & _MORE_TO_COME else None
        if talk.standing:
            return None if query is None else await databases.asked_async(query) and None
        if query is None:
            return await original(self, message, *args, **kwargs)
        run = lambda: original(self, message, *args, **kwargs)  # noqa: E731 - it is used once, here
        return await databases.witnessed(query, run, lambda _: {"sent": True}, made=talk.made)

    return send_message


def _receive(original: Any) -> Any:
    @wraps(original)
    def receive_message(self: Any, request_id: Any) -> Any:
        if not door.is_kept() and not _talk(self).standing:
            return original(self, request_id)
        talk, query = _question(self, request_id)
        if talk.standing:
            return _message(_own_answer(talk) if query is None else _unspelled(databases.ask_stand_in(query)))
        if query is not None:
            return databases.witness(query, lambda: original(self, request_id), _told_by, made=talk.made)
        try:
            reply = original(self, request_id)
        except BaseException as error:
            _unheard(self, error)
            raise
        _greeted(self, talk, reply)
        return reply

    return receive_message


def _receive_async(original: Any) -> Any:
    @wraps(original)
    async def receive_message(self: Any, request_id: Any) -> Any:
        if not door.is_kept() and not _talk(self).standing:
            return await original(self, request_id)
        talk, query = _question(self, request_id)
        if talk.standing:
            return _message(_own_answer(talk) if query is None else _unspelled(await databases.asked_async(query)))
        if query is not None:
            return await databases.witnessed(query, lambda: original(self, request_id), _told_by, made=talk.made)
        try:
            reply = await original(self, request_id)
        except BaseException as error:
            _unheard(self, error)
            raise
        _greeted(self, talk, reply)
        return reply

    return receive_message


def _authenticate(original: Any) -> Any:
    @wraps(original)
    def authenticate(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not _talk(self).standing:
            return original(self, *args, **kwargs)
        self.ready = True
        return None

    return authenticate


def _authenticate_async(original: Any) -> Any:
    @wraps(original)
    async def authenticate(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not _talk(self).standing:
            return await original(self, *args, **kwargs)
        self.ready = True
        return None

    return authenticate


# connecting


class _Nowhere:
    """Stands where a socket would."""

    def __init__(self, about: Json, handshake: databases.MadeConnection) -> None:
        self.about, self.made = about, handshake

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._nothing

    def _nothing(self, *_: Any, **__: Any) -> None: ...

    @property
    def get_conn(self) -> _Nowhere:
        return self

    @property
    def sock(self) -> _Nowhere:
        return self

    def is_closing(self) -> bool:
        return False

    def fileno(self) -> int:
        return -1


class _NowhereAsync(_Nowhere):
    """Does the same where a loop runs."""

    async def close(self) -> None: ...


def _stand_in(address: Any, kind: type[_Nowhere], about: Json) -> _Nowhere:
    query = _greeting(_address(address))
    return kind(about, databases.MadeConnection(query, about))


def _address(address: Any) -> str:
    return databases.server_of(*(*address, None)[:2])


def _opened(address: Any) -> Passage | None:
    """Let the making of a connection in. It is told when the server has greeted."""
    return databases.opened(_greeting(_address(address))) if door.is_kept() else None


def _connect(original: Any) -> Any:
    @wraps(original)
    def configured(address: Any, *args: Any, **kwargs: Any) -> Any:
        if door.is_kept() and door.is_strict():
            return _stand_in(address, _Nowhere, databases.ask_stand_in(_greeting(_address(address))))
        passage = _opened(address)
        if passage is None:
            return original(address, *args, **kwargs)
        try:
            with passage.crossing():
                connection = original(address, *args, **kwargs)
        except BaseException as error:
            databases.failed(passage, error)
            raise
        databases.client_attributes(connection)[_GREETS] = passage
        return connection

    return configured


def _connect_async(original: Any) -> Any:
    @wraps(original)
    async def configured(address: Any, *args: Any, **kwargs: Any) -> Any:
        if door.is_kept() and door.is_strict():
            return _stand_in(address, _NowhereAsync, await databases.asked_async(_greeting(_address(address))))
        passage = _opened(address)
        if passage is None:
            return await original(address, *args, **kwargs)
        try:
            with passage.crossing():
                connection = await original(address, *args, **kwargs)
        except BaseException as error:
            databases.failed(passage, error)
            raise
        databases.client_attributes(connection)[_GREETS] = passage
        return connection

    return configured


def _identified(original: Callable[..., None]) -> Callable[..., None]:
    """Wrap what makes an id: pymongo gives one to each document that has none, before it sends it."""

    @wraps(original)
    def __init__(self: Any, oid: Any = None) -> None:  # noqa: N807 - it is named as what it wraps
        original(self, oid)
        site = _ids.of(_getframe().f_back) if oid is None and tape.is_on() else None
        if site is not None:
            self._ObjectId__id = tape.draw(site, lambda: self.binary)

    return __init__


def _install(patches: PatchSet) -> None:
    def cut(module: Any) -> None:
        blocking = module.__name__ == "pymongo.synchronous.pool"
        kind = module.Connection if blocking else module.AsyncConnection
        cuts = (_send, _receive, _authenticate) if blocking else (_send_async, _receive_async, _authenticate_async)
        for name, make in zip(("send_message", "receive_message", "authenticate"), cuts, strict=True):
            patches.replace(kind, name, make)
        if blocking:
            patches.replace(module, "_configured_socket_interface", _connect)
        else:
            patches.replace(module, "_configured_protocol_interface", _connect_async)

    def cut_ids(module: Any) -> None:
        patches.replace(module.ObjectId, "__init__", _identified)

    for name in ("pymongo.synchronous.pool", "pymongo.asynchronous.pool"):
        patches.when_imported(name, cut)
    patches.when_imported("bson.objectid", cut_ids)


INTEGRATION = Integration(
    name="pymongo_connections",
    libraries=("pymongo",),
    install=_install,
    hooks=("pymongo.synchronous.pool", "pymongo.asynchronous.pool", "bson.objectid"),
)
