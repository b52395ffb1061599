"""Find the members of a family by looking: the modules in its folder, and what installed plug-ins announce.

There is no central list. A module joins the family `formats` by lying in `reenact/formats` and declaring one constant
of the family's kind; another distribution joins by an entry point in the group `reenact_formats` that names such a
constant, or a module that declares one.

Theory of operation. Loading a whole family costs more than most commands do with it, so `families.json` repeats what
members say of themselves (`outline`): a name, and by what marks a file or span of theirs is known. `entries` gives
outlines; a member is loaded when it may be the one. The file is made of the modules by `make index`, and a test fails
where it differs from them. A module that it does not name is loaded, so a new member works before it is indexed.
"""

from __future__ import annotations

import functools
import importlib
import logging
import os
import pkgutil
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from reenact.values.json import Json, parse

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
X = TypeVar("X")
X_contra = TypeVar("X_contra", contravariant=True)


class Recognising(Protocol):
    """A member that says how sure it is, 0 to 1, that something is of its kind."""

    @property
    def recognises(self) -> Callable[[Any], float]:
        """How sure it is."""
        ...


class Marks(Protocol[X_contra]):
    """What a member goes by."""

    def on(self, what: X_contra, /) -> bool:
        """Tell whether one of the marks is there. Where none is, the member recognises nothing."""
        ...


R = TypeVar("R", bound=Recognising)

INDEX = Path(__file__).with_name("families.json")
INDEXED = ("dialects", "formats", "integrations", "shapes", "stores")
"""The families of which the index tells: those that every start goes through, and needs little of."""
_GROUP = "reenact_"
_CONTRACTS = "reenact.contracts."
_log = logging.getLogger("reenact.discover")


def members(family: str, kind: type[T]) -> tuple[T, ...]:
    """Give every constant of type `kind` that the family declares, built-in ones first, each part in name order.

    `family` is the name of a package in `reenact`, such as `formats`. The answer is found once for each process and
    kept. A plug-in that fails is left out and told to the logger `reenact.discover`, never raised: this runs while an
    agent starts. A built-in member that fails is a defect of ours and raises what it raises.
    """
    return cast("tuple[T, ...]", _members(family, kind))


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """A member of a family that may not be loaded yet."""

    outline: dict[str, Any]
    """What the member says of itself; empty for a kind that says nothing."""
    load: Callable[[], T]
    """Give the member, its module imported now where it was not."""


def entries(family: str, kind: type[T]) -> tuple[Entry[T], ...]:
    """Give an entry for each of `members`, in the same order, and load none that the index tells of."""
    return cast("tuple[Entry[T], ...]", _entries(family, kind))


@dataclass(frozen=True, slots=True)
class Candidate(Generic[R, X]):
    """A member that may recognise something, and may not be loaded yet."""

    entry: Entry[R]
    marks: Marks[X] | None
    """What it goes by; None where it has to be asked."""
    most: float
    """How sure it ever is."""
    place: int
    """Where it stands in its family: of two that are as sure, the first is taken."""

    def sure(self, what: X) -> float:
        """Say how sure the member is; it is loaded where one of its marks is there."""
        return 0.0 if self.marks is not None and not self.marks.on(what) else self.entry.load().recognises(what)


def candidates(family: str, kind: type[R], read: Callable[[dict[str, Any]], Marks[X]]) -> tuple[Candidate[R, X], ...]:
    """Give every member of a family that recognises things, those that can be surest first.

    `read` reads the marks that an outline tells.
    """
    recognisers = [
        Candidate(
            entry=entry,
            marks=read(entry.outline["marks"]) if entry.outline["marks"] is not None else None,
            most=entry.outline["most"],
            place=place,
        )
        for place, entry in enumerate(entries(family, kind))
    ]
    return tuple(sorted(recognisers, key=lambda each: -each.most))


def surest(among: Iterable[Candidate[R, X]], what: X) -> tuple[float, R | None]:
    """Give the member that is surest of something, and how sure it is; 0 and None where none recognises it.

    The same as asking every member, but whoever cannot be surer than the one that is found is not asked.
    """
    chosen: Candidate[R, X] | None = None
    best = 0.0
    for each in among:
        if best > each.most:
            break
        if chosen is not None and best == each.most and each.place > chosen.place:
            continue
        sure = each.sure(what)
        if sure > best or (chosen is not None and sure == best and each.place < chosen.place):
            chosen, best = each, sure
    return best, chosen.entry.load() if chosen is not None else None


@functools.cache
def _members(family: str, kind: type[object]) -> tuple[object, ...]:
    folder, names = _modules(family)
    modules = [importlib.import_module(f"{folder}.{name}") for name in names]
    declared = [constant for module in modules for constant in _declared(module, kind)]
    declared += [constant for point in _plugins(family) for constant in _announced(point, kind)]
    return tuple({id(constant): constant for constant in declared}.values())


@functools.cache
def _entries(family: str, kind: type[object]) -> tuple[Entry[object], ...]:
    folder, names = _modules(family)
    index = _index().get(family, {})
    family_entries: list[Entry[object]] = []
    for name in names:
        if name in index:
            module_outlines = index[name]
            family_entries += [
                Entry(row["outline"], _loading(f"{folder}.{name}", each))
                for each, row in module_outlines.items()
                if row["kind"] == kind.__name__
            ]
        else:
            family_entries += map(_loaded, _declared(importlib.import_module(f"{folder}.{name}"), kind))
    announced = [constant for point in _plugins(family) for constant in _announced(point, kind)]
    family_entries += map(_loaded, {id(constant): constant for constant in announced}.values())
    return tuple(family_entries)


def _modules(family: str) -> tuple[str, list[str]]:
    folder = importlib.import_module(f"reenact.{family}")
    return folder.__name__, sorted(module.name for module in pkgutil.iter_modules(folder.__path__))


@functools.cache
def _index() -> dict[str, dict[str, dict[str, dict[str, Any]]]]:
    """Read the index; empty, so that everything is loaded, where it cannot be read."""
    with suppress(OSError, ValueError):
        return cast("dict[str, dict[str, dict[str, dict[str, Any]]]]", parse(INDEX.read_bytes()))
    return {}


def outlines() -> dict[str, Json]:
    """Make the index anew: family to module to constant to its kind and outline, for the families in `INDEXED`."""
    return {family: _outlines_of(family) for family in INDEXED}


def _outlines_of(family: str) -> dict[str, Json]:
    folder, names = _modules(family)
    seen_ids = set[int]()
    family_outlines: dict[str, Json] = {}
    for name in names:
        module_outlines: dict[str, Json] = {}
        for each, constant in vars(importlib.import_module(f"{folder}.{name}")).items():
            kind = cast("type[object]", type(constant))
            if kind.__module__.startswith(_CONTRACTS) and id(constant) not in seen_ids:
                seen_ids.add(id(constant))
                module_outlines[each] = {"kind": kind.__name__, "outline": _outline(constant)}
        family_outlines[name] = module_outlines
    return family_outlines


def _outline(constant: object) -> dict[str, Json]:
    tell: Callable[[], dict[str, Json]] | None = getattr(constant, "outline", None)
    return tell() if tell is not None else {}


def _loaded(constant: object) -> Entry[object]:
    return Entry(_outline(constant), lambda: constant)


def _loading(module: str, constant: str) -> Callable[[], object]:
    return lambda: getattr(importlib.import_module(module), constant)


def _declared(module: ModuleType, kind: type[object]) -> list[object]:
    return [value for value in vars(module).values() if isinstance(value, kind)]


def _announced(point: EntryPoint, kind: type[object]) -> list[object]:
    try:
        loaded = point.load()
        constants = _declared(loaded, kind) if isinstance(loaded, ModuleType) else [loaded]
    except (Exception, SystemExit) as failure:
        _refuse(point, f"{type(failure).__name__}: {failure}")
        return []
    if not constants or not all(isinstance(value, kind) for value in constants):
        _refuse(point, f"it declares no {kind.__name__}")
        return []
    return constants


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
    if not _may_announce():
        return ()
    from importlib.metadata import distributions

    points: dict[tuple[str, str], EntryPoint] = {}
    try:
        for distribution in distributions():
            if f"[{_GROUP}" in (distribution.read_text("entry_points.txt") or ""):
                for point in distribution.entry_points:
                    points.setdefault((point.group, point.name), point)  # the first on the path wins, as with imports
    except Exception as failure:
        _log.warning("plug-ins cannot be listed: %s: %s", type(failure).__name__, failure)
    return tuple(points.values())


def _may_announce() -> bool:
    """Tell, without importing `importlib.metadata` (tens of milliseconds), whether a distribution may have a plug-in.

    True where in doubt: for whatever is no plain folder of distributions.
    """
    if any(finder is not PathFinder and hasattr(finder, "find_distributions") for finder in sys.meta_path):
        return True
    return any(map(_may_announce_in, dict.fromkeys(sys.path)))


def _may_announce_in(place: str) -> bool:
    try:
        with os.scandir(place or ".") as listing:
            names = [
                entry.name for entry in listing if entry.name.lower().endswith((".dist-info", ".egg-info", ".egg"))
            ]
    except NotADirectoryError:
        return True  # a zip file
    except OSError:
        return False
    return any(name.lower().endswith(".egg") or _mentions(Path(place, name, "entry_points.txt")) for name in names)


def _mentions(path: Path) -> bool:
    try:
        return f"[{_GROUP}".encode() in path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
