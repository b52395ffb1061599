"""Which call of one run goes with which of another: by content first, each lane for itself, then across lanes.

Lanes run side by side, so how they interleave says nothing; only within a lane is there an order. A call that moved to
another lane with the same content is the same call.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from reenact.boundary.question import PLAIN_HTTP
from reenact.compare.content import Content, content, raw_key
from reenact.compare.sequences import aligned
from reenact.values.call import HttpRequest
from reenact.values.run import Node


@dataclass(slots=True, eq=False)
class Item:
    """One call to be paired. Keys are made when they are first needed: most calls pair by the cheapest one."""

    node: Node
    lane: str
    blind: bool
    _raw: tuple[str, bytes] | None = None
    _keys: tuple[str, str] | None = None

    @property
    def raw(self) -> Hashable:
        """What was recorded, to the byte."""
        if self._raw is None:
            self._raw = raw_key(self.node)
        return self._raw

    @property
    def whole(self) -> Hashable:
        """Question and outcome."""
        return self._keyed()[0]

    @property
    def question(self) -> Hashable:
        """The question alone."""
        return self._keyed()[1]

    @property
    def name(self) -> Hashable:
        """Kind and name. A model's call is named by what it speaks: every emitter calls its span something else."""
        request = self.node.call.request
        if isinstance(request, HttpRequest) and request.shape != PLAIN_HTTP:
            return self.node.kind, request.shape
        return self.node.kind, self.node.call.name

    def _keyed(self) -> tuple[str, str]:
        if self._keys is None:
            compared_content = self.content()
            self._keys = compared_content.whole, compared_content.question
        return self._keys

    def content(self) -> Content:
        """Read what is compared. Not kept: a long run holds its conversation once for every turn."""
        return content(self.node, blind=self.blind)


@dataclass(slots=True)
class Pairs:
    """What went with what."""

    pairs: list[tuple[Item, Item]] = field(default_factory=list[tuple[Item, Item]])
    reordered: list[tuple[Item, Item]] = field(default_factory=list[tuple[Item, Item]])
    """Equal calls whose order within their lane changed."""
    only_a: list[Item] = field(default_factory=list[Item])
    only_b: list[Item] = field(default_factory=list[Item])


_LEVELS: tuple[Callable[[Item], Hashable], ...] = (
    lambda item: item.raw,
    lambda item: item.whole,
    lambda item: item.question,
    lambda item: item.name,
)
"""From the surest sign that two calls are one to the weakest."""


def paired(a: Sequence[Node], b: Sequence[Node], *, blind: bool) -> Pairs:
    """Pair two sequences of calls, each in causal order."""
    with_lanes = any(node.lane for node in a) and any(node.lane for node in b)
    left = [Item(node, node.lane if with_lanes else "", blind) for node in a]
    right = [Item(node, node.lane if with_lanes else "", blind) for node in b]
    lanes_a, lanes_b = _by_lane(left), _by_lane(right)
    pairing = Pairs()
    for lane, items in lanes_a.items():
        pairing.pairs += _levelled(items, lanes_b.get(lane, []), 0)
    rest_a, rest_b = _rest(left, right, pairing.pairs)
    overlapping = set[str]() if with_lanes else _overlapping(a) | _overlapping(b)
    for x, y in _crosswise(rest_a, rest_b):
        moved_within = x.lane == y.lane and x.node.id not in overlapping and y.node.id not in overlapping
        (pairing.reordered if moved_within and x.whole == y.whole else pairing.pairs).append((x, y))
    rest_a, rest_b = _rest(left, right, [*pairing.pairs, *pairing.reordered])
    strangers = ([x for x in rest_a if x.lane not in lanes_b], [y for y in rest_b if y.lane not in lanes_a])
    pairing.pairs += _levelled(*strangers, len(_LEVELS) - 1)
    pairing.only_a, pairing.only_b = _rest(left, right, [*pairing.pairs, *pairing.reordered])
    return pairing


def _by_lane(items: Iterable[Item]) -> dict[str, list[Item]]:
    lanes: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        lanes[item.lane].append(item)
    return dict(lanes)


def _levelled(a: Sequence[Item], b: Sequence[Item], level: int) -> list[tuple[Item, Item]]:
    """Pair by the surest sign, then what lies between those pairs by the next one."""
    if not a or not b or level == len(_LEVELS):
        return []
    key = _LEVELS[level]
    anchors = aligned([key(item) for item in a], [key(item) for item in b])
    pairs = [(a[i], b[j]) for i, j in anchors]
    at_a = at_b = 0
    for i, j in [*anchors, (len(a), len(b))]:
        pairs += _levelled(a[at_a:i], b[at_b:j], level + 1)
        at_a, at_b = i + 1, j + 1
    return pairs


def _rest(a: Iterable[Item], b: Iterable[Item], pairs: Iterable[tuple[Item, Item]]) -> tuple[list[Item], list[Item]]:
    used_ids = {id(item) for pair in pairs for item in pair}
    return [item for item in a if id(item) not in used_ids], [item for item in b if id(item) not in used_ids]


def _crosswise(a: Sequence[Item], b: Sequence[Item]) -> list[tuple[Item, Item]]:
    """Pair what is left by equal content, then by equal questions, wherever it stands."""
    pairs: list[tuple[Item, Item]] = []
    if not a or not b:
        return pairs
    for key in _LEVELS[1:3]:
        rest_a, rest_b = _rest(a, b, pairs)
        waiting: dict[Hashable, deque[Item]] = defaultdict(deque)
        for item in rest_b:
            waiting[key(item)].append(item)
        pairs += [(item, waiting[key(item)].popleft()) for item in rest_a if waiting[key(item)]]
    return pairs


def _overlapping(nodes: Iterable[Node]) -> set[str]:
    """Find the calls that ran beside another below the same parent, by their times: all there is without lanes."""
    families: dict[str | None, list[Node]] = defaultdict(list)
    for node in nodes:
        families[node.parent].append(node)
    node_ids: set[str] = set()
    for family in families.values():
        longest: Node | None = None
        for node in sorted(family, key=lambda node: node.span.start_ns):
            if longest is not None and node.span.start_ns < longest.span.end_ns:
                node_ids |= {node.id, longest.id}
            if longest is None or node.span.end_ns > longest.span.end_ns:
                longest = node
    return node_ids
