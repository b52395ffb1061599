"""Sections of a framework are taken out of a trace before its graph is built: nothing that is judged knows of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reenact.values.run import OURS, SECTION
from reenact.values.span import SpanRecord


def parted(
    spans: Mapping[str, SpanRecord],
) -> tuple[dict[str, SpanRecord], tuple[SpanRecord, ...], dict[str, str]]:
    """Give what is no section, each span below the nearest that is none either; the sections; and who is in which.

    Sections come by the time at which they began.
    """
    sections = {
        span_id: span for span_id, span in spans.items() if SECTION in span.attributes and OURS in span.attributes
    }
    others: dict[str, SpanRecord] = {}
    section_of: dict[str, str] = {}
    for span_id, span in spans.items():
        if span_id in sections:
            continue
        others[span_id] = span
        if span.parent_id is not None and span.parent_id in sections:
            section_of[span_id] = span.parent_id
            others[span_id] = replace(span, parent_id=_outer(span.parent_id, sections))
    ordered = sorted(sections.values(), key=lambda span: (span.start_ns, span.span_id))
    return others, tuple(ordered), section_of


def _outer(section: str, sections: Mapping[str, SpanRecord]) -> str | None:
    """Find what the outermost section around stands in."""
    at: str | None = section
    seen_ids = set[str]()
    while at is not None and at in sections and at not in seen_ids:
        seen_ids.add(at)
        at = sections[at].parent_id
    return None if at in seen_ids else at
