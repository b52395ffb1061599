"""Where an application object comes from, so that it can be made again: `module:attribute`, or a factory.

Servers say under which name they loaded an application; otherwise the loaded modules are searched for the one that
holds it. Nothing is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from reenact.boundary.installed import CODE
from reenact.values.json import Json, compact

_INNER = ("app", "application", "wsgi_app", "asgi_app", "__wrapped__")
"""Under which names middleware keeps the application that it stands around."""
_PROGRAM = frozenset({"__main__", "__mp_main__"})
"""Names of the module that is run: another one that holds the same can be imported without running it."""
_DEEPEST = 20
_REMEMBERED = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """How to make an application again."""

    name: str
    """`module:attribute`, dots allowed on both sides; or `module:factory(…)` as gunicorn takes it."""
    factory: bool = False
    """What the name leads to is called, with nothing, to make the application."""
    file: str | None = None
    """The file of the module where it was run as a program, and so cannot be imported by a name."""

    def to_json(self, interface: str) -> dict[str, Json]:
        """Spell it for the root of a run, with where modules were found."""
        spelling: dict[str, Json] = {"interface": interface, "import": self.name, "path": [*search_path()]}
        if self.factory:
            spelling["factory"] = True
        if self.file is not None:
            spelling["file"] = self.file
        return spelling


_spelled: dict[int, tuple[Any, str]] = {}
_known: dict[int, tuple[Any, Origin | None]] = {}
"""By identity; the object is held, so that its identity stays its own."""


def note(app: Any, name: object, *, factory: bool = False) -> None:
    """Hear from a server under which name it loaded `app`; anything but `module:…` says nothing."""
    if isinstance(name, str) and ":" in name:
        is_factory = factory or not (name.endswith(")") or _attribute(name) is app)
        _known[id(app)] = app, Origin(name=name, factory=is_factory)


def of(app: Any) -> Origin | None:
    """Say where `app` comes from, or the application inside of it; None where it has no name."""
    for each in _chain(app):
        entry = _known.get(id(each))
        origin = entry[1] if entry is not None else _remember(each, _search(each))
        if origin is not None:
            return origin
    return None


def spelled(app: Any, interface: str) -> str:
    """Spell as JSON how `app` is made again, its name null where it has none; once for each application."""
    entry = _spelled.get(id(app))
    if entry is not None and entry[0] is app:
        return entry[1]
    origin = of(app)
    nameless: dict[str, Json] = {"interface": interface, "import": None, "path": [*search_path()]}
    text = compact(origin.to_json(interface) if origin is not None else nameless)
    if len(_spelled) < _REMEMBERED:
        _spelled[id(app)] = app, text
    return text


def _chain(app: Any) -> Iterator[Any]:
    """Give `app` and, one by one, what it stands around: a server or an agent may have wrapped it."""
    for _ in range(_DEEPEST):
        yield app
        inner_app: Any = None
        for name in _INNER:
            with suppress(Exception):  # an attribute access of the host's
                inner_app = getattr(app, name, None)
            if callable(inner_app):
                break
        if not callable(inner_app) or inner_app is app:
            return
        app = inner_app


def _remember(app: Any, origin: Origin | None) -> Origin | None:
    if len(_known) < _REMEMBERED:  # a program that makes an application for each request is searched each time
        _known[id(app)] = app, origin
    return origin


def _search(app: Any) -> Origin | None:
    """Find the module that holds `app`, the agent's own ones before libraries."""
    candidates: list[tuple[bool, bool, str, str]] = []
    for name, module in tuple(sys.modules.items()):
        if type(module) is not ModuleType:  # a lazy or stand-in module runs code of its own
            continue
        for attribute, value in tuple(vars(module).items()):
            if value is app and attribute.isidentifier():
                candidates.append((_is_library(module), name in _PROGRAM, name, attribute))
    if not candidates:
        return None
    *_, module_name, attribute = min(candidates)
    if module_name not in _PROGRAM:
        return Origin(name=f"{module_name}:{attribute}")
    program = sys.modules[module_name]
    spec = getattr(program, "__spec__", None)
    if spec is not None and spec.name not in _PROGRAM:  # python -m package.module
        return Origin(name=f"{spec.name}:{attribute}")
    source = getattr(program, "__file__", None)
    return Origin(name=f"__main__:{attribute}", file=str(Path(source).absolute()) if source else None)


def _is_library(module: ModuleType) -> bool:
    return str(getattr(module, "__file__", None) or "").startswith(CODE)


def _attribute(name: str) -> Any:
    """Look `module:attribute` up among the loaded modules."""
    module_name, _, path = name.partition(":")
    member: Any = sys.modules.get(module_name)
    for part in path.split("."):
        member = getattr(member, part, None)
    return member


def search_path() -> list[str]:
    """List where modules of the agent's own are searched for: `sys.path` less the folders of Python and of ours."""
    here = Path.cwd()
    folders = [f"{here / each}" for each in sys.path]
    return [each for each in folders if not f"{each}/".startswith(CODE) and not each.endswith(".zip")]
