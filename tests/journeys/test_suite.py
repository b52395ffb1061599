"""A whole suite of recordings, replayed at once: one summary, the worst exit code, nothing left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from desk import Desk

AGENT = """
import os, sys, time
import reenact

@reenact.tool
def weigh(parcel, unit="kg"):
    return {"parcel": parcel, "unit": unit, "weight": 4.5}

print(weigh(sys.argv[1], os.environ.get("UNIT", "kg")))
if os.environ.get("SLOW"):
    time.sleep(60)
"""
PARCELS = ("P-1", "P-2", "P-3", "P-4")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """Four runs of a small program in a store, and one file for each of them."""
    desk = Desk(tmp_path_factory.mktemp("suite"))
    program = desk.write("agent.py", AGENT)
    (desk.folder / "suite" / "more").mkdir(parents=True)
    for place, parcel in enumerate(PARCELS):
        done = desk.reenact("run", "-q", "--", "python", program, parcel)
        assert done.returncode == 0, done.stderr
        folder = "suite/more" if place == 3 else "suite"
        assert desk.reenact("export", "last", "-o", f"{folder}/{parcel}.jsonl").returncode == 0
    return desk


@pytest.mark.slow
def test_a_folder_of_recordings_is_replayed_and_summed_up(recorded: Desk) -> None:
    done = recorded.reenact("replay", "--trust", "--all", "suite", "--jobs", "2")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["same"] * 4 + ["4"]
    assert [parcel for parcel in PARCELS if parcel in lines[PARCELS.index(parcel)]] == list(PARCELS)
    assert lines[-1].startswith("4 recordings: 4 same; ")
    shown = [line for line in done.stderr.splitlines() if not line.startswith("    ")]  # what each of them starts
    assert len(shown) == len(PARCELS)
    assert all(line.endswith("is not known as your own; it is run, since you said --trust:") for line in shown)


def test_each_is_told_apart_and_the_worst_exit_code_counts(recorded: Desk) -> None:
    suite = recorded.folder / "mixed"
    shutil.copytree(recorded.folder / "suite", suite)
    (suite / "P-1.check").write_text('never called weigh where unit = "g"\n')
    (suite / "P-2.check").write_text('every weigh has unit = "g"\n')
    (suite / "notes.txt").write_text("not a recording\n")
    recorded.environ["UNIT"] = "g"
    done = recorded.reenact("replay", "--trust", "--all", "mixed", "--jobs", "2", "--json")
    told = json.loads(done.stdout)
    assert [(Path(run["recording"]).name, run["word"], run["exit"]) for run in told["runs"]] == [
        ("P-1.jsonl", "broken", 1),
        ("P-2.jsonl", "fixed", 0),
        ("P-3.jsonl", "diverged", 1),
        ("P-4.jsonl", "diverged", 1),
    ]
    assert (done.returncode, told["exit"], told["summary"]) == (1, 1, {"broken": 1, "fixed": 1, "diverged": 2})
    assert told["runs"][2]["divergences"][0]["field"] == "arguments.unit"
    (suite / "damaged.json").write_text("{")
    done = recorded.reenact("replay", "--trust", "--all", "mixed", "--json")
    assert done.returncode == 3
    assert [run["word"] for run in json.loads(done.stdout)["runs"]].count("error") == 1
    recorded.environ.clear()


@pytest.mark.slow
def test_every_run_of_a_store_is_replayed_by_two_suites_at_once(recorded: Desk) -> None:
    """They share the store: none takes for its own what another's program has just left in a journal."""
    words = [sys.executable, "-m", "reenact", "replay", "--all", ".reenact", "--jobs", "3", "--json"]
    both = [subprocess.Popen(words, cwd=recorded.folder, stdout=subprocess.PIPE) for _ in range(2)]
    for suite in both:
        told = json.loads(suite.communicate(timeout=100)[0])
        assert (suite.returncode, told["summary"]) == (0, {"same": 4}), told
        assert len({run["replay"] for run in told["runs"]}) == 4
    assert not list((recorded.folder / ".reenact" / "journal").glob("*.owner"))


@pytest.mark.slow
def test_a_command_is_run_against_each(recorded: Desk) -> None:
    recorded.write("other.py", AGENT.replace("sys.argv[1]", '"P-2"'))
    done = recorded.reenact(
        "replay", "--trust", "--all", "suite", "--assert", "called weigh", "--json", "--", "python", "other.py"
    )
    told = json.loads(done.stdout)
    assert [run["word"] for run in told["runs"]] == ["broken", "same", "broken", "broken"]
    assert done.returncode == 125


def test_a_place_without_recordings_is_not_judged_and_one_that_is_not_there_is_bad_input(recorded: Desk) -> None:
    (recorded.folder / "empty").mkdir()
    for place, why, code in (("empty", "holds no recording", 125), ("nowhere", "is no folder of recordings", 3)):
        done = recorded.reenact("replay", "--trust", "--all", place)
        assert done.returncode == code
        assert why in done.stderr


@pytest.mark.slow
@pytest.mark.sample(2)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["interrupted", "terminated"])
def test_an_interrupted_suite_ends_what_it_started(recorded: Desk, tmp_path: Path, number: signal.Signals) -> None:
    mark = f"SUITE_MARK={tmp_path.name}"
    environ = {**os.environ, "SLOW": "1", "TMPDIR": str(tmp_path), "SUITE_MARK": tmp_path.name}
    words = [sys.executable, "-m", "reenact", "replay", "--trust", "--all", "suite", "--jobs", "2"]
    heard = partial(signal.signal, signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
    own: dict[str, Any] = {"env": environ, "start_new_session": True, "preexec_fn": heard}
    suite = subprocess.Popen(words, cwd=recorded.folder, stderr=subprocess.PIPE, **own)
    until = time.monotonic() + 60
    while len(agents(mark)) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    assert len(agents(mark)) == 2, "two agents are under way"
    suite.send_signal(number)
    suite.communicate(timeout=60)
    assert suite.returncode == 130
    while agents(mark) and time.monotonic() < until:
        time.sleep(0.05)
    assert agents(mark) == []
    assert list(tmp_path.glob("reenact-*")) == []


def agents(mark: str) -> list[int]:
    """Find the living replays of the program that carry a mark in their environment."""
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            told = (process / "environ").read_bytes().split(b"\0")
            words = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in told and b"agent.py" in words:
            found.append(int(process.name))
    return found
