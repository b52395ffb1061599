"""What a process keeps at one place for all its code is state that a tool can change."""

from __future__ import annotations

import decimal
import logging
import logging.handlers
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reenact.boundary import tool_discovery
from reenact.boundary.state import reached
from reenact.values import alarms

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


@pytest.mark.always
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


class Cart:
    """A tool's object that another one reaches."""

    def __init__(self) -> None:
        self.items: dict[str, int] = {"tea": 1}


class Undo:
    """A tool that goes to another one through the table of tools, where both have a stand-in."""

    def __init__(self) -> None:
        self.tools: dict[str, object] = {}

    def __call__(self) -> None:
        Path("nothing").exists()
        cart: Cart = self.tools["cart"]  # type: ignore[assignment]  # as it was put there
        cart.items = {}


@pytest.mark.always
def test_what_hangs_from_the_stand_in_of_a_tool_is_looked_at() -> None:
    undo = Undo()
    undo.tools["cart"] = tool_discovery._Proxy(
        Cart(), lambda wrapped, _instance, args, kwargs: wrapped(*args, **kwargs)
    )
    before = reached(undo, {})
    undo()
    assert before.changed(reached(undo, {}, earlier=before)) == [f"{__name__}:Undo.tools"]


@pytest.mark.always
def test_a_handler_that_is_put_off_for_a_moment_is_the_one_that_it_was() -> None:
    before = reached(hears, {})
    with alarms.postponed():
        changed = before.changed(reached(hears, {}, earlier=before))
    assert changed == []
