"""Chance and the clock as SQL asks for them: `random()`, `randomblob(n)`, `current_timestamp` and its like in SQLite.

A database that lives in the process runs again in a replay, and its own functions would give other values. So each
connection of `sqlite3` and apsw gets functions of these names: chance comes of one seed for each connection, which is
taped when it is first asked for, and the clock is the program's. `sqlite3`'s own clock is replaced where it can be
(`boundary.sqlite_clock`), `'now'` in `datetime('now')` with it; apsw's stays what it is there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from random import Random, SystemRandom
from typing import Any, Final

from reenact.boundary import tape
from reenact.boundary.forgiving import forgive
from reenact.boundary.sqlite_clock import replace_clock
from reenact.boundary.tape import Site, Source
from reenact.contracts.integration import Integration, PatchSet

_SEED: Final = Site(key="sqlite:connection random", source=Source(name="sqlite random"))
_CLOCKS: Final = {"current_timestamp": "%Y-%m-%d %H:%M:%S", "current_date": "%Y-%m-%d", "current_time": "%H:%M:%S"}
_LARGEST: Final = 1_000_000_000
"""`SQLITE_MAX_LENGTH`, in bytes."""


class _Chance:
    """Throws for one connection."""

    __slots__ = ("_generator",)

    def __init__(self) -> None:
        self._generator: Random | None = None

    def _next(self) -> Random:
        if self._generator is None:
            self._generator = Random(tape.draw(_SEED, lambda: SystemRandom().getrandbits(24)))  # noqa: S311 - SQLite's is none for secrets either
        return self._generator

    def random(self) -> int:
        """Give a whole number of 64 bits with its sign, as SQLite's `random()` does."""
        return self._next().getrandbits(64) - (1 << 63)

    def randomblob(self, count: Any) -> bytes:
        """Give so many bytes, one at least, as SQLite's `randomblob()` does."""
        size = int(count) if isinstance(count, int | float | str) and str(count).strip().isdigit() else 1
        return self._next().randbytes(min(max(1, size), _LARGEST))


def _clock(form: str) -> Callable[[], str]:
    return lambda: datetime.fromtimestamp(tape.moment(), UTC).strftime(form)


def _give_functions(create: Callable[[str, int, Callable[..., Any]], object], *, clocks: bool) -> None:
    """Create the functions of a connection: `create` takes a name, how many arguments there are, and the function."""
    chance = _Chance()
    create("random", 0, chance.random)
    create("randomblob", 1, chance.randomblob)
    for name, form in _CLOCKS.items() if clocks else ():
        create(name, 0, _clock(form))


def _connect(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def connect(*args: Any, **kwargs: Any) -> Any:
        connection = original(*args, **kwargs)
        if tape.is_on():
            try:
                base: Any = sys.modules["sqlite3"].Connection

                def create(name: str, count: int, call: Callable[..., Any]) -> None:
                    base.create_function(connection, name, count, call)

                _give_functions(create, clocks=not _clock_is_replaced)
            except Exception:
                forgive("sqlite_functions.connect")
        return connection

    return connect


def _connected_by_apsw(connection: Any) -> None:
    if not tape.is_on():
        return
    try:
        flags = sys.modules["apsw"].SQLITE_INNOCUOUS  # a schema that nobody trusts may use them too

        def create(name: str, count: int, call: Callable[..., Any]) -> None:
            connection.create_scalar_function(name, call, count, flags=flags)

        _give_functions(create, clocks=True)
    except Exception:
        forgive("sqlite_functions.apsw")


_clock_is_replaced: list[bool] = []


def _install(patches: PatchSet) -> None:
    patches.when_imported("sqlite3", lambda module: _install_in(patches, module))
    patches.when_imported("sqlite3.dbapi2", lambda module: patches.replace(module, "connect", _connect))
    patches.when_imported("apsw", _install_apsw)


def _install_in(patches: PatchSet, sqlite3: Any) -> None:
    patches.replace(sqlite3, "connect", _connect)
    try:
        put_back = replace_clock(sqlite3)
    except Exception:
        forgive("sqlite_functions.clock")
        return
    if put_back is not None:
        _clock_is_replaced[:] = [True]
        patches.when_undone(put_back)
        patches.when_undone(_clock_is_replaced.clear)


def _install_apsw(module: Any) -> None:
    hooks = module.connection_hooks
    if _connected_by_apsw not in hooks:
        hooks.append(_connected_by_apsw)


INTEGRATION = Integration(
    name="sqlite_functions",
    libraries=("sqlite3", "apsw"),
    install=_install,
    hooks=("sqlite3", "sqlite3.dbapi2", "apsw"),
)
