"""Programs that are lists of calls: recorded as such, and replayed by the real replayer and judge.

A call is `["retriever", name, arguments]`, `["tool", name, arguments, result]` or `["llm", [texts], says]`; `says` is
a text or `{"name": …, "arguments": …}` for a tool call. In a replay a number stands for the recorded call with that
place, from 1, asked in the same words; `{"refused": what}` for a side effect; `{"raises": [class, message]}` and
`{"exits": code}` for how the program ends. `{"on": lane, "do": …}` is either on another lane than `main`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from made import Made, user
from reenact.boundary import lanes
from reenact.boundary.place import Place
from reenact.compare.judge import judge_replay
from reenact.errors import Miss
from reenact.replay.ledger import Ledger
from reenact.replay.policy import Policy
from reenact.replay.replayer import Replayer
from reenact.replay.stubs import Stubs
from reenact.values.call import Body, Call, CallKind, FunctionCall, HttpReply, Outcome, Returned, Unfinished
from reenact.values.judgement import ReplayResult
from reenact.values.run import Node, Run

KINDS = {"tool": CallKind.TOOL, "retriever": CallKind.RETRIEVER}


def make(made: Made, call: Sequence[Any], **place: Any) -> str:
    """Add a call to a run under construction, and give its id."""
    kind, *rest = call
    if kind == "llm":
        texts, says = rest
        wanted = [(says["name"], says["arguments"])] if isinstance(says, dict) else []
        return made.llm([user(text) for text in texts], None if wanted else says, tools=wanted, **place)
    name, arguments, *returned = rest
    return made.tool(name, arguments, returned[0] if returned else None, kind=KINDS[kind], **place)


def recorded(calls: Sequence[Sequence[Any]], **ending: Any) -> Run:
    """Make a recording of these calls."""
    made = Made(1)
    for call in calls:
        lane, done = _on(call)
        make(made, done, lane=lane)
    return made.run(**ending)


def _on(step: Any) -> tuple[str, Any]:
    return (step["on"], step["do"]) if isinstance(step, dict) and "on" in step else ("main", step)


def spelled(call: Sequence[Any]) -> tuple[Call, Outcome]:
    """Give what a call asks, and what a live world would answer."""
    made = Made(3)
    make(made, call)
    node = made.run().nodes[-1]
    return node.call, node.outcome


class _Plain:
    """Redacts nothing."""

    def attributes(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        return dict(attributes)

    def text(self, text: str) -> str:
        return text


@dataclass
class _Passage:
    """What the replayer tells a recorder, added to a run when the call is over."""

    made: Made
    call: Call
    attributes: dict[str, Any] = field(default_factory=dict)
    place: Place = field(default_factory=lambda: Place(1, 1))

    @contextmanager
    def crossing(self) -> Generator[None]:
        yield

    def annotate(self, attributes: Mapping[str, Any]) -> None:
        self.attributes |= attributes

    def replied(self, status: int, headers: tuple[tuple[str, str], ...], body: bytes) -> None:
        self.closed(Returned(payload=HttpReply(status=status, headers=headers, body=Body(body))))

    def closed(self, outcome: Outcome) -> None:
        lane = lanes.current().path
        self.made.add(self.call.kind, self.call.name, self.call.request, outcome, more=self.attributes, lane=lane)


@dataclass
class _Recorder:
    made: Made

    def open(self, call: Call) -> _Passage:
        return _Passage(self.made, call)


@dataclass(frozen=True)
class Replay:
    """What came of a replay."""

    run: Run
    result: ReplayResult


def replayed(
    run: Run, steps: Sequence[Any], policy: Policy, *, recorded_exit: int | None = 0, siblings: Sequence[Run] = ()
) -> Replay:
    """Replay a recording by a program that makes these calls."""
    calls = [node for node in run.nodes if node is not run.root]
    made, ledger = Made(2), Ledger()
    ledger.note("joined", pid=1)
    replayer = Replayer(Stubs([run, *siblings]), _Recorder(made), _Plain(), ledger, policy)  # type: ignore[arg-type]
    ending: dict[str, Any] = {"exit_code": 0}
    try:
        for step in steps:
            match step:
                case {"refused": what}:
                    ledger.note("refused", what=what, where="agent.py:7", event="open", hint="")
                    ending = {"exit_code": 1, "died": ("reenact.errors.SideEffectRefused", what)}
                    break
                case {"raises": [name, message]}:
                    ending = {"exit_code": 1, "died": (name, message)}
                case {"exits": code}:
                    ending = {"exit_code": code}
                case _:
                    lane, done = _on(step)
                    with lanes.on(lanes.Lane(lane)):
                        _ask(replayer, calls, done)
    except Miss as miss:
        ending = {"exit_code": 1, "died": ("reenact.errors.Miss", str(miss))}
    finally:
        replayer.close()
    own = made.run(**ending)
    told = judge_replay(run, siblings, own, ledger.entries, exit_code=ending["exit_code"], recorded_exit=recorded_exit)
    return Replay(own, told)


def _ask(replayer: Replayer, calls: Sequence[Node], step: Any) -> None:
    node = calls[step - 1] if isinstance(step, int) else None
    call, live = (node.call, node.outcome) if node is not None else spelled(step)
    if isinstance(call.request, FunctionCall) and node is None:
        call = Call(kind=call.kind, name=call.name, request=call.request)
    passage = replayer.open(call)
    answer = passage.answer
    passage.closed(answer if isinstance(answer, Returned) else live if answer is None else Unfinished())
