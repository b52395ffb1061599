"""What is known of a file beside its content: compared where a run changed it, and not where a run only found it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import reenact
from held import Held
from reenact.compare.file_writes import compare_writes
from reenact.values.file_writes import FileWrites, writes_of

SECOND_NS = 10**9
LONG_AGO_NS = 10**18


@reenact.tool
def look_up() -> int:
    return 1


def written(folder: Path, work: Callable[[Path], None]) -> FileWrites:
    """Record what some work writes in a new folder, which holds `old` from long ago."""
    program = folder / "program"
    program.mkdir(parents=True)
    (program / "old").write_text("old")
    os.utime(program / "old", ns=(LONG_AGO_NS, LONG_AGO_NS))

    def run() -> None:
        look_up()
        work(program)

    writes = writes_of(Held(folder / "store").record(run).runs[0])
    assert writes is not None
    named = {path.removeprefix(f"{program}/"): file for path, file in writes.files.items()}
    return FileWrites(files=named, began_ns=writes.began_ns, ended_ns=writes.ended_ns)


def new(folder: Path) -> Path:
    (folder / "new").write_text("new")
    return folder / "new"


def make(folder: Path) -> None:
    new(folder)


def differences(tmp_path: Path, one: Callable[[Path], None], other: Callable[[Path], None]) -> list[str]:
    compared = compare_writes(written(tmp_path / "a", one), written(tmp_path / "b", other))
    return [str(each["field"]) for each in compared.divergences]


def set_attribute(folder: Path, value: bytes) -> None:
    try:
        os.setxattr(new(folder), "user.note", value)
    except OSError as error:
        pytest.skip(f"no extended attributes can be set here: {error}")


def set_time(path: Path, changed_ns: int) -> None:
    os.utime(path, ns=(changed_ns, changed_ns))


def append_nothing(folder: Path) -> None:
    with (folder / "old").open("a"):
        pass


PAIRS: dict[str, tuple[Callable[[Path], None], Callable[[Path], None], list[str]]] = {
    "a mode": (lambda at: new(at).chmod(0o600), lambda at: new(at).chmod(0o640), ["wrote mode of new"]),
    "a mode of what was there": (
        lambda at: (at / "old").chmod(0o600),
        lambda at: (at / "old").chmod(0o640),
        ["wrote mode of old"],
    ),
    "a folder's mode": (lambda at: (at / "d").mkdir(0o700), lambda at: (at / "d").mkdir(0o750), ["wrote mode of d"]),
    "a time": (
        lambda at: set_time(new(at), LONG_AGO_NS),
        lambda at: set_time(new(at), LONG_AGO_NS + SECOND_NS),
        ["wrote time of new"],
    ),
    "a time that one sets": (lambda at: set_time(new(at), LONG_AGO_NS), make, ["wrote time of new"]),
    "an attribute": (
        lambda at: set_attribute(at, b"1"),
        lambda at: set_attribute(at, b"2"),
        ["wrote attributes of new"],
    ),
    "the same": (lambda at: new(at).chmod(0o600), lambda at: new(at).chmod(0o600), []),
    "a time that is found": (append_nothing, append_nothing, []),
}


@pytest.mark.parametrize("name", PAIRS)
def test_what_a_run_changes_of_a_file_beside_its_content_is_compared(tmp_path: Path, name: str) -> None:
    one, other, expected = PAIRS[name]
    assert differences(tmp_path, one, other) == expected


def test_a_time_that_a_clock_says_is_one_of_the_run(tmp_path: Path) -> None:
    """A replay sets the recorded time, which lies before it."""
    clock: list[int] = []

    def record(folder: Path) -> None:
        clock.append(new(folder).stat().st_mtime_ns)
        set_time(folder / "new", clock[0])

    recorded = written(tmp_path / "a", record)
    again = written(tmp_path / "b", lambda folder: set_time(new(folder), clock[0]))
    later = 1000 * SECOND_NS
    moved = FileWrites(files=again.files, began_ns=again.began_ns + later, ended_ns=again.ended_ns + later)
    assert compare_writes(recorded, moved).divergences == ()


def test_an_attribute_that_a_file_had_is_not_compared(tmp_path: Path) -> None:
    """Whether a copy has it says nothing of the program."""

    def begin(folder: Path, value: bytes) -> FileWrites:
        path = folder / "old"
        folder.mkdir()
        path.write_text("old")
        try:
            os.setxattr(path, "user.note", value)
        except OSError as error:
            pytest.skip(f"no extended attributes can be set here: {error}")

        def work() -> None:
            look_up()
            path.write_text("changed")

        writes = writes_of(Held(folder / "store").record(work).runs[0])
        assert writes is not None
        return FileWrites(files={"old": writes.files[str(path)]})

    assert compare_writes(begin(tmp_path / "a", b"1"), begin(tmp_path / "b", b"2")).divergences == ()
