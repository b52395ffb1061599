"""A call fails: the way to it breaks, the service is busy, or it has an error of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from reenact.contracts.perturbation import Perturbation, Subject
from reenact.values.call import (
    Body,
    ExceptionRecord,
    FunctionCall,
    HttpReply,
    Outcome,
    Raised,
    Returned,
    Value,
)
from reenact.values.difference import ABSENT, Absent
from reenact.values.json import Json, compact
from reenact.values.lenient import as_object, as_text
from reenact.values.run import Run
from reenact.values.variation import Edit, Group, Variation

_EVERY = frozenset({Group.TOOLS, Group.CHUNKS, Group.MODELS})
_TRIES = 12
"""So many further times a failing service fails, for clients that try again."""
_AT_ONCE = (("retry-after-ms", "1"), ("retry-after", "0"))
"""The service says that it may be tried again at once: nobody sleeps in a test."""
_OWN = {
    "TimeoutError": ("timed out", ("builtins:OSError", "builtins:Exception")),
    "ConnectionResetError": ("[Errno 104] Connection reset by peer", ("builtins:ConnectionError", "builtins:OSError")),
}


def _raising(subject: Subject, chance: Random) -> Iterator[Variation]:
    node = subject.node
    if isinstance(node.call.request, FunctionCall):
        names = [*_OWN]
        chance.shuffle(names)
        records = [
            ExceptionRecord(module="builtins", qualname=name, message=_OWN[name][0], bases=_OWN[name][1])
            for name in names
        ]
    else:
        records = [_of_client(subject.run, "ConnectError", "Connection refused")]
    for record in records:
        kind = f"{record.qualname}: {record.message}"
        variation = subject.answering("raises", Raised(exception=record), f"raises {kind}", fails=True)
        yield replace(_repeated(variation), path="raised", after=kind)


def _of_client(run: Run, name: str, message: str) -> ExceptionRecord:
    """Give an error of the HTTP client that the provider's SDK brings; of httpx2 where that is what it speaks."""
    libraries = as_object(run.surroundings.get("libraries"))
    newer = as_text(libraries.get("openai")).partition(".")[0] not in {"", "0", "1", "2"} and "httpx2" in libraries
    order = ("httpx2", "httpx") if newer else ("httpx", "httpx2")
    module, other = order
    bases = (f"{other}:{name}", "builtins:ConnectionError", "builtins:OSError", "builtins:Exception")
    return ExceptionRecord(module=module, qualname=name, message=message, bases=bases)


def _refusing(subject: Subject, chance: Random) -> Iterator[Variation]:
    node = subject.node
    statuses = [(429, "Too Many Requests"), (500, "Internal Server Error")]
    chance.shuffle(statuses)
    for status, phrase in statuses:
        status_line = f"{status} {phrase}"
        if isinstance(node.call.request, FunctionCall):
            error: Json = {"error": phrase, "status": status}
            outcome: Outcome = Returned(payload=Value(json=error))
            words, size = (
                f"an error in place of a result: {status_line}",
                max([2, *(place.leaves for place in subject.places)]),
            )
            variation = subject.answering("error", outcome, words, fails=True, size=size)
            yield replace(variation, path="result", before=subject.value, after=error)
            continue
        refusal = _refusal(status, phrase)
        variation = _repeated(subject.answering("error", refusal, f"{status_line}, every time", fails=True))
        yield replace(variation, path="status", before=_status(node.outcome), after=status)
        edit = Edit(node=node.id, outcome=refusal, before=True)
        yield replace(subject.answering("error", refusal, f"{status_line}, once"), edits=(edit,))


def _status(outcome: Outcome) -> Json | Absent:
    status = getattr(getattr(outcome, "payload", outcome), "status", None)
    return status if isinstance(status, int) else ABSENT


def _repeated(variation: Variation) -> Variation:
    return replace(variation, edits=tuple(replace(edit, repeats=_TRIES) for edit in variation.edits))


def _refusal(status: int, phrase: str) -> Outcome:
    error: Json = {"error": {"message": phrase, "type": "error", "param": None, "code": str(status)}}
    headers = (("content-type", "application/json"), *_AT_ONCE)
    return Returned(payload=HttpReply(status=status, headers=headers, body=Body(compact(error).encode())))


RAISES = Perturbation(name="raises", groups=_EVERY, does="the way to a service breaks", of_call=_raising)
ERROR = Perturbation(name="error", groups=_EVERY, does="a service answers 429 or 500", of_call=_refusing)
