"""Which code is the agent's own: not Python's, not an installed library's, not ours.

An agent that is itself installed counts as its own where the program was started from it, by `python -m` or by a
script that its installer made.
"""

from __future__ import annotations

import inspect
import os
import sys
import sysconfig
import weakref
from functools import lru_cache
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from reenact.boundary.installed import CODE, OURS, PACKAGES
from reenact.boundary.touches import is_code

_SCRIPTS = f"{sysconfig.get_path('scripts')}{os.sep}"


@lru_cache(maxsize=1 << 16)
def is_own_file(path: str) -> bool:
    """Tell whether code of this file is the agent's own, as far as a path says it."""
    if path.startswith("<"):
        return path in {"<stdin>", "<string>"} or path.startswith(("<ipython", "<doctest"))
    return not is_code(path) and not path.startswith(_SCRIPTS)


_started: list[tuple[weakref.ref[ModuleType], frozenset[str]]] = []
"""What was found last. The program's module is not held: it would outlive its end, and what it holds would with it."""


def is_of_package(path: str) -> bool:
    """Tell whether code of this file is an installed package's, or ours."""
    return path.startswith((*PACKAGES, OURS))


def _started_from(main: ModuleType | None) -> frozenset[str]:
    """Name the top-level packages that the program was started from."""
    if main is None:
        return frozenset()
    if _started and _started[0][0]() is main:
        return _started[0][1]
    packages = _named_by(main)
    _started[:] = [(weakref.ref(main), packages)]
    return packages


def _named_by(main: ModuleType) -> frozenset[str]:
    names = {getattr(getattr(main, "__spec__", None), "name", None) or ""}
    if str(getattr(main, "__file__", "") or "").startswith(_SCRIPTS):
        names |= {each.__module__ for each in vars(main).values() if isinstance(each, FunctionType)}
    return frozenset(name.partition(".")[0] for name in names if name) - {"__main__", "reenact", *_BUILT_IN}


_BUILT_IN = sys.stdlib_module_names


def is_own_module(name: object, file: object) -> bool:
    """Tell whether a module of this `__name__` and `__file__` is the agent's own."""
    if not isinstance(name, str):
        return False
    if isinstance(file, str) and is_own_file(file):
        return True
    if name == "__main__":
        return not isinstance(file, str) or file.startswith("<")
    return name.partition(".")[0] in _started_from(sys.modules.get("__main__"))


def is_own_globals(namespace: dict[str, Any]) -> bool:
    """Tell whether code that runs in this namespace is the agent's own."""
    return is_own_module(namespace.get("__name__"), namespace.get("__file__"))


def is_own_function(fn: FunctionType) -> bool:
    """Tell whether a function is the agent's own."""
    return is_own_code(fn.__code__, fn.__globals__)


def is_own_code(code: CodeType, namespace: dict[str, Any]) -> bool:
    """Tell whether code, run in this namespace, is the agent's own; what a library generated is not."""
    name = code.co_filename
    if name.startswith("<") and not is_own_file(name):
        return False
    return is_own_globals(namespace)


def own_frame(frame: FrameType | None) -> FrameType | None:
    """Find the innermost frame of the agent's own code from one on; None where there is none."""
    while frame is not None and not is_own_code(frame.f_code, frame.f_globals):
        frame = frame.f_back
    return frame


def is_own_class(cls: type) -> bool:
    """Tell whether a class is the agent's own."""
    name = cls.__module__
    if name in _BUILT_IN and name != "__main__":
        return False
    module = sys.modules.get(name)
    return module is not None and is_own_module(name, getattr(module, "__file__", None))


def own_modules() -> list[ModuleType]:
    """List the agent's own modules that are loaded."""
    loaded: list[tuple[str, Any]] = list(sys.modules.items())  # anything may stand there
    started = _started_from(sys.modules.get("__main__"))
    own: list[ModuleType] = []
    for name, module in loaded:  # large programs have thousands, and this is asked often
        if not issubclass(type(module), ModuleType):
            continue
        file = module.__dict__.get("__file__")
        by_name = started or name == "__main__"
        if (type(file) is str and is_own_file(file)) or (by_name and is_own_module(name, file)):
            own.append(module)
    return own


def own_line() -> str:
    """Name the innermost line on this thread's stack that is the agent's own, as `file:line`; "" where there is none.

    Code typed in (`python -c`, standard input) counts where no file does. In a program that is itself installed, the
    innermost line of any package counts, where the agent's own modules have none.
    """
    frame = inspect.currentframe()
    typed_in = package = ""
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith((*CODE, "<")):
            return f"{name}:{frame.f_lineno}"
        if not typed_in and name in {"<string>", "<stdin>"}:
            typed_in = f"{name}:{frame.f_lineno}"
        if not package and name.startswith(PACKAGES) and not name.startswith(OURS):
            package = f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return typed_in or package


_LOADERS = frozenset({"importlib", "linecache", "tokenize", "inspect", "traceback", "runpy", "zipimport", "pkgutil"})
"""Modules that read files for the interpreter, or for who shows the source of something."""
_DEEPEST = 60
"""Frames between an opening and the agent's own code that are looked at."""


def opens_data(path: str, folder: str) -> bool:
    """Tell whether the agent's own code opens a file as data: prompts, settings, tables, what it wrote before.

    What a loader reads is none, nor a module's source. What a library opens for the agent
    (`pandas.read_csv`) is data below `folder`, where the program was started.
    """
    by_library = False
    frame = inspect.currentframe()
    for _ in range(_DEEPEST):
        if frame is None:
            return False
        name = frame.f_globals.get("__name__")
        if isinstance(name, str) and not name.startswith("reenact."):
            if name.partition(".")[0] in _LOADERS:
                return False
            if is_own_code(frame.f_code, frame.f_globals):
                below = path.startswith(f"{folder}{os.sep}")
                return (below or not by_library) and not (path.endswith(".py") and _is_loaded(path))
            by_library = by_library or is_of_package(frame.f_code.co_filename)
        frame = frame.f_back
    return False


def _is_loaded(path: str) -> bool:
    return any(getattr(module, "__file__", None) == path for module in [*sys.modules.values()])
