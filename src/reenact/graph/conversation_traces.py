"""Traces that are one conversation: an emitter that opens no span around its model calls gives each a trace of its own.

They are one run where each goes on from the one before: its request holds all the messages of that one's, and more.
That is read in the data; nothing is put together by time, name or file alone unless it was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from reenact.boundary.reading import asked
from reenact.foreign.partial_question import Turn, turns
from reenact.values.call import CallKind
from reenact.values.run import OURS, Node, Run, spans_of
from reenact.values.span import SpanRecord


def go_on(runs: Sequence[Run]) -> bool:
    """Tell whether foreign runs, oldest first, are the turns of one conversation.

    Those without a model call belong to it where they ran between two turns in the same service: a tool's, mostly.
    """
    if any(OURS in node.span.attributes for run in runs for node in run.nodes):
        return False
    pairs = [(run, history) for run in runs if (history := _turns(run))]
    if len(pairs) < 2 or len({_service(run) for run in runs}) > 1:
        return False
    begun, ended = pairs[0][0].started_ns, pairs[-1][0].ended_ns
    between = all(begun <= run.started_ns and run.ended_ns <= ended for run in runs)
    return between and all(
        len(after[0]) > len(before[-1]) and _begins(after[0], before[-1]) for (_, before), (_, after) in pairwise(pairs)
    )


def _service(run: Run) -> tuple[str, str]:
    """Name what emitted a run."""
    if not run.nodes:
        return "", ""
    attributes = run.nodes[0].span.resource.attributes
    return str(attributes.get("service.name")), str(attributes.get("service.instance.id"))


def together(runs: Sequence[Run]) -> list[SpanRecord]:
    """Give the spans of several runs as those of one, in the trace of the first."""
    first = runs[0].id
    return [replace(span, trace_id=first) for span in spans_of(runs)]


def _turns(run: Run) -> list[tuple[Turn, ...]]:
    return [turn_list for node in run.nodes if (turn_list := _node_turns(node))]


def _node_turns(node: Node) -> tuple[Turn, ...]:
    question = asked(node) if node.kind is CallKind.LLM else None
    return turns(question.messages) if question is not None else ()


def _begins(longer: Sequence[Turn], shorter: Sequence[Turn]) -> bool:
    return all(
        (a.role, a.text.split(), [call.name for call in a.calls]) == (b.role, b.text.split(), [c.name for c in b.calls])
        for a, b in zip(longer, shorter, strict=False)
    )
