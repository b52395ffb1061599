"""How long runs are kept: everything for some days, what went wrong and what was flagged for ever, all below a size.

A flag is a file `flags/<trace id>` in the store, with the reason; it can be set and taken away at any time.

Pruning may go on beside whatever writes: of a run that is deleted, what comes in after the look at it is there all the
same, and a run that grew since that look is left alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from reenact.assess.check import check
from reenact.disk import private
from reenact.disk.appender import packing
from reenact.disk.run_index import Entry
from reenact.errors import InputError
from reenact.keep.assertion_sources import asserted
from reenact.keep.catalog import runs_of
from reenact.stores.directory import DirectoryStore
from reenact.stores.frames import FrameStore, FramesUnusableError
from reenact.values.assertion import Placed, Standing

_DAY_NS = 24 * 3600 * 10**9
_ENDED_BADLY = ("error", "interrupted")
_PAGE = 500
_MOST = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is kept."""

    days: float | None = None
    """Everything for so long; None for ever."""
    most_bytes: int | None = None
    """The traces are at most so large, the oldest runs going first; those kept for ever are never touched.

    What lies in segments only is not counted, and not deleted for its size.
    """
    errors: bool = True
    """Runs that ended badly are kept for ever."""
    flag_if: tuple[Placed, ...] = ()
    """A run for which one of these holds is flagged instead of deleted."""
    flag_unless: tuple[Placed, ...] = ()
    """A run for which one of these does not hold is flagged instead of deleted."""
    settled_s: float = 0.0
    """Beside a collector: a run is left alone until nothing came in of it for so long, and it was judged since."""


@dataclass(slots=True)
class Pruned:
    """What pruning did, or would do."""

    deleted: list[str] = field(default_factory=list[str])
    flagged: dict[str, str] = field(default_factory=dict[str, str])
    kept: int = 0
    """Old runs that are kept for ever, and those that cannot be read, of which nobody can tell."""
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
            private.folder(self._folder, self._folder.parent)
            private.write_text(self._folder / trace_id, f"{why}\n")
        except OSError as error:
            raise InputError(str(self._folder), f"the flag cannot be written: {error.strerror}") from error

    def has(self, trace_id: str) -> bool:
        """Tell whether a run has a flag now."""
        return (self._folder / trace_id).exists()

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


def prune(
    store: DirectoryStore, policy: Rules, *, dry_run: bool = False, over: Callable[[], bool] = lambda: False
) -> Pruned:
    """Delete what the rules do not keep, and write anew the files that this leaves half empty.

    `over` is asked now and then whether to leave the rest for another time. Raises `InputError`.
    """
    flags, since = Flags(store), time.time_ns() - int(policy.settled_s * 1e9)
    pruning, before = _chosen(store, policy, flags, since), _size(store)
    pruning.size = before
    if dry_run:
        return pruning
    for trace_id, why in pruning.flagged.items():
        flags.add(trace_id, why)
    pruning.deleted = _deleted(store, pruning.deleted, flags, since, over)
    _reclaimed(store, 0.3, beside=policy.settled_s > 0)
    pruning.size = _size(store)
    pruning.freed = max(0, before - pruning.size)
    return pruning


def _chosen(store: DirectoryStore, policy: Rules, flags: Flags, since: int) -> Pruned:
    """Choose by the index what is to be deleted and what flagged."""
    pruning, flagged = Pruned(), set(flags.all())
    growing = _growing(store, since) if policy.settled_s else set[str]()
    if policy.days is not None:
        oldest = time.time_ns() - int(policy.days * _DAY_NS)
        for entry in _oldest_first(store, oldest):
            if entry.id not in growing:
                _judge(store, entry, policy, pruning, flagged)
    if policy.most_bytes is not None:
        left = _packed(store) - sum(_weight(store, trace_id) for trace_id in pruning.deleted)
        known_ids = {*pruning.deleted, *pruning.flagged, *growing}
        for entry in _oldest_first(store, 2**63 - 1):
            if left <= policy.most_bytes:
                break
            if entry.id not in known_ids and (weight := _weight(store, entry.id)):
                count = len(pruning.deleted)
                _judge(store, entry, policy, pruning, flagged)
                left -= weight if len(pruning.deleted) > count else 0
    return pruning


def _growing(store: DirectoryStore, since: int) -> set[str]:
    """Give the traces of which something came in since, or that were not judged since something did."""
    unjudged = [trace_id for each in store.further() for trace_id in each.unnoted(_MOST)]
    return {*store.changed_since(since), *unjudged}


def _judge(store: DirectoryStore, entry: Entry, policy: Rules, pruning: Pruned, flagged: set[str]) -> None:
    if entry.id in flagged or entry.id in pruning.flagged or (policy.errors and entry.status in _ENDED_BADLY):
        pruning.kept += 1
        return
    try:
        why = flag_for(store, entry.id, policy)
    except InputError:  # nobody can tell what it did: told where it is read, and by `reenact store check`
        pruning.kept += 1
        return
    if why:
        pruning.flagged[entry.id] = why
    else:
        pruning.deleted.append(entry.id)


def _deleted(
    store: DirectoryStore, chosen: Iterable[str], flags: Flags, since: int, over: Callable[[], bool]
) -> list[str]:
    """Delete runs but those that grew or were flagged meanwhile, and say which that were."""
    deleted_ids: list[str] = []
    with ExitStack() as sparing:
        for each in store.further():
            sparing.enter_context(each.sparing(since))
        for trace_id in chosen:
            if over():
                break
            if flags.has(trace_id) or _written_since(store, trace_id, since):
                continue
            try:
                store.delete(trace_id)
            except FramesUnusableError:
                raise
            except InputError:  # it grew, or somebody else deleted it
                continue
            deleted_ids.append(trace_id)
    return deleted_ids


def _written_since(store: DirectoryStore, trace_id: str, since: int) -> bool:
    try:
        return _own(store, trace_id).stat().st_mtime_ns >= since
    except FileNotFoundError:  # a collector's, which is asked where it is deleted
        return False


def flag_for(store: DirectoryStore, trace_id: str, policy: Rules) -> str:
    """Say why a run is to be flagged by the assertions of the rules; nothing where it is not."""
    if not policy.flag_if and not policy.flag_unless:
        return ""
    for run in runs_of(store, trace_id):
        for wanted, assertions in ((Standing.HOLDS, policy.flag_if), (Standing.FAILS, policy.flag_unless)):
            for finding in check(run, assertions):
                if finding.standing is wanted:
                    return f"{finding.assertion}: {finding.because}"
    return ""


def erase(store: DirectoryStore, user: str) -> Pruned:
    """Delete every run of a user, flagged or not, and their bytes from every file that may be written now.

    What is still to be sent to a backend is counted as dropped there. Raises `InputError`.
    """
    pruning, before = Pruned(), _size(store)
    for entry in store.find([("user = ?", user)]):
        with suppress(InputError):
            store.delete(entry.id)
        Flags(store).remove(entry.id)
        pruning.deleted.append(entry.id)
    _reclaimed(store, 0.0, beside=False)
    pruning.size = _size(store)
    pruning.freed = max(0, before - pruning.size)
    return pruning


def _reclaimed(store: DirectoryStore, least: float, *, beside: bool) -> None:
    """Put the rest of the segments together and write packs anew, so that what was deleted is in no file.

    `beside` a collector its lock is not tried for: one that starts at this moment would find it taken.
    """
    frames = FrameStore(store.folder)
    if not frames.folder.is_dir():
        return
    try:
        with packing(frames.folder):
            frames.catch_up()
            while least == 0 and (ids := frames.idle(2**62, _PAGE)):
                frames.compact(ids)
            frames.rewrite(least)
            if beside:
                frames.tidy()
                return
            with suppress(InputError):  # a collector writes: its newest segment goes when it is full
                frames.appender(within=True).close()
                frames.tidy(newest=True)
    finally:
        frames.close()


def _oldest_first(store: DirectoryStore, before_ns: int) -> Iterator[Entry]:
    yield from reversed(store.find([("ended < ?", before_ns)]))


def _weight(store: DirectoryStore, trace_id: str) -> int:
    path = _own(store, trace_id)
    own = path.stat().st_size if path.exists() else 0
    return own + sum(each.weight(trace_id) for each in store.further())


def _own(store: DirectoryStore, trace_id: str) -> Path:
    return store.folder / "traces" / trace_id[:2] / f"{trace_id}.jsonl"


def _packed(store: DirectoryStore) -> int:
    """Count the bytes of traces that go when these are deleted: those that lie in segments only are not among them."""
    own = sum(path.stat().st_size for path in (store.folder / "traces").glob("??/*.jsonl"))
    return own + sum(each.packed_bytes() for each in store.further())


def _size(store: DirectoryStore) -> int:
    own = sum(path.stat().st_size for path in (store.folder / "traces").glob("??/*.jsonl"))
    return own + sum(each.sizes()[1] for each in store.further())
