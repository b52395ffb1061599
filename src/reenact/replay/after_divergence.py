"""After the first divergence: whether a replay goes on, and with what.

What follows is worth less than what came before. The answer of the call that a missed one resembles most was given to
another question, and is no evidence; a model that is asked live gives one sample of what it may say. Spans and ledger
say which is which.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from typing import Final

from reenact.boundary.question import Question
from reenact.replay.policy import MODELS, After
from reenact.replay.stubs import Stub, Stubs
from reenact.values.call import Call, HttpRequest, Returned, Unfinished, Value
from reenact.values.json import Json
from reenact.values.lenient import as_object

EVIDENCE: Final = "reenact.evidence"
"""The attribute of answers that are no evidence; its value is the policy that gave them."""

ASSUMING: Final = frozenset({After.NEAREST, After.WRITES})
"""Policies that go on with answers to other questions."""


class Going(Enum):
    """How a replay goes on at a call that nobody recorded."""

    NOWHERE = "it stops"
    NEAREST = "with the answer of the nearest recorded call"
    WRITE = "as if a write had said what was recorded"
    LIVE = "with a live answer"


def going(after: After, call: Call) -> Going:
    """Say how a replay may go on at this call."""
    if after is After.WRITES and call.is_query:
        return Going.WRITE
    if after is After.NEAREST:
        return Going.NEAREST
    return Going.LIVE if after is After.LIVE_MODELS and call.kind in MODELS else Going.NOWHERE


def answers(call: Call, asked: Question) -> Callable[[Stub], bool]:
    """Make the test whether a recorded call's answer can be taken by `call` at all.

    It has to be of the same function, or of the same API and asked for in the same way: a stream is no whole reply.
    """
    streams = _streams(asked.asked)

    takes = takes_as(call) if call.is_query else None

    def fit(stub: Stub) -> bool:
        recorded = stub.node.call
        if takes is not None and takes(stub):
            return True
        if isinstance(stub.node.outcome, Unfinished) or stub.question.kind is not asked.kind:
            return False
        if isinstance(call.request, HttpRequest):
            request = recorded.request
            of_the_api = isinstance(request, HttpRequest) and request.shape == call.request.shape
            return of_the_api and _streams(stub.question.asked) == streams
        return not isinstance(recorded.request, HttpRequest) and recorded.name == call.name

    return fit


def takes_as(call: Call) -> Callable[[Stub], bool]:
    """Make the test whether a recorded write is `call` with other values, or a word of a transaction as that is one.

    A program learns of a write that it was made, and what the server gave it: of a statement that gives rows back only
    the same one can stand for it.
    """
    from reenact.values.query import writes  # most replays have none, or meet no other one

    wrote = writes(call)

    def fit(stub: Stub) -> bool:
        recorded = stub.node.call
        if wrote is None or not recorded.is_query or recorded.is_handshake is not call.is_handshake:
            return False
        write = writes(recorded)
        if write is None or not isinstance(stub.node.outcome, Returned):
            return False
        return write == wrote or (write.is_transaction and wrote.is_transaction and write.system == wrote.system)

    return fit


def word_for(call: Call, stubs: Stubs) -> Stub | None:
    """Make a stub for a word of a transaction that nobody recorded, from what a server said of another such word.

    It stands for no recorded call. A program that refuses something takes back what it began.
    """
    from reenact.values.query import said_of, statement, writes

    wrote = writes(call)
    if wrote is None or not wrote.is_transaction or call.is_handshake:
        return None
    fits = takes_as(call)
    alike = sorted(filter(fits, stubs.stubs.values()), key=lambda stub: not stubs.is_free(stub.node))
    for stub in alike:
        outcome = stub.node.outcome
        if isinstance(outcome, Returned) and isinstance(outcome.payload, Value):
            reply = replace(outcome.payload, json=said_of(statement(call), outcome.payload.json))
            return replace(stub, node=replace(stub.node, outcome=replace(outcome, payload=reply)))
    return None


def _streams(asked: Json) -> bool:
    return bool(as_object(as_object(asked).get("body")).get("stream"))
