"""What is known of one of the agent's own functions before it is called, and what it asks when it is."""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, cast

from reenact.boundary import door, lanes, tape
from reenact.boundary.forgiving import forgive
from reenact.contracts.doorman import Passage
from reenact.values import locks, typed
from reenact.values.call import STRUCTURE, Call, CallKind, FunctionCall
from reenact.values.discovered_tools import (
    AFTER,
    CHANGED,
    DREW,
    FOLDER,
    HELD,
    LEFT_OUT,
    REACHES,
    SOURCE,
    STATE,
    UNSPELLED,
)
from reenact.values.json import Json, compact
from reenact.values.lenient import as_object

if TYPE_CHECKING:
    from reenact.boundary.answering import Aftermath
    from reenact.boundary.reach import Reach
    from reenact.boundary.roots import Root
    from reenact.boundary.state import Reached

_SEARCHES = 50
"""So often is it asked what a function can reach; one whose code changes more often is taken for unknown."""
_log = logging.getLogger("reenact")


class Function:
    """A function that was cut: its name, kind and signature.

    A tool that was found comes with `offered`, which tells whether the run has offered it to a model by now.
    """

    __slots__ = (
        "_is_sourced",
        "_marked",
        "_reach",
        "_readership_by_root",
        "_searches",
        "attributes",
        "fn",
        "kind",
        "name",
        "offered",
        "owner",
        "signature",
        "spelling",
    )

    def __init__(
        self,
        kind: CallKind,
        fn: Callable[..., Any],
        name: str | None,
        attributes: Mapping[str, Json],
        offered: Callable[[str], bool] | None = None,
    ) -> None:
        self.fn, self.offered = fn, offered
        self._reach: Reach | None = None
        self._readership_by_root: dict[tuple[str, int], bool] = {}
        self._searches = 0
        self._is_sourced = False
        self._marked: frozenset[str] | None = None
        """Parameters that a framework fills in, by their annotations."""
        name_bearer = _name_bearer(fn)
        qualname = str(getattr(name_bearer, "__qualname__", type(name_bearer).__qualname__))
        self.kind = kind
        self.name = name or str(getattr(name_bearer, "__name__", type(name_bearer).__name__))
        module = getattr(name_bearer, "__module__", None) or type(name_bearer).__module__
        if module == "__mp_main__":  # the program, imported: as by multiprocessing in its children
            module = "__main__"
        self.spelling = f"{module}:{qualname}"
        self.attributes = dict(attributes)
        if kind is CallKind.TOOL and fn.__doc__ and "tool.description" not in self.attributes:
            self.attributes["tool.description"] = inspect.cleandoc(fn.__doc__)
        try:
            self.signature: inspect.Signature | None = inspect.signature(fn)
        except (TypeError, ValueError):
            self.signature = None
        first = next(iter(self.signature.parameters), "") if self.signature else ""
        self.owner = first if first in {"self", "cls"} and "." in qualname else None

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """Take down one call."""
        arguments = self.bound(args, kwargs)
        injected = self.injected(arguments)
        asked = {
            name: typed.encode(self._less(name, value, injected))
            for name, value in arguments.items()
            if name != self.owner and name not in injected
        }
        request = FunctionCall(function=self.spelling, arguments=asked)
        if not self._is_sourced:
            self._is_sourced = True
            if self.kind not in STRUCTURE and (source := self._source()):
                self.attributes[SOURCE] = source
        attributes = {**self.attributes, LEFT_OUT: compact([*sorted(injected)])} if injected else self.attributes
        return Call(kind=self.kind, name=self.name, request=request, attributes=attributes)

    def injected(self, arguments: Mapping[str, Any]) -> frozenset[str]:
        """Name the arguments that a framework filled in, and no model."""
        if self.kind is not CallKind.TOOL:
            return frozenset()
        from reenact.boundary import injected_parameters, offers

        asked = {name: value for name, value in arguments.items() if name != self.owner}
        if self._marked is None:
            self._marked = injected_parameters.marked(self.signature, self.fn)
        return injected_parameters.left_out(self.signature, self._marked, asked, offers.properties_of(self.name))

    def _less(self, name: str, value: Any, injected: frozenset[str]) -> Any:
        """Give an argument; of those that a parameter with two stars took, less what was injected."""
        parameter = self.signature.parameters.get(name) if injected and self.signature is not None else None
        if parameter is None or parameter.kind is not parameter.VAR_KEYWORD:
            return value
        keywords = cast("dict[str, Any]", value)
        return {key: inner for key, inner in keywords.items() if key not in injected}

    def _source(self) -> str:
        """Tell what it is written as; an answer to its calls does not run it."""
        try:
            from reenact.boundary.source_digest import source_digest

            return source_digest(self.fn)
        except Exception:
            forgive("Function.source")
            return ""

    def bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Give each parameter its argument. Those that do not fit are given as they came.

        The function may complain of them, or take them all the same: a decorator under ours may hand in the rest.
        """
        try:
            if self.signature is not None:
                bound = self.signature.bind(*args, **kwargs)
                bound.apply_defaults()
                return bound.arguments
        except TypeError:
            pass
        return {"args": list(args), "kwargs": kwargs}

    def open(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Passage | None:
        """Ask the doorman in charge, or give None where the call goes straight through."""
        try:
            doorman = door.doorman()
            if doorman is None or (self.offered is not None and not self.offered(self.name)):
                return None
            return doorman.open(self.call(args, kwargs))
        except Exception:
            forgive("Function.open")
            return None

    def watch(self, passage: Passage, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Watch:
        """Give who looks on at the real call of what a replay answers, and tells what state it changed.

        Of a tool that was found it is told what it could reach, too.
        """
        try:
            return UNWATCHED if self.kind in STRUCTURE else _StateWatch(self, passage, args, kwargs)
        except Exception:
            forgive("Function.watch")
            return UNWATCHED

    def holding(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Give the arguments in which state may lie: of what a framework injected, what the application gave to it."""
        names = self.injected(arguments)
        if not names:
            return arguments
        from reenact.boundary.injected_state import state_of

        code = getattr(inspect.unwrap(self.fn), "__code__", None)
        return state_of(arguments, names, getattr(code, "co_names", ()))

    def state(self, arguments: Mapping[str, Any], holding: Mapping[str, Any]) -> Reached:
        """Look at the state that a call can reach. What its code reaches is found once, and again where that moved."""
        from reenact.boundary.state import reached

        few = self.offered is None
        code_reach = self._reach
        if code_reach is None or code_reach.holds_database or not code_reach.holds():
            code_reach = self._searched(arguments, holding)  # another connection of that class may be to a file
        looked = reached(self.fn, holding, code_reach, few=few)
        if not all(map(code_reach.knows, looked.snapshot.strange)):
            code_reach = self._searched(arguments, holding)
            looked = reached(self.fn, holding, code_reach, few=few)
            if not code_reach.unknown and not all(map(code_reach.knows, looked.snapshot.strange)):
                code_reach.unknown.append("what was not looked at")
        return looked

    def _searched(self, arguments: Mapping[str, Any], holding: Mapping[str, Any]) -> Reach:
        from reenact.boundary.state import reach_of

        self._reach = code_reach = reach_of(self.fn, arguments, holding)
        self._searches += not code_reach.holds_database
        if self._searches > _SEARCHES and not code_reach.unknown:
            code_reach.unknown.append("other code each time")
        return code_reach

    @property
    def is_async(self) -> bool:
        """It is a coroutine function, which lets others run meanwhile."""
        return inspect.iscoroutinefunction(inspect.unwrap(self.fn)) or inspect.isasyncgenfunction(self.fn)

    @property
    def in_steps(self) -> bool:
        """It is a generator, of either colour."""
        return inspect.isgeneratorfunction(self.fn) or inspect.isasyncgenfunction(self.fn)

    def is_read(self, root: Root) -> bool:
        """Tell whether code that runs again in a replay may read a piece of state that this one changed."""
        has_reader = self._readership_by_root.get((root.name, id(root.holder)))
        if has_reader is None:
            from reenact.boundary.readers import Readers
            from reenact.boundary.tool_discovery import declared

            reached = () if self._reach is None else self._reach.functions
            others: list[Any] = [vars(each).get("__wrapped__") for each in tuple(declared)]
            entries = [*reached[:1], *(each for each in others if isinstance(each, FunctionType))]
            has_reader = Readers(entries, reached).read(root)
            if len(self._readership_by_root) > _SEARCHES:
                self._readership_by_root.clear()
            self._readership_by_root[root.name, id(root.holder)] = has_reader
        return has_reader

    def aftermath(self, passage: Passage, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Aftermath | None:
        """Give what an answered call does beside giving its answer; None where that is nothing."""
        if self.kind in STRUCTURE:
            return None
        try:
            from reenact.boundary.answering import Aftermath

            arguments = self.bound(args, kwargs)
            return Aftermath(self.fn, arguments, self.holding(arguments), passage)
        except Exception:
            forgive("Function.aftermath")
            return None

    def lane(self) -> lanes.Lane:
        """Give the lane on which the body runs; what an answered body would have spawned must not shift the numbers."""
        try:
            lane = lanes.current()
            return lane if self.kind in STRUCTURE else lane.spawn(f"{self.name}()")
        except Exception:
            forgive("Function.lane")
            return lanes.main()


class Watch:
    """Looks on at a call. This one sees nothing."""

    def begin(self) -> None:
        """Look before the call runs."""

    def end(self, _result: object = None, /) -> AbstractContextManager[object]:
        """Look after it ran and returned something, and surround the telling of its outcome."""
        return nullcontext()


UNWATCHED = Watch()
"""Surrounds a call whose reach nobody looks at."""
_ends = locks.rlock()
"""Makes one of the last look at a call and its end.

A replay makes the changes of calls in the order of their ends. Of two calls side by side, the one that ends last is so
the one that was looked at last, and knows what both changed.
"""


class _StateWatch(Watch):
    """Takes the fingerprints of what a function that a replay answers can reach, before it runs and after."""

    def __init__(self, function: Function, passage: Passage, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._function, self._passage = function, passage
        self._arguments = function.bound(args, kwargs)
        self._holding = function.holding(self._arguments)
        self._before: Reached | None = None
        self._folder = ""
        self._generators: dict[str, int] = {}
        self._result: object = None
        self.beside = False
        """Another one was under way at the same time."""

    def begin(self) -> None:
        try:
            for each in (*_under_way,):
                each.beside = self.beside = True
            _under_way.add(self)
            self._folder, self._generators = _folder(), _seeded()
            self._before = self._function.state(self._arguments, self._holding)
        except Exception:  # our failure is never the agent's: what is not known is taken for the worst
            forgive("Function.watch")

    @contextmanager
    def end(self, result: object = None, /) -> Generator[None]:
        with _ends:
            if self in _under_way:
                self._result = result
                self._look()
            try:
                yield
            finally:
                self._result = None
                _under_way.discard(self)

    def _look(self) -> None:
        try:
            if (folder := _folder()) != self._folder:
                self._passage.annotate({FOLDER: folder})
            if self._generators != (generators := _seeded()):
                self._passage.annotate({DREW: ", ".join(generators)})
            self._tell()
        except Exception:
            forgive("Function.watch")
            self._unseen()

    def _unseen(self) -> None:
        if self._function.offered is None:
            self._passage.annotate({CHANGED: compact([_UNSEEN]), UNSPELLED: "looking at it failed"})
        else:
            self._passage.annotate({HELD: compact([_UNSEEN])})

    def _tell(self) -> None:
        before = self._before
        if before is None:
            self._unseen()
            return
        from reenact.boundary.state import reached

        after = reached(self._function.fn, self._holding, earlier=before)
        if self._function.offered is None:
            self._tell_declared(before, after)
        else:
            self._tell_found(before, after)

    def _tell_declared(self, before: Reached, after: Reached) -> None:
        """Tell the change; what cannot be written down is named where code that runs again reads it."""
        changes = [root for _, root in before.changes(after)]
        read_changes = [root for root in changes if self._function.is_read(root)]
        if not read_changes and not after.snapshot.holds(self._result):
            return
        if read_changes and self._function.is_async and _others_ran():
            self._passage.annotate({CHANGED: _names(read_changes), UNSPELLED: "other tasks ran meanwhile"})
            return
        from reenact.boundary.aftermath import spelled_as_read

        change, lost = spelled_as_read(before, after, self._function.is_read, self._result, beside=self.beside)
        if lost:
            why = "; ".join(dict.fromkeys(lost.values()))
            self._passage.annotate({CHANGED: compact([*lost]), UNSPELLED: why})
        elif read_changes or "return" in as_object(change):
            if self._function.in_steps:  # an answer makes the change at the end, where code between the pieces reads it
                changes = read_changes
            self._passage.annotate({**({CHANGED: _names(changes)} if changes else {}), AFTER: compact(change)})

    def _tell_found(self, before: Reached, after: Reached) -> None:
        from reenact.boundary.injected_state import framework_gifts

        changed, injected = before.changed(after), self._function.injected(self._arguments)
        gave = framework_gifts(before.reach.functions, context=bool(injected))
        connections = [*dict.fromkeys((*before.connections, *after.connections))]
        lists = {STATE: after.state, CHANGED: [*changed, *gave], HELD: connections}
        attributes = {name: compact([*listed]) for name, listed in lists.items() if listed}
        if not gave and (changed or after.snapshot.holds(self._result)):
            from reenact.boundary.aftermath import Unspelled, spelled

            try:
                change = spelled(before, after, self._result, beside=self.beside)
                if changed or "return" in as_object(change):
                    attributes[AFTER] = compact(change)
            except Unspelled as why:
                _log.debug("reenact cannot put back what %s changed: %s", self._function.spelling, why)
        self._passage.annotate({**attributes, REACHES: compact([*before.reach.reasons()])})


def _names(changes: Iterable[Root]) -> str:
    return compact([*dict.fromkeys(root.name for root in changes)])


_under_way: set[_StateWatch] = set()


def _folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - at each call of a tool: no object for it
    except OSError:  # it was removed
        return ""


def _seeded() -> dict[str, int]:
    """Tell the states of the shared generators that the program seeded, or set, by their names."""
    if tape.mode("random") == tape.STREAMS:
        return {}
    import random

    return {"random": hash(random.getstate())}


def _others_ran() -> bool:
    """Tell whether other tasks of the loop may have changed the same: the look around the call cannot tell who did."""
    import asyncio

    try:
        return len(asyncio.all_tasks()) > 1
    except RuntimeError:  # no loop of asyncio
        return True


_UNSEEN = "state that could not be looked at"


def _name_bearer(fn: Callable[..., Any]) -> Any:
    """Find what gives `fn` its name: a partial has none of its own, an instance that is called has its class's."""
    while isinstance(fn, partial):
        fn = cast("partial[Any]", fn).func
    return fn
