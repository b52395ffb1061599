"""What the agent's own code looks up: variables of the environment, and files that are not there.

Variables are read by `os.environ[…]`, `get`, `in` and `os.getenv`. Who goes through all of it, as for a child's
environment, reads no one variable, and sees none of ours where it is the agent's own code: they differ in a replay.

That a file is not there (`os.path.exists`, `Path.exists`) an audit event tells, since a replay may find one. That it is
there says nothing that its being read does not say.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable
from functools import wraps
from opcode import opmap
from pathlib import Path
from sys import _getframe  # pyright: ignore[reportPrivateUsage] - what the running code is called costs least so
from types import FrameType
from typing import Any, Final, cast

from reenact.boundary import door, variables
from reenact.boundary.forgiving import forgive
from reenact.boundary.own_code import is_own_code
from reenact.boundary.tape import Sites, Source
from reenact.boundary.touches import ABSENT
from reenact.contracts.integration import Integration, PatchSet

_SITES: Final = Sites(Source(name="os.environ"), libraries=False)
_FOR_ONE: Final = frozenset({"get", "__contains__", "getenv", "setdefault", "pop"})
"""What Python's own code is called that reads one variable for its caller."""
_STDLIB: Final = sysconfig.get_path("stdlib") + os.sep
_PYTHONS: Final = (f"{_STDLIB}os.py", f"{_STDLIB}_collections_abc.py", "<frozen os>", "<frozen _collections_abc>")
_INDEXES: Final = frozenset(opmap[name] for name in ("BINARY_SUBSCR", "BINARY_OP") if name in opmap)


def _reads_one(frame: FrameType | None) -> bool:
    """Tell whether the agent's own code asks for this very variable."""
    through = False
    while frame is not None and frame.f_code.co_name in _FOR_ONE and frame.f_code.co_filename.startswith(_PYTHONS):
        through, frame = True, frame.f_back
    if frame is None or _SITES.of(frame) is None:
        return False
    return through or frame.f_code.co_code[frame.f_lasti] in _INDEXES


def _item(original: Callable[..., str]) -> Callable[..., str]:
    @wraps(original)
    def __getitem__(self: Any, key: str) -> str:  # noqa: N807 - it is that method
        try:
            if variables.is_new(key) and self is os.environ and _reads_one(_getframe().f_back):
                variables.note(key)
        except Exception:
            forgive("variables.item")
        return original(self, key)

    return __getitem__


def _goes_through(environ: Any, frame: FrameType | None) -> set[Any]:
    """List what the agent's own code is not to see where it goes through the environment; nothing for others."""
    try:
        while frame is not None and frame.f_code.co_filename.startswith(_PYTHONS) and _is_of_mapping(frame):
            frame = frame.f_back
        if _SITES.of(frame) is None or "uvloop" in sys.modules:  # its children get the environment that they are given
            return set()
        names = variables.set_by_us()
        if environ is os.environ:
            return names
        return {os.fsencode(name) for name in names} if environ is getattr(os, "environb", None) else set()
    except Exception:
        forgive("variables.goes_through")
        return set()


def _is_of_mapping(frame: FrameType) -> bool:
    code = frame.f_code
    return "_collections_abc" in code.co_filename or code.co_qualname.startswith("_Environ.")


def _names(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def __iter__(self: Any) -> Any:  # noqa: N807 - it is that method
        hidden = _goes_through(self, _getframe().f_back)
        return iter([name for name in original(self) if name not in hidden]) if hidden else original(self)

    return __iter__


def _count(original: Callable[..., int]) -> Callable[..., int]:
    @wraps(original)
    def __len__(self: Any) -> int:  # noqa: N807 - it is that method
        return original(self) - len(_goes_through(self, _getframe().f_back))

    return __len__


def _spelled(original: Callable[..., str]) -> Callable[..., str]:
    @wraps(original)
    def __repr__(self: Any) -> str:  # noqa: N807 - it is that method
        hidden = _goes_through(self, _getframe().f_back)
        if not hidden:
            return original(self)
        return f"environ({ {name: self[name] for name in self if name not in hidden} })"

    return __repr__


def _looks(original: Callable[..., bool]) -> Callable[..., bool]:
    """Wrap what tells whether a file is there."""

    @wraps(original)
    def is_there(path: Any, *args: Any, **kwargs: Any) -> bool:
        answer = original(path, *args, **kwargs)
        if not answer and door.is_kept():
            try:
                _tell_absent(path, _getframe().f_back)
            except Exception:
                forgive("variables.absent")
        return answer

    return is_there


def _tell_absent(path: Any, frame: FrameType | None) -> None:
    if isinstance(path, str | os.PathLike) and frame is not None and is_own_code(frame.f_code, frame.f_globals):
        name = os.fsdecode(cast("str | os.PathLike[str]", path))
        if not os.path.lexists(name):
            sys.audit(ABSENT, os.path.abspath(name))  # noqa: PTH100 - a link stays one


def _install(patches: PatchSet) -> None:
    patches.replace(type(os.environ), "__getitem__", _item)
    for name, make in (("__iter__", _names), ("__len__", _count), ("__repr__", _spelled)):
        patches.replace(type(os.environ), name, make)
    for name in ("exists", "isfile", "isdir"):
        patches.replace(os.path, name, _looks)
    for name in ("exists", "is_file", "is_dir"):
        patches.replace(Path, name, _looks)


INTEGRATION = Integration(name="variables", libraries=("os",), install=_install)
