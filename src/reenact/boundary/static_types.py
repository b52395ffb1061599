"""Replacing an attribute of a class that is written in C, such as `datetime.datetime.now`.

Such a class takes no assignment, and a subclass in its place would not be it: `type(now()) is datetime` would fail,
`from datetime import datetime` would have the old one, pydantic and pickle would see two. So the entry in the class's
own dictionary is exchanged, and the interpreter told to forget what it looked up there (`PyType_Modified`, CPython C
API): the class stays the same object, and every reference to it sees the change. The reference to that dictionary
comes from the garbage collector, which reports what the read-only view of it refers to.

This rests on how CPython holds classes, so it is done only on versions that it was tried on.
"""

from __future__ import annotations

import gc
import sys
from typing import Any, cast

_TRIED = ((3, 11), (3, 12), (3, 13))


def unsupported() -> str:
    """Say why this interpreter's classes cannot be opened; empty where they can."""
    name, version = sys.implementation.name, ".".join(map(str, sys.version_info[:2]))
    if name != "cpython":
        return f"not tried on {name}"
    if sys.version_info[:2] not in _TRIED:
        return f"not tried on Python {version}"
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return f"not tried on Python {version} without the global lock"
    return ""


class OpenType:
    """Stands for a class and takes assignments: `vars`, `getattr` and `setattr` on it are those of the class."""

    def __init__(self, cls: type) -> None:
        object.__setattr__(self, "_cls", cls)

    @property
    def __dict__(self) -> Any:  # type: ignore[override]  # an attribute of `type`, given another way
        return vars(self._opened_class())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opened_class(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        import ctypes

        cls = self._opened_class()
        view = vars(cls)
        referents = gc.get_referents(view)
        if len(referents) != 1 or type(referents[0]) is not dict:
            raise TypeError(f"the dictionary of {cls.__qualname__} cannot be reached")
        table = cast("dict[str, Any]", referents[0])
        before = table.get(name)  # held until no cache of another thread's can hand it out any more
        table[name] = value
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(cls))
        del before
        if vars(cls).get(name) is not value:
            raise TypeError(f"{cls.__qualname__}.{name} cannot be replaced")

    def _opened_class(self) -> type:
        return cast("type", object.__getattribute__(self, "_cls"))
