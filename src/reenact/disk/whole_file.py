"""A file that is written whole or not at all, beside what stood at its place before."""

from __future__ import annotations

import os
from pathlib import Path

from reenact.errors import InputError

_MODE = 0o666
"""What the user's umask leaves of it, as for any file that a command writes."""


def write_whole(target: Path, data: bytes) -> None:
    """Write a file; a link at its place is replaced, and not written through. Raises `InputError`.

    The draft beside it has a name that nobody can know before: a link that was left there in wait is not opened.
    """
    draft = target.with_name(f".{target.name}.{os.urandom(8).hex()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(draft, flags, _MODE), "wb") as stream:
            stream.write(data)
        draft.replace(target)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise InputError(str(target), f"cannot be written: {error.strerror}") from error
