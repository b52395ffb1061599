"""Twins: one call that several instrumentations saw is one record, the one with the most evidence.

A provider's SDK that opens spans of its own, a framework over it and an instrumentor beside both may all write down
the same call, and one instrumentation may write it twice, from without and from within. Two spans of one trace are
twins where different emitters wrote them, of the same kind of call, about the same model or tool, and one stands below
the other or both ran at the same time; what the two say of the reply's id, of the question and of the answer must not
contradict it. Two spans of one emitter are twins only where something says so: the same reply, the same calls of tools,
the same question and answer. Twins are paired one to one by emitter, so that of two equal calls at once neither is
lost. The lesser twin's place in the tree goes to the one that stays, which takes over what only the other says
(`graph.merging`); spans that only give structure stay where they were, and a span that encloses several calls is
structure itself.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations

from reenact.graph.call_sighting import (
    FUNCTIONS,
    Known,
    Sighting,
    about_the_same,
    arguments,
    family_of,
    same_id,
    sighting,
    voice_of,
)
from reenact.values.call import CallKind, Unfinished
from reenact.values.run import OURS, Node

_NEAREST, _ALIGNED = 32, 8
"""How many calls of another emitter, before and behind, are looked at for a twin that stands beside."""
_MOST_EMITTERS = 12
"""How many emitters of a trace are compared with each other call by call; a trace has two or three."""
_ROUNDS = 8
"""How often a trace is gone through; two suffice for all that is not made up."""
_EQUALS = 8
"""How many calls of equal evidence are looked at for one of the same emitter."""
_AFTERWARDS_NS = 250_000_000
"""How long after the end of a stream Logfire may log what came of it."""


def folded(nodes: list[Node]) -> tuple[list[Node], int]:
    """Fold twins. Nodes come and go in causal order; gives them numbered anew, and how many are gone.

    What is folded may bring others side by side, so this goes on until nothing is left to fold.
    """
    folded_count, cache = 0, Known()
    for _ in range(_ROUNDS):
        nodes, went, changed = _once(nodes, cache)
        folded_count += went
        if not changed:
            break
    return nodes, folded_count


def _once(nodes: list[Node], cache: Known) -> tuple[list[Node], int, bool]:
    into, frames = _twins(nodes, cache)
    if not into and not frames:
        return nodes, 0, False
    from reenact.graph.merging import as_frame, merged

    by_id = {node.id: node for node in nodes}
    duplicates: dict[str, list[Node]] = defaultdict(list)
    for node_id, stays in into.items():
        duplicates[stays].append(by_id[node_id])
    for stays, twins in duplicates.items():
        by_id[stays] = merged(by_id[stays], twins)
    for node_id in frames:
        by_id[node_id] = as_frame(by_id[node_id])
    rest = [by_id[node.id] for node in nodes if node.id not in into]
    return [_placed(node, number, _parent(node, into, by_id)) for number, node in enumerate(rest, 1)], len(into), True


def _placed(node: Node, number: int, parent: str | None) -> Node:
    """Put a node into its place. Its span stays as it came: it is handed on with the twins, and read so again."""
    return replace(node, number=number, parent=parent)


def _parent(node: Node, into: Mapping[str, str], by_id: Mapping[str, Node]) -> str | None:
    """Find what a node hangs below now: the twin that stayed where it ran inside that, else what is above both."""
    above = node.parent
    while above is not None and above in into:
        stays = by_id[into[above]]
        inside = stays.number < node.number and stays.span.start_ns <= node.span.start_ns <= stays.span.end_ns
        if inside and stays.kind is not node.kind:
            return stays.id
        above = by_id[above].parent
    return above


def _twins(nodes: list[Node], cache: Known) -> tuple[dict[str, str], frozenset[str]]:
    """Find the calls that are to go, each with the one that stays for it, and the spans that enclose several calls."""
    by_id = {node.id: node for node in nodes}
    candidates = [node for node in nodes if family_of(node) is not None]
    if len({voice_of(node.span) for node in candidates}) < 2 and not _any_within(candidates, by_id):
        return {}, frozenset()
    views = {node.id: sighting(node, by_id, cache) for node in candidates}
    pairs = sorted(_pairs(views), key=lambda pair: (*pair[0], pair[1].node.id, pair[2].node.id))
    several = _frames_of_several(views)
    heir: dict[str, str] = {}
    groups = {node_id: [each] for node_id, each in views.items()}
    for (unlike, *_), one, other in pairs:
        if unlike and (one.node.id in several) is not (other.node.id in several):
            continue  # it holds several calls: it is none of them
        less, more = sorted((_last(one.node.id, heir), _last(other.node.id, heir)), key=lambda last: views[last].worth)
        if less != more and _fit(groups[less], groups[more]):
            heir[less] = more
            groups[more] += groups[less]
    into = {node_id: _last(node_id, heir) for node_id in heir}
    frames = frozenset(node_id for node_id in several if _is_foreign_model(views[node_id]) and node_id not in heir)
    return into, frames - set(into.values())


def _any_within(candidates: list[Node], by_id: Mapping[str, Node]) -> bool:
    """Tell whether any call stands right below another of its kind."""
    return any(
        node.parent in by_id and node.kind is by_id[node.parent].kind for node in candidates if node.parent is not None
    )


def _is_foreign_model(each: Sighting) -> bool:
    return each.family is CallKind.LLM and OURS not in each.node.span.attributes


def _last(node_id: str, heir: Mapping[str, str]) -> str:
    """Follow twins of twins; each is worth more than the one before, so that there is an end."""
    while node_id in heir:
        node_id = heir[node_id]
    return node_id


def _fit(some: list[Sighting], others: list[Sighting]) -> bool:
    """Tell whether two groups may be one call: no emitter saw it twice, unless its two spans are twins themselves."""
    if _folded_before(some) & _who(others) or _folded_before(others) & _who(some):
        return False
    return all(
        (one.emitter, one.note) != (other.emitter, other.note)
        or _unlike(one, other, nested=_related(one, other)) is not None
        for one in some
        for other in others
    )


def _who(group: list[Sighting]) -> set[tuple[str, bool]]:
    return {(each.emitter, each.note) for each in group} | _folded_before(group)


def _folded_before(group: list[Sighting]) -> set[tuple[str, bool]]:
    """Name the emitters of the twins that an earlier round folded into these."""
    voices = [voice_of(span) for each in group for span in each.node.twins]
    return {(emitter, note) for emitter, _, note in voices}


def _related(one: Sighting, other: Sighting) -> bool:
    """Tell whether one stands anywhere below the other."""
    return other.node.id in one.higher or one.node.id in other.higher


_Pair = tuple[tuple[int, bool, bool, int, int], Sighting, Sighting]
"""Two that may be twins, after how little they are alike."""


def _pairs(sightings: Mapping[str, Sighting]) -> Iterator[_Pair]:
    for one in sightings.values():
        for above in one.above:
            if (unlike := _unlike(one, sightings[above], nested=True)) is not None:
                yield (unlike, False, *_order(one, sightings[above])), one, sightings[above]
    for one, other in _neighbours(sightings.values()):
        if (
            not _related(one, other)
            and _at_once(one, other)
            and (unlike := _unlike(one, other, nested=False)) is not None
        ):
            yield (unlike, True, *_order(one, other)), one, other
    for one, other in _equals(sightings.values()):
        if (
            not _related(one, other)
            and _at_once(one, other)
            and (unlike := _unlike(one, other, nested=False)) is not None
        ):
            yield (unlike, True, *_order(one, other)), one, other


def _order(one: Sighting, other: Sighting) -> tuple[bool, int, int]:
    """Put pairs in order: those first of which one ran within the other, then as they began."""
    early, late = sorted((one, other), key=lambda each: each.start_ns)
    if late.note:
        return False, late.start_ns - early.end_ns, 0
    return late.end_ns > early.end_ns, early.start_ns, late.start_ns


def _at_once(one: Sighting, other: Sighting) -> bool:
    early, late = sorted((one, other), key=lambda each: each.start_ns)
    return late.start_ns <= early.end_ns + (_AFTERWARDS_NS if late.note else 0)


def _within(one: Sighting, other: Sighting) -> bool:
    """Tell whether one of two ran wholly within the other."""
    outer, inner = sorted((one, other), key=lambda each: each.start_ns - each.end_ns)
    return outer.start_ns <= inner.start_ns and inner.end_ns <= outer.end_ns


def _neighbours(sightings: Iterable[Sighting]) -> Iterator[tuple[Sighting, Sighting]]:
    """Give the calls of two emitters that began at about the same time, or that are the n-th of both."""
    for group in _by_subject(sightings):
        for mine, others in combinations(group, 2):
            starts = [other.start_ns for other in others]
            for number, one in enumerate(mine):
                at = bisect_left(starts, one.start_ns)
                places = {*range(at - _NEAREST, at + _NEAREST), *range(number - _ALIGNED, number + _ALIGNED)}
                yield from ((one, others[place]) for place in places if 0 <= place < len(others))


def _by_subject(sightings: Iterable[Sighting]) -> Iterator[list[list[Sighting]]]:
    """Group calls that may be about the same by emitter, each in the order of their beginnings."""
    groups: dict[tuple[CallKind, str], dict[tuple[str, bool], list[Sighting]]] = defaultdict(lambda: defaultdict(list))
    for each in sorted(sightings, key=lambda each: (each.start_ns, each.node.id)):
        subject = min(each.names, default="") if each.family in FUNCTIONS else ""
        groups[each.family, subject][each.emitter, each.note].append(each)
    for by_emitter in groups.values():
        yield sorted(by_emitter.values(), key=len, reverse=True)[:_MOST_EMITTERS]


def _equals(sightings: Iterable[Sighting]) -> Iterator[tuple[Sighting, Sighting]]:
    """Give the calls that one piece of evidence says are the same, whoever wrote them down."""
    groups: dict[tuple[object, ...], list[Sighting]] = defaultdict(list)
    for each in sorted(sightings, key=lambda each: (each.start_ns, each.node.id)):
        if each.id:
            groups[each.family, "id", each.id].append(each)
        if each.calls:
            groups[each.family, "calls", each.calls].append(each)
        if each.gist and each.answer:
            groups[each.family, "said", each.gist, each.answer].append(each)
    for group in groups.values():
        for place, one in enumerate(group):
            yield from ((one, other) for other in group[place + 1 : place + 1 + _EQUALS])


def _unlike(one: Sighting, other: Sighting, *, nested: bool) -> int | None:
    """Say how unlike two calls are: 0 the same for certain, 2 nothing but place and subject; None: not the same."""
    if one.family is not other.family:
        return None
    spelled_alike = not nested or one.dialect == other.dialect
    own = one.emitter == other.emitter and spelled_alike and not _is_told_by_note(one, other)
    if own and (one.note or other.note or (one.voice == other.voice and not nested)):
        return None  # what one emitter writes in one kind of span, side by side, is as many calls
    if one.family in FUNCTIONS:
        return _unlike_functions(one, other, own=own)
    ids_agree = same_id(one.id, other.id)
    contradicts = bool(one.calls and other.calls) and not one.calls & other.calls
    if ids_agree is False or contradicts or not about_the_same(one, other):
        return None
    if ids_agree or (one.calls and one.calls == other.calls):
        return 0
    return _unlike_own(one, other, nested=nested) if own else _unlike_said(one, other, nested=nested)


def _unlike_functions(one: Sighting, other: Sighting, *, own: bool) -> int | None:
    if one.id and other.id:
        return 0 if one.id == other.id else None
    if own or not about_the_same(one, other):
        return None
    return 1 if arguments(one.node) == arguments(other.node) else 2


def _unlike_own(one: Sighting, other: Sighting, *, nested: bool) -> int | None:
    """Compare two spans of one emitter, which are two calls unless what was asked and answered says otherwise."""
    asked_the_same = bool(one.gist) and one.gist == other.gist
    answered_the_same = bool(one.answer) and one.answer == other.answer
    if one.answer and other.answer and not answered_the_same:
        return None
    if nested:
        counted = None not in one.usage and one.usage == other.usage and one.voice != other.voice
        silent = Unfinished in (type(one.node.outcome), type(other.node.outcome))
        return 1 if (asked_the_same and (answered_the_same or silent)) or (counted and not one.gist) else None
    unscoped = not one.node.span.scope.name and bool(one.id) is not bool(other.id)  # of two layers one knows the id
    return 1 if unscoped and asked_the_same and answered_the_same and _within(one, other) else None


def _unlike_said(one: Sighting, other: Sighting, *, nested: bool) -> int | None:
    """Compare what two emitters kept of question and answer."""
    if one.answer and other.answer and not _begins_alike(one.answer, other.answer):
        return None
    inner, around = (one, other) if other.node.id in one.higher else (other, one)
    if (inner.failed and around.answer) or (not nested and around.failed and inner.answer):
        return None  # it is another try
    if one.gist and other.gist:
        if one.gist == other.gist:
            return 1
        return 2 if nested and _begins_alike(one.gist, other.gist) else None
    gist, content = one.gist or other.gist, one.content or other.content
    if not (gist and content):
        return 2
    if gist in content:
        return 1
    return 2 if nested else None  # the emitter may have cut what it wrote


def _begins_alike(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def _is_told_by_note(one: Sighting, other: Sighting) -> bool:
    """Tell whether the only thing that an emitter wrote twice is what came of a call, which its span did not hold."""
    call = other if one.note else one
    return one.note is not other.note and isinstance(call.node.outcome, Unfinished)


def _frames_of_several(sightings: Mapping[str, Sighting]) -> set[str]:
    """Find calls below which one emitter saw more than one of a kind that succeeded, by id."""
    inside: dict[tuple[str, object], int] = defaultdict(int)
    for each in sightings.values():
        for above in each.above:
            inside[above, each.voice] += not each.failed
    return {node_id for (node_id, _), count in inside.items() if count > 1}
