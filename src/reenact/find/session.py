"""The runs of a session, to be played in the order in which they came.

The units of one process are delivered one after the other in one process, as they were: the last one is asked for, the
others stand before it. What a script did is played by its last run, with which its others go.
"""

from __future__ import annotations

from dataclasses import replace

from reenact.errors import InputError
from reenact.find.sources import RunSource, find
from reenact.keep.catalog import NO_FORK
from reenact.keep.leftovers import leftovers
from reenact.stores.directory import DirectoryStore
from reenact.values import unit
from reenact.values.history import MOST


def session(name: str, store: DirectoryStore) -> list[RunSource]:
    """Find what plays a session: one for each process that took part, the earliest first. Raises `InputError`."""
    leftovers(store)
    entries = store.find([("session = ?", name), *NO_FORK], replays=False)
    if not entries:
        raise InputError(str(store.folder), f"holds no run of the session {name!r}", hint="`reenact ls` lists sessions")
    groups: dict[object, list[RunSource]] = {}
    for entry in reversed(entries):
        recording = find(entry.id, store)
        groups.setdefault(_process(recording), []).append(recording)
    return [_played(group) for group in groups.values()]


def _process(recording: RunSource) -> object:
    run = recording.run
    if run.root is None or unit.inbound(run) is None:
        return run.recording, None
    return run.recording, run.root.span.resource.attributes.get("reenact.process.id")


def _played(group: list[RunSource]) -> RunSource:
    last = group[-1]
    if unit.inbound(last.run) is None:
        return last
    also = tuple(each.run.id for each in group[:-1])
    return replace(last, also=also, most=MOST + len(also))
