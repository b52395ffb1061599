"""What every command does first: carry what processes that are gone left behind.

Mostly there is nothing, and then neither the drain, nor anything that sends or that rebuilds runs, is imported.
"""

from __future__ import annotations

import os
from contextlib import suppress

from reenact.errors import InputError
from reenact.stores.directory import DirectoryStore, IndexDamagedError
from reenact.values.run import Run
from reenact.values.terminal import tell

_LATEST = 100
"""So many runs of what was carried are given, the latest ones."""
_NOTING_S = 1.0
"""Noting what a collector took in takes this long at most, in seconds."""


def leftovers(store: DirectoryStore, *, send: bool = True) -> list[Run]:
    """Carry the journals of processes that are gone, as every command does first; make a missing index again.

    Of the runs that were in them the latest are given. With `send` what waits for a backend that the environment
    names is tried for a moment, where it may be tried. A store that cannot be written is read on from a temporary
    folder beside it (`DirectoryStore.read_aside`), and this is said. Raises `InputError` for a store that would have
    us write elsewhere.
    """
    if store.aside is not None:
        return []  # it was done when this was begun
    try:
        store.check_links()
        return _put_in_order(store, send=send)
    except (InputError, OSError) as error:
        from reenact.disk.writable_folder import is_refusal

        if not is_refusal(error) or not store.read_aside():
            raise
        why = error if isinstance(error, OSError) else error.__cause__
        reason = why.strerror if isinstance(why, OSError) else why
        say(f"{store.folder} cannot be written ({reason}); it is read all the same, and left as it is")
        return _put_in_order(store, send=False)


def _put_in_order(store: DirectoryStore, *, send: bool) -> list[Run]:
    indexed = store.indexed  # asked first: what is carried here begins an index of its own
    runs = _carried(store) if _holds_anything(store.journals) else []
    if send and _owes(store):
        from reenact.keep.posting import send_waiting

        send_waiting(store, say)
    try:
        _index(store, indexed=indexed)
    except IndexDamagedError as error:
        from reenact.disk.writable_folder import refusal
        from reenact.keep.catalog import mended

        if store.aside is None and (refused := refusal(store.folder)) is not None:
            raise refused from error
        mended(store, error, say)
    except InputError as error:
        from reenact.disk.writable_folder import is_refusal

        if store.aside is None and is_refusal(error):
            raise
        # a damaged trace is told when it is asked for
    return runs


def _index(store: DirectoryStore, *, indexed: bool) -> None:
    """Make a missing index again, and note in it what a collector took in."""
    if not indexed and store.trace_ids():
        from reenact.keep.catalog import index_anew

        index_anew(store)
    store.probe_index()
    if not store.further():
        return
    from reenact.keep.catalog import note_taken_in

    if left := note_taken_in(store, _NOTING_S):
        say(f"{left} traces or more have come in that are not in the index yet: `reenact store compact`")


def _holds_anything(folder: os.PathLike[str]) -> bool:
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        return any(entries)
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

    if not any(store.journals.glob(f"*{SUFFIX}")):
        return []
    from reenact.disk.writable_folder import refusal

    if store.aside is None and (refused := refusal(store.folder)) is not None:
        raise refused  # before anything is begun that could not be ended
    from reenact.keep.drain import Drain

    return Drain(store, living=False, report=say).finish(latest=_LATEST)


def say(line: str) -> None:
    """Tell the user on stderr."""
    tell(f"reenact: {line}")
