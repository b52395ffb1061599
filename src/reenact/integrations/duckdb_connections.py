"""Chance as SQL asks DuckDB for it: `random()`, `uuid()`, `using sample`, `order by random()`.

A database that lives in the process runs again in a replay, and its own chance would be another. So each connection and
cursor gets a seed by `setseed()`, which is taped. DuckDB's clock (`now()`) stays its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from random import SystemRandom
from typing import Any, Final

from reenact.boundary import tape
from reenact.boundary.forgiving import forgive
from reenact.boundary.tape import Site, Source
from reenact.contracts.integration import Integration, PatchSet

_SEED: Final = Site(key="duckdb:connection random", source=Source(name="duckdb random"))


def _seed(connection: Any) -> None:
    if not tape.is_on():
        return
    try:
        seed = tape.draw(_SEED, lambda: SystemRandom().getrandbits(24))
        connection.execute("select setseed(?)", [seed / (1 << 23) - 1]).fetchall()  # which takes -1 to 1
    except Exception:
        forgive("duckdb_connections.seed")


def _gives_connection(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def connect(*args: Any, **kwargs: Any) -> Any:
        connection = original(*args, **kwargs)
        _seed(connection)
        return connection

    return connect


def _install(patches: PatchSet) -> None:
    patches.when_imported("duckdb", lambda module: _install_in(patches, module))


def _install_in(patches: PatchSet, duckdb: Any) -> None:
    patches.replace(duckdb, "connect", _gives_connection)
    for name in ("cursor", "duplicate"):
        patches.replace(duckdb.DuckDBPyConnection, name, _gives_connection)
    if tape.is_on():
        _seed(duckdb.default_connection())


INTEGRATION = Integration(name="duckdb_connections", libraries=("duckdb",), install=_install, hooks=("duckdb",))
