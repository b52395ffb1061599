"""How long runs are kept: everything for some days, what went wrong and what was flagged for ever, all below a size.

A flag is a file `flags/<trace id>` in the store, with the reason; it can be set and taken away at any time.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from reenact.assess.check import check
from reenact.errors import InputError
from reenact.pipeline.asserted import asserted
from reenact.pipeline.catalog import runs_of
from reenact.stores.directory import DirectoryStore
from reenact.stores.frames import FrameStore, packing
from reenact.values.assertion import Placed, Standing
from reenact.values.run_index import Entry

_DAY_NS = 24 * 3600 * 10**9
_ENDED_BADLY = ("error", "interrupted")
_PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is kept."""

    days: float | None = None
    """Everything for so long; None for ever."""
    most_bytes: int | None = None
    """The store's traces are at most so large, the oldest runs going first; those kept for ever are never touched."""
    errors: bool = True
    """Runs that ended badly are kept for ever."""
    flag_if: tuple[Placed, ...] = ()
    """A run for which one of these holds is flagged instead of deleted."""
    flag_unless: tuple[Placed, ...] = ()
    """A run for which one of these does not hold is flagged instead of deleted."""


@dataclass(slots=True)
class Pruned:
    """What pruning did, or would do."""

    deleted: list[str] = field(default_factory=list[str])
    flagged: dict[str, str] = field(default_factory=dict[str, str])
    kept: int = 0
    """Old runs that are kept for ever."""
    freed: int = 0
    """Bytes on disk."""
    size: int = 0
    """Bytes of traces on disk afterwards."""


class Flags:
    """The flags of a store."""

    def __init__(self, store: DirectoryStore) -> None:
        self._folder = store.folder / "flags"

    def add(self, trace_id: str, why: str) -> None:
        """Keep a run for ever. Raises `InputError`."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            (self._folder / trace_id).write_text(f"{why}\n", encoding="utf-8")
        except OSError as error:
            raise InputError(str(self._folder), f"the flag cannot be written: {error.strerror}") from error

    def remove(self, trace_id: str) -> bool:
        """Take a flag away; False where there is none."""
        try:
            (self._folder / trace_id).unlink()
        except FileNotFoundError:
            return False
        return True

    def all(self) -> Mapping[str, str]:
        """Give every flag with its reason."""
        paths: Iterable[Path] = self._folder.iterdir() if self._folder.is_dir() else ()
        return {path.name: path.read_text("utf-8").strip() for path in sorted(paths)}


def rules(
    days: float | None, most_bytes: int | None, *, errors: bool, flag_if: Iterable[str], flag_unless: Iterable[str]
) -> Rules:
    """Read rules as they are given. Raises `AssertionInvalid`."""
    return Rules(
        days=days, most_bytes=most_bytes, errors=errors, flag_if=asserted(flag_if), flag_unless=asserted(flag_unless)
    )


def prune(store: DirectoryStore, given: Rules, *, dry_run: bool = False) -> Pruned:
    """Delete what the rules do not keep, and write anew the files that this leaves half empty. Raises `InputError`."""
    done, flags = Pruned(), Flags(store)
    flagged = set(flags.all())
    before = done.size = _size(store)
    if given.days is not None:
        oldest = time.time_ns() - int(given.days * _DAY_NS)
        for entry in _oldest_first(store, oldest):
            _judge(store, entry, given, done, flagged)
    if given.most_bytes is not None:
        left = before - sum(_weight(store, trace_id) for trace_id in done.deleted)
        known = {*done.deleted, *done.flagged}
        for entry in _oldest_first(store, 2**63 - 1):
            if left <= given.most_bytes:
                break
            if entry.id not in known:
                count = len(done.deleted)
                _judge(store, entry, given, done, flagged)
                left -= _weight(store, entry.id) if len(done.deleted) > count else 0
    if dry_run:
        return done
    for trace_id, why in done.flagged.items():
        flags.add(trace_id, why)
    for trace_id in done.deleted:
        with suppress(InputError):  # somebody else deleted it
            store.delete(trace_id)
    _reclaimed(store, 0.3)
    done.size = _size(store)
    done.freed = max(0, before - done.size)
    return done


def _judge(store: DirectoryStore, entry: Entry, given: Rules, done: Pruned, flagged: set[str]) -> None:
    if entry.id in flagged or entry.id in done.flagged or (given.errors and entry.status in _ENDED_BADLY):
        done.kept += 1
    elif why := flag_for(store, entry.id, given):
        done.flagged[entry.id] = why
    else:
        done.deleted.append(entry.id)


def flag_for(store: DirectoryStore, trace_id: str, given: Rules) -> str:
    """Say why a run is to be flagged by the assertions of the rules; nothing where it is not."""
    if not given.flag_if and not given.flag_unless:
        return ""
    for run in runs_of(store, trace_id):
        for wanted, assertions in ((Standing.HOLDS, given.flag_if), (Standing.FAILS, given.flag_unless)):
            for found in check(run, assertions):
                if found.standing is wanted:
                    return f"{found.assertion}: {found.because}"
    return ""


def erase(store: DirectoryStore, user: str) -> Pruned:
    """Delete every run of a user, flagged or not, and their bytes from every file that may be written now.

    What is still to be sent to a backend is counted as dropped there. Raises `InputError`.
    """
    done, before = Pruned(), _size(store)
    for entry in store.find([("user = ?", user)]):
        with suppress(InputError):
            store.delete(entry.id)
        Flags(store).remove(entry.id)
        done.deleted.append(entry.id)
    _reclaimed(store, 0.0)
    done.size = _size(store)
    done.freed = max(0, before - done.size)
    return done


def _reclaimed(store: DirectoryStore, least: float) -> None:
    """Put the rest of the segments together and write packs anew, so that what was deleted is in no file."""
    frames = FrameStore(store.folder)
    if not frames.folder.is_dir():
        return
    try:
        with packing(frames.folder):
            frames.catch_up()
            while least == 0 and (ids := frames.idle(2**62, _PAGE)):
                frames.compact(ids)
            frames.rewrite(least)
            with suppress(InputError):  # a collector writes: its newest segment goes when it is full
                frames.appender().close()
                frames.tidy(newest=True)
    finally:
        frames.close()


def _oldest_first(store: DirectoryStore, before_ns: int) -> Iterator[Entry]:
    yield from reversed(store.find([("ended < ?", before_ns)]))


def _weight(store: DirectoryStore, trace_id: str) -> int:
    path = store.folder / "traces" / trace_id[:2] / f"{trace_id}.jsonl"
    own = path.stat().st_size if path.exists() else 0
    return own + sum(each.weight(trace_id) for each in store.further())


def _size(store: DirectoryStore) -> int:
    own = sum(path.stat().st_size for path in (store.folder / "traces").glob("??/*.jsonl"))
    return own + sum(each.sizes()[1] for each in store.further())
