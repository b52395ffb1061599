"""A call as one emitter saw it: what tells whether two spans are about the same call, and which says more of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from reenact.boundary.reading import answered, asked
from reenact.values.call import CallKind, FunctionCall, HttpReply, HttpRequest, Raised, Returned, Streamed, Unfinished
from reenact.values.json import canonical
from reenact.values.lenient import as_list
from reenact.values.message import Answered, Asked, Message, Text, ToolCall
from reenact.values.run import OURS, Node
from reenact.values.span import SpanRecord

MODELS = frozenset({CallKind.LLM, CallKind.EMBEDDING, CallKind.RERANKER})
FUNCTIONS = frozenset({CallKind.TOOL, CallKind.RETRIEVER})
_THROUGH = frozenset({CallKind.CHAIN, CallKind.UNKNOWN, CallKind.PROMPT})
"""Kinds that may stand between two twins."""
_MODEL_NAMES = (
    "gen_ai.request.model",
    "gen_ai.response.model",
    "llm.request.model_name",
    "llm.response.model_name",
    "llm.model_name",
    "embedding.model_name",
    "ai.model.id",
)
_CALL_IDS = ("gen_ai.tool.call.id", "tool.id", "tool_call.id", "ai.toolCall.id")
_CONTENT = re.compile(
    r"input\.value|events|gen_ai\.(?:input\.messages|prompt(?:\..*)?)"
    r"|llm\.(?:input_messages\..*|prompts(?:\..*)?)|traceloop\.entity\.input"
)
"""Attributes in which emitters keep what was asked."""
_ESCAPED = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)
_BETWEEN = re.compile(r"[\W_]+")
_REGION = re.compile(r"^(?:[a-z]{2,}\.)+(?=[a-z])")
"""What clouds put before a model's name: `us.anthropic.`."""
_KIND_OF_ID = re.compile(r"^[A-Za-z]+(?=[-_])")
_HIGHEST = 64
"""How many spans above a call are looked at."""
_GIST = 60

Known = dict[tuple[str, int, int], tuple[Asked | None, Answered | None]]
"""What was read of the bodies of calls, by node, call and outcome, so that no round reads them again."""
Voice: TypeAlias = "tuple[str, str, bool]"
"""Who wrote a span: the emitter, which kind of span of its own it is, and whether it is a log."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sighting:
    """A call as one emitter saw it."""

    node: Node
    emitter: str
    dialect: str
    """How it was spelled; one emitter may spell the outer and the inner span of a call in two ways."""
    voice: Voice
    family: CallKind
    names: frozenset[str]
    """The models it names, as spelled by most, or the tool's name."""
    id: str
    """What the reply, or the tool call, is identified by; empty where the emitter did not say."""
    calls: frozenset[str]
    """The ids of the tool calls that the reply asks for."""
    gist: str
    """The letters and digits with which the last text of a person begins; empty where there is no body."""
    answer: str
    """The same of the answer's text."""
    content: str
    """The letters and digits of all that was kept of the question, where there is no body."""
    usage: tuple[int | None, int | None]
    """Tokens of the question and of the answer."""
    fullness: int
    """How many pieces of question and answer are known."""
    above: tuple[str, ...]
    """The spans above it that may be the same call seen from farther out."""
    higher: frozenset[str]
    """All spans above it."""

    @property
    def note(self) -> bool:
        """It is a log of Logfire's."""
        return self.voice[2]

    @property
    def worth(self) -> tuple[bool, bool, bool, int, bool, int, int]:
        """Say how much can be made of it: an answered request, how exact and how full it is, then the inner one.

        What was sent to a store is worth less than what was recorded there.
        """
        node = self.node
        is_answered = not isinstance(node.outcome, Unfinished)
        over_http = isinstance(node.call.request, HttpRequest) or self.family in FUNCTIONS
        marks = as_list(node.call.attributes.get("reenact.rebuilt"))
        exactness = 3 if OURS in node.span.attributes else 2 if "request" not in marks else 1
        takes_over = exactness == 2 and isinstance(node.call.request, HttpRequest)  # the reply, from its twin
        answers = over_http and (is_answered or takes_over)
        exact = exactness if over_http else 0
        return not node.span.sent, not self.note, answers, exact, is_answered, self.fullness, node.number

    @property
    def start_ns(self) -> int:
        """When it began."""
        return self.node.span.start_ns

    @property
    def end_ns(self) -> int:
        """When it was over, as far as is known."""
        return max(self.node.span.start_ns, self.node.span.end_ns)

    @property
    def failed(self) -> bool:
        """It brought no answer, so another attempt of the same call may follow."""
        match self.node.outcome:
            case Returned(payload=HttpReply(status=status)) | Streamed(status=status):
                return status >= 400
            case outcome:
                return isinstance(outcome, Raised)


def family_of(node: Node) -> CallKind | None:
    """Say what kind of call a span may be a twin of, or None where it is structure or the agent's own function."""
    kind, ours = node.kind, OURS in node.span.attributes
    if kind in FUNCTIONS:
        return kind
    if kind in MODELS:
        return None if ours and isinstance(node.call.request, FunctionCall) else kind
    attributes = node.span.attributes
    names_a_model = "gen_ai.request.model" in attributes and "gen_ai.operation.name" not in attributes
    return CallKind.LLM if kind is CallKind.UNKNOWN and names_a_model and not ours else None


def emitter_of(span: SpanRecord) -> str:
    """Name who wrote a span. Some backends drop the scope; the spelling tells emitters apart then."""
    if OURS in span.attributes:
        return "reenact"
    if span.scope.name:
        return span.scope.name
    return "openinference" if "openinference.span.kind" in span.attributes else "gen_ai"


def voice_of(span: SpanRecord) -> Voice:
    """Tell apart the kinds of spans that one emitter writes, by the first word of their names."""
    return emitter_of(span), span.name.partition(" ")[0], is_note(span)


def is_note(span: SpanRecord) -> bool:
    """Tell Logfire's logs, which say at the end of a stream what its span of the call does not hold."""
    return span.attributes.get("logfire.span_type") == "log"


def sighting(node: Node, by_id: Mapping[str, Node], cache: Known) -> Sighting:
    """Look at one call. `cache` remembers what was read of its bodies."""
    family = family_of(node) or CallKind.UNKNOWN
    request, reply = (None, None) if family in FUNCTIONS else _read(node, cache)
    gist = _last(request.messages)[:_GIST] if request else ""
    nested, higher = _above(node, family, by_id)
    return Sighting(
        node=node,
        emitter=emitter_of(node.span),
        dialect=str(node.call.attributes.get("reenact.dialect", "")),
        voice=voice_of(node.span),
        family=family,
        names=_names(node, family, request, reply),
        id=_id(node, family, reply),
        calls=frozenset(call.id for call in _calls(reply) if call.id),
        gist=gist,
        answer=_letters("".join(_texts(reply.messages)))[:_GIST] if reply else "",
        content="" if gist or family in FUNCTIONS else _content(node.span),
        usage=_usage(node, reply),
        fullness=_fullness(request, reply),
        above=nested,
        higher=higher,
    )


def _read(node: Node, cache: Known) -> tuple[Asked | None, Answered | None]:
    key = (node.id, id(node.call), id(node.outcome))
    if key not in cache:
        cache[key] = asked(node), answered(node)
    return cache[key]


def _usage(node: Node, reply: Answered | None) -> tuple[int | None, int | None]:
    """Give the tokens that were counted, out of the span where there is no reply."""
    if reply is not None and reply.usage.prompt is not None:
        return reply.usage.prompt, reply.usage.completion
    asked_for, completion = (node.span.attributes.get(f"gen_ai.usage.{side}_tokens") for side in ("input", "output"))
    return asked_for if isinstance(asked_for, int) else None, completion if isinstance(completion, int) else None


def _names(node: Node, family: CallKind, request: Asked | None, reply: Answered | None) -> frozenset[str]:
    if family in FUNCTIONS:
        return frozenset({node.call.name.casefold()})
    values: list[object] = [node.span.attributes.get(name) for name in _MODEL_NAMES]
    values += [side.model for side in (request, reply) if side is not None]
    return frozenset(
        _REGION.sub("", name.rpartition("/")[2].casefold()) for name in values if isinstance(name, str) and name
    )


def _id(node: Node, family: CallKind, reply: Answered | None) -> str:
    attributes = node.span.attributes
    if family in FUNCTIONS:
        call_id = node.call.attributes.get("gen_ai.tool.call.id")
        return str(call_id or next((value for name in _CALL_IDS if (value := attributes.get(name))), ""))
    return str((reply.id if reply else None) or attributes.get("gen_ai.response.id") or "")


def _calls(reply: Answered | None) -> list[ToolCall]:
    messages = reply.messages if reply else ()
    return [part for message in messages for part in message.parts if isinstance(part, ToolCall)]


def _texts(messages: Iterable[Message]) -> list[str]:
    return [part.text for message in messages for part in message.parts if isinstance(part, Text)]


def _last(messages: tuple[Message, ...]) -> str:
    """Give the last text that a person said: what tools said is spelled anew by every framework."""
    texts = _texts(message for message in messages if message.role == "user") or _texts(messages)
    return _letters(texts[-1]) if texts else ""


def _fullness(request: Asked | None, reply: Answered | None) -> int:
    """Count what is known: messages and their parts, tools, parameters, ids, usage."""
    total = 0
    if request is not None:
        parts = [part for message in request.messages for part in message.parts]
        ids = sum(bool(part.id) for part in parts if isinstance(part, ToolCall))
        total += len(request.messages) + len(parts) + 2 * len(request.tools) + len(request.parameters) + ids
    if reply is not None:
        parts = [part for message in reply.messages for part in message.parts]
        total += 2 * len(parts) + sum(bool(part.id) for part in parts if isinstance(part, ToolCall))
        total += bool(reply.id) + bool(reply.model) + len(reply.finish_reasons) + (reply.usage.prompt is not None)
    return total


def _letters(text: str) -> str:
    """Reduce a text to its letters and digits, so that spellings of it in JSON, or in JSON in JSON, are one."""

    def plain(escape: re.Match[str]) -> str:
        return chr(int(escape[1], 16)) if escape[1] else ""

    return _BETWEEN.sub("", _ESCAPED.sub(plain, text))


def _content(span: SpanRecord) -> str:
    """Give the letters of all that an emitter kept of a question."""
    texts = [value for name, value in span.attributes.items() if isinstance(value, str) and _CONTENT.fullmatch(name)]
    body = span.attributes.get("request_data")  # Logfire's, of which it keeps no more than the model for some calls
    if isinstance(body, str) and ('"messages"' in body or '"input"' in body):
        texts.append(body)
    return _letters("\n".join(texts))


def _above(node: Node, family: CallKind, by_id: Mapping[str, Node]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Climb from a call: give the calls that enclose nothing but it, each of another voice, and all spans above it.

    The nearest may be of the same voice: some instrumentors open two spans of a name for one call.
    """
    nested: list[str] = []
    higher: dict[str, None] = {}
    met, open_way, at = {voice_of(node.span)}, True, node.parent
    while at is not None and at in by_id and at not in higher and len(higher) < _HIGHEST:
        above = by_id[at]
        higher[at] = None
        if open_way and (kind := family_of(above)) is not None:
            voice = voice_of(above.span)
            is_repeated = voice in met
            met.add(voice)
            if kind is family and (not is_repeated or not nested):
                nested.append(at)
            open_way = kind is family and not is_repeated
        elif above.kind not in _THROUGH:
            open_way = False
        at = above.parent
    return tuple(nested), frozenset(higher)


def about_the_same(one: Sighting, other: Sighting) -> bool:
    """Compare models, of which an emitter may name the one asked for, another the one that answered."""
    if one.family in FUNCTIONS:
        return one.names == other.names
    if not one.names or not other.names:
        return True
    return any(a.startswith(b) or b.startswith(a) for a in one.names for b in other.names)


def same_id(one: str, other: str) -> bool | None:
    """Compare what two replies are identified by; None where a framework's own id stands beside a provider's."""
    if not one or not other:
        return None
    if one == other:
        return True
    kinds = {match[0] if (match := _KIND_OF_ID.match(each)) else "" for each in (one, other)}
    return None if len(kinds) > 1 and "" not in kinds else False


def arguments(node: Node) -> bytes:
    """Spell what a function was given, for comparing."""
    request = node.call.request
    return canonical(request.arguments) if isinstance(request, FunctionCall) else b""
