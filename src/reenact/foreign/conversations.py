"""Lists of messages as runs: what a chat log, a fine-tuning file or an agent's trajectory lets one say of its calls.

Such a file holds what was said and hardly ever how it was asked. Each turn of the model is the answer of a call, all
that stands before it is what the call asked; the provider's request and reply are built again of them
(`foreign.rebuilding`) and marked so, and what the file does not say (parameters, tool schemas, the model) is named as
lost. A tool's answer that no later call repeats becomes a call of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, takewhile
from typing import Final, TypeVar

from reenact.boundary.question import shape_named
from reenact.foreign.exchanges import exception_of_text, hex_of, lacking, root_span
from reenact.foreign.foreign_call import LOST, REBUILT, Loss
from reenact.foreign.partial_question import TOOL_ENDS
from reenact.foreign.rebuilding import rebuilt
from reenact.values.call import (
    CallKind,
    ExceptionRecord,
    FunctionCall,
    HttpRequest,
    Outcome,
    Raised,
    Returned,
    Value,
)
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


UNANSWERED: Final = "reenact.conversation.unanswered"
"""On the root of a carrier's conversation: JSON of what was said behind the last reply, by whom."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message of a conversation, with what a file says beside it."""

    message: Message
    at_ns: int = 0
    """Nanoseconds since the epoch; 0 where the file does not say."""
    start_ns: int = 0
    """Of a tool's answer: when the tool began; 0 where the file does not say."""
    id: str = ""
    """Of the reply, by the file's own word; pieces of one reply share it."""
    reply: str = ""
    """What tells pieces of one reply from those of the next, where the file has no id."""
    model: str = ""
    usage: Usage | None = None
    finish: str = ""
    is_greeting: bool = False
    """No model said it, though it stands in the conversation as if one had: a greeting of the program's own."""
    begins_anew: bool = False
    """The program compacted the conversation: nothing before this is asked any more, but for the instructions."""
    is_kept: bool = False
    """It was said before and stands here again, in a history that was compacted."""

    @property
    def replies(self) -> bool:
        """A model said it."""
        return self.message.role == _MODELS and not self.is_greeting and not self.is_kept


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
    failure: str = ""
    """The error that the run ended with, where the file says so."""
    call_error: str = ""
    """What went wrong with the last call of the model, where the file says so."""
    lost: tuple[Loss, ...] = ()
    asks: bool = False
    """Where no model says anything, the messages are a question that the file holds no answer to."""


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
    stretches = [*_stretches(chat.turns)] if questions is None else [chat.turns]
    for stretch in stretches:
        answers = _answers(stretch)
        calls = _calls(chat, stretch) if questions is None else ((q.asked, q.answered, [q.turn]) for q in questions)
        for (asked, answered, turns), is_last in _to_the_last(calls):
            error = chat.call_error if is_last and stretch is stretches[-1] else ""
            number += 1
            lost = [*chat.lost, *_lost(chat, asked)]
            characters += sum(_size(message) for message in asked.messages)
            if characters > _MOST_CHARACTERS:
                asked = replace(asked, messages=asked.messages[-_KEPT_MESSAGES:])  # noqa: PLW2901 - the end of it
                lost.append(lacking("request", f"all but the last {_KEPT_MESSAGES} messages, the run being very long"))
            span = _model_span(chat, asked, answered, turns, (trace_id, root_id, number, carrier), lost, error)
            ends = _tool_ends(turns, answers)
            yield replace(span, attributes={**span.attributes, TOOL_ENDS: compact(ends)}) if ends else span
        for call, turn, asked_ns in _unrepeated(stretch):
            number += 1
            yield _tool_span(call, turn, asked_ns, (trace_id, root_id, number, carrier))
    if number:
        times = {turn.at_ns for turn in chat.turns if turn.at_ns}
        root = root_span(
            trace_id=trace_id,
            span_id=root_id,
            name=chat.name,
            carrier=carrier,
            times=(min(times, default=0), max(times) if len(times) > 1 else 0),
            attributes={**chat.attributes, **_unanswered(chat.turns)},
        )
        failure = chat.failure or chat.call_error
        yield replace(root, status=STATUS_ERROR, status_message=failure) if failure else root


def _unanswered(turns: Sequence[Turn]) -> dict[str, Attribute]:
    """Keep what was said behind the model's last words: nobody says that it was asked of a model."""
    last = max((at for at, turn in enumerate(turns) if turn.replies), default=len(turns))
    rest: list[Json] = [
        {"role": turn.message.role, "text": text}
        for turn in turns[last + 1 :]
        if (text := "".join(part.text for part in turn.message.parts if isinstance(part, Text)))
        and turn.message.role != "tool"
    ]
    return {UNANSWERED: compact(rest)} if rest else {}


def _to_the_last(items: Iterable[_T]) -> Iterator[tuple[_T, bool]]:
    """Give each item, and whether it is the last."""
    before: list[_T] = []
    for item in items:
        if before:
            yield before.pop(), False
        before.append(item)
    for item in before:
        yield item, True


def _stretches(turns: Sequence[Turn]) -> Iterator[Sequence[Turn]]:
    """Cut turns where they begin anew; the instructions stand before each stretch of them."""
    instructions = [*takewhile(lambda turn: turn.message.role == "system", turns)]
    cuts = [0, *(at for at, turn in enumerate(turns) if at and turn.begins_anew), len(turns)]
    for first, last in pairwise(cuts):
        yield [*(instructions if first else ()), *turns[first:last]]


def _calls(chat: Conversation, turns: Sequence[Turn]) -> Iterator[tuple[Asked, Answered | None, list[Turn]]]:
    """Cut a stretch into calls: turns of the model in a row are one reply, unless the file says otherwise."""
    before: list[Message] = []
    reply: list[Turn] = []
    for turn in [*turns, None]:
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
    if chat.asks and before and not any(turn.message.role == _MODELS for turn in turns):
        yield _asked(chat, before, ""), None, []


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


# ------------------------------------------------------------------------------------------------- answers of tools


def _answers(turns: Sequence[Turn]) -> dict[str, Turn]:
    """Give the answers of tools by the ids of their calls, of those that are answered once."""
    listed = [turn for turn in turns if turn.message.tool_call_id and turn.message.role == "tool" and not turn.is_kept]
    counts = Counter(turn.message.tool_call_id for turn in listed)
    return {turn.message.tool_call_id or "": turn for turn in listed if counts[turn.message.tool_call_id] == 1}


def _tool_ends(reply: Sequence[Turn], answers: Mapping[str, Turn]) -> dict[str, Json]:
    """Give when the tools that a reply calls were done and which of them failed, as far as the file says."""
    ends: dict[str, Json] = {}
    for part in (part for piece in reply for part in piece.message.parts):
        if not isinstance(part, ToolCall) or (turn := answers.get(part.id)) is None:
            continue
        has_time = turn.at_ns > reply[-1].at_ns  # where files give both one time, it is the reply's
        end: dict[str, Json] = {"end_ns": turn.at_ns} if has_time else {}
        end |= {"start_ns": turn.start_ns} if turn.start_ns else {}
        failed: dict[str, Json] = {"is_error": True} if turn.message.is_error else {}
        if end or failed:
            ends[part.id] = {**end, **failed}
    return ends


def _unrepeated(turns: Sequence[Turn]) -> Iterator[tuple[ToolCall, Turn, int]]:
    """Find the answers of tools after the model's last turn, with the calls that they answer and when these were asked.

    No later request repeats them. One without an id answers the first open call of the last turn.
    """
    last = max((at for at, turn in enumerate(turns) if turn.replies), default=None)
    if last is None:
        return
    asked = [(part, turn) for turn in turns[: last + 1] for part in turn.message.parts if isinstance(part, ToolCall)]
    calls = {each[0].id: each for each in asked if each[0].id}
    waiting = [each for each in asked if each[1] is turns[last]]
    for turn in turns[last + 1 :]:
        if turn.message.role != "tool" or turn.is_kept:
            continue
        call = calls.get(turn.message.tool_call_id) if turn.message.tool_call_id else next(iter(waiting), None)
        if call is not None:
            waiting = [each for each in waiting if each is not call]
            yield call[0], turn, turn.start_ns or call[1].at_ns


def _tool_span(call: ToolCall, turn: Turn, asked_ns: int, place: tuple[str, str, int, str]) -> SpanRecord:
    trace_id, root_id, number, carrier = place
    arguments = parsed_or_none(call.arguments)
    request = FunctionCall(function="", arguments=call.arguments if arguments is None else arguments)
    text = "".join(part.text for part in turn.message.parts if isinstance(part, Text))
    outcome: Outcome = Returned(payload=Value(json=text))
    if turn.message.is_error:
        outcome = Raised(exception=ExceptionRecord(module="builtins", qualname="Exception", message=text))
    attributes: dict[str, Attribute] = {
        **request_to_attributes(request),
        **outcome_to_attributes(request, outcome),
    }
    attributes.pop(OURS, None)
    attributes |= {
        _KIND: CallKind.TOOL.value,
        CARRIER: carrier,
        "tool.name": call.name,
        **({"gen_ai.tool.call.id": call.id} if call.id else {}),
        "reenact.order.start": number << 20,
    }
    return SpanRecord(
        trace_id=trace_id,
        span_id=hex_of(f"{trace_id}:{number}", 8),
        parent_id=root_id,
        name=call.name,
        start_ns=asked_ns or turn.at_ns,
        end_ns=turn.at_ns if asked_ns and turn.at_ns > asked_ns else 0,
        kind=KIND_INTERNAL,
        status=STATUS_ERROR if turn.message.is_error else STATUS_UNSET,
        status_message=text if turn.message.is_error else "",
        attributes=attributes,
        scope=Scope(name=carrier),
    )
