"""Which recorded calls a replay made in another order than their lane did when recorded.

Lanes run side by side, and how they interleave says nothing. Within a lane calls follow each other, below one parent,
unless code runs there side by side all the same (eventlet): where two of its calls overlapped nothing is said.
Queries of a database are left out: libraries send some of them in the order of a set of objects.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from reenact.compare.unasked_calls import Recorded
from reenact.values.difference import Divergence, divergence_to_json
from reenact.values.json import Json
from reenact.values.lenient import as_text
from reenact.values.run import Node

_MET = frozenset({"answered", "ran_again"})
_Line = tuple[str, str]
"""Whose calls follow each other: a parent, and a lane."""


def swapped(of: Recorded, ledger: Sequence[Mapping[str, Json]]) -> Iterator[tuple[Node, dict[str, Json]]]:
    """Give the first call of each line that was made behind one that came later, and say so."""
    if any(entry.get("t") in {"live", "forked"} or "onward" in entry for entry in ledger):
        return  # what was answered anew may have the program go another way
    latest: dict[_Line, Node] = {}
    reported_lines, seen_ids = set[_Line](), set[str]()
    beside: set[_Line] | None = None
    for entry in ledger:
        node = of.nodes.get(as_text(entry.get("id"))) if entry.get("t") in _MET and not entry.get("moved") else None
        if node is None or node.id in seen_ids or not _counts(node):
            continue
        seen_ids.add(node.id)
        line = _line(node)
        last = latest.setdefault(line, node)
        if node.start_order >= last.start_order:
            latest[line] = node
        elif line not in reported_lines:
            reported_lines.add(line)
            beside = _beside(of) if beside is None else beside
            if line not in beside:
                yield node, _reordering(node, last)


def _counts(node: Node) -> bool:
    call = node.call
    return node.start_order > 0 and not (call.is_query or call.is_handshake or call.is_structure)


def _line(node: Node) -> _Line:
    return node.parent or "", node.lane


def _beside(of: Recorded) -> set[_Line]:
    """Find the lines on which a call began before the last one had ended."""
    lines = defaultdict[_Line, list[Node]](list)
    for node in of.nodes.values():
        if _counts(node):
            lines[_line(node)].append(node)
    parallel_lines = set[_Line]()
    for line, nodes in lines.items():
        nodes.sort(key=lambda node: node.start_order)
        if any(not 0 < one.end_order < other.start_order for one, other in itertools.pairwise(nodes)):
            parallel_lines.add(line)
    return parallel_lines


def _reordering(node: Node, later: Node) -> dict[str, Json]:
    moved = Divergence(
        kind="reordered",
        call=node.label,
        field="order",
        a=f"before {later.label}",
        b="behind it",
        structural=True,
        node_a=node.id,
    )
    return divergence_to_json(moved)
