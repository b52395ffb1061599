"""A long journal whose writer is killed: each of its spans is stored and owed once, whatever was carried before.

Files that were carried go from the disk while the process lives, and a span may begin in one file and end in another.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from record.test_bounds import TRACE, begin, end, writer
from reenact.keep.drain import Drain
from reenact.keep.status import status_of
from reenact.record.journal import JournalProcessor
from reenact.stores.directory import DirectoryStore
from reenact.stores.outbox import Outbox

_SPANS = 160


def written(journal: JournalProcessor, first: int, last: int) -> None:
    """Write calls one after the other: nearly every file ends between the beginning and the end of a call."""
    for number in range(first, last):
        journal.write(begin(number, 1))
        journal.write(end(number, "x" * 4000))


@pytest.mark.parametrize("carried", range(40, 140, 7))
@pytest.mark.parametrize(("root_ends", "exports"), [(True, True), (False, True), (False, False)])
def test_a_long_journal_that_was_carried_in_part_counts_every_span_once(
    tmp_path: Path, carried: int, *, root_ends: bool, exports: bool
) -> None:
    store = DirectoryStore(tmp_path)
    store.prepare()
    outbox = Outbox(tmp_path)
    if exports:
        outbox.register("aa", ["backend"])
    journal, drain = writer(store.journals, most=1 << 20), Drain(store, recording="aa")
    journal.write(begin(1, None, root=True))
    for first in range(2, carried, 5):  # the process lives, and is carried now and then
        written(journal, first, min(carried, first + 5))
        drain.poll()
    written(journal, carried, _SPANS)
    if root_ends:
        journal.write(end(1))
    journal.shutdown()
    backends = status_of(store, []).backends
    assert [each.created for each in backends] == exports * [_SPANS - 1], "what was carried and what is left: the whole"
    Drain(store, living=False).finish()
    assert [account.created for account in outbox.accounts()] == exports * [_SPANS - 1]
    ids = Counter(int(span.span_id, 16) for span in store.spans(TRACE))
    assert ids.keys() == {*range(1, _SPANS)}
    if exports:  # else nothing says how far it was carried, and readers fold what is stored twice
        assert set(ids.values()) == {1}
    assert [span.name for span in store.spans(TRACE) if "reenact.incomplete" in span.attributes] == (
        [] if root_ends else ["call 1"]
    )
    assert list(store.journals.iterdir()) == []
