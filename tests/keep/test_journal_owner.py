from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import reenact
from held import Held
from reenact.keep import journal_owner as room
from reenact.keep.drain import Drain
from reenact.keep.journal_owner import owned, owning
from reenact.keep.leftovers import leftovers
from reenact.pipeline import recording
from reenact.pipeline.recording import Recording
from reenact.stores.directory import DirectoryStore


@reenact.tool
def fetch(item: str) -> str:
    return f"{item}, fetched"


def left_behind(held: Held) -> Recording:
    """Record something and go, the journal not yet carried."""
    made = held.start()
    fetch("tea")
    recording.stop(made)
    return made


def test_what_the_dead_left_is_carried_by_whoever_comes(tmp_path: Path) -> None:
    held = Held(tmp_path)
    made = left_behind(held)
    assert [len(run.nodes) for run in leftovers(made.store)] == [2]
    assert Drain(made.store, recording=made.id).finish() == []


def test_what_somebody_owns_is_left_to_them(tmp_path: Path) -> None:
    held = Held(tmp_path)
    made = left_behind(held)
    with owning(made.store, made.id):
        assert leftovers(made.store) == []
        assert owned(made.store) == {made.id}
        (run,) = Drain(made.store, recording=made.id).finish()
    assert [node.call.name for node in run.nodes][1:] == ["fetch"]
    assert owned(made.store) == set()
    assert list(made.store.journals.iterdir()) == []


def test_an_owner_that_died_owns_nothing(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    store.prepare()
    program = textwrap.dedent(f"""
        import os
        from pathlib import Path
        from reenact.keep.journal_owner import owning
        from reenact.stores.directory import DirectoryStore
        with owning(DirectoryStore(Path({str(store.folder)!r})), "f00d"):
            os._exit(9)
    """)
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 9
    (left,) = store.journals.iterdir()
    assert owned(store) == set()
    assert left.exists(), "a new one may be about to be locked"
    os.utime(left, (0, 0))
    assert owned(store) == set()
    assert not left.exists()
    assert room.owned(DirectoryStore(tmp_path / "nowhere")) == set()


def test_a_store_that_cannot_be_written_to_is_no_worry_of_an_owner(tmp_path: Path) -> None:
    with owning(DirectoryStore(tmp_path / "nowhere"), "f00d"):
        pass
