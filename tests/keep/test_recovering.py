"""What dead processes left becomes runs that hang together, whatever of it was destroyed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

import reenact
from held import Held
from reenact.cli.main import reenact as command
from reenact.formats.journal import Reader
from reenact.graph.verdict import judge
from reenact.keep.recovering import Recovered, recover
from reenact.pipeline import recording
from reenact.stores.directory import DirectoryStore
from reenact.values.call import Returned, Streamed, Value
from reenact.values.run import Run

KILLED = """
import os, sys, reenact
from pathlib import Path
from reenact.pipeline import recording

@reenact.tool
def look_up(item): return {"item": item}

@reenact.retriever
def pieces(item):
    yield from (f"{item} {number}" for number in range(5))

recording.start(recording.Setup(store=Path(sys.argv[1])), {})
for item in ("tea", "milk", "sugar"):
    look_up(item)
half = pieces("tea")
next(half), next(half)
os.kill(os.getpid(), 9)
"""


@reenact.tool
def look_up(item: str) -> dict[str, str]:
    return {"item": item}


@reenact.chain
def research(*items: str) -> list[dict[str, str]]:
    return [look_up(item) for item in items]


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, bytes]:
    """The name and bytes of the journal that a killed process left behind."""
    store = tmp_path_factory.mktemp("killed")
    subprocess.run([sys.executable, "-c", KILLED, str(store)], check=False)
    (journal,) = (store / "journal").iterdir()
    return journal.name, journal.read_bytes()


def put(folder: Path, name: str, data: bytes) -> DirectoryStore:
    store = DirectoryStore(folder)
    store.prepare()
    (store.journals / name).write_bytes(data)
    return store


def answers(run: Run) -> list[object]:
    return [
        node.outcome.payload.json
        for node in run.nodes
        if isinstance(node.outcome, Returned) and isinstance(node.outcome.payload, Value)
    ]


def hangs_together(found: Recovered) -> Run:
    (run,) = found.runs
    assert run.root is not None
    assert not any(node.orphan for node in run.nodes)
    assert judge(run).grade.value in {"partial", "none"}
    return run


def test_a_killed_process_s_journal_becomes_a_run(tmp_path: Path, left: tuple[str, bytes]) -> None:
    found = recover(put(tmp_path, *left))
    run = hangs_together(found)
    assert answers(run) == [{"item": "tea"}, {"item": "milk"}, {"item": "sugar"}]
    stream = run.nodes[-1].outcome
    assert isinstance(stream, Streamed)
    assert [chunk.value for chunk in stream.chunks] == ["tea 0", "tea 1"]
    (journal,) = found.journals
    assert (journal.finished, journal.unfinished, journal.torn, journal.damaged, journal.dropped) == (3, 2, 0, 0, 0)
    assert recover(DirectoryStore(tmp_path)).journals == ()


def test_the_command_says_what_it_found(tmp_path: Path, left: tuple[str, bytes]) -> None:
    put(tmp_path, left[0], left[1][:-7])
    said = CliRunner().invoke(command, ["recover", "--store", str(tmp_path), "--json"])
    assert said.exit_code == 0, said.output
    document = json.loads(said.stdout)
    assert (document["finished"], document["unfinished"], document["made"], document["living"]) == (3, 2, 0, 0)
    (journal,) = document["journals"]
    assert journal["torn_bytes"] > 0
    (run,) = document["runs"]
    assert (run["calls"], run["incomplete"], run["verdict"]) == ({"tool": 3, "retriever": 1}, True, "partial")
    again = CliRunner().invoke(command, ["recover", "--store", str(tmp_path)])
    assert again.output == "nothing to recover: no process left a journal behind\n"


def test_the_command_tells_it_in_words(tmp_path: Path, left: tuple[str, bytes]) -> None:
    put(tmp_path, *left)
    said = CliRunner().invoke(command, ["recover", "--store", str(tmp_path)]).output
    assert ": 3 finished, 2 unfinished\n" in said
    assert "3 tool, 1 retriever; replayable: partial" in said


def test_the_next_start_recovers_by_itself(tmp_path: Path, left: tuple[str, bytes]) -> None:
    store = put(tmp_path, *left)
    program = f"import reenact; reenact.record(store={str(tmp_path)!r}).stop()"
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "REENACT_STORE": str(tmp_path)})
    assert not (store.journals / left[0]).exists()
    assert [entry.name for entry in store.find()] == ["-c"] or len(store.find()) == 1


def test_reenact_run_recovers_what_others_left(tmp_path: Path, left: tuple[str, bytes]) -> None:
    store = put(tmp_path, *left)
    run = [str(Path(sys.executable).with_name("reenact")), "run", "--quiet", "--store", str(tmp_path), "--"]
    subprocess.run([*run, sys.executable, "-c", "pass"], check=True)
    assert not (store.journals / left[0]).exists()
    assert len(store.find()) == 1


def test_a_journal_that_a_living_process_writes_is_left_alone(tmp_path: Path) -> None:
    held = Held(tmp_path)
    made = held.start()
    look_up("tea")
    found = recover(made.store)
    assert (found.journals, found.living) == ((), 1)
    recording.stop(made)
    assert len(recover(made.store).journals) == 1


# torn, damaged


def test_torn_anywhere_it_hangs_together(tmp_path: Path, left: tuple[str, bytes]) -> None:
    name, data = left
    for number, length in enumerate(Random(4).sample(range(len(data)), 25)):
        found = recover(put(tmp_path / f"{number}", name, data[:length]))
        for run in found.runs:
            assert run.root is not None
            assert not any(node.orphan for node in run.nodes)


def test_damaged_anywhere_it_hangs_together_and_costs_one_frame(tmp_path: Path, left: tuple[str, bytes]) -> None:
    name, data = left
    begin = data.index(b'{"t":"start"')
    for number, place in enumerate(Random(5).sample(range(begin, len(data)), 25)):
        broken = bytearray(data)
        broken[place] ^= 0xFF
        found = recover(put(tmp_path / f"{number}", name, bytes(broken)))
        run = hangs_together(found)
        whole = [each for each in answers(run) if each in ({"item": "tea"}, {"item": "milk"}, {"item": "sugar"})]
        assert len(whole) >= 2, "no more is lost than the frame"
        assert found.damaged or found.journals[0].torn


def _frames(data: bytes) -> Iterator[tuple[int, int]]:
    """Give where each frame begins and ends."""
    at = 8
    while at < len(data):
        length = int.from_bytes(data[at : at + 4])
        yield at, at + 8 + length
        at += 8 + length


def test_without_its_root_s_record_a_run_gets_a_root_that_says_so(tmp_path: Path, left: tuple[str, bytes]) -> None:
    name, data = left
    (begin, end) = next((a, b) for a, b in _frames(data) if b'"reenact.run.root"' in data[a:b])
    found = recover(put(tmp_path, name, data[: begin + 20] + b"x" * (end - begin - 20) + data[end:]))
    run = hangs_together(found)
    assert found.made == 1
    assert answers(run) == [{"item": "tea"}, {"item": "milk"}, {"item": "sugar"}]
    assert run.root is not None
    root = run.root.span
    assert root.attributes["reenact.run.root"] is True
    assert root.attributes["reenact.incomplete"] is True
    assert "destroyed" in str(root.attributes["reenact.made"])
    assert root.start_ns == min(node.span.start_ns for node in run.nodes)
    assert [node.parent for node in run.nodes[1:]] == [run.root.id] * 4


def test_a_child_s_journal_hangs_somewhere_even_if_its_parent_s_is_gone(tmp_path: Path) -> None:
    held = Held(tmp_path)
    made = held.start()
    research("before")
    pid = os.fork()
    if pid == 0:
        research("in the child", "again")
        os._exit(0)
    os.waitpid(pid, 0)
    recording.stop(made)
    (parent, child) = sorted((held.store / "journal").iterdir(), key=lambda path: b"in the child" in path.read_bytes())
    parent.unlink()
    assert b"in the child" in child.read_bytes()
    found = recover(made.store)
    run = hangs_together(found)
    assert found.made == 1
    assert [node.call.name for node in run.nodes if node.call.name == "look_up"] == ["look_up", "look_up"]


def test_an_end_whose_beginning_was_destroyed_is_kept(tmp_path: Path, left: tuple[str, bytes]) -> None:
    name, data = left
    (begin, end) = next(
        (a, b) for a, b in _frames(data) if b'"t":"start"' in data[a:b] and b'\\"item\\":\\"milk\\"' in data[a:b]
    )
    found = recover(put(tmp_path, name, data[: begin + 12] + b"x" * (end - begin - 12) + data[end:]))
    run = hangs_together(found)
    (headless,) = [node for node in run.nodes if "its beginning" in str(node.span.attributes.get("reenact.lost"))]
    assert json.loads(str(headless.span.attributes["output.value"])) == {"item": "milk"}
    assert answers(run) == [{"item": "tea"}, {"item": "sugar"}], "nothing is answered from half a call"


def test_a_reader_knows_what_it_does_not_hold(left: tuple[str, bytes]) -> None:
    reader = Reader("test")
    assert len(list(reader.feed(left[1]))) == 3
    assert len(list(reader.unfinished())) == 2
    assert (reader.above, reader.headless, len(reader.traces)) == ({}, {}, 1)
