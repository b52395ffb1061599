"""What every command does first: carry what processes that are gone left behind.

Mostly there is nothing, and then neither the drain, nor anything that sends or that rebuilds runs, is imported.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from reenact.errors import InputError
from reenact.stores.directory import DirectoryStore, IndexDamagedError
from reenact.values.run import Run

_NOTING_S = 1.0
"""Noting what a collector took in takes this long at most, in seconds."""


def leftovers(store: DirectoryStore, *, send: bool = True) -> list[Run]:
    """Carry the journals of processes that are gone, as every command does first; make a missing index again.

    With `send` what waits for a backend that the environment names is tried for a moment, where it may be tried.
    """
    runs = _carried(store) if _holds_anything(store.journals) else []
    if send and _owes(store):
        from reenact.pipeline.posting import send_waiting

        send_waiting(store, say)
    try:
        _index(store)
    except IndexDamagedError as error:
        from reenact.pipeline.catalog import mended

        mended(store, error, say)
    except InputError:
        pass  # a damaged trace is told when it is asked for
    return runs


def _index(store: DirectoryStore) -> None:
    """Make a missing index again, and note in it what a collector took in."""
    if not store.indexed:
        from reenact.pipeline.catalog import index_anew

        index_anew(store)
    store.probe_index()
    if not store.further():
        return
    from reenact.pipeline.catalog import note_taken_in

    if left := note_taken_in(store, _NOTING_S):
        say(f"{left} traces or more have come in that are not in the index yet: `reenact store compact`")


def _holds_anything(folder: os.PathLike[str]) -> bool:
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as found:
        return any(found)
    return False


def _owes(store: DirectoryStore) -> bool:
    """Tell whether a backend is still to have anything."""
    if not (store.folder / "outbox").is_dir():
        return False
    from reenact.stores.outbox import Outbox

    try:
        return any(account.waiting for account in Outbox(store.folder).accounts())
    except InputError:  # whoever sends says why
        return True


def _carried(store: DirectoryStore) -> list[Run]:
    from reenact.formats.journal import SUFFIX
    from reenact.pipeline.drain import Drain

    return Drain(store, living=False, report=say).finish() if any(store.journals.glob(f"*{SUFFIX}")) else []


def say(line: str) -> None:
    """Tell the user on stderr."""
    sys.stderr.write(f"reenact: {line}\n")
