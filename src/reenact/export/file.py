"""Appends spans to a file of OTLP/JSON lines, a batch wholly or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Sequence
from pathlib import Path

from reenact.export.outcome import Delivered, Outcome, Retry
from reenact.formats.otlp_json import encode
from reenact.values import locks
from reenact.values.span import SpanRecord


class FileSender:
    """A sender whose backend is a file. Several processes may append to the same one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = locks.lock()

    @property
    def name(self) -> str:
        """The path."""
        return str(self._path)

    def send(self, spans: Sequence[SpanRecord], within_s: float | None = None) -> Outcome:
        """Append `spans`; a disk that is full or a folder that cannot be written is a `Retry`.

        The file is made readable for its owner only, as it holds what the agent said. Where writing fails half-way the
        file is cut back to what it was. A disk has no time limit, so `within_s` is not looked at.
        """
        del within_s
        return self.append(encode(spans), len(spans))

    def append(self, data: bytes, count: int) -> Outcome:
        """Append whole lines that hold `count` spans or log records; otherwise as `send`."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._lock, _locked(self._path) as handle:
                _append(handle, data)
        except OSError as failure:
            return Retry(reason=f"the file cannot be written: {failure.strerror or failure}")
        return Delivered(count=count)

    def close(self) -> None:
        """Do nothing: the file is open only while a batch is appended."""


@contextlib.contextmanager
def _locked(path: Path) -> Generator[int]:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        with contextlib.suppress(ImportError):  # where there is no fcntl, one process at a time may append
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)


def _append(handle: int, data: bytes) -> None:
    size = os.fstat(handle).st_size
    try:
        if size and os.pread(handle, 1, size - 1) != b"\n":
            data = b"\n" + data  # somebody's last line was cut off; ours shall not be glued to it
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(handle, rest) :]
        os.fsync(handle)
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(handle, size)
        raise
