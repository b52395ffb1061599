"""What a replay refuses and the recorded run had too says nothing of the program."""

from __future__ import annotations

from pathlib import Path

from reenact.compare.refusals import by_the_world, until_prevented
from reenact.values.run import Run

NOTHING = Run(id="0" * 32, name="program.py", root=None, nodes=())
REFUSED = {"t": "refused", "event": "reenact.native", "what": "open database /outside/new", "where": "program.py:21"}


def test_a_file_that_native_code_was_refused_leaves_a_replay_unjudged(tmp_path: Path) -> None:
    later = {"t": "refused", "event": "open", "what": "write x", "where": "program.py:30", "path": str(tmp_path / "x")}
    ledger, why = until_prevented(NOTHING, (), [{**REFUSED, "path": "/outside/new"}, later])
    assert len(ledger) == 1
    assert why == (
        "open database /outside/new at program.py:21 was refused, which this world has no place for; "
        "what follows was not seen"
    )


def test_a_connection_that_native_code_was_refused_counts_where_the_recording_has_none() -> None:
    entry = {**REFUSED, "what": "connect by curl_cffi"}
    assert until_prevented(NOTHING, (), [entry]) == ([entry], "")


CELL = {"processes": "enforced", "files copied in": "/home/me/app"}
WROTE = {"field": "wrote /data/report.csv, line 1", "path": "/data/report.csv", "a": "x", "b": "y"}


def test_a_file_outside_the_one_copied_folder_says_nothing_of_the_program() -> None:
    assert (
        by_the_world([WROTE], [], CELL, {})
        == "it writes /data/report.csv, and this world has a copy of /home/me/app alone"
    )
    for path in ("/home/me/app/report.csv", "report.csv"):
        assert by_the_world([{**WROTE, "path": path}], [], CELL, {}) == ""
    assert by_the_world([WROTE], [], {"processes": "enforced"}, {}) == ""


def test_what_the_kernel_refused_before_the_first_difference_may_be_why() -> None:
    refused = {
        "t": "prevented",
        "what": "open /data/x to be written",
        "where": "python",
        "event": "kernel",
    }
    printed = {"field": "stdout, line 1", "a": "True", "b": "False"}
    assert "open /data/x to be written (a system call of python) was refused" in by_the_world(
        [printed], [refused], CELL, {}
    )
    assert by_the_world([printed], [{"t": "miss"}, refused], CELL, {}) == ""
