"""What psycopg2 gives and is given, written down and given back: values, rows, arguments and errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from reenact.boundary.forgiving import forgive
from reenact.values import typed
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, as_text

_TAG: Final = "$psycopg2"
_DIAGNOSED: Final = (
    *("severity", "sqlstate", "message_primary", "message_detail", "message_hint", "statement_position", "context"),
    *("schema_name", "table_name", "column_name", "datatype_name", "constraint_name"),
)
_PLAIN: Final = (str, int, float, bool, bytes, list, tuple, dict)


def spelled(value: Any) -> Json:
    """Spell a value that a loader made."""
    if isinstance(value, memoryview):
        return {_TAG: "memoryview", "of": typed.encode(bytes(cast("bytes", value)))}
    if hasattr(value, "upper_inc") and hasattr(value, "isempty"):
        ends: list[Json] = [typed.encode(value.lower), typed.encode(value.upper)]
        of: list[Json] = [*ends, "empty" if value.isempty else value._bounds]  # noqa: SLF001 - nothing else tells them
        return {_TAG: type(value).__name__, "of": of}
    return typed.encode(value)


def unspelled(value: Json) -> Any:
    """Make the value again."""
    if not isinstance(value, dict) or _TAG not in value:
        return typed.decode(value)
    if value[_TAG] == "memoryview":
        return memoryview(cast("bytes", typed.decode(value.get("of"))))
    from psycopg2 import extras

    kind: Any = getattr(extras, as_text(value[_TAG]), extras.Range)
    lower, upper, bounds = as_list(value.get("of"))
    return kind(empty=True) if bounds == "empty" else kind(typed.decode(lower), typed.decode(upper), bounds)


def _argument(value: Any) -> Json:
    if value is None or type(value) in _PLAIN or type(value).__module__ in {"datetime", "decimal", "uuid"}:
        return typed.encode(value)
    from psycopg2 import extensions

    try:
        return {_TAG: "sql", "of": extensions.adapt(value).getquoted().decode("utf-8", "replace")}
    except Exception:  # it is adapted only with a connection
        forgive("psycopg2.argument")
        return typed.encode(value)


def arguments(parameters: Any) -> Json:
    """Spell what a statement is given; what is no plain value as the text that psycopg2 makes of it."""
    if parameters is None:
        return None
    if isinstance(parameters, Mapping):
        return {str(name): _argument(each) for name, each in cast("Mapping[Any, Any]", parameters).items()}
    if isinstance(parameters, Sequence):
        return [_argument(each) for each in cast("Sequence[Any]", parameters)]
    return typed.encode(parameters)


def text_of(statement: Any, connection: Any) -> str:
    """Give the text of a statement, also of one that is composed."""
    if isinstance(statement, bytes):
        return statement.decode("utf-8", "replace")
    return statement if isinstance(statement, str) else str(statement.as_string(connection))


def error_told(error: Any) -> Json:
    """Spell an error with what the server said."""
    diag = {name: value for name in _DIAGNOSED if (value := getattr(error.diag, name, None)) is not None}
    spelling: dict[str, Json] = {"class": type(error).__name__, "sqlstate": error.pgcode, "message": str(error)}
    return spelling | {"pgerror": error.pgerror, "diag": typed.encode(diag)}


def error_made(spelling: Json) -> Exception:
    """Make an error of psycopg2's own class."""
    import psycopg2
    from psycopg2 import errors

    about = as_object(spelling)
    name = as_text(about.get("class"))
    kind: Any = getattr(errors, name, None) or getattr(psycopg2, name, psycopg2.Error)
    fields = dict.fromkeys(_DIAGNOSED) | {name: typed.decode(each) for name, each in as_object(about["diag"]).items()}
    diag = type("Diagnostics", (), fields)()
    over = type(kind.__name__, (kind,), {"__module__": kind.__module__, "diag": diag})
    error: Any = over(as_text(about.get("message")))
    error.__setstate__({"pgcode": about.get("sqlstate"), "pgerror": about.get("pgerror")})
    return cast("Exception", error)


def quoted(value: Any) -> str:
    """Quote a value as psycopg2 does over a connection: without one it escapes backslashes as servers of old did."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bytes | bytearray | memoryview):
        return f"'\\x{bytes(cast('bytes', value)).hex()}'::bytea"
    kind: type = type(cast("object", value))
    if kind is list and value:
        return f"ARRAY[{','.join(map(quoted, cast('list[Any]', value)))}]"
    if kind is tuple and value:
        return f"({', '.join(map(quoted, cast('tuple[Any, ...]', value)))})"
    from psycopg2 import extensions

    return str(extensions.adapt(value).getquoted().decode())


def rows_made(cursor: Any, rows: Sequence[Any]) -> list[Any]:
    """Make rows as psycopg2 does: tuples, or of the cursor's factory, filled in."""
    if cursor.row_factory is None:
        return [*rows]
    table: list[Any] = []
    for row in rows:
        row_object: Any = None if row is None else cursor.row_factory(cursor)
        for at, value in enumerate(row or ()):
            row_object[at] = value
        table.append(row_object)
    return table
