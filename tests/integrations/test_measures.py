"""What the agent's own code measures of its process comes again; what a library measures is its own."""

from __future__ import annotations

import os
import resource
import shutil
import tracemalloc
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import reenact
from held import Held


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held(tmp_path)


@pytest.fixture
def _traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@reenact.tool
def told(what: str) -> str:
    return what


@pytest.mark.slow
@pytest.mark.usefixtures("_traced")
def test_figures_of_memory_and_of_the_processor_come_again_in_their_class(held: Held) -> None:
    seen: list[tuple[Any, ...]] = []

    def work() -> None:
        kept = ["x" * 1000 for _ in range(len(seen) * 1000)]  # more than before
        used = resource.getrusage(resource.RUSAGE_SELF)
        seen.append((used, tracemalloc.get_traced_memory()))
        told(f"{used.ru_utime} {used.ru_maxrss} {len(kept) * 0}")

    did = held.record(work, generators={})
    assert held.replay(did, work).error is None
    assert seen[0] == seen[1]
    assert [type(each) for each in seen[1]] == [resource.struct_rusage, tuple]
    work()
    assert seen[2] != seen[1], "they are real where nothing is replayed"


def test_load_and_room_on_a_disk_come_again_in_their_class(
    held: Held, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[Any, ...]] = []
    load, room = tmp_path / "load", os.statvfs(tmp_path)

    def work() -> None:
        figures = os.getloadavg(), os.statvfs("/"), shutil.disk_usage("/")
        seen.append(figures)
        told(f"{figures[0]} {figures[1].f_bavail} {figures[2].free}")

    monkeypatch.setattr(os, "getloadavg", lambda: (1.5, float(load.exists()), 0.5))
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result([*room[:4], 7 + load.exists(), *room[5:10]]))
    did = held.record(work, generators={})
    load.touch()
    assert held.replay(did, work).error is None
    assert seen[0] == seen[1]
    assert [type(each).__name__ for each in seen[1]] == ["tuple", "statvfs_result", "usage"]
    work()
    assert seen[2] != seen[1], "they are real where nothing is replayed"


def test_what_a_library_measures_is_its_own(held: Held) -> None:
    library: dict[str, Any] = {"__name__": "library", "__file__": os.__file__}
    exec("import resource\ndef used(): return resource.getrusage(resource.RUSAGE_SELF)", library)
    did = held.record(lambda: (library["used"](), told("")), generators={})
    assert not any("reenact.draws" in node.span.attributes for node in did.runs[0].nodes)


def test_the_number_of_the_machine_comes_again(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def work() -> None:
        seen.append(uuid.getnode())
        told(str(seen[-1]))

    did = held.record(work, generators={})
    monkeypatch.setattr(uuid, "_node", seen[0] ^ 1)
    assert held.replay(did, work).error is None
    assert seen[0] == seen[1]
