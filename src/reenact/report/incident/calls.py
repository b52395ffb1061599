"""The calls of a run as the page lists and shows them: a row each, and what was said in each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from reenact.boundary.reading import answered, asked, is_plain, reply_body, reply_data
from reenact.report import call_text
from reenact.report.incident.conversation import Conversations
from reenact.report.incident.documents import documents
from reenact.report.incident.inert import flat
from reenact.report.incident.pool import Pool
from reenact.report.times import instant
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
from reenact.values.discovered_tools import CHANGED, HELD, REACHES, TOUCHED, listed
from reenact.values.ending import in_short
from reenact.values.json import Json, parsed_or_none
from reenact.values.message import Answered, Asked, Usage
from reenact.values.run import PROCESS_ROOT, STOPPED, Node, Run
from reenact.values.span import STATUS_ERROR, Attribute

_SUMMARY = 140
_PIECES = 200
_OF_FOUND = (("Touched", TOUCHED), ("May have used", HELD), ("Can reach", REACHES), ("Changed in memory", CHANGED))
"""Pieces of a generator that are kept one by one."""


def ordered(run: Run) -> list[tuple[Node, int]]:
    """Give the calls as a tree is read, each with its depth; the root that is the heading is left out."""
    children: dict[str | None, list[Node]] = defaultdict(list)
    for node in run.nodes:
        children[node.parent].append(node)
    top = run.root if run.root is not None and run.root.call.is_structure else None
    tops = [*children[top.id if top else None], *(node for node in children[None] if top and node.id != top.id)]
    stack = [(node, 0) for node in sorted(tops, key=lambda node: node.number, reverse=True)]
    calls: list[tuple[Node, int]] = []
    while stack:
        node, depth = stack.pop()
        calls.append((node, depth))
        stack += [(below, depth + 1) for below in reversed(children[node.id])]
    return calls


class Calls:
    """Rows and bodies of a run's calls, in the order of the tree.

    A row is `[number, depth, kind, name, start, took, question, answer, marks]`: `kind` a place in `kinds`, times in
    microseconds since the run began, `took` null where nobody knows. A body is what `detail.js` shows.
    """

    def __init__(self, run: Run, pool: Pool) -> None:
        self._pool, self._run = pool, run
        self._conversations = Conversations(pool)
        self.kinds: list[Json] = []
        self.rows: list[Json] = []
        self.bodies: list[Json] = []
        nodes = ordered(run)
        self.at = {node.id: place for place, (node, _) in enumerate(nodes)}
        """The place of a call in the list, by its id."""
        kinds: dict[str, int] = {}
        began = run.started_ns
        for place, (node, depth) in enumerate(nodes):
            kind = kinds.setdefault(node.call.word, len(kinds))
            question, answer, body = self._described(node, place)
            start, took = _times(node, began)
            marks: list[Json] = [*_marks(node)]
            self.rows.append([node.number, depth, kind, node.call.name, start, took, question, answer, marks])
            self.bodies.append(body)
        self.kinds = [*kinds]

    def _described(self, node: Node, place: int) -> tuple[str, str, Json]:
        body: dict[str, Json] = {"facts": [*self._facts(node)]}
        request = node.call.request
        question = answer = ""
        ask = asked(node) if isinstance(request, HttpRequest) else None
        if isinstance(request, FunctionCall):
            if not (node.call.is_structure and not request.arguments):
                body["given"] = self._pool.value(request.arguments)
            question, answer = call_text.question(node), call_text.outcome(node)
            self._function(node, body)
        elif ask is not None:
            question, answer = self._model(node, ask, place, body)
        else:
            question, answer = call_text.question(node), call_text.outcome(node)
            self._plain(node, request, body)
        if isinstance(node.outcome, Unfinished) and node.call.is_structure:
            answer = ""
        return _short(question), _short(answer), body

    def _function(self, node: Node, body: dict[str, Json]) -> None:
        if retrieved := documents(node):
            body["documents"] = [{**each, "text": self._pool.text(str(each.get("text") or ""))} for each in retrieved]
        match node.outcome:
            case Returned(payload=Value(json=value)):
                if not (node.call.is_structure and value is None):
                    body["returned"] = self._pool.value(value)
            case Streamed(chunks=chunks, exception=exception) as stream:
                body["yielded"] = [self._pool.value(chunk.value) for chunk in chunks[:_PIECES]]
                body["stream"] = _stream(stream)
                body["raised"] = self._raised(exception) if exception else None
            case Raised(exception=exception):
                body["raised"] = self._raised(exception)
            case _:
                if not node.call.is_structure:
                    body["silent"] = True

    def _model(self, node: Node, ask: Asked, place: int, body: dict[str, Json]) -> tuple[str, str]:
        reply = answered(node)
        body["asked"] = self._question_document(ask, place)
        if reply is not None:
            body["said"] = self._reply_document(reply)
        match node.outcome:
            case Returned(payload=HttpReply(status=status)):
                body["status"] = status
            case Streamed(status=status, exception=exception) as stream:
                body |= {"status": status, "stream": _stream(stream)}
                body["raised"] = self._raised(exception) if exception else None
            case Raised(exception=exception):
                body["raised"] = self._raised(exception)
            case _:
                body["silent"] = True
        empty = reply is None or not (reply.messages or reply.vectors)
        if empty and (data := reply_data(node)):
            body["reply"] = self._text_or_json(data, reply_body(node))
        return _question(ask), _answer(node, reply)

    def _question_document(self, ask: Asked, place: int) -> dict[str, Json]:
        document: dict[str, Json] = {"model": ask.model, **self._conversations.place(place, ask.messages)}
        if ask.parameters:
            document["settings"] = self._pool.value(ask.parameters)
        if (tools := self._pool.tool_set(ask.tools)) is not None:
            document["tools"] = tools
        if ask.inputs:
            document["inputs"] = [self._pool.text(each) for each in ask.inputs]
        return document

    def _reply_document(self, reply: Answered) -> dict[str, Json]:
        document: dict[str, Json] = {"messages": [self._pool.message(each) for each in reply.messages]}
        document |= {"model": reply.model, "finish": [*reply.finish_reasons], "usage": _usage(reply.usage)}
        if reply.vectors:
            document["vectors"] = [len(reply.vectors), len(reply.vectors[0])]
        return document

    def _plain(self, node: Node, request: HttpRequest, body: dict[str, Json]) -> None:
        body["http"] = [request.method, self._pool.text(request.url)]
        if request.body.data:
            body["given"] = self._text_or_json(request.body.data, parsed_or_none(request.body.data))
        match node.outcome:
            case Returned(payload=HttpReply(status=status)) | Streamed(status=status):
                body["status"] = status
                if is_plain(node) or reply_data(node):
                    data = reply_data(node)
                    body["reply"] = self._text_or_json(data, parsed_or_none(data))
            case Raised(exception=exception):
                body["raised"] = self._raised(exception)
            case _:
                body["silent"] = True

    def _text_or_json(self, data: bytes, parsed: Json) -> Json:
        if parsed is not None:
            return self._pool.value(parsed)
        try:
            return {"text": self._pool.text(data.decode())}
        except UnicodeDecodeError:
            return {"bytes": len(data)}

    def _raised(self, exception: ExceptionRecord) -> Json:
        document: dict[str, Json] = {"type": f"{exception.module}.{exception.qualname}".removeprefix("builtins.")}
        document["message"] = self._pool.text(exception.message)
        if exception.stacktrace:
            document["stack"] = self._pool.text(exception.stacktrace)
        return document

    def _facts(self, node: Node) -> Iterator[Json]:
        """Give what else is known of a call, as name and text."""
        yield ["Started", instant(node.span.start_ns)]
        if node.lane and node.lane != "main":
            yield ["Task or thread", self._pool.text(node.lane)]
        if isinstance(node.call.request, FunctionCall):
            yield ["Function", self._pool.text(node.call.request.function)]
        for name, attribute in _OF_FOUND:
            if names := listed(node, attribute):
                yield [name, self._pool.text(", ".join(names))]
        if (by := node.span.attributes.get("reenact.replay.answered_by")) is not None:
            yield ["Answered from recorded span", str(by)]
        if (status := node.span.status_message) and not isinstance(node.outcome, Raised):
            yield ["Span status", self._pool.text(status)]
        yield ["Span", f"{node.id} in trace {node.trace_id}"]


def causes(run: Run, at: Mapping[str, int], bodies: Sequence[Json]) -> None:
    """Note in the bodies which model call asked for which tool call, from both ends."""
    for node in run.nodes:
        if node.caused_by is None or node.caused_by not in at or node.id not in at:
            continue
        tool, model = bodies[at[node.id]], bodies[at[node.caused_by]]
        if isinstance(tool, dict) and isinstance(model, dict):
            tool["because"] = at[node.caused_by]
            led = model.setdefault("led", [])
            if isinstance(led, list):
                led.append([node.tool_call_id, at[node.id]])


def _times(node: Node, began: int) -> tuple[int, int | None]:
    start, end = node.span.start_ns, node.span.end_ns
    return max(0, start - began) // 1000, (end - start) // 1000 if end >= start > 0 else None


def _marks(node: Node) -> Iterator[str]:
    """Give what a reader should not miss in a row."""
    attributes, outcome = node.span.attributes, node.outcome
    status = attributes.get("http.response.status_code")
    if isinstance(outcome, Raised) or getattr(outcome, "exception", None) is not None:
        yield "failed"
    elif isinstance(status, int) and status >= 400:
        yield f"error {status}"
    elif node.span.status == STATUS_ERROR:
        yield "failed"
    if isinstance(outcome, Unfinished) and not node.call.is_structure:
        yield "answer not kept" if call_text.is_mute(node) else "no outcome"
    if isinstance(outcome, Streamed) and outcome.end is not StreamEnd.FINISHED:
        yield f"stream {outcome.end.value}"
    yield from _end_of_process(attributes)
    if attributes.get("reenact.replay.live"):
        yield "live"
    if attributes.get("reenact.evidence"):
        yield "not evidence"
    if node.orphan:
        yield "parent missing"


def _end_of_process(attributes: Mapping[str, Attribute]) -> Iterator[str]:
    if stopped := attributes.get(STOPPED):
        yield f"stopped by {stopped}"
    elif attributes.get(PROCESS_ROOT) and attributes.get("reenact.incomplete"):
        yield in_short(attributes)


def _stream(stream: Streamed) -> Json:
    """Give pieces, microseconds to the first one, and how it ended."""
    first = next((chunk.offset_us for chunk in stream.chunks), None)
    return [len(stream.chunks), first, stream.end.value]


def _usage(usage: Usage) -> Json:
    counts = {"in": usage.prompt, "out": usage.completion, "reasoning": usage.reasoning, "cached": usage.cache_read}
    return {name: count for name, count in counts.items() if count is not None}


def _question(ask: Asked) -> str:
    first = next(iter(ask.inputs), None)
    if first is not None:
        more = f" and {len(ask.inputs) - 1} more" if len(ask.inputs) > 1 else ""
        return first[: 4 * _SUMMARY] + more
    return call_text.message(ask.messages[-1]) if ask.messages else ""


def _answer(node: Node, reply: Answered | None) -> str:
    if reply is not None and reply.vectors:
        return f"{len(reply.vectors)} vectors of {len(reply.vectors[0])}"
    if reply is not None and any(message.parts for message in reply.messages):
        return " ".join(filter(None, map(call_text.message, reply.messages)))
    return call_text.outcome(node)


def _short(text: str) -> str:
    """Cut a text to a line of the list."""
    line = flat(text[: 8 * _SUMMARY])
    return line if len(line) <= _SUMMARY and len(text) <= 8 * _SUMMARY else f"{line[: _SUMMARY - 1]}…"
