"""Twins: one call that several instrumentations saw is one record, the one with the most evidence.

A provider's SDK that opens spans of its own, a framework over it and an instrumentor beside both may all write down
the same call. Two spans of one trace are twins where different emitters wrote them, of the same kind of call, about
the same model or tool, and one stands below the other or both ran at the same time; what the two say of the reply's
id and of the question must not contradict it. Twins are paired one to one by emitter, so that of two equal calls at
once neither is lost. The lesser twin's place in the tree goes to the one that stays; spans that only give structure
stay where they were.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from reenact.boundary.reading import answered, asked
from reenact.values.call import CallKind, FunctionCall, HttpReply, HttpRequest, Raised, Returned, Streamed, Unfinished
from reenact.values.json import canonical
from reenact.values.message import Text
from reenact.values.run import Node
from reenact.values.span import SpanRecord

_MODELS = frozenset({CallKind.LLM, CallKind.EMBEDDING, CallKind.RERANKER})
_FUNCTIONS = frozenset({CallKind.TOOL, CallKind.RETRIEVER})
_THROUGH = frozenset({CallKind.CHAIN, CallKind.UNKNOWN, CallKind.PROMPT})
"""Kinds that may stand between two twins."""
_OURS = "reenact.schema_version"
_MODEL_NAMES = (
    "gen_ai.request.model",
    "gen_ai.response.model",
    "llm.request.model_name",
    "llm.response.model_name",
    "llm.model_name",
    "embedding.model_name",
)
_CONTENT = re.compile(
    r"input\.value|events|gen_ai\.(?:input\.messages|prompt(?:\..*)?)"
    r"|llm\.(?:input_messages\..*|prompts(?:\..*)?)|traceloop\.entity\.input"
)
"""Attributes in which emitters keep what was asked."""
_ESCAPED = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)
_BETWEEN = re.compile(r"[\W_]+")
_HIGHEST = 64
"""How many spans above a call are looked at."""
_NEAREST, _ALIGNED = 32, 8
"""How many calls of another emitter, before and behind, are looked at for a twin that stands beside."""
_AFTERWARDS_NS = 250_000_000
"""How long after the end of a stream Logfire may log what came of it."""
_GIST = 60


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Seen:
    """A call as one emitter saw it."""

    node: Node
    emitter: str
    family: CallKind
    names: frozenset[str]
    """The models it names, as spelled by most, or the tool's name."""
    id: str
    """What the reply, or the tool call, is identified by; empty where the emitter did not say."""
    gist: str
    """The letters and digits with which the last text of the question begins; empty where there is no body."""
    content: str
    """The letters and digits of all that was kept of the question, where there is no body."""
    note: bool
    """It is a log of Logfire's."""
    above: tuple[str, ...]
    """The spans above it that may be the same call seen from farther out."""
    higher: frozenset[str]
    """All spans above it."""

    @property
    def worth(self) -> tuple[bool, int, bool, int]:
        """Say how much can be made of it: an answered request, the exactness of its evidence, then the inner one."""
        node = self.node
        told = not isinstance(node.outcome, Unfinished)
        over_http = isinstance(node.call.request, HttpRequest) or self.family in _FUNCTIONS
        exactness = 3 if _OURS in node.span.attributes else 2 if "reenact.rebuilt" not in node.call.attributes else 1
        return over_http and told, exactness if over_http else 0, told, node.number

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


def folded(nodes: list[Node]) -> tuple[list[Node], int]:
    """Fold twins. Nodes come and go in causal order; gives them numbered anew, and how many are gone."""
    into = _twins(nodes)
    if not into:
        return nodes, 0
    by_id = {node.id: node for node in nodes}
    kept = [node for node in nodes if node.id not in into]
    return [_placed(node, number, _parent(node, into, by_id)) for number, node in enumerate(kept, 1)], len(into)


def _placed(node: Node, number: int, parent: str | None) -> Node:
    """Put a node into its place. Its span says so too, since spans are handed on and read again without the twins."""
    span = node.span if parent == node.parent else replace(node.span, parent_id=parent)
    return replace(node, number=number, parent=parent, span=span)


def _parent(node: Node, into: Mapping[str, str], by_id: Mapping[str, Node]) -> str | None:
    """Find what a node hangs below now: the twin that stayed where it ran inside that, else what is above both."""
    above = node.parent
    while above is not None and above in into:
        stays = by_id[into[above]]
        inside = stays.number < node.number and stays.span.start_ns <= node.span.start_ns <= stays.span.end_ns
        if inside and stays.kind is not node.kind:
            return stays.id
        above = by_id[above].parent
    return above


def _twins(nodes: list[Node]) -> dict[str, str]:
    """Find the calls that are to go, each with the one that stays for it."""
    candidates = [node for node in nodes if _family(node) is not None]
    if len({(_emitter(node.span), _is_note(node.span)) for node in candidates}) < 2:
        return {}
    by_id = {node.id: node for node in nodes}
    seen = {node.id: _look(node, by_id) for node in candidates}
    pairs = sorted(_pairs(seen), key=lambda pair: pair[0])
    several = _frames_of_several(seen)
    gone: dict[str, str] = {}
    saw = {node_id: {(each.emitter, each.note)} for node_id, each in seen.items()}
    for (unlike, *_), one, other in pairs:
        if unlike and (one.node.id in several) is not (other.node.id in several):
            continue  # it holds several calls: it is none of them
        less, more = sorted((_last(one.node.id, gone), _last(other.node.id, gone)), key=lambda last: seen[last].worth)
        if saw[less].isdisjoint(saw[more]):
            gone[less] = more
            saw[more] |= saw[less]
    return {node_id: _last(node_id, gone) for node_id in gone}


def _last(node_id: str, gone: Mapping[str, str]) -> str:
    """Follow twins of twins; each is worth more than the one before, so that there is an end."""
    while node_id in gone:
        node_id = gone[node_id]
    return node_id


def _family(node: Node) -> CallKind | None:
    """Say what kind of call a span may be a twin of, or None where it is structure or the agent's own function."""
    kind, ours = node.kind, _OURS in node.span.attributes
    if kind in _FUNCTIONS:
        return kind
    if kind in _MODELS:
        return None if ours and isinstance(node.call.request, FunctionCall) else kind
    attributes = node.span.attributes
    names_a_model = "gen_ai.request.model" in attributes and "gen_ai.operation.name" not in attributes
    return CallKind.LLM if kind is CallKind.UNKNOWN and names_a_model and not ours else None


def _emitter(span: SpanRecord) -> str:
    """Name who wrote a span. Some backends drop the scope; the spelling tells emitters apart then."""
    if _OURS in span.attributes:
        return "reenact"
    if span.scope.name:
        return span.scope.name
    return "openinference" if "openinference.span.kind" in span.attributes else "gen_ai"


def _is_note(span: SpanRecord) -> bool:
    """Tell Logfire's logs, which say at the end of a stream what its span of the call does not hold."""
    return span.attributes.get("logfire.span_type") == "log"


def _look(node: Node, by_id: Mapping[str, Node]) -> _Seen:
    family = _family(node) or CallKind.UNKNOWN
    attributes = node.span.attributes
    names, identity, gist = {node.call.name.casefold()}, "", ""
    if family in _FUNCTIONS:
        identity = attributes.get("gen_ai.tool.call.id") or attributes.get("tool.id") or ""
    else:
        request, reply = asked(node), answered(node)
        named = [attributes.get(name) for name in _MODEL_NAMES]
        named += [said.model for said in (request, reply) if said is not None]
        names = {name.rpartition("/")[2].casefold() for name in named if isinstance(name, str) and name}
        identity = (reply.id if reply else None) or attributes.get("gen_ai.response.id") or ""
        texts = (
            [part.text for said in request.messages for part in said.parts if isinstance(part, Text)] if request else []
        )
        gist = _letters(texts[-1])[:_GIST] if texts else ""
    emitter = _emitter(node.span)
    nested, higher = _above(node, emitter, family, by_id)
    return _Seen(
        node=node,
        emitter=emitter,
        family=family,
        names=frozenset(names),
        id=str(identity),
        note=_is_note(node.span),
        gist=gist,
        content="" if gist or family in _FUNCTIONS else _content(node.span),
        above=nested,
        higher=higher,
    )


def _letters(text: str) -> str:
    """Reduce a text to its letters and digits, so that spellings of it in JSON, or in JSON in JSON, are one."""

    def plain(escape: re.Match[str]) -> str:
        return chr(int(escape[1], 16)) if escape[1] else ""

    return _BETWEEN.sub("", _ESCAPED.sub(plain, text))


def _above(
    node: Node, emitter: str, family: CallKind, by_id: Mapping[str, Node]
) -> tuple[tuple[str, ...], frozenset[str]]:
    """Climb from a call: give the calls of other emitters that enclose nothing but it, and all spans above it."""
    nested: list[str] = []
    higher: dict[str, None] = {}
    met, open_way, at = {emitter}, True, node.parent
    while at is not None and at in by_id and at not in higher and len(higher) < _HIGHEST:
        above = by_id[at]
        higher[at] = None
        if open_way and (kind := _family(above)) is not None:
            other = _emitter(above.span)
            open_way = kind is family and other not in met
            met.add(other)
            if open_way:
                nested.append(at)
        elif above.kind not in _THROUGH:
            open_way = False
        at = above.parent
    return tuple(nested), frozenset(higher)


_Pair = tuple[tuple[int, bool, bool, int, int], _Seen, _Seen]
"""Two that may be twins, after how little they are alike."""


def _pairs(seen: Mapping[str, _Seen]) -> Iterator[_Pair]:
    for one in seen.values():
        for above in one.above:
            if (unlike := _unlike(one, seen[above], nested=True)) is not None:
                yield (unlike, False, *_order(one, seen[above])), one, seen[above]
    for one, other in _neighbours(seen.values()):
        related = other.node.id in one.higher or one.node.id in other.higher
        if not related and _at_once(one, other) and (unlike := _unlike(one, other, nested=False)) is not None:
            yield (unlike, True, *_order(one, other)), one, other


def _order(one: _Seen, other: _Seen) -> tuple[bool, int, int]:
    """Put pairs in order: those first of which one ran within the other, then as they began."""
    early, late = sorted((one, other), key=lambda each: each.node.span.start_ns)
    if late.note:
        return False, late.node.span.start_ns - early.end_ns, 0
    return late.end_ns > early.end_ns, early.node.span.start_ns, late.node.span.start_ns


def _at_once(one: _Seen, other: _Seen) -> bool:
    early, late = sorted((one, other), key=lambda each: each.node.span.start_ns)
    return late.node.span.start_ns <= early.end_ns + (_AFTERWARDS_NS if late.note else 0)


def _neighbours(seen: Iterable[_Seen]) -> Iterator[tuple[_Seen, _Seen]]:
    """Give the calls of two emitters that began at about the same time, or that are the n-th of both."""
    for group in _by_subject(seen):
        for mine, others in combinations(group, 2):
            starts = [other.node.span.start_ns for other in others]
            for number, one in enumerate(mine):
                at = bisect_left(starts, one.node.span.start_ns)
                places = {*range(at - _NEAREST, at + _NEAREST), *range(number - _ALIGNED, number + _ALIGNED)}
                yield from ((one, others[place]) for place in places if 0 <= place < len(others))


def _by_subject(seen: Iterable[_Seen]) -> Iterator[list[list[_Seen]]]:
    """Group calls that may be about the same by emitter, each in the order of their beginnings."""
    groups: dict[tuple[CallKind, str], dict[tuple[str, bool], list[_Seen]]] = defaultdict(lambda: defaultdict(list))
    for each in sorted(seen, key=lambda each: each.node.span.start_ns):
        subject = min(each.names, default="") if each.family in _FUNCTIONS else ""
        groups[each.family, subject][each.emitter, each.note].append(each)
    yield from ([*by_emitter.values()] for by_emitter in groups.values())


def _unlike(one: _Seen, other: _Seen, *, nested: bool) -> int | None:
    """Say how unlike two calls are: 0 the same for certain, 2 nothing but place and subject; None: not the same."""
    if one.emitter == other.emitter and not _is_told_by_note(one, other):
        return None
    if one.family is not other.family or not _about_the_same(one, other):
        return None
    if one.id and other.id:
        return 0 if one.id == other.id else None
    if one.family in _FUNCTIONS:
        return 1 if _arguments(one.node) == _arguments(other.node) else 2
    if one.gist and other.gist:
        return 1 if one.gist == other.gist else None
    gist, content = one.gist or other.gist, one.content or other.content
    if not (gist and content):
        return 2
    if gist in content:
        return 1
    return 2 if nested else None  # the emitter may have cut what it wrote


def _is_told_by_note(one: _Seen, other: _Seen) -> bool:
    """Tell whether the only thing that an emitter wrote twice is what came of a call, which its span did not hold."""
    call = other if one.note else one
    return one.note is not other.note and isinstance(call.node.outcome, Unfinished)


def _about_the_same(one: _Seen, other: _Seen) -> bool:
    """Compare models, of which an emitter may name the one asked for, another the one that answered."""
    if one.family in _FUNCTIONS:
        return one.names == other.names
    if not one.names or not other.names:
        return True
    return any(a.startswith(b) or b.startswith(a) for a in one.names for b in other.names)


def _arguments(node: Node) -> bytes:
    request = node.call.request
    return canonical(request.arguments) if isinstance(request, FunctionCall) else b""


def _content(span: SpanRecord) -> str:
    """Give the letters of all that an emitter kept of a question."""
    texts = [value for name, value in span.attributes.items() if isinstance(value, str) and _CONTENT.fullmatch(name)]
    body = span.attributes.get("request_data")  # Logfire's, of which it keeps no more than the model for some calls
    if isinstance(body, str) and ('"messages"' in body or '"input"' in body):
        texts.append(body)
    return _letters("\n".join(texts))


def _frames_of_several(seen: Mapping[str, _Seen]) -> set[str]:
    """Find calls below which another emitter saw more than one that succeeded, by id."""
    inside: dict[tuple[str, str], int] = defaultdict(int)
    for each in seen.values():
        for above in each.above:
            inside[above, each.emitter] += not each.failed
    return {node_id for (node_id, _), count in inside.items() if count > 1}
