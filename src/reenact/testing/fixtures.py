"""Fixtures: recorded runs in files of a project, a line a call, so that a change of one is a change of one line."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path

from reenact.errors import InputError
from reenact.find.sources import RunSource, find, runs_in
from reenact.formats.otlp_json import encode
from reenact.keep.catalog import replay_of
from reenact.stores.directory import DirectoryStore
from reenact.testing.portable import located
from reenact.testing.project import root_of
from reenact.values import unit
from reenact.values.span import SpanRecord

FOLDER = "recordings"
"""Where fixtures lie, beside the tests that use them."""
_NOWHERE = DirectoryStore(Path(tempfile.gettempdir()) / "reenact-no-store")
_PLAIN = re.compile(r"[^a-z0-9]+")
_LONGEST = 60


def slug(text: str) -> str:
    """Make a name for a file or a function of any text: lower case, digits and underscores."""
    plain = _PLAIN.sub("_", text.lower()).strip("_")[:_LONGEST].strip("_")
    return plain or "run"


def own_name(test: str) -> str:
    """Name the fixture of a test by the test's own name: class, function and parameters.

    Names that would come out the same, as of `[a-b]` and `[a_b]`, are told apart by a few digits of a digest.
    """
    plain = re.sub(r"\W+", "_", test.replace("::", ".")).strip("_")[:_LONGEST]
    if re.fullmatch(r"[\w:]+", test) and len(test) <= _LONGEST:
        return plain
    return f"{plain}_{hashlib.blake2b(test.encode(), digest_size=3).hexdigest()}"


def path_of(reference: str) -> Path:
    """Give the file of a fixture that may name a run in it (`file.jsonl#id`)."""
    return Path(reference.partition("#")[0])


def read(reference: str) -> RunSource:
    """Read a fixture, its paths put back in place. Raises `InputError` where there is none.

    Of several runs of one recording, with none named, the one with most calls is chosen; the others stand beside it.
    """
    path = path_of(reference)
    if reference != str(path):
        return located(find(reference, _NOWHERE), root_of(path))
    runs = [run for run in runs_in(path) if replay_of(run) is None]
    around = {unit.around(run) for run in runs}
    if not runs or any(unit.inbound(run) is not None for run in runs):
        return located(find(str(path), _NOWHERE), root_of(path))
    chosen = max((run for run in runs if run.id not in around), key=lambda run: len(run.nodes))
    others = tuple(run for run in runs if run is not chosen and run.recording == chosen.recording)
    return located(RunSource(run=chosen, siblings=others, source=str(path)), root_of(path))


def write(path: Path, spans: Sequence[SpanRecord]) -> None:
    """Write a fixture, whole or not at all; of several writers at a time the last one's stands. Raises `InputError`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(path.parent):
            _replace(path, b"".join(encode([span]) for span in spans))
    except OSError as error:
        raise InputError(str(path), f"cannot be written: {error.strerror or error}") from error


def replace_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all. Raises `InputError`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, text.encode())
    except OSError as error:
        raise InputError(str(path), f"cannot be written: {error.strerror or error}") from error


def add(path: Path, spans: Iterable[SpanRecord]) -> None:
    """Add calls to a fixture, those that it holds left alone. Raises `InputError`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(path.parent):
            before = path.read_bytes() if path.exists() else b""
            new = [encode([span]) for span in spans if span.span_id.encode() not in before]
            _replace(path, b"".join([before if before.endswith(b"\n") or not before else before + b"\n", *new]))
    except OSError as error:
        raise InputError(str(path), f"cannot be written: {error.strerror or error}") from error


def _replace(path: Path, data: bytes) -> None:
    handle, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        Path(draft).chmod(0o644)
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _alone(folder: Path) -> Generator[None]:
    """Keep other writers of the folder out: workers of one session, and other sessions. It leaves no file behind."""
    handle = os.open(folder, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        with contextlib.suppress(ImportError, OSError):  # where folders cannot be locked, the last writer's file stands
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
