"""What a program reads from its standard input: kept while recording, given back in a replay.

Theory of operation. `sys.stdin` is put on a raw stream of ours over the same descriptor, which keeps what it reads; all
else of it (encoding, `fileno`, `isatty`) stays. `input` on a terminal reads past it (`readline`), and so does who reads
the descriptor with `os.read` (asyncio, prompt_toolkit): these are heard where they are called. In a replay the
descriptor is a file with what was read, so that whoever reads it gets the same bytes, and then the end.

What a child of another language reads, and what is typed into `getpass`, is not kept.
"""

from __future__ import annotations

import base64
import builtins
import io
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final

from reenact.boundary.forgiving import forgive
from reenact.record import console
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lenient import as_object, as_text
from reenact.values.run import STDIN, Node

_MOST: Final = 4 << 20
"""Bytes that are kept."""


class _Raw(io.RawIOBase):
    """The descriptor of the standard input, read through."""

    name = "<stdin>"

    def __init__(self, keep: Callable[[bytes], None]) -> None:
        self._file = io.FileIO(0, closefd=False)
        self._keep = keep

    def readinto(self, buffer: Any) -> int | None:
        """Read into a buffer, and keep what came."""
        count = self._file.readinto(buffer)
        if count:
            self._keep(bytes(buffer[:count]))
        return count

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._file.seekable()

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def fileno(self) -> int:
        return self._file.fileno()

    def isatty(self) -> bool:
        return self._file.isatty()


class TextIOWrapper(io.TextIOWrapper):
    """The standard input as text, by the name of the class that it stands for; counts the characters that are taken.

    Its buffer reads ahead, so that what was read from the descriptor does not say who took it.
    """

    taken = 0

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]  # as Python has it
        """Read a line."""
        return self._take(super().readline(size))

    def read(self, size: int | None = -1, /) -> str:
        """Read characters, or all there are."""
        return self._take(super().read(size))

    def __next__(self) -> str:
        """Give the next line."""
        return self._take(super().__next__())

    def _take(self, text: str) -> str:
        self.taken += len(text)
        return text


class StandardInput:
    """Keeps what the process reads from its standard input."""

    def __init__(self) -> None:
        self._stream: TextIOWrapper | None = None
        self._asked = 0
        """Characters that were typed at a terminal."""
        self._began: dict[int, int] = {}
        self._content = bytearray()
        self._more = 0
        self._terminal = False
        self._undo: list[tuple[Any, str, Any, Any]] = []

    def listen(self) -> None:
        """Keep everything from here on."""
        try:
            stream = sys.stdin
            if type(stream) is not io.TextIOWrapper or stream.fileno() != 0:
                return
            self._terminal = stream.isatty()
            ours = self._stream = TextIOWrapper(
                io.BufferedReader(_Raw(self._keep)), encoding=stream.encoding, errors=stream.errors, newline=None
            )
            ours.mode = "r"  # type: ignore[misc]  # Python sets it so as well
        except (OSError, ValueError):  # there is none
            return
        except Exception:
            forgive("StandardInput.listen")
            return
        if sys.__stdin__ is stream:
            self._replace(sys, "__stdin__", ours)
        self._replace(sys, "stdin", ours)
        self._replace(os, "read", self._reading(os.read))
        if self._terminal:
            self._replace(builtins, "input", self._asking(builtins.input))

    def leave(self) -> None:
        """Keep nothing more."""
        while self._undo:
            target, name, ours, before = self._undo.pop()
            if name not in {"stdin", "__stdin__"} and getattr(target, name) is ours:
                setattr(target, name, before)

    def _replace(self, target: Any, name: str, ours: Any) -> None:
        self._undo.append((target, name, ours, getattr(target, name)))
        setattr(target, name, ours)

    def _keep(self, data: bytes) -> None:
        if len(self._content) + len(data) <= _MOST:
            self._content += data
        else:
            self._more += len(data)

    def _reading(self, read: Callable[[int, int], bytes]) -> Callable[[int, int], bytes]:
        def read_and_keep(fd: int, length: int, /) -> bytes:
            """Read from a file descriptor.  Returns a bytes object."""
            data = read(fd, length)
            if fd == 0:
                self._keep(data)
            return data

        return read_and_keep

    def _asking(self, ask: Callable[..., str]) -> Callable[..., str]:
        def input(prompt: object = "", /) -> str:  # noqa: A001 - it stands for it
            """Read a string from standard input.  The trailing newline is stripped."""
            if prompt:
                console.tell("stdout", str(prompt))  # a terminal is prompted past the stream
            line = ask(prompt)
            self._keep(f"{line}\n".encode("utf-8", "surrogateescape"))
            self._asked += len(line) + 1
            return line

        return input

    def begin(self, span: int) -> None:
        """Note where the input stands as the call of a tool begins."""
        self._began[span] = self._taken()

    def end(self, span: int) -> int:
        """Say how many characters were taken since the call of a tool began."""
        return self._taken() - self._began.pop(span, self._taken())

    def _taken(self) -> int:
        return self._asked + (self._stream.taken if self._stream is not None else 0)

    @property
    def pending(self) -> bool:
        """Tell whether anything was read."""
        return bool(self._content or self._more)

    def report(self) -> str:
        """Tell what was read, as JSON."""
        report: dict[str, Json] = {}
        try:
            report["text"] = self._content.decode()
        except UnicodeDecodeError:
            report["base64"] = base64.b64encode(self._content).decode()
        if self._terminal:
            report["terminal"] = True
        if self._more:
            report["lost"] = self._more
        return compact(report)


def give_back(nodes: Iterable[Node]) -> None:
    """Make what a recorded program read the standard input of this process; where it read nothing, leave it."""
    stdin_json = next((node.span.attributes[STDIN] for node in nodes if STDIN in node.span.attributes), None)
    if not isinstance(stdin_json, str):
        return
    report = as_object(parsed_or_none(stdin_json))
    text = report.get("text")
    data = text.encode() if isinstance(text, str) else base64.b64decode(as_text(report.get("base64")))
    handle = os.memfd_create("stdin") if hasattr(os, "memfd_create") else _temporary()
    with open(handle, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(handle, 0, os.SEEK_SET)
    os.dup2(handle, 0)
    os.close(handle)
    stream: Any = sys.stdin
    if stream is None:  # the replay was started without one
        stream = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encoding="utf-8")
        sys.stdin = stream
    if report.get("terminal") is True:
        stream.isatty = lambda: True  # programs prompt only where it is one


def _temporary() -> int:
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
