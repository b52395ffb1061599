"""On which earlier units of its process a unit stands: those that changed state which the agent's code reads back.

State (`boundary.lasting_state`) is looked at before the first unit, where a unit begins beside no other that is yet to
answer, where one hands its answer over, and at the end of each. What differs from the look before was changed by a unit
that was under way; between units, by nobody who can be delivered again. Whoever ends later stands on it where the code
that its entry can reach (`boundary.entries`) reads it; of what changed after its answer that is said apart (`behind`),
since a unit that calls nobody any more shows nothing of it.

What a variable of a context or a thread holds depends on who looks: it was left by an earlier unit where one begins and
finds in it something else than the first one did.

No change counts that no code reads back (`boundary.reads`), nor one that a unit alone would make again: a client of a
library's that is made at first need, the cache of a function without parameters.
"""

from __future__ import annotations

import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from reenact.boundary.entries import Entries, Reach
from reenact.boundary.framework_objects import framework_objects
from reenact.boundary.lasting_state import (
    ALWAYS_READ,
    has_changed,
    is_made_at_need,
    is_of_whoever_looks,
    names,
    prints,
    roots,
)
from reenact.boundary.own_code import own_modules
from reenact.boundary.reads import is_read_back, is_shown, is_shown_at_start
from reenact.boundary.roots import CACHE, Root
from reenact.values import locks

KEPT: Final = 50
"""Units that are named; of the earlier ones it is only told how many they are."""
_EARLY: Final = 3
"""Units before which objects that frameworks keep are looked for: some are made with the first request."""
_MOST_MODULES: Final = 200
"""Modules of an agent's own that are looked at; of a larger agent nobody knows on what its units stand."""


class Stood:
    """A unit that changed something: its number, and the id of its run where it is one."""

    __slots__ = ("found", "goes_on", "number", "replied", "run", "uses")

    def __init__(self, number: int) -> None:
        self.number = number
        self.run = ""
        self.replied = 0
        """The look at which it handed its answer over; 0 before."""
        self.goes_on = False
        """Something changed after that, before its end."""
        self.uses: frozenset[str] | None = None
        """The names that its code uses; None where that is not known, or not yet."""
        self.found: dict[str, Any] = {}
        """By name: what variables of its context and its thread held when it began."""


class Standing:
    """What the units of this process changed. Thread-safe."""

    def __init__(self) -> None:
        self._lock = locks.lock()
        self._count = 0
        self._modules = -1
        self._looks = 0
        self._unseen = 0
        """How many modules the agent has, where these are more than can be looked at beside a request."""
        self._code_names: frozenset[str] = frozenset()
        self._entries = Entries()
        self._roots: list[Root] = []
        self._prints: list[Any] = []
        self._apart: list[Root] = []
        """Variables of contexts and threads."""
        self._first: dict[str, Any] = {}
        """By name: what these held for the first unit."""
        self._open: dict[int, Stood] = {}
        self._changers: dict[str, dict[Stood, int]] = {}
        """By name of state that is read back: who changed it, the last ones, and the look that first saw it."""
        self._leakers: dict[str, dict[Stood, int]] = {}
        """Likewise of variables of contexts and threads: who may have left something in them."""
        self._between: dict[str, None] = {}
        """Names of state that changed while no unit was under way."""
        self._makers: dict[str, list[Stood]] = {}
        """Who made what a unit alone would have made as well: it counts as changed once it changes further."""
        self._objects: list[weakref.ref[Any]] = []
        """Objects of the agent's that frameworks keep, as they were found while no unit was under way."""
        self._recent: deque[Stood] = deque(maxlen=KEPT)
        """Units that ended since: what is found newly may be of their making."""
        self._kept: dict[int, Stood] = {}
        """By number: units that ended and called nobody, of which a run is to be kept all the same."""
        self._crowded: set[int] = set()
        """The identities of the tables of changers that more units are in than are told."""
        self._more = 0
        self._readback_by_name: dict[str, bool] = {}
        self._shown_by_name: dict[str, frozenset[str]] = {}
        """By name of state of a class that is given to somebody as a value: what code names that gives it."""

    def begin(self) -> int:
        """Begin a unit; gives its number."""
        with self._lock:
            self._count += 1
            own = Stood(self._count)
            if self._count == 1:
                self._look(first=True)
            elif all(each.replied for each in self._open.values()):
                self._look()
            own.found = self._of_whoever_looks()
            for name, value in own.found.items():
                self._first.setdefault(name, value)
            self._open[self._count] = own
            return self._count

    def known(self, number: int, run: str) -> None:
        """Hear which run a unit is."""
        if (own := self._open.get(number) or self._kept.pop(number, None)) is not None:
            own.run = run

    def reply(self, number: int) -> None:
        """Hear that a unit hands its answer over."""
        with self._lock:
            self._look()
            if (own := self._open.get(number)) is not None:
                own.replied = self._looks

    def end(
        self, number: int, entry: object = None, others: Callable[[], Iterable[object]] | None = None
    ) -> dict[str, Any]:
        """End a unit, which the function `entry` did, if that is known; tell what it stands on, or nothing.

        With `others`, any code of the agent's may have run but those functions.
        """
        with self._lock:
            own = self._open.get(number)
            self._look()
            stands = {**self._changers, **self._leaked(own)}
            if self._open.pop(number, None) is not None and own is not None:
                self._recent.append(own)
            reached = self._entries.reached(entry, others)
            if own is not None and reached is not None:
                own.uses = reached.uses
            read = [name for name in (*stands, *self._between) if self._is_met(name, reached)]
            holders = {name: stands.get(name, {}) for name in read}
            by_end = self._basis(holders, number, self._looks)
            by_reply = self._basis(holders, number, own.replied) if own is not None and own.replied else by_end
            left = self._told_of(own) if own is not None and not self._unseen else {}
            unseen = self._unseen if number > 1 else 0
        if unseen:
            left["unseen"] = f"state of an agent of {unseen} modules, which is more than is looked at"
        return {**by_reply, **({"behind": by_end} if by_end != by_reply else {}), **left}

    def _basis(self, holders: Mapping[str, Mapping[Stood, int]], number: int, look: int) -> dict[str, Any]:
        """Say on what a unit stands of what had changed by a look, where it reads the state of `holders`."""
        changed = {
            name: [one for one, at in each.items() if at <= look and _may_change(one, name, number)]
            for name, each in holders.items()
        }
        between = [name for name in self._between if name in changed]
        units = {each.number: each for each_name in changed.values() for each in each_name}
        if not units and not between:
            return {}
        listed = [units[each] for each in sorted(units)]
        return {
            "state": sorted({*(name for name, each in changed.items() if each), *between}),
            "units": [each.run for each in listed if each.run],
            "without_run": sum(not each.run for each in listed),
            "more": self._more,
            **({"between": sorted(between)} if between else {}),
        }

    def _told_of(self, own: Stood) -> dict[str, Any]:
        keeps = not own.run and self._is_worth_keeping(own)
        if keeps:
            self._kept[own.number] = own
        return {"leaves": sorted(self._left_by(own)), "goes_on": own.goes_on, **({"keeps": True} if keeps else {})}

    def _is_worth_keeping(self, own: Stood) -> bool:
        """Tell whether later units may stand on it, and on few enough others for all of them to be delivered."""
        every = (*self._changers.items(), *self._leakers.items(), *self._makers.items())
        left = [holders for name, holders in every if own in holders and _is_used(own, name)]
        return any(id(holders) not in self._crowded for holders in left)

    def _left_by(self, own: Stood) -> set[str]:
        """Name the state that a unit may have changed."""
        every = (*self._changers.items(), *self._leakers.items(), *self._makers.items())
        return {name for name, holders in every if own in holders and _is_used(own, name)}

    def _leaked(self, own: Stood | None) -> dict[str, dict[Stood, int]]:
        """Give the variables of its context and thread in which a unit found what an earlier one left; note its own."""
        if own is None:
            return {}
        now = self._of_whoever_looks()
        leaked = [name for name, value in own.found.items() if value != self._first.get(name)]
        leaks = {name: {**self._leakers[name]} for name in leaked if self._leakers.get(name)}
        for name, value in now.items():
            if value != own.found.get(name) and self._is_read_back(name):
                self._add(self._leakers.setdefault(name, {}), [own])
        return leaks

    def _of_whoever_looks(self) -> dict[str, Any]:
        return {root.name: prints(root.get(), self._code_names) for root in self._apart}

    def _look(self, *, first: bool = False) -> None:
        """Look at all state, and note who may have changed what is not as it was."""
        self._looks += 1
        early = not self._open and self._count <= _EARLY
        if self._modules != (loaded := len(sys.modules)) or early:
            self._modules = loaded
            many = len(own_modules())
            self._unseen = many if many > _MOST_MODULES else 0
            if not self._unseen:
                self._find()
        if self._unseen:  # a request would wait for the look
            return
        for at, root in enumerate(self._roots):
            if root.is_gone:
                continue
            value = root.get()
            now = prints(value, self._code_names)
            was = self._prints[at]
            if not has_changed(was, now, value):
                continue
            self._prints[at] = now
            if not first and self._is_read(root):
                self._note(root, at_need=is_made_at_need(was, now, value))

    def _note(self, root: Root, *, at_need: bool) -> None:
        """Note a change by whoever is under way."""
        units, name = [*self._open.values()], root.name
        if at_need:
            self._makers[name] = units
            return
        if all(each.replied for each in units):  # else it is the doing of one that is at work
            for each in units:
                each.goes_on = True
        if not units:
            self._between[name] = None
            return
        self._add(self._changers.setdefault(name, {}), [*self._makers.pop(name, ()), *units])

    def _add(self, holders: dict[Stood, int], units: list[Stood]) -> None:
        for each in units:
            holders.setdefault(each, self._looks)
        while len(holders) > KEPT:
            self._more += 1
            self._crowded.add(id(holders))
            del holders[next(iter(holders))]

    def _is_read(self, root: Root) -> bool:
        if root.name in ALWAYS_READ or type(root.get()) is CACHE or self._is_read_back(root.name):
            return True
        return root.kind == "class" and (self._entries.compute_names or bool(self._shown(root)))

    def _is_met(self, name: str, reached: Reach | None) -> bool:
        """Tell whether code reads state of a name, or shows the class that has it."""
        if reached is None or _last(name) in reached.reads:
            return True
        return not self._shown_by_name.get(name, frozenset()).isdisjoint(reached.reads)

    def _shown(self, root: Root) -> frozenset[str]:
        """Give the names in code that gives the class of this state to somebody; none where nobody does."""
        if root.name not in self._shown_by_name:
            class_names = frozenset(each.__name__ for each in (root.holder, *type.__subclasses__(root.holder)))
            shown = class_names if is_shown(class_names) else frozenset[str]()
            self._shown_by_name[root.name] = ALWAYS_READ if is_shown_at_start(class_names) else shown
        return self._shown_by_name[root.name]

    def _is_read_back(self, name: str) -> bool:
        if name not in self._readback_by_name:
            self._readback_by_name[name] = is_read_back(_last(name))
        return self._readback_by_name[name]

    def _find(self) -> None:
        """Find the pieces of state; what was known is kept as it was."""
        code_names = names()
        self._code_names = code_names.either
        self._entries.know(code_names)
        self._readback_by_name.clear()
        self._shown_by_name.clear()
        if not self._open:
            self._objects = framework_objects(code_names.either)
        places = {(id(root.holder), root.key): at for at, root in enumerate(self._roots)}
        state_roots = [*roots(code_names, self._objects)]
        self._apart = [root for root in state_roots if is_of_whoever_looks(root.get())]
        state_roots = [root for root in state_roots if not is_of_whoever_looks(root.get())]
        fingerprints: list[Any] = []
        for root in state_roots:
            at = places.get((id(root.holder), root.key))
            fingerprints.append(prints(root.get(), self._code_names) if at is None else self._prints[at])
            if at is None and root.is_weak and self._is_read(root):
                self._makers.setdefault(root.name, [*self._recent])
        self._roots, self._prints = state_roots, fingerprints
        if not self._open:
            self._recent.clear()


def _is_used(own: Stood, name: str) -> bool:
    return own.uses is None or _last(name) in own.uses


def _may_change(unit: Stood, name: str, number: int) -> bool:
    """Tell whether another unit than the one of this number may have changed state of this name."""
    return unit.number != number and (unit.uses is None or _last(name) in unit.uses)


def _last(name: str) -> str:
    """Give the last part of a name, by which code calls it."""
    return name.rpartition(".")[2].rpartition(":")[2]
