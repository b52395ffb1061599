"""What names the code uses that an entry of the agent's can reach: the function that does a job, a message.

Reached is every function of the agent's whose name such code uses, and what collections that it names hold. Where a
name is computed, or an object of a library's is named that may hold functions of the agent's, everything counts.
"""

from __future__ import annotations

from types import CodeType, FunctionType, MethodType
from typing import Any, Final, cast

from reenact.boundary.code_facts import code_facts
from reenact.boundary.harmless import is_listed_class
from reenact.boundary.lasting import MEMORY, PLAIN, Named, functions_behind
from reenact.boundary.own_code import is_own_class, own_modules
from reenact.boundary.roots import CACHE, CODE, COLLECTIONS, kind_of

_MANY: Final = 1_000
"""Members of a collection that are looked at."""
_ASKED: Final = frozenset(
    {"openai", "anthropic", "httpx", "httpx2", "requests", "logging", "re", "_thread", "threading"}
)
"""Libraries whose objects hold no function of the agent's."""
_ANYTHING: Final = frozenset({"globals", "eval", "exec", "__dict__", "vars", "attrgetter", "methodcaller"})


class Entries:
    """What each entry reaches, found out once as long as no module is loaded."""

    def __init__(self) -> None:
        self._known: dict[CodeType, frozenset[str] | None] = {}
        self._bound: dict[str, list[Any]] = {}
        """By name: what variables of the agent's modules and attributes of its classes stand for."""

    def know(self, named: Named) -> None:
        """Take in the agent's modules as they are now."""
        self._known.clear()
        self._bound = {}
        for module in own_modules():
            for name, value in [*vars(module).items()]:
                self._bound.setdefault(name, []).append(value)
                if issubclass(kind_of(value), type) and is_own_class(value):
                    for key, held in [*cast("dict[str, Any]", vars(value)).items()]:
                        self._bound.setdefault(key, []).append(held)
        for fn in named.codes.values():
            self._bound.setdefault(fn.__name__, []).append(fn)

    def reached(self, entry: object) -> frozenset[str] | None:
        """Give the names that code behind an entry uses; None where it may use any."""
        fn = entry.__func__ if isinstance(entry, MethodType) else entry
        if not isinstance(fn, FunctionType):
            return None
        if fn.__code__ not in self._known:
            self._known[fn.__code__] = self._walk(fn)
        return self._known[fn.__code__]

    def _walk(self, entry: FunctionType) -> frozenset[str] | None:
        names, codes, left = set[str](), set[CodeType](), [*_functions(entry)]
        while left:
            fn = left.pop()
            if fn.__code__ in codes:
                continue
            codes.add(fn.__code__)
            facts = code_facts(fn.__code__)
            used = facts.variables | facts.attributes | facts.stored | facts.set_attributes | {*fn.__code__.co_freevars}
            if facts.computed or not used.isdisjoint(_ANYTHING):
                return None
            held = [*(cell.cell_contents for cell in fn.__closure__ or () if _is_filled(cell))]
            held += [*(fn.__defaults__ or ()), *(fn.__kwdefaults__ or {}).values()]
            held += [value for name in used - names for value in self._bound.get(name, ())]
            names |= used
            for value in held:
                found = _code_in(value)
                if found is None:
                    return None
                left += found
        return frozenset(names | {MEMORY})


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - whether it is there is asked
    except ValueError:
        return False
    return True


def _functions(value: Any) -> list[FunctionType]:
    return [*functions_behind(value)]


def _code_in(value: Any) -> list[FunctionType] | None:
    """Give the agent's functions that can be called by what a name stands for; None where nobody knows."""
    kind = kind_of(value)
    if kind in PLAIN:
        return []
    if issubclass(kind, type):  # its methods are reached by their names, those that Python calls with it
        if is_own_class(value) and not all(map(_is_plain_base, value.__mro__)):
            return None  # as below
        table = cast("dict[str, Any]", vars(value)) if is_own_class(value) else {}
        return [fn for name, held in [*table.items()] if name.startswith("__") for fn in functions_behind(held)]
    if issubclass(kind, CODE) or kind is CACHE:
        return _functions(value)
    if issubclass(kind, COLLECTIONS):
        members = [*dict[Any, Any].values(value)] if issubclass(kind, dict) else [*value]
        if len(members) > _MANY or any(
            type(each) not in PLAIN and issubclass(kind_of(each), COLLECTIONS) and _deep(each) for each in members
        ):
            return None
        found: list[FunctionType] = []
        for each in members:
            inside = _code_in(each) if not issubclass(kind_of(each), COLLECTIONS) else []
            if inside is None:
                return None
            found += inside
        return found
    if is_own_class(kind):
        if not all(map(_is_plain_base, kind.__mro__)):
            return None  # a library calls its methods by names that no code of the agent's spells
        return [fn for name, held in [*vars(kind).items()] if name.startswith("__") for fn in functions_behind(held)]
    if kind.__module__.partition(".")[0] in _ASKED or is_listed_class(kind):
        return []
    return None


def _is_plain_base(base: type) -> bool:
    return base is object or is_own_class(base) or is_listed_class(base) or issubclass(base, BaseException)


def _deep(value: Any) -> bool:
    """Tell whether a collection holds anything but plain data."""
    members = [*dict[Any, Any].values(value)] if issubclass(kind_of(value), dict) else [*value]
    return any(
        type(each) not in PLAIN and (not issubclass(kind_of(each), COLLECTIONS) or _deep(each))
        for each in members[:_MANY]
    )
