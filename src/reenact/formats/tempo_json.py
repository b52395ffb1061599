"""Grafana Tempo: `{"batches": […]}` of API v1 and of Grafana's export, `{"trace": {"resourceSpans": […]}}` of v2.

Inside is OTLP's JSON as Tempo's versions spell it: ids in base64 or hex, enums by name, times as numbers or strings,
`instrumentationLibrarySpans` in old ones. JSON numbers of nanoseconds were rounded to a double by whoever wrote them
through JavaScript. It is read, not written: OTLP/JSON is what to write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

from reenact.contracts.format import Format, HeadMarks
from reenact.foreign.json_records import as_objects, each_document
from reenact.foreign.otlp import records, resource_spans
from reenact.values.log import Record
from reenact.values.skeleton import holds

_MARKS = ("trace.resourceSpans|trace.resource_spans|trace.batches",)
_GROUP = "resource|scopeSpans|scope_spans|instrumentationLibrarySpans|instrumentation_library_spans"
_INSIDE = "|".join(f"batches[].{name}" for name in _GROUP.split("|"))


def _recognises(head: bytes) -> float:
    if holds(head, *_MARKS):
        return 0.96
    return 0.96 if holds(head, _INSIDE) else 0.0


def _records(document: object) -> Iterator[Record]:
    for item in as_objects(document, "a trace"):
        trace = cast("Mapping[str, Any]", item.get("trace", item))
        if "batches" not in trace:
            yield from records(trace)
        else:
            for group in cast("list[object]", trace["batches"] or []):
                if group is not None:
                    yield from resource_spans(group)


def _decode(stream: BinaryIO, path: Path) -> Iterator[Record]:
    return each_document(stream, path, _records, "a trace of Tempo")


FORMAT = Format(
    name="tempo",
    suffix=".tempo.json",
    recognises=_recognises,
    decode=_decode,
    most=0.96,
    marks=HeadMarks(keys=(_MARKS, (_INSIDE,))),
)
