"""The host is sacred: whatever becomes of the store, the program starts, and its output and exit code are its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from disks import small_disk

HERE = Path(__file__).parent
ENDS = {"0": 0, "7": 7, "SIGTERM": 128 + 15}
Run = subprocess.CompletedProcess[str]


def environ(**more: str) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("REENACT_", "OTEL_"))}
    return {**plain, "PYTHONPATH": str(HERE.parents[1] / "src"), **more}


def recorded(store: Path, end: str, *deed: str, options: tuple[str, ...] = (), before: tuple[str, ...] = ()) -> Run:
    program = [sys.executable, str(HERE / "ending.py"), end, *deed]
    command = [*before, sys.executable, "-m", "reenact", "run", "--store", str(store), *options, "--", *program]
    return subprocess.run(command, env=environ(), capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def disk() -> Iterator[Path]:
    with small_disk("size=2m") as folder:
        yield folder


def fill(disk: Path, left: int = 0) -> None:
    """Fill a disk but for so many bytes."""
    with (disk / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            file.truncate(max(0, file.tell() - left))


def full(disk: Path, end: str) -> Run:
    """A disk on which nothing can be written at all."""
    fill(disk)
    return recorded(disk / "store", end)


def filled(disk: Path, end: str) -> Run:
    """A disk that is full before the program is over: some of its calls are written."""
    fill(disk, 160 << 10)
    return recorded(disk / "store", end)


def full_at_the_end(disk: Path, end: str) -> Run:
    """A disk with room for the journal, and none for what is made of it."""
    fill(disk, 400 << 10)
    return recorded(disk / "store", end)


def read_only(disk: Path, end: str) -> Run:
    (disk / "store" / "journal").mkdir(parents=True)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    return recorded(disk / "store", end)


def unplugged(disk: Path, end: str) -> Run:
    """A disk that is taken away under a program: where it was is an empty folder."""
    return recorded(disk / "store", end, "unplug", str(disk))


def removed(disk: Path, end: str) -> Run:
    return recorded(disk / "store", end, "remove", str(disk / "store"))


def replaced(disk: Path, end: str) -> Run:
    """A store that is removed, and a file where it was."""
    return recorded(disk / "store", end, "replace", str(disk / "store"))


def not_to_be_made(disk: Path, end: str) -> Run:
    (disk / "file").touch()
    return recorded(disk / "file" / "store", end)


def is_a_file(disk: Path, end: str) -> Run:
    (disk / "store").touch()
    return recorded(disk / "store", end)


def a_loop(disk: Path, end: str) -> Run:
    (disk / "store").symlink_to("store")
    return recorded(disk / "store", end)


def another_s(disk: Path, end: str) -> Run:
    """A store that belongs to somebody else and is closed to us: root's right to pass over that is given up."""
    (disk / "store" / "journal").mkdir(parents=True)
    os.chown(disk / "store" / "journal", 65534, 65534)
    os.chown(disk / "store", 65534, 65534)
    (disk / "store").chmod(0o700)
    rights = "-dac_override,-dac_read_search,-fowner,-sys_admin"
    return recorded(disk / "store", end, before=("setpriv", "--bounding-set", rights, "--inh-caps", rights))


def damaged_index(disk: Path, end: str) -> Run:
    (disk / "store").mkdir()
    (disk / "store" / "index-3.sqlite").write_bytes(b"no database " * 1000)
    return recorded(disk / "store", end)


FATES: tuple[Callable[[Path, str], Run], ...] = (
    full,
    filled,
    full_at_the_end,
    read_only,
    unplugged,
    removed,
    replaced,
    not_to_be_made,
    is_a_file,
    a_loop,
    another_s,
    damaged_index,
)
"""What becomes of a store."""


def alone(end: str) -> str:
    done = subprocess.run(
        [sys.executable, str(HERE / "ending.py"), end], env=environ(), capture_output=True, text=True, check=False
    )
    return done.stdout


def its_own(done: Run, end: str) -> None:
    """See that a program did what it does alone, and that we said in whole sentences what we have to say."""
    assert (done.returncode, done.stdout) == (ENDS[end], alone(end)), done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert "reenact: " in done.stderr


GRID = [
    pytest.param(
        fate, end, marks=() if (fate, end) in {(filled, "SIGTERM"), (not_to_be_made, "7")} else pytest.mark.slow
    )
    for fate in FATES
    for end in ENDS
]
"""Two cells of it with every run of the tests, since each starts three interpreters."""


@pytest.mark.sample(8)
@pytest.mark.parametrize(("fate", "end"), GRID)
def test_whatever_becomes_of_the_store_output_and_exit_code_are_the_programs(
    disk: Path, fate: Callable[[Path, str], Run], end: str
) -> None:
    its_own(fate(disk, end), end)


@pytest.mark.slow
@pytest.mark.parametrize("fate", FATES, ids=lambda fate: fate.__name__)
def test_asked_to_be_strict_it_ends_with_3(disk: Path, fate: Callable[[Path, str], Run], monkeypatch: Any) -> None:
    """Where the store cannot be used the program is not started; what is lost later, the exit code says."""
    monkeypatch.setattr(sys.modules[__name__], "recorded", partial(recorded, options=("--strict",)))
    done = fate(disk, "7")
    if fate is damaged_index:  # it is made again, and nothing is lost
        assert done.returncode == 7, done.stderr
        return
    assert done.returncode == 3, done.stderr
    started = fate in {filled, full_at_the_end, unplugged, removed, replaced}
    assert done.stdout == (alone("7") if started else "")
    assert "Traceback" not in done.stderr


def test_a_program_that_says_it_was_closed_to_keeps_its_exit_code(tmp_path: Path) -> None:
    """Nobody reads what we say: standard error is a pipe whose other end is closed."""
    read, write = os.pipe()
    os.close(read)
    program = [sys.executable, "-c", "print('out'); raise SystemExit(7)"]
    command = [sys.executable, "-m", "reenact", "run", "--store", str(tmp_path / "store"), "--", *program]
    done = subprocess.run(command, env=environ(), stdout=subprocess.PIPE, stderr=write, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stdout) == (7, "out\n")


def test_a_program_has_the_descriptors_that_were_handed_on(tmp_path: Path) -> None:
    """As `3<file` in a shell, a job server or systemd hand them on."""
    read, write = os.pipe()
    program = [sys.executable, "-c", f"import os; os.write({write}, b'through'); raise SystemExit(7)"]
    command = [sys.executable, "-m", "reenact", "run", "--store", str(tmp_path / "store"), "--", *program]
    done = subprocess.run(command, env=environ(), pass_fds=[write], capture_output=True, text=True, check=False)
    os.close(write)
    with os.fdopen(read, "rb") as handed:
        assert (done.returncode, handed.read()) == (7, b"through"), done.stderr


def test_a_program_has_no_descriptor_of_ours(tmp_path: Path) -> None:
    say = "import os; print(sorted(os.listdir('/proc/self/fd'), key=int))"
    program = [sys.executable, "-I", "-c", say]
    command = [sys.executable, "-m", "reenact", "run", "--store", str(tmp_path / "store"), "--", *program]
    told = [
        subprocess.run(each, env=environ(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout
        for each in (program, command)
    ]
    assert told[0] == told[1]
