"""Tools that were found and not declared: what their spans say of them, and which of them run again in a replay.

A found tool runs again where the world of the replay is sealed and the tool is known to touch nothing outside the
process. That nobody saw it touch anything is no knowledge: native code is seen by nobody. Every other one is answered
from the recording, and what it changed in memory is put back. Where that could not be written down, every call that can
reach the same state is answered too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple, Self

from reenact.values.call import Raised, Streamed, StreamEnd, Unfinished
from reenact.values.json import parsed_or_none
from reenact.values.lenient import as_list, as_object
from reenact.values.run import Node

FOUND = "reenact.tool.found"
"""The tool has no decorator: it was found by its name in the model's tool schemas."""
TOUCHED = "reenact.tool.touched"
"""JSON list: what it did outside the process while it ran, such as `write notes.txt`."""
HELD = "reenact.tool.held"
"""JSON list: open connections, files and the like that it can reach, whose use raises no audit event."""
CHANGED = "reenact.tool.changed"
"""JSON list: names of in-process state that was not the same after it ran."""
STATE = "reenact.tool.state"
"""JSON list: names of in-process state that it can reach."""
REACHES = "reenact.tool.reaches"
"""JSON list: what it can reach that may act outside, such as `psycopg.connect`; empty where its code is known to touch
nothing, absent where nobody asked."""
AFTER = "reenact.tool.after"
"""JSON: what it changed in memory, spelled by `boundary.aftermath` so that an answer can put it back; absent where that
could not be spelled."""
UNSPELLED = "reenact.tool.unspelled"
"""Why the change that a declared tool made in memory could not be written down, and an answer does not put it back."""
PRINTED = "reenact.tool.printed"
"""JSON list of `[stream, text, pieces before it]`: what it wrote to standard output and error."""
TAKEN = "reenact.tool.stdin"
"""JSON list of one number: how many characters of the standard input it took; an answer takes as many."""
LEFT_OUT = "reenact.tool.left_out"
"""JSON list: parameters that a framework filled in and no schema offers; they are no part of the question."""
SOURCE = "reenact.function.source"
"""A digest of the source of the function and of the agent's own code that it names; absent where nothing is known."""
FOLDER = "reenact.tool.folder"
"""The attribute of a tool that left its process in another working folder: which one. An answer does not."""
DREW = "reenact.tool.drew"
"""The attribute of a tool that drew from generators which the program had seeded: their names. An answer does not."""
FILES = "reenact.tool.files"
"""JSON list: `{"path": …, "before": …, "after": …}` of each file that it changed (`values.tool_files`)."""
OF_FOUND = (TOUCHED, HELD, CHANGED, STATE, REACHES, AFTER, UNSPELLED, PRINTED, FOLDER, DREW, TAKEN, FILES)


def is_found(node: Node) -> bool:
    """Tell whether this is a call of a tool that was found and not declared."""
    return bool(node.span.attributes.get(FOUND))


def listed(node: Node, name: str) -> list[str]:
    """Read one of the lists of names."""
    text = node.span.attributes.get(name)
    value = parsed_or_none(text) if isinstance(text, str) else None
    return [str(each) for each in value] if isinstance(value, list) else []


def acted(node: Node) -> list[str]:
    """Say why a found tool must not run again: what it touched or may have touched; empty where it may."""
    return [
        *listed(node, TOUCHED),
        *(f"use {resource}" for resource in listed(node, HELD)),
        *(f"reach {what}" for what in reaches(node)),
    ]


def reaches(node: Node) -> list[str]:
    """Say what a found tool can reach that is not known to touch nothing."""
    if REACHES not in node.span.attributes:
        return ["anything: the recording does not say what its code can reach"]
    return listed(node, REACHES)


def unrestored(node: Node) -> list[str]:
    """Name the state in memory that an answer to the call cannot put back."""
    changed = listed(node, CHANGED)
    in_steps = isinstance(node.outcome, Streamed) and bool(node.outcome.chunks)
    return changed if in_steps or AFTER not in node.span.attributes else []


def returns_state(node: Node) -> bool:
    """Tell whether a call returned what is part of the state, or leads to it: a replay gives back just that."""
    text = node.span.attributes.get(AFTER)
    return "return" in (as_object(parsed_or_none(text)) if isinstance(text, str) else {})


class Print(NamedTuple):
    """A text that a call printed."""

    stream: str
    text: str
    pieces: int
    """How many pieces the call had yielded before."""
    passed: str = ""
    """What it is where it is no text of the agent's own, and passed over: lines that libraries logged, say."""


class RecordedText(str):
    """The text of a print as it is printed again: who hears of it is told what it is."""

    __slots__ = ("passed",)

    def __new__(cls, recorded: Print) -> Self:
        """Make it of what was printed."""
        text = super().__new__(cls, recorded.text)
        text.passed = recorded.passed
        return text


def printed(node: Node) -> list[Print]:
    """Give what a found tool printed."""
    text = node.span.attributes.get(PRINTED)
    prints: list[Print] = []
    for each in as_list(parsed_or_none(text)) if isinstance(text, str) else ():
        match each:
            case [str(stream), str(content), int(pieces), *rest]:
                prints.append(Print(stream, content, pieces, "".join(map(str, rest[:1]))))
            case _:
                continue
    return prints


def is_mixed(node: Node) -> bool:
    """Tell whether what a found tool printed cannot be printed again as it was."""
    text = node.span.attributes.get(PRINTED)
    return isinstance(text, str) and not isinstance(parsed_or_none(text), list)


def run_again(nodes: Iterable[Node]) -> frozenset[str]:
    """Name by id the calls of found tools that run again in a sealed replay of all these calls.

    Those are known to touch nothing, and reach no state that another call left otherwise than recorded.
    """
    again: dict[str, Node] = {}
    lost = set[str]()
    for node in nodes:
        if not is_found(node):
            lost.update(unrestored(node))  # a declared tool is answered
        elif acted(node) or _has_no_end(node):
            lost.update(unrestored(node))
        else:
            again[node.id] = node
    while tainted := [node for node in again.values() if not lost.isdisjoint(listed(node, STATE))]:
        for node in tainted:
            del again[node.id]
            lost.update(unrestored(node))
    return frozenset(again)


def follow(nodes: Collection[Node], again: Collection[str]) -> dict[str, int]:
    """Say which calls that run again begin no sooner than another one has ended, by its end order.

    Calls that ran side by side and share state change it in an order that nobody recorded; the order of their ends is
    taken for it. A call with calls inside waits for none, since others may have waited for those.
    """
    parents = {node.parent for node in nodes}
    running: dict[object, list[_Use]] = {}
    predecessors: dict[str, int] = {}
    for node in sorted((each for each in nodes if each.id in again), key=lambda each: each.start_order):
        use = _Use(node, frozenset(listed(node, STATE)), frozenset(listed(node, CHANGED)))
        process = node.span.resource.attributes.get("reenact.process.id")  # each numbers its own
        beside = [each for each in running.get(process, []) if each.node.end_order > node.start_order]
        for other in beside:
            first, last = sorted((other.node, node), key=lambda each: each.end_order)
            if use.shares(other) and last.id not in parents:
                predecessors[last.id] = max(predecessors.get(last.id, 0), first.end_order)
        running[process] = [*beside, use]
    return predecessors


class _Use(NamedTuple):
    """A call and the state that it reaches and changed."""

    node: Node
    state: frozenset[str]
    changed: frozenset[str]

    def shares(self, other: _Use) -> bool:
        """Tell whether one of the two changed what the other reaches."""
        return not (self.state.isdisjoint(other.changed) and other.state.isdisjoint(self.changed))


def _has_no_end(node: Node) -> bool:
    """Tell whether the call was given up from outside, at a moment that no second run would meet again."""
    outcome = node.outcome
    if isinstance(outcome, Unfinished):
        return True
    if isinstance(outcome, Streamed) and outcome.end is StreamEnd.UNFINISHED:
        return True
    raised = outcome.exception if isinstance(outcome, Raised | Streamed) else None
    return raised is not None and raised.qualname in {"CancelledError", "KeyboardInterrupt"}
