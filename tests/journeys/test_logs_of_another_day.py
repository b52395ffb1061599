"""A program that logs is the same on another day, whatever its log's dates look like."""

from __future__ import annotations

import pytest

from clock_shift import built
from desk import Desk

LOGS = """
import logging, sys
from rich.logging import RichHandler
import reenact

@reenact.tool
def look_up(city):
    return city.upper()

form = "%(asctime)s %(levelname)s %(message)s"
written = logging.FileHandler("agent.log")
written.setFormatter(logging.Formatter(form, "%d-%b-%y %H:%M"))
printed = logging.StreamHandler(sys.stdout)
printed.setFormatter(logging.Formatter(form, "%m/%d/%Y %I:%M:%S %p"))
logging.basicConfig(level="INFO", handlers=[written, printed, RichHandler()])
logging.info("looks up")
logging.info("it is %s", look_up("delft"))
"""
THREE_DAYS_S = 3 * 86_400


@pytest.mark.always
def test_logs_of_another_day_are_the_same(desk: Desk) -> None:
    desk.write("agent.py", LOGS)
    assert desk.reenact("run", "-q", "--", "python", "agent.py").returncode == 0
    (desk.folder / "agent.log").unlink()
    later = {**desk.bare(), "LD_PRELOAD": str(built(desk.folder)), "CLOCK_SHIFT_S": str(THREE_DAYS_S)}
    done = desk.reenact("replay", "last", environ=later)
    assert (done.returncode, "\nsame: " in done.stderr) == (0, True), done.stderr
    desk.write("agent.py", LOGS.replace('"it is %s"', '"it was %s"'))
    done = desk.reenact("replay", "last", environ=later)
    assert (done.returncode, "it was" in done.stderr) == (1, True), done.stderr
