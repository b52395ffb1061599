"""A bit that flipped in a journal costs a frame; what is lost lowers the verdict of the run that lost it alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

import reenact
from held import Held
from reenact.formats import journal
from reenact.graph.verdict import judge
from reenact.keep.recovering import Recovered, recover
from reenact.pipeline import recording
from reenact.stores.directory import DirectoryStore
from reenact.values.run import Run

UNITS = 3


@reenact.tool
def look_up(item: str) -> str:
    return f"{item} is there"


@reenact.tool
def read_out(item: str) -> Iterator[str]:
    for number in range(3):
        yield f"{item} {number}"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, bytes]:
    """The journal of a process that did a few units, one after the other, and ended well."""
    held = Held(tmp_path_factory.mktemp("written"))
    made = held.start()
    for number in range(UNITS):
        with reenact.run(f"unit {number}"):
            look_up(f"tea {number}")
            list(read_out(f"milk {number}"))
    recording.stop(made)
    (path,) = (held.store / "journal").iterdir()
    return path.name, path.read_bytes()


def frames(data: bytes) -> Iterator[tuple[int, int]]:
    """Give where each frame begins and ends."""
    at = len(journal.MAGIC)
    while at < len(data):
        length = int.from_bytes(data[at : at + 4])
        yield at, at + 8 + length
        at += 8 + length


def flipped(data: bytes, place: int, bit: int) -> bytes:
    changed = bytearray(data)
    changed[place] ^= 1 << bit
    return bytes(changed)


def recovered(folder: Path, name: str, data: bytes) -> Recovered:
    store = DirectoryStore(folder)
    store.prepare()
    (store.journals / name).write_bytes(data)
    return recover(store)


def reasons(run: Run) -> set[tuple[str, str]]:
    return {(reason.field, reason.lost) for reason in judge(run).reasons}


def by_name(found: Recovered) -> dict[str, Run]:
    return {run.name: run for run in found.runs}


def test_undamaged_all_is_there(tmp_path: Path, written: tuple[str, bytes]) -> None:
    found = recovered(tmp_path, *written)
    assert sorted(by_name(found)) == [f"unit {number}" for number in range(UNITS)]
    assert found.damaged == ()
    assert {len(run.nodes) for run in found.runs} == {3}


@pytest.mark.parametrize("place", range(len(journal.MAGIC)))
def test_in_the_magic_it_costs_nothing_but_the_journal_is_kept(
    tmp_path: Path, written: tuple[str, bytes], place: int
) -> None:
    name, data = written
    whole = by_name(recovered(tmp_path / "whole", name, data))
    for bit in range(8):
        found = recovered(tmp_path / f"{bit}", name, flipped(data, place, bit))
        assert {name: reasons(run) for name, run in by_name(found).items()} == {
            name: reasons(run) for name, run in whole.items()
        }
        one_version_of_another = data[place] ^ 1 << bit == ord("2")  # that are read alike
        assert len(found.damaged) == (not one_version_of_another)


def test_in_the_first_frame_it_costs_what_is_known_of_the_process(tmp_path: Path, written: tuple[str, bytes]) -> None:
    name, data = written
    begin, end = next(frames(data))
    for number, place in enumerate((begin, begin + 3, begin + 7, begin + 8, (begin + end) // 2, end - 1)):
        found = recovered(tmp_path / f"{number}", name, flipped(data, place, 5))
        assert sorted(by_name(found)) == [f"unit {number}" for number in range(UNITS)]
        assert {run.recording for run in found.runs} == {name.partition("-")[0]}
        assert {len(run.nodes) for run in found.runs} == {3}


def test_in_any_frame_it_lowers_the_verdict_of_its_run_and_of_no_other(
    tmp_path: Path, written: tuple[str, bytes]
) -> None:
    name, data = written
    whole = {name: reasons(run) for name, run in by_name(recovered(tmp_path / "whole", name, data)).items()}
    chance, seen, harmless = Random(11), 0, 0
    places = list(frames(data))[2:]
    unit = -1
    for number, (begin, end) in enumerate(places):
        payload = data[begin + 8 : end]
        if b'"reenact.run.root":true' in payload and b'"t":"start"' in payload:
            unit += 1
        place = chance.choice([begin + 1, begin + 5, chance.randrange(begin + 8, end), end - 2])
        found = recovered(tmp_path / f"{number}", name, flipped(data, place, chance.randrange(8)))
        now = by_name(found)
        lost = [each for each, before in whole.items() if each not in now or not reasons(now[each]) > before]
        if payload.startswith((b'{"t":"chunk"', b'{"t":"head"', b'{"t":"note"')):
            assert len(lost) == UNITS, "the end of a stream holds its pieces again"
            harmless += 1
            continue
        seen += 1
        hurt = set(whole) - set(lost)
        renamed = [each for each in now if each not in whole]
        assert len(hurt) + len(renamed) == 1, (payload[:60], place - begin, lost)
        assert f"unit {unit}" not in lost or renamed, "it is the run that the frame was of"
        for each in set(whole) - {f"unit {unit}"}:
            assert reasons(now[each]) == whole[each], "no other is the worse for it"
            assert len(now[each].nodes) == 3
    assert (seen, harmless) == (UNITS * 6, UNITS * 3)
