"""How a recorded run is altered before it answers: what is changed in its calls, and whether that makes a fork."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reenact.values.json import Json
from reenact.values.run import Run

if TYPE_CHECKING:  # every run that is found has one of these, and only few are replayed
    from reenact.replay.forking import Fork
    from reenact.values.change import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """What makes a fork of a replay."""

    fork: Fork
    root: Mapping[str, Json]
    """What the root of its run says of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Altered:
    """Nothing by default: the run answers as it was recorded."""

    changes: tuple[Change, ...] = ()
    branch: Branch | None = None

    def run(self, recorded: Run) -> Run:
        """Give the run as it answers. Raises `UsageError` where a change fits no call."""
        if not self.changes:
            return recorded
        from reenact.replay.changes import apply

        return apply(recorded, self.changes)

    def in_plan(self, scratch: Path) -> dict[str, Any]:
        """Say it to the replaying process."""
        plan: dict[str, Any] = {"changes": [change.to_json() for change in self.changes]}
        branch = self.branch_in(scratch)
        if branch is not None:
            plan["branch"] = {"fork": branch.fork.to_json(), "root": dict(branch.root)}
        return plan

    def branch_in(self, scratch: Path) -> Branch | None:
        """Give the fork, its processes told apart from others by a file in `scratch`."""
        if self.branch is None:
            return None
        return replace(self.branch, fork=replace(self.branch.fork, marker=scratch / "forked"))

    @staticmethod
    def read(changes: list[Any], branch: Mapping[str, Any] | None) -> Altered:
        """Read what `in_plan` said."""
        if branch is None and not changes:
            return Altered()
        from reenact.values.change import Change

        altered = Altered(changes=tuple(map(Change.from_json, changes)))
        if branch is None:
            return altered
        from reenact.replay.forking import Fork

        return replace(altered, branch=Branch(fork=Fork.from_json(branch["fork"]), root=branch["root"]))
