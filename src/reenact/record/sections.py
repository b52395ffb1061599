"""Sections as spans in the journal: below a call or the root, with what their framework gave them and got back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from reenact.boundary import door
from reenact.boundary.sections import Section
from reenact.contracts.dialect import Writing
from reenact.record.runs import Runs, from_context
from reenact.record.span import CallSpans
from reenact.values.call import Call, FunctionCall, Outcome, Raised, Unfinished
from reenact.values.json import Json, compact
from reenact.values.run import LEFT_BY, SECTION
from reenact.values.span import KIND_INTERNAL, STATUS_ERROR, STATUS_OK

_LONGEST: Final = 1 << 16
"""Characters of a state from which on it is not kept: every node is given the whole of it."""
_AROUND: Final = ("openinference.span.kind", "reenact.boundary")


class SectionSpans:
    """Writes sections to the journal, redacted as calls are."""

    def __init__(self, spans: CallSpans, dialect: Writing, runs: Runs) -> None:
        self._spans, self._dialect, self._runs = spans, dialect, runs

    def begin(self, section: Section, trace_id: int, above: int, root: int) -> int:
        """Write that a section began below the span `above`, and give the id of its span."""
        span_id = self._spans.next_id()
        attributes: dict[str, Any] = {**self._dialect.encode_call(_as_call(section))}
        attributes |= _bounded(attributes, "input.value", "reenact.lost.request")
        if (run := self._runs.with_root(root)) is not None:
            attributes.update(run.identity)
        if door.application_context():
            attributes.update(from_context())
        self._spans.journal.write(
            {
                "t": "start",
                "trace": format(trace_id, "032x"),
                "span": format(span_id, "016x"),
                "parent": format(above, "016x"),
                "name": self._spans.text(section.name, "name"),
                "kind": KIND_INTERNAL,
                "ns": section.began_ns,
                "attributes": self._spans.redacted(attributes),
            }
        )
        return span_id

    def end(self, section: Section) -> None:
        """Write how it ended."""
        outcome: Outcome = section.outcome or Unfinished()
        call = _as_call(section)
        attributes: dict[str, Any] = {**self._dialect.encode_outcome(call, outcome)}
        attributes |= _bounded(attributes, "output.value", "reenact.lost")
        if LEFT_BY in section.attributes:
            attributes[LEFT_BY] = section.attributes[LEFT_BY]
        around = {"openinference.span.kind": section.kind.value, "reenact.boundary": "function"}
        redacted = self._spans.redacted({**around, **attributes})
        frame: dict[str, Any] = {
            "t": "end",
            "span": format(section.span_id, "016x"),
            "name": self._spans.text(section.name, "name"),
            "ns": max(section.ended_ns, section.began_ns),
            "attributes": {name: value for name, value in redacted.items() if name not in _AROUND},
            "status": STATUS_ERROR if isinstance(outcome, Raised) else STATUS_OK,
        }
        if isinstance(outcome, Raised):
            frame["message"] = self._spans.text(f"{outcome.exception.qualname}: {outcome.exception.message}", "status")
        self._spans.journal.write(frame)


def _as_call(section: Section) -> Call:
    request = FunctionCall(function=section.framework, arguments=section.inputs)
    attributes: dict[str, Json] = {**section.attributes, SECTION: section.framework}
    return Call(kind=section.kind, name=section.name, request=request, attributes=attributes)


def _bounded(attributes: Mapping[str, Any], name: str, lost: str) -> dict[str, Any]:
    """Say of a value that is too long that it was, in its place."""
    text = attributes.get(name)
    if not isinstance(text, str) or len(text) <= _LONGEST:
        return {}
    field = "input" if name == "input.value" else "output"
    why: list[Json] = [{"field": field, "lost": f"{len(text)} characters of the state of a section", "fix": ""}]
    return {name: "null", lost: compact(why)}
