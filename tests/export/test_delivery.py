from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pytest

from receivers import ACCEPTED, Receiver, names_in, rejecting, span
from reenact.export.delivery import Delivery, Patience, Report
from reenact.export.fanout import FanOut
from reenact.export.otlp_http import HttpTarget, OtlpHttpSender
from reenact.export.outcome import Delivered, Outcome
from reenact.export.sender import Sender
from reenact.values.span import SpanRecord

SPANS = [span(number) for number in range(1, 9)]
QUICK = Patience(total_s=60.0, first_pause_s=0.01, longest_pause_s=0.05)


def delivered(receiver: Receiver, spans: Sequence[SpanRecord] = SPANS, patience: Patience = QUICK) -> Report:
    delivery = Delivery(OtlpHttpSender(HttpTarget(url=receiver.url)), spans, patience)
    delivery.run()
    return delivery.report()


def test_everything_accepted(receiver: Receiver) -> None:
    report = delivered(receiver)
    assert report == Report(backend=receiver.url, sent=8, rejected=0, left=(), reasons=())
    assert report.complete


def test_nothing_to_send_asks_nobody(receiver: Receiver) -> None:
    assert delivered(receiver, []).complete
    assert not receiver.requests


def test_many_spans_go_in_several_requests(receiver: Receiver) -> None:
    assert delivered(receiver, [span(number) for number in range(1, 1201)]).sent == 1200
    assert [len(names_in(request)) for request in receiver.requests] == [512, 512, 176]


def test_rejections_are_counted_and_not_sent_again(receiver: Receiver) -> None:
    receiver.behave = lambda *_: (200, {"Content-Type": "application/x-protobuf"}, rejecting(3, "bad names"))
    report = delivered(receiver)
    assert (report.sent, report.rejected, report.left, report.reasons) == (5, 3, (), ("bad names",))
    assert len(receiver.requests) == 1
    assert not report.complete


def test_what_is_too_large_is_halved_until_it_fits_and_only_the_giant_is_lost(receiver: Receiver) -> None:
    spans = [*SPANS, span(9, text="x" * 5000)]
    receiver.behave = lambda _, request: (413, {}, b"") if request.ByteSize() > 1000 else ACCEPTED
    report = delivered(receiver, spans)
    assert (report.sent, report.rejected, report.left) == (8, 1, ())
    assert "single span" in report.reasons[0]
    accepted = [names_in(request) for request in receiver.requests if request.ByteSize() <= 1000]
    assert [name for names in accepted for name in names] == [each.name for each in SPANS]


def test_a_backend_that_comes_back_gets_everything(receiver: Receiver) -> None:
    receiver.behave = lambda state, _: (503, {}, b"starting") if len(state.requests) < 3 else ACCEPTED
    report = delivered(receiver)
    assert (report.sent, report.left) == (8, ())
    assert report.reasons == ("answered 503: starting",)
    assert len(receiver.requests) == 4


def waiting_for_nothing(receiver: Receiver) -> tuple[Delivery, list[float]]:
    """Deliver without waiting; give the delivery, and for how many seconds it would have waited each time."""
    delivery, pauses = Delivery(OtlpHttpSender(HttpTarget(url=receiver.url)), SPANS, QUICK), list[float]()
    delivery._given_up.wait = lambda pause=None: pauses.append(pause) or False  # type: ignore[method-assign,func-returns-value]
    delivery.run()
    return delivery, pauses


def test_a_backend_that_asks_for_time_gets_it(receiver: Receiver) -> None:
    receiver.behave = lambda state, _: (429, {"Retry-After": "7"}, b"") if not state.requests else ACCEPTED
    delivery, pauses = waiting_for_nothing(receiver)
    assert delivery.report().complete
    assert pauses == [7]


def test_a_backend_that_asks_for_more_time_than_there_is_leaves_the_spans(receiver: Receiver) -> None:
    receiver.behave = lambda *_: (503, {"Retry-After": "3600"}, b"")
    delivery, pauses = waiting_for_nothing(receiver)
    report = delivery.report()
    assert pauses == []
    assert report.left == tuple(SPANS)
    assert report.undelivered == 8
    assert "left alone for 3.6e+03 s" in report.reasons[1]


def test_patience_ends(receiver: Receiver) -> None:
    receiver.behave = lambda *_: (503, {}, b"")
    report = delivered(receiver, patience=Patience(total_s=1.0, first_pause_s=0.02, longest_pause_s=0.05))
    assert report.undelivered == 8
    assert len(receiver.requests) > 3
    assert "given up" in report.reasons[-1]


class _Broken:
    """A sender with a defect."""

    name = "broken"

    def send(self, spans: Sequence[SpanRecord], within_s: float | None = None) -> Outcome:
        del within_s
        raise ZeroDivisionError(len(spans))

    def close(self) -> None:
        pass


def test_a_sender_with_a_defect_is_reported_and_raises_nothing() -> None:
    (report,) = FanOut([_Broken()], QUICK).deliver(SPANS)
    assert (report.rejected, report.reasons) == (8, ("sending failed: ZeroDivisionError: 8",))


class _Stuck:
    """A sender that hangs where no time limit reaches, such as a name look-up."""

    name = "stuck"

    def __init__(self) -> None:
        self.let_go = threading.Event()

    def send(self, spans: Sequence[SpanRecord], within_s: float | None = None) -> Outcome:
        del within_s
        self.let_go.wait()
        return Delivered(count=len(spans))

    def close(self) -> None:
        self.let_go.wait()


def test_a_backend_that_hangs_holds_up_no_other(receiver: Receiver) -> None:
    """It hangs for ever: what comes after it in this test is done although it does."""
    stuck = _Stuck()
    senders: list[Sender] = [stuck, OtlpHttpSender(HttpTarget(url=receiver.url))]
    fanout = FanOut(senders, Patience(total_s=2.0))
    hanging, well = fanout.deliver(SPANS)
    assert well.complete
    assert hanging.left == tuple(SPANS)
    assert hanging.reasons == ("no answer within 2 s",)
    fanout.close()
    stuck.let_go.set()


def test_dead_and_living_backends_are_reported_apart(receiver: Receiver) -> None:
    dead = OtlpHttpSender(HttpTarget(url="http://127.0.0.1:9/v1/traces"))
    reports = FanOut([dead, OtlpHttpSender(HttpTarget(url=receiver.url))], Patience(total_s=2.0)).deliver(SPANS)
    assert [(report.sent, report.undelivered) for report in reports] == [(0, 8), (8, 0)]
    assert receiver.names == [each.name for each in SPANS]


def test_where_no_thread_can_be_started_the_spans_are_sent_all_the_same(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    fanout = FanOut([OtlpHttpSender(HttpTarget(url=receiver.url))], QUICK)
    start: Callable[[threading.Thread], None] = threading.Thread.start

    def ending(thread: threading.Thread) -> None:
        if thread.name.startswith("reenact") or isinstance(thread, threading.Timer):
            raise RuntimeError("can't create new thread at interpreter shutdown")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", ending)
    assert fanout.deliver(SPANS)[0].complete
