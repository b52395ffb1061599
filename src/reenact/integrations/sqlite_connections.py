"""sqlite3: cut at its connections and cursors, where statements are asked and rows are read.

Theory of operation. Both are classes in C that a program, and a framework, may derive from. So the module's own names
for them are replaced by classes of ours that derive from them, before anybody derives. Each statement is told with the
rows that are read of it (`boundary.sqlite_statements`); nothing is read ahead. In a replay a statement is done in the
copy of the database, or answered: then a query of the same columns that finds nothing is asked instead, by which the
cursor comes to its `description`, and the recorded rows go through the program's own `row_factory`.

aiosqlite asks on a thread of each connection, which knows nothing of who asked: it is told here.
"""

from __future__ import annotations

import contextvars
import gc
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial, wraps
from itertools import chain, islice
from types import TracebackType
from typing import Any, Final, cast

from reenact.boundary import door, sqlite_statements
from reenact.boundary.files import path_changes
from reenact.boundary.forgiving import forgive
from reenact.boundary.side_effects import is_by_us
from reenact.boundary.sqlite_statements import COMMIT, ROLLBACK, SCRIPT, Connected, Given, Statement
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_text
from reenact.values.query import QUERY

MANY: Final = "many"
"""The operation of a call that asks one statement with several rows of parameters."""
_MOST_ROWS: Final = 20_000
"""Of so many rows of parameters none are kept."""
_PLACE_OF_FACTORY: Final = 5
"""Among the arguments of `sqlite3.connect`."""
_OTHERWISE: Final = ("backup", "blobopen", "deserialize", "serialize", "load_extension")
"""Methods of a connection that come to its database by no statement."""
_NOTHING: Final = "pragma reenact_nothing"
"""A statement that does nothing and has no columns: SQLite passes over a pragma that it does not know."""


class Reading:
    """What a cursor answers with: the recorded rows of its last statement."""

    __slots__ = ("is_whole", "last_row_id", "left", "row_count", "text")

    def __init__(self, text: str, result: dict[str, Json]) -> None:
        self.text = text
        self.left = iter(sqlite_statements.rows_of(result))
        self.is_whole = result.get("whole") is not False
        self.row_count = count if isinstance(count := result.get("rowcount"), int) else -1
        self.last_row_id = row_id if isinstance(row_id := result.get("lastrowid"), int) else None


def _columns(result: dict[str, Json]) -> str:
    """Spell a query that has the columns of an answer, and no rows."""
    names = [as_text(each).replace('"', '""') for each in as_list(result.get("columns"))]
    columns = ", ".join(f'null as "{name}"' for name in names)
    return f"select {columns} where 0" if columns else _NOTHING


class _Cursor:
    """What stands before the class of cursors: `super()` leads to SQLite's own."""

    _native: Any
    """SQLite's own class."""
    _adapt: Callable[[Any], Any]
    _reenact: Statement | Reading | None = None
    _reenact_factory: Any = None
    """The `row_factory` of the program's, where its rows are noted."""

    def _ask(self, operation: str, text: Any, parameters: tuple[Any, ...], run: Callable[..., Any]) -> Any:
        self._leave()
        if isinstance(text, str) and door.is_kept():
            sqlite_statements.tell_of_other_files(operation, text, parameters[0] if parameters else None)
        connection: Any = cast("Any", self).connection
        connected = _connected(connection)
        if connected is None or not isinstance(text, str):
            return run(text, *parameters)
        if not sqlite_statements.is_looked_at(connected, text):
            return self._set_up(connected, partial(run, text, *parameters))
        if operation == MANY and parameters:
            rows = _Rows(parameters[0])
            if rows.further is not None:
                sqlite_statements.give_up()
                return run(text, rows.further)
            parameters = (rows.first,)
        given = Given(
            parameters[0] if parameters else None, self._adapt, are_rows=bool(parameters) and operation == MANY
        )
        if door.is_strict():
            result = sqlite_statements.answer(connected, operation, text, given)
            return run(text, *parameters) if result is None else self._answer(connected, text, result)
        statement = sqlite_statements.begin(connected, operation, text, given)
        if statement is None:
            return run(text, *parameters)
        try:
            run(text, *parameters)
        except Exception as error:
            statement.end(in_transaction=connection.in_transaction, error=error)
            raise
        self._note(statement, connection)
        return self

    def _set_up(self, connected: Connected, run: Callable[[], Any]) -> Any:
        """Do in the copy what sets a connection up; what it is for may be missing there."""
        try:
            return run()
        except sys.modules["sqlite3"].OperationalError as error:
            if not (door.is_strict() and sqlite_statements.lacks(connected, error)):
                raise
            return self._native.execute(self, _NOTHING)

    def _answer(self, connected: Connected, text: str, result: dict[str, Json]) -> Any:
        self._native.execute(self, _columns(result))
        self._reenact = reading = Reading(text, result)
        connected.changes += max(0, reading.row_count)
        return self

    def _note(self, statement: Statement, connection: Any) -> None:
        """Note what a statement came to, and have its rows noted."""
        try:
            native: Any = super()
            about = native.description
            statement.columns = None if about is None else [str(each[0]) for each in about]
            statement.row_count, statement.last_row_id = native.rowcount, native.lastrowid
            statement.end(in_transaction=connection.in_transaction)
            self._reenact = statement
            if (factory := native.row_factory) is not None and not _is_native_row(factory):
                self._reenact_factory = factory
                self._set_factory(_noting(statement, factory))
        except Exception:  # our failure is never the agent's
            forgive("sqlite_connections.note")

    def _set_factory(self, factory: Any) -> None:
        self._native.row_factory.__set__(self, factory)

    def _leave(self) -> None:
        """Forget the last statement: its rows that were not read yet are read no more."""
        if self._reenact is not None:
            self._reenact = None
            if self._reenact_factory is not None:
                self._set_factory(self._reenact_factory)
                self._reenact_factory = None

    def execute(self, sql: Any, *parameters: Any) -> Any:
        return self._ask(QUERY, sql, parameters, cast("Any", super()).execute)

    def executemany(self, sql: Any, *parameters: Any) -> Any:
        return self._ask(MANY, sql, parameters, cast("Any", super()).executemany)

    def executescript(self, sql_script: Any) -> Any:
        return self._ask(SCRIPT, sql_script, (), cast("Any", super()).executescript)

    def fetchone(self) -> Any:
        at = self._reenact
        if isinstance(at, Reading):
            return next(self._recorded(at), None)
        row = cast("Any", super()).fetchone()
        return row if at is None else self._noted(at, row)

    def __next__(self) -> Any:
        at = self._reenact
        if isinstance(at, Reading):
            return next(self._recorded(at))
        try:
            row = cast("Any", super()).__next__()
        except StopIteration:
            if at is not None:
                at.read(None)
            raise
        return row if at is None else self._noted(at, row)

    def __iter__(self) -> Any:
        cast("Any", super()).__iter__()
        return self

    def fetchmany(self, *args: Any, **options: Any) -> Any:
        at = self._reenact
        size = next(iter((*args, *options.values(), cast("Any", super()).arraysize)))
        if isinstance(at, Reading):
            return [*islice(self._recorded(at), size)]
        rows = cast("Any", super()).fetchmany(*args, **options)
        return rows if at is None else self._noted_all(at, rows, size)

    def fetchall(self) -> Any:
        at = self._reenact
        if isinstance(at, Reading):
            return [*self._recorded(at)]
        rows = cast("Any", super()).fetchall()
        return rows if at is None else self._noted_all(at, rows, None)

    def _noted(self, statement: Statement, row: Any) -> Any:
        if row is None:
            statement.read(None)
        elif self._reenact_factory is None:  # else `_noting` has done so
            statement.read(tuple(row))
        return row

    def _noted_all(self, statement: Statement, rows: Any, size: int | None) -> Any:
        for row in rows:
            self._noted(statement, row)
        if size is None or len(rows) < size:
            statement.read(None)
        return rows

    def _recorded(self, at: Reading) -> Iterator[Any]:
        """Give the recorded rows that are left, made by the program's own factory."""
        for row in at.left:
            factory = self.row_factory
            yield row if factory is None else factory(self, row)
        if not at.is_whole and (connected := _connected(cast("Any", self).connection)) is not None:
            sqlite_statements.ask_further(connected, at.text)

    def close(self) -> None:
        self._leave()
        cast("Any", super()).close()

    @property
    def rowcount(self) -> Any:
        at = self._reenact
        return at.row_count if isinstance(at, Reading) else cast("Any", super()).rowcount

    @property
    def lastrowid(self) -> Any:
        at = self._reenact
        return at.last_row_id if isinstance(at, Reading) else cast("Any", super()).lastrowid

    @property
    def row_factory(self) -> Any:
        return self._reenact_factory or cast("Any", super()).row_factory

    @row_factory.setter
    def row_factory(self, factory: Any) -> None:
        at, self._reenact_factory = self._reenact, None
        if isinstance(at, Statement) and factory is not None and not _is_native_row(factory):
            self._reenact_factory, factory = factory, _noting(at, factory)
        self._set_factory(factory)


def _is_native_row(factory: Any) -> bool:
    return isinstance(factory, type) and factory.__module__ == "sqlite3" and factory.__name__ == "Row"


class _Rows:
    """Rows of parameters: a list of them, or, where they are many, all of them as they come."""

    __slots__ = ("first", "further")

    def __init__(self, parameters: Iterable[Any]) -> None:
        left = iter(parameters)
        self.first = [*islice(left, _MOST_ROWS)]
        self.further = chain(self.first, left) if len(self.first) == _MOST_ROWS else None


def _noting(statement: Statement, factory: Any) -> Callable[[Any, Any], Any]:
    """Have the rows that go through a factory of the program's be noted."""

    def make(cursor: Any, row: Any) -> Any:
        statement.read(row)
        return factory(cursor, row)

    return make


def _derived(ours: Any, before: Any, **further: Any) -> Any:
    """Make the class that takes the place of another one, under its name.

    That may derive from ours already: a class of an earlier recording's, which a sealed replay in this process kept.
    """
    native = next(each for each in before.__mro__ if not issubclass(each, ours))
    bases = (before,) if issubclass(before, ours) else (ours, before)
    about = {"__module__": before.__module__, "__doc__": before.__doc__, "_native": native}
    return type(before.__name__, bases, {**about, **further})


def _connected(connection: Any) -> Connected | None:
    """Give what is known of a connection; None of one in memory, and where nobody wants to know."""
    return getattr(connection, "_reenact", None) if door.is_kept() else None


def _path(database: Any) -> str:
    """Give the path of the file that a connection is to; empty for a database in memory."""
    name = os.fsdecode(database)
    if name in {"", ":memory:"} or ":memory:" in name or "mode=memory" in name:
        return ""
    return next((change.path for change in path_changes("sqlite3.connect", (database,))), "")


class _Connection:
    """What stands before the class of connections."""

    _cursors: Any
    """The class of cursors."""
    _reenact: Connected | None = None

    def __init__(self, *args: Any, **options: Any) -> None:
        cast("Any", super()).__init__(*args, **options)
        try:
            if (path := _path(args[0] if args else options["database"])) and not is_by_us():
                self._reenact = Connected(path)
        except Exception:  # our failure is never the agent's
            forgive("sqlite_connections.connect")

    def cursor(self, *args: Any, **options: Any) -> Any:
        native: Any = super()
        if not (args or options):
            return native.cursor(self._cursors)
        cursor = native.cursor(*args, **options)
        if not isinstance(cursor, self._cursors):
            self._pass_by()
        return cursor

    def execute(self, *args: Any) -> Any:
        return cast("Any", super()).cursor(self._cursors).execute(*args)

    def executemany(self, *args: Any) -> Any:
        return cast("Any", super()).cursor(self._cursors).executemany(*args)

    def executescript(self, *args: Any) -> Any:
        return cast("Any", super()).cursor(self._cursors).executescript(*args)

    def _pass_by(self) -> None:
        if self._reenact is not None:
            sqlite_statements.pass_by(self._reenact.path)

    def _end(self, word: str, run: Callable[[], Any]) -> Any:
        """End a transaction."""
        connected = _connected(self)
        if connected is None:
            return run()
        is_asked = sqlite_statements.is_open(connected) and sqlite_statements.is_looked_at(connected, word)
        if door.is_strict():
            if is_asked:
                sqlite_statements.answer(connected, QUERY, word, Given())
            return run()
        statement = sqlite_statements.begin(connected, QUERY, word, Given()) if is_asked else None
        try:
            result = run()
        except Exception as error:
            if statement is not None:
                statement.end(in_transaction=self.in_transaction, error=error)
            raise
        if statement is not None:
            statement.end(in_transaction=False)  # another unit may have begun one over the same connection
        return result

    def commit(self) -> Any:
        return self._end(COMMIT, cast("Any", super()).commit)

    def rollback(self) -> Any:
        return self._end(ROLLBACK, cast("Any", super()).rollback)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> Any:
        if self._reenact is None or getattr(self, "autocommit", None) is True:
            return cast("Any", super()).__exit__(kind, error, trace)
        if kind is not None:
            self.rollback()
            return False
        try:
            self.commit()
        except Exception:
            self.rollback()
            raise
        return False

    @property
    def in_transaction(self) -> Any:
        native, at = cast("Any", super()).in_transaction, self._reenact
        return native or (at is not None and door.is_strict() and sqlite_statements.is_open(at))

    @property
    def total_changes(self) -> Any:
        at = self._reenact
        return cast("Any", super()).total_changes + (at.changes if at is not None else 0)


def _passes_by(original: Any) -> Any:
    @wraps(original)
    def use(self: Any, *args: Any, **options: Any) -> Any:
        self._pass_by()
        return original(self, *args, **options)

    return use


def _connects(ours: Any) -> Callable[[Any], Any]:
    def make(original: Any) -> Any:
        @wraps(original)
        def connect(*args: Any, **options: Any) -> Any:
            if len(args) <= _PLACE_OF_FACTORY:
                options.setdefault("factory", ours)
            connection = original(*args, **options)
            if not isinstance(connection, ours) and (path := _path(args[0] if args else options["database"])):
                sqlite_statements.pass_by(path)
            return connection

        return connect

    return make


def _install(patches: PatchSet) -> None:
    patches.when_imported("sqlite3", lambda module: _install_in(patches, module))
    patches.when_imported("aiosqlite.core", lambda module: patches.replace(module.Connection, "_execute", _asks))


def _install_in(patches: PatchSet, sqlite3: Any) -> None:
    native = sqlite3.Connection
    if any(type(each) is native for each in gc.get_objects()):
        sqlite_statements.pass_by_all()
    cursor = _derived(_Cursor, sqlite3.Cursor, _adapt=staticmethod(sqlite3.adapt))
    around = {name: _passes_by(getattr(native, name)) for name in _OTHERWISE if hasattr(native, name)}
    connection = _derived(_Connection, native, _cursors=cursor, **around)
    for holder in (sqlite3, sqlite3.dbapi2):
        patches.replace(holder, "Cursor", lambda _: cursor)
        patches.replace(holder, "Connection", lambda _: connection)
        patches.replace(holder, "connect", _connects(connection))


def _asks(original: Any) -> Any:
    @wraps(original)
    async def _execute(self: Any, fn: Any, *args: Any, **options: Any) -> Any:
        if not door.is_kept():
            return await original(self, fn, *args, **options)
        context = contextvars.copy_context()
        return await original(self, cast("Callable[..., Any]", context.run), fn, *args, **options)

    return _execute


INTEGRATION = Integration(
    name="sqlite_connections",
    libraries=("sqlite3", "aiosqlite"),
    install=_install,
    hooks=("sqlite3", "aiosqlite.core"),
)
