"""With REENACT_JOURNAL_FSYNC nothing goes from the disk before what was carried from it is there: files and entries.

A power cut takes back what no `fsync` followed. A library that stands before the system's calls lists them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def syncing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("syncing") / "syncing.so"
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler here, so no call can be watched")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(built), str(HERE / "syncing.c"), "-ldl"], check=True)
    return built


class Disk:
    """What a power cut would leave, followed act by act."""

    def __init__(self, store: Path) -> None:
        self._store = str(store)
        self.unwritten: set[str] = set()
        """Files whose last write is not on the disk."""
        self.unnamed: dict[str, set[str]] = {}
        """Entries that are not on the disk, by folder."""
        self.gone: list[str] = []
        """Journals that were removed, and what a cut at that moment would have taken away."""
        self.lost: list[tuple[str, list[str]]] = []

    def act(self, act: str, path: str) -> None:
        folder = os.path.dirname(path)  # noqa: PTH120 - a text it is
        if not f"{path}/".startswith((f"{self._store}/", f"{os.path.dirname(self._store)}/")):  # noqa: PTH120
            return
        match act:
            case "write":
                self.unwritten.add(path)
            case "make" | "to":
                self.unnamed.setdefault(folder, set()).add(path)
            case "from":
                if path in self.unwritten:
                    self.unwritten.discard(path)
            case "sync":
                self.unwritten.discard(path)
                self.unnamed.pop(path, None)
            case "unlink":
                self.unwritten.discard(path)
                self.unnamed.get(folder, set()).discard(path)
                if path.endswith(".rnj"):
                    self.gone.append(path)
                    self.lost.append((path, self._owed()))
            case _:
                pass

    def _owed(self) -> list[str]:
        """List what was carried and would not be there."""
        kept = ("/traces", "/blobs", "/index-")
        written = [path for path in self.unwritten if path.removeprefix(self._store).startswith(kept)]
        named = [path for paths in self.unnamed.values() for path in paths]
        mine = [path for path in named if path == self._store or path.removeprefix(self._store).startswith(kept)]
        return [path for path in written + mine if not path.endswith(("-journal", ".jsonl-journal"))]


def acts(log: Path, store: Path) -> Disk:
    disk = Disk(store)
    for line in log.read_text().splitlines():
        act, _, path = line.partition(" ")
        disk.act(act, path)
    return disk


def environ(syncing: Path, log: Path, **more: str) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("REENACT_", "OTEL_"))}
    return {**plain, "LD_PRELOAD": str(syncing), "SYNCING": str(log), **more}


@pytest.mark.sample(2)
@pytest.mark.parametrize("fsync", ["end", "always"])
def test_a_journal_goes_when_what_was_carried_from_it_is_on_the_disk(tmp_path: Path, syncing: Path, fsync: str) -> None:
    store, log = tmp_path / "store", tmp_path / "log"
    more = {"REENACT_JOURNAL_FSYNC": fsync, "REENACT_JOURNAL_MAX": "256k", "REENACT_BLOB_THRESHOLD": "5000"}
    command = [sys.executable, "-m", "reenact", "run", "-q", "--store", str(store), "--"]
    program = [sys.executable, str(HERE / "filling.py")]
    done = subprocess.run([*command, *program], env=environ(syncing, log, **more), capture_output=True, check=False)
    assert done.returncode == 5, done.stderr
    disk = acts(log, store)
    assert disk.gone, "a journal was carried"
    assert [lost for lost in disk.lost if lost[1]] == []
    assert list((store / "blobs").glob("??/*"))


def test_whoever_carries_it_goes_by_what_its_writer_was_told(tmp_path: Path, syncing: Path) -> None:
    """The journal says it: the command that carries it has another environment."""
    store, log = tmp_path / "store", tmp_path / "log"
    bootstrap = str(HERE.parents[1] / "src" / "reenact" / "bootstrap")
    recording = {"REENACT_RECORD": "1", "REENACT_STORE": str(store), "PYTHONPATH": bootstrap}
    subprocess.run(
        [sys.executable, str(HERE / "filling.py")],
        env=environ(syncing, log, REENACT_JOURNAL_FSYNC="always", **recording),
        capture_output=True,
        check=False,
    )
    disk = acts(log, store)
    (journal,) = (store / "journal").glob("*.rnj")
    assert str(journal) not in disk.unwritten
    assert not {path for paths in disk.unnamed.values() for path in paths} & {
        str(journal),
        str(journal.parent),
        str(store),
    }
    subprocess.run(
        [sys.executable, "-m", "reenact", "ls", "--store", str(store)],
        env=environ(syncing, log),
        capture_output=True,
        check=True,
    )
    disk = acts(log, store)
    assert disk.gone == [str(journal)]
    assert disk.lost == [(str(journal), [])]


def test_a_watch_that_sees_no_fsync_would_say_so(tmp_path: Path, syncing: Path) -> None:
    """Without the setting nothing is promised, and this is what it looks like."""
    store, log = tmp_path / "store", tmp_path / "log"
    command = [sys.executable, "-m", "reenact", "run", "-q", "--store", str(store), "--"]
    program = [sys.executable, str(HERE / "filling.py")]
    subprocess.run([*command, *program], env=environ(syncing, log), capture_output=True, check=False)
    disk = acts(log, store)
    assert disk.lost
    assert all(lost for _, lost in disk.lost)
