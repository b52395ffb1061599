"""What a tool was asked and what it said, told by the model calls around it where no span of the tool does.

A model's reply holds the call that it asked for, and a later request of the conversation what came back. Where another
emitter left the tool's own span out, both become a call of their own, marked `reenact.recovered`; where its span is
there without arguments or result, it gets them. Nothing is made of a call whose result no request holds.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from reenact.boundary.reading import answered
from reenact.foreign.partial_question import TOLD, TOOL_ENDS
from reenact.values import typed
from reenact.values.call import (
    Call,
    CallKind,
    ExceptionRecord,
    FunctionCall,
    Outcome,
    Raised,
    Returned,
    Unfinished,
    Value,
)
from reenact.values.evidence import outcome_to_attributes, request_to_attributes
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lenient import as_count, as_object
from reenact.values.message import Message, Text, ToolCall
from reenact.values.run import CARRIER, OURS, Node
from reenact.values.span import STATUS_ERROR, STATUS_UNSET, Attribute, SpanRecord

if TYPE_CHECKING:
    from reenact.graph.tool_answers import ToolAnswer

RECOVERED: Final = "reenact.recovered"
"""On a call: JSON that says what of it (`call`, `arguments`, `result`) was told by which model calls, by span id."""
_ANSWERS: Final = ("response", "result", "output", "content")
"""Where emitters keep what a tool answered."""
_APART_NS: Final = 1_000
"""Carriers that keep microseconds keep the order of calls that are so far apart."""
_DEEPEST: Final = 12


def recovered(nodes: Sequence[Node]) -> tuple[list[Node], int]:
    """Complete the tool calls of other emitters. Nodes come tied (`graph.join`) and in causal order, and go so.

    Gives them numbered anew, and how many calls are new.
    """
    models = [node for node in nodes if node.kind is CallKind.LLM]
    if not any(_is_foreign(node) for node in models):
        return [*nodes], 0
    from reenact.graph.tool_answers import hear

    asked_calls = [each for node in models if _is_foreign(node) for each in _asked_for(node)]
    if not asked_calls:
        return [*nodes], 0
    from reenact.graph.dropped_tool_calls import put_back

    whole = put_back(models)
    nodes = [whole.get(node.id, node) for node in nodes]
    hear(asked_calls, [whole.get(node.id, node) for node in models])
    tied = {node.id: each for node in nodes if (each := _of(node, asked_calls)) is not None}
    loose = _loose(nodes, tied, asked_calls)
    tied |= {node.id: each for node, each in loose}
    left = [each for each in asked_calls if each not in tied.values() and each.result is not None]
    completed_nodes = [_completed(node, tied[node.id]) if node.id in tied else node for node in nodes]
    new: dict[str, list[Node]] = defaultdict(list)
    for each in left:
        beside = new[each.node.id]
        beside.append(_tool_node(each, len(beside)))
    placed = [other for node in completed_nodes for other in (node, *new.get(node.id, ()))]
    return [replace(node, number=number) for number, node in enumerate(placed, 1)], len(left)


def _is_foreign(node: Node) -> bool:
    return OURS not in node.span.attributes or CARRIER in node.span.attributes


def _asked_for(node: Node) -> Iterator[ToolAnswer]:
    from reenact.graph.tool_answers import ToolAnswer

    reply = answered(node)
    for message in reply.messages if reply is not None else ():
        yield from (ToolAnswer(node, part) for part in message.parts if isinstance(part, ToolCall))


def _of(node: Node, asked_calls: Iterable[ToolAnswer]) -> ToolAnswer | None:
    """Find what a tied tool call was asked by."""
    if node.kind is not CallKind.TOOL or node.caused_by is None:
        return None
    asked_by = [each for each in asked_calls if each.node.id == node.caused_by]
    if node.tool_call_id:
        return next((each for each in asked_by if each.call.id == node.tool_call_id), None)
    return next((each for each in asked_by if each.call.name == node.call.name), None)


def _loose(
    nodes: Sequence[Node], tied: dict[str, ToolAnswer], asked_calls: Sequence[ToolAnswer]
) -> list[tuple[Node, ToolAnswer]]:
    """Pair what is left by the tool's name: a span without arguments is still the span of a call."""
    free = [each for each in asked_calls if each not in tied.values()]
    pairs: list[tuple[Node, ToolAnswer]] = []
    for node in nodes:
        if node.kind is not CallKind.TOOL or node.id in tied:
            continue
        match = next((e for e in free if e.call.name == node.call.name and e.node.number < node.number), None)
        if match is not None:
            free.remove(match)
            pairs.append((node, match))
    return pairs


def _completed(node: Node, each: ToolAnswer) -> Node:
    """Give a tool's call the arguments and the result that its own span does not hold."""
    request, filled, marks = node.call.request, node, list[Json]()
    if OURS in node.span.attributes or not isinstance(request, FunctionCall):
        return node
    if request.arguments in (None, {}, "", []) and each.call.arguments.strip() not in ("", "{}", "null"):
        call = replace(node.call, request=replace(request, arguments=_arguments(each.call)))
        filled, marks = replace(filled, call=call), [*marks, "arguments"]
    if isinstance(node.outcome, Unfinished) and each.result is not None:
        filled, marks = replace(filled, outcome=_outcome(each)), [*marks, "result"]
    if each.result is not None and (text := _result_text(filled, each.result)):
        filled = replace(filled, call=replace(filled.call, attributes={**filled.call.attributes, TOLD: text}))
    if not marks:
        return replace(filled, caused_by=each.node.id, tool_call_id=node.tool_call_id or each.call.id or None)
    attributes: dict[str, Json] = {**filled.call.attributes, RECOVERED: {"parts": marks, **_sources(each)}}
    return replace(
        filled,
        call=replace(filled.call, attributes=attributes),
        caused_by=each.node.id,
        tool_call_id=node.tool_call_id or each.call.id or None,
    )


def _result_text(node: Node, message: Message) -> str:
    """Give the text that a model was told of a result, where that is JSON of what the tool's own span says."""
    match node.outcome:
        case Returned(payload=Value(json=dict() | list() as json)):
            text = _text(message)
            return text if parsed_or_none(text) == json else ""
        case _:
            return ""


def _sources(each: ToolAnswer) -> dict[str, Json]:
    return {"asked_by": each.node.id, "told_by": each.by.id if each.by is not None else None}


def _tool_node(each: ToolAnswer, place: int) -> Node:
    """Make a call of what the conversation tells. Its span says so and is read back like any other.

    Those of one reply begin a microsecond after each other, so that they stand in the reply's order wherever they go.
    """
    span_id = _id(each, place)
    call_id = each.call.id or (each.result.tool_call_id if each.result is not None else None) or ""
    request = FunctionCall(function="", arguments=_arguments(each.call))
    outcome = _outcome(each)
    asking = each.node.span
    mark: dict[str, Json] = {"parts": ["call", "arguments", "result"], **_sources(each)}
    fields: dict[str, Attribute] = {
        "openinference.span.kind": CallKind.TOOL.value,
        "tool.name": each.call.name,
        **({"gen_ai.tool.call.id": call_id} if call_id else {}),
        **request_to_attributes(request),
        **outcome_to_attributes(request, outcome),
        RECOVERED: compact(mark),
    }
    fields.pop(OURS)
    if CARRIER in asking.attributes and isinstance(order := asking.attributes.get("reenact.order.start"), int):
        fields["reenact.order.start"] = order + place + 1  # a carrier that knows no times leaves room between its calls
    start_ns, end_ns = _times(each, place)
    span = SpanRecord(
        trace_id=asking.trace_id,
        span_id=span_id,
        parent_id=asking.parent_id if each.node.parent is not None else None,
        name=each.call.name,
        start_ns=start_ns,
        end_ns=end_ns,
        status=STATUS_ERROR if isinstance(outcome, Raised) else STATUS_UNSET,
        status_message=outcome.exception.message if isinstance(outcome, Raised) else "",
        attributes=fields,
        resource=asking.resource,
    )
    call = Call(kind=CallKind.TOOL, name=each.call.name, request=request, attributes={RECOVERED: mark})
    return Node(
        id=span_id,
        trace_id=asking.trace_id,
        parent=each.node.parent,
        number=0,
        call=call,
        outcome=outcome,
        span=span,
        lane=each.node.lane,
        caused_by=each.node.id,
        tool_call_id=call_id or None,
    )


def _outcome(each: ToolAnswer) -> Outcome:
    """Give what a tool came to: its result, or where it is said to have failed an error with the result's text."""
    if each.result is not None and (each.result.is_error or _end(each).get("is_error") is True):
        return Raised(exception=ExceptionRecord(module="builtins", qualname="Exception", message=_text(each.result)))
    return Returned(payload=Value(json=_result(each)))


def _times(each: ToolAnswer, place: int) -> tuple[int, int]:
    """Tell when a tool began and was done: as its carrier has it, else between the model's reply and its next request.

    What a carrier does not say is 0.
    """
    asking, end = each.node.span, _end(each)
    asked_ns, told_ns = max(asking.end_ns, asking.start_ns), each.by.span.start_ns if each.by is not None else 0
    start_ns = as_count(end.get("start_ns")) or (asked_ns + (place + 1) * _APART_NS if asked_ns else 0)
    end_ns = as_count(end.get("end_ns")) or told_ns
    if CARRIER in asking.attributes:
        return start_ns, end_ns if start_ns and end_ns > start_ns else 0
    return start_ns, max(start_ns, end_ns)


def _end(each: ToolAnswer) -> dict[str, Json]:
    ends = each.node.span.attributes.get(TOOL_ENDS)
    return as_object(as_object(parsed_or_none(ends) if isinstance(ends, str) else None).get(each.call.id))


def _id(each: ToolAnswer, place: int) -> str:
    text = f"{each.node.trace_id}/{each.node.id}/{place}/{each.call.id}"
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _arguments(call: ToolCall) -> Json:
    read = parsed_or_none(call.arguments or "{}")
    return typed.encode(call.arguments if read is None else read)


def _text(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def _result(each: ToolAnswer) -> Json:
    """Give the text of a tool's message as it stands; JSON where the emitter wrote it down as JSON and not as text."""
    text = _text(each.result) if each.result is not None else ""
    read = parsed_or_none(text) if text[:1] in ("{", "[") else None
    if read is None or each.by is None or CARRIER in each.by.span.attributes:
        return typed.encode(text)
    spelled = [value for value in each.by.span.attributes.values() if isinstance(value, str)]
    spelled += [value for event in each.by.span.events for value in event.attributes.values() if isinstance(value, str)]
    kinds = [kind for value in spelled if (kind := _kept_as(parsed_or_none(value), text, 0)) is not None]
    return typed.encode(read if kinds and all(kind is dict for kind in kinds) else text)


def _kept_as(value: Json, text: str, depth: int) -> type | None:
    """Tell whether an emitter wrote a tool's answer down as text or as JSON; None where `value` does not hold it."""
    inner = [*value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    if isinstance(value, dict):
        for name in _ANSWERS:
            if (answer := value.get(name)) == text:
                return str
            if isinstance(answer, dict | list) and compact(answer) == text:
                return dict
    kinds = (_kept_as(each, text, depth + 1) for each in inner) if depth < _DEEPEST else ()
    return next((each for each in kinds if each is not None), None)
