"""A call's span, redacted and written straight to the journal: its start before the request, its end before the answer.

It says what an OpenTelemetry span says, without the locks, limits, copies and proxies that the SDK's spans and
processors need for being shared: those cost an agent more than all the rest of recording, for nothing here. Roots go
through the SDK.
"""

from __future__ import annotations

import os
import struct
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from opentelemetry.trace import SpanKind
from opentelemetry.trace.status import StatusCode

from reenact.boundary.place import Place
from reenact.contracts.redactor import Redactor
from reenact.formats.journal import TEXT
from reenact.record.journal import JournalProcessor
from reenact.record.turns import LONG
from reenact.values import alarms
from reenact.values.span import KIND_CLIENT, KIND_INTERNAL, STATUS_ERROR, STATUS_OK

_NAMES = 1000
_urandom: Callable[[int], bytes] = os.urandom
_AT_ONCE = 512
"""Span ids that are drawn from the system at once: each draw is a system call."""
_FAILED = {"reenact.redaction.failed": True}
"""What is written where redaction fails: it fails closed."""
_AROUND = ("openinference.span.kind", "tool.name", "reenact.boundary")
"""What a policy may go by: said at the start of a span, and said once more to the redactor at its end."""
_NOTHING: Mapping[str, Any] = {}
_time_ns: Callable[[], int] = time.time_ns  # the real one, before the clock integration stands in front of it
_ticks: Callable[[], int] = time.perf_counter_ns


class CallSpan:
    """A span that is open until `end`. `span_id` is 64 random bits of the system's."""

    __slots__ = ("_around", "_attributes", "_began", "_events", "_name", "_spans", "_ticks", "span_id")

    def __init__(
        self, spans: CallSpans, span_id: int, name: str, began: int, around: Mapping[str, Any] = _NOTHING
    ) -> None:
        self._spans, self.span_id, self._name, self._around = spans, span_id, name, around
        self._began, self._ticks = began, _ticks()
        self._attributes: dict[str, Any] = {}
        self._events: list[tuple[str, int, Mapping[str, Any]]] = []

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        """Add facts, each in place of an earlier one of its name."""
        self._attributes.update(attributes)

    def add_event(self, name: str, attributes: Mapping[str, Any]) -> None:
        """Note that something happened now."""
        self._events.append((name, self._now(), attributes))

    def _now(self) -> int:
        """Give the time, never before the span began: a clock that was set back meanwhile is not believed."""
        now = _time_ns()
        return now if now >= self._began else self._began + _ticks() - self._ticks

    def end(
        self,
        attributes: dict[str, Any],
        code: StatusCode,
        message: str = "",
        number: Callable[[], int] | None = None,
        ended_ns: int | None = None,
    ) -> None:
        """Write down how the call went and what was added since its start, under a number. To be called once."""
        if self._attributes:
            attributes = {**self._attributes, **attributes}
        spans = self._spans
        try:
            around = self._around
            redacted = spans.redactor.attributes({**around, **attributes} if around else attributes)
            for name in around:
                redacted.pop(name, None)
        except Exception:
            alarms.pass_on()
            redacted = _FAILED
        frame: dict[str, Any] = {
            "t": "end",
            "span": format(self.span_id, "016x"),
            "name": self._name,
            "ns": ended_ns or self._now(),
            "attributes": redacted,
            "status": STATUS_OK if code is StatusCode.OK else STATUS_ERROR,  # `.value` of an enumeration is slow
        }
        if message:
            frame["message"] = spans.text(message, "status")
        if self._events:
            events = ((spans.text(event, "event"), ns, spans.redacted(facts)) for event, ns, facts in self._events)
            frame["events"] = [list(each) for each in events]
        if number is None:
            spans.journal.write(frame)
            return
        frame["attributes"] = {**redacted}
        spans.journal.write_end(frame, number)


class CallSpans:
    """Opens the spans of calls. What cannot be redacted is left out, never let through; a span keeps its structure."""

    def __init__(self, journal: JournalProcessor, redactor: Redactor) -> None:
        self.journal, self.redactor = journal, redactor
        plan: Any = getattr(redactor, "plan", None)
        self._placed = plan is not None and not plan.uniform
        """What becomes of a value depends on where it stands."""
        self._names: dict[str, str] = {}
        self._shared: dict[int, tuple[Mapping[str, Any], dict[str, Any]]] = {}
        self._last: tuple[Mapping[str, Any] | None, dict[str, Any]] = (None, {})
        """What the last one shared: mostly it is the same again."""
        self._ids: list[int] = []
        self._parent: tuple[Place | None, str, str] = (None, "", "")
        forked = weakref.WeakMethod(self._forked)
        os.register_at_fork(after_in_child=lambda: (tell := forked()) and tell())

    def _forked(self) -> None:
        """Leave the ids that were drawn to the parent."""
        self._ids = []

    def _more_ids(self) -> int:
        """Draw ids ahead, never 0 (W3C Trace Context, section 3.2.2.3), and give one."""
        drawn = struct.unpack(f"{_AT_ONCE}Q", _urandom(8 * _AT_ONCE))
        self._ids = [each or 1 for each in drawn[1:]]
        return drawn[0] or 1

    def next_id(self) -> int:
        """Give the id of a further span."""
        try:
            return self._ids.pop()
        except IndexError:
            return self._more_ids()

    def start(
        self,
        name: str,
        parent: Place,
        kind: SpanKind,
        attributes: Mapping[str, Any],
        shared: Mapping[str, Any],
        began_ns: int | None = None,
    ) -> CallSpan:
        """Open a span below `parent` and write its start down; other spans come with the same object `shared`."""
        try:  # as `next_id` has it
            span_id = self._ids.pop()
        except IndexError:
            span_id = self._more_ids()
        name = self._names.get(name) or self._clean_name(name)
        last_parent, trace, above = self._parent
        if last_parent is not parent:
            trace, above = format(parent.trace_id, "032x"), format(parent.span_id, "016x")
            self._parent = parent, trace, above
        facts = {**shared, **attributes} if self._placed else attributes
        try:  # one call of ours less for every call of the agent's: they cost more than what they do
            redacted = self.redactor.attributes(facts)
        except Exception:
            alarms.pass_on()
            redacted = _FAILED
        last = self._last
        shared_redacted = _NOTHING if self._placed else last[1] if last[0] is shared else self._redacted_once(shared)
        began = began_ns or _time_ns()
        frame: dict[str, Any] = {
            "t": "start",
            "trace": trace,
            "span": format(span_id, "016x"),
            "parent": above,
            "name": name,
            "kind": KIND_CLIENT if kind is SpanKind.CLIENT else KIND_INTERNAL,
            "ns": began,
            "attributes": {**shared_redacted, **redacted},
        }
        text = redacted.get(TEXT)
        if type(text) is str and len(text) >= LONG:
            self.journal.write_turn(frame, text)
        else:
            self.journal.write(frame)
        if self._placed:
            return CallSpan(self, span_id, name, began, {key: facts[key] for key in _AROUND if key in facts})
        return CallSpan(self, span_id, name, began)

    def _clean_name(self, name: str) -> str:
        """Redact the name of a span, once for all spans that bear it: they are few."""
        if len(self._names) > _NAMES:
            self._names.clear()
        self._names[name] = clean_name = self.text(name, "name")
        return clean_name

    def _redacted_once(self, shared: Mapping[str, Any]) -> dict[str, Any]:
        """Redact what many spans share, once; what holds a secret is counted, and so replaced, every time."""
        shared_pair = self._shared.get(id(shared))
        if shared_pair is None:
            redacted = self.redacted(shared)
            if redacted != shared:
                return redacted
            if len(self._shared) > _NAMES:
                self._shared.clear()
            shared_pair = self._shared[id(shared)] = shared, redacted  # held, so that its identity stays its own
        self._last = shared_pair
        return shared_pair[1]

    def redacted(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Redact attributes; what cannot be is left out."""
        try:
            return self.redactor.attributes(attributes)
        except Exception:
            alarms.pass_on()
            return _FAILED

    def text(self, text: str, part: str) -> str:
        """Redact the text of a part of a span (`name`, `status`, `event`); one that cannot be is left out."""
        try:
            if self._placed:
                return str(self.redactor.attributes({part: text}).get(part, ""))
            return self.redactor.text(text) if text else text
        except Exception:
            alarms.pass_on()
            return "reenact: could not be redacted"
