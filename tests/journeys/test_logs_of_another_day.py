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


READS_ITS_LOG = """
import logging, sys
import reenact

@reenact.tool
def look_up(line):
    return line.upper()

logging.basicConfig(filename="agent.log", format=sys.argv[1], level="INFO")
logging.info("begins")
before = open("agent.log").read() if len(sys.argv) == 2 else ""
logging.info(look_up(before))
"""


@pytest.mark.always
@pytest.mark.parametrize(
    ("form", "more", "verdict"),
    [("%(asctime)s %(message)s", [], "partial"), ("%(message)s", [], "exact"), ("%(asctime)s", ["unread"], "exact")],
)
def test_a_log_that_the_program_reads_again_is_told_where_it_has_times(
    desk: Desk, form: str, more: list[str], verdict: str
) -> None:
    desk.write("agent.py", READS_ITS_LOG)
    assert desk.reenact("run", "-q", "--", "python", "agent.py", form, *more).returncode == 0
    told = desk.reenact("doctor", "last").stdout
    assert (told.partition(":")[0], "agent.log as the program read it" in told) == (verdict, verdict == "partial")
    assert desk.reenact("replay", "last").returncode == (1 if verdict == "partial" else 0)
