"""What is tried, and in which order: a seeded walk over every call and every perturbation, the most varied first."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from random import Random

from reenact.boundary.reading import frames, is_plain
from reenact.contracts.perturbation import Perturbation, Subject
from reenact.discover import members
from reenact.values.answer import value_of
from reenact.values.call import CallKind, FunctionCall, HttpRequest, Unfinished
from reenact.values.json import Json
from reenact.values.json_path import entries
from reenact.values.lenient import as_object
from reenact.values.run import Node, Run
from reenact.values.variation import Case, Group, Variation

_SEVERAL = 6
"""After so many cases comes one that has two of the variations seen by then at once."""
_MOST_OTHERS = 500
_CHUNKS = frozenset({CallKind.RETRIEVER, CallKind.RERANKER})
_MODELS = frozenset({CallKind.LLM, CallKind.EMBEDDING})
_DEEPEST = 6
_NAMED = re.compile(r"(?:^|_)(?:id|ids|key|user|customer|tenant|account|owner|order|number|ref|name|email|path|sku)s?$")


def cases(run: Run, seed: int, groups: Collection[Group]) -> Iterator[Case]:
    """Yield cases without end of the same list for the same run and seed, until there is nothing left to vary.

    Each round takes the next variation of every call and perturbation, in an order drawn from the seed; now and then
    two of those seen before are tried together.
    """
    order = Random(f"{seed} order")  # noqa: S311 - drawn again from the same seed, and no secret
    variations: list[Variation] = []
    number = 0
    for variation in _variations(run, seed, groups, order):
        number += 1
        yield Case(number=number, variations=(variation,))
        variations.append(variation)
        if number % _SEVERAL == 0 and (pair := _pair(variations, order)) is not None:
            number += 1
            yield Case(number=number, variations=pair)


def _pair(variations: list[Variation], order: Random) -> tuple[Variation, Variation] | None:
    one, other = order.choice(variations), order.choice(variations)
    touched = {edit.node for edit in one.edits} & {edit.node for edit in other.edits}
    both_given = one.argv is not None and other.argv is not None
    return None if one is other or touched or both_given or one.renames or other.renames else (one, other)


def _variations(run: Run, seed: int, groups: Collection[Group], order: Random) -> Iterator[Variation]:
    run_subjects = subjects(run)
    ways = [way for way in members("vary", Perturbation) if way.groups & set(groups)]
    streams: list[Iterator[Variation]] = []
    for way in ways:
        if way.of_run is not None:
            streams.append(way.of_run(run, _own(seed, way, 0)))
        if way.of_call is not None:
            fitting = [subject for subject in run_subjects if way.groups & {subject.group, Group.TIMING} & set(groups)]
            streams += [way.of_call(subject, _own(seed, way, subject.node.number)) for subject in fitting]
    while streams:
        order.shuffle(streams)
        left: list[Iterator[Variation]] = []
        for stream in streams:
            if (variation := next(stream, None)) is not None:
                yield variation
                left.append(stream)
        streams = left


def _own(seed: int, way: Perturbation, number: int) -> Random:
    return Random(f"{seed} {way.name} {number}")  # noqa: S311 - as above


def subjects(run: Run) -> list[Subject]:
    """List the calls of a run whose answers may be varied."""
    covered, framing = _covered(run), frames(run.nodes)
    run_subjects: list[Subject] = []
    others = _others(run)
    for node in run.nodes:
        group = group_of(node)
        if group is None or node.id in covered or node.id in framing:
            continue
        value = value_of(node.outcome)
        run_subjects.append(
            Subject(
                run=run,
                node=node,
                group=group,
                value=value,
                root="result" if isinstance(node.call.request, FunctionCall) else "reply",
                others=others,
            )
        )
    return run_subjects


def group_of(node: Node) -> Group | None:
    """Say to which group a call's answer belongs; None where it has none that could be varied."""
    if node.call.is_structure or isinstance(node.outcome, Unfinished) or node.span.attributes.get("reenact.run.root"):
        return None
    if node.kind in _MODELS:
        return Group.MODELS if isinstance(node.call.request, HttpRequest) else None
    if node.kind in _CHUNKS:
        return Group.CHUNKS
    return Group.TOOLS if isinstance(node.call.request, FunctionCall) or is_plain(node) else None


def _covered(run: Run) -> set[str]:
    """Name the calls below one whose answer stands for all of it: they are not made again."""
    whole = {node.id for node in run.nodes if node.call.is_whole and not node.span.attributes.get("reenact.run.root")}
    covered: set[str] = set()
    for node in run.nodes:  # parents come before children
        if node.parent is not None and (node.parent in whole or node.parent in covered):
            covered.add(node.id)
    return covered


def _others(run: Run) -> tuple[tuple[str, str], ...]:
    """List the ids and names that the run holds anywhere in what was asked of functions and what they gave."""
    candidates: dict[tuple[str, str], None] = {}
    for node in run.nodes:
        if len(candidates) >= _MOST_OTHERS:
            break
        if isinstance(node.call.request, FunctionCall):
            _collect(node.call.request.arguments, "", candidates)
        value = value_of(node.outcome)
        if node.kind not in _MODELS and isinstance(value, dict | list):
            _collect(value, "", candidates)
    for name, identity in (("user_id", run.user), ("tenant", run.tenant), ("session_id", run.session)):
        if identity:
            candidates.setdefault((name, identity))
    return tuple(candidates)


def _collect(value: Json, field: str, candidates: dict[tuple[str, str], None], depth: int = 0) -> None:
    if len(candidates) >= _MOST_OTHERS or depth > _DEEPEST:
        return
    if isinstance(value, str) and not as_object(value) and _NAMED.search(field) and 0 < len(value) <= 200:
        candidates.setdefault((field, value))
        return
    for step, item in entries(value):
        _collect(item, step if isinstance(step, str) else field, candidates, depth + 1)
