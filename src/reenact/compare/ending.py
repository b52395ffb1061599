"""How a run ended, and whether two ended alike."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence

from reenact.values.call import Raised
from reenact.values.difference import Absent, Divergence, divergence_to_json
from reenact.values.json import Json
from reenact.values.run import Node, Run

_FRAME = re.compile(r'^  File "([^"]+)", line (\d+)', re.MULTILINE)
_LEFT = ("SystemExit", "KeyboardInterrupt")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")


def is_root(node: Node, run: Run) -> bool:
    """Tell the node that stands for the whole run; a lone call with nothing around it is a call."""
    if node.span.attributes.get("reenact.run.root"):
        return True
    return run.root is not None and node.id == run.root.id and node.call.is_structure


def died_of(run: Run) -> str | None:
    """Say what a run died of, as `Class: message`, less memory addresses; None where it did not."""
    root = run.root
    if root is None:
        return None
    attributes = root.span.attributes
    if attributes.get("reenact.outcome") == "raised":
        return _ADDRESS.sub("0x", f"{attributes.get('exception.type')}: {attributes.get('exception.message')}")
    if isinstance(root.outcome, Raised):
        error = root.outcome.exception
        return _ADDRESS.sub("0x", f"{error.qualname}: {error.message}")
    return None


def crashed(
    recorded: Run, replay: Run | None, divergences: Sequence[Mapping[str, Json]], exit_code: int | None
) -> Iterator[dict[str, Json]]:
    """Yield the divergence of a program that died in its replay of what the recorded run did not die of.

    Only where `divergences` holds nothing but calls that are missing: it is why they are, and `crash` marks it.

    It says where: the innermost line of the program, and of no installed package, in the trace of the exception.
    """
    only_missing = bool(divergences) and all(
        each.get("kind") == "missing" and each.get("b") is None for each in divergences
    )
    died = died_of(replay) if replay is not None and exit_code and only_missing else None
    if replay is None or replay.root is None or died is None or died == died_of(recorded) or died.startswith(_LEFT):
        return
    divergence = divergence_to_json(of_run(recorded, replay, "outcome", died_of(recorded) or "went on", died))
    divergence["crash"] = True
    places = [
        (path, line)
        for event in replay.root.span.events
        for path, line in _FRAME.findall(str(event.attributes.get("exception.stacktrace", "")))
    ]
    own = [place for place in places if "site-packages" not in place[0] and f"{sys.prefix}/lib" not in place[0]]
    if own:
        divergence["where"] = ":".join(own[-1])
    yield divergence


def was_cut_off(run: Run) -> bool:
    """Tell whether the process was killed, so that the recording has no end."""
    return run.root is not None and bool(run.root.span.attributes.get("reenact.incomplete"))


def exit_code(run: Run) -> int | None:
    """Give the exit code of the process that the run was, where one was recorded."""
    code = run.root.span.attributes.get("process.exit.code") if run.root else None
    return code if isinstance(code, int) and not isinstance(code, bool) else None


def ending_differences(a: Run, b: Run) -> Iterator[Divergence]:
    """Yield in what the ends of two runs differ. A run that was cut off has no end to compare."""
    if a.root is None or b.root is None or was_cut_off(a) or was_cut_off(b):
        return
    died = died_of(a), died_of(b)
    if died[0] != died[1]:
        yield of_run(a, b, "outcome", died[0] or "ended", died[1] or "ended")
    codes = exit_code(a), exit_code(b)
    if codes[0] != codes[1] and None not in codes:
        yield of_run(a, b, "exit code", codes[0], codes[1])


def of_run(
    a: Run, b: Run, field: str, left: Json | Absent, right: Json | Absent, *, kind: str = "changed", text: bool = False
) -> Divergence:
    """Make the divergence of a field that is of the whole run and of no call; of a `text` it is one of wording."""
    return Divergence(
        kind=kind,
        call="run",
        field=field,
        a=left,
        b=right,
        structural=not text,
        node_a=a.root.id if a.root else None,
        node_b=b.root.id if b.root else None,
    )
