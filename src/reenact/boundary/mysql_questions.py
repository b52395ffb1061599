"""What pymysql and aiomysql ask: the command that a connection sends, with the statement as the program gave it.

Both clients put parameters into the statement themselves. So that a question has the text and the parameters apart,
the cursor leaves them on its connection, and they count where the statement that is sent was made of just them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from reenact.boundary import databases, door
from reenact.boundary.forgiving import forgive
from reenact.boundary.touches import NATIVE
from reenact.contracts.integration import PatchSet
from reenact.values import typed
from reenact.values.json import Json
from reenact.values.query import CONNECT, PING, Query

_SYSTEM: Final = "mysql"
_TAG: Final = "$mysql"
_SEEN, _SENT, _ASKED, _TEXT = "_reenact_seen", "_reenact_sent", "_reenact_asked", "_reenact_text"
_STATEMENT, _ROWS = "_reenact_statement", "_reenact_rows"
_MAKING: Final = "making"
_SELECT_DATABASE, _QUERY, _KILL, _PING = 2, 3, 12, 14
"""Commands of the protocol."""
_PLAIN: Final = (str, int, float, bool, bytes, list, tuple, dict)
_SPELLED: Final = frozenset({"datetime", "decimal", "uuid"})
_LOCAL_FILE: Final = re.compile(rb"\s*load\s+data\b.{0,80}?\blocal\b", re.IGNORECASE | re.DOTALL)


def cut(patches: PatchSet, kind: Any, cuts: Mapping[str, Callable[[Any], Any]]) -> None:
    """Cut the methods of a class, of which a version of the library may lack some."""
    for name, make in cuts.items():
        if name in cast("dict[str, Any]", vars(kind)):
            patches.replace(kind, name, make)


# connections


class Nowhere:
    """Stands where a socket and its file would, or a stream's ends: takes everything, gives nothing."""

    eof_received = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._nothing

    @property
    def transport(self) -> Nowhere:
        """Give what closes a stream."""
        return self

    def _nothing(self, *_: Any, **__: Any) -> None: ...

    async def drain(self) -> None:
        """Have nothing to wait for."""

    def read(self, _size: int) -> bytes:
        """Give nothing: what a stand-in is asked is answered above."""
        raise RuntimeError("the replay that answered this connection (mysql) is over")

    readexactly = read

    def at_eof(self) -> bool:
        """Tell that nobody hung up."""
        return False

    def get_extra_info(self, _name: str, default: Any = None) -> Any:
        """Know nothing of a peer."""
        return default


def is_stand_in(connection: Any) -> bool:
    """Tell whether a connection is answered from a recording."""
    attributes = databases.client_attributes(connection)
    return isinstance(attributes.get("_sock"), Nowhere) or isinstance(attributes.get("_writer"), Nowhere)


def is_watched(connection: Any) -> bool:
    """Tell whether what a connection is asked is told: it is no part of its being made."""
    if not door.is_kept():
        return is_stand_in(connection)
    return databases.client_attributes(connection).get(_SEEN) != _MAKING


def handshake_of(connection: Any) -> databases.MadeConnection:
    """Give how a connection was made."""
    handshake = databases.client_attributes(connection).get(_SEEN)
    return handshake if isinstance(handshake, databases.MadeConnection) else databases.NOT_SEEN


def handshake_for(connection: Any, query: Query) -> databases.MadeConnection | None:
    """Give how the connection was made that a question goes over; None of the one that makes it."""
    return None if query.operation == CONNECT else handshake_of(connection)


def remember(connection: Any, handshake: databases.MadeConnection | None) -> None:
    """Keep how a connection was made."""
    databases.client_attributes(connection)[_SEEN] = handshake


def begin_making(connection: Any) -> None:
    """Keep that a connection is being made."""
    databases.client_attributes(connection)[_SEEN] = _MAKING


def keep_handshake(connection: Any, query: Query, about: Callable[[], Json]) -> None:
    """Keep that it was made, and what is known of its server."""
    try:
        remember(connection, databases.MadeConnection(query, about()))
    except Exception:
        remember(connection, None)
        forgive("mysql.handshake")


def connecting(connection: Any) -> Query | None:
    """Ask for a connection; None where nobody can tell which."""
    try:
        return _connecting(connection)
    except Exception:  # our failure is never the agent's
        forgive("mysql.connecting")
        return None


def _connecting(connection: Any) -> Query:
    """Give the question; what the program has the connection set up with is part of it."""
    server, namespace = _where(connection)
    asked: dict[str, Json] = {
        name: str(value)
        for name in ("init_command", "sql_mode")
        if (value := getattr(connection, name, None)) is not None
    }
    return Query(system=_SYSTEM, operation=CONNECT, server=server, namespace=namespace, parameters=asked or None)


def _where(connection: Any) -> tuple[str, str]:
    path, database = connection.unix_socket, connection.db
    server = str(path) if path else databases.server_of(connection.host, connection.port)
    return server, database.decode("utf-8", "replace") if isinstance(database, bytes) else str(database or "")


# statements


def arguments(parameters: Any, connection: Any) -> Json:
    """Spell what a statement is given; what is no plain value as the text that the client makes of it."""
    if isinstance(parameters, Mapping):
        given = cast("Mapping[Any, Any]", parameters)
        return {str(name): _argument(each, connection) for name, each in given.items()}
    if isinstance(parameters, list | tuple):
        return [_argument(each, connection) for each in cast("Sequence[Any]", parameters)]
    return _argument(parameters, connection)


def _argument(value: Any, connection: Any) -> Json:
    if value is None or type(value) in _PLAIN or type(value).__module__ in _SPELLED:
        return typed.encode(value)
    try:
        return {_TAG: "sql", "of": str(connection.escape(value))}
    except Exception:
        forgive("mysql.argument")
        return typed.encode(value)


@dataclass(slots=True)
class StatementRows:
    """The rows that one statement is made of several of, as the client takes them."""

    before: str
    values: str
    behind: str
    each: Iterator[Any]
    rows: list[Any] = field(default_factory=list[Any])
    is_ended: bool = False

    def __iter__(self) -> StatementRows:
        return self

    def __next__(self) -> Any:
        for row in self.each:
            self.rows.append(row)
            return row
        self.is_ended = True
        raise StopIteration

    def take_sent(self) -> list[Any]:
        """Take those of the statement that is sent now: the last one did not fit, where more come."""
        size = len(self.rows) - (not self.is_ended)
        taken, self.rows = self.rows[:size], self.rows[size:]
        return taken

    def is_of(self, statement: bytes | bytearray, encoding: str) -> bool:
        """Tell whether a statement was made of them."""
        return statement.startswith(_bytes(self.before, encoding)) and statement.endswith(_bytes(self.behind, encoding))


def _bytes(text: str | bytes, encoding: str) -> bytes:
    return text.encode(encoding) if isinstance(text, str) else text


def leave_rows(connection: Any, parts: tuple[str, str, str], rows: Iterable[Any]) -> StatementRows:
    """Leave the rows of a statement on its connection, and give what the client is to take them from."""
    given = databases.client_attributes(connection)[_ROWS] = StatementRows(*parts, iter(rows))
    return given


def forget_rows(connection: Any) -> None:
    """Have no rows any more."""
    databases.client_attributes(connection).pop(_ROWS, None)


def leave(connection: Any, made: Any, statement: Any, parameters: Any) -> None:
    """Leave on its connection what a statement was made of."""
    databases.client_attributes(connection)[_STATEMENT] = made, statement, parameters


def hear(connection: Any, statement: Any) -> None:
    """Hear the statement that a connection is about to send, and of what it was made."""
    attributes = databases.client_attributes(connection)
    made, text, parameters = attributes.pop(_STATEMENT, (None, None, None))
    if isinstance(statement, str):
        if made is not None and isinstance(text, str) and (made is statement or made == statement):
            attributes[_ASKED] = "query", text, arguments(parameters, connection)
        return
    given: StatementRows | None = attributes.get(_ROWS)
    if given is not None and given.is_of(statement, connection.encoding):
        rows: list[Json] = [arguments(each, connection) for each in given.take_sent()]
        attributes[_ASKED] = "executemany", f"{given.before}{given.values}{given.behind}", rows


# commands


def command(connection: Any, code: int, argument: Any) -> Query | None:
    """Give the question that a command is; None where nobody can tell it."""
    try:
        return _command(connection, code, argument)
    except Exception:  # our failure is never the agent's
        forgive("mysql.command")
        return None


def _command(connection: Any, code: int, argument: Any) -> Query:
    attributes = databases.client_attributes(connection)
    asked: tuple[str, str, Json] | None = attributes.pop(_ASKED, None)
    sent = _bytes(argument, connection.encoding)
    text = sent.decode(connection.encoding, "replace")
    match code:
        case _ if code == _QUERY:
            operation, text, parameters = asked or ("query", text, None)
            if _LOCAL_FILE.match(sent):  # what a file holds is no part of the question
                sys.audit(NATIVE, "mysql (LOAD DATA LOCAL)", "", False)
        case _ if code == _PING:
            operation, text, parameters = PING, "", None
        case _ if code == _SELECT_DATABASE:
            operation, text, parameters = "query", f"USE {text}", None
        case _ if code == _KILL:
            operation, text, parameters = "query", f"KILL {int.from_bytes(sent, 'little')}", None
        case _:
            operation, text, parameters = "command", f"COMMAND {code}", typed.encode(bytes(sent))
    if text:
        attributes[_TEXT] = text
    return question(connection, operation, text, parameters)


def question(connection: Any, operation: str, text: str, parameters: Json = None) -> Query:
    """Ask over a connection."""
    made = handshake_of(connection).query
    server, namespace = (made.server, made.namespace) if made.server else _where(connection)
    return Query(
        system=_SYSTEM,
        operation=operation,
        text=text,
        parameters=parameters,
        server=server,
        namespace=namespace,
    )


def wait(connection: Any, query: Query | None) -> None:
    """Leave a question on its connection until the reply is read."""
    databases.client_attributes(connection)[_SENT] = query


def is_waiting(connection: Any) -> bool:
    """Tell whether a reply to a question is to be read."""
    return databases.client_attributes(connection).get(_SENT) is not None


def waiting(connection: Any) -> Query | None:
    """Take the question whose reply is read now; of a further result of a statement one of its own."""
    query: Query | None = databases.client_attributes(connection).pop(_SENT, None)
    return _further(connection, "next") if query is None else query


def fetch(connection: Any, size: int) -> Query | None:
    """Ask for so many rows of the statement that was sent last."""
    return _further(connection, "fetch", [size])


def _further(connection: Any, operation: str, parameters: Json = None) -> Query | None:
    text: str = databases.client_attributes(connection).get(_TEXT, "")
    try:
        return question(connection, operation, text, parameters)
    except Exception:  # our failure is never the agent's
        forgive("mysql.question")
        return None
