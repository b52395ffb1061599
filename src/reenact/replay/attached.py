"""Databases that a connection to SQLite attaches (ATTACH, VACUUM INTO): files that no audit event tells of.

SQLite asks an authorizer of the connection before it attaches one; the program's own takes the place of ours.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import wrapt

_ATTACH, _DENY = 24, 1
"""SQLITE_ATTACH and SQLITE_DENY (sqlite3_set_authorizer)."""
_judges: Final[list[Callable[[str], bool]]] = []


def judge_attached(refuses: Callable[[str], bool]) -> None:
    """Have each connection that is made from here on ask about the files it attaches; `refuses` notes what it refuses.

    It cannot be taken back: of several the last is asked.
    """
    if not _judges:
        wrapt.register_post_import_hook(_watch, "sqlite3")
    _judges[:] = [refuses]


def _watch(module: Any) -> None:
    original = module.connect

    @wraps(original)
    def connect(*args: Any, **named: Any) -> Any:
        connection = original(*args, **named)
        connection.set_authorizer(_judged)
        return connection

    module.connect = module.dbapi2.connect = connect


def _judged(action: int, path: str | None, *_: Any) -> int:
    """Judge an act; the path of an attached database is None where the statement does not spell it."""
    in_memory = path is not None and (path in {"", ":memory:"} or "mode=memory" in path or "mode=ro" in path)
    return _DENY if action == _ATTACH and not in_memory and _judges[0](path or "") else 0
