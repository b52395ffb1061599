"""What a model call asked and was answered, read out of the recorded bodies with the call's shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

from reenact.boundary.question import PLAIN_HTTP, shape_named
from reenact.boundary.resource import asked_at
from reenact.contracts.shape import Shape
from reenact.values.call import CallKind, FunctionCall, HttpReply, HttpRequest, Returned, Streamed
from reenact.values.json import Json, parsed_or_none
from reenact.values.message import Answered, Asked
from reenact.values.run import Node

__all__ = ["answered", "asked", "frames", "is_plain", "reply_body", "reply_data", "shape_named", "shape_of", "whole"]

_MODELS = frozenset({CallKind.LLM, CallKind.EMBEDDING})
_MOST_BYTES: Final = 2 << 20
"""So many bytes of bodies are remembered; what is read of them takes some ten times as much memory."""
T = TypeVar("T")
_FRAMES = _MODELS | {CallKind.RERANKER}


class _Readings(Generic[T]):
    """What was read last of some bytes: a run is gone over many times, and each time all of its calls are asked for."""

    def __init__(self) -> None:
        self._readings: dict[tuple[str, bytes], T] = {}
        self._size = 0

    def read(self, key: tuple[str, bytes], read: Callable[[], T]) -> T:
        """Give what was read of a shape's body, or read it."""
        if key in self._readings:
            return self._readings[key]
        if self._size > _MOST_BYTES:
            self._readings, self._size = {}, 0
        reading = self._readings[key] = read()
        self._size += len(key[1])
        return reading


_requests: Final = _Readings[Asked | None]()
_replies: Final = _Readings[Answered | None]()


def shape_of(node: Node) -> Shape | None:
    """Find the shape that a call speaks, or None for a function and for a shape this version does not know."""
    request = node.call.request
    return shape_named(request.shape) if isinstance(request, HttpRequest) else None


def asked(node: Node) -> Asked | None:
    """Read what a model call asked, or None where the body says nothing."""
    request = node.call.request
    if not isinstance(request, HttpRequest) or (shape := shape_of(node)) is None:
        return None
    url, data = request.url, request.body.data
    return _requests.read((f"{shape.name} {url}", data), lambda: _as_request(shape, url, data))


def _as_request(shape: Shape, url: str, data: bytes) -> Asked | None:
    body = shape.decode_request(data)
    return asked_at(url, shape, body) if isinstance(body, dict) else None


def reply_body(node: Node) -> Json:
    """Give the reply body of a model call as one JSON document, a stream folded; None where there is none."""
    shape = shape_of(node)
    if shape is None and not is_plain(node):
        return None
    match node.outcome:
        case Returned(payload=HttpReply(body=body)):
            return parsed_or_none(body.data) if shape is None else whole(shape, body.data)
        case Streamed(chunks=chunks):
            data = b"".join(chunk.data or b"" for chunk in chunks)
            return parsed_or_none(data) if shape is None else whole(shape, data)
        case _:
            return None


def whole(shape: Shape, data: bytes) -> Json:
    """Give the reply that bytes hold: one document, or a stream folded.

    An error's body is often one document, whatever was asked for; and a client may have read a stream as a whole.
    """
    read = parsed_or_none(data)
    if isinstance(read, dict) or not data.strip():
        return read
    events = read if isinstance(read, list) else shape.framing.events(data)
    return shape.fold(events) if events else read


def is_plain(node: Node) -> bool:
    """Tell a request over HTTP to something that we know nothing of."""
    request = node.call.request
    return isinstance(request, HttpRequest) and request.shape == PLAIN_HTTP


def reply_data(node: Node) -> bytes:
    """Give the bytes of a reply over HTTP, a stream's pieces joined; empty where there is none."""
    match node.outcome:
        case Returned(payload=HttpReply(body=body)):
            return body.data
        case Streamed(chunks=chunks):
            return b"".join(chunk.data or b"" for chunk in chunks)
        case _:
            return b""


def answered(node: Node) -> Answered | None:
    """Read what a model call was answered, or None where there is no reply."""
    shape = shape_of(node)
    if shape is None:
        return None
    return _replies.read(
        (f"{shape.name} {type(node.outcome).__name__}", reply_data(node)), lambda: _as_reply(shape, reply_body(node))
    )


def _as_reply(shape: Shape, body: Json) -> Answered | None:
    return shape.read_reply(body) if isinstance(body, dict) else None


def frames(nodes: Iterable[Node]) -> frozenset[str]:
    """Find the model functions that only frame a provider's call which was recorded inside them, by id."""
    by_id = {node.id: node for node in nodes}
    frame_ids: set[str] = set()
    climbed: set[str] = set()
    """What is above those has been looked at."""
    for node in by_id.values():
        if node.kind not in _MODELS or isinstance(node.call.request, FunctionCall):
            continue
        above = node.parent
        while above is not None and above in by_id and above not in climbed:
            outer = by_id[above]
            if outer.kind in _FRAMES and isinstance(outer.call.request, FunctionCall):
                frame_ids.add(above)
            climbed.add(above)
            above = outer.parent
    return frozenset(frame_ids)
