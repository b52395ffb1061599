"""Agents that are killed at random instants: all that they were handed is there, in runs that have their root."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dying import DEATHS, Tally, cold, killed, template

LIVES = 200
"""Of each death, where all is asked for."""
PARTS = 10
COLD = 5
BESIDE = 20


def _told(death: str, arm: str, tally: Tally) -> None:
    lives, acknowledged, lost, runs, rootless, orphans = tally.row
    line = f"{arm:8} {death:10} {lives} lives, {acknowledged} acknowledged, {lost} lost, {runs} runs, "
    line += f"{rootless} without root, {orphans} orphans" + (f", {tally.hung} hung" if tally.hung else "")
    sys.stdout.write(f"\n{line}\n")


def _whole(tally: Tally) -> None:
    assert (tally.lost, tally.rootless, tally.orphans) == (0, 0, 0), tally.said[:5]


@pytest.mark.slow
def test_whatever_kills_an_agent_all_that_it_was_handed_is_there(tmp_path: Path) -> None:
    with template("reenact") as begin:
        for death in DEATHS[::4]:
            tally = killed(tmp_path / death, death, 1, begin=begin, seed=3)
            _told(death, "reenact", tally)
            _whole(tally)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("death", DEATHS)
def test_death_at_many_instants(tmp_path: Path, death: str, part: int) -> None:
    with template("reenact") as begin:
        tally = killed(tmp_path / "lives", death, LIVES // PARTS, begin=begin, seed=part)
    _told(death, "reenact", tally)
    _whole(tally)
    assert tally.acknowledged > LIVES // PARTS
    assert tally.runs > LIVES // PARTS // 2


@pytest.mark.slow
@pytest.mark.parametrize("death", DEATHS)
def test_death_after_a_cold_start(tmp_path: Path, death: str) -> None:
    tally = killed(tmp_path / "lives", death, COLD, begin=cold, slowly=4)
    _told(death, "cold", tally)
    _whole(tally)


@pytest.mark.slow
@pytest.mark.parametrize("death", DEATHS)
def test_the_stock_sdk_beside_it(tmp_path: Path, death: str) -> None:
    """It is no promise of ours: the figures are printed, and what ends well is there."""
    with template("otel") as begin:
        tally = killed(tmp_path / death, death, BESIDE, begin=begin, ours=False)
    _told(death, "otel", tally)
    if death == "normal":
        assert (tally.lost, tally.rootless, tally.orphans) == (0, 0, 0)
