"""The secret that keys the tokens of what could be guessed, and who has it.

It comes from REENACT_REDACTION_KEY, from where the policy says, else from `redaction.key` in the store, which is made
at first use and readable by its owner alone. It is in no trace, bundle or message. A trace names it by eight digits of
a digest, by which a replay knows whether it has the right one.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from reenact.disk import private
from reenact.errors import InputError

VARIABLE = "REENACT_REDACTION_KEY"
OF_THIS_RUN = "REENACT_RUN_KEY"
"""By which children of a recorded process get a key that could not be kept anywhere."""
FILE = "redaction.key"
_BYTES = 32
_SHORTEST = 16
"""Fewer bytes of a key are refused where a policy names it."""
_LARGEST = 4096
_PATIENCE_S = 2.0
"""How long a key file may be half-written by another process, where the file system has no links."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key, and where it is from."""

    value: bytes
    source: str
    """`REENACT_REDACTION_KEY`, another variable's name, a path, or `this run`."""
    shared: bool
    """Somebody configured it, so that it keys everything and tokens are equal from run to run. Else credentials are
    keyed by the run's own salt, and this key keys only what could be guessed."""
    problem: str = ""
    """Why the key is not kept; empty where it is."""

    @property
    def id(self) -> str:
        """Name the key without telling it."""
        return key_id(self.value)

    def __repr__(self) -> str:
        """Say where it is from, never what it is."""
        return f"Key({self.id}, {self.source})"


_handed: list[Key] = []
"""What the starter of a replay handed to this process (`pipeline.keyring`): no key is looked for anywhere then."""


_salt: list[str] = []


def hand(handed_keys: Iterable[Key], salt: str) -> None:
    """Take over the keys that this process is to redact with, and the salt where its recording names none."""
    _handed[:], _salt[:] = handed_keys, [salt]


def handed_salt() -> str:
    """Give the salt that was handed to this process; empty where none was."""
    return _salt[0] if _salt else ""


def handed() -> list[Key]:
    """Give the keys that were handed to this process."""
    return [*_handed]


def key_id(key: bytes | None) -> str:
    """Name a key by 8 hexadecimal digits, which say nothing of it; empty for none."""
    return hashlib.blake2b(key, digest_size=4, person=b"reenact key id").hexdigest() if key else ""


def configured(environ: Mapping[str, str], *, variable: str = "", file: Path | None = None) -> Key | None:
    """Give the key that somebody configured, or None. `variable` and `file` are what the policy says.

    Raises `InputError` where the policy names one that cannot be had.
    """
    if _handed:
        return next((each for each in _handed if each.shared), None)
    if key_text := environ.get(VARIABLE, ""):
        return Key(value=key_text.encode(), source=VARIABLE, shared=True)
    if variable:
        if not (key_text := environ.get(variable, "")):
            raise InputError(variable, "the policy takes its key from this variable, which is not set")
        return Key(value=_enough(key_text.encode(), variable), source=variable, shared=True)
    if file is None:
        return None
    try:
        value = private.read_settings(file, "the policy's key", most=_LARGEST).strip()
    except OSError as error:
        raise InputError(str(file), f"the policy's key cannot be read: {error.strerror}") from None
    return Key(value=_enough(value, str(file)), source=str(file), shared=True)


def _enough(value: bytes, place: str) -> bytes:
    if len(value) < _SHORTEST:
        hint = f"make one: head -c {_BYTES} /dev/urandom | od -An -v -tx1 | tr -d ' \\n'"
        raise InputError(place, f"the key is shorter than {_SHORTEST} bytes", hint=hint)
    return value


def of_store(folder: Path, environ: Mapping[str, str]) -> Key:
    """Give the key of a store, made where there is none. Where it cannot be kept, a key of this run's own.

    Safe between processes that ask at the same time: all get the same. Never raises.
    """
    if _handed:
        return next((each for each in _handed if not each.shared), _handed[0])
    if key_hex := environ.get(OF_THIS_RUN):
        with suppress(ValueError):
            return Key(value=bytes.fromhex(key_hex), source="this run", shared=False, problem="it came from the parent")
    target = folder / FILE
    try:
        value = existing(folder) or _create_key(target)
    except (OSError, InputError) as error:
        why = error.strerror if isinstance(error, OSError) else error.problem
        return Key(value=os.urandom(_BYTES), source="this run", shared=False, problem=f"{target}: {why}")
    return Key(value=value, source=str(target), shared=False)


def existing(folder: Path) -> bytes | None:
    """Read the key of a store, or None where it has none. Raises `InputError` for a file that holds none."""
    target = folder / FILE
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            text = private.read_settings(target, "the store's key", most=_LARGEST).strip()
            if len(text) >= 2 * _BYTES:
                return bytes.fromhex(text.decode("ascii"))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise InputError(str(target), f"cannot be read: {error.strerror}") from None
        except ValueError:
            raise InputError(str(target), "holds no key: 64 hexadecimal digits are expected") from None
        if time.monotonic() > until:
            raise InputError(str(target), "holds no key: 64 hexadecimal digits are expected")
        time.sleep(0.01)


def _create_key(target: Path) -> bytes:
    """Make the key file, whole or not at all; whoever was first has made it."""
    private.check_ours(target.parent, "this store", hint="set REENACT_STORE to a folder of your own")
    private.folder(target.parent, target.parent)
    value = os.urandom(_BYTES)
    draft = target.with_name(f".{FILE}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        _write(draft, value)
        try:
            os.link(draft, target)
        except FileExistsError:
            return existing(target.parent) or value
        except OSError:  # a file system without links
            with suppress(FileExistsError):
                _write(target, value)
                return value
            return existing(target.parent) or value
    finally:
        with suppress(OSError):
            draft.unlink()
    return value


def _write(target: Path, value: bytes) -> None:
    descriptor = private.opened(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        os.write(descriptor, value.hex().encode() + b"\n")
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
