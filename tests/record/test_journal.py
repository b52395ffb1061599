from __future__ import annotations

import fcntl
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import reenact
from disks import small_disk
from held import Held
from reenact.formats.journal import FORMAT
from reenact.keep.drain import Drain
from reenact.pipeline import recording
from reenact.stores.directory import DirectoryStore
from reenact.values.call import Returned, Streamed, Unfinished
from reenact.values.run import Run

AGENT = """
import sys
from pathlib import Path
import reenact
from reenact.pipeline import recording

@reenact.tool
def work(number):
    return {"number": number, "text": "x" * (number % 7) * 1000}

@reenact.tool
def pieces(number):
    yield from range(number, number + 3)

made = recording.start(recording.Setup(store=Path(sys.argv[1])), {})
number = 0
while True:
    number += 1
    work(number)
    sys.stdout.write(f"work {number}\\n")
    sys.stdout.flush()
    for piece in pieces(number):
        sys.stdout.write(f"piece {number} {piece}\\n")
        sys.stdout.flush()
"""
EXPECTED_PIECES = 3


def drained(folder: Path) -> list[Run]:
    return Drain(DirectoryStore(folder)).finish()


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(6))
def test_all_that_an_agent_was_handed_before_it_was_killed_is_there(tmp_path: Path, seed: int) -> None:
    agent = subprocess.Popen([sys.executable, "-c", AGENT, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert agent.stdout is not None
    acknowledged = [agent.stdout.readline()]
    time.sleep(random.Random(seed).uniform(0, 0.06))
    agent.kill()
    acknowledged += agent.stdout.read().splitlines()
    assert agent.wait() == -signal.SIGKILL

    (run,) = drained(tmp_path)
    assert run.root is not None
    assert run.root.span.attributes["reenact.incomplete"] is True
    assert not any(node.orphan for node in run.nodes)
    finished = [node for node in run.nodes if node.call.name == "work" and isinstance(node.outcome, Returned)]
    assert len(finished) >= sum(line.startswith("work") for line in acknowledged)
    read = [node.outcome for node in run.nodes if node.call.name == "pieces" and isinstance(node.outcome, Streamed)]
    assert sum(len(outcome.chunks) for outcome in read) >= sum(line.startswith("piece") for line in acknowledged)
    assert all(len(outcome.chunks) == EXPECTED_PIECES for outcome in read[:-1])
    open_calls = [node for node in run.nodes if isinstance(node.outcome, Unfinished) and node is not run.root]
    assert len(open_calls) <= 1
    assert list((tmp_path / "journal").iterdir()) == []


# a full disk


@pytest.fixture
def disk() -> Iterator[Path]:
    with small_disk("size=64k") as folder:
        yield folder


@reenact.tool
def bulky(number: int) -> str:
    return f"{number}" * 10_000


def test_a_full_disk_leaves_the_agent_alone_and_is_told_once(disk: Path, capfd: pytest.CaptureFixture[str]) -> None:
    made = recording.start(recording.Setup(store=disk), {})
    try:
        results = [bulky(number) for number in range(20)]
    finally:
        recording.stop(made)
    assert results == [f"{number}" * 10_000 for number in range(20)]
    said = capfd.readouterr().err
    assert said.count("the program goes on unrecorded") == 1
    assert "No space left" in said
    assert made.journal.dropped > 1


def test_what_comes_after_a_full_disk_can_be_read_again(disk: Path, tmp_path: Path) -> None:
    """A frame that was cut is ended before the next one begins, so that readers find their way."""
    made = recording.start(recording.Setup(store=disk), {})
    ballast = disk / "ballast"
    bulky(1)
    ballast.write_bytes(b"x" * (64 * 1024 - sum(file.stat().st_size for file in disk.rglob("*")) - 12_000))
    for number in range(2, 6):
        bulky(number)
    assert made.journal.dropped
    ballast.unlink()
    bulky(0)
    recording.stop(made)
    shutil.copytree(disk / "journal", tmp_path / "store" / "journal")
    (run,) = drained(tmp_path / "store")
    whole = [node.call.request for node in run.nodes if isinstance(node.outcome, Returned)]
    assert [getattr(request, "arguments", None) for request in whole][-1] == {"number": 0}
    assert run.root is not None
    assert not run.root.span.attributes.get("reenact.incomplete")


def test_a_folder_that_cannot_be_written_leaves_the_agent_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "store").write_text("a file in the way")
    did = recording.start(recording.Setup(store=tmp_path / "store"), {})
    try:
        assert bulky(1) == "1" * 10_000
    finally:
        recording.stop(did)
    assert capfd.readouterr().err.count("goes on unrecorded") == 1


# several processes


@reenact.tool
def who(name: str) -> int:
    del name
    return os.getpid()


def test_a_forked_child_writes_a_journal_of_its_own(tmp_path: Path) -> None:
    held = Held(tmp_path)

    def work() -> int:
        who("parent before")
        child = os.fork()
        if child == 0:
            who("child")
            os._exit(0)
        os.waitpid(child, 0)
        who("parent after")
        return child

    made = held.start()
    child = work()
    journals = sorted((held.store / "journal").glob(f"*{FORMAT.suffix}"))
    assert len(journals) == 2
    (run,) = held.finish(made)
    assert not any(node.orphan for node in run.nodes)
    by_name = {
        str(node.call.request.arguments["name"]): node  # type: ignore[union-attr, call-overload, index]
        for node in run.nodes
        if node.call.name == "who"
    }
    assert by_name.keys() == {"parent before", "child", "parent after"}
    resources = {name: node.span.resource.attributes for name, node in by_name.items()}
    assert resources["child"]["process.pid"] == child
    assert resources["child"]["reenact.process.id"] != resources["parent after"]["reenact.process.id"]


def test_a_journal_in_use_is_locked_from_the_moment_it_has_its_name(tmp_path: Path) -> None:
    held = Held(tmp_path)
    made = held.start()
    who("x")
    (journal,) = (held.store / "journal").iterdir()
    with journal.open("rb") as stream:
        assert stream.read(8) == b"RNACTJ3\n"
        with pytest.raises(BlockingIOError):
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    recording.stop(made)
    with journal.open("rb") as stream:
        fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    assert journal.stat().st_mode & 0o077 == 0, "for its owner's eyes only"


def test_a_call_that_outlives_its_recording_writes_nothing(tmp_path: Path) -> None:
    held = Held(tmp_path)

    @reenact.tool
    def long() -> Iterator[int]:
        yield from range(3)

    made = held.start()
    steps = long()
    next(steps)
    runs = held.finish(made)
    assert list(steps) == [1, 2]
    assert list((held.store / "journal").iterdir()) == []
    assert [node.call.name for node in runs[0].nodes if node.span.attributes.get("reenact.incomplete")] == ["long"]
