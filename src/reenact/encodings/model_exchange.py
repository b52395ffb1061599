"""What a call of a model asked and was answered, read out of its bodies by their shape: what every view begins with."""

from __future__ import annotations

from dataclasses import dataclass, field

from reenact.boundary.question import shape_named
from reenact.contracts.shape import Shape
from reenact.values.call import HttpReply, HttpRequest, Outcome, Returned, Streamed
from reenact.values.json import Json
from reenact.values.message import Answered, Asked


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelExchange:
    """One question and its answer."""

    shape: Shape
    body: Json
    """The request's."""
    asked: Asked
    reply: Json = None
    """The reply's body, a stream folded; None where there is none."""
    answered: Answered = field(default_factory=Answered)
    status: int | None = None
    """The reply's, where there is one."""
    folded: bool = False
    """The reply came as a stream."""


def model_exchange(request: HttpRequest, outcome: Outcome) -> ModelExchange | None:
    """Read what was asked and answered; None where nobody knows the shape."""
    shape = shape_named(request.shape)
    if shape is None:
        return None
    from reenact.boundary.reading import whole
    from reenact.boundary.resource import asked_at

    body = shape.decode_request(request.body.data)
    asked = asked_at(request.url, shape, body)
    match outcome:
        case Returned(payload=HttpReply() as answer):
            reply, status = whole(shape, answer.body.data), answer.status
        case Streamed():
            reply, status = whole(shape, b"".join(chunk.data or b"" for chunk in outcome.chunks)), outcome.status
        case _:
            return ModelExchange(shape=shape, body=body, asked=asked)
    return ModelExchange(
        shape=shape,
        body=body,
        asked=asked,
        reply=reply,
        answered=shape.read_reply(reply),
        status=status,
        folded=isinstance(outcome, Streamed),
    )
