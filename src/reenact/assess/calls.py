"""The calls of a run as assertions see them: those with a span, and tool calls of which only the model's request is.

Where a trace holds no call of a tool, its emitter may have kept the model calls alone. Then what a model asked for
counts as called; in a recording of ours only where a later request to a model holds its result, since a program may
well refuse what a model asks. Where other tools have spans and this one has none, such a result is in doubt: the
program did it inline, or refused it in the tool's name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from reenact.assess.plain_values import plain
from reenact.boundary.reading import answered, asked, frames, is_plain, reply_body, reply_data
from reenact.values.call import (
    ExceptionRecord,
    FunctionCall,
    HttpReply,
    HttpRequest,
    Raised,
    Returned,
    Streamed,
    StreamEnd,
    Unfinished,
    Value,
)
from reenact.values.difference import ABSENT, Absent
from reenact.values.json import Json, parsed_or_none
from reenact.values.message import Answered, Asked, Message, Text, ToolCall
from reenact.values.run import OURS, Node, Run

_DOUBT = "other tools have spans here and it has none: the program did it inline, or refused it in the tool's name"
_TOOL_REASONS = frozenset({"tool_calls", "tool_use", "function_call"})
_STRUCTURE = frozenset({"agent", "chain", "prompt", "unknown"})


@dataclass(frozen=True, slots=True)
class Lost:
    """Stands for evidence that the trace does not hold; `why` says so."""

    why: str


Known: TypeAlias = "Json | Absent | Lost"


@dataclass(frozen=True, kw_only=True, eq=False)
class CallView:
    """One call, with what it asked and what came of it, read when first asked for."""

    node: Node
    """The call's own, or the model call that asked for it."""
    wanted: ToolCall | None = None
    """What the model asked for, where the call has no span of its own."""
    answer: Message | None = None
    """The message that brought its result to a model."""
    wish: ToolCall | None = None
    """What a model asked for, where the call's own span kept no arguments or no result."""
    place: int = 0
    """Among what one model call asked for."""
    doubt: str = ""
    """Why it may never have been made."""

    @cached_property
    def word(self) -> str:
        """What kind it is, as people are told."""
        return "tool" if self.wanted else self.node.call.word

    @property
    def name(self) -> str:
        """What it is called."""
        return self.wanted.name if self.wanted else self.node.call.name

    @property
    def label(self) -> str:
        """Name it in a sentence; one without a span of its own by who asked for it."""
        if self.wanted is None:
            return f"{self.node.label} (by what the model was told and asked for)" if self.wish else self.node.label
        ending = "and given its result" if self.answer else "and not seen to be given it"
        return f"tool {self.name} (no span of its own; asked for by {self.node.label} {ending})"

    @property
    def is_structure(self) -> bool:
        """It only says where other calls hang, or nobody knows what it is."""
        return self.wanted is None and self.word in _STRUCTURE

    @cached_property
    def asked(self) -> Asked | None:
        """What a model call asked."""
        return asked(self.node)

    @cached_property
    def answered(self) -> Answered | None:
        """What a model call was answered."""
        return answered(self.node)

    @cached_property
    def arguments(self) -> Known:
        """What was asked, as plain JSON."""
        if self.wanted is not None:
            return _arguments_text(self.wanted.arguments)
        request = self.node.call.request
        if isinstance(request, FunctionCall):
            return self._function_arguments(request)
        if not request.body.data:
            return ABSENT if is_plain(self.node) else Lost("the request body was not recorded")
        body = parsed_or_none(request.body.data)
        return request.body.text if body is None else body

    def _function_arguments(self, request: FunctionCall) -> Known:
        if OURS in self.node.span.attributes:
            return plain(request.arguments)
        if "input.value" not in self.node.span.attributes and request.arguments in (None, {}, []):
            return _arguments_text(self.wish.arguments) if self.wish else Lost("the emitter kept no arguments")
        value = plain(request.arguments)
        return _arguments_text(value) if isinstance(value, str) else value

    @cached_property
    def result(self) -> Known:
        """What came of it, as plain JSON; absent where it raised."""
        if self.wanted is not None:
            return _message_content(self.answer) if self.answer else Lost("no result of it was recorded")
        match self.node.outcome:
            case Returned(payload=Value(json=value)):
                return _read(plain(value)) if OURS not in self.node.span.attributes else plain(value)
            case Returned(payload=HttpReply()):
                return self._body()
            case Streamed(end=StreamEnd.UNFINISHED):
                return Lost("the process ended in the middle of its stream")
            case Streamed(chunks=chunks):
                if isinstance(self.node.call.request, HttpRequest):
                    return self._body()
                return [plain(chunk.value) for chunk in chunks]
            case Raised():
                return ABSENT
            case _:
                return _message_content(self.answer) if self.answer else Lost("no outcome of it was recorded")

    def _body(self) -> Known:
        body = reply_body(self.node)
        if body is not None:
            return body
        data = reply_data(self.node)
        try:
            return data.decode() if data else ABSENT
        except UnicodeDecodeError:
            return Lost(f"its reply is {len(data)} bytes that are no text")

    @property
    def raised(self) -> ExceptionRecord | Absent | Lost:
        """The exception that it raised."""
        match self.node.outcome:
            case _ if self.wanted is not None:
                return Lost("it has no span of its own")
            case Raised(exception=exception):
                return exception
            case Streamed(exception=ExceptionRecord() as exception):
                return exception
            case Unfinished():
                return Lost("no outcome of it was recorded")
            case _:
                return ABSENT

    @property
    def status(self) -> Known:
        """The HTTP status of its reply."""
        match self.node.outcome:
            case _ if self.wanted is not None or not isinstance(self.node.call.request, HttpRequest):
                return ABSENT
            case Returned(payload=HttpReply(status=status)) | Streamed(status=status):
                return status if OURS in self.node.span.attributes else Lost("the emitter kept no HTTP status")
            case Unfinished():
                return Lost("no outcome of it was recorded")
            case _:
                return ABSENT


def _arguments_text(text: str) -> Known:
    value = parsed_or_none(text) if text.strip() else {}
    return text if value is None else value


def _read(value: Json) -> Json:
    """Read JSON out of a text, for emitters that keep every result as one."""
    json_value = parsed_or_none(value) if isinstance(value, str) and value[:1] in {"{", "["} else None
    return value if json_value is None else json_value


def _message_content(message: Message) -> Json:
    return _read("".join(part.text for part in message.parts if isinstance(part, Text)))


def call_views(run: Run, *, spanned: Iterable[str] = ()) -> tuple[CallView, ...]:
    """Give a run's calls in causal order, structure included, less frames around a provider's call.

    `spanned` names tools that are known to have a span whenever they run, as from the recording of a replay: of these
    no call is taken from what a model asked for.
    """
    outer = frames(run.nodes)
    nodes = [node for node in run.nodes if node.id not in outer and not _is_root(node)]
    calls = [CallView(node=node) for node in nodes]
    tools = frozenset(each.name for each in calls if each.word == "tool")
    if all(OURS in each.node.span.attributes for each in calls) and not _all_asked(calls) - tools - {*spanned}:
        return tuple(calls)
    wanted = list(_wanted(calls))
    ours = any(OURS in node.span.attributes for node in run.nodes)
    known_tools = tools | frozenset(spanned)
    spanless = [each for each in wanted if each.name not in known_tools and (each.answer or not (ours or tools))]
    if tools:
        spanless = [replace(each, doubt=_DOUBT) for each in spanless]
    by_id = {(each.node.id, each.wanted.id): each for each in wanted if each.wanted and each.wanted.id}
    calls = [_helped(each, by_id) for each in calls]
    return tuple(sorted((*calls, *spanless), key=lambda each: (each.node.number, each.wanted is not None, each.place)))


def _all_asked(calls: Iterable[CallView]) -> frozenset[str]:
    """Name the tools that any model asked for."""
    models = (each.answered for each in calls if each.word == "llm")
    messages = (message for reply in models if reply for message in reply.messages)
    return frozenset(part.name for message in messages for part in message.parts if isinstance(part, ToolCall))


def _helped(each: CallView, by_id: Mapping[tuple[str, str], CallView]) -> CallView:
    """Let a tool call whose own span kept less stand on what its model asked for and was told."""
    node = each.node
    if each.word != "tool" or OURS in node.span.attributes or not (node.caused_by and node.tool_call_id):
        return each
    wish = by_id.get((node.caused_by, node.tool_call_id))
    if wish is None or not (isinstance(each.arguments, Lost) or isinstance(node.outcome, Unfinished)):
        return each
    return CallView(node=node, wish=wish.wanted, answer=wish.answer)


def _is_root(node: Node) -> bool:
    attributes = node.span.attributes
    return attributes.get("reenact.run.root") is True or bool(attributes.get("reenact.process.root"))


def _wanted(calls: Iterable[CallView]) -> Iterator[CallView]:
    """Give the tool calls that models asked for, each with the message that brought its result where there is one."""
    models = [each for each in calls if each.word == "llm"]
    results: dict[str, Message] = {}
    for each in models:
        for message in each.asked.messages if each.asked else ():
            if message.tool_call_id:
                results.setdefault(message.tool_call_id, message)
    met = set[str]()
    for each in models:
        parts = [part for message in (each.answered.messages if each.answered else ()) for part in message.parts]
        for place, part in enumerate(part for part in parts if isinstance(part, ToolCall)):
            if part.id and part.id in met:
                continue
            met.add(part.id)
            yield CallView(node=each.node, wanted=part, answer=results.get(part.id) if part.id else None, place=place)


def asked_unseen(each: CallView) -> bool:
    """Tell whether a model ended its answer in order to call tools, and the trace does not hold which."""
    reply = each.answered
    if reply is None or not _TOOL_REASONS.intersection(reply.finish_reasons):
        return False
    return not any(isinstance(part, ToolCall) for message in reply.messages for part in message.parts)


def answered_before(first: CallView, then: CallView) -> bool:
    """Tell whether `first` was over when `then` was made: by the process's own sequence, else by time."""
    if first is then:
        return False
    if first.wanted is not None or then.wanted is not None:
        return _by_messages(first, then)
    a, b = first.node, then.node
    if isinstance(a.outcome, Unfinished) and a.span.attributes.get("reenact.incomplete"):
        return False
    process = "reenact.process.id"
    same = a.span.resource.attributes.get(process) == b.span.resource.attributes.get(process)
    if same and a.end_order and b.start_order:
        return a.end_order < b.start_order
    return a.number < b.number and (not a.span.end_ns or a.span.end_ns <= b.span.start_ns)


def _by_messages(first: CallView, then: CallView) -> bool:
    """Tools that one model call asked for are answered together; of others the model calls tell the order."""
    if first.node is then.node:
        return first.wanted is None and then.wanted is not None
    return first.node.number < then.node.number
