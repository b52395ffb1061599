"""Looking at a store as it stands, without changing anything: durable state alone is read, no process is asked."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from reenact.errors import InputError
from reenact.keep.drain import unfinished_of
from reenact.keep.journal_reader import Tail
from reenact.keep.journal_reader import journals as journals_in
from reenact.stores.directory import DirectoryStore
from reenact.stores.outbox import Account, Outbox, Snapshot
from reenact.values.status import BackendStatus, JournalsStatus, StoreStatus


def status_of(store: DirectoryStore, configured: Iterable[str]) -> StoreStatus:
    """Say how a store stands; `configured` names the backends of the environment. Raises `InputError`."""
    outbox = Outbox(store.folder)
    with (
        outbox.snapshot() as snapshot
    ):  # what is carried meanwhile waits for this, so that the numbers are of one moment
        journals = _Journals()
        for name, files in journals_in(store.journals).items():
            journals.look(name, files, snapshot)
        names = set(configured)
        accounts = snapshot.accounts()
    sizes = [path.stat().st_size for path in (store.folder / "traces").glob("??/*.jsonl")]
    blobs = store.blobs.sizes()
    return StoreStatus(
        folder=str(store.folder),
        traces=len(sizes),
        size=sum(sizes),
        blobs=len(blobs),
        blob_size=sum(blobs.values()),
        blob_place=store.blobs.place,
        journals=JournalsStatus(
            in_use=journals.in_use,
            left_over=journals.left_over,
            damaged=sum(1 for _ in store.journals.glob("*.damaged")),
            size=journals.size,
            open_spans=journals.open_spans,
        ),
        backends=tuple(_backend(account, journals, names, outbox) for account in accounts),
    )


def _backend(account: Account, journals: _Journals, configured: set[str], outbox: Outbox) -> BackendStatus:
    journal_count = sum(journals.ended[recording] for recording in account.recordings)
    with outbox.sending(account.number) as alone:
        sending = not alone
    return BackendStatus(
        name=account.name,
        configured=account.name in configured,
        sending=sending,
        created=account.created + journal_count,
        exported=account.exported,
        referred=account.referred,
        waiting=account.waiting + journal_count,
        in_journals=journal_count,
        dropped=account.dropped,
        oldest_ns=account.oldest_ns,
        delivered_ns=account.delivered_ns,
        error=account.error,
        failed_ns=account.failed_ns,
        tries=account.tries,
        next_try_ns=account.next_try_ns if account.next_try_ns > time.time_ns() else None,
    )


@dataclass(slots=True)
class _Journals:
    """What was seen of the journals."""

    in_use: int = 0
    left_over: int = 0
    size: int = 0
    open_spans: int = 0
    ended: Counter[str] = field(default_factory=Counter[str])
    """Spans that are not in the store yet, by recording: of processes that are gone, unfinished ones too."""

    def look(self, name: str, files: list[Path], snapshot: Snapshot) -> None:
        """Read one journal, which may be carried away meanwhile."""
        tail = Tail(files[0], files)
        is_written = tail.is_written()
        self.in_use += is_written
        self.left_over += not is_written
        counts = Counter[str]()
        with suppress(InputError):  # damaged: it is set aside when it is carried, and counted there
            while (spans := tail.poll()) is not None:
                counts[tail.file] += len(spans)
        counts.update(tail.span_counts)  # those whose beginning was removed, since they were carried
        for path in tail.files:
            with suppress(FileNotFoundError):
                self.size += path.stat().st_size
        unfinished = sum(1 for _ in tail.reader.unfinished())
        if is_written:
            self.open_spans += unfinished
        else:
            counts[unfinished_of(name)] = unfinished
        self.ended[name.partition("-")[0]] += sum(
            max(0, count - snapshot.carried(place)) for place, count in counts.items()
        )
