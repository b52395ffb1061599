"""After the first divergence: whether a replay goes on, and with what.

What follows is worth less than what came before. The answer of the call that a missed one resembles most was given to
another question, and is no evidence; a model that is asked live gives one sample of what it may say. Spans and ledger
say which is which.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final

from reenact.boundary.question import Question
from reenact.replay.policy import MODELS, After
from reenact.replay.stubs import Stub
from reenact.values.call import Call, HttpRequest, Unfinished
from reenact.values.json import Json
from reenact.values.lenient import as_object

EVIDENCE: Final = "reenact.evidence"
"""The attribute of answers that are no evidence; its value is the policy that gave them."""


class Going(Enum):
    """How a replay goes on at a call that nobody recorded."""

    NOWHERE = "it stops"
    NEAREST = "with the answer of the nearest recorded call"
    LIVE = "with a live answer"


def going(after: After, call: Call) -> Going:
    """Say how a replay may go on at this call."""
    if after is After.NEAREST:
        return Going.NEAREST
    return Going.LIVE if after is After.LIVE_MODELS and call.kind in MODELS else Going.NOWHERE


def answers(call: Call, asked: Question) -> Callable[[Stub], bool]:
    """Make the test whether a recorded call's answer can be taken by `call` at all.

    It has to be of the same function, or of the same API and asked for in the same way: a stream is no whole reply.
    """
    streams = _streams(asked.asked)

    def fit(stub: Stub) -> bool:
        recorded = stub.node.call
        if isinstance(stub.node.outcome, Unfinished) or stub.question.kind is not asked.kind:
            return False
        if isinstance(call.request, HttpRequest):
            request = recorded.request
            of_the_api = isinstance(request, HttpRequest) and request.shape == call.request.shape
            return of_the_api and _streams(stub.question.asked) == streams
        return not isinstance(recorded.request, HttpRequest) and recorded.name == call.name

    return fit


def _streams(asked: Json) -> bool:
    return bool(as_object(as_object(asked).get("body")).get("stream"))
