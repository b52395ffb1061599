"""Finding the call of a run that somebody named: by its id, label or number, or as `first llm`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from reenact.errors import UsageError
from reenact.values.run import Node, Run

_MOST = 60
_SHORTEST_ID = 4
_NUMBER = re.compile(r"(?:.*\s)?#(\d+)|(\d+)")
_ORDINAL = re.compile(r"(first|second|third|last|[1-9]\d*(?:st|nd|rd|th))(?:\s+(.+))?")
_WORDS = {"first": 0, "second": 1, "third": 2, "last": -1}


def call_named(run: Run, text: str) -> Node:
    """Find one call. Raises `UsageError` that lists the calls where none, or more than one, is meant.

    It may be named by its label (`tool delete_accounts #7`), its number (`#7`, `7`), its span id or the beginning of
    that, its kind or name or both where only one call has them (`tool delete_accounts`), or its place among those
    (`first llm`, `last tool`, `2nd lookup`).
    """
    wanted = " ".join(text.split())
    calls = [node for node in run.nodes if node is not run.root]
    matches = _numbered(calls, wanted) or _identified(calls, wanted) or _placed(calls, wanted.lower())
    if len(matches) == 1:
        return matches[0]
    what = f"no call {text!r}" if not matches else f"{len(matches)} calls that {text!r} may mean"
    labels = [node.label for node in (matches or calls)[:_MOST]]
    more = len(matches or calls) - len(labels)
    listed = "\n    ".join([*labels, *([f"… and {more} more"] if more else [])])
    raise UsageError(f"run {run.id[:12]} has {what}", hint=f"its calls are\n    {listed}" if labels else "it has none")


def _numbered(calls: Iterable[Node], wanted: str) -> list[Node]:
    match = _NUMBER.fullmatch(wanted)
    if match is None:
        return []
    number = int(match[1] or match[2])
    return [node for node in calls if node.number == number and (match[2] or wanted in {node.label, f"#{number}"})]


def _identified(calls: Iterable[Node], wanted: str) -> list[Node]:
    if len(wanted) < _SHORTEST_ID or re.fullmatch(r"[0-9a-fA-F]+", wanted) is None:
        return []
    return [node for node in calls if node.id.startswith(wanted.lower())]


def _placed(calls: Iterable[Node], wanted: str) -> list[Node]:
    listed = [*calls]
    if alike := [node for node in listed if _is_called(node, wanted)]:
        return alike
    match = _ORDINAL.fullmatch(wanted)
    if match is None:
        return []
    alike = [node for node in listed if match[2] is None or _is_called(node, match[2])]
    place = _WORDS[match[1]] if match[1] in _WORDS else int(match[1][:-2]) - 1
    return [alike[place]] if -1 <= place < len(alike) and alike else []


def _is_called(node: Node, wanted: str) -> bool:
    kind, name = node.call.word.lower(), node.call.name.lower()
    return wanted in {kind, name, f"{kind} {name}"}
