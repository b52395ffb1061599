"""What stands for a span whose record was destroyed, made of what is known: every call hangs in a run with a root."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from reenact.formats.journal import CUT, Reader
from reenact.values.json import compact
from reenact.values.run import OURS, SESSION, TENANT, USER
from reenact.values.span import STATUS_ERROR, Resource, Scope, SpanRecord

MADE: Final = "reenact.made"
_WHY: Final = "its own record was destroyed; made of what the spans below it say"
_SHARED: Final = (SESSION, USER, TENANT)


class Missing:
    """The spans that journals name and do not hold, by trace."""

    def __init__(self) -> None:
        self._above: dict[str, dict[str, None]] = {}
        self._ends: dict[str, tuple[dict[str, Any], Reader]] = {}
        self._headless: dict[str, list[tuple[dict[str, Any], Reader]]] = {}
        self._resources: dict[str, Reader] = {}

    def note(self, reader: Reader) -> None:
        """Take from the reader of a whole journal what it lacks."""
        for trace_id, span_id in reader.above:
            self._above.setdefault(trace_id, {})[span_id] = None
            self._resources.setdefault(trace_id, reader)
        if not reader.damaged:
            return  # ends without a beginning are a forked process's, which saw its parent's calls end
        self._ends |= {span_id: (end, reader) for span_id, end in reader.headless.items()}
        only = next(iter(reader.traces)) if len(reader.traces) == 1 else ""
        for span_id, end in reader.headless.items():
            trace_id = reader.beginnings.get(span_id) or only  # what its damaged beginning says, else the only one
            if trace_id:
                self._headless.setdefault(trace_id, []).append((end, reader))
                self._above.setdefault(trace_id, {})
                self._resources.setdefault(trace_id, reader)

    def traces(self) -> list[str]:
        """Name the traces that may lack a span."""
        return list(self._above)

    def made(self, trace_id: str, spans: Iterable[SpanRecord]) -> list[SpanRecord]:
        """Make what is missing among all the spans of a trace."""
        there = {span.span_id: span for span in spans}
        below: dict[str, list[SpanRecord]] = {}
        for span in there.values():
            if span.parent_id is not None and span.parent_id not in there:
                below.setdefault(span.parent_id, []).append(span)
        wanted = [span_id for span_id in self._above.get(trace_id, ()) if span_id in below]
        wanted.sort(key=lambda span_id: min(_place(span) for span in below[span_id]))
        root = next((span.span_id for span in there.values() if span.attributes.get("reenact.run.root") is True), None)
        stand_ins: list[SpanRecord] = []
        for span_id in wanted:
            stand_ins.append(self._stand_in(trace_id, span_id, below[span_id], root))
            root = root or span_id
        known_ids = {*there, *(span.span_id for span in stand_ins)}
        for end, reader in self._headless.get(trace_id, ()):
            if end["span"] not in known_ids:
                stand_ins.append(_ended(trace_id, end, root, reader))
        return stand_ins

    def _stand_in(self, trace_id: str, span_id: str, below: list[SpanRecord], root: str | None) -> SpanRecord:
        first = min(below, key=_place)
        attributes: dict[str, Any] = {
            "openinference.span.kind": "CHAIN",
            OURS: "1",
            "reenact.lane": first.attributes.get("reenact.lane", "main"),
            "reenact.order.start": max(0, _place(first)[0] - 1),
            **_common(below),
            "reenact.incomplete": True,
            "reenact.outcome": "unfinished",
            MADE: _WHY,
        }
        if cut := self._resources[trace_id].notes.get("cut"):
            attributes[CUT] = str(cut)
        if root is None:
            attributes["reenact.run.root"] = True
        end, reader = self._ends.get(span_id, (None, self._resources[trace_id]))
        if end is not None:
            attributes |= {**reader.untagged(end["attributes"]), MADE: _WHY, "reenact.incomplete": True}
        return SpanRecord(
            trace_id=trace_id,
            span_id=span_id,
            parent_id=root,
            name=end["name"] if end is not None else str(first.resource.attributes.get("service.name", "python")),
            start_ns=first.start_ns,
            end_ns=max(first.start_ns, end["ns"] if end is not None else max(span.end_ns for span in below)),
            status=STATUS_ERROR,
            status_message="the record of this span was destroyed",
            attributes=attributes,
            resource=first.resource,
            scope=first.scope,
        )


def _ended(trace_id: str, end: dict[str, Any], root: str | None, reader: Reader) -> SpanRecord:
    """Make the span of which only the end is there."""
    lost = [{"field": "request", "lost": "its beginning, which was destroyed in the journal", "fix": "nothing to do"}]
    return SpanRecord(
        trace_id=trace_id,
        span_id=end["span"],
        parent_id=root,
        name=end.get("name", ""),
        start_ns=end["ns"],
        end_ns=end["ns"],
        status=end.get("status", 0),
        status_message=end.get("message", ""),
        attributes={
            **reader.untagged(end["attributes"]),
            OURS: "1",
            "reenact.incomplete": True,
            "reenact.outcome": "unfinished",
            "reenact.lost": compact(lost),  # type: ignore[arg-type]  # JSON it is
        },
        resource=Resource(attributes=reader.resource()),
        scope=Scope(name=reader.header.get("scope", "reenact"), version=reader.header.get("version", "")),
    )


def _place(span: SpanRecord) -> tuple[int, int]:
    order = span.attributes.get("reenact.order.start")
    return order if isinstance(order, int) else 0, span.start_ns


def _common(spans: list[SpanRecord]) -> Mapping[str, Any]:
    """Give what all of them say of whom the run is for."""
    attributes = {name: {str(span.attributes.get(name, "")) for span in spans} for name in _SHARED}
    return {name: values.pop() for name, values in attributes.items() if len(values) == 1 and "" not in values}
