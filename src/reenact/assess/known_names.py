"""Whether the names that an assertion uses are known to anybody: a name with a typo in it is true of every run.

Known is what a schema that a model was shown names, and what was called, asked for or answered in the run, or in
another run of the same program (`beside`). A pattern is no name. Where no field of a call is known, none is a typo.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Final, cast

from reenact.assess.calls import CallView, call_views
from reenact.assess.shapes import offered
from reenact.values.assertion import Assertion, Calls, Condition, Every, Op, Part
from reenact.values.lenient import as_object
from reenact.values.message import ToolCall
from reenact.values.run import Run

_TOOLS: Final = frozenset({"", "tool", "retriever"})
_TRUE_OF_NOTHING: Final = frozenset({Op.ABSENT, Op.DIFFERENT, Op.LACKS, Op.MISMATCHES, Op.NOT_IN})
"""What is true of a field that is not there, as the language has it."""
_PATTERN: Final = frozenset("*?")


class KnownNames:
    """The names of tools, with their fields, and of models in some runs."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._calls = [each for run in runs for each in call_views(run)]
        self.fields: dict[str, set[str]] = {}
        """Of every call that has one its name, and the fields of its arguments that are known."""
        self.models: set[str] = set()
        for each in self._calls:
            self._take(each)

    def _take(self, each: CallView) -> None:
        arguments = each.arguments
        mine = self.fields.setdefault(each.name, set())
        if isinstance(arguments, dict):
            mine.update(arguments)
        if each.wanted is not None or each.word not in {"llm", "embedding"}:
            return
        for side in (each.asked, each.answered):
            if side is not None and side.model:
                self.models.add(side.model)
        for tool in each.asked.tools if each.asked is not None else ():
            for name, schema in offered(tool):
                self.fields.setdefault(name, set()).update(as_object(as_object(schema).get("properties")))
        for message in each.answered.messages if each.answered is not None else ():
            for part in message.parts:
                if isinstance(part, ToolCall):
                    self.fields.setdefault(part.name, set())

    def stranger(self, assertion: Assertion) -> str:
        """Say which name of an assertion nobody knows, and which is meant perhaps; empty where all are known."""
        has = assertion.has if isinstance(assertion, Every) else ()
        for calls in _calls_of(assertion):
            if reason := self._tool(calls):
                return reason
            for condition in (*calls.where, *has):
                if reason := self._field(calls, condition) or self._model(condition):
                    return reason
        return ""

    def _tool(self, calls: Calls) -> str:
        if calls.kind not in _TOOLS or _PATTERN & {*calls.name} or calls.name in self.fields:
            return ""
        return f"no schema, recording or replay knows a tool {calls.name}{_suggestion(calls.name, self.fields)}"

    def _field(self, calls: Calls, condition: Condition) -> str:
        name = condition.path[0] if condition.path else None
        if condition.part is not Part.ARGUMENTS or not isinstance(name, str) or condition.op in _TRUE_OF_NOTHING:
            return ""
        known_fields = self.fields.get(calls.name)
        if calls.kind not in _TOOLS or not known_fields or name in known_fields:
            return ""
        return f"no schema, recording or replay knows a field {name} of {calls.name}{_suggestion(name, known_fields)}"

    def _model(self, condition: Condition) -> str:
        if condition.part is not Part.CALL or condition.path != ("model",) or condition.op is not Op.EQUAL:
            return ""
        name = str(condition.value)
        if not self.models or name in self.models:
            return ""
        return f"no recording or replay knows a model {name}{_suggestion(name, self.models)}"


def _calls_of(assertion: object) -> Iterator[Calls]:
    """Give every group of calls that an assertion names."""
    if isinstance(assertion, Calls):
        yield assertion
    elif isinstance(assertion, tuple):
        for each in cast("tuple[object, ...]", assertion):
            yield from _calls_of(each)
    elif is_dataclass(assertion):
        for each in fields(assertion):
            yield from _calls_of(getattr(assertion, each.name))


def _suggestion(name: str, vocabulary: Iterable[str] | Mapping[str, object]) -> str:
    near = difflib.get_close_matches(name, [*vocabulary], n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""
