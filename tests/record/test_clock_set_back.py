"""A clock that is set back while an agent runs: no span ends before it started, and each says how long it took."""

from __future__ import annotations

import time
from pathlib import Path

import opentelemetry.sdk.trace
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import reenact
from held import Held
from reenact.record import projection, span

HOUR_NS = 3600 * 10**9
TOOK_S = 0.05


class Clock:
    """The wall clock, which an administrator sets back by an hour at some moment."""

    def __init__(self) -> None:
        self.back = 0

    def __call__(self) -> int:
        return time.time_ns() - self.back


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module, name in ((span, "_time_ns"), (projection, "_time_ns"), (opentelemetry.sdk.trace, "time_ns")):
        monkeypatch.setattr(module, name, made)
    return made


def test_no_span_ends_before_it_starts(tmp_path: Path, clock: Clock) -> None:
    shown = InMemorySpanExporter()
    application = TracerProvider()
    application.add_span_processor(SimpleSpanProcessor(shown))

    @reenact.tool
    def set_back() -> None:
        clock.back = HOUR_NS
        time.sleep(TOOK_S)
        raise LookupError

    def work() -> None:
        with reenact.run("unit"):
            set_back()

    did = Held(tmp_path).record(work, application=application)
    (run,) = did.runs
    assert len(run.nodes) == 2
    for node in run.nodes:
        assert node.span.end_ns - node.span.start_ns >= TOOK_S * 10**9
        assert node.span.end_ns - node.span.start_ns < HOUR_NS
    events = [event for node in run.nodes[1:] for event in node.span.events]
    assert events
    assert all(run.nodes[1].span.start_ns <= event.time_ns <= run.nodes[1].span.end_ns for event in events)
    (projected,) = shown.get_finished_spans()
    assert (projected.end_time or 0) >= (projected.start_time or 0)
