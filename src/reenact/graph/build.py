"""Spans of any order become runs: duplicates folded, orphans kept and marked, calls put into causal order."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from reenact.graph.interpret import interpret
from reenact.graph.join import joined
from reenact.graph.logs import APART
from reenact.graph.logs import joined as with_logs
from reenact.graph.parts import settled, with_parts
from reenact.graph.recovered_tools import recovered
from reenact.values.json import Json, parsed_or_none
from reenact.values.log import Record
from reenact.values.origin import without_proof
from reenact.values.run import CARRIER, OURS, SECTION, SESSION_NAMES, SHOWN, TENANT, USER_NAMES, Node, Run
from reenact.values.span import SpanRecord

__all__ = ["build", "interpret"]

_NOTHING = object()
_DAY_NS = 86_400 * 10**9
"""Copies of a span that begin so far apart are others', which drew the same id."""


def build(records: Iterable[Record], *, source: str = "") -> list[Run]:
    """Rebuild every run that spans and log events hold, one a trace, oldest first."""
    traces: dict[str, dict[str, SpanRecord]] = defaultdict(dict)
    doubled: dict[str, Counter[bool]] = defaultdict(Counter)
    for span in with_logs(records):
        other = traces[span.trace_id].get(span.span_id)
        span = _bare(span)  # noqa: PLW2901 - a proof goes no further than to who reads the store
        if other is not None and other.own is not span.own:  # what others say of an own span changes nothing in it
            span = other if other.own else span  # noqa: PLW2901 - as above
        elif other is not None:
            if not _told_again(other, span):
                doubled[span.trace_id][_differs(other, span)] += 1
            span = _fuller(other, span)  # noqa: PLW2901 - the one that says more stands for both
        traces[span.trace_id][span.span_id] = span
    runs = [_run(trace_id, spans, doubled[trace_id], source) for trace_id, spans in traces.items()]
    return sorted(runs, key=lambda run: run.started_ns)


def _bare(span: SpanRecord) -> SpanRecord:
    """Give a span as it was recorded, without the proof of its origin and without what was shown of it elsewhere."""
    if any(name in span.attributes for name in SHOWN):
        from reenact.values.semconv import as_recorded  # in a store of one's own there is no such span

        span = as_recorded(span)
    bare = without_proof(span.attributes)
    return span if bare is span.attributes else replace(span, attributes=bare)


def _told_again(a: SpanRecord, b: SpanRecord) -> bool:
    """Tell whether one is the other with more to say: how a process ended is known later than that it did."""
    less, more = sorted((a.attributes, b.attributes), key=len)
    if a.end_ns != b.end_ns or len(less) == len(more) or "reenact.incomplete" in more:
        return False
    return all(more.get(name, _NOTHING) == value for name, value in less.items())


def _differs(a: SpanRecord, b: SpanRecord) -> bool:
    """Tell copies of another emitter's span that say different things."""
    return _is_others(a) and _is_others(b) and (a.end_ns, a.attributes) != (b.end_ns, b.attributes)


def _is_others(span: SpanRecord) -> bool:
    return not span.attributes.keys() & {OURS, "reenact.incomplete", "reenact.run.root", "reenact.order.start"}


def _fuller(a: SpanRecord, b: SpanRecord) -> SpanRecord:
    """Choose between two copies of one span: a finished one over an incomplete one, then the one that says more.

    Another emitter may export a span again as it goes on: it lasted from its first beginning to its last end.
    """

    def rank(span: SpanRecord) -> tuple[bool, bool, int, int]:
        is_whole = not span.attributes.get("reenact.incomplete")
        return is_whole, span.end_ns > 0, len(span.attributes), span.end_ns

    chosen = b if rank(b) > rank(a) else a
    times = min(filter(None, (a.start_ns, b.start_ns)), default=0), max(a.end_ns, b.end_ns)
    goes_on = _is_others(a) and _is_others(b) and a.name == b.name and abs(a.start_ns - b.start_ns) < _DAY_NS
    return replace(chosen, start_ns=times[0], end_ns=times[1]) if goes_on else chosen


def _run(trace_id: str, spans: dict[str, SpanRecord], doubled: Counter[bool], source: str) -> Run:
    notes: list[str] = []
    spans, sections, section_of = _parted(spans)
    spans = settled(spans)
    if others := any(OURS not in span.attributes or CARRIER in span.attributes for span in spans.values()):
        spans = _lifted(spans)
    spans = with_parts(spans)
    if doubled:
        again = f"; {doubled[True]} of them say other things, and the fuller stands" if doubled[True] else ""
        notes.append(f"{doubled.total()} duplicate spans folded{again}")
    projections = {
        span_id: str(of) for span_id, span in spans.items() if (of := span.attributes.get("reenact.projection.of"))
    }
    main_spans = {
        span_id: span
        for span_id, span in spans.items()
        if span_id not in projections or projections[span_id] not in spans or projections[span_id] in projections
    }
    if len(main_spans) < len(spans):
        notes.append(f"{len(spans) - len(main_spans)} projections folded into the calls they show")
    parents = {span_id: _parent(span, main_spans, projections) for span_id, span in main_spans.items()}
    _on_top(main_spans, parents)
    ordered = _causal(main_spans, parents)
    nodes: list[Node] = []
    for number, span in enumerate(ordered, 1):
        nodes.append(_node(span, number, parents[span.span_id], section_of.get(span.span_id)))
    if others:
        nodes, twins = _among_others(nodes)
        if twins:
            notes.append(f"{twins} spans of other instrumentations folded into the calls they show")
    notes += _remarks(nodes, _skewed(main_spans, parents))
    nodes, total = recovered(joined(nodes))
    if total:
        notes.append(f"{total} tool calls have no span; the model calls around them tell what was asked and answered")
    run = _described(trace_id, nodes, notes, source)
    return replace(run, sections=tuple(_node(span, 0, span.parent_id) for span in sections)) if sections else run


def _parted(spans: dict[str, SpanRecord]) -> tuple[dict[str, SpanRecord], tuple[SpanRecord, ...], Mapping[str, str]]:
    """Take the sections of a framework out of a trace: nothing that follows knows of them."""
    if not any(SECTION in span.attributes for span in spans.values()):
        return spans, (), {}
    from reenact.graph.sections import parted  # most traces have none

    return parted(spans)


def _remarks(nodes: list[Node], skewed: int) -> Iterator[str]:
    """Say what of the spans of one trace is not as it should be, and whose they are."""
    if orphans := sum(node.orphan for node in nodes):
        yield f"{orphans} spans name a parent that is not in the recording"
    if skewed:
        yield f"{skewed} spans begin before the span they hang below (clock skew)"
    dialects = Counter(str(name) for node in nodes if (name := node.call.attributes.get("reenact.dialect")))
    if dialects:
        listing = ", ".join(f"{name} ({count})" for name, count in dialects.most_common())
        yield f"spans of other emitters, read as {listing}"
    if apart := sum(APART in node.span.attributes for node in nodes):
        yield f"{apart} calls are told by log events alone, which name no span and agree with none"


def _lifted(spans: dict[str, SpanRecord]) -> dict[str, SpanRecord]:
    """Put tool calls that other emitters write as spans into the model calls that asked for them."""
    from reenact.graph.tool_call_spans import with_calls_below  # no span of ours is one

    return with_calls_below(spans)


def _among_others(nodes: list[Node]) -> tuple[list[Node], int]:
    """Fold twins and give calls the tools of the agent above; give the nodes, and how many are gone.

    Calls of ours alone have no twins among themselves, and say what tools they were given.
    """
    from reenact.graph.inherited_tools import inherited
    from reenact.graph.twins import folded

    nodes, twins = folded(nodes)
    return inherited(nodes), twins


def _parent(span: SpanRecord, spans: Mapping[str, SpanRecord], projections: Mapping[str, str]) -> str | None:
    parent = span.parent_id
    if parent is not None and parent in projections and parent not in spans:
        parent = projections[parent]
    return parent if parent in spans and parent != span.span_id else None


def _on_top(spans: Mapping[str, SpanRecord], parents: dict[str, str | None]) -> None:
    """Have a root of ours hang below no span of the application's: it stands for the whole, whoever else was first.

    A recording is the same then whether the spans that were current around it came into the same place or not.
    """
    for span_id, span in spans.items():
        if span.attributes.get("reenact.run.root") is not True or parents[span_id] is None:
            continue
        seen_ids, at = {span_id}, parents[span_id]
        while at is not None and at not in seen_ids and "reenact.order.start" not in spans[at].attributes:
            seen_ids.add(at)
            at = parents[at]
        if at is None or at in seen_ids or span.own:  # above an own root there is nobody who starts anything
            parents[span_id] = None


def _causal(spans: Mapping[str, SpanRecord], parents: dict[str, str | None]) -> list[SpanRecord]:
    """Order spans: by start order where one process numbered all, else by time; never a child before its parent."""
    processes = {str(span.resource.attributes.get("reenact.process.id")) for span in spans.values()}
    numbered = all("reenact.order.start" in span.attributes for span in spans.values())
    times = _never_backwards(spans.values()) if numbered and len(processes) > 1 else {}

    def key(span: SpanRecord) -> tuple[int, int, str]:
        order = _int(span.attributes.get("reenact.order.start"))
        if numbered and not times:
            return order, span.start_ns, span.span_id
        return times.get(span.span_id, span.start_ns), order, span.span_id

    everything = sorted(spans.values(), key=key)
    placed: dict[str, SpanRecord] = {}
    for span in everything:
        lineage: dict[str, SpanRecord] = {}
        at: str | None = span.span_id
        while at is not None and at not in placed and at not in lineage:
            lineage[at] = spans[at]
            at = parents[at]
        if at is not None and at not in placed:  # a cycle of parents: cut it here
            parents[next(reversed(lineage))] = None
        for each in reversed(lineage.values()):
            placed[each.span_id] = each
    return list(placed.values())


def _never_backwards(spans: Iterable[SpanRecord]) -> dict[str, int]:
    """Give each span a time by which those of one process stand in their order, even where its clock was set back."""
    latest: dict[str, int] = {}
    times: dict[str, int] = {}
    for span in sorted(spans, key=lambda span: _int(span.attributes.get("reenact.order.start"))):
        process = str(span.resource.attributes.get("reenact.process.id"))
        latest[process] = times[span.span_id] = max(latest.get(process, 0), span.start_ns)
    return times


def _node(span: SpanRecord, number: int, parent: str | None, section: str | None = None) -> Node:
    call, outcome = interpret(span)
    attributes = span.attributes
    head = attributes.get("reenact.order.head")
    root = attributes.get("reenact.run.root") is True
    return Node(
        id=span.span_id,
        trace_id=span.trace_id,
        parent=parent,
        number=number,
        call=call,
        outcome=outcome,
        span=span,
        lane=str(attributes.get("reenact.lane", "")),
        start_order=_int(attributes.get("reenact.order.start")),
        head_order=_int(head) if head is not None else None,
        end_order=_int(attributes.get("reenact.order.end")),
        orphan=span.parent_id is not None and parent is None and not root,
        section=section,
    )


def _skewed(spans: Mapping[str, SpanRecord], parents: Mapping[str, str | None]) -> int:
    count = 0
    for span_id, parent in parents.items():
        if parent is not None and spans[span_id].start_ns < spans[parent].start_ns:
            count += 1
    return count


def _int(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return 0


def _described(trace_id: str, nodes: list[Node], notes: list[str], source: str) -> Run:
    tops = [node for node in nodes if node.parent is None]
    marked = [node for node in tops if node.span.attributes.get("reenact.run.root") is True]
    own = [node for node in marked if node.span.own]
    root = (own or marked or [node for node in tops if not node.orphan] or [None])[0]
    facts: Mapping[str, Any] = root.span.attributes if root else {}
    resource: Mapping[str, Any] = root.span.resource.attributes if root else {}
    marks = {**resource, **facts}  # a redaction processor tells on the resource what a recording tells on its root

    def first(*names: str) -> str | None:
        for node in ([root] if root else []) + nodes:  # a dialect spells its own names for these as ours
            for mapping in (node.span.attributes, node.call.attributes):
                for name in names:
                    if (value := mapping.get(name)) not in (None, ""):
                        return str(value)
        return None

    return Run(
        id=trace_id,
        name=root.span.name if root else (nodes[0].span.name if nodes else ""),
        root=root,
        nodes=tuple(nodes),
        source=source,
        session=first(*SESSION_NAMES),
        user=first(*USER_NAMES),
        tenant=first(TENANT),
        recording=_text(resource.get("reenact.recording.id")),
        notes=tuple(notes),
        surroundings=_object(facts.get("reenact.surroundings")),
        entry=_object(facts.get("reenact.entry")),
        own=bool(own),
        salt=str(marks.get("reenact.redaction.salt") or ""),
        policy_digest=str(marks.get("reenact.redaction.policy") or ""),
        key_id=str(marks.get("reenact.redaction.key") or ""),
    )


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _object(text: Any) -> dict[str, Json]:
    value = parsed_or_none(text) if isinstance(text, str) else None
    return value if isinstance(value, dict) else {}
