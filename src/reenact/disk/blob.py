"""Large values of spans stand apart, in blobs that are named by what they hold; the span keeps a reference.

A reference is an attribute's value, JSON text: `{"reenact.blob":"sha256:…","size":bytes,"type":"string"|"bytes"}`. The
attribute `reenact.blobs` lists the names of those that are one, so that text which looks like one is not taken for it;
the attributes of an event have a list of their own. What is cut is put back by `restored`, byte for byte.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.span import Attribute, SpanEvent, SpanRecord

REFERRED = "reenact.blobs"
LOST = "reenact.lost"
_PIECE = 1 << 20
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_REQUEST = ("input.", "reenact.http.request.", "reenact.entry", "reenact.inbound", "reenact.app")
"""How the names of attributes begin that say what was asked; without one of the others there is no outcome."""
_OUTCOME = (
    "output.value",
    "reenact.http.response.body",
    "reenact.http.response.headers",
    "reenact.stream.chunks",
    "reenact.stream.result",
    "reenact.exception",
)

Put: TypeAlias = Callable[[str, Iterator[bytes]], None]
"""Keeps the content of a blob, given in pieces, under its digest."""
Get: TypeAlias = Callable[[str], bytes]
"""Gives the content of a blob by its digest; raises `BlobLostError`."""


class BlobLostError(Exception):
    """A blob is not there, or is not what its name says. The message says which, and `fix` what to do."""

    def __init__(self, problem: str, fix: str) -> None:
        super().__init__(problem)
        self.fix = fix


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Where a value is."""

    digest: str
    """`sha256:` and 64 hexadecimal digits, of the value's bytes: text is UTF-8, lone surrogates as three bytes each."""
    size: int
    """Bytes."""
    type: str
    """`string` or `bytes`."""

    @property
    def text(self) -> str:
        """Spell it."""
        return compact({"reenact.blob": self.digest, "size": self.size, "type": self.type})


def is_digest(text: str) -> bool:
    """Tell whether `text` is the digest of a blob: what is none is never made a path of."""
    return _DIGEST.fullmatch(text) is not None


def cut(span: SpanRecord, threshold: int, put: Put) -> SpanRecord:
    """Put every text and byte string of more than `threshold` bytes away, and give the span with references to them.

    What `put` raises is raised.
    """
    attributes = _cut(span.attributes, threshold, put)
    events = tuple(_cut_event(event, threshold, put) for event in span.events)
    if attributes is span.attributes and all(new is old for new, old in zip(events, span.events, strict=True)):
        return span
    return replace(span, attributes=attributes, events=events)


def restored(span: SpanRecord, get: Get) -> SpanRecord:
    """Put the values of blobs back. One that is lost is left out and named in `reenact.lost`.

    A call whose reply is lost reads as one without an outcome: no replay can answer it, and none answers it wrongly.
    """
    if not is_cut(span):
        return span
    lost: list[Json] = []
    attributes = _restored(span.attributes, get, lost)
    events = tuple(
        replace(event, attributes=_restored(event.attributes, get, lost)) if REFERRED in event.attributes else event
        for event in span.events
    )
    if lost:
        names = {str(each["field"]) for each in cast("list[dict[str, Json]]", lost)}
        if names & set(_OUTCOME):
            attributes["reenact.outcome"] = "unfinished"
        loss_text = span.attributes.get(LOST)
        losses = parsed_or_none(loss_text) if isinstance(loss_text, str) else loss_text
        attributes[LOST] = compact([*(cast("list[Json]", losses) if isinstance(losses, list) else ()), *lost])
    return replace(span, attributes=attributes, events=events)


def is_cut(span: SpanRecord) -> bool:
    """Tell whether any value of a span stands in a blob."""
    return REFERRED in span.attributes or any(REFERRED in event.attributes for event in span.events)


def references(span: SpanRecord) -> list[Reference]:
    """List what a span refers to, each as often as it does."""
    reference_list = [reference for _, reference in _references(span.attributes)]
    return reference_list + [reference for event in span.events for _, reference in _references(event.attributes)]


def pieces(value: str | bytes) -> Iterator[bytes]:
    """Give the bytes of a value a piece at a time, so that a large one is never copied whole."""
    for start in range(0, len(value), _PIECE):
        piece = value[start : start + _PIECE]
        yield piece.encode("utf-8", "surrogatepass") if isinstance(piece, str) else piece


def reference_to(value: str | bytes) -> Reference:
    """Make the reference to a value."""
    digest, size = hashlib.sha256(), 0
    for piece in pieces(value):
        digest.update(piece)
        size += len(piece)
    kind = "string" if isinstance(value, str) else "bytes"
    return Reference(digest=f"sha256:{digest.hexdigest()}", size=size, type=kind)


def _cut_event(event: SpanEvent, threshold: int, put: Put) -> SpanEvent:
    attributes = _cut(event.attributes, threshold, put)
    return event if attributes is event.attributes else replace(event, attributes=attributes)


def _cut(attributes: Mapping[str, Attribute], threshold: int, put: Put) -> Mapping[str, Attribute]:
    large = [name for name, value in attributes.items() if _size(value) > threshold]
    if not large:
        return attributes
    left = dict(attributes)
    cut_names = attributes.get(REFERRED)
    for name in large:
        value = cast("str | bytes", attributes[name])
        reference = reference_to(value)
        put(reference.digest, pieces(value))
        left[name] = reference.text
    left[REFERRED] = [*(cut_names if isinstance(cut_names, list) else ()), *large]
    return left


def _size(value: Attribute) -> int:
    """Give the bytes of a text or byte string, or 0."""
    if isinstance(value, bytes):
        return len(value)
    if not isinstance(value, str):
        return 0
    return len(value) if value.isascii() else sum(len(piece) for piece in pieces(value))


def _references(attributes: Mapping[str, Attribute]) -> Iterator[tuple[str, Reference]]:
    names = attributes.get(REFERRED)
    for name in names if isinstance(names, Sequence) and not isinstance(names, str | bytes) else ():
        value = attributes.get(name) if isinstance(name, str) else None
        if isinstance(name, str) and isinstance(value, str) and (reference := _reference(value)) is not None:
            yield name, reference


def _reference(text: str) -> Reference | None:
    match parsed_or_none(text):
        case {"reenact.blob": str(digest), "size": int(size), "type": "string" | "bytes" as kind}:
            return Reference(digest=digest, size=size, type=kind)
        case _:
            return None


def _restored(attributes: Mapping[str, Attribute], get: Get, lost: list[Json]) -> dict[str, Attribute]:
    back = dict(attributes)
    back.pop(REFERRED, None)
    for name, reference in _references(attributes):
        try:
            back[name] = _value(reference, get)
        except BlobLostError as problem:
            del back[name]
            lost.append({"field": name, "lost": f"{reference.size:,} bytes: {problem}", "fix": problem.fix})
    return back


def _value(reference: Reference, get: Get) -> Attribute:
    if not is_digest(reference.digest):
        raise BlobLostError(f"{reference.digest[:80]!r} is no digest of a blob", "import the recording again")
    data = get(reference.digest)
    return data if reference.type == "bytes" else data.decode("utf-8", "surrogatepass")
