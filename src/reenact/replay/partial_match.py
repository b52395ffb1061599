"""Recorded calls of which a foreign trace kept only a part, found again by what it kept.

A live call is answered by the recorded one with which it agrees in everything that was kept. What was not kept is
listed. Where several agree, the one that hangs in the same place is taken, then the first that was asked for, and that
is said too: nothing is guessed in silence.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, TypeVar

from reenact.boundary.question import Question, shape_named
from reenact.boundary.reading import shape_of
from reenact.contracts.redactor import Redactor
from reenact.foreign.partial_question import (
    TOLD,
    Compared,
    PartialQuestion,
    Turn,
    compared,
    equal,
    live,
    losses,
    may_be,
    read_partial_question,
    rebuilt_parts,
    turns,
)
from reenact.values import typed
from reenact.values.call import (
    Body,
    Call,
    FunctionCall,
    HttpReply,
    HttpRequest,
    Outcome,
    Raised,
    Returned,
    Unfinished,
    Value,
)
from reenact.values.difference import ABSENT, FieldDifference, differences
from reenact.values.json import Json, compact, parse, parsed_or_none
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.message import Asked
from reenact.values.run import OURS, Node

_UNRESOLVED: Final = object()
_Pairs = TypeVar("_Pairs")


class PartialStub(Protocol):
    """What is needed of a stub."""

    @property
    def node(self) -> Node:
        """The recorded call."""
        ...

    @property
    def question(self) -> Question:
        """What it asks."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreed:
    """A recorded call that agrees with a live one."""

    node: Node
    ignored: Sequence[FieldDifference]
    """What was not compared."""
    among: int
    """How many recorded calls agree equally well and came out differently; 1 where there is no choice."""


class KeptCalls:
    """The calls of other emitters, by kind. Not thread-safe: its owner holds a lock."""

    def __init__(self, stubs: Iterable[PartialStub]) -> None:
        self._models: list[Node] = []
        self._functions: list[Node] = []
        for stub in stubs:
            node = stub.node
            if isinstance(node.call.request, FunctionCall):
                if OURS not in node.span.attributes and not node.call.is_structure:
                    self._functions.append(node)
            elif read_partial_question(node) is not None:
                self._models.append(node)
        self._ids = {node.id for node in (*self._models, *self._functions)}
        self._partial_questions: dict[str, PartialQuestion | None] = {}
        self._arguments: dict[str, Json] = {}

    def find(
        self, question: Question, parent: str | None, free: Callable[[Node], bool], redactor: Redactor | None
    ) -> Agreed | None:
        """Find the recorded call that stands for a live one among those that are `free`."""
        asked = live(question) if self._models and question.shape else None
        candidates = self._models if question.shape else self._functions
        fits: list[tuple[Node, Compared]] = []
        asked_turns = turns(asked.messages) if asked is not None else ()
        for node in candidates:
            if node.kind is question.kind and free(node) and self._may_be(node, asked_turns, question, redactor):
                comparison = self._diff(node, question, asked, redactor)
                if comparison is not None and not comparison.differs:
                    fits.append((node, comparison))
        if not fits:
            return None
        here = [each for each in fits if each[0].parent == parent] if parent is not None else []
        near = here or fits
        node, comparison = near[0]
        among = len({_came(each) for each, _ in near})
        return Agreed(node=node, ignored=comparison.ignored, among=len(near) if among > 1 else 1)

    def find_renamed(
        self,
        question: Question,
        free: Callable[[Node], bool],
        redactor: Redactor | None,
        fits: Callable[[Sequence[FieldDifference]], _Pairs | None],
    ) -> tuple[Node, _Pairs] | None:
        """Find the only recorded call that differs from a live one by what redacted values are called."""
        asked = live(question) if self._models and question.shape else None
        asked_turns = turns(asked.messages) if asked is not None else ()
        matches: list[tuple[Node, _Pairs]] = []
        for node in self._models if question.shape else self._functions:
            if node.kind is question.kind and free(node) and self._may_be(node, asked_turns, question, redactor):
                comparison = self._diff(node, question, asked, redactor)
                if comparison is not None and comparison.differs and (pairs := fits(comparison.differs)) is not None:
                    matches.append((node, pairs))
        return matches[0] if len(matches) == 1 else None

    def holds(self, node: Node) -> bool:
        """Tell whether a call is one of another emitter, which is found by what was kept and never by its key."""
        return node.id in self._ids

    def _may_be(self, node: Node, asked_turns: Sequence[Turn], question: Question, redactor: Redactor | None) -> bool:
        if isinstance(node.call.request, FunctionCall):
            return node.call.name == question.name
        recorded_call = self._recorded_call(node, redactor)
        return recorded_call is not None and may_be(recorded_call, asked_turns, question.shape)

    def _recorded_call(self, node: Node, redactor: Redactor | None) -> PartialQuestion | None:
        if node.id not in self._partial_questions:
            self._partial_questions[node.id] = read_partial_question(node, redactor)
        return self._partial_questions[node.id]

    def differences(
        self, node: Node, question: Question, redactor: Redactor | None = None
    ) -> list[FieldDifference] | None:
        """List in what a live call differs from a recorded one of another emitter; None where ours is asked about."""
        if not self.holds(node):
            return None
        comparison = self._diff(node, question, live(question) if question.shape else None, redactor)
        return None if comparison is None else comparison.differs

    def _diff(self, node: Node, question: Question, asked: Asked | None, redactor: Redactor | None) -> Compared | None:
        if isinstance(node.call.request, FunctionCall):
            return self._held_function(node, question, redactor)
        recorded_call = self._recorded_call(node, redactor)
        return None if recorded_call is None or asked is None else compared(recorded_call, asked, question.shape)

    def _held_function(self, node: Node, question: Question, redactor: Redactor | None) -> Compared:
        if node.id not in self._arguments:
            request = node.call.request
            arguments = request.arguments if isinstance(request, FunctionCall) else None
            self._arguments[node.id] = parse(redactor.text(compact(arguments))) if redactor is not None else arguments
        comparison = Compared()
        if node.call.name != question.name:
            comparison.differs.append(FieldDifference(path="name", a=node.call.name, b=question.name))
            return comparison
        _of_arguments(node, self._arguments[node.id], question, comparison)
        return comparison


def failed_for_good(node: Node) -> bool:
    """Tell whether a foreign span stands for all the tries of an SDK that came to nothing."""
    if OURS in node.span.attributes:
        return False
    return isinstance(node.outcome, Raised) or "failure" in rebuilt_parts(node)


def as_told(node: Node, call: Call | None = None) -> Outcome:
    """Give what a call came to; of another emitter's tool with the text that a model was told of its result.

    A reply that was made of its meaning alone is spelled as the stream that the live `call` asks for.
    """
    match node.outcome:
        case Returned(payload=Value(json=json)) if OURS not in node.span.attributes and isinstance(
            node.call.request, FunctionCall
        ):
            output = json
            if not isinstance(json, str):  # what was recovered as JSON the emitter itself told from text
                is_recovered = "reenact.recovered" in node.span.attributes
                output = None if is_recovered else node.call.attributes.get(TOLD) or _attribute_text(node, json)
            return Returned(payload=Value(json=json, text=output)) if isinstance(output, str) else node.outcome
        case Returned(payload=HttpReply(body=body) as reply) if "reply" in rebuilt_parts(node):
            full_reply = replace(reply, body=_whole(node, body))
            return Returned(payload=full_reply if call is None else _streamed(call, _respelled(node, call, full_reply)))
        case outcome:
            return outcome


def _respelled(node: Node, call: Call, reply: HttpReply) -> HttpReply:
    """Spell a reply in the words of the API that is asked, where nothing said which one it was."""
    request = call.request
    live = shape_named(request.shape) if isinstance(request, HttpRequest) else None
    recorded_shape = shape_of(node)
    if live is None or recorded_shape is None or live.write_reply is None or "shape" not in rebuilt_parts(node):
        return reply
    if (live.api or live.name) == (recorded_shape.api or recorded_shape.name) or reply.status >= 300:
        return reply
    answered = recorded_shape.read_reply(parsed_or_none(reply.body.data))
    if live.wording is not None and recorded_shape.wording is not None:
        ends = dict(zip(recorded_shape.wording.finishes, live.wording.finishes, strict=True))
        answered = replace(answered, finish_reasons=tuple(ends.get(each, each) for each in answered.finish_reasons))
    return replace(reply, body=Body(compact(live.write_reply(answered)).encode("utf-8", "surrogatepass")))


def _streamed(call: Call, reply: HttpReply) -> HttpReply:
    request = call.request
    shape = shape_named(request.shape) if isinstance(request, HttpRequest) else None
    if shape is None or shape.unfold is None or not isinstance(request, HttpRequest) or reply.status >= 300:
        return reply
    reply_json = parsed_or_none(reply.body.data)
    if not isinstance(reply_json, dict) or not shape.is_stream(shape.decode_request(request.body.data)):
        return reply
    return replace(reply, headers=(("content-type", shape.framing.media_type),), body=Body(shape.unfold(reply_json)))


def _whole(node: Node, body: Body) -> Body:
    """Give the body of a rebuilt reply as its SDK takes it."""
    from reenact.boundary.reply_fields import completed

    request = node.call.request
    if not isinstance(request, HttpRequest) or not isinstance(reply := parsed_or_none(body.data), dict):
        return body
    model = as_text(as_object(parsed_or_none(request.body.data)).get("model"))
    whole = completed(request.shape, reply, seed=node.id, at_s=node.span.start_ns // 10**9, model=model)
    return Body(compact(whole).encode("utf-8", "surrogatepass"))


def _attribute_text(node: Node, json: Json) -> str | None:
    """Find the text of a span's attribute that says a result."""
    for value in node.span.attributes.values():
        if isinstance(value, str) and value[:1] in ("{", "[") and equal(parsed_or_none(value), json):
            return value
    return None


def _came(node: Node) -> object:
    match node.outcome:
        case Returned(payload=HttpReply(status=status, body=body)):
            return status, body.data
        case Unfinished():
            return node.id
        case outcome:
            return repr(outcome)


def _of_arguments(node: Node, recorded: Json, question: Question, diff: Compared) -> None:
    """Compare a function's arguments. Emitters keep what the model gave; ours have the defaults as well."""
    now = as_object(question.asked).get("arguments")
    if _same(recorded, now):
        return
    inputs = as_object(now)
    unkept = recorded is None or (recorded == {} and any(loss.get("field") == "arguments" for loss in losses(node)))
    if unkept:
        diff.ignored.append(FieldDifference(path="arguments", a=ABSENT, b=now))
        return
    recorded_arguments = _by_name(recorded, inputs)
    if recorded_arguments is None:
        diff.differs += differences(recorded, now, "arguments")
        return
    for name in [*recorded_arguments, *(name for name in inputs if name not in recorded_arguments)]:
        path = f"arguments.{name}"
        if name not in inputs:
            diff.differs.append(FieldDifference(path=path, a=recorded_arguments[name], b=ABSENT))
        elif name not in recorded_arguments:
            default = _default(as_text(question.noise.get("function")), name)
            side = diff.ignored if default is not _UNRESOLVED and _same(default, inputs[name]) else diff.differs
            side.append(FieldDifference(path=path, a=ABSENT, b=inputs[name]))
        elif not _same(recorded_arguments[name], inputs[name]):
            diff.differs += differences(recorded_arguments[name], inputs[name], path)


def _by_name(recorded: Json, slots: dict[str, Json]) -> dict[str, Json] | None:
    """Read recorded arguments by the live function's parameters; None where they say nothing by name."""
    json = recorded
    if isinstance(json, str) and isinstance(read := parsed_or_none(json), dict):
        json = read
    if isinstance(json, dict):
        positional = json.get("args")
        if json.keys() <= {"args", "kwargs"} and isinstance(positional, list) and not slots.keys() & {"args", "kwargs"}:
            by_parameter = dict(zip(slots, positional, strict=False)) if len(positional) <= len(slots) else None
            return None if by_parameter is None else {**by_parameter, **as_object(json.get("kwargs"))}
        if len(slots) == 1 and not json.keys() & slots.keys():
            name, value = next(iter(slots.items()))
            if _same(json, value) or (isinstance(value, str) and _same(json, parsed_or_none(value))):
                return {name: value}  # the function takes them all as one
            if len(json) == 1:
                return {name: next(iter(json.values()))}  # the emitter calls its only argument by a name of its own
        return json
    if isinstance(json, list):
        return dict(zip(slots, as_list(json), strict=True)) if len(json) == len(slots) else None
    return {next(iter(slots)): json} if len(slots) == 1 else None


def _same(a: Json, b: Json) -> bool:
    """Tell whether two arguments say the same: numbers as JSON has them, or as text that an emitter made of them."""
    if equal(a, b):
        return True
    if isinstance(a, str) and not isinstance(b, str):
        return (read := parsed_or_none(a)) is not None and equal(read, b)
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return all(_same(value, b[key]) for key, value in a.items())
    return False


def _default(function: str, parameter: str) -> Any:
    """Give the default of a parameter of a function that is loaded, as typed JSON."""
    module, _, qualname = function.partition(":")
    target: Any = sys.modules.get(module)
    for name in qualname.split("."):
        target = getattr(target, name, None)
    try:
        value = inspect.signature(target).parameters[parameter].default
    except (TypeError, ValueError, KeyError):
        return _UNRESOLVED
    return _UNRESOLVED if value is inspect.Parameter.empty else typed.encode(value)
