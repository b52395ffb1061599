"""Redacted copies of what OpenTelemetry's SDK hands to processors and exporters: spans, resources, scopes, log records.

A copy shares nothing that can be written to with its original, and says what was done: the resource names the policy,
the span counts what was replaced in it, by class. What cannot be redacted is left out, never let through.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar, cast

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, TraceState
from opentelemetry.trace.status import Status

from reenact.contracts.redactor import Redactor
from reenact.redact.plan import Place
from reenact.values import alarms

POLICY = "reenact.redaction.policy"
"""Names the policy by its digest, on the resource."""
SALT = "reenact.redaction.salt"
"""Keys the tokens of credentials where no key is configured, on the resource, so that a replay gives the same."""
KEY = "reenact.redaction.key"
"""Names the secret key of the tokens of what could be guessed, on the resource."""
REPLACED = "reenact.redaction.replaced."
"""Before a class: how many of its values were replaced in this span or log record."""
FAILED = "reenact.redaction.failed"
"""Something could not be redacted, and was left out."""
UNREADABLE = "reenact: could not be redacted"
KIND, TOOL, BOUNDARY = "openinference.span.kind", "tool.name", "reenact.boundary"
"""The attributes by which a policy tells what span a value is of."""
_KINDS: Mapping[str, str] = {
    **dict.fromkeys(("chat", "text_completion", "generate_content"), "LLM"),
    **dict.fromkeys(("execute_tool", "tool"), "TOOL"),
    **dict.fromkeys(("invoke_agent", "create_agent", "agent"), "AGENT"),
    **dict.fromkeys(("workflow", "task"), "CHAIN"),
    "embeddings": "EMBEDDING",
}
"""Kinds of spans by `gen_ai.operation.name` of the GenAI conventions and `traceloop.span.kind` of OpenLLMetry."""
_PARTS = {part: Place(attribute=part) for part in ("name", "status", "event", "link")}
_STREAMED = frozenset({"arguments", "body", "chunk", "completion", "content", "data", "delta", "partial_json", "text"})
"""Last parts of the attributes in which events hold the pieces of a stream."""
_REMEMBERED = 64
"""Resources and scopes of which the copy is kept; a process has a few."""
_NOTHING: Mapping[str, Any] = {}
_T = TypeVar("_T")


class RedactedSpan(ReadableSpan):
    """A redacted copy of a finished span. It counts what the limits dropped as the original does."""

    def __init__(self, original: ReadableSpan, **parts: Any) -> None:
        super().__init__(**parts)
        self._drop_counts = original.dropped_attributes, original.dropped_events, original.dropped_links

    def marked(self, marks: Mapping[str, int]) -> None:
        """Add attributes that say what was replaced."""
        self._attributes = {**(self._attributes or {}), **marks}

    @property
    def dropped_attributes(self) -> int:
        """How many attributes the limits dropped."""
        return self._drop_counts[0]

    @property
    def dropped_events(self) -> int:
        """How many events the limits dropped."""
        return self._drop_counts[1]

    @property
    def dropped_links(self) -> int:
        """How many links the limits dropped."""
        return self._drop_counts[2]


class _RedactedEvent(Event):
    dropped = 0

    @property
    def dropped_attributes(self) -> int:
        return self.dropped


class _RedactedLink(Link):
    dropped = 0

    @property
    def dropped_attributes(self) -> int:
        return self.dropped


class Copies:
    """Makes redacted copies with one redactor. Shared by threads.

    `marked` says what was done on the copies themselves; our own recorder says it on the root of the run instead.
    `facts` are what a resource says of the policy and the key, by default what the redactor knows.
    """

    def __init__(self, redactor: Redactor, facts: Mapping[str, Any] = _NOTHING, *, marked: bool = True) -> None:
        self._redactor, self.marked = redactor, marked
        self._facts = facts or _facts(redactor)
        self.uniform: bool = getattr(getattr(redactor, "plan", None), "uniform", True)
        """What becomes of a value depends on no place: neither on the span's kind nor on what stands beside."""
        self._placed = "place" in inspect.signature(redactor.text).parameters
        self.counting: Callable[[], AbstractContextManager[Mapping[str, int]]] = getattr(
            redactor, "counting", lambda: nullcontext(_NOTHING)
        )
        self._copy_cache: dict[int, tuple[Any, Any]] = {}

    def span(
        self, span: ReadableSpan, start_attributes: Mapping[str, Any] = _NOTHING, begun: Mapping[str, Any] = _NOTHING
    ) -> ReadableSpan:
        """Copy a finished span. What `start_attributes` held when it began is in `begun`, redacted."""
        if not self.marked:
            return self._span(span, start_attributes, begun)
        self.resource(span.resource)  # this and the next are counted by themselves, once
        self.scope(span.instrumentation_scope)
        with self.counting() as counted:
            redacted_span = self._span(span, start_attributes, begun)
        if counted:
            redacted_span.marked(marks(counted))
        return redacted_span

    def _span(self, span: ReadableSpan, start_attributes: Mapping[str, Any], begun: Mapping[str, Any]) -> RedactedSpan:
        plain_attributes = _plain(span)
        about = self.about(plain_attributes)
        return RedactedSpan(
            span,
            name=self.text(span.name, "name", about),
            context=self.context(span.get_span_context()),
            parent=self.context(span.parent),
            resource=self.resource(span.resource),
            attributes=self._end_attributes(plain_attributes, start_attributes, begun, about),
            events=self.events(span.events, about),
            links=self.links(span.links, about),
            kind=span.kind,
            status=self.status(span.status, about),
            start_time=span.start_time,
            end_time=span.end_time,
            instrumentation_scope=self.scope(span.instrumentation_scope),
        )

    def bare(self, span: ReadableSpan) -> ReadableSpan:
        """Copy no more than a span's place and times, where nothing else could be copied."""
        return ReadableSpan(
            name=UNREADABLE,
            context=self.context(span.get_span_context()),
            parent=self.context(span.parent),
            resource=Resource({}),
            attributes={FAILED: True},
            kind=span.kind,
            start_time=span.start_time,
            end_time=span.end_time,
        )

    def about(self, attributes: Mapping[str, Any]) -> Mapping[str, str]:
        """Say what a span is, in our words, where the policy may ask; whatever conventions it follows."""
        if self.uniform:
            return _NOTHING
        operation = _KINDS.get(str(attributes.get("gen_ai.operation.name")), "")
        traceloop = _KINDS.get(str(attributes.get("traceloop.span.kind")), "")
        entity_name = attributes.get("traceloop.entity.name", "") if traceloop == "TOOL" else ""
        facts = {
            KIND: attributes.get(KIND) or operation or traceloop,
            TOOL: attributes.get(TOOL) or attributes.get("gen_ai.tool.name") or entity_name,
            BOUNDARY: attributes.get(BOUNDARY),
        }
        return {name: str(value) for name, value in facts.items() if value}

    def text(self, text: str, part: str = "", about: Mapping[str, str] = _NOTHING) -> str:
        """Redact one text, which is this part of a span that is so."""
        try:
            if self._placed and part:
                place = _PARTS.get(part) if not about else None
                place = place or Place(
                    attribute=part,
                    kind=about.get(KIND, ""),
                    tool=about.get(TOOL, ""),
                    boundary=about.get(BOUNDARY, ""),
                )
                return cast("Any", self._redactor).text(text, place=place)
            return self._redactor.text(text)
        except Exception:  # noqa: BLE001 - fail closed
            alarms.pass_on()
            return UNREADABLE

    def attributes(self, attributes: Mapping[str, Any], about: Mapping[str, str] = _NOTHING) -> dict[str, Any]:
        """Redact attributes of a span that is so; those that cannot be are left out, and the others say so."""
        further = {name: value for name, value in about.items() if name not in attributes}
        try:
            clean = self._redactor.attributes({**attributes, **further} if further else attributes)
        except Exception:  # noqa: BLE001 - fail closed
            alarms.pass_on()
            return self._one_by_one(attributes)
        for name in further:
            clean.pop(name, None)
        return clean

    def _one_by_one(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        clean: dict[str, Any] = {}
        for key, value in attributes.items() if self.uniform else ():  # one alone does not say what span it is of
            try:
                clean |= self._redactor.attributes({key: value})
            except Exception:  # noqa: BLE001 - as above
                alarms.pass_on()
        return {**clean, FAILED: True}

    def _end_attributes(
        self,
        attributes: Mapping[str, Any],
        start_attributes: Mapping[str, Any],
        begun: Mapping[str, Any],
        about: Mapping[str, str],
    ) -> dict[str, Any]:
        """Redact, without looking again at values that were redacted when the span began.

        Where the place matters they are looked at again: when it began, the span may not have said what it is.
        """
        if not begun or not self.uniform:
            return self.attributes(attributes, about)
        clean: dict[str, Any] = {}
        fresh: dict[str, Any] = {}
        for key, value in attributes.items():
            if key in begun and start_attributes.get(key) is value:
                clean[key] = begun[key]
            else:
                fresh[key] = value
        return clean | self.attributes(fresh)

    def status(self, status: Status, about: Mapping[str, str] = _NOTHING) -> Status:
        """Copy a status."""
        if not status.description:
            return status
        return Status(status.status_code, self.text(status.description, "status", about))

    def events(self, events: Iterable[Event], about: Mapping[str, str] = _NOTHING) -> list[Event]:
        """Copy events. Those of one name that hold the pieces of a stream are looked at as one text."""
        copies: list[Event] = []
        originals = list(events)
        facts: list[Mapping[str, Any]] = [event.attributes or {} for event in originals]
        if len(originals) > 1:
            facts = self._redact_streams([event.name for event in originals], facts)
        for event, event_facts in zip(originals, facts, strict=True):
            name = self.text(event.name, "event", about)
            event_copy = _RedactedEvent(name, self.attributes(event_facts, about), event.timestamp)
            event_copy.dropped = event.dropped_attributes
            copies.append(event_copy)
        return copies

    def _redact_streams(self, names: Sequence[str], facts: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Redact what is cut in two by the pieces of a stream, each of which is an event."""
        streams: dict[tuple[str, str], list[int]] = {}
        for index, (name, event_facts) in enumerate(zip(names, facts, strict=True)):
            for key, value in event_facts.items():
                if type(value) is str and key.rpartition(".")[2] in _STREAMED:
                    streams.setdefault((name, key), []).append(index)
        joined = list(facts)
        for (_, key), indexes in streams.items():
            if len(indexes) > 1:
                for index, text in zip(indexes, self._pieces([facts[at][key] for at in indexes]), strict=True):
                    joined[index] = {**joined[index], key: text}
        return joined

    def _pieces(self, texts: Sequence[str]) -> list[str]:
        try:
            return [
                piece.decode() for piece in self._redactor.pieces([text.encode("utf-8", "replace") for text in texts])
            ]
        except Exception:  # noqa: BLE001 - fail closed
            alarms.pass_on()
            return [UNREADABLE] * len(texts)

    def links(self, links: Iterable[Link], about: Mapping[str, str] = _NOTHING) -> tuple[Link, ...]:
        """Copy links."""
        copies: list[Link] = []
        for link in links:
            link_copy = _RedactedLink(
                self.context(link.context) or link.context, self.attributes(link.attributes or {}, about)
            )
            link_copy.dropped = link.dropped_attributes
            copies.append(link_copy)
        return tuple(copies)

    def context(self, context: SpanContext | None) -> SpanContext | None:
        """Copy a span's context, where its trace state holds something to redact."""
        if context is None or not context.trace_state:
            return context
        state = [(self.text(key), self.text(value)) for key, value in context.trace_state.items()]
        if state == list(context.trace_state.items()):
            return context
        return SpanContext(context.trace_id, context.span_id, context.is_remote, context.trace_flags, TraceState(state))

    def resource(self, resource: Resource) -> Resource:
        """Copy a resource; the copy names the policy."""
        return self._once(resource, self._resource)

    def _resource(self, resource: Resource) -> Resource:
        with self.counting() as counted:
            clean = self.attributes(resource.attributes)
            schema = self.text(resource.schema_url) if resource.schema_url else None
        if self.marked:
            clean |= {**marks(counted), **self._facts}
        return Resource(clean, schema)

    def scope(self, scope: InstrumentationScope | None) -> InstrumentationScope | None:
        """Copy an instrumentation scope."""
        return None if scope is None else self._once(scope, self._scope)

    def _scope(self, scope: InstrumentationScope) -> InstrumentationScope:
        with self.counting() as counted:
            texts = [text and self.text(text) for text in (scope.name, scope.version, scope.schema_url)]
            clean = self.attributes(scope.attributes or {})
        if self.marked:
            clean |= marks(counted)
        return InstrumentationScope(texts[0] or "", texts[1], texts[2], clean)

    def _once(self, original: _T, make: Callable[[_T], _T]) -> _T:
        cached_pair = self._copy_cache.get(id(original))
        if cached_pair is None or cached_pair[0] is not original:
            if len(self._copy_cache) >= _REMEMBERED:
                self._copy_cache = {}
            cached_pair = self._copy_cache[id(original)] = (original, make(original))
        return cached_pair[1]

    def spans(self, spans: Sequence[ReadableSpan]) -> list[ReadableSpan]:
        """Copy finished spans, none of which may cost the others."""
        return [self.safely(span) for span in spans]

    def safely(
        self, span: ReadableSpan, start_attributes: Mapping[str, Any] = _NOTHING, begun: Mapping[str, Any] = _NOTHING
    ) -> ReadableSpan:
        """Copy a finished span, whatever fails."""
        try:
            return self.span(span, start_attributes, begun)
        except Exception:  # noqa: BLE001 - fail closed
            alarms.pass_on()
            return self.bare(span)


def _plain(span: ReadableSpan) -> Mapping[str, Any]:
    """Give a span's attributes as a dictionary; the SDK's own takes a lock for each of them."""
    inner_dict = getattr(getattr(span, "_attributes", None), "_dict", None)
    return dict(inner_dict if isinstance(inner_dict, dict) else span.attributes or {})  # pyright: ignore[reportUnknownArgumentType]  # a dict of whatever it held


def _facts(redactor: Redactor) -> dict[str, str]:
    facts = {POLICY: redactor.policy_digest, SALT: redactor.salt, KEY: getattr(redactor, "key_id", "")}
    return {name: value for name, value in facts.items() if value}


def marks(replaced: Mapping[str, int]) -> dict[str, int]:
    """Spell how many values were replaced, by class, as attributes."""
    return {REPLACED + name: count for name, count in sorted(replaced.items()) if count}
