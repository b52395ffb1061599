from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from receivers import span
from reenact.contracts.parcel import Parcel, ParcelGoneError
from reenact.errors import InputError
from reenact.export.courier import ABSENT, Courier, Leaving, Wares
from reenact.export.limits import Limits, limits_from
from reenact.export.outcome import Delivered, Outcome, Rejected, Retry, TooLarge
from reenact.export.post import Post
from reenact.stores.outbox import Account, Outbox
from reenact.values.span import SpanRecord

SPANS = 100
_LIMITS = Limits(spans=25, size=1_000_000)


@dataclass
class Scripted:
    """A sender that answers as it is told."""

    answer: Callable[[Sequence[SpanRecord]], Outcome] = lambda spans: Delivered(count=len(spans))
    name: str = "http://backend/v1/traces"
    sent: list[list[int]] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)

    def send(self, spans: Sequence[SpanRecord], within_s: float | None = None) -> Outcome:
        del within_s
        self.sent.append([each.start_ns for each in spans])
        outcome = self.answer(spans)
        if isinstance(outcome, Delivered):
            self.accepted += self.sent[-1]
        return outcome

    def close(self) -> None: ...


@dataclass
class Shop:
    """Ten parcels of ten spans each, owed to one backend."""

    outbox: Outbox
    number: int
    sender: Scripted = field(default_factory=Scripted)
    gone: set[int] = field(default_factory=set)

    def load(self, parcel: Parcel) -> list[SpanRecord]:
        if parcel.at in self.gone:
            raise ParcelGoneError("trace", "was deleted")
        return [span(parcel.at * 10 + each) for each in range(parcel.spans)]

    def courier(self, limits: Limits = _LIMITS) -> Courier:
        wares = Wares(load=self.load, dress=lambda each, _size: Leaving(span=each))
        return Courier(self.sender, self.number, self.outbox, wares, limits)

    def serve(self, courier: Courier | None = None, *, force: bool = False) -> Account:
        courier = courier or self.courier()
        while courier.serve(force=force):
            pass
        return self.account

    @property
    def account(self) -> Account:
        (account,) = self.outbox.accounts()
        assert account.created == account.exported + account.waiting + sum(account.dropped.values())
        return account


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    outbox = Outbox(tmp_path / "store")
    (number,) = outbox.register("r", ["http://backend/v1/traces"]).values()
    with outbox.taking_in("r-p.rnj", [number]) as intake:
        intake.owe(Parcel(trace_id="a" * 32, at=at, size=1000, spans=10) for at in range(10))
    return Shop(outbox, number)


def test_everything_goes_once_and_in_order(shop: Shop) -> None:
    assert shop.serve().exported == SPANS
    assert shop.sender.accepted == list(range(SPANS))
    assert max(map(len, shop.sender.sent)) <= 25


def test_batches_are_cut_by_bytes_as_well(shop: Shop) -> None:
    shop.serve(shop.courier(Limits(spans=512, size=2500)))
    assert max(map(len, shop.sender.sent)) == 20
    assert shop.sender.accepted == list(range(SPANS))


def test_what_is_too_large_is_halved_and_the_size_is_remembered(shop: Shop) -> None:
    shop.sender.answer = lambda spans: TooLarge(reason="413") if len(spans) > 5 else Delivered(count=len(spans))
    account = shop.serve()
    assert (account.exported, account.dropped) == (SPANS, {})
    assert shop.sender.accepted == list(range(SPANS))
    first, second = shop.sender.sent[:10], shop.sender.sent[-10:]
    assert len(first[0]) > len(second[0])


def test_a_single_span_that_is_too_large_goes_smaller_or_is_counted(shop: Shop) -> None:
    def answer(spans: Sequence[SpanRecord]) -> Outcome:
        large = any(each.start_ns in (3, 7) and "small" not in each.attributes for each in spans)
        return TooLarge(reason="answered 413") if large else Delivered(count=len(spans))

    def dress(each: SpanRecord, _size: int) -> Leaving:
        small = span(each.start_ns, small=True)
        return Leaving(span=each, smaller=Leaving(span=small, referred=True) if each.start_ns == 3 else None)

    shop.sender.answer = answer
    courier = Courier(
        shop.sender, shop.number, shop.outbox, Wares(load=shop.load, dress=dress), Limits(spans=25, size=1_000_000)
    )
    account = shop.serve(courier)
    assert (account.exported, account.referred, account.dropped) == (99, 1, {"too large": 1})
    assert sorted(shop.sender.accepted) == [each for each in range(SPANS) if each != 7]
    assert "single span" in courier.reason


def test_one_bad_span_costs_no_other(shop: Shop) -> None:
    def answer(spans: Sequence[SpanRecord]) -> Outcome:
        if any(each.start_ns in (17, 58) for each in spans):
            return Rejected(count=len(spans), reason="answered 400: bad name", whole=True)
        return Delivered(count=len(spans))

    shop.sender.answer = answer
    account = shop.serve()
    assert (account.exported, account.dropped) == (98, {"rejected: answered 400": 2})
    assert shop.sender.accepted == [each for each in range(SPANS) if each not in (17, 58)]


def test_a_backend_that_refuses_everything_is_not_asked_span_by_span(shop: Shop) -> None:
    shop.sender.answer = lambda spans: Rejected(count=len(spans), reason="answered 400", whole=True)
    account = shop.serve()
    assert account.dropped == {"rejected: answered 400": SPANS}
    assert len(shop.sender.sent) < 40


def test_a_partial_success_is_counted_as_it_was_said(shop: Shop) -> None:
    shop.sender.answer = lambda spans: Rejected(count=3, delivered=len(spans) - 3, reason="bad names")
    account = shop.serve()
    assert (account.exported, account.dropped) == (SPANS - 15, {"rejected: partial success": 15})
    assert len(shop.sender.sent) == 5, "nothing is sent again that was answered"


def test_a_wrong_setting_costs_nothing(shop: Shop) -> None:
    shop.sender.answer = lambda spans: Rejected(count=len(spans), reason="answered 302, …", cure="setting")
    courier, before = shop.courier(), time.time_ns()
    account = shop.serve(courier)
    assert (account.exported, account.waiting, account.error) == (0, SPANS, "answered 302, …")
    assert len(shop.sender.sent) == 1
    assert account.next_try_ns - 25 * 10**9 > before
    assert not courier.serve(), "it is left alone for a while"
    shop.sender.answer = lambda spans: Delivered(count=len(spans))
    assert courier.serve(force=True)
    assert shop.serve(courier).exported == SPANS


def test_a_fault_of_the_server_that_may_pass_is_given_time_and_then_taken_for_an_answer(shop: Shop) -> None:
    shop.sender.answer = lambda spans: Rejected(count=len(spans), reason="answered 500", whole=True, cure="time")
    courier = shop.courier()
    for _ in range(5):
        courier.serve(force=True)
        assert shop.account.waiting == SPANS
    courier.serve(force=True)
    assert shop.account.dropped == {"rejected: answered 500": 1}, "the first span alone: it may be the cause"


class Clock:
    """The system's clock, standing still until it is moved."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now_ns = time.time_ns()
        patch.setattr(time, "time_ns", lambda: self.now_ns)

    def move(self, seconds: float) -> None:
        """Let so much time pass."""
        self.now_ns += int(seconds * 1e9)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_a_request_to_be_left_alone_is_kept_to_even_when_forced(shop: Shop, clock: Clock) -> None:
    shop.sender.answer = lambda _: Retry(reason="answered 429", after_s=30)
    courier = shop.courier()
    assert not courier.serve()
    clock.move(29.9)
    assert not courier.serve()
    assert not courier.serve(force=True)
    assert len(shop.sender.sent) == 1
    shop.sender.answer = lambda spans: Delivered(count=len(spans))
    clock.move(0.2)
    assert courier.serve()


@pytest.mark.usefixtures("clock")
def test_pauses_grow_and_have_chance_in_them(shop: Shop) -> None:
    shop.sender.answer = lambda _: Retry(reason="refused")
    courier, pauses = shop.courier(), []
    for _ in range(6):
        courier.serve(force=True)
        pauses.append((shop.account.next_try_ns - time.time_ns()) / 1e9)
    assert pauses[0] <= 0.5
    assert 8 <= pauses[5] <= 16
    assert shop.account.tries == 6


def test_a_deleted_trace_is_counted_and_the_rest_goes(shop: Shop) -> None:
    shop.gone = {0, 4}
    account = shop.serve()
    assert (account.exported, account.dropped) == (80, {"no longer in the store": 20})
    assert shop.sender.accepted == [each for each in range(SPANS) if each // 10 not in (0, 4)]


def test_a_sender_with_a_defect_is_an_answer_to_the_span_that_shows_it(shop: Shop) -> None:
    def answer(spans: Sequence[SpanRecord]) -> Outcome:
        if any(each.start_ns == 33 for each in spans):
            raise ZeroDivisionError
        return Delivered(count=len(spans))

    shop.sender.answer = answer
    account = shop.serve()
    assert (account.exported, account.dropped) == (99, {"rejected: sending failed": 1})


def test_another_courier_begins_where_a_killed_one_stopped(shop: Shop) -> None:
    calls = iter(range(10))

    def answer(spans: Sequence[SpanRecord]) -> Outcome:
        if next(calls) == 2:
            raise KeyboardInterrupt  # as a signal would end it, between sending and noting
        return Delivered(count=len(spans))

    shop.sender.answer = answer
    with pytest.raises(KeyboardInterrupt):
        shop.serve()
    assert shop.account.exported == 40
    assert shop.serve().exported == SPANS
    assert shop.sender.sent[2] == shop.sender.sent[3]


# several at once


def test_a_dead_backend_holds_up_no_other_and_exit_is_bounded(shop: Shop) -> None:
    class Hanging(Scripted):
        def send(self, spans: Sequence[SpanRecord], within_s: float | None = None) -> Outcome:
            del spans, within_s
            over.wait()
            return Retry(reason="no answer")

    over = threading.Event()

    numbers = shop.outbox.register("r", ["http://backend/v1/traces", "hanging"])
    with shop.outbox.taking_in("r-q.rnj", [numbers["hanging"]]) as intake:
        intake.owe([Parcel(trace_id="a" * 32, at=0, size=1000, spans=10)])
    wares = Wares(load=shop.load, dress=lambda each, _size: Leaving(span=each))
    post = Post({shop.number: shop.sender, numbers["hanging"]: Hanging(name="hanging")}, shop.outbox, wares, Limits())
    while {each.exported for each in shop.outbox.accounts()} != {0, SPANS}:
        assert not post.flush(0.1), "it tells the truth"
    well, hanging = post.close(0.1)
    assert (well.exported, well.waiting) == (SPANS, 0)
    assert (hanging.exported, hanging.waiting) == (0, 10)
    over.set()


def test_a_flush_says_that_everything_is_there_when_it_is(shop: Shop) -> None:
    wares = Wares(load=shop.load, dress=lambda each, _size: Leaving(span=each))
    answers = iter([Retry(reason="not yet"), Retry(reason="not yet")])
    shop.sender.answer = lambda spans: next(answers, Delivered(count=len(spans)))
    post = Post({shop.number: shop.sender}, shop.outbox, wares, Limits(), gentle=True)
    assert post.flush(20), "what was put off is tried again in the time there is"
    (standing,) = post.close(0.1)
    assert (standing.exported, standing.waiting) == (SPANS, 0)


# settings


def test_limits_are_read_from_the_environment() -> None:
    assert limits_from({}) == Limits(spans=512, size=4_000_000, exit_s=0.6)
    given = {
        "REENACT_EXPORT_BATCH_SPANS": "10",
        "REENACT_EXPORT_BATCH_BYTES": "2000",
        "REENACT_EXPORT_EXIT_SECONDS": "0",
    }
    assert limits_from(given) == Limits(spans=10, size=2000, exit_s=0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REENACT_EXPORT_BATCH_SPANS", "0"),
        ("REENACT_EXPORT_BATCH_SPANS", "1.5"),
        ("REENACT_EXPORT_BATCH_BYTES", "-1"),
        ("REENACT_EXPORT_BATCH_BYTES", "4MB"),
        ("REENACT_EXPORT_EXIT_SECONDS", "nan"),
        ("REENACT_EXPORT_EXIT_SECONDS", "soon"),
    ],
)
def test_a_limit_that_makes_no_sense_is_named(name: str, value: str) -> None:
    with pytest.raises(InputError, match=name):
        limits_from({name: value})


def test_what_a_backend_has_no_endpoint_for_waits_a_while_and_is_dropped_then(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.sender.answer = lambda spans: Rejected(count=len(spans), reason="answered 404", whole=True, cure="absent")
    courier = shop.courier()
    for tried in range(1, 6):
        assert not courier.serve(force=True)
        assert (shop.account.waiting, shop.account.tries) == (SPANS, tried), "it may be a wrong setting"
    assert not courier.serve(force=True)
    assert (shop.account.waiting, shop.account.dropped) == (0, {ABSENT: SPANS})
    asked = len(shop.sender.sent)
    with shop.outbox.taking_in("r-p.rnj", [shop.number]) as intake:
        intake.owe([Parcel(trace_id="a" * 32, at=20, size=1000, spans=10)])
    assert not courier.serve()
    assert (shop.account.waiting, shop.account.dropped) == (0, {ABSENT: SPANS + 10})
    assert len(shop.sender.sent) == asked, "it is not asked with every batch"
    monkeypatch.setattr(courier, "_absent_until", 0.0)
    shop.sender.answer = lambda spans: Delivered(count=len(spans))
    with shop.outbox.taking_in("r-p.rnj", [shop.number]) as intake:
        intake.owe([Parcel(trace_id="a" * 32, at=21, size=1000, spans=10)])
    assert shop.serve(courier).exported == 10, "and again after a while"
