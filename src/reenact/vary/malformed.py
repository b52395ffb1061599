"""A model's reply is not what its API promises: arguments that are no JSON, a tool that nobody offered, no answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import TypeAlias

from reenact.boundary.reading import reply_body, shape_of
from reenact.contracts.perturbation import Perturbation, Subject
from reenact.contracts.shape import Shape, Wording
from reenact.values.answer import with_body
from reenact.values.call import Outcome, Streamed
from reenact.values.difference import ABSENT, Absent
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.message import Said, ToolCall
from reenact.values.variation import Group, Variation


def _vary(subject: Subject, chance: Random) -> Iterator[Variation]:
    shape, body = shape_of(subject.node), reply_body(subject.node)
    if shape is None or shape.wording is None or not isinstance(body, dict) or _refused(subject.node.outcome):
        return
    turn = shape.wording.read(body)
    candidates = [*_calls(turn), *_texts(turn)]
    chance.shuffle(candidates)
    for other, path, new, words in candidates:
        outcome = _reworded(shape, shape.wording, body, subject.node.outcome, other)
        if outcome is not None:
            variation = subject.answering("malformed", outcome, words, new=new)
            yield replace(variation, path=path, before=_before(turn, path), marks=())


def _before(turn: Said, path: str) -> Json | Absent:
    if not path or path == "text":
        return turn.text if path else ABSENT
    call = turn.calls[int(path.partition("[")[2].partition("]")[0])]
    return call.name if path.endswith(".name") else call.arguments


def _refused(outcome: Outcome) -> bool:
    return getattr(getattr(outcome, "payload", outcome), "status", 200) >= 300


_Found: TypeAlias = "tuple[Said, str, Json | Absent, str]"


def _calls(turn: Said) -> Iterator[_Found]:
    """Tell what can be wrong with a tool call: models do each of these now and then."""
    for at, call in enumerate(turn.calls):
        path = f"tool_calls[{at}]"
        cut = call.arguments[: len(call.arguments) // 2]
        yield _with(turn, at, replace(call, arguments=cut)), f"{path}.arguments", cut, "arguments end in the middle"
        other = f"{call.name}_v2"
        yield _with(turn, at, replace(call, name=other)), f"{path}.name", other, "a tool that nobody offered"
        arguments = parsed_or_none(call.arguments)
        for name in arguments if isinstance(arguments, dict) else ():
            left: Json = {key: value for key, value in arguments.items() if key != name}  # type: ignore[union-attr]  # told to be an object above
            words = f"{call.name} is called without {name}"
            yield _with(turn, at, replace(call, arguments=compact(left))), f"{path}.arguments", compact(left), words
    if turn.calls:
        twice = (*turn.calls, replace(turn.calls[-1], id=f"{turn.calls[-1].id}x"))
        yield replace(turn, calls=twice), "", ABSENT, f"{turn.calls[-1].name} is called twice at once"


def _with(turn: Said, at: int, call: ToolCall) -> Said:
    return replace(turn, calls=(*turn.calls[:at], call, *turn.calls[at + 1 :]))


def _texts(turn: Said) -> Iterator[_Found]:
    if turn.text:
        yield replace(turn, text=""), "text", "", "the text is empty"
    if turn.calls or turn.text:
        yield replace(turn, text=None, calls=()), "", ABSENT, "neither text nor tool calls"


def _reworded(shape: Shape, wording: Wording, body: Json, outcome: Outcome, turn: Said) -> Outcome | None:
    new = wording.write(body, turn)
    if not isinstance(outcome, Streamed):
        return with_body(outcome, compact(new).encode())
    return with_body(outcome, shape.unfold(new)) if shape.unfold is not None else None


MALFORMED = Perturbation(
    name="malformed",
    groups=frozenset({Group.MODELS}),
    does="a model's reply is not what its API promises",
    of_call=_vary,
)
