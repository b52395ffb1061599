"""What the record that stays for a call takes over from its twins, and what becomes of a span that is no call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from reenact.boundary.reading import answered, asked, reply_body, shape_of
from reenact.foreign.rebuilding import rebuilt
from reenact.graph.call_sighting import emitter_of
from reenact.values import tool_schema
from reenact.values.call import (
    Call,
    CallKind,
    FunctionCall,
    HttpReply,
    HttpRequest,
    Outcome,
    Returned,
    Streamed,
    Unfinished,
    Value,
)
from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_list
from reenact.values.message import Answered, Asked, ToolCall, Usage
from reenact.values.run import OURS, SESSION_NAMES, USER_NAMES, Node

MERGED: Final = "reenact.merged"
"""Attribute of a call: what it took over from a twin, each with the name of the span that said it."""
FRAME: Final = "reenact.frame"
"""Attribute of structure that its emitter writes as a call of a model: it only encloses such calls."""
_REBUILT: Final = "reenact.rebuilt"
_PARAMETERS: Final = frozenset(
    {
        *("temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "max_output_tokens", "stop"),
        *("stop_sequences", "seed", "n", "tool_choice", "parallel_tool_calls", "response_format", "reasoning_effort"),
        *("frequency_penalty", "presence_penalty", "logprobs", "top_logprobs", "reasoning", "thinking", "text"),
    },
)
"""What a provider takes; frameworks keep settings of their own beside it."""
_WHO: Final = (*SESSION_NAMES, *USER_NAMES)


def merged(node: Node, duplicates: Iterable[Node]) -> Node:
    """Give the record that stays with its twins listed, and what only they say. Our own evidence is left as it is."""
    twins = list(duplicates)
    listed = tuple(span for twin in twins for span in (twin.span, *twin.twins))
    node = replace(node, twins=(*node.twins, *listed))
    if OURS in node.span.attributes:
        return node
    for twin in sorted(twins, key=lambda twin: (twin.span.start_ns, twin.id)):
        node = _with(node, twin)
    return node


def _with(node: Node, twin: Node) -> Node:
    took: dict[str, Json] = {}
    attributes: dict[str, Json] = {name: twin.call.attributes[name] for name in _WHO if name in twin.call.attributes}
    attributes = {name: value for name, value in attributes.items() if name not in node.call.attributes}
    call, outcome = node.call, node.outcome
    if isinstance(call.request, HttpRequest) and isinstance(twin.call.request, HttpRequest):
        call, outcome, took = _model(node, twin)
    elif isinstance(twin.call.request, HttpRequest):  # a span that holds nothing, of which a log says all
        call = replace(twin.call, name=call.name, attributes={**twin.call.attributes, **call.attributes})
        marks = {name: twin.call.attributes[name] for name in (_REBUILT,) if name in twin.call.attributes}
        call, outcome = replace(call, attributes={**call.attributes, **marks}), twin.outcome
        took["call"] = _source(twin)
    elif isinstance(outcome, Unfinished) and isinstance(call.request, FunctionCall):
        outcome = twin.outcome
        if not isinstance(outcome, Unfinished):
            took["outcome"] = _source(twin)
    if took:
        merge_record = call.attributes.get(MERGED)
        attributes[MERGED] = {**(merge_record if isinstance(merge_record, dict) else {}), **took}
    if not attributes:
        return node
    return replace(node, call=replace(call, attributes={**call.attributes, **attributes}), outcome=outcome)


def _source(twin: Node) -> str:
    return f"{emitter_of(twin.span)}: {twin.span.name}"


def _model(node: Node, twin: Node) -> tuple[Call, Outcome, dict[str, Json]]:
    """Merge two records of one call of a model. A body that is a provider's own is left as it is."""
    marks = [str(mark) for mark in as_list(node.call.attributes.get(_REBUILT))]
    mine, theirs = asked(node) or Asked(), asked(twin) or Asked()
    own_reply, twin_reply = answered(node) or Answered(), answered(twin) or Answered()
    took: dict[str, Json] = {}
    question, answer = mine, own_reply
    if "request" in marks:
        question = _question(mine, theirs, took, _source(twin))
    if "reply" in marks or isinstance(node.outcome, Unfinished):
        answer = _answer(own_reply, twin_reply, took, _source(twin))
    shape = shape_of(node)
    if not took or shape is None:
        return node.call, node.outcome, {}
    api = shape.name.partition(".")[2]
    request, outcome, names = rebuilt(question, answer, system=shape.system, api=api, stream=question.stream or None)
    call = node.call
    if question is not mine:
        call = replace(call, request=request)
    if answer is own_reply or not isinstance(outcome, Returned):
        outcome = node.outcome
    elif "reply" not in marks:
        marks = [*marks, "reply"]
    all_marks: list[Json] = [*dict.fromkeys([*marks, *(name for name in names if name == "finish_reason")])]
    return replace(call, attributes={**call.attributes, _REBUILT: all_marks}), outcome, took


def _question(mine: Asked, theirs: Asked, took: dict[str, Json], source: str) -> Asked:
    """Take over tools and parameters that only the other kept; what both say stays."""
    changed = mine
    if not mine.tools and theirs.tools:
        changed = replace(changed, tools=tool_schema.tools([*theirs.tools]))
        took["tools"] = source
    more = {name: value for name, value in theirs.parameters.items() if name in _PARAMETERS - mine.parameters.keys()}
    if more:
        changed = replace(changed, parameters={**mine.parameters, **more})
        took["parameters"] = source
    if not mine.model and theirs.model:
        changed = replace(changed, model=theirs.model)
        took["model"] = source
    return changed


def _answer(own: Answered, twin: Answered, took: dict[str, Json], source: str) -> Answered:
    changed = own
    if not own.messages and twin.messages:
        changed = replace(changed, messages=twin.messages, finish_reasons=twin.finish_reasons)
        took["reply"] = source
    elif _without_ids(own) and not _without_ids(twin) and len(own.messages) == len(twin.messages):
        changed = replace(changed, messages=twin.messages)
        took["tool call ids"] = source
    if own.usage == Usage() and twin.usage != Usage():
        changed = replace(changed, usage=twin.usage)
        took["usage"] = source
    for field, mine, theirs in (("id", own.id, twin.id), ("model", own.model, twin.model)):
        if not mine and theirs:
            changed = replace(changed, id=theirs) if field == "id" else replace(changed, model=theirs)
            took[f"reply {field}"] = source
    return changed


def _without_ids(reply: Answered) -> bool:
    return any(isinstance(part, ToolCall) and not part.id for message in reply.messages for part in message.parts)


def as_frame(node: Node) -> Node:
    """Make structure of a span that encloses several calls of a model, as a framework opens around an agent's loop."""
    request = node.call.request
    if not isinstance(request, HttpRequest):
        attributes = {**node.call.attributes, FRAME: True}
        return replace(node, call=replace(node.call, kind=CallKind.CHAIN, attributes=attributes))
    outcome: Outcome = node.outcome
    if isinstance(outcome, Returned | Streamed) and not (
        isinstance(outcome, Returned) and not isinstance(outcome.payload, HttpReply)
    ):
        outcome = Returned(payload=Value(json=reply_body(node)))
    call = Call(
        kind=CallKind.CHAIN,
        name=node.call.name,
        request=FunctionCall(function="", arguments=parsed_or_none(request.body.data)),
        attributes={name: value for name, value in node.call.attributes.items() if name != _REBUILT} | {FRAME: True},
    )
    return replace(node, call=call, outcome=outcome)
