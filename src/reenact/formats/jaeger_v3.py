"""Jaeger's API v3, `/api/v3/traces/{id}`: `{"result": {"resourceSpans": […]}}`, one object or a stream of them.

The spans inside are OTLP/JSON and lose nothing. It is read, not written: OTLP/JSON is what to write.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from reenact.contracts.format import Format, HeadMarks
from reenact.foreign.json_records import as_objects, each_document
from reenact.foreign.otlp import records
from reenact.values.log import Record
from reenact.values.skeleton import holds


def _recognises(head: bytes) -> float:
    return 0.96 if holds(head, "result.resourceSpans|result.resource_spans") else 0.0


def _records(document: object) -> Iterator[Record]:
    for answer in as_objects(document, "an answer"):
        if "error" in answer:
            raise ValueError("Jaeger answered with an error, not a trace")
        yield from records(answer["result"])


def _decode(stream: BinaryIO, path: Path) -> Iterator[Record]:
    return each_document(stream, path, _records, "an answer of Jaeger's API v3")


FORMAT = Format(
    name="jaeger-v3",
    suffix=".jaeger-v3.json",
    recognises=_recognises,
    decode=_decode,
    most=0.96,
    marks=HeadMarks(keys=(("result.resourceSpans|result.resource_spans",),)),
)
