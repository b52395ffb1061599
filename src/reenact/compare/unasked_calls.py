"""What a recording was owed by its replay: the calls that nobody asked for, and which of them the program went past."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

from reenact.boundary.reading import frames
from reenact.compare.ending import is_root
from reenact.values.call import FunctionCall, Unfinished
from reenact.values.json import compact
from reenact.values.lane import sequence
from reenact.values.run import Node, Run


class Recorded:
    """The calls of one or more recorded runs, in one causal order."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.selected = runs[0].id
        """The run that is replayed."""
        everything = [(node, run) for run in runs for node in run.nodes]
        if len(runs) > 1:  # one process numbers its calls over all its runs; times stand in where it did not
            everything.sort(key=lambda each: (each[0].start_order, each[0].span.start_ns, each[0].number))
        self.nodes: dict[str, Node] = {node.id: node for node, _ in everything}
        self.run_of: dict[str, str] = {node.id: run.id for node, run in everything}
        self.rank: dict[str, int] = {node_id: place for place, node_id in enumerate(self.nodes, 1)}
        self.frames = frozenset[str]().union(*(frames(run.nodes) for run in runs))
        self.by_label: dict[str, Node] = {}
        self._answerable: list[Node] = []
        self._children: dict[str, list[str]] = defaultdict(list)
        for node, run in everything:
            self.by_label.setdefault(node.label, node)
            if node.parent is not None:
                self._children[node.parent].append(node.id)
            exempt = "reenact.recovered" in node.span.attributes  # of which nobody knows that it was a function's call
            may_be_left = node.call.is_handshake and not node.call.is_set_up  # a pool connects as often as it likes
            exempt = exempt or may_be_left
            if not (is_root(node, run) or node.call.is_structure or node.id in self.frames or exempt):
                self._answerable.append(node)

    def answerable(self, runs: Collection[str] | None = None) -> Iterator[Node]:
        """Give the calls that a replay can be asked for and answer, of these runs or of all."""
        for node in self._answerable:
            if not isinstance(node.outcome, Unfinished) and (runs is None or self.run_of[node.id] in runs):
                yield node

    def covered(self, answered: Iterable[str]) -> set[str]:
        """Find everything below calls that were answered whole."""
        descendants: set[str] = set()
        left = [child for node_id in answered if node_id not in self.frames for child in self._children[node_id]]
        while left:
            node_id = left.pop()
            if node_id not in descendants:
                descendants.add(node_id)
                left += self._children[node_id]
        return descendants

    def set_ups_like(self, answered: Iterable[str]) -> set[str]:
        """Find what set connections up as one of these calls did: a replay makes fewer connections, or more."""
        asked = {_question(self.nodes[node_id]) for node_id in answered if node_id in self.nodes}
        return {node.id for node in self._answerable if node.call.is_set_up and _question(node) in asked}

    def passed(self, owed: Iterable[Node], reached: Collection[str]) -> list[Node]:
        """Pick the calls that the program cannot have been about to make when it was stopped.

        Those are the calls with something later in their own lane, or in a lane above or below it that began after they
        had ended, among what was reached. A lane beside it proves nothing: it may merely have been faster.
        """
        furthest: dict[_Line, int] = {}
        latest: dict[_Line, int] = {}
        latest_below: dict[_Line, int] = {}
        for node_id in reached:
            node = self.nodes[node_id]
            line = _line(node)
            furthest[line] = max(furthest.get(line, 0), self.rank[node_id])
            latest[line] = max(latest.get(line, 0), node.start_order)
            for above in _above(line):
                latest_below[above] = max(latest_below.get(above, 0), node.start_order)
        passed_nodes: list[Node] = []
        for node in owed:
            line = _line(node)
            lanes = max((latest.get(above, 0) for above in _above(line)), default=0)
            began = max(lanes, latest_below.get(line, 0))
            if furthest.get(line, 0) > self.rank[node.id] or 0 < node.end_order < began:
                passed_nodes.append(node)
        return passed_nodes


def _question(node: Node) -> str:
    """Spell what a call that sets a connection up asks; empty of others."""
    request = node.call.request
    return compact(request.arguments) if node.call.is_set_up and isinstance(request, FunctionCall) else ""


_Line = tuple[str, str]
"""A sequence, in which alone order numbers can be compared, and a lane in it."""


def _line(node: Node) -> _Line:
    process = str(node.span.resource.attributes.get("reenact.process.id") or "")
    return sequence(node.lane, process), node.lane


def _above(line: _Line) -> Iterator[_Line]:
    """Give the lanes that spawned this one, directly or not, in the same sequence."""
    numbered, lane = line
    at = lane.rfind("/")
    while at > 0:
        yield numbered, lane[:at]
        at = lane.rfind("/", 0, at)
