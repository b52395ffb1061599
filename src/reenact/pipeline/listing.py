"""Which runs a store or a file holds, by the facts that people know of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from reenact.graph.build import build
from reenact.pipeline.catalog import summary
from reenact.pipeline.drain import index_anew, leftovers
from reenact.pipeline.sources import runs_in
from reenact.stores.directory import DirectoryStore, Entry
from reenact.values.call import CallKind, FunctionCall
from reenact.values.json import Json, compact, parse
from reenact.values.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What a run must be to be listed."""

    user: str | None = None
    session: str | None = None
    tenant: str | None = None
    tool: str | None = None
    model: str | None = None
    status: str | None = None
    text: str | None = None
    arguments: tuple[tuple[str, str], ...] = ()
    window: tuple[int, int] | None = None
    """First and last nanosecond since the epoch at which it was under way."""
    replays: bool = False


def listed(
    store: DirectoryStore, source: str | None, filters: Filters, limit: int, *, reindex: bool = False
) -> list[dict[str, Json]]:
    """Give the summaries of the runs that fit, newest first, at most `limit` (0: all)."""
    if source is not None:
        runs = [run for run in reversed(runs_in(Path(source))) if _fits(run, summary(run), filters)]
        return [summary(run) for run in runs[: limit or None]]
    leftovers(store)
    if reindex:
        index_anew(store)
    found: list[dict[str, Json]] = []
    for entry in store.find(_where(filters), replays=filters.replays):
        said = _told(entry)
        if _fits_told(said, filters) and (filters.text is None or _holds(_read(store, entry), filters.text)):
            said.pop("arguments", None)
            said["source"] = str(store.folder)
            found.append(said)
            if limit and len(found) >= limit:
                break
    return found


def _where(filters: Filters) -> list[tuple[str, object]]:
    """Say in SQL what the index can answer by itself."""
    conditions: list[tuple[str, object]] = []
    named = ("user", "session", "tenant", "status")
    conditions += [(f"{name} = ?", value) for name in named if (value := getattr(filters, name)) is not None]
    if filters.window is not None:
        first, last = filters.window
        conditions += [("started <= ?", last), ("ended >= ?", first)]
    return conditions


def _told(entry: Entry) -> dict[str, Json]:
    said = parse(entry.summary)
    return said if isinstance(said, dict) else {}


def _read(store: DirectoryStore, entry: Entry) -> list[Run]:
    return build(store.spans(entry.id))


def _holds(runs: Iterable[Run], text: str) -> bool:
    wanted = text.lower()
    values = (value for run in runs for node in run.nodes for value in node.span.attributes.values())
    return any(wanted in value.lower() for value in values if isinstance(value, str))


def _fits(run: Run, said: dict[str, Json], filters: Filters) -> bool:
    """Tell whether a run read from a file fits; there is no index to ask."""
    told: dict[str, Json] = {**said, "arguments": _arguments(run)}
    if filters.window is not None:
        first, last = filters.window
        if run.started_ns > last or run.ended_ns < first:
            return False
    named = all(
        getattr(filters, name) is None or said.get(name) == getattr(filters, name)
        for name in ("user", "session", "tenant", "status")
    )
    replayed = filters.replays or said.get("replay_of") is None
    return named and replayed and _fits_told(told, filters) and (filters.text is None or _holds([run], filters.text))


def _arguments(run: Run) -> list[Json]:
    return [
        [node.call.name, node.call.request.arguments]
        for node in run.nodes
        if node.kind is CallKind.TOOL and isinstance(node.call.request, FunctionCall)
    ]


def _fits_told(said: dict[str, Json], filters: Filters) -> bool:
    tools, models, calls = said.get("tools"), said.get("models"), said.get("arguments")
    if filters.tool is not None and not (isinstance(tools, list) and filters.tool in tools):
        return False
    if filters.model is not None and not (isinstance(models, list) and any(filters.model in str(m) for m in models)):
        return False
    if not filters.arguments:
        return True
    return isinstance(calls, list) and any(_was_called(call, filters) for call in calls)


def _was_called(call: Json, filters: Filters) -> bool:
    """Tell whether one tool call had every argument asked for; a value is compared as it is spelled."""
    match call:
        case [str(name), dict(arguments)]:
            if filters.tool is not None and name != filters.tool:
                return False
            return all(key in arguments and _spelled(arguments[key]) == value for key, value in filters.arguments)
        case _:
            return False


def _spelled(value: Json) -> str:
    return value if isinstance(value, str) else compact(value)
