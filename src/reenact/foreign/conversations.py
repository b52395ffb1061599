"""Lists of messages as runs: what a chat log, a fine-tuning file or an agent's trajectory lets one say of its calls.

Such a file holds what was said and hardly ever how it was asked. Each turn of the model is the answer of a call, all
that stands before it is what the call asked; the provider's request and reply are built again of them
(`foreign.rebuilding`) and marked so, and what the file does not say (parameters, tool schemas, the model) is named as
lost. A tool's answer that no later call repeats becomes a call of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from reenact.boundary.question import shape_named
from reenact.foreign.exchanges import hex_of, lacking, root_span
from reenact.foreign.foreign_call import LOST, REBUILT, Loss
from reenact.foreign.rebuilding import rebuilt
from reenact.values.call import CallKind, ExceptionRecord, FunctionCall, HttpRequest, Returned, Value
from reenact.values.evidence import outcome_to_attributes, request_to_attributes
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.message import Answered, Asked, Message, Text, ToolCall, Usage
from reenact.values.run import CARRIER, OURS
from reenact.values.span import (
    KIND_CLIENT,
    KIND_INTERNAL,
    STATUS_ERROR,
    STATUS_UNSET,
    Attribute,
    Scope,
    SpanRecord,
)

_T = TypeVar("_T")
_KIND: Final = "openinference.span.kind"
_MODELS: Final = "assistant"
_MOST_CHARACTERS: Final = 64 << 20
"""So much text of requests a run may hold: each call repeats all that was said before it."""
_KEPT_MESSAGES: Final = 20
_RECORD: Final = "record the program: `reenact run -- …`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message of a conversation, with what a file says beside it."""

    message: Message
    at_ns: int = 0
    """Nanoseconds since the epoch; 0 where the file does not say."""
    id: str = ""
    """Of the reply, by the file's own word; pieces of one reply share it."""
    reply: str = ""
    """What tells pieces of one reply from those of the next, where the file has no id."""
    model: str = ""
    usage: Usage | None = None
    finish: str = ""
    error: str = ""
    """Of a tool's answer: what the file says went wrong with the call."""
    is_greeting: bool = False
    """No model said it, though it stands in the conversation as if one had: a greeting of the program's own."""

    @property
    def replies(self) -> bool:
        """A model said it."""
        return self.message.role == _MODELS and not self.is_greeting


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One run, as a list of messages tells of it."""

    seed: str
    """The text whose digest is the trace id."""
    name: str
    turns: Sequence[Turn]
    model: str = ""
    system: str = "openai"
    """The provider, in any emitter's word."""
    api: str = ""
    tools: tuple[Json, ...] = ()
    parameters: Mapping[str, Json] = field(default_factory=dict[str, Json])
    attributes: Mapping[str, Attribute] = field(default_factory=dict[str, Attribute])
    """Facts of the whole, for the root."""
    lost: tuple[Loss, ...] = ()
    asks_more: bool = False
    """The last messages are a question that the file holds no answer to, unless they are answers of tools."""
    error: str = ""
    """What went wrong with the whole, by the file's own word."""
    is_error_of_call: bool = False
    """It went wrong with the last call of the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A call that a file holds by itself, with all that it asked."""

    asked: Asked
    answered: Answered | None
    turn: Turn
    """The reply, with its time; of a call without one the last message."""


def run_of(chat: Conversation, carrier: str, questions: Sequence[Question] | None = None) -> Iterator[SpanRecord]:
    """Make the spans of a conversation: one for each call, and the root at the end.

    With `questions` these are the calls, and none is told from the turns.
    """
    trace_id, root_id = hex_of(chat.seed, 16), hex_of(f"{chat.seed}:root", 8)
    number = 0
    characters = 0
    calls = _calls(chat) if questions is None else ((each.asked, each.answered, [each.turn]) for each in questions)
    for (asked, answered, turns), is_last in _to_the_last(calls):
        number += 1
        error = chat.error if is_last and chat.is_error_of_call else ""
        lost = [*chat.lost, *_lost(chat, asked)]
        characters += sum(_size(message) for message in asked.messages)
        if characters > _MOST_CHARACTERS:
            asked = replace(asked, messages=asked.messages[-_KEPT_MESSAGES:])  # noqa: PLW2901 - the end of it
            lost.append(lacking("request", f"all but the last {_KEPT_MESSAGES} messages, the run being very long"))
        yield _model_span(chat, asked, answered, turns, (trace_id, root_id, number, carrier), lost, error)
        for at, (call, turn) in enumerate(_failures(chat.turns, turns), 1):
            yield _tool_span(call, turn, (trace_id, root_id, number, carrier), at)
    for call, turn in _unrepeated(chat.turns):
        number += 1
        if not (turn.error and turn.message.tool_call_id):
            yield _tool_span(call, turn, (trace_id, root_id, number, carrier))
    if number:
        times = [turn.at_ns for turn in chat.turns if turn.at_ns]
        root = root_span(
            trace_id=trace_id,
            span_id=root_id,
            name=chat.name,
            carrier=carrier,
            times=(min(times, default=0), max(times, default=0)),
            attributes=chat.attributes,
        )
        yield replace(root, status=STATUS_ERROR, status_message=chat.error) if chat.error else root


def _to_the_last(items: Iterable[_T]) -> Iterator[tuple[_T, bool]]:
    """Give each item, and whether it is the last."""
    held: list[_T] = []
    for item in items:
        if held:
            yield held.pop(), False
        held.append(item)
    for item in held:
        yield item, True


def _calls(chat: Conversation) -> Iterator[tuple[Asked, Answered | None, list[Turn]]]:
    """Cut a conversation into calls: turns of the model in a row are one reply, unless the file says otherwise."""
    before: list[Message] = []
    reply: list[Turn] = []
    for turn in [*chat.turns, None]:
        if turn is not None and turn.replies and (not reply or _is_one(reply[-1], turn)):
            reply.append(turn)
            continue
        if reply:
            answered = _answered(chat, reply)
            yield _asked(chat, before, reply[0].model), answered, reply
            before += answered.messages  # its pieces are one message when they are sent back
            reply = []
        if turn is None:
            break
        if turn.replies:
            reply = [turn]
        else:
            before.append(turn.message)
    if chat.asks_more and before and before[-1].role != _MODELS and not _is_told(chat):
        yield _asked(chat, before, ""), None, []


def _is_told(chat: Conversation) -> bool:
    """Tell a conversation that ends with answers of tools: nobody says that a model was asked again."""
    return chat.turns[-1].message.role == "tool" and any(_unrepeated(chat.turns))


def _is_one(last: Turn, turn: Turn) -> bool:
    return (last.id, last.reply) == (turn.id, turn.reply)


def _asked(chat: Conversation, messages: Sequence[Message], model: str) -> Asked:
    model_name = model or chat.model
    parameters = {**({"model": model_name} if model_name else {}), **chat.parameters}
    return Asked(model=model_name or None, messages=tuple(messages), tools=chat.tools, parameters=parameters)


def _answered(chat: Conversation, reply: Sequence[Turn]) -> Answered:
    parts = tuple(part for turn in reply for part in turn.message.parts)
    usage = next((turn.usage for turn in reversed(reply) if turn.usage is not None), Usage())
    finish = next((turn.finish for turn in reversed(reply) if turn.finish), "")
    return Answered(
        model=reply[0].model or chat.model or None,
        id=reply[0].id or None,
        messages=(Message(role=_MODELS, parts=parts, name=reply[0].message.name),),
        finish_reasons=(finish,) if finish else (),
        usage=usage,
    )


def _lost(chat: Conversation, asked: Asked) -> Iterator[Loss]:
    if not asked.model:
        yield lacking("model", "the name of the model", _RECORD)
    if not chat.tools and any(isinstance(part, ToolCall) for turn in chat.turns for part in turn.message.parts):
        yield lacking("tools", "the tool schemas: tools are called, and none is described", _RECORD)
    if any(isinstance(part, ToolCall) and not part.id for turn in chat.turns for part in turn.message.parts):
        yield lacking("tool call ids", "the ids by which calls of tools and their answers belong together", _RECORD)
    if not chat.parameters:
        yield lacking("parameters", "every parameter of the request (temperature, tool_choice, …)", _RECORD)


def _size(message: Message) -> int:
    return sum(len(part.text) for part in message.parts if isinstance(part, Text)) + 100


def _model_span(
    chat: Conversation,
    asked: Asked,
    answered: Answered | None,
    turns: Sequence[Turn],
    place: tuple[str, str, int, str],
    lost: Sequence[Loss],
    error: str = "",
) -> SpanRecord:
    failed = exception_of_text(error) if error and answered is None else None
    request, outcome, marks = rebuilt(asked, answered, system=chat.system, api=chat.api, failed=failed)
    trace_id, root_id, number, carrier = place
    shape = shape_named(request.shape) if isinstance(request, HttpRequest) else None
    attributes: dict[str, Attribute] = {**request_to_attributes(request), **outcome_to_attributes(request, outcome)}
    attributes.pop(OURS, None)
    attributes |= {
        _KIND: CallKind.LLM.value,
        CARRIER: carrier,
        REBUILT: [*marks],
        "reenact.order.start": number << 20,
        "gen_ai.provider.name": chat.system,
    }
    if lost:
        attributes[LOST] = compact([each.json for each in lost])
    at = turns[-1].at_ns if turns else 0
    return SpanRecord(
        trace_id=trace_id,
        span_id=hex_of(f"{trace_id}:{number}", 8),
        parent_id=root_id,
        name=shape.span_name if shape is not None else "chat",
        start_ns=turns[0].at_ns if turns else 0,
        end_ns=at if at and turns[0].at_ns != at else 0,
        kind=KIND_CLIENT,
        status=STATUS_ERROR if error else STATUS_UNSET,
        status_message=error,
        attributes=attributes,
        scope=Scope(name=carrier),
    )


def exception_of_text(text: str) -> ExceptionRecord:
    """Read what a file says of an error, `TimeoutError: no answer`, as the exception that it tells of."""
    kind, colon, message = text.partition(": ")
    is_class = bool(colon) and kind.replace(".", "").isidentifier()
    module, _, name = kind.rpartition(".")
    if not is_class:
        return ExceptionRecord(module="builtins", qualname="Exception", message=text)
    return ExceptionRecord(module=module or "builtins", qualname=name, message=message)


# ------------------------------------------------------------------------------------- tools whose answer ends a run


def _failures(turns: Sequence[Turn], reply: Sequence[Turn]) -> Iterator[tuple[ToolCall, Turn]]:
    """Find the calls of tools that a reply asked for and that failed: no later request says that they did."""
    failed = {turn.message.tool_call_id: turn for turn in turns if turn.error and turn.message.tool_call_id}
    for turn in reply if failed else ():
        for part in turn.message.parts:
            if isinstance(part, ToolCall) and (answer := failed.get(part.id)) is not None:
                yield part, answer


def _unrepeated(turns: Sequence[Turn]) -> Iterator[tuple[ToolCall, Turn]]:
    """Find the answers of tools after the model's last turn, with the calls that they answer."""
    last = max((at for at, turn in enumerate(turns) if turn.message.role == _MODELS), default=None)
    if last is None:
        return
    asked = [part for turn in turns[: last + 1] for part in turn.message.parts if isinstance(part, ToolCall)]
    calls = {part.id: part for part in asked if part.id}
    nameless = [part for part in turns[last].message.parts if isinstance(part, ToolCall) and not part.id]
    for turn in turns[last + 1 :]:
        if turn.message.role != "tool":
            continue
        call_id = turn.message.tool_call_id or ""
        call = calls.get(call_id) if call_id else nameless.pop(0) if nameless else None
        if call is not None:
            yield call, turn


def _tool_span(call: ToolCall, turn: Turn, place: tuple[str, str, int, str], after: int = 0) -> SpanRecord:
    """Make the span of a tool's call; `after` is its place behind the model's call of that number."""
    trace_id, root_id, number, carrier = place
    arguments = parsed_or_none(call.arguments)
    request = FunctionCall(function="", arguments=call.arguments if arguments is None else arguments)
    text = "".join(part.text for part in turn.message.parts if isinstance(part, Text))
    attributes: dict[str, Attribute] = {
        **request_to_attributes(request),
        **outcome_to_attributes(request, Returned(payload=Value(json=text))),
    }
    attributes.pop(OURS, None)
    attributes |= {
        _KIND: CallKind.TOOL.value,
        CARRIER: carrier,
        "tool.name": call.name,
        **({"gen_ai.tool.call.id": call.id} if call.id else {}),
        "reenact.order.start": (number << 20) + after,
    }
    return SpanRecord(
        trace_id=trace_id,
        span_id=hex_of(f"{trace_id}:{number}:{after}" if after else f"{trace_id}:{number}", 8),
        parent_id=root_id,
        name=call.name,
        start_ns=turn.at_ns,
        end_ns=0,
        kind=KIND_INTERNAL,
        status=STATUS_ERROR if turn.error else STATUS_UNSET,
        status_message=turn.error,
        attributes=attributes,
        scope=Scope(name=carrier),
    )
