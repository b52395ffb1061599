"""Statements that a unit of work asked databases of SQLite's, kept until it is known whether its replay needs them.

Theory of operation. SQLite has no server: it changes a file of the program's. A replay does the same in a copy, where
that file stands as it was when the unit began. Two kinds of units cannot be replayed so: those whose database other
units changed meanwhile, and those whose file was too large to be kept. Both are known at a unit's end only. So the
statements of each unit, with the rows that it read, stay in memory until then. Where the copy will not do they become
calls of its recording (`record.statement_calls`), and a replay answers them; else they are forgotten. What a process
asks outside of every unit, as a script does, is kept likewise, until the process ends.

What a connection is set up with (a setting by `PRAGMA`, `CREATE … IF NOT EXISTS`, what a library asks while it
connects) is done in the copy in either case: which unit finds a connection of a pool made already is chance.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

from reenact.boundary import databases, door, inbound, lanes, place, set_ups, touches
from reenact.boundary.files import path_changes
from reenact.boundary.forgiving import forgive
from reenact.boundary.inbound import Inbound
from reenact.boundary.place import Place
from reenact.boundary.touches import program_path
from reenact.values import alarms, typed
from reenact.values.call import SQLITE
from reenact.values.json import Json, compact
from reenact.values.lenient import as_list, as_object
from reenact.values.query import Query

SCRIPT: Final = "script"
"""The operation of a call that asks several statements at once."""
COMMIT: Final = "COMMIT"
ROLLBACK: Final = "ROLLBACK"
_OF_CONTENT: Final = (
    *("application_id", "auto_vacuum", "data_version", "encoding", "foreign_key_check", "foreign_key_list"),
    *("freelist_count", "index_info", "index_list", "index_xinfo", "integrity_check", "page_count", "page_size"),
    *("quick_check", "schema_version", "table_info", "table_list", "table_xinfo", "user_version"),
)
"""Pragmas that tell of what the file holds, or change it (https://sqlite.org/pragma.html); the others are settings."""
_SETS_UP: Final = re.compile(
    rf"\s*(?:pragma\s+(?!(?:\S+\.)?[\"'`]?(?:{'|'.join(_OF_CONTENT)})\b)"
    r"|create\s+(?:unique\s+)?(?:table|index|view|trigger)\s+if\s+not\s+exists\b)",
    re.IGNORECASE,
)
_READS: Final = re.compile(r"\s*(?:select|pragma|explain|values)\b", re.IGNORECASE)
_CHANGES: Final = re.compile(r"\s*(?:insert|update|delete|replace)\b", re.IGNORECASE)
_LEADS_ELSEWHERE: Final = re.compile(r"\s*(?:attach|detach|vacuum)\b", re.IGNORECASE)
"""How a statement begins by which a connection comes to another file."""
_OTHER_FILE: Final = re.compile(
    r"\b(?:attach(?:\s+database)?|vacuum(?:\s+\w+)?\s+into)\s+(?:'((?:[^']|'')*)'|\"((?:[^\"]|\"\")*)\"|([?:@$]\w*))",
    re.IGNORECASE,
)
"""Where a statement names that file (https://sqlite.org/lang_attach.html): by a text, or by a parameter."""
_MOST: Final = 2 << 20
"""Bytes, about, that are kept of one unit."""
_OF_VALUE: Final = 32
"""Bytes, about, of a value that is no text."""
_PLAIN: Final = frozenset({int, float, str, bytes, bool, type(None)})
_SPELLED: Final = frozenset({"datetime", "decimal", "uuid"})
"""Modules of types that typed JSON spells; what SQLite makes of them is the adapter's affair."""
_now: Final[Callable[[], int]] = time.time_ns  # the real one, before the clock integration stands in front of it


class Connected:
    """What is known of one connection to a database in a file."""

    __slots__ = ("changes", "is_new", "name", "path")

    def __init__(self, path: str) -> None:
        self.path, self.name = path, _name(path)
        self.is_new = True
        """Nothing was asked over it yet but what sets it up."""
        self.changes = 0
        """Rows that answered statements of a replay changed."""


def _name(path: str) -> str:
    """Name a file as it is called from the program's folder; one that lies elsewhere by its own name."""
    folder = f"{program_path(os.getcwd())}{os.sep}"  # noqa: PTH109 - for each connection
    return path[len(folder) :] if path.startswith(folder) else os.path.basename(path)  # noqa: PTH119 - likewise


class Given:
    """What a statement is given: one set of parameters, or several rows of them."""

    __slots__ = ("_adapt", "_are_rows", "_parameters")

    def __init__(
        self, parameters: Any = None, adapt: Callable[[Any], Any] | None = None, *, are_rows: bool = False
    ) -> None:
        self._parameters, self._are_rows, self._adapt = parameters, are_rows, adapt

    def copy(self) -> Any:
        """Copy it: what SQLite stores no otherwise than as another value, as that."""
        if self._are_rows:
            return [self._plain_set(each) for each in self._parameters]
        return self._plain_set(self._parameters)

    def _plain_set(self, parameters: Any) -> Any:
        if parameters is None or isinstance(parameters, str | bytes):
            return parameters
        if isinstance(parameters, Mapping):
            named = cast("Mapping[Any, Any]", parameters)
            return {str(name): self._plain(each) for name, each in named.items()}
        return [self._plain(each) for each in parameters]

    def _plain(self, value: Any) -> Any:
        if type(value) in _PLAIN or type(value).__module__ in _SPELLED:
            return value
        if isinstance(value, bytearray):
            return bytes(value)
        try:
            return value if self._adapt is None else self._adapt(value)
        except Exception:  # SQLite says so itself
            alarms.pass_on()
            return value


class Statement:
    """One statement that was asked, and what came back."""

    __slots__ = (
        *("began_ns", "columns", "connected", "ended_ns", "error", "in_transaction", "is_whole", "lane", "last_row_id"),
        *("numbers", "operation", "owner", "parameters", "parent", "row_count", "rows", "text"),
    )

    def __init__(self, owner: Statements, connected: Connected, operation: str, text: str, parameters: object) -> None:
        self.owner, self.connected, self.operation, self.text = owner, connected, operation, text
        self.parameters = parameters
        self.lane: str = lanes.current().path
        self.parent: Place | None = place.current()
        self.began_ns = self.ended_ns = _now()
        self.numbers = owner.next_order(), 0
        """Where it and its end stand in the sequence of the recorder."""
        self.columns: list[str] | None = None
        self.rows: list[Any] = []
        """The rows that were read, as tuples."""
        self.row_count, self.last_row_id = -1, cast("int | None", None)
        self.is_whole = False
        """Its last row was read."""
        self.in_transaction = False
        self.error: dict[str, Json] = {}
        """Its failure, spelled: the exception itself would keep alive what the program had at hand."""

    def end(self, *, in_transaction: bool, error: Exception | None = None) -> None:
        """Note that it was asked, before any row is read."""
        self.in_transaction, self.error = in_transaction, {} if error is None else _error_json(error)
        self.ended_ns = _now()
        self.numbers = self.numbers[0], self.owner.next_order()
        text = "" if self.operation == SCRIPT else self.text
        self.owner.leave(self.connected, self.lane, text, in_transaction=in_transaction)

    def read(self, row: Any) -> None:
        """Note a row that was read; None behind the last one."""
        if row is None:
            self.is_whole = True
        elif self.owner.keeps(_size(row)):
            self.rows.append(row)

    def spelled(self) -> str:
        """Spell what was asked as one text, in which draws of libraries are looked for."""
        return f"{self.text}\n{compact(typed.encode(self.parameters))}" if self.parameters else self.text

    def query(self) -> Query:
        """Spell what was asked."""
        return question(self.connected.name, self.operation, self.text, self.parameters)

    def answer(self) -> Json:
        """Spell what came back."""
        result: dict[str, Json] = {"rowcount": self.row_count, "lastrowid": self.last_row_id}
        if self.columns is not None:
            rows: list[Json] = [typed.encode([*each]) for each in self.rows]
            result |= {"columns": [*self.columns], "rows": rows, "whole": self.is_whole}
        if self.error:
            result["error"] = self.error
        return {"results": [result], "transaction": 2 if self.in_transaction else 0}


class Statements:
    """What one unit of work asked, by database."""

    __slots__ = ("_by_path", "_left", "_open", "is_cut", "next_order")

    def __init__(self, next_order: Callable[[], int]) -> None:
        self.next_order = next_order
        self._open: set[tuple[Connected, str]] = set()
        """The lanes that left a transaction open, each with the connection."""
        self._by_path: dict[str, list[Statement]] = {}
        self._left = _MOST
        self.is_cut = False
        """It was more than may be kept, and is forgotten."""

    def leave(self, connected: Connected, lane: str, text: str, *, in_transaction: bool) -> None:
        """Note whether a statement on a lane left a transaction open: one that only reads tells what others did.

        Of a script the text is empty: it may hold statements of every kind.
        """
        if _READS.match(text):
            return
        if in_transaction:
            self._open.add((connected, lane))
        elif not _CHANGES.match(text):  # else another one ended what it is part of
            self._open -= {each for each in self._open if each[0] is connected and _is_below(each[1], lane)}

    def is_open(self, connected: Connected, lane: str) -> bool:
        """Tell whether a lane, or one that it spawned, left a transaction open, and ended none since.

        What others did over the same connection meanwhile does not count: it may be otherwise in a replay.
        """
        return any(each[0] is connected and _is_below(each[1], lane) for each in self._open)

    def keeps(self, size: int) -> bool:
        """Take so many bytes; tell whether they may be kept."""
        self._left -= size
        if self._left < 0:
            self.cut()
        return not self.is_cut

    def cut(self) -> None:
        """Forget all that was asked, and what will be."""
        self.is_cut = True
        self._by_path.clear()

    def add(self, path: str, statement: Statement) -> None:
        """Keep a statement."""
        if self.keeps(len(statement.text) + _size(statement.parameters)):
            self._by_path.setdefault(path, []).append(statement)

    def of(self, path: str) -> list[Statement]:
        """List what a database was asked."""
        return self._by_path.get(path, [])


def _is_below(lane: str, above: str) -> bool:
    return lane == above or lane.startswith(f"{above}/")


class _Unseen:
    """What this process asked databases past what is known of its units."""

    __slots__ = ("is_all", "paths", "strays")

    def __init__(self) -> None:
        self.is_all = False
        """Connections had been made before anything was seen."""
        self.paths: dict[str, None] = {}
        """Databases that are used otherwise than by statements that are seen."""
        self.strays: dict[str, int] = {}
        """The number of the last statement of a database's that belongs to no unit under way."""


class _Outside:
    """What a process asks outside of every unit."""

    __slots__ = ("process", "statements")

    def __init__(self) -> None:
        self.process = 0
        self.statements: Statements | None = None

    def of(self, next_order: Callable[[], int]) -> Statements:
        """Give what this process asked since it was recorded by this recorder: a copy of it has asked nothing yet."""
        if self.statements is None or self.process != os.getpid() or self.statements.next_order != next_order:
            self.process, self.statements = os.getpid(), Statements(next_order)
        return self.statements


_unseen: Final = _Unseen()
_outside: Final = _Outside()


def pass_by(path: str) -> None:
    """Note that a database is used otherwise than by statements that are seen."""
    _unseen.paths[path] = None


def pass_by_all() -> None:
    """Note that connections had been made before anything was seen."""
    _unseen.is_all = True


def statements_of(unit: Inbound, path: str) -> list[Statement] | None:
    """Give what a unit asked a database, in order; None where that is not known whole.

    A statement of nobody's, on a thread or a task of the program's own, may have been asked on the unit's behalf. In a
    replay nothing is noted.
    """
    if door.is_strict() or _unseen.is_all or path in _unseen.paths or _unseen.strays.get(path, 0) > unit.order:
        return None
    statements = unit.statements
    if not isinstance(statements, Statements):
        return []
    return _whole(statements, path)


def statements_of_process(root: int, path: str) -> list[Statement] | None:
    """Give what this process asked a database outside of every unit, in order; None where that is not known whole.

    `root` is the root span of the process's run: what was asked inside a run of the program's own is no part of it.
    """
    statements = _outside.statements
    if door.is_strict() or _unseen.is_all or path in _unseen.paths:
        return None
    if statements is None or _outside.process != os.getpid():
        return []
    known = _whole(statements, path)
    if known is None or any(each.parent is not None and each.parent.root != root for each in known):
        return None
    return known


def _whole(statements: Statements, path: str) -> list[Statement] | None:
    known = statements.of(path)
    return None if statements.is_cut or not all(each.numbers[1] for each in known) else known


def tell_of_other_files(operation: str, text: str, parameters: Any) -> None:
    """Tell of the files that a statement opens beside the connection's own. Never raises an `Exception`."""
    if not (_LEADS_ELSEWHERE.match(text) or (operation == SCRIPT and _OTHER_FILE.search(text))):
        return
    try:
        for match in _OTHER_FILE.finditer(text):
            name = (match[1] or "").replace("''", "'") or (match[2] or "").replace('""', '"')
            name = name or _parameter(match[3] or "", parameters)
            if name and ":memory:" not in name and "mode=memory" not in name:
                sys.audit(touches.ATTACHED, name)
                for change in path_changes(touches.ATTACHED, (name,)):
                    pass_by(change.path)
    except Exception:  # our failure is never the agent's
        forgive("sqlite_statements.tell_of_other_files")


def _parameter(mark: str, parameters: Any) -> str:
    """Give the parameter that a mark stands for (https://sqlite.org/lang_expr.html#varparam), if it is a text."""
    if isinstance(parameters, Mapping):
        value = cast("Mapping[str, Any]", parameters).get(mark[1:])
    else:
        values: list[Any] = [*parameters] if parameters is not None else []
        number = int(mark[1:]) if mark[1:].isdigit() else 1
        value = values[number - 1] if number <= len(values) else None
    return value if isinstance(value, str) else ""


def is_looked_at(connected: Connected, text: str) -> bool:
    """Tell whether a statement is one of a unit under way, or of none at all. Never raises an `Exception`."""
    try:
        unit = inbound.current()
        if unit is not None and not unit.ended:
            return not _is_apart(connected, text)
        if door.is_strict():
            return unit is None and not lanes.current().reel.again and not _is_apart(connected, text)
        next_order = getattr(door.doorman(), "next_order", None)
        if next_order is not None and not _is_apart(connected, text):
            _unseen.strays[connected.path] = next_order()
            return unit is None and not _outside.of(next_order).is_cut
    except Exception:  # our failure is never the agent's
        forgive("sqlite_statements.is_looked_at")
        pass_by(connected.path)
    return False


def _statements(unit: Inbound | None, next_order: Callable[[], int]) -> Statements:
    """Give what a unit asked so far, or the process outside of every unit."""
    if unit is None:
        return _outside.of(next_order)
    if not isinstance(unit.statements, Statements):
        unit.statements = Statements(next_order)
    return unit.statements


def is_open(connected: Connected) -> bool:
    """Tell whether the unit under way, or the process outside of every unit, left a transaction open."""
    unit = inbound.current()
    statements = _outside.statements if unit is None else unit.statements
    return isinstance(statements, Statements) and statements.is_open(connected, lanes.current().path)


def begin(connected: Connected, operation: str, text: str, given: Given) -> Statement | None:
    """Note that a statement is about to be asked; None where nobody needs it. Never raises an `Exception`."""
    try:
        next_order, unit = getattr(door.doorman(), "next_order", None), inbound.current()
        if next_order is None:
            return None
        kept = _statements(unit, next_order)
        if kept.is_cut:
            return None
        if _LEADS_ELSEWHERE.match(text):
            pass_by(connected.path)
        statement = Statement(kept, connected, operation, text, given.copy())
        kept.add(connected.path, statement)
    except Exception:  # our failure is never the agent's
        forgive("sqlite_statements.begin")
        pass_by(connected.path)
        return None
    return statement


def give_up() -> None:
    """Note that too much is asked to be kept. Never raises an `Exception`."""
    try:
        next_order = getattr(door.doorman(), "next_order", None)
        if next_order is not None:
            _statements(inbound.current(), next_order).cut()
    except Exception:  # our failure is never the agent's
        forgive("sqlite_statements.give_up")
        pass_by_all()


def lacks(connected: Connected, error: Exception) -> bool:
    """Tell whether a set-up failed for a table that the recorded file had, and the file of a replay has not."""
    answers = getattr(getattr(door.doorman(), "stubs", None), "answers_database", None)
    unit = None if inbound.current() is None else lanes.current().reel.again
    return answers is not None and answers(unit, connected.name) and str(error).startswith("no such ")


def answer(connected: Connected, operation: str, text: str, given: Given) -> dict[str, Json] | None:
    """Give what came back when it was recorded; None where the copy is asked. Raises what was raised, or a `Miss`."""
    answers = getattr(getattr(door.doorman(), "stubs", None), "answers_database", None)
    unit = None if inbound.current() is None else lanes.current().reel.again
    if answers is None or not answers(unit, connected.name):
        return None
    about = databases.ask_stand_in(question(connected.name, operation, text, given.copy()))
    if about is None:  # inside a tool
        return None
    in_transaction = bool(as_object(about).get("transaction"))
    alone = "" if operation == SCRIPT else text
    kept = _statements(inbound.current(), _no_order)
    kept.leave(connected, lanes.current().path, alone, in_transaction=in_transaction)
    result = as_object(next(iter(as_list(as_object(about).get("results"))), None))
    if "error" in result:
        raise _native_error(as_object(result["error"]))
    return result


def _no_order() -> int:
    """Count nothing: a replay keeps no statement."""
    return 0


def rows_of(result: Mapping[str, Json]) -> list[tuple[Any, ...]]:
    """Give the rows of an answer."""
    return [tuple(cast("Iterable[Any]", typed.decode(each))) for each in as_list(result.get("rows"))]


def ask_further(connected: Connected, text: str) -> None:
    """Ask for a row behind those that were read when it was recorded. Raises a `Miss`."""
    databases.ask_stand_in(question(connected.name, "fetch", text, None))


def _is_apart(connected: Connected, text: str) -> bool:
    """Tell whether a statement is done in the copy: it sets a connection up, or an outcome stands for it."""
    here = place.current()
    if (here is not None and here.whole) or _sets_up(text):
        return True
    if text[:6].lower() == "select" and set_ups.is_ping(text):
        return True
    if connected.is_new:
        if set_ups.is_connecting():
            return True
        connected.is_new = False
    return False


def _sets_up(text: str) -> bool:
    """Tell whether a statement, or each of a script, only sets a connection or a schema up that is not there yet."""
    if not _SETS_UP.match(text):
        return False
    further = text.rstrip(" ;\n").split(";")[1:]
    return all(_SETS_UP.match(each) for each in further)


def question(name: str, operation: str, text: str, parameters: Any) -> Query:
    """Spell a question to a database that lies in a file of this name."""
    spelled = typed.encode(parameters) if parameters else None
    return Query(system=SQLITE, operation=operation, text=text, parameters=spelled, namespace=name)


def _size(values: Any) -> int:
    """Give about how many bytes values take."""
    if isinstance(values, str | bytes):
        return _OF_VALUE + len(values)
    if isinstance(values, Mapping):
        return _OF_VALUE + sum(map(_size, cast("Mapping[Any, Any]", values).values()))
    if isinstance(values, list | tuple):
        return _OF_VALUE + sum(map(_size, cast("Iterable[Any]", values)))
    return _OF_VALUE


def _error_json(error: Exception) -> dict[str, Json]:
    spelled: dict[str, Json] = {"class": type(error).__name__, "arguments": typed.encode([*error.args])}
    if code := getattr(error, "sqlite_errorcode", None):
        spelled |= {"code": str(getattr(error, "sqlite_errorname", code)), "number": code}
    return spelled


def _native_error(spelled: Mapping[str, Json]) -> Exception:
    """Make an error of `sqlite3`'s own class."""
    import builtins
    import sqlite3

    name = str(spelled.get("class"))
    kind: Any = getattr(sqlite3, name, None) or getattr(builtins, name, None)
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        kind = sqlite3.DatabaseError
    error: Any = kind(*cast("Iterable[Any]", typed.decode(spelled.get("arguments"))))
    if isinstance(number := spelled.get("number"), int):
        error.sqlite_errorcode, error.sqlite_errorname = number, str(spelled.get("code"))
    return error
