"""Who reads a piece of state back: code of the agent's that runs again in a replay, past the tools that are answered.

A change that cannot be written down costs a replay nothing where no code that runs again can see it: a connection that
only the tools use, a counter for an operator. Code that runs again is all of the agent's own but the answered functions
and what only they call. Read is what such code names, and what hangs in a second place, where a name may be another.
"""

from __future__ import annotations

import dis
import gc
import inspect
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any, Final, cast

from reenact.boundary.code_facts import code_facts
from reenact.boundary.own_code import is_own_class, is_own_code, is_own_function, own_modules
from reenact.boundary.roots import ABSENT, Root, kind_of
from reenact.values import alarms

_MOST: Final = 5_000
"""Functions that are looked at; in a larger program all state counts as read."""
_WRAPPERS: Final = (staticmethod, classmethod, property)


class Readers:
    """The code that runs again beside some answered functions."""

    def __init__(self, entries: Iterable[FunctionType], reached: Iterable[FunctionType]) -> None:
        self._entry_codes = {fn.__code__ for fn in entries}
        self._names = set[str]()
        self._cells = set[str]()
        self._any_attribute = False
        inner = {fn.__code__: fn.__name__ for fn in reached if fn.__code__ not in self._entry_codes}
        begins = _begins()
        again = {*_own_codes(), *begins} - self._entry_codes - inner.keys()
        self._whole = len(again) > _MOST
        while again and not self._whole:  # what the answered functions call, and others too, runs again
            for code in again:
                self._take(code, begins.get(code, 0))
            again = {code for code, name in inner.items() if name in self._names}
            for code in again:
                del inner[code]

    def _take(self, code: CodeType, begin: int = 0) -> None:
        """Take in the names that code reads from an instruction on, less those of answered functions inside it."""
        if code in self._entry_codes:
            return
        names, cells = _loads(code, begin)
        loaded = {*names}
        self._cells |= cells
        if not loaded.isdisjoint(_BY_NAME):
            self._any_attribute |= code_facts(code).computed or not loaded.isdisjoint(_TABLES)
            self._whole |= not loaded.isdisjoint(_NAMESPACES)
            loaded |= {each for each in code.co_consts if isinstance(each, str)}
        self._names |= loaded
        for each in code.co_consts:
            if isinstance(each, CodeType):
                self._take(each)

    def read(self, root: Root) -> bool:
        """Tell whether such code may see the value of a root."""
        if self._whole or root.kind not in {"table", "class", "attribute", "cell"}:
            return True
        if self._any_attribute and root.kind in {"class", "attribute"}:
            return True
        if root.key in self._names or (root.kind == "cell" and root.name.rpartition(".")[2] in self._cells):
            return True
        return _hangs_elsewhere(root)


@lru_cache(maxsize=2 * _MOST)
def _loads(code: CodeType, begin: int) -> tuple[frozenset[str], frozenset[str]]:
    """Give the names, and the variables of functions around it, that code reads from an instruction on."""
    names, cells = set[str](), set[str]()
    for step in dis.get_instructions(code):
        if step.offset < begin:
            continue
        if step.opname.startswith(_LOADS):
            names.add(str(step.argval))
        elif step.opname in _OF_CELLS:
            cells.add(str(step.argval))
    return frozenset(names), frozenset(cells)


def _own_codes() -> Iterator[CodeType]:
    """Give the code of each of the agent's functions and methods that is loaded."""
    for module in own_modules():
        for value in [*vars(module).values()]:
            yield from _codes_of(value)


def _begins() -> dict[CodeType, int]:
    """Give the code of modules that run now, with the first instruction that may yet be met."""
    first_instructions: dict[CodeType, int] = {}
    running = sys._current_frames()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - the tool may be on any thread
    for frame in (each for innermost in running.values() for each in _stack(innermost)):
        if frame.f_code.co_name == "<module>" and is_own_code(frame.f_code, frame.f_globals):
            first_instructions[frame.f_code] = _first_left(frame.f_code, frame.f_lasti)
    return first_instructions


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _first_left(code: CodeType, at: int) -> int:
    """Give the first instruction that may be met from one on: a loop goes back."""
    jumps = [(step.offset, step.argval) for step in dis.get_instructions(code) if step.opcode in dis.hasjrel]
    first = -1
    while first != at:
        first, at = at, min([at, *(to for offset, to in jumps if offset >= at and isinstance(to, int))])
    return first


def _codes_of(value: Any) -> Iterator[CodeType]:
    kind = kind_of(value)
    if kind in {FunctionType, MethodType} or kind in _WRAPPERS:
        for fn in _functions(value):
            if is_own_function(fn):
                yield fn.__code__
    elif issubclass(kind, type) and is_own_class(value):
        table = cast("dict[str, Any]", vars(value))
        for member in [*table.values()]:
            for fn in _functions(member):
                yield fn.__code__


def _functions(value: Any) -> Iterator[FunctionType]:
    """Give a function and what it wraps."""
    if type(value) is property:
        for each in (value.fget, value.fset, value.fdel):
            yield from _functions(each)
        return
    while value is not None:
        value = getattr(value, "__func__", value)
        if type(value) is not FunctionType:
            return
        yield value
        value = vars(value).get("__wrapped__")


_LOADS: Final = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "IMPORT_FROM")
_OF_CELLS: Final = frozenset({"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"})
_TABLES: Final = frozenset({"vars", "__dict__", "attrgetter"})
"""What reads attributes by no name that code spells."""
_NAMESPACES: Final = frozenset({"globals", "eval", "exec"})
"""What reads variables so."""
_BY_NAME: Final = frozenset({"getattr", "__import__", "import_module", *_TABLES, *_NAMESPACES})


def _hangs_elsewhere(root: Root) -> bool:
    """Tell whether the value of a root has a second place from which the agent's code may read it."""
    try:
        value = root.get()
        return value is not ABSENT and type(value) not in _PLAIN and _met(value, root)
    except Exception:  # what is looked at changes meanwhile
        alarms.pass_on()
        return True


def _met(value: Any, root: Root) -> bool:
    """Walk from the agent's variables, past the root itself, and tell whether the value is met."""
    spaces = [vars(module) for module in own_modules()]
    left: list[Any] = []
    for space in spaces:
        root_key = root.key if root.kind == "table" and root.holder is space else None
        left += [each for name, each in [*space.items()] if name != root_key]
    for frame in _stack(inspect.currentframe()):
        if is_own_code(frame.f_code, frame.f_globals) and frame.f_code.co_name != "<module>":
            left += [*frame.f_locals.values()]
    seen_ids = {*map(id, spaces), id(root.holder)}
    while left and len(seen_ids) < _VALUES:
        each = left.pop()
        if each is value:
            return True
        if id(each) in seen_ids or type(each) in _PLAIN or not _leads_on(each):
            continue
        seen_ids.add(id(each))
        left += gc.get_referents(each)
    return bool(left)


def _leads_on(value: Any) -> bool:
    """Tell what may hold the agent's state: no code of libraries, nothing of ours."""
    kind = kind_of(value)
    if issubclass(kind, ModuleType | CodeType | FrameType):
        return False
    if issubclass(kind, type):
        return is_own_class(value)
    if kind is FunctionType:
        return is_own_function(value) or "__wrapped__" in vars(value)
    return not kind.__module__.startswith("reenact.")


_VALUES: Final = 50_000
_PLAIN: Final = frozenset({str, bytes, int, float, bool, complex, type(None)})
