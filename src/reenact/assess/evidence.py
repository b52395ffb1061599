"""What of a replay is evidence: how far it is the code's own doing on recorded answers, and how it came to its end.

A question that the code asks is evidence even where nobody recorded the answer: everything it was made from was the
same. What the code does with the answer to another question is none.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from reenact.boundary.reading import frames
from reenact.values.call import Raised, Streamed, StreamEnd, Unfinished
from reenact.values.judgement import ReplayResult
from reenact.values.run import Node, Run

_MISTAKES: Final = (
    ArithmeticError,
    AttributeError,
    ImportError,
    LookupError,
    MemoryError,
    NameError,
    NotImplementedError,
    RecursionError,
    SyntaxError,
    SystemError,
    TypeError,
    UnicodeError,
)
"""Exceptions that no program raises to refuse something. Any other may be how a fix refuses."""


MET_BY: Final = ("reenact.replay.answered_by", "reenact.replay.ran_again", "reenact.replay.instead_of")
"""Attributes of a replay's call that name the recorded one which it stands for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a replay proves."""

    run: Run
    """The replay's run up to where it stops being evidence; what came of its last calls is left out."""
    complete: bool
    """The program came to an end of its own within it."""
    met: frozenset[str]
    """Ids of the recorded calls that it made again."""
    ended_by: str = ""
    """What the program died of and the recorded one did not, where that looks like a mistake in it."""
    live: bool = False
    """Some of its answers are live."""


def evidence(recorded: Run, replayed: Run, result: ReplayResult) -> Evidence:
    """Cut a replay to what is evidence."""
    stopped = any(miss.get("onward") is None for miss in result.misses) or bool(result.refused)
    crash = "" if stopped else _crash(recorded, replayed, result)
    complete = not (stopped or crash or result.ended_with or _is_cut_off(replayed))
    run = replayed
    beyond = min((node.number for node in replayed.nodes if _is_beyond(node)), default=None)
    if beyond is not None:
        run, complete = _up_to(replayed, beyond), False
    return Evidence(
        run=run,
        complete=complete,
        met=frozenset(made_again(replace(run, nodes=tuple(node for node in run.nodes if not _is_beyond(node))))),
        ended_by=crash,
        live=any(node.span.attributes.get("reenact.replay.live") is True for node in run.nodes),
    )


def came_to_its_end(recorded: Run, replayed: Run, result: ReplayResult) -> bool:
    """Tell whether the program came to an end of its own, on whatever answers."""
    stopped = any(miss.get("onward") is None for miss in result.misses) or bool(result.refused)
    return not (stopped or result.ended_with or _is_cut_off(replayed) or _crash(recorded, replayed, result))


def is_complete(run: Run) -> bool:
    """Tell whether a recording has an end."""
    return not _is_cut_off(run)


def owed(recorded: Run) -> list[Node]:
    """Give the calls of a recording that a replay makes, in causal order: no structure, no frame around a call."""
    outer = frames(recorded.nodes)
    root = recorded.root
    return [
        node
        for node in recorded.nodes
        if not node.call.is_structure and node.id not in outer and not (node is root and _is_marked(node))
    ]


def made_again(run: Run) -> Iterator[str]:
    """Give the ids of the recorded calls that a replay made again, evidence or not."""
    for node in run.nodes:
        for name in MET_BY:
            if isinstance(call_id := node.span.attributes.get(name), str):
                yield call_id


def _is_beyond(node: Node) -> bool:
    return node.span.attributes.get("reenact.evidence") is not None


def _is_marked(node: Node) -> bool:
    return bool(node.span.attributes.get("reenact.run.root"))


def _is_cut_off(run: Run) -> bool:
    return run.root is not None and bool(run.root.span.attributes.get("reenact.incomplete"))


def _up_to(run: Run, beyond: int) -> Run:
    """Leave out what was asked after the call with this number, and what came of it and of all that ended later."""
    last = next(node for node in run.nodes if node.number == beyond)
    nodes: list[Node] = []
    for node in run.nodes:
        if node.number > beyond:
            break
        over = node is not last and not node.call.is_structure and node.span.end_ns <= last.span.start_ns
        nodes.append(node if over else replace(node, outcome=_so_far(node, last.span.start_ns)))
    root = next((node for node in nodes if run.root is not None and node.id == run.root.id), None)
    return replace(run, nodes=tuple(nodes), root=root)


def _so_far(node: Node, until_ns: int) -> Streamed | Unfinished:
    """Give what an open call had come to by then."""
    outcome = node.outcome
    if not isinstance(outcome, Streamed) or _is_beyond(node):
        return Unfinished()
    elapsed_us = (until_ns - node.span.start_ns) // 1000
    chunks = tuple(chunk for chunk in outcome.chunks if chunk.offset_us <= elapsed_us)
    return replace(outcome, chunks=chunks, end=StreamEnd.UNFINISHED, exception=None, result=None)


def _crash(recorded: Run, replayed: Run, result: ReplayResult) -> str:
    """Say by what mistake, or signal, the program died, if the recorded one did not."""
    code = result.exit_code
    if code is not None and code < 0 and code != result.recorded_exit:
        return f"signal {-code}"
    died = _died_of(replayed)
    if died is None or died == _died_of(recorded):
        return ""
    kind = getattr(builtins, died[0].rpartition(".")[2], None)
    return f"{died[0]}: {died[1]}" if isinstance(kind, type) and issubclass(kind, _MISTAKES) else ""


def _died_of(run: Run) -> tuple[str, str] | None:
    root = run.root
    if root is None:
        return None
    attributes = root.span.attributes
    if attributes.get("reenact.outcome") == "raised":
        return str(attributes.get("exception.type")), str(attributes.get("exception.message"))
    if isinstance(root.outcome, Raised):
        return root.outcome.exception.qualname, root.outcome.exception.message
    return None
