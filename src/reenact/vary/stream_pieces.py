"""A stream comes in other pieces: all at once, byte by byte, or cut in the middle of a character."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from reenact.contracts.perturbation import Perturbation, Subject
from reenact.values.answer import body_of
from reenact.values.call import Chunk, Streamed
from reenact.values.variation import Group, Variation

_MOST = 4096


def _vary(subject: Subject, chance: Random) -> Iterator[Variation]:
    outcome = subject.node.outcome
    if not isinstance(outcome, Streamed) or any(chunk.data is None for chunk in outcome.chunks):
        return
    body = body_of(outcome)
    if len(body) < 2:
        return
    middles = [at for at, byte in enumerate(body) if byte & 0xC0 == 0x80][:1]
    ways: list[tuple[list[int], str]] = [
        ([*range(1, min(len(body), _MOST))], "byte by byte"),
        (sorted(chance.sample(range(1, len(body)), min(7, len(body) - 1))), "in other pieces"),
        ([], "all at once"),
        (middles, "cut in the middle of a character"),
    ]
    once = _in_pieces(subject, outcome, body, [chance.randrange(1, len(body))], "in two pieces")
    for cuts, manner in ways:
        if cuts or manner == "all at once":
            yield replace(_in_pieces(subject, outcome, body, cuts, manner), smaller=(once,))
    yield once


def _in_pieces(subject: Subject, outcome: Streamed, body: bytes, cuts: list[int], manner: str) -> Variation:
    """Cut a body anew; each piece is released where the recorded piece was that its first byte came in."""
    chunks: list[Chunk] = []
    ends: list[tuple[int, Chunk]] = []
    length = 0
    for chunk in outcome.chunks:
        length += len(chunk.data or b"")
        ends.append((length, chunk))
    at = 0
    for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True):
        while ends[at][0] <= start and at < len(ends) - 1:
            at += 1
        chunks.append(replace(ends[at][1], data=body[start:end]))
    cut = replace(outcome, chunks=tuple(chunks))
    variation = subject.answering("stream pieces", cut, f"the stream comes {manner}", size=len(cuts) or 2)
    return replace(variation, group=Group.TIMING)


STREAM_PIECES = Perturbation(
    name="stream pieces",
    groups=frozenset({Group.TIMING}),
    does="a stream comes in other pieces",
    of_call=_vary,
)
