"""Ids for the spans of a vendor's records that came without any, so that each stands for itself."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from reenact.foreign.ids import SPAN_DIGITS, TRACE_DIGITS
from reenact.values.json import digest
from reenact.values.span import SpanRecord

_Decode = Callable[[BinaryIO, Path], Iterator[SpanRecord]]


def identified(decode: _Decode) -> _Decode:
    """Have a reader give spans without ids such as follow from what they say; the second of two equal ones, another.

    Spans of one file that have an id and name no trace are one trace.
    """

    @functools.wraps(decode)
    def reading(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
        counts: Counter[str] = Counter()
        shared = ""
        for span in decode(stream, path):
            if span.span_id.strip("0") and span.trace_id.strip("0"):
                yield span
                continue
            said = digest(repr(span))
            counts[said] += 1
            made = digest(f"{said}:{counts[said]}")
            has_id = bool(span.span_id.strip("0"))
            shared = shared or (made[:TRACE_DIGITS] if has_id else "")
            trace_id = span.trace_id if span.trace_id.strip("0") else shared if has_id else made[:TRACE_DIGITS]
            yield replace(span, trace_id=trace_id, span_id=span.span_id if has_id else made[:SPAN_DIGITS])

    return reading
