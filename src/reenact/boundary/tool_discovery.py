"""Tools with no decorator: found when a model call first offers them, cut for every reference, given back at the end.

Calls of a found tool are recorded from the moment on at which a model call of the same run has offered it. Before that
they go straight through, so that a run in a process that has seen others is recorded, and replayed, like one that has
not.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import logging
import sys
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Collection
from operator import attrgetter
from types import FunctionType
from typing import Any, cast

import wrapt

from reenact.boundary import memory_databases, offers, place
from reenact.boundary.own_code import own_modules
from reenact.boundary.searching import Candidate, Search
from reenact.boundary.trampoline import Cut, NotCut, cut, uncut
from reenact.values import locks

_log = logging.getLogger("reenact")
_RUNS = 10_000
"""Runs whose offered tools are remembered."""

Make = Callable[[Any, str, Callable[[str], bool]], Callable[..., Any]]
"""Makes the wrapper of a callable: the callable itself, the tool's name, and who tells whether it was offered."""

declared: weakref.WeakSet[Any] = weakref.WeakSet()
"""Functions that were made a boundary by hand. They are never cut a second time."""


class _Proxy(wrapt.FunctionWrapper):  # type: ignore[misc, type-arg]  # wrapt is untyped
    """Stands for a callable where a table names it, and is like it in all else."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Be pickled as what it stands for."""
        original = cast("Any", self.__wrapped__)
        reduced = original.__reduce_ex__(protocol)
        if isinstance(reduced, str):  # a name in its module
            return _object_at, (original.__module__, reduced)
        return reduced

    def __copy__(self) -> Any:
        original = cast("Any", self.__wrapped__)
        return copy.copy(original)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        original = cast("Any", self.__wrapped__)
        return copy.deepcopy(original, memo)


def _object_at(module: str, qualname: str) -> Any:
    return attrgetter(qualname)(sys.modules.get(module) or importlib.import_module(module))


class FoundTools:
    """The tools of this process that were found. Thread-safe."""

    def __init__(self, make: Make) -> None:
        self._make = make
        self._lock = locks.rlock()
        self._cuts: weakref.WeakKeyDictionary[FunctionType, Cut] = weakref.WeakKeyDictionary()
        self._places: deque[tuple[dict[Any, Any], str, Any, Any]] = deque(maxlen=_RUNS)
        self._module_tools: set[str] = set()
        """Tools that were found in modules."""
        self._local: set[str] = set()
        """Tools that were found among the local variables of running functions, which make them anew each time."""
        self._nowhere: set[str] = set()
        """Tools that no function is behind, as far as was looked."""
        self._searched: dict[frozenset[str], int] = {}
        """How many modules were loaded when the tools of a request were last looked for."""
        self._offered: OrderedDict[int, set[str]] = OrderedDict()
        """Names by root span of the run."""

    def offered(self, names: frozenset[str]) -> None:
        """Hear that a model call offers these tools; called on the thread that makes the call."""
        here = place.current()
        root = here.root if here is not None else 0
        earlier_names = self._offered.get(root)
        if earlier_names is None or not names <= earlier_names:
            self._hear(root, names)
        if self._searched.get(names) != _FOREVER:
            self._look(names)

    def _hear(self, root: int, names: frozenset[str]) -> None:
        with self._lock:
            self._offered[root] = self._offered.get(root, set()) | names
            if len(self._offered) > _RUNS:
                self._offered.popitem(last=False)

    def was_offered(self, name: str) -> bool:
        """Tell whether a model call of the run that the code now running belongs to has offered this tool."""
        here = place.current()
        if here is None:  # on a thread that nobody carried the run to
            return any(name in names for names in tuple(self._offered.values()))
        return name in self._offered.get(here.root, ()) or name in self._offered.get(0, ())

    def _look(self, names: frozenset[str]) -> None:
        """Look in modules once, or again after further imports; in running functions where the tools are theirs."""
        with self._lock:
            loaded, before = len(sys.modules), self._searched.get(names)
            if before != loaded:
                self._module_tools |= self._cut_all(
                    Search(names - self._module_tools, declared).modules(own_modules()).candidates()
                )
            wanted = names if before is None else names & self._local | names - self._module_tools
            if wanted:
                self._look_in_frames(wanted, once_more=before is not None)
            if len(self._searched) > _RUNS:
                self._searched.clear()
            self._searched[names] = _FOREVER if names <= self._module_tools - self._local else loaded

    def _look_in_frames(self, wanted: Collection[str], *, once_more: bool) -> None:
        """Look in the agent's running functions; for what is not there in a framework's, which will call it."""
        frame = inspect.currentframe()
        candidates = Search(wanted, declared).frames(frame, once_more=once_more).candidates()
        self._local |= self._cut_all(candidates)
        if hidden := set(wanted) - self._nowhere - {each.name for each in candidates}:
            candidates = Search(hidden, declared).frames(frame, once_more=once_more, deep=True).candidates()
            self._local |= self._cut_all(candidates)
            self._nowhere |= hidden - {each.name for each in candidates}

    def _cut_all(self, candidates: list[Candidate]) -> set[str]:
        """Cut what was found; gives the names of what had not been cut before."""
        new_names = set[str]()
        for each in candidates:
            fn = each.function
            if fn is not None:
                if fn not in self._cuts and self._cut_function(fn, each.name):
                    new_names.add(each.name)
            elif each.holder is not None and self._cut_place(each.holder, each.key, each.name):
                new_names.add(each.name)
        return new_names

    def _cut_function(self, fn: FunctionType, name: str) -> bool:
        try:
            self._cuts[fn] = cut(fn, self._make(uncut(fn), name, self.was_offered))
        except NotCut as why:
            _log.warning("reenact: the tool %s is not recorded: %s; declare it with @reenact.tool", name, why)
            return False
        return True

    def _cut_place(self, holder: dict[Any, Any], key: str, name: str) -> bool:
        """Replace what a table names by a proxy of it: for what has no code of the agent's to replace."""
        original = holder.get(key)
        if original is None or type(original) is _Proxy:
            return False
        wrapper = self._make(original, name, self.was_offered)

        def called(_wrapped: Any, _instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return wrapper(*args, **kwargs)

        holder[key] = proxy = _Proxy(original, called)
        self._places.append((holder, key, original, proxy))
        return True

    def give_back(self) -> None:
        """Undo every cut."""
        with self._lock:
            for fn, function_cut in list(self._cuts.items()):
                function_cut.undo(fn)
            while self._places:
                holder, key, original, proxy = self._places.pop()
                if holder.get(key) is proxy:
                    holder[key] = original
            self._cuts.clear()


_FOREVER = -1


def install(make: Make) -> Callable[[], None]:
    """Find and cut tools from now on; gives a function that ends it and gives every tool back."""
    tools = FoundTools(make)
    memory_databases.listen()
    offers.listen(tools.offered)

    def undo() -> None:
        offers.listen(None)
        tools.give_back()

    return undo
