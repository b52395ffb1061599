"""Databases that live in the memory of the process: how often what they keep was changed.

Such a database is state of the process, behind native code and often behind a library's pool of connections. `sqlite3`
tells of each connection when it is made (audit events `sqlite3.connect` and `sqlite3.connect/handle`), and a connection
tells how many rows were changed over it.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any, Final

from reenact.boundary import audit
from reenact.values import alarms

_EVENTS: Final = frozenset({"sqlite3.connect", "sqlite3.connect/handle"})
_open: Final[list[weakref.ref[Any]]] = []
_asked = threading.local()
_hooked: Final[list[bool]] = []


def listen() -> None:
    """Hear of connections from here on; an audit hook is for good."""
    if not _hooked:
        _hooked.append(True)
        audit.hear(_EVENTS, _hook)


def changes() -> tuple[int, ...]:
    """Give how many rows were changed over each connection to a database in memory, the oldest first."""
    found: list[int] = []
    for held in tuple(_open):
        connection = held()
        if connection is None:
            _open.remove(held)
            continue
        try:
            found.append(connection.total_changes)
        except Exception:  # it is closed, or another thread's alone
            alarms.pass_on()
            found.append(-1)
    return tuple(found)


def counts() -> dict[int, int]:
    """Give how many rows were changed over each such connection that is there, by the connection's identity."""
    found: dict[int, int] = {}
    for held in tuple(_open):
        connection = held()
        if connection is None:
            continue
        try:
            found[id(connection)] = connection.total_changes
        except Exception:  # it is closed, or another thread's alone
            alarms.pass_on()
    return found


def _hook(event: str, args: tuple[Any, ...]) -> None:
    try:
        if event == "sqlite3.connect":
            name = str(args[0])
            _asked.memory = ":memory:" in name or "mode=memory" in name or name in {"", "file:"}
        elif getattr(_asked, "memory", False):
            _asked.memory = False
            _open.append(weakref.ref(args[0]))
    except Exception:
        alarms.pass_on()
