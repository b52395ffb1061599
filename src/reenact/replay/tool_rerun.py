"""A found tool that runs again in a replay: what comes of it is held against what was recorded."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from reenact.boundary.side_effects import replaced_in_a_replay
from reenact.contracts.redactor import Redactor
from reenact.errors import ReplayStopped
from reenact.replay.ledger import Ledger
from reenact.values import typed
from reenact.values.call import Chunk, ExceptionRecord, Outcome, Raised, Returned, Streamed, StreamEnd, Value
from reenact.values.child import steady
from reenact.values.classes import without_reprs
from reenact.values.difference import Absent, FieldDifference, differences
from reenact.values.evidence import outcome_from_attributes, outcome_to_attributes
from reenact.values.json import Json
from reenact.values.run import Node

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
Alike = Callable[[Node, Json, Json, Json], bool]
"""Tells that what a call came to is as recorded but for redaction: given what was recorded, what came, redacted, and
what came, raw."""


class Again:
    """One call that runs again. A difference goes to the ledger; the agent gets what its own code gave."""

    def __init__(
        self,
        node: Node,
        redactor: Redactor,
        ledger: Ledger,
        redacted_alike: Alike | None = None,
        facts: Mapping[str, Json] = MappingProxyType({}),
    ) -> None:
        """Compare with `node`; `facts` is said of a difference too."""
        self._facts = dict(facts)
        self._node, self._redactor, self._ledger = node, redactor, ledger
        self._redacted_alike = redacted_alike
        self._pieces: list[Json] = []

    def piece(self, value: Json) -> None:
        """Hear what a generator yielded."""
        self._pieces.append(value)

    def returned(self, outcome: Outcome) -> None:
        """Compare a result."""
        if isinstance(outcome, Returned) and isinstance(outcome.payload, Value):
            self._compare(outcome)

    def raised(self, error: BaseException) -> None:
        """Compare an exception. What stops the replay is told already."""
        if not isinstance(error, ReplayStopped):
            self._compare(Raised(exception=typed.encode_exception(error)))

    def ended(self, end: StreamEnd, error: BaseException | None, result: Json) -> None:
        """Compare what a generator yielded and how it ended."""
        if isinstance(error, ReplayStopped):
            return
        raised = typed.encode_exception(error) if error is not None else None
        chunks = tuple(Chunk(offset_us=0, order=0, value=piece) for piece in self._pieces)
        self._compare(Streamed(chunks=chunks, end=end, exception=raised, result=result))

    def _redact(self, outcome: Outcome) -> Outcome:
        """Redact what came as the recorder does: a policy may go by the tool and the place."""
        around: dict[str, Any] = {
            "openinference.span.kind": self._node.kind.value,
            "reenact.boundary": "function",
            "tool.name": self._node.call.name,
        }
        spelled = outcome_to_attributes(self._node.call.request, outcome)
        return outcome_from_attributes(self._redactor.attributes({**around, **spelled}))

    def _compare(self, outcome: Outcome) -> None:
        is_child = self._node.call.is_child
        live, recorded = _recorded(outcome, is_child=is_child), _recorded(self._node.outcome, is_child=is_child)
        came = _recorded(self._redact(outcome), is_child=is_child)
        if next(iter(recorded), "") != next(iter(came), ""):
            difference = FieldDifference(path="outcome", a=recorded, b=came)
        else:
            difference = next(differences(without_reprs(recorded), without_reprs(came)), None)
        if difference is None or (
            self._redacted_alike is not None
            and self._redacted_alike(self._node, without_reprs(recorded), without_reprs(came), without_reprs(live))
        ):
            return
        sides = {"recorded": difference.a, "replay": difference.b}
        self._ledger.note(
            "changed",
            id=self._node.id,
            call=self._node.label,
            field=difference.path,
            **self._facts,
            absent=[side for side, value in sides.items() if isinstance(value, Absent)],
            **{side: None if isinstance(value, Absent) else value for side, value in sides.items()},
        )


def _recorded(outcome: Outcome, *, is_child: bool) -> dict[str, Json]:
    match outcome:
        case Returned(payload=Value(json=json)):
            return {"result": steady(json) if is_child else json}
        case Raised(exception=exception):
            return {"raised": _spelled(exception)}
        case Streamed(chunks=chunks, end=end, exception=exception, result=result):
            raised = _spelled(exception) if exception is not None else None
            return {"yielded": [chunk.value for chunk in chunks], **_ending(end, raised, result)}
        case _:
            return {}


def _ending(end: StreamEnd, raised: Json, result: Json) -> dict[str, Json]:
    ended: dict[str, Json] = {"end": end.value}
    if raised is not None:
        ended["raised"] = raised
    if result is not None:
        ended["result"] = result
    return ended


def _spelled(exception: ExceptionRecord) -> Json:
    return {
        "type": f"{exception.module}.{exception.qualname}",
        "message": _ADDRESS.sub("0x", exception.message),
    }


def unmake(paths: Iterable[str]) -> None:
    """Take away, in the copy, what a child made when recorded: it is about to make it again."""
    with replaced_in_a_replay():
        for path in map(Path, paths):
            with suppress(OSError):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink()
