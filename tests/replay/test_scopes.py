"""A block that is replayed in this process: it plays the run that it is given, and says which scopes it misses."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

import reenact
from held import Did, Held
from reenact.errors import Diverged
from reenact.find.sources import RunSource


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held(tmp_path)


@reenact.tool
def price(item: str) -> int:
    return len(item)


@reenact.tool
def send(ticket: str) -> str:
    return ticket


@reenact.agent
def sale() -> str:
    price("tea")
    return send(str(uuid.uuid4()))


def first() -> str:
    return sale()


def second() -> str:
    price("tea")
    return send(str(uuid.uuid4()))


@pytest.fixture
def did(held: Held) -> Did:
    """Two runs of one process, each of which looks the same thing up and draws an id."""

    def work() -> list[str]:
        told: list[str] = []
        for name, made in (("first", first), ("second", second)):
            with reenact.run(name):
                told.append(made())
        return told

    return held.record(work)


@pytest.mark.parametrize("inside", [True, False], ids=["in a run", "in none"])
@pytest.mark.parametrize(("name", "block"), [("first", first), ("second", second)])
def test_a_block_plays_the_run_that_it_is_given(
    held: Held, did: Did, name: str, block: Callable[[], str], *, inside: bool
) -> None:
    at = next(at for at, run in enumerate(did.runs) if run.name == name)
    found = RunSource(run=did.runs[at], siblings=(*did.runs[:at], *did.runs[at + 1 :]), source="test")
    with reenact.replay(found, store=held.store) as handle, reenact.run(name) if inside else nullcontext():
        value = block()
    assert value == did.value[("first", "second").index(name)]
    assert handle.result is not None
    assert (handle.result.result, handle.result.answered) == ("same", {"tool": 2})


def test_a_block_says_which_scopes_it_is_outside_of(held: Held, did: Did) -> None:
    found = RunSource(run=next(run for run in did.runs if run.name == "first"), siblings=(), source="test")
    with pytest.raises(Diverged) as caught, reenact.replay(found, store=held.store):
        second()
    scopes = 'with reenact.run("first"), @reenact.agent sale'
    assert f"was recorded inside of {scopes}, outside of which this ran" in str(caught.value.hint)
