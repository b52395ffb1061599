"""What a process keeps at one place for all its code is state that a tool can change."""

from __future__ import annotations

import decimal
import logging
import logging.handlers
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reenact.boundary.state import reached

LOG = logging.getLogger(__name__)


class Collecting(logging.Handler):
    """A handler of the agent's own."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(record.getMessage())


@pytest.fixture
def handlers() -> Iterator[list[logging.Handler]]:
    made: list[logging.Handler] = [Collecting(), logging.handlers.MemoryHandler(100, flushLevel=logging.CRITICAL)]
    before = LOG.level
    LOG.setLevel(logging.INFO)
    for each in made:
        LOG.addHandler(each)
    yield made
    LOG.setLevel(before)
    for each in made:
        LOG.removeHandler(each)


def tells() -> None:
    Path("nothing").exists()
    LOG.info("lamp")


def computes() -> None:
    Path("nothing").exists()
    with decimal.localcontext() as context:
        context.prec = 3
        decimal.Decimal(2) / 3


def rounds() -> None:
    Path("nothing").exists()
    decimal.getcontext().prec += 1


def hears() -> None:
    Path("nothing").exists()
    signal.signal(signal.SIGUSR1, lambda *_: None)


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize(
    ("tool", "names"),
    [
        (tells, {"logging handler Collecting", "logging handler MemoryHandler"}),
        (computes, set[str]()),
        (rounds, {"decimal.getcontext()"}),
        (hears, {"signal handlers"}),
    ],
)
def test_what_a_tool_changes_there_is_told(tool: Callable[[], None], names: set[str]) -> None:
    signal_handler = signal.getsignal(signal.SIGUSR1)
    with decimal.localcontext():
        before = reached(tool, {})
        tool()
        changed = before.changed(reached(tool, {}, earlier=before))
    signal.signal(signal.SIGUSR1, signal_handler)
    assert names == {*changed} & (names | {"decimal.getcontext()", "signal handlers"})
