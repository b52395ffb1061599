"""Find the members of a family by looking: the modules in its folder, and what installed plug-ins announce.

There is no central list. A module joins the family `formats` by lying in `reenact/formats` and declaring one constant
of the family's kind; another distribution joins by an entry point in the group `reenact_formats` that names such a
constant, or a module that declares one.
"""

from __future__ import annotations

import functools
import importlib
import logging
import pkgutil
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")

_GROUP = "reenact_"
_log = logging.getLogger("reenact.discover")


def members(family: str, kind: type[T]) -> tuple[T, ...]:
    """Give every constant of type `kind` that the family declares, built-in ones first, each part in name order.

    `family` is the name of a package in `reenact`, such as `formats`. The answer is found once for each process and
    kept. A plug-in that fails is left out and told to the logger `reenact.discover`, never raised: this runs while an
    agent starts. A built-in member that fails is a defect of ours and raises what it raises.
    """
    return cast("tuple[T, ...]", _members(family, kind))


@functools.cache
def _members(family: str, kind: type[object]) -> tuple[object, ...]:
    folder = importlib.import_module(f"reenact.{family}")
    names = sorted(found.name for found in pkgutil.iter_modules(folder.__path__))
    modules = [importlib.import_module(f"{folder.__name__}.{name}") for name in names]
    declared = [constant for module in modules for constant in _declared(module, kind)]
    declared += [constant for point in _plugins(family) for constant in _announced(point, kind)]
    return tuple({id(constant): constant for constant in declared}.values())


def _declared(module: ModuleType, kind: type[object]) -> list[object]:
    return [value for value in vars(module).values() if isinstance(value, kind)]


def _announced(point: EntryPoint, kind: type[object]) -> list[object]:
    try:
        loaded = point.load()
        found = _declared(loaded, kind) if isinstance(loaded, ModuleType) else [loaded]
    except (Exception, SystemExit) as failure:
        _refuse(point, f"{type(failure).__name__}: {failure}")
        return []
    if not found or not all(isinstance(value, kind) for value in found):
        _refuse(point, f"it declares no {kind.__name__}")
        return []
    return found


def _refuse(point: EntryPoint, why: str) -> None:
    _log.warning(
        "plug-in %r in group %r (%s) is left out: %s. Update or uninstall its distribution to be rid of this line.",
        point.name,
        point.group,
        point.value,
        why,
    )


def _plugins(family: str) -> list[EntryPoint]:
    group = _GROUP + family
    return sorted((point for point in _entry_points() if point.group == group), key=lambda point: point.name)


@functools.cache
def _entry_points() -> tuple[EntryPoint, ...]:
    """Read the entry points of every distribution that mentions one of our groups.

    `importlib.metadata.entry_points()` parses the file of every installed distribution; looking for the group's name
    in the text first is several times faster, and most environments have no plug-in at all.
    """
    from importlib.metadata import distributions  # tens of milliseconds, unless something else has paid for it already

    found: dict[tuple[str, str], EntryPoint] = {}
    try:
        for distribution in distributions():
            if f"[{_GROUP}" in (distribution.read_text("entry_points.txt") or ""):
                for point in distribution.entry_points:
                    found.setdefault((point.group, point.name), point)  # the first on the path wins, as with imports
    except Exception as failure:
        _log.warning("plug-ins cannot be listed: %s: %s", type(failure).__name__, failure)
    return tuple(found.values())
