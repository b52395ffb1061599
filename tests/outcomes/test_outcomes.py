"""A bug outside every call is a divergence at its place; a program that is as it was is the same.

`REPLAYS=20` replays each unchanged program as often, and promotes each program that has a bug.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import pytest

from outcomes.judged import faults_of
from outcomes.programs import CALM, PAIRS, Program
from outcomes.trial import stage

REPLAYS = int(os.environ.get("REPLAYS", "3"))
MANY = 20
SAMPLE = ("what an agent returns",)
CALM_SAMPLE = ("the time that calls took",)
PROMOTED = (
    "a wrong field printed",
    "a permission that everybody has",
    "a CSV with a column of another",
    "what a chain returns",
    "a log line of the standard library, on stderr",
)


def every(programs: dict[str, Program], but: tuple[str, ...]) -> list[object]:
    """Give the names of all programs but some; those of which a wrong thing is said today are expected to fail.

    Where the wrong thing is said `sometimes`, as races have it, they may.
    """
    return [
        pytest.param(
            name,
            marks=pytest.mark.xfail(reason=program.wrong, strict=not program.wrong.startswith("sometimes"))
            if program.wrong
            else (),
        )
        for name, program in programs.items()
        if name not in but
    ]


def check(program: Program, replays: int, record_property: Callable[[str, object], None]) -> None:
    if program.absent:
        pytest.skip(f"{program.absent} is not here")
    row, faults = faults_of(program, replays)
    record_property("outcome", row)
    assert not faults, "\n".join(faults)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLE)
def test_a_bug_outside_every_call_diverges(name: str, record_property: Callable[[str, object], None]) -> None:
    check(PAIRS[name], 1, record_property)


@pytest.mark.slow
@pytest.mark.parametrize("name", CALM_SAMPLE)
def test_a_program_that_is_as_it_was_is_the_same(name: str, record_property: Callable[[str, object], None]) -> None:
    check(CALM[name], 1, record_property)


@pytest.mark.slow
@pytest.mark.parametrize("name", every(PAIRS, SAMPLE))
def test_each_bug_diverges_at_its_place(name: str, record_property: Callable[[str, object], None]) -> None:
    check(PAIRS[name], REPLAYS, record_property)


@pytest.mark.slow
@pytest.mark.parametrize("name", every(CALM, CALM_SAMPLE))
def test_each_program_that_is_as_it_was_is_the_same(name: str, record_property: Callable[[str, object], None]) -> None:
    check(CALM[name], REPLAYS, record_property)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROMOTED if REPLAYS < MANY else PAIRS)
def test_a_promoted_test_is_red_with_the_bug(name: str) -> None:
    program = PAIRS[name]
    if program.absent:
        pytest.skip(f"{program.absent} is not here")
    with stage(program) as made:
        run = made.recorded()[2]
        promoted = made.reenact("promote", run, "--name", "kept")
        assert promoted.code == 0, promoted.err
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_kept.py"]
        good = made.ran(command)
        assert good.code == 0, good.out.decode()
        program.put_in(made.project)
        wrong = made.ran(command)
    assert wrong.code == 1, wrong.out.decode()
    assert "diverged" in wrong.out.decode()


def test_the_pairs_are_of_many_libraries() -> None:
    libraries = {need for program in PAIRS.values() for need in program.needs} - {"uvicorn"}
    assert len(PAIRS) >= 60
    assert len(CALM) >= 30
    assert len(libraries) >= 20
    assert all(program.bug for program in PAIRS.values())
