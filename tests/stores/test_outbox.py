from __future__ import annotations

import contextlib
import multiprocessing
import sqlite3
import time
from pathlib import Path

import pytest

from reenact.contracts.parcel import Parcel
from reenact.stores.outbox import Account, Outbox, OutboxUnusableError, Settlement

TRACE = "0af7651916cd43dd8448eb211c80319c"


def parcel(number: int, spans: int = 10, size: int = 1000) -> Parcel:
    return Parcel(trace_id=TRACE, at=number * size, size=size, spans=spans)


@pytest.fixture
def outbox(tmp_path: Path) -> Outbox:
    return Outbox(tmp_path / "store")


def owing(outbox: Outbox, *parcels: Parcel, name: str = "a", journal: str = "r-p.rnj") -> int:
    (number,) = outbox.register("r", [name]).values()
    with outbox.taking_in(journal, [number]) as intake:
        intake.owe(parcels)
    return number


def only(outbox: Outbox) -> Account:
    (account,) = outbox.accounts()
    assert account.created == account.exported + account.waiting + sum(account.dropped.values())
    return account


def test_without_anything_owed_there_is_no_file(outbox: Outbox) -> None:
    assert outbox.accounts() == []
    assert outbox.known(["a"]) == {}
    assert outbox.recipients("r") == []
    assert not outbox.exists
    assert not outbox.folder.exists()


def test_what_is_owed_is_given_in_its_order_and_settled_from_the_front(outbox: Outbox) -> None:
    number = owing(outbox, parcel(0), parcel(1), parcel(2, spans=3))
    assert only(outbox).waiting == 23
    assert [owed.parcel for owed in outbox.next(number, 15, 10_000)] == [parcel(0)]
    assert [owed.parcel for owed in outbox.next(number, 20, 10_000)] == [parcel(0), parcel(1)]
    assert [owed.parcel for owed in outbox.next(number, 1, 1)] == [parcel(0)], "at least one"
    outbox.settle(number, Settlement(spans=13, exported=13))
    (first, second) = outbox.next(number, 100, 10_000)
    assert (first.parcel, first.done, second.parcel, second.done) == (parcel(1), 3, parcel(2, spans=3), 0)
    outbox.settle(number, Settlement(spans=7, exported=5, dropped={"too large": 2}, note="413"))
    account = only(outbox)
    assert (account.exported, account.waiting, account.dropped, account.error) == (18, 3, {"too large": 2}, "413")
    outbox.settle(number, Settlement(spans=3, exported=3, referred=1))
    account = only(outbox)
    assert (account.exported, account.referred, account.waiting, account.error) == (21, 1, 0, None)
    assert outbox.next(number, 100, 10_000) == []


def test_backends_are_owed_and_settled_apart(outbox: Outbox) -> None:
    numbers = outbox.register("r", ["a", "b"])
    with outbox.taking_in("r-p.rnj", list(numbers.values())) as intake:
        intake.owe([parcel(0)])
    outbox.settle(numbers["a"], Settlement(spans=10, exported=10))
    assert [(each.name, each.exported, each.waiting) for each in outbox.accounts()] == [("a", 10, 0), ("b", 0, 10)]
    assert outbox.recipients("r") == [numbers["a"], numbers["b"]]
    assert outbox.recipients("another") == []
    assert outbox.register("another", ["b"]) == {"b": numbers["b"]}


def test_how_far_a_journal_was_carried_is_noted_with_what_is_owed_or_not_at_all(outbox: Outbox) -> None:
    number = owing(outbox, parcel(0))
    with outbox.taking_in("r-p.rnj", [number]) as intake:
        assert intake.carried == 10
        intake.owe([parcel(1)])
    with contextlib.suppress(ZeroDivisionError), outbox.taking_in("r-p.rnj", [number]) as intake:
        intake.owe([parcel(2)])
        raise ZeroDivisionError
    with outbox.snapshot() as snapshot:
        assert snapshot.carried("r-p.rnj") == 20
    assert only(outbox).created == 20
    outbox.forget_journals(["r-p.rnj"])
    with outbox.snapshot() as snapshot:
        assert snapshot.carried("r-p.rnj") == 0


def test_failures_are_remembered_until_something_went_well(outbox: Outbox) -> None:
    number = owing(outbox, parcel(0))
    later = time.time_ns() + 10**12
    outbox.failed(number, "refused", later, tries=3)
    assert outbox.patience(number) == (3, later)
    assert (only(outbox).error, only(outbox).next_try_ns) == ("refused", later)
    outbox.settle(number, Settlement(spans=1, exported=1))
    assert outbox.patience(number) == (0, 0)
    assert only(outbox).error is None


def test_what_is_given_up_is_counted(outbox: Outbox) -> None:
    number = owing(outbox, parcel(0), parcel(1))
    outbox.settle(number, Settlement(spans=4, exported=4))
    assert outbox.give_up(number, "given up") == 16
    assert only(outbox).dropped == {"given up": 16}
    assert outbox.give_up(number, "given up") == 0


def send_alone(folder: Path, number: int, ready: object, go: object) -> None:
    with Outbox(folder).sending(number) as alone:
        assert alone
        ready.set()  # type: ignore[attr-defined]
        go.wait(60)  # type: ignore[attr-defined]


def test_one_process_sends_to_a_backend_at_a_time_and_a_killed_one_makes_way(outbox: Outbox) -> None:
    number = owing(outbox, parcel(0))
    context = multiprocessing.get_context("spawn")
    ready, go = context.Event(), context.Event()
    process = context.Process(target=send_alone, args=(outbox.folder.parent, number, ready, go))
    process.start()
    assert ready.wait(60)
    with outbox.sending(number) as alone:
        assert not alone
    process.kill()
    process.join()
    with outbox.sending(number) as alone:
        assert alone


def test_a_snapshot_is_of_one_moment(outbox: Outbox) -> None:
    number = owing(outbox, parcel(0))
    with outbox.snapshot() as snapshot:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("reenact.stores.outbox._LOCKED_S", 0.05)
            with pytest.raises(OutboxUnusableError, match="locked"):
                outbox.settle(number, Settlement(spans=10, exported=10))
        assert [account.waiting for account in snapshot.accounts()] == [10]
    outbox.settle(number, Settlement(spans=10, exported=10))
    assert only(outbox).exported == 10


def test_a_damaged_outbox_says_where_the_spans_are(outbox: Outbox) -> None:
    owing(outbox, parcel(0))
    (outbox.folder / "outbox.sqlite").write_bytes(b"this is no database, " * 100)
    with pytest.raises(OutboxUnusableError, match="cannot be used now") as error:
        outbox.accounts()
    assert "reenact export" in str(error.value)


def test_recordings_of_long_ago_are_forgotten(outbox: Outbox) -> None:
    owing(outbox, parcel(0))
    with sqlite3.connect(outbox.folder / "outbox.sqlite") as database:
        database.execute("UPDATE recordings SET since = 0")
    outbox.register("new", ["a"])
    assert outbox.recipients("r") == []
    assert len(outbox.recipients("new")) == 1
