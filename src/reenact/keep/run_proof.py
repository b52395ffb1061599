"""Who proves that a run is this user's own, and who checks it (`values.origin`).

The process that starts a recording derives the recording's key from the user's and leaves it in a file of its own, in a
folder that nobody else can read, outside every store; REENACT_ORIGIN names the file to the processes of the recording.
Each of them proves the roots that it writes, in the journal already, so that whoever carries the journal of a killed
process carries the proof too. None of them is told the user's key. The processes of a replay prove nothing: whoever
started it does (`pipeline.own_replay`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

from reenact.disk import user_key
from reenact.errors import InputError
from reenact.stores.directory import DirectoryStore
from reenact.values import origin
from reenact.values.log import Record
from reenact.values.span import SpanRecord

_RECORDING: Final = "REENACT_RECORDING"
_ID: Final = "reenact.recording.id"
_PREFIX: Final = "reenact-origin-"
_FILE: Final = "origin"

Prove = Callable[[str, str, Mapping[str, Any]], str]
"""Gives the proof of a root: of its trace id, its span id and its attributes."""
_Of = TypeVar("_Of", bound=Record)


@contextmanager
def handed_on(recording: str, say: Callable[[str], None]) -> Generator[dict[str, str]]:
    """Give the variables by which the processes of a recording can prove their runs, until the block ends.

    Never raises: where the user's key cannot be had, that is said, and nothing is proven.
    """
    folder = None
    try:
        key = user_key.find_key(make=True)
        folder = _Folder(origin.recording_key(key, recording)) if key is not None else None
    except (InputError, OSError) as error:
        say(f"{error}\nreenact: the run is not known as your own then: a replay asks for its command")
    try:
        yield folder.variables if folder is not None else {}
    finally:
        if folder is not None:
            folder.close()


class _Folder:
    """A folder of its own for the key of a recording. Raises `OSError`."""

    def __init__(self, key: bytes) -> None:
        from reenact.keep.scratch import Scratch  # whoever only reads makes none

        self._scratch = Scratch(_PREFIX)
        self.variables = _left_in(self._scratch.path, key)
        """The variable that names the file in it."""

    def close(self) -> None:
        """Take it away; a forked copy of its maker leaves it alone."""
        self._scratch.close()


def _left_in(folder: Path, key: bytes) -> dict[str, str]:
    """Leave the key of a recording in a private folder, and give the variable that names it. Raises `OSError`."""
    path = folder / _FILE
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as stream:
        stream.write(key.hex().encode() + b"\n")
    return {origin.VARIABLE: str(path)}


class Prover:
    """Proves the roots that this process writes, with the key of its recording."""

    def __init__(self, key: bytes, store: Path, variables: Mapping[str, str] | None = None) -> None:
        """Prove what goes into `store`; `variables` names the file that this process was left the key in, if it was."""
        self._key, self._store = key, store
        self._folder: _Folder | None = None
        self._variables = dict(variables or {})

    def __call__(self, trace_id: str, span_id: str, attributes: Mapping[str, Any]) -> str:
        """Prove one root."""
        return origin.proof(self._key, self._store, trace_id, span_id, attributes)

    def handed_on(self) -> dict[str, str]:
        """Give the variables by which children of this process prove their roots; the file is made at first need."""
        try:
            if not self._variables:
                self._folder = _Folder(self._key)
                self._variables = self._folder.variables
        except OSError:
            return {}
        return self._variables

    def close(self) -> None:
        """Take away what was left for children."""
        if self._folder is not None:
            self._folder.close()
            self._folder = None


def prover(store: DirectoryStore, recording: str, environ: Mapping[str, str], *, make: bool) -> Prover | None:
    """Give what proves the roots of this process, or None where nothing can. Never raises.

    The first process of a recording derives the key from the user's; every other was left it, or has none.
    """
    user_key.take()  # whoever started this process: the program finds no REENACT_KEY
    with suppress(InputError, OSError, ValueError):
        if key_file := environ.get(origin.VARIABLE, ""):
            key = bytes.fromhex(Path(key_file).read_text(encoding="ascii").strip())
            return Prover(key, store.folder, {origin.VARIABLE: key_file})
        if not environ.get(_RECORDING):
            key = user_key.find_key(make=make)
            return Prover(origin.recording_key(key, recording), store.folder) if key is not None else None
    return None


def marked(records: Iterable[_Of], store: DirectoryStore) -> Iterator[_Of]:
    """Mark those spans of a store whose proofs hold."""
    try:
        key = user_key.find_key()
    except InputError:  # `problem` says why nothing is known as the user's own
        key = None
    keys: dict[str, bytes] = {}
    for record in records:
        if not isinstance(record, SpanRecord) or origin.ORIGIN not in record.attributes:
            yield record
            continue
        yield replace(record, own=key is not None and _proven(record, key, keys, store))


def own_again(spans: Iterable[SpanRecord], before: DirectoryStore, store: DirectoryStore) -> Iterator[SpanRecord]:
    """Give spans of one store as they go into another, proven there where they were here: this process moves them."""
    try:
        key = user_key.find_key()
    except InputError:
        key = None
    keys: dict[str, bytes] = {}
    for span in spans:
        bare = origin.without_proof(span.attributes)
        if key is not None and origin.ORIGIN in span.attributes and _proven(span, key, keys, before):
            proof_text = origin.proof(keys[_recording(span)], store.folder, span.trace_id, span.span_id, bare)
            bare = {**bare, origin.ORIGIN: proof_text}
        yield replace(span, attributes=bare)


def problem() -> str:
    """Say why no recording is known as the user's own; empty where nothing is wrong with the key."""
    try:
        user_key.find_key()
    except InputError as error:
        return str(error)
    return ""


def _proven(span: SpanRecord, key: bytes, keys: dict[str, bytes], store: DirectoryStore) -> bool:
    recording = _recording(span)
    if recording not in keys:
        keys[recording] = origin.recording_key(key, recording)
    return origin.holds(keys[recording], store.folder, span.trace_id, span.span_id, span.attributes)


def _recording(span: SpanRecord) -> str:
    value = span.resource.attributes.get(_ID)
    return value if isinstance(value, str) else ""
