"""Cold cases: calls and whole runs that no replay can answer, kept and counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

DIMENSIONS: Final = ("model", "tool", "tenant", "hour", "reason")
"""By what cold cases are grouped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdCall:
    """A call that a recording holds and a replay cannot answer; or, with no label, a run that holds no call."""

    run: str
    """The trace id."""
    call: str = ""
    model: str = ""
    tool: str = ""
    tenant: str = ""
    hour: str = ""
    """When the run began, in UTC: `2026-11-20T09`; empty where nothing says."""
    reason: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdRun:
    """A run of which nothing can be answered."""

    id: str
    name: str
    started: str
    source: str
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdGroup:
    """Cold cases that have the same values of some dimensions."""

    key: tuple[str, ...]
    runs: int
    """How many cold runs have such a call."""
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdCases:
    """What was found cold among so much."""

    runs_read: int = 0
    calls_read: int = 0
    runs: tuple[ColdRun, ...] = ()
    calls: tuple[ColdCall, ...] = ()

    def by(self, dimensions: Sequence[str]) -> list[ColdGroup]:
        """Count by these dimensions, most calls first, then most runs, then by value."""
        cold = {run.id for run in self.runs}
        calls: Counter[tuple[str, ...]] = Counter()
        runs: dict[tuple[str, ...], set[str]] = defaultdict(set)
        for call in self.calls:
            key = tuple(str(getattr(call, name)) for name in dimensions)
            calls[key] += bool(call.call)
            if call.run in cold:
                runs[key].add(call.run)
        groups = [ColdGroup(key=key, runs=len(runs[key]), calls=count) for key, count in calls.items()]
        return sorted(groups, key=lambda group: (-group.calls, -group.runs, group.key))


def joined(places: Iterable[ColdCases]) -> ColdCases:
    """Put what several places hold together."""
    every = [*places]
    return ColdCases(
        runs_read=sum(each.runs_read for each in every),
        calls_read=sum(each.calls_read for each in every),
        runs=tuple(run for each in every for run in each.runs),
        calls=tuple(call for each in every for call in each.calls),
    )
