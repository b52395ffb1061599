"""Who carries the journals of a recording: the process that started it, until it says otherwise or is gone.

Every command first carries what dead processes left behind. Without a word from the living, one replay would take the
journal of another whose program had ended a moment ago, and that one would find that nothing was done.

The file by which a recording is owned has a byte for each process that loaded the recorder, so that whoever started it
can tell a program that called nothing from one that was never watched.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

from reenact.disk import private
from reenact.stores.directory import DirectoryStore

_SUFFIX = ".owner"
_OLD_S = 60.0


@contextmanager
def owning(store: DirectoryStore, recording: str) -> Generator[Callable[[], int | None]]:
    """Own the journals of a recording until the block ends. A store that cannot be written to is no worry of this.

    Gives what counts the processes that have loaded the recorder so far, or None where that cannot be known.
    """
    path = store.journals / f"{recording}{_SUFFIX}"
    fd = -1
    try:
        with suppress(OSError):
            fd = private.opened(path, os.O_RDWR | os.O_CREAT)
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield lambda: os.fstat(fd).st_size if fd >= 0 else None
    finally:
        if fd >= 0:
            with suppress(OSError):  # the store may be gone by now, or read-only
                path.unlink()
            os.close(fd)


def loaded(store: DirectoryStore, recording: str) -> None:
    """Tell the owner of a recording that this process has loaded the recorder. Never raises."""
    with suppress(OSError):  # nobody owns it: the program records itself
        fd = os.open(store.journals / f"{recording}{_SUFFIX}", os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.write(fd, b".")
        finally:
            os.close(fd)


def owned(store: DirectoryStore) -> set[str]:
    """Name the recordings whose journals a living process carries; what the dead left of this is removed."""
    recordings: set[str] = set()
    for path in store.journals.glob(f"*{_SUFFIX}"):
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if os.fstat(fd).st_mtime < time.time() - _OLD_S:  # a new one may be about to be locked
                path.unlink(missing_ok=True)
        except BlockingIOError:
            recordings.add(path.stem)
        except OSError:
            continue
        finally:
            os.close(fd)
    return recordings
