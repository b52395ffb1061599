"""A stream is cut: the connection breaks, or the stream ends as if it were whole, before the last piece."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from reenact.contracts.perturbation import Perturbation, Subject
from reenact.values.call import Chunk, ExceptionRecord, FunctionCall, Streamed, StreamEnd
from reenact.values.lenient import as_object, as_text
from reenact.values.run import Run
from reenact.values.variation import Group, Variation

_BROKEN = "peer closed connection without sending complete message body (incomplete chunked read)"


def _vary(subject: Subject, chance: Random) -> Iterator[Variation]:
    outcome = subject.node.outcome
    if not isinstance(outcome, Streamed) or outcome.end is not StreamEnd.FINISHED or not outcome.chunks:
        return
    events = _events(outcome.chunks)
    count = len(events)
    nearly = dict.fromkeys(max(0, each) for each in (count - 1, count - 2, count - 3, count - 4, count - count // 4))
    lesser = [[_cut(subject, outcome, events, at, broken=broken) for at in nearly] for broken in (False, True)]
    cut_places = [len(events) // 2, chance.randrange(len(events)), len(events) // 4, 0]
    for at in dict.fromkeys(cut_places):
        for broken in (False, True):
            yield replace(_cut(subject, outcome, events, at, broken=broken), smaller=tuple(lesser[broken]))


def _events(chunks: tuple[Chunk, ...]) -> list[Chunk]:
    """Part pieces into the events that they hold, so that a cut falls between two of them."""
    events: list[Chunk] = []
    for chunk in chunks:
        data = chunk.data
        if data is None or data.count(b"\n\n") < 2:
            events.append(chunk)
            continue
        pieces = data.split(b"\n\n")
        events += [replace(chunk, data=piece + b"\n\n") for piece in pieces[:-1]]
        events += [replace(chunk, data=pieces[-1])] if pieces[-1] else []
    return events


def _cut(subject: Subject, outcome: Streamed, events: list[Chunk], length: int, *, broken: bool) -> Variation:
    lost = len(events) - length
    how = "breaks off" if broken else "ends, as if it were whole,"
    cut = replace(
        outcome,
        chunks=tuple(events[:length]),
        end=StreamEnd.RAISED if broken else StreamEnd.FINISHED,
        exception=_broken(subject.run, subject) if broken else None,
        result=None,
    )
    description = f"the stream {how} after {length} of {len(events)} pieces"
    return replace(subject.answering("cut stream", cut, description, fails=True, size=lost), group=Group.TIMING)


def _broken(run: Run, subject: Subject) -> ExceptionRecord:
    if isinstance(subject.node.call.request, FunctionCall):
        bases = ("builtins:ConnectionError", "builtins:OSError", "builtins:Exception")
        message = "[Errno 104] Connection reset by peer"
        return ExceptionRecord(module="builtins", qualname="ConnectionResetError", message=message, bases=bases)
    libraries = as_object(run.surroundings.get("libraries"))
    newer = as_text(libraries.get("openai")).partition(".")[0] not in {"", "0", "1", "2"} and "httpx2" in libraries
    module, other = ("httpx2", "httpx") if newer else ("httpx", "httpx2")
    bases = (f"{other}:RemoteProtocolError", "builtins:ConnectionError", "builtins:OSError", "builtins:Exception")
    return ExceptionRecord(module=module, qualname="RemoteProtocolError", message=_BROKEN, bases=bases)


CUT_STREAM = Perturbation(name="cut stream", groups=frozenset({Group.TIMING}), does="a stream is cut", of_call=_vary)
