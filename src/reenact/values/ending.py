"""How a process ended that left a run open, as far as anybody saw it."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Mapping

from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_list, as_object
from reenact.values.run import Node

_CODE = "process.exit.code"


def cut_off_by(attributes: Mapping[str, object]) -> str:
    """Say what ended the process in the middle of a run, by the attributes of its root; empty where the run has an end.

    Only a parent that waited for the process saw it: `reenact run` does, and the agent for its children.
    """
    if not attributes.get("reenact.incomplete"):
        return ""
    code = attributes.get(_CODE)
    if not isinstance(code, int) or isinstance(code, bool):
        return "the process ended before it did, and nobody saw by what"
    if code < 0:
        return f"the process was ended by {_signal(-code)}"
    return f"the process ended itself with exit code {code}, past Python's own end"


def seen_by_parents(nodes: Iterable[Node]) -> dict[str, int]:
    """Give the exit codes of child processes that did not end well, by their lanes, as their parents saw them."""
    exit_codes: dict[str, int] = {}
    for node in nodes:
        text = node.span.attributes.get("reenact.children")
        ends = as_object(parsed_or_none(text)) if isinstance(text, str) else {}
        exit_codes |= {lane: code for lane, end in ends.items() if (code := _code(as_list(end)[:1])) is not None}
    return exit_codes


def _code(end: list[Json]) -> int | None:
    """Give the exit code of what a parent wrote down: a list that begins with it."""
    return end[0] if end and isinstance(end[0], int) and not isinstance(end[0], bool) else None


def in_short(attributes: Mapping[str, object], exit_code: int | None = None) -> str:
    """Say the same in a word or two. `exit_code` is the exit code that a parent of a child process saw."""
    code = attributes.get(_CODE, exit_code)
    if isinstance(code, int) and code >= 0:
        return f"ended itself, exit code {code}"
    if isinstance(code, int) and -code != signal.SIGKILL:
        return f"ended by {_signal(-code)}"
    return "killed" if isinstance(code, int) else "cut off"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
