"""Redaction of what was written down already: a trace of any format that is read, or a run of the store.

Every string of every span passes the policy: names, messages, attributes of any depth, events, links, resource, scope,
what large values hold, and the pieces of streams put together as a reader will. Ids, times and all else stay.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

from reenact.find.sources import find
from reenact.formats import otlp_json
from reenact.graph.logs import joined
from reenact.keep.bundles import whole
from reenact.keep.leftovers import say
from reenact.read.open import open_spans
from reenact.record.stream_backlog import scrubbed
from reenact.redact import in_force
from reenact.redact.engine import Engine
from reenact.redact.in_force import Guard
from reenact.redact.payloads import replace_spoken_words
from reenact.redact.plan import UNSCANNED, WHOLE, Place
from reenact.stores.directory import DirectoryStore
from reenact.values.evidence import chunk_from_json, chunk_to_json
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.redaction_marks import tokens_in
from reenact.values.run import spans_of
from reenact.values.span import Attribute, Resource, Scope, SpanRecord

_Entity = TypeVar("_Entity", Resource, Scope)
_CHUNKS = "reenact.stream.chunks"
_ENTRY = "reenact.entry"
_COUNT = "reenact.redaction.count"
_DIGESTS = frozenset({in_force.POLICY, in_force.SALT, in_force.KEY})
_KIND, _TOOL, _BOUNDARY = "openinference.span.kind", "tool.name", "reenact.boundary"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemainingValues:
    """Values of one class at one kind of place that are, or were, to be replaced."""

    name: str
    """The class."""
    place: str
    """Where: the attribute's name with `*` for numbers, or the part of the span."""
    count: int
    token: str
    """What stands, or would stand, for one of them; empty where no token does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """What came of redacting a trace."""

    spans: tuple[SpanRecord, ...]
    guard: Guard
    left: tuple[RemainingValues, ...] = ()
    """What there was to replace."""
    failed: int = 0
    """Spans of which something could not be redacted and was left out."""

    @property
    def replaced(self) -> dict[str, int]:
        """Count by class."""
        counted: Counter[str] = Counter()
        for each in self.left:
            counted[each.name] += each.count
        return dict(sorted(counted.items()))

    @property
    def unscanned(self) -> int:
        """How many texts could not be scanned in time, and were replaced whole."""
        return self.replaced.get(UNSCANNED, 0)


def redacted(
    selector: str,
    store: DirectoryStore,
    *,
    policy: str | Path = "",
    environ: Mapping[str, str] | None = None,
) -> Redacted:
    """Read a trace file or a run of the store and apply a policy. Raises `InputError` for a policy that is none."""
    environ = os.environ if environ is None else environ
    guard = strictly(store.folder, environ, policy)
    return applied(read(selector, store), guard, environ)


def strictly(store: Path, environ: Mapping[str, str], policy: str | Path = "", *, make: bool = True) -> Guard:
    """Give the policy and key in force; `make` makes a key where there is none.

    Raises `InputError` where either cannot be had as it was asked for.
    """
    read = in_force.chosen_policy(store, environ, chosen=policy)
    return in_force.of_policy(read, store, environ, make=make)


def read(selector: str, store: DirectoryStore) -> list[SpanRecord]:
    """Give the spans of a file, their large values in place and log events with them; else of a run of the store."""
    path = Path(selector)
    if selector == "-" or path.exists():
        return joined(whole(open_spans(path, say), path))
    recording = find(selector, store)
    return spans_of(recording.together)


def applied(spans: Iterable[SpanRecord], guard: Guard, environ: Mapping[str, str]) -> Redacted:
    """Apply a policy to spans. Each trace keeps the salt that it has, so that old and new tokens agree."""
    spans = list(spans)
    engines = _Engines(spans, guard, environ)
    left: Counter[tuple[str, str]] = Counter()
    tokens: dict[tuple[str, str], str] = {}
    clean: list[SpanRecord] = []
    per_trace: dict[str, Counter[str]] = {}
    failed = 0
    for span in spans:
        one = engines.one(span)
        copy = one.copy()
        failed += one.failed
        for (name, place), count in one.found.items():
            left[name, place] += count
            per_trace.setdefault(span.trace_id, Counter())[name] += count
        for where, token in one.tokens.items():
            tokens.setdefault(where, token)
        clean.append(copy)
    marked_spans = [_mark_root(span, engines, per_trace.get(span.trace_id, Counter())) for span in clean]
    listed = [
        RemainingValues(name=name, place=place, count=count, token=tokens.get((name, place), ""))
        for (name, place), count in sorted(left.items(), key=lambda each: (-each[1], each[0]))
    ]
    return Redacted(spans=tuple(marked_spans), guard=guard, left=tuple(listed), failed=failed)


def cleaner(store: DirectoryStore, policy: str | Path = "") -> Callable[[Iterable[SpanRecord]], Sequence[SpanRecord]]:
    """Give what applies a policy to spans. Raises `InputError` for a policy that is none."""
    guard = strictly(store.folder, os.environ, policy)
    return lambda spans: applied(spans, guard, os.environ).spans


class _Engines:
    """One engine for each trace that has a salt of its own, and one for all others."""

    def __init__(self, spans: Sequence[SpanRecord], guard: Guard, environ: Mapping[str, str]) -> None:
        self._guard, self._environ = guard, environ
        self._salts: dict[str, str] = {}
        self._entities: dict[int, dict[int, tuple[object, object]]] = {}
        self.roots: set[str] = set()
        ids = {(span.trace_id, span.span_id) for span in spans}
        for span in spans:
            salt = span.attributes.get(in_force.SALT) or span.resource.attributes.get(in_force.SALT)
            if isinstance(salt, str) and in_force.is_salt(salt):
                self._salts.setdefault(span.trace_id, salt)
            if not span.parent_id or (span.trace_id, span.parent_id) not in ids:
                self.roots.add(span.span_id)
        self._pairs_by_salt: dict[str, tuple[Engine, Guard]] = {}

    def one(self, span: SpanRecord) -> _One:
        """Take a span in hand."""
        engine, guard = self._pair(span.trace_id)
        return _One(span, engine, guard.stands_for(engine), self._entities.setdefault(id(engine), {}))

    def guard(self, trace_id: str) -> Guard:
        """Give what is in force for a trace."""
        return self._pair(trace_id)[1]

    def _pair(self, trace_id: str) -> tuple[Engine, Guard]:
        salt = self._salts.get(trace_id, "") if self._guard.salt else ""
        if salt not in self._pairs_by_salt:
            guard = replace(self._guard, salt=salt or self._guard.salt)
            self._pairs_by_salt[salt] = guard.engine(self._environ), guard
        return self._pairs_by_salt[salt]


class _One:
    """The redacted copy of one span, and what was found in it."""

    def __init__(
        self,
        span: SpanRecord,
        engine: Engine,
        stands_for: Callable[[str], str],
        entities: dict[int, tuple[object, object]],
    ) -> None:
        self._span, self._engine, self._stands_for, self._entities = span, engine, stands_for, entities
        self.found: Counter[tuple[str, str]] = Counter()
        self.tokens: dict[tuple[str, str], str] = {}
        self.failed = False
        values = (span.attributes.get(name) for name in (_KIND, _TOOL, _BOUNDARY))
        kind, tool, boundary = (each if isinstance(each, str) else "" for each in values)
        self._place = Place(kind=kind, tool=tool, boundary=boundary)

    def copy(self) -> SpanRecord:
        """Make it."""
        span = self._span
        return replace(
            span,
            name=self._text(span.name, "name"),
            status_message=self._text(span.status_message, "status"),
            trace_state=self._text(span.trace_state, "trace state"),
            attributes=self._attributes(span.attributes, ""),
            events=tuple(
                replace(
                    event,
                    name=self._text(event.name, "event"),
                    attributes=self._attributes(event.attributes, "event "),
                )
                for event in span.events
            ),
            links=tuple(
                replace(
                    link,
                    attributes=self._attributes(link.attributes, "link "),
                    trace_state=self._text(link.trace_state, "link"),
                )
                for link in span.links
            ),
            resource=self._shared(span.resource, "resource "),
            scope=self._shared(span.scope, "scope "),
        )

    def _shared(self, entity: _Entity, part: str) -> _Entity:
        """Redact what many spans share: once for all of them, and counted once."""
        cached_pair = self._entities.get(id(entity))
        if cached_pair is None:
            clean = self._attributes(entity.attributes, part, parts=False)
            cached_pair = self._entities[id(entity)] = entity, replace(entity, attributes=clean)
        return cast("_Entity", cached_pair[1])

    def _text(self, text: str, part: str) -> str:
        place = replace(self._place, attribute=part)
        return str(self._count_redactions(text, part, lambda: self._engine.text(text, place=place))) if text else text

    def _attributes(
        self, attributes: Mapping[str, Attribute], part: str, *, parts: bool = True
    ) -> dict[str, Attribute]:
        """Redact one attribute at a time, beside what says of which kind and tool the span is."""
        about = {
            name: value
            for name, value in ((_KIND, self._place.kind), (_TOOL, self._place.tool), (_BOUNDARY, self._place.boundary))
            if value and parts
        }
        clean_attributes: dict[str, Attribute] = {}
        for name, value in attributes.items():
            if name in _DIGESTS and isinstance(value, str) and in_force.is_salt(value):
                clean_attributes[name] = value
                continue
            where = f"{part}{_numberless(name)}"
            if name == _ENTRY and isinstance(value, str):
                value = self._seen_text(value, where)  # noqa: PLW2901 - the words that are free text went
            if name == _CHUNKS and isinstance(value, str):
                clean_attributes[name] = str(self._count_redactions(value, where, partial(self._chunks, value)))
                continue
            context: dict[str, Any] = {**about, name: value}
            clean = self._count_redactions({name: value}, where, partial(self._engine.attributes, context))
            if isinstance(clean, dict):
                clean_attributes |= {
                    key: each
                    for key, each in cast("dict[str, Attribute]", clean).items()
                    if key not in about or key == name
                }
        return clean_attributes

    def _seen_text(self, text: str, where: str) -> str:
        """Replace what is free text in a command line, where payloads are taken whole."""
        body = parsed_or_none(text)
        if self._engine.plan.payloads == "scan" or not isinstance(body, dict) or not isinstance(body.get("argv"), list):
            return text
        before = [str(word) for word in cast("list[Json]", body["argv"])]
        after = replace_spoken_words(before, self._stands_for)
        changed = sum(a != b for a, b in zip(before, after, strict=True))
        if changed:
            self.found[WHOLE, where] += changed
        return compact({**body, "argv": [*after]}) if changed else text

    def _chunks(self, text: str) -> str:
        """Redact the pieces of a stream as one text."""
        pieces = parsed_or_none(text)
        chunks = [chunk_from_json(each) for each in pieces] if isinstance(pieces, list) else [None]
        if any(chunk is None for chunk in chunks):
            return self._engine.text(text, place=replace(self._place, attribute=_CHUNKS))
        valid_chunks = [chunk for chunk in chunks if chunk is not None]
        clean = scrubbed(valid_chunks, self._engine)
        return text if clean == tuple(valid_chunks) else compact([chunk_to_json(chunk) for chunk in clean])

    def _count_redactions(self, before: object, where: str, redact: Callable[[], object]) -> object:
        """Redact, and note by class what was replaced and by what. What fails is left out."""
        try:
            with self._engine.counting() as counted:
                after = redact()
        except Exception:  # noqa: BLE001 - fail closed
            self.failed = True
            return "reenact: could not be redacted" if isinstance(before, str) else {}
        if counted:
            fresh = set(tokens_in(_spelled(after))) - set(tokens_in(_spelled(before)))
            for name, count in counted.items():
                self.found[name, where] += count
                mark = f"REDACTED_{name}_"
                token = next((each for each in sorted(fresh) if each.startswith(mark)), "")
                if token:
                    self.tokens.setdefault((name, where), token)
        return after


def _numberless(name: str) -> str:
    return ".".join("*" if part.isdigit() else part for part in name.split("."))


def _spelled(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return "\n".join(f"{key}\n{_spelled(item)}" for key, item in cast("Mapping[str, object]", value).items())
    if isinstance(value, list | tuple):
        return "\n".join(map(_spelled, cast("Iterable[object]", value)))
    return ""


def _mark_root(span: SpanRecord, engines: _Engines, counts: Mapping[str, int]) -> SpanRecord:
    """Say on the root of a trace which policy was applied, and what it replaced."""
    if span.span_id not in engines.roots:
        return span
    before = span.attributes
    attributes: dict[str, Any] = {name: value for name, value in before.items() if name not in _REWRITTEN}
    attributes |= engines.guard(span.trace_id).facts()
    earlier = before.get(_COUNT)
    attributes[_COUNT] = sum(counts.values()) + (earlier if isinstance(earlier, int) else 0)
    for name, count in counts.items():
        prior_count = before.get(f"{in_force.REPLACED}{name}")
        attributes[f"{in_force.REPLACED}{name}"] = count + (prior_count if isinstance(prior_count, int) else 0)
    return replace(span, attributes=attributes)


_REWRITTEN = frozenset({in_force.NAME, in_force.SOURCE, in_force.WORDS, in_force.KEY, in_force.SALT})


def write(spans: Iterable[SpanRecord], target: Path) -> None:
    """Write OTLP as JSON lines, whole or not at all; `-` is stdout. Raises `InputError`."""
    from reenact.pipeline import transfer

    transfer.write(tuple(spans), target, otlp_json.FORMAT.name)
