"""The doorman of a fork: answers from the recording up to a call, changed there, then by a policy of its own.

Until the changed call is met the replay is a replay like any other: whatever nobody recorded stops it. From there on
answers come as the fork's policy says. Where models answer live, a request may be rewritten on its way out, and tools
stay frozen: one that is asked again what it was asked before says again what it said, marked as such.
"""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from reenact.boundary.question import Question, shape_named
from reenact.replay.after_divergence import EVIDENCE
from reenact.replay.policy import MODELS, After, Policy, Source
from reenact.replay.recorders import Recorder
from reenact.replay.replayer import Replayer, ReplayPassage
from reenact.replay.stubs import Stub, Stubs, orders
from reenact.values.call import Body, Call, CallKind, HttpRequest, Rewritten
from reenact.values.change import Change
from reenact.values.difference import Absent
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.json_path import NoSuchPlace, Path, parse_path, value_at, with_value
from reenact.values.lenient import as_object, without
from reenact.values.run import FORK_ASKED, FORK_CHANGED

SENT_FOR: Final = "reenact.fork.sent_for"
"""On a call that went out in place of a recorded one: the span id of that."""
REPEATED: Final = "repeated"
"""The evidence of an answer that was recorded once and is given once more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """Where a run is forked, and what goes out from there."""

    marker: pathlib.Path
    """A file that is there once any process of the replay has met the change."""
    at: frozenset[str] = frozenset()
    """Ids of the calls that are changed; none where it is forked from its beginning."""
    sent: frozenset[str] = frozenset()
    """Ids of those that go out again instead of being answered."""
    requests: Mapping[str, tuple[Change, ...]] = field(default_factory=dict[str, tuple[Change, ...]])
    """What is changed in their requests, by id."""
    parameters: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """What every model call that goes out is asked with, if it answers in words; null takes a parameter away."""

    def to_json(self) -> dict[str, Json]:
        """Spell it for the plan of a replay."""
        return {
            "marker": str(self.marker),
            "at": [*sorted(self.at)],
            "sent": [*sorted(self.sent)],
            "requests": {name: [each.to_json() for each in changes] for name, changes in self.requests.items()},
            "parameters": dict(self.parameters),
        }

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Fork:
        """Read what `to_json` spelled."""
        return Fork(
            marker=pathlib.Path(document["marker"]),
            at=frozenset(document["at"]),
            sent=frozenset(document["sent"]),
            requests={name: tuple(map(Change.from_json, changes)) for name, changes in document["requests"].items()},
            parameters=document["parameters"],
        )

    def rewritten(self, call: Call, node_id: str | None = None) -> tuple[Call, list[str]]:
        """Give a model call as it is to go out, and the names of parameters that it has no place for.

        One whose body is no JSON object goes as it is.
        """
        request = call.request
        body = parsed_or_none(request.body.data) if isinstance(request, HttpRequest) else None
        if not isinstance(request, HttpRequest) or not isinstance(body, dict):
            return call, []
        changed: Json = body
        for change in self.requests.get(node_id or "", ()):
            changed = with_value(changed, parse_path(change.path)[1:], change.value)
        unfit: list[str] = []
        shape = shape_named(request.shape)
        for name, value in self.parameters.items() if shape is not None and shape.wording is not None else ():
            try:
                changed = _with_parameter(changed, parse_path(name), value)
            except NoSuchPlace:
                unfit.append(name)
        if changed == body:
            return call, unfit
        new_request = replace(request, body=Body(compact(changed).encode("utf-8", "replace")))
        return replace(call, request=new_request), unfit


def _with_parameter(body: Json, path: Path, value: Json) -> Json:
    """Set a field of a request; objects on the way to it that are not there are made. Raises `NoSuchPlace`."""
    if value is None and len(path) == 1:
        return without(as_object(body), map(str, path))
    for length in range(1, len(path)):
        if isinstance(value_at(body, path[:length]), Absent) and isinstance(path[length], str):
            body = with_value(body, path[:length], {})
    return with_value(body, path, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FromThere(Policy):
    """What answers behind the change. The same text has the same vector: what was embedded is not embedded again."""

    def source(self, kind: CallKind) -> Source:
        """Say where the answers to calls of `kind` come from."""
        policy_source = Policy.source(self, kind)
        return Source.RECORDED_OR_LIVE if kind is CallKind.EMBEDDING and policy_source is Source.LIVE else policy_source


class ForkReplayer(Replayer):
    """Answers calls up to the fork as recorded, and from there on by `policy`."""

    compares = False

    def __init__(
        self,
        stubs: Stubs,
        recorder: Recorder,
        redactor: Any,
        ledger: Any,
        policy: Policy,
        process: str,
        fork: Fork,
    ) -> None:
        strict = replace(policy, models=Source.RECORDED, tools=Source.RECORDED, after=After.STOP)
        super().__init__(stubs, recorder, redactor, ledger, strict, process)
        self._fork = fork
        self._from_there = _FromThere(**{each.name: getattr(policy, each.name) for each in fields(policy)})
        self._reached = False
        self._by_key: dict[str, Stub] = {}
        if not fork.at or fork.marker.exists():
            self._reach()

    def _reach(self) -> None:
        """Go over to what comes after the change."""
        if self._reached:
            return
        self._reached, self._policy = True, self._from_there
        self._live = {kind for kind in CallKind if self._policy.source(kind) is Source.LIVE}
        self._fork.marker.touch()
        self.ledger.note("forked")
        if self._live:
            for gate in self._gates.values():
                gate.give_up()  # the world sets the pace from here on

    def open(self, call: Call) -> ReplayPassage:
        """Let a call in and find its answer. Raises `Miss`."""
        if not self._reached and self._fork.marker.exists():  # another process of this replay met the change
            self._reach()
        return super().open(call)

    def _answer(self, call: Call, asked: Question, stub: Stub, lane: str) -> ReplayPassage:
        node_id = stub.node.id
        if node_id not in self._fork.at:
            return super()._answer(call, asked, stub, lane)
        passage = (
            self._send(call, stub, lane) if node_id in self._fork.sent else super()._answer(call, asked, stub, lane)
        )
        passage.annotate({FORK_CHANGED: True})
        self._reach()
        return passage

    def _send(self, call: Call, stub: Stub, lane: str) -> ReplayPassage:
        """Let a call go out that the recording would answer."""
        with self._lock:
            self.stubs.cover(stub)
        self.gate_of(stub).drop(orders(stub.node))
        inner, passage = self._let_out(self._rewritten(call, stub.node.id), call, lane)
        inner.annotate({SENT_FOR: stub.node.id})
        return passage

    def _rewritten(self, call: Call, node_id: str | None = None) -> Call:
        new_call, unfit = self._fork.rewritten(call, node_id)
        for name in unfit:
            self.ledger.note("unfit", call=f"{call.word} {call.name}", parameter=name)
        return new_call

    def _let_out(self, live_call: Call, call: Call, lane: str) -> tuple[Any, ReplayPassage]:
        self._check_way(live_call)
        inner = self._recorder.open(live_call)
        inner.annotate({"reenact.replay.live": True})
        span = format(inner.place.span_id, "016x")
        self.ledger.note("live", kind=call.kind.value, call=f"{call.word} {call.name}", span=span)
        body = live_call.request.body if isinstance(live_call.request, HttpRequest) and live_call is not call else None
        if isinstance(call.request, HttpRequest) and body is not None:
            inner.annotate({FORK_ASKED: call.request.body.text})
        return inner, ReplayPassage(self, live_call, inner, None, Rewritten(body) if body is not None else None, lane)

    def _unanswered(self, call: Call, asked: Question, source: Source, lane: str, parent: object) -> ReplayPassage:
        if call.kind in MODELS:
            live_call = self._rewritten(call) if self._reached and source is Source.LIVE else call
            if live_call is not call:
                return self._let_out(live_call, call, lane)[1]
        elif self._reached and source is Source.RECORDED and not self._live.isdisjoint(MODELS):
            stub = self._recorded_before(asked)
            if stub is not None:
                passage = super()._answer(call, asked, stub, lane)
                passage.annotate({EVIDENCE: REPEATED})
                return passage
        return super()._unanswered(call, asked, source, lane, parent)

    def _recorded_before(self, asked: Question) -> Stub | None:
        """Find what answered the same question before, for a model that asks a frozen tool once more."""
        with self._lock:
            if not self._by_key:
                self._by_key = {stub.question.key: stub for stub in self.stubs.stubs.values() if not stub.is_structure}
            return self._by_key.get(asked.key)
