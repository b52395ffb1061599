"""What a perturbation promises: of a recorded call, or a whole run, it makes variations, the same for the same seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from reenact.values.answer import Place, places, spell_place, with_answer
from reenact.values.call import Outcome
from reenact.values.difference import ABSENT, Absent
from reenact.values.json import Json, compact
from reenact.values.json_path import Path, with_value
from reenact.values.run import Node, Run
from reenact.values.variation import Edit, Group, Variation


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A call whose answer may be varied."""

    run: Run
    node: Node
    group: Group
    value: Json | Absent
    """What it answers with, where that is a JSON value; ABSENT where it is none."""
    root: str
    """What the value is called in a path: `result` of a function, `reply` of a body over HTTP."""
    others: tuple[tuple[str, str], ...]
    """Ids and names that the run holds anywhere: field name and text."""

    @property
    def places(self) -> tuple[Place, ...]:
        """The places in the value that may be varied, the value itself first; none of a model's reply."""
        return () if self.group is Group.MODELS or isinstance(self.value, Absent) else places(self.value)

    def giving(self, kind: str, place: Place, new: Json, description: str, *, fails: bool = False) -> Variation:
        """Make the variation in which the call answers with `new` at a place."""
        whole: Json = None if isinstance(self.value, Absent) else self.value
        changed = with_value(whole, place.path, new)
        return self.answering(
            kind,
            with_answer(self.node.outcome, changed),
            description,
            place=place,
            new=new,
            fails=fails,
            size=place.leaves,
        )

    def answering(
        self,
        kind: str,
        outcome: Outcome,
        description: str,
        *,
        place: Place | None = None,
        new: Json | Absent = ABSENT,
        fails: bool = False,
        size: int = 1,
    ) -> Variation:
        """Make the variation in which the call comes to `outcome`."""
        path: Path = place.path if place is not None else ()
        return Variation(
            kind=kind,
            group=self.group,
            call=self.node.label,
            node=self.node.id,
            path=spell_place(self.root, path) if place is not None else "",
            before=place.value if place is not None else ABSENT,
            after=new,
            description=description,
            size=size,
            edits=(Edit(node=self.node.id, outcome=outcome),),
            marks=() if isinstance(new, Absent) or new in (None, "", [], {}, 0, 1, True, False) else (compact(new),),
            fails=fails,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Perturbation:
    """One way to vary.

    Each module of `reenact.vary` that is a member declares one, or a few of one kind. `of_call` is asked for each call
    of one of its `groups`, `of_run` once; both draw only from the generator that they are given, and yield the most
    telling variation first.
    """

    name: str
    groups: frozenset[Group]
    does: str
    """What it does, in a few words: for the report, and for those who look for one."""
    of_call: Callable[[Subject, Random], Iterator[Variation]] | None = None
    of_run: Callable[[Run, Random], Iterator[Variation]] | None = None
