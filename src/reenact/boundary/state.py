"""What state of the process a tool can reach, whether it changed, and what open connections are among it.

Each piece of state (`boundary.roots`) is looked at before and after a call (`boundary.snapshot`): bounded, without
running the agent's code. What changed is named here, and spelled by `boundary.aftermath` so that it can be put back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reenact.boundary.injected_state import StatePiece
from reenact.boundary.memory_databases import counts
from reenact.boundary.process_state import process_roots
from reenact.boundary.reach import Reach, reach
from reenact.boundary.roots import ABSENT, CODE, Root, roots
from reenact.boundary.snapshot import Ref, Snapshot, is_connection

__all__ = ["Reached", "is_connection", "reach_of", "reached"]


class Reached:
    """What a call can reach, at one moment: each piece of state, its value, and open connections."""

    def __init__(self, code_reach: Reach, earlier: Reached | None = None, *, few: bool = False) -> None:
        self.reach = code_reach
        self.snapshot = Snapshot(None if earlier is None else earlier.snapshot, few=few)
        self.is_unknown = False
        """What the call can reach was not known at the first look."""
        self.roots: list[Root] = []
        self.values: list[Any] = []
        self._names: dict[str, None] = {}
        self._places: dict[tuple[str, str, int], int] = {}

    @property
    def connections(self) -> tuple[str, ...]:
        """Name the open connections."""
        return tuple(dict.fromkeys(self.snapshot.connections))

    @property
    def state(self) -> list[str]:
        """Name the pieces of state that are there."""
        return list(self._names)

    def add(self, root: Root, *, of_process: bool = False) -> None:
        """Look at one piece of state; one `of_process` is named only where it changed."""
        value = root.get()
        if issubclass(type(value), CODE):
            if root.kind in {"value", "class"}:
                return
        elif value is not ABSENT and not of_process:
            self._names[root.name] = None
        elif root.kind == "attribute" and root.key not in self.reach.set_attributes:
            return
        self.roots.append(root)
        if value is ABSENT:
            self.values.append(value)
        elif root.glance:
            self.values.append(self.snapshot.glance(value, root.name))
        else:
            self.values.append(self.snapshot.look(value, root.name))

    def places(self) -> dict[tuple[str, str, int], int]:
        """Give the number of each piece of state by its name, how it is held, and its turn among those alike."""
        if not self._places:
            turns: dict[tuple[str, str], int] = {}
            for at, root in enumerate(self.roots):
                alike = root.name, root.kind
                turns[alike] = turn = turns.get(alike, -1) + 1
                self._places[(*alike, turn)] = at
        return self._places

    def changed(self, after: Reached) -> list[str]:
        """Name what is not the same any more."""
        return list(dict.fromkeys(root.name for _, root in self.changes(after)))

    def changes(self, after: Reached) -> list[tuple[int, Root]]:
        """Give each piece of state that is not the same any more, and its number in `after`."""
        return self._changes(after, self.touched(after))

    def leading_to(self, number: int, after: Reached) -> list[tuple[int, Root]]:
        """Give each piece of state from which an object that changed can be reached, and its number in `after`."""
        return self._changes(after, {number}, rebound=False)

    def _changes(self, after: Reached, touched: set[int], *, rebound: bool = True) -> list[tuple[int, Root]]:
        before_places, places = self.places(), after.places()
        leads = _Leads(self, after, touched)
        changes: list[tuple[int, Root]] = []
        for place, at in places.items():
            was = self.values[before_places[place]] if place in before_places else ABSENT
            now = after.values[at]
            inside = bool(touched) and not after.roots[at].glance
            if (rebound and _differ(was, now)) or (inside and leads.to_a_change(was, now)):
                changes.append((at, after.roots[at]))
        return changes

    def touched(self, after: Reached) -> set[int]:
        """Give the numbers of the objects whose contents are not the same any more."""
        shapes = self.snapshot.shapes
        return {
            number
            for number, shape in after.snapshot.shapes.items()
            if number in shapes and shapes[number].differs(shape)
        }


class _Leads:
    """Tells from which values an object that changed can be reached."""

    def __init__(self, before: Reached, after: Reached, touched: set[int]) -> None:
        self._shapes = (before.snapshot.shapes, after.snapshot.shapes)
        above: dict[int, set[int]] = {}
        for shapes in self._shapes if touched else ():
            for number, shape in shapes.items():
                for item in shape.items:
                    if type(item) is Ref:
                        above.setdefault(int(item), set()).add(number)
        self._reaching = set(touched)
        left = list(touched)
        while left:
            fresh = above.get(left.pop(), set()) - self._reaching
            self._reaching |= fresh
            left += fresh

    def to_a_change(self, *values: Any) -> bool:
        return any(type(value) is Ref and int(value) in self._reaching for value in values)


def _differ(was: Any, now: Any) -> bool:
    if was is now:
        return False
    return type(was) is not type(now) or was != now


def reach_of(target: Any, arguments: Mapping[str, Any], holding: Mapping[str, Any]) -> Reach:
    """Find what a call can reach: by its arguments, and by what the application put into those of a framework's."""
    put_in = (each for each in holding.values() if type(each) is not StatePiece)
    return reach(target, (*arguments.values(), *put_in))


def reached(
    target: Any,
    arguments: Mapping[str, Any],
    code_reach: Reach | None = None,
    earlier: Reached | None = None,
    *,
    few: bool = False,
) -> Reached:
    """Look at all that a call of `target` with these arguments can reach, after an `earlier` look or as the first."""
    if code_reach is None:
        code_reach = reach(target, tuple(arguments.values())) if earlier is None else earlier.reach
    looked = Reached(code_reach, earlier, few=few)
    for root in roots(code_reach, target, arguments):
        looked.add(root)
    looked.is_unknown = bool(code_reach.unknown) if earlier is None else earlier.is_unknown
    for root in process_roots() if looked.is_unknown else ():
        looked.add(root, of_process=True)
    for connection, count in counts().items() if looked.is_unknown or code_reach.holds_database else ():
        if count > 0:
            looked.add(Root("a database in memory", f"connection {connection}", count))
    looked.snapshot.done()
    return looked
