"""What a run is found by: the facts that people know of it, and arguments of tool calls under paths they can type."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from reenact.values.json import Json, canonical, parsed_or_none

MOST_ARGUMENTS = 1000
"""How many (path, value) pairs of one call can be asked for; those nearest to the top come first."""
REVISIONS = ("vcs.ref.head.revision", "vcs.repository.ref.revision")
"""Attributes of a resource that hold a commit: OpenTelemetry's semantic conventions, the later name first."""
_DEEPEST = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What a run must be to be listed."""

    user: str | None = None
    session: str | None = None
    tenant: str | None = None
    tool: str | None = None
    model: str | None = None
    """A model's name, or a part of it."""
    entry: str | None = None
    """What the program is called, or a part of it: its file, its service, the route or task that it did."""
    commit: str | None = None
    """The beginning of the commit that was checked out."""
    status: str | None = None
    text: str | None = None
    arguments: tuple[tuple[str, str], ...] = ()
    """Paths and values that one and the same tool call must have."""
    window: tuple[int, int] | None = None
    """First and last nanosecond since the epoch at which it was under way."""
    replays: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """One call of a tool, as it is searched for."""

    id: str
    """Names the call within its run, the same whenever the run is read."""
    tool: str
    arguments: frozenset[tuple[str, str]] = frozenset()

    def fits(self, filters: Filters) -> bool:
        """Tell whether this call is the one that was asked for."""
        if filters.tool is not None and self.tool != filters.tool:
            return False
        return all((path, sought(value)) in self.arguments for path, value in filters.arguments)


def argument_pairs(arguments: Json) -> frozenset[tuple[str, str]]:
    """Flatten the arguments of a call into (path, spelled value) pairs, at most `MOST_ARGUMENTS`.

    `{"target": {"env": "production"}, "ids": ["a", 7]}` has `target`, `target.env`, `ids`, `ids.0`, `ids.1`, and, since
    one asks for what a list holds rather than where, `ids` once more for each of its items. Typed JSON (docs/schema.md)
    is looked into: a dataclass has its fields below its own path, a date is its ISO spelling.
    """
    pairs: set[tuple[str, str]] = set()
    waiting: deque[tuple[str, Json, int]] = deque([("", arguments, 0)])
    while waiting and len(pairs) < MOST_ARGUMENTS:
        path, value, depth = waiting.popleft()
        if path:
            pairs.add((path, spelled(value)))
        if depth < _DEEPEST:
            waiting.extend((name, item, depth + 1) for name, item in _below(path, value))
    return frozenset(pairs)


def _below(path: str, value: Json) -> Iterator[tuple[str, Json]]:
    if isinstance(value, list):
        for place, item in enumerate(value):
            if path:
                yield path, item
            yield _joined(path, str(place)), item
    elif isinstance(value, dict):
        tag = next((name for name in value if name.startswith("$")), None)
        if tag is None:
            yield from ((_joined(path, name), item) for name, item in value.items())
        elif isinstance(fields := value.get("fields"), dict):
            yield from ((_joined(path, name), item) for name, item in fields.items())
        else:
            yield from ((path, value[name]) for name in (tag, "name", "value", "values") if name in value and path)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def spelled(value: Json) -> str:
    """Spell a value as `--arg` compares it: text as it is, everything else as JSON with sorted keys."""
    return value if isinstance(value, str) else canonical(value).decode("utf-8", "replace")


def sought(value: str) -> str:
    """Bring what a person typed into the spelling that is compared: blanks and key order of JSON do not matter."""
    if value[:1] in {"{", "["}:
        decoded = parsed_or_none(value)
        return value if decoded is None else spelled(decoded)
    return value
