"""Databases that live in the memory of the process: how often what they keep was changed.

Such a database is state of the process, behind native code and often behind a library's pool of connections. `sqlite3`
tells of each connection when it is made (audit events `sqlite3.connect` and `sqlite3.connect/handle`), and a connection
tells how many rows were changed over it. No weak reference to one can be had, so they are held until nobody else holds
them, which is looked at whenever another one is made.
"""

from __future__ import annotations

import sys
import threading
from typing import Any, Final, cast

from reenact.boundary import audit
from reenact.values import alarms

_EVENTS: Final = frozenset({"sqlite3.connect", "sqlite3.connect/handle"})
_open: Final[list[Any]] = []
_MOST: Final = 64
"""Connections that are held; of more the oldest are let go."""
_ALONE: Final = 2
"""References to what is held here alone: the list's own, and that of whoever counts."""
_asked = threading.local()
_hooked: Final[list[bool]] = []
_unheard: Final[list[bool]] = []
"""Filled where connections may be open that are not held here."""


def listen() -> None:
    """Hear of connections from here on; an audit hook is for good."""
    if not _hooked:
        _hooked.append(True)
        _unheard.extend([True] if "sqlite3" in sys.modules else [])
        audit.hear(_EVENTS, _hook)


def counts() -> dict[int, int]:
    """Give how many rows were changed over each connection to a database in memory, by the connection's identity.

    That is -1 for one that is closed, or another thread's alone.
    """
    _let_go()
    totals: dict[int, int] = {}
    for connection in tuple(_open):
        try:
            totals[id(connection)] = connection.total_changes
        except Exception:  # it is closed, or another thread's alone
            alarms.pass_on()
            totals[id(connection)] = -1
    return totals


def is_in_memory(connection: Any) -> bool:
    """Tell that a connection, or that of a cursor, is to a database in memory."""
    kind = cast("type[Any]", type(connection))
    if kind.__module__ != "sqlite3" or not _open:
        return False
    if kind.__qualname__ == "Cursor":
        connection = connection.connection
    return any(each is connection for each in _open)


def is_in_a_file(connection: Any) -> bool:
    """Tell that a connection is to a database in a file; not where that is not known."""
    return bool(_hooked) and not _unheard and not any(each is connection for each in _open)


def _let_go() -> None:
    """Let go of connections that nobody else holds, and of the oldest of too many."""
    for at in reversed(range(len(_open))):
        if sys.getrefcount(_open[at]) <= _ALONE:
            del _open[at]
    _unheard.extend([True] if len(_open) > _MOST else [])
    del _open[:-_MOST]


def _hook(event: str, args: tuple[Any, ...]) -> None:
    try:
        if event == "sqlite3.connect":
            name = str(args[0])
            _asked.memory = ":memory:" in name or "mode=memory" in name or name in {"", "file:"}
        elif getattr(_asked, "memory", False):
            _asked.memory = False
            _let_go()
            _open.append(args[0])
    except Exception:
        alarms.pass_on()
