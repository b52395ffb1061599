"""Databases that a connection to SQLite attaches (ATTACH, VACUUM INTO): files that no audit event tells of.

SQLite asks an authorizer of the connection before it attaches one. A connection has one authorizer, so the class of
connections is replaced by one whose `set_authorizer` keeps ours before the program's own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import wrapt

_ATTACH, _DENY = 24, 1
"""SQLITE_ATTACH and SQLITE_DENY (sqlite3_set_authorizer)."""
_PLACE_OF_FACTORY: Final = 5
"""Among the arguments of `sqlite3.connect`."""
_judges: Final[list[Callable[[str], bool]]] = []


def judge_attached(refuses: Callable[[str], bool]) -> None:
    """Have each connection that is made from here on ask about the files it attaches; `refuses` notes what it refuses.

    It cannot be taken back: of several the last is asked.
    """
    if not _judges:
        wrapt.register_post_import_hook(_watch, "sqlite3")
    _judges[:] = [refuses]


def _watch(module: Any) -> None:
    original, judged = module.connect, _judged_class(module.Connection)

    @wraps(original)
    def connect(*args: Any, **options: Any) -> Any:
        if len(args) <= _PLACE_OF_FACTORY:
            options.setdefault("factory", judged)
        connection = original(*args, **options)
        if not isinstance(connection, judged):  # its class was made of Python's own before
            connection.set_authorizer(_judged)
        return connection

    holders: tuple[Any, ...] = (module, module.dbapi2, sys.modules["_sqlite3"])
    for holder in holders:
        holder.connect, holder.Connection = connect, judged


def _judged_class(original: Any) -> Any:
    """Make the class of connections whose authorizer asks ours first."""

    def begin(self: Any, *args: Any, **options: Any) -> None:
        original.__init__(self, *args, **options)
        original.set_authorizer(self, _judged)

    @wraps(original.set_authorizer)
    def set_authorizer(self: Any, *args: Any, **options: Any) -> Any:
        own = args[0] if args else options.get("authorizer_callback")
        return original.set_authorizer(self, _judged if own is None else _both(own))

    methods = {"__init__": begin, "set_authorizer": set_authorizer, "__module__": original.__module__}
    return type(original.__name__, (original,), {**methods, "__doc__": original.__doc__})


def _both(own: Callable[..., int]) -> Callable[..., int]:
    """Ask ours, and the program's own where ours denies nothing."""

    def ask(action: int, *about: Any) -> int:
        return _judged(action, *about) or own(action, *about)

    return ask


def _judged(action: int, path: str | None, *_: Any) -> int:
    """Judge an act; the path of an attached database is None where the statement does not spell it."""
    in_memory = path is not None and (path in {"", ":memory:"} or "mode=memory" in path or "mode=ro" in path)
    return _DENY if action == _ATTACH and not in_memory and _judges[0](path or "") else 0
