"""Changing what came back over HTTP: what a model said, any field of the reply, its status, one piece of a stream.

A changed reply to a call that streamed is spelled as a stream again, by its shape, and its pieces are released where
the recorded ones were.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from http import HTTPStatus

from reenact.boundary.reading import asked, reply_body, reply_data, shape_of
from reenact.contracts.shape import SSE, Shape, Wording
from reenact.replay.set_function import exception
from reenact.values import sse
from reenact.values.call import Body, Chunk, HttpReply, Outcome, Raised, Returned, Streamed, StreamEnd
from reenact.values.change import CannotSet
from reenact.values.difference import ABSENT, Absent
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.json_path import Path, value_at, with_value
from reenact.values.lenient import as_count, as_list, as_object, as_text, text_or_json, text_or_none
from reenact.values.message import Said, ToolCall
from reenact.values.run import Node

_JSON = (("content-type", "application/json"),)
_WORDS = frozenset({"text", "tool_calls", "finish_reason"})
_REFUSALS = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
_WHOLE = frozenset({"reply", "body"})
_ERROR = 400
_EVENT = re.compile(rb"(?:[^\r\n]+(?:\r\n|\n|\r))+(?:\r\n|\n|\r)*|[^\r\n]+$")


def changed(node: Node, steps: Path, value: Json) -> Outcome:
    """Give the outcome of a call over HTTP with `value` at `steps`. Raises `ValueError` where there is no such place.

    The first step is one of `text`, `tool_calls`, `finish_reason` (of a model's reply, whatever its provider),
    `reply`, `body`, `status`, `headers`, `chunks`, `events`, `raised`; any other is a place in the reply's JSON.
    """
    match steps:
        case ("raised",):
            return Raised(exception=exception(value))
        case ("status",):
            return _with_status(node, value)
        case ("headers", *rest):
            return _with_headers(node.outcome, tuple(rest), value)
        case ("body",):
            return _with_bytes(node.outcome, text_or_json(value).encode("utf-8", "surrogatepass"))
        case ("chunks", *rest):
            return _with_chunks(_stream(node), tuple(rest), value)
        case ("events", *rest):
            return _with_events(_stream(node), tuple(rest), value)
        case _:
            return _with_reply(node, _reply(node, steps, value))


def value(node: Node, steps: Path, body: Json) -> Json | Absent:
    """Give what lies at `steps` of an outcome whose reply is `body`, or ABSENT."""
    outcome = node.outcome
    head = outcome.payload if isinstance(outcome, Returned) and isinstance(outcome.payload, HttpReply) else outcome
    match steps:
        case ("raised",):
            error = outcome.exception if isinstance(outcome, Raised | Streamed) else None
            return f"{error.qualname}: {error.message}" if error is not None else ABSENT
        case ("status",):
            return head.status if isinstance(head, HttpReply | Streamed) else ABSENT
        case ("headers", *rest):
            pairs = head.headers if isinstance(head, HttpReply | Streamed) else ()
            return value_at({name.lower(): each for name, each in pairs}, tuple(rest))
        case ("body",):
            return reply_data(node).decode("utf-8", "replace")
        case ("chunks", *rest):
            chunks = outcome.chunks if isinstance(outcome, Streamed) else ()
            return value_at([(chunk.data or b"").decode("utf-8", "replace") for chunk in chunks], tuple(rest))
        case ("events", *rest):
            return value_at(sse.json_events(reply_data(node)), tuple(rest))
        case (str(word), *_) if (wording := _wording(node, word)) is not None:
            return value_at(_in_short(wording.read(body)), steps)
        case _:
            return value_at(body, steps[1:] if steps[0] in _WHOLE else steps)


def _wording(node: Node, word: str) -> Wording | None:
    """Give how a model's reply is reworded, where a first step is a word for what it says."""
    shape = shape_of(node)
    return shape.wording if shape is not None and word in _WORDS else None


def _reply(node: Node, steps: Path, value: Json) -> Json:
    body = reply_body(node)
    if steps in {("reply",), ()}:
        return value
    if isinstance(steps[0], str) and (wording := _wording(node, steps[0])) is not None:
        return _saying(wording, _model_alone(node) if body is None else body, steps, value)
    if body is None:
        raise CannotSet("the recording has no reply of it in JSON; set `reply`, or `body`, as a whole")
    if steps[0] in _WHOLE:
        return with_value(body, steps[1:], value)
    if isinstance(value_at(body, steps[:1]), Absent):
        raise CannotSet(f"its reply has no {steps[0]}")
    return with_value(body, steps, value)


def _model_alone(node: Node) -> Json:
    """Give a reply that says nothing yet, where there was none."""
    question = asked(node)
    return {"model": question.model} if question is not None and question.model else {}


def _in_short(reply: Said) -> dict[str, Json]:
    calls: list[Json] = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in reply.calls]
    return {"text": reply.text, "tool_calls": calls, "finish_reason": reply.finish}


def _saying(wording: Wording, body: Json, steps: Path, value: Json) -> Json:
    """Reword a reply. Where it now calls tools and did not, or the other way round, its reason to end goes along."""
    before = wording.read(body)
    if steps[0] == "tool_calls" and value is None:
        value = []
    short_form = as_object(with_value(_in_short(before), steps, value))
    new_reply = Said(
        text=None if short_form.get("text") is None else text_or_json(short_form.get("text")),
        calls=tuple(_tool_call(each, at) for at, each in enumerate(as_list(short_form.get("tool_calls")))),
        finish=text_or_none(short_form.get("finish_reason")),
    )
    if bool(new_reply.calls) != bool(before.calls) and new_reply.finish == before.finish:
        new_reply = replace(new_reply, finish=wording.finishes[0 if new_reply.calls else 1])
    return wording.write(body, new_reply)


def _tool_call(value: Json, at: int) -> ToolCall:
    fields = as_object(value)
    name = as_text(fields.get("name"))
    if not name:
        raise CannotSet(f"tool_calls[{at}] has no name: it is an object with name and arguments")
    arguments = fields.get("arguments", {})
    return ToolCall(id=as_text(fields.get("id")) or f"call_set_{at}", name=name, arguments=text_or_json(arguments))


def _with_reply(node: Node, body: Json) -> Outcome:
    shape, outcome = shape_of(node), node.outcome
    whole = reply_data(node).lstrip()[:1] in {b"{", b"["}  # a whole reply, read piece by piece
    if isinstance(outcome, Streamed) and outcome.chunks and shape is not None and not whole:
        if shape.unfold is None:
            raise CannotSet("its stream cannot be made of a whole reply; set events[n] or chunks[n]")
        return _streaming(outcome, _pieces(shape, body))
    data = compact(body).encode("utf-8", "replace")
    if isinstance(outcome, Returned | Streamed):
        return _with_bytes(outcome, data)
    return Returned(payload=HttpReply(status=200, headers=_JSON, body=Body(data)))


def _pieces(shape: Shape, body: Json) -> list[bytes]:
    if shape.unfold is None or not isinstance(body, dict):
        raise CannotSet("a model's reply is a JSON object")
    unfolded = shape.unfold(body)
    return _EVENT.findall(unfolded) if shape.framing is SSE else [unfolded]


def _streaming(outcome: Streamed, pieces: Sequence[bytes]) -> Streamed:
    """Put pieces where the recorded ones were; the last place takes all that is left, and the stream ends well."""
    places = outcome.chunks
    place_bytes = [*pieces[: len(places) - 1], b"".join(pieces[len(places) - 1 :])]
    chunks = tuple(replace(place, data=data) for place, data in zip(places, place_bytes, strict=False) if data)
    return replace(outcome, chunks=chunks, end=StreamEnd.FINISHED, exception=None)


def _with_bytes(outcome: Outcome, data: bytes) -> Outcome:
    if isinstance(outcome, Streamed):
        if not outcome.chunks:
            return Returned(payload=HttpReply(status=outcome.status, headers=outcome.headers, body=Body(data)))
        return _streaming(outcome, [data])
    reply = outcome.payload if isinstance(outcome, Returned) and isinstance(outcome.payload, HttpReply) else None
    if reply is None:
        return Returned(payload=HttpReply(status=200, headers=_JSON, body=Body(data)))
    return Returned(payload=replace(reply, body=Body(data)))


def _with_status(node: Node, value: Json) -> Outcome:
    """Set the status. A refusal of a call that was answered well says so in its body, until `body` says otherwise."""
    status = as_count(value)
    if status is None or not 100 <= status <= 599:
        raise CannotSet(f"a status is a number from 100 to 599, not {compact(value)}")
    outcome = node.outcome
    was = _status(outcome)
    if status >= _ERROR and (was is None or was < _ERROR):
        why = f"{status} {HTTPStatus(status).phrase}" if status in set(HTTPStatus) else str(status)
        kind = _REFUSALS.get(status, "api_error")
        error: Json = {"type": "error", "error": {"type": kind, "message": why, "param": None, "code": kind}}
        return Returned(payload=HttpReply(status=status, headers=_JSON, body=Body(compact(error).encode())))
    if isinstance(outcome, Streamed):
        return replace(outcome, status=status)
    reply = outcome.payload if isinstance(outcome, Returned) and isinstance(outcome.payload, HttpReply) else None
    old_reply = reply or HttpReply(status=status, headers=_JSON, body=Body(b"{}"))
    return Returned(payload=replace(old_reply, status=status))


def _status(outcome: Outcome) -> int | None:
    if isinstance(outcome, Returned) and isinstance(outcome.payload, HttpReply):
        return outcome.payload.status
    return outcome.status if isinstance(outcome, Streamed) else None


def _with_headers(outcome: Outcome, steps: Path, value: Json) -> Outcome:
    match steps:
        case (str(name),):
            new_headers = {name.lower(): value}
        case ():
            new_headers = {name.lower(): each for name, each in as_object(value).items()}
        case _:
            raise CannotSet("a header is named headers.NAME")
    reply = outcome.payload if isinstance(outcome, Returned) else outcome
    if not isinstance(reply, HttpReply | Streamed):
        raise CannotSet("the recording has no reply of it; set `status` or `reply` first")
    left = [pair for pair in reply.headers if pair[0].lower() not in new_headers]
    headers = (*left, *((name, text_or_json(each)) for name, each in new_headers.items() if each is not None))
    changed = replace(reply, headers=headers)
    return changed if isinstance(changed, Streamed) else Returned(payload=changed)


def _stream(node: Node) -> Streamed:
    if isinstance(node.outcome, Streamed) and node.outcome.chunks:
        return node.outcome
    raise CannotSet("it did not stream")


def _with_chunks(outcome: Streamed, steps: Path, value: Json) -> Outcome:
    """Set a piece as it came, the list of them, or a place in the one event that a piece holds."""
    if len(steps) > 1 and isinstance(steps[0], int):
        place = _at(steps[0], len(outcome.chunks), "chunks")
        return _with_events(outcome, (_only_event(outcome, place), *steps[1:]), value)
    texts: list[Json] = [(chunk.data or b"").decode("utf-8", "surrogateescape") for chunk in outcome.chunks]
    changed = with_value(texts, steps, value)
    last = outcome.chunks[-1]
    chunks = [
        replace(outcome.chunks[at], data=_bytes(text)) if at < len(texts) else replace(last, order=0, data=_bytes(text))
        for at, text in enumerate(as_list(changed))
    ]
    return replace(outcome, chunks=tuple(chunk for chunk in chunks if chunk.data))


def _bytes(text: Json) -> bytes:
    return text_or_json(text).encode("utf-8", "surrogateescape" if isinstance(text, str) else "replace")


def _at(step: int, count: int, what: str) -> int:
    if not -count <= step < count:
        raise CannotSet(f"it has {count} {what}, and no {what}[{step}]")
    return step % count


def _only_event(outcome: Streamed, place: int) -> int:
    """Give the number of the one event that lies in a piece."""
    data = b"".join(chunk.data or b"" for chunk in outcome.chunks)
    start = sum(len(chunk.data or b"") for chunk in outcome.chunks[:place])
    end = start + len(outcome.chunks[place].data or b"")
    inside = [at for at, (first, last) in enumerate(_events(data)) if start <= first and last <= end]
    if len(inside) != 1:
        raise CannotSet(f"chunks[{place}] holds {len(inside)} whole events; name one as events[n]")
    return inside[0]


def _events(data: bytes) -> list[tuple[int, int]]:
    """Find where in a stream each event with data in JSON lies: those that `sse.json_events` gives."""
    return [match.span() for match in _EVENT.finditer(data) if sse.json_events(match[0] + b"\n\ndata: 0\n\n")[:-1]]


def _with_events(outcome: Streamed, steps: Path, value: Json) -> Outcome:
    data = b"".join(chunk.data or b"" for chunk in outcome.chunks)
    spans = _events(data)
    if not steps or not isinstance(steps[0], int):
        raise CannotSet("an event of a stream is named events[n]")
    first, last = spans[_at(steps[0], len(spans), "events")]
    event = sse.split(data[first:last])[0]
    event_json = with_value(parsed_or_none(event.data), steps[1:], value)
    name = f"event: {event.name}\n" if event.name else ""
    return _spliced(outcome, first, last, f"{name}data: {compact(event_json)}\n\n".encode("utf-8", "replace"))


def _spliced(outcome: Streamed, first: int, last: int, new: bytes) -> Streamed:
    """Replace a range of a stream's bytes; what replaces it comes with the piece in which the range began."""
    chunks: list[Chunk] = []
    start = 0
    for chunk in outcome.chunks:
        data = chunk.data or b""
        end = start + len(data)
        before, after = data[: max(0, first - start)], data[max(0, last - start) :]
        middle = new if start <= first < end else b""
        chunks.append(replace(chunk, data=before + middle + after) if start < last and end > first else chunk)
        start = end
    return replace(outcome, chunks=tuple(chunk for chunk in chunks if chunk.data))
