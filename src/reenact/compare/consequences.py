"""What followed from a change: the differences between a run and its fork, less the change itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from reenact.compare.align import compare
from reenact.values.difference import Divergence
from reenact.values.run import Run

MISSED = "reenact.replay.missed"
"""On a call that stopped a replay."""
_QUESTION = ("body", "arguments", "method", "url")


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkChange:
    """What a fork changed."""

    answered: frozenset[str] = frozenset()
    """Ids of the calls of the parent whose answer was set."""
    asked: frozenset[str] = frozenset()
    """Ids of those whose question was."""
    parameters: frozenset[str] = frozenset()
    """Fields of the body that every model call was asked with anew."""
    stopped: bool = False
    """The fork came to a call that ended it: neither its end nor what it did not come to says anything."""


def consequences(parent: Run, fork: Run, change: ForkChange) -> tuple[Divergence, ...]:
    """List what differs between `parent` and `fork` less the change itself, the first one first."""
    missed = {node.id for node in fork.nodes if MISSED in node.span.attributes}
    unended = any(MISSED in node.span.attributes for node in parent.nodes)  # a fork that was stopped
    comparison = compare(parent, fork)
    effects: list[Divergence] = []
    for each in comparison.divergences:
        if not _is_the_change(each, change):
            effects.append(each)
        elif change.parameters:  # further fields may lie behind a parameter's
            of_question = each.field.startswith(_QUESTION)
            rest = comparison.more.get(each.node_a or "", ())
            effects += _first((more for more in rest if more.field.startswith(_QUESTION) == of_question), change)
    effects = [each for each in effects if not (unended and each.call == "run")]
    return tuple(each for each in effects if not (change.stopped and _is_the_stop(each, missed)))


def _first(divergences: Iterable[Divergence], change: ForkChange) -> list[Divergence]:
    return [each for each in divergences if not _is_the_change(each, change)][:1]


def _is_the_change(each: Divergence, change: ForkChange) -> bool:
    of_question = each.field.startswith(_QUESTION)
    if change.parameters:
        fields = {f"body.{name}" for name in change.parameters}
        fields |= {f"reply.{name}" for name in change.parameters & {"model"}}
        if any(each.field == field or each.field.startswith((f"{field}.", f"{field}[")) for field in fields):
            return True
    return (each.node_a in change.answered and not of_question) or (each.node_a in change.asked and of_question)


def _is_the_stop(each: Divergence, missed: Collection[str]) -> bool:
    return each.kind == "missing" or each.call == "run" or (each.node_b in missed and each.field == "outcome")
