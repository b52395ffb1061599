"""The agent's own objects to which no variable of its modules leads: a framework made them, or keeps them.

A middleware of Starlette's or Django's, a service in `app.state`, an extension of Flask's, a route that a factory made
and that closes over a list. They are looked for among all objects of the process, which takes tens of milliseconds, and
only while no unit is under way: what a unit makes for itself would count else. None is kept alive by being known.
"""

from __future__ import annotations

import gc
import weakref
from collections import Counter, deque
from collections.abc import Iterator
from enum import Enum
from functools import partial
from types import FunctionType
from typing import Any, Final, cast

from reenact.boundary.library_state import is_store
from reenact.boundary.own_code import is_own_class, is_own_function, own_modules
from reenact.boundary.roots import COLLECTIONS, attribute, dict_of, kind_of, slots_of

_MOST: Final = 50
"""Objects of one class or functions of one code; where there are more, these are data and no parts of a program."""
_STEPS: Final = 10_000
"""Objects that are gone through from the variables of modules."""
_APPS: Final = frozenset(
    {"flask.app.Flask", "quart.app.Quart", "starlette.applications.Starlette", "litestar.app.Litestar"}
)
"""Classes of applications, which keep what the agent's code puts there: `current_app.config`, `request.app.state`."""
_NO_PART: Final = (Enum, BaseException, type)


def framework_objects(names: frozenset[str]) -> list[weakref.ref[Any]]:
    """Find instances of the agent's classes, functions that close over variables, partials, applications and stores.

    Passed over is what a variable leads to that is among the `names` that the agent's code uses.
    """
    reached_ids = {id(each) for each in _from_modules(names)}
    everything: list[Any] = gc.get_objects()  # some hundred thousand: what is done for each of them is done by C
    kinds = {*map(kind_of, everything)}
    own_kinds = {kind for kind in kinds if not issubclass(kind, _NO_PART) and is_own_class(kind)}
    objects = [each for each in everything if type(each) in own_kinds and id(each) not in reached_ids]
    functions = [each for each in everything if type(each) is FunctionType and each.__closure__]
    objects += filter(is_own_function, functions)
    objects += [each for each in everything if type(each) is partial and _is_own(each.func)]
    applications = {
        kind for kind in kinds if any(f"{each.__module__}.{each.__name__}" in _APPS for each in kind.__mro__)
    }
    objects += [each for each in everything if type(each) in applications and id(each) not in reached_ids]
    stores = {kind for kind in kinds if is_store(kind)}
    objects += [each for each in everything if type(each) in stores]
    counts = Counter(map(_group, objects))
    return [*_references(each for each in objects if counts[_group(each)] <= _MOST)]


def _group(value: Any) -> object:
    """Give of what there are several: a class, or the code of a function."""
    return value.__code__ if kind_of(value) is FunctionType else kind_of(value)


def _references(objects: Iterator[Any]) -> Iterator[weakref.ref[Any]]:
    for each in objects:
        try:
            yield weakref.ref(each)
        except TypeError:  # its class has slots, and none for that
            continue


def _is_own(function: Any) -> bool:
    return kind_of(function) is FunctionType and is_own_function(function)


def _from_modules(names: frozenset[str]) -> Iterator[Any]:
    """Give the objects of the agent's classes to which variables of its modules and attributes of its classes lead."""
    tables = [vars(module) for module in own_modules()]
    left: deque[Any] = deque(value for table in tables for name, value in [*table.items()] if name in names)
    seen_ids = set[int]()
    while left and len(seen_ids) < _STEPS:
        value = left.popleft()
        if id(value) in seen_ids:
            continue
        seen_ids.add(id(value))
        kind = kind_of(value)
        if issubclass(kind, dict):
            left += [*cast("dict[Any, Any]", value).values()]
        elif issubclass(kind, COLLECTIONS):
            left += [*value] if kind is not bytearray else []
        elif issubclass(kind, type):
            left += [*cast("dict[str, Any]", vars(value)).values()] if is_own_class(value) else []
        elif is_own_class(kind):
            yield value
            left += [*dict_of(value).values(), *(attribute(value, name) for name in slots_of(kind))]
