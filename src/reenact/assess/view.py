"""A run as it is assessed, the calls that an assertion means, and how a finding is worded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reenact.assess import gaps
from reenact.assess.assertion_text import calls as spelled_calls
from reenact.assess.assertion_text import place
from reenact.assess.calls import CallView, Lost, call_views
from reenact.assess.truth import Unknown, has_name, is_meant, part_of, reached, steps_of
from reenact.values.assertion import Calls, Condition, Price, Standing
from reenact.values.difference import Absent, short_json
from reenact.values.run import Run

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Assessment:
    """What was found of an assertion: standing, evidence, witnesses."""

    standing: Standing
    because: str
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A run and what must be known to assess it."""

    run: Run
    calls: tuple[CallView, ...]
    stopped: str = ""
    """Why the run goes on behind what is known of it; empty where all of it is."""
    prices: tuple[Price, ...] = ()
    spanned: frozenset[str] = frozenset()
    """Tools that are known to have a span whenever they run."""

    def gap(self, calls: Calls | None = None) -> str:
        """Say why such a call may have happened and be missing here, or nothing."""
        return (
            gaps.unrecorded(self.run, calls)
            or gaps.missing(self.run)
            or gaps.unread(self.run, self.calls, calls)
            or gaps.unspanned(self.calls, calls)
            or gaps.unreadable(self.calls, calls, self.spanned)
        )

    def open(self, calls: Calls | None = None) -> str:
        """Say why such a call may still come, or may be missing here, or nothing."""
        return self.stopped or self.gap(calls)


def view(run: Run, *, complete: bool = True, spanned: Iterable[str] = (), prices: Iterable[Price] = ()) -> View:
    """Look at a run."""
    stopped = "" if complete else "the run was stopped before its end"
    spanned = tuple(spanned)
    return View(
        run=run,
        calls=call_views(run, spanned=spanned),
        stopped=stopped,
        prices=tuple(prices),
        spanned=frozenset(spanned),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """The calls that an assertion means."""

    sure: tuple[CallView, ...]
    unsure: tuple[tuple[CallView, str], ...] = ()
    """Those that it may mean, and why that cannot be known."""
    others: tuple[CallView, ...] = ()
    """Those of the same kind and name of which the rest is not true."""


def matches(calls: Calls, among: Iterable[CallView]) -> Matches:
    """Find the calls that are meant."""
    sure: list[CallView] = []
    unsure: list[tuple[CallView, str]] = []
    others: list[CallView] = []
    for each in among:
        match is_meant(calls, each):
            case True:
                sure.append(each)
            case Unknown(why=why):
                unsure.append((each, why))
            case _:
                if has_name(calls, each):
                    others.append(each)
    return Matches(sure=tuple(sure), unsure=tuple(unsure), others=tuple(others))


def holding(because: str, witnesses: Sequence[CallView] = ()) -> Assessment:
    """Say that it holds."""
    return Assessment(Standing.HOLDS, because, ids(witnesses))


def failing(because: str, witnesses: Sequence[CallView] = ()) -> Assessment:
    """Say that it fails."""
    return Assessment(Standing.FAILS, because, ids(witnesses))


def undecided(because: str, witnesses: Sequence[CallView] = ()) -> Assessment:
    """Say that it cannot be decided."""
    return Assessment(Standing.UNDECIDED, because, ids(witnesses))


def ids(witnesses: Sequence[CallView]) -> tuple[str, ...]:
    """Name calls by the ids of their nodes, each once."""
    return tuple(dict.fromkeys(each.node.id for each in witnesses))


def several(calls: Sequence[CallView], conditions: Sequence[Condition] = ()) -> str:
    """Name calls, the first few with the values that the conditions look at."""
    labels = [with_values(each, conditions) for each in calls[:_SHOWN]]
    more = f" and {len(calls) - _SHOWN} more" if len(calls) > _SHOWN else ""
    return ", ".join(labels) + more


def with_values(each: CallView, conditions: Sequence[Condition]) -> str:
    """Name a call with the values that the conditions look at: `tool pay #4: amount = 7`."""
    values: dict[str, str] = {}
    for condition in conditions:
        readings = reached(part_of(condition, each), steps_of(condition))
        values[place(condition.part, condition.path)] = " | ".join(
            f"not known ({value.why})" if isinstance(value, Lost) else short_json(value, 120)
            for value in readings[:_SHOWN]
        ) + (" | …" if len(readings) > _SHOWN else "")
    terms = ", ".join(f"{where} {'is' if value == 'absent' else '='} {value}" for where, value in values.items())
    return f"{each.label}: {terms}" if terms else each.label


def none_of(calls: Calls, hits: Matches) -> str:
    """Say that there is no such call, and what calls of that name there are."""
    if hits.others:
        near = several(hits.others, calls.where)
        return f"no call fits {spelled_calls(calls)}; there is {near}"
    bare = Calls(kind=calls.kind, name=calls.name)
    return f"{spelled_calls(bare)} was not called"


def value_text(value: object) -> str:
    """Spell a value that may be missing."""
    return "absent" if isinstance(value, Absent) else value.why if isinstance(value, Lost) else short_json(value)  # type: ignore[arg-type]  # `Absent` and `Lost` are told before
