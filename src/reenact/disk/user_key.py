"""The user's own key, by which this machine knows the recordings that its user made (`values.origin`).

`$XDG_CONFIG_HOME/reenact/key` or `~/.config/reenact/key`: 64 hexadecimal digits, made at the first recording, readable
by the user alone. Where there is no such folder, in CI and containers, REENACT_KEY stands in for it: any text; whoever
can guess it can forge an origin. The variable is taken out of the environment before any program is started.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from reenact.errors import InputError

VARIABLE: Final = "REENACT_KEY"
FILE: Final = "key"
_BYTES: Final = 32
_LARGEST: Final = 4096
_PRIVATE: Final = 0o077
_HINT: Final = "move it away and another one is made; recordings that were made with it are not known any more then"

_given: list[str] = []
"""What REENACT_KEY said, once it is out of the environment."""


def take() -> None:
    """Take REENACT_KEY out of the environment of this process: from here on only this module knows it."""
    if value := os.environ.pop(VARIABLE, ""):
        _given[:] = [value]


def key_message() -> str:
    """Give what REENACT_KEY said, for a worker of ours to hear over a pipe; empty where it said nothing."""
    take()
    return _given[0] if _given else ""


def hear(text: str) -> None:
    """Take over what `told` gave in another process of ours."""
    _given[:] = [text] if text else []


def find_key(*, make: bool = False) -> bytes | None:
    """Give the user's key, or None where there is none; `make` makes one where there is none.

    Raises `InputError` where the file is not the user's alone, holds no key, or cannot be made.
    """
    take()
    if _given:
        return hashlib.sha256(b"reenact user key\0" + _given[0].encode("utf-8", "surrogateescape")).digest()
    folder = configuration()
    if folder is None:
        if not make:
            return None
        raise InputError("~", "this user has no home folder to keep a key in", hint=f"set {VARIABLE}")
    try:
        return _in_folder(folder, make=make)
    except OSError as error:
        raise InputError(
            str(folder / FILE), f"the key cannot be had: {error.strerror}", hint=f"set {VARIABLE}"
        ) from None


def configuration() -> Path | None:
    """Give the user's configuration folder for reenact, which may not be there yet; None where there is no home."""
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    if folder.startswith("/"):  # a relative one is to be ignored (XDG Base Directory Specification)
        return Path(folder) / "reenact"
    home = os.environ.get("HOME", "")
    if not home.startswith("/"):
        try:
            home = pwd.getpwuid(os.geteuid()).pw_dir
        except KeyError:
            return None
    return Path(home) / ".config" / "reenact" if home.startswith("/") else None


def _in_folder(folder: Path, *, make: bool) -> bytes | None:
    if make:
        _make_folder(folder)
    try:
        link = folder.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISLNK(link.st_mode) and link.st_uid not in {0, os.geteuid()}:
        raise InputError(str(folder), "is a link that another user made, so the key in it is not read")
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        status = os.fstat(handle)
        if status.st_uid != os.geteuid():
            raise InputError(str(folder), "belongs to another user, so the key in it is not read")
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise InputError(str(folder), "can be written by others, so the key in it is not read", hint="chmod 700 it")
        value = _read(folder, handle)
        return _create_key(folder, handle) if value is None and make else value
    finally:
        os.close(handle)


def _make_folder(folder: Path) -> None:
    """Make the folder and those above it, for the user alone."""
    missing = [folder]
    while not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    for each in reversed(missing):
        with suppress(FileExistsError):
            each.mkdir(mode=0o700)


def _read(folder: Path, handle: int) -> bytes | None:
    place = str(folder / FILE)
    try:
        stream = os.open(FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=handle)
    except FileNotFoundError:
        return None
    except OSError:
        if stat.S_ISLNK(os.stat(FILE, dir_fd=handle, follow_symlinks=False).st_mode):
            raise InputError(place, "is a link, so it is not taken for a key", hint=_HINT) from None
        raise
    try:
        status = os.fstat(stream)
        if not stat.S_ISREG(status.st_mode):
            raise InputError(place, "is no plain file, so it is not taken for a key", hint=_HINT)
        if status.st_uid != os.geteuid():
            raise InputError(place, "belongs to another user, so it is not taken for a key", hint=_HINT)
        if status.st_mode & _PRIVATE:
            mode = f"{stat.S_IMODE(status.st_mode):04o}"
            raise InputError(place, f"can be read by others (mode {mode}), so it is no key", hint=_HINT)
        text = os.read(stream, _LARGEST).strip()
    finally:
        os.close(stream)
    try:
        value = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        value = b""
    if len(value) != _BYTES:
        raise InputError(place, f"holds no key: {2 * _BYTES} hexadecimal digits are expected", hint=_HINT)
    return value


def _create_key(folder: Path, handle: int) -> bytes:
    """Make the key file, whole or not at all; of several who make one at the same time all get the first one's."""
    value = os.urandom(_BYTES)
    draft = f".{FILE}.{os.getpid()}.{os.urandom(8).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    stream = os.open(draft, flags, 0o600, dir_fd=handle)
    try:
        os.fchmod(stream, 0o600)
        os.write(stream, value.hex().encode() + b"\n")
        os.fsync(stream)
    finally:
        os.close(stream)
    try:
        os.link(draft, FILE, src_dir_fd=handle, dst_dir_fd=handle, follow_symlinks=False)
    except FileExistsError:
        return _read(folder, handle) or value
    finally:
        os.unlink(draft, dir_fd=handle)
    return value
