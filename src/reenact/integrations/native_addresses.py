"""Machine code that Python calls by its address: `ctypes` raises no audit event for it.

A function of a library is asked for by its name, and Python says so. A number that is made a function is asked for by
nobody; it says so by an audit event of ours, and whoever listens to Python's own events hears it as one of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

from reenact.boundary.touches import ADDRESS
from reenact.contracts.integration import Integration, PatchSet


def _factory(original: Callable[..., type]) -> Callable[..., type]:
    """Have each type of functions that is made say so when a number becomes one of it."""

    @wraps(original)
    def factory(*args: Any, **kwargs: Any) -> type:
        kind = original(*args, **kwargs)
        if "__new__" not in vars(kind):
            kind.__new__ = _telling(kind.__new__)
        return kind

    return factory


def _telling(original: Callable[..., Any]) -> Any:
    def __new__(kind: type, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - it is that method
        if args and isinstance(args[0], int):
            sys.audit(ADDRESS, args[0])
        return original(kind, *args, **kwargs)

    return staticmethod(__new__)


def _cast(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def cast(obj: Any, typ: Any) -> Any:
        import _ctypes  # ours is called by whoever has it

        if isinstance(typ, type) and issubclass(typ, _ctypes.CFuncPtr) and not isinstance(obj, _ctypes.CFuncPtr):
            sys.audit(ADDRESS, obj if isinstance(obj, int) else 0)
        return original(obj, typ)

    return cast


def _install(patches: PatchSet) -> None:
    def cut(module: Any) -> None:
        for name in ("CFUNCTYPE", "PYFUNCTYPE"):
            patches.replace(module, name, _factory)
        patches.replace(module, "cast", _cast)

    patches.when_imported("ctypes", cut)


INTEGRATION = Integration(name="native_addresses", libraries=("ctypes",), install=_install)
