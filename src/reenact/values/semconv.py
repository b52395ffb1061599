"""Whose conventions a span is shown in when it leaves, and how a span that was shown so is read as it was recorded.

Evidence leaves under any of them, so that a replay loses nothing. What is shown stands beside it; the span's name and
its kind stand in place of the recorded ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Final

from reenact.errors import InputError
from reenact.values.run import RECORDED_KIND, RECORDED_NAME, SHOWN, VIEW
from reenact.values.span import Attribute, SpanEvent, SpanRecord

SETTING: Final = "REENACT_SEMCONV"


class Semconv(StrEnum):
    """Whose names readers of spans go by."""

    OPENINFERENCE = "openinference"
    GENAI = "genai"
    """OpenTelemetry's own conventions for generative AI."""
    BOTH = "both"

    @property
    def is_genai(self) -> bool:
        """OpenTelemetry's names are among them."""
        return self is not Semconv.OPENINFERENCE


def semconv_from(environ: Mapping[str, str]) -> Semconv:
    """Read the setting. Raises `InputError`."""
    word = environ.get(SETTING, "").strip().lower()
    if word and word not in {*Semconv}:
        raise InputError(f"${SETTING}", f"{word!r} names no conventions", hint=f"Set one of: {', '.join(Semconv)}.")
    return Semconv(word) if word else Semconv.OPENINFERENCE


def as_recorded(span: SpanRecord) -> SpanRecord:
    """Give a span as it was before it was shown: its own name and kind, and no attribute that was derived."""
    attributes = span.attributes
    if not any(name in attributes for name in SHOWN):
        return span
    names = attributes.get(VIEW)
    listed = [name for name in names if isinstance(name, str)] if isinstance(names, list | tuple) else []
    derived = {*SHOWN, *listed}
    name, kind = attributes.get(RECORDED_NAME), attributes.get(RECORDED_KIND)
    return replace(
        span,
        name=name if isinstance(name, str) else span.name,
        kind=int(kind) if isinstance(kind, int | str) and str(kind).isdigit() else span.kind,
        attributes={key: value for key, value in attributes.items() if key not in derived},
        events=tuple(event for event in span.events if VIEW not in event.attributes),
    )


def shown(
    span: SpanRecord,
    *,
    name: str = "",
    kind: int | None = None,
    derived: Mapping[str, Attribute],
    events: tuple[SpanEvent, ...] = (),
) -> SpanRecord:
    """Give a span with what is derived of it; what it says itself stays. `as_recorded` gives the span back."""
    new = {key: value for key, value in derived.items() if key not in span.attributes}
    names = span.attributes.get(VIEW)
    earlier = names if isinstance(names, list) else []
    marks: dict[str, Attribute] = {VIEW: [*earlier, *new]} if new or events else {}
    if name and name != span.name:
        marks[RECORDED_NAME] = span.name
    if kind is not None and kind != span.kind:
        marks[RECORDED_KIND] = span.kind
    if not marks:
        return span
    return replace(
        span,
        name=name or span.name,
        kind=span.kind if kind is None else kind,
        attributes={**new, **span.attributes, **marks},
        events=(*span.events, *(replace(event, attributes={**event.attributes, VIEW: True}) for event in events)),
    )
