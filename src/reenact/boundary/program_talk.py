"""What passes between the agent and another program, as the agent's side hears it, in the order in which it does.

Nothing is put between the two: the descriptors are those that `subprocess` made. The file objects over them tell what
they read and write. What is read past them is known by its descriptor (`os.read`), else it is unheard, which is said.
"""

from __future__ import annotations

import inspect
import io
import os
from collections.abc import Callable
from typing import Any, Final, cast

from reenact.boundary.program import text_of
from reenact.values import alarms, locks
from reenact.values.child import CUT
from reenact.values.json import Json

MOST: Final = 4 * 1024 * 1024
"""Bytes of one child that are kept. A child that says more cannot be given back."""
_STEPS: Final = 20_000
_PASSING: Final = frozenset({"selectors", __name__})
"""Modules that ask for it on behalf of another."""
_INTERNAL: Final = ("subprocess", "asyncio", "reenact.")
"""Modules that ask for the descriptor of a pipe and tell us what they read there."""
IN, OUT, ERR, SIGNAL, SHUT, END = "in", "stdout", "stderr", "signal", "shut", "end"


class Talk:
    """What was said so far. Pieces of one kind that follow each other are one step."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, bytearray]] = []
        self.size = 0
        self.cut = False
        self.looks = 0
        self.is_left = False
        """The child has ended, or has closed its input: who closes it then only tidies up."""
        self.shut = False
        """The agent closed the child's standard input."""
        self.broken = False
        """The child read no longer what the agent wrote."""
        self.ended: set[str] = set()
        """Of which streams the agent saw the end."""
        self._lock = locks.lock()

    def piece(self, what: str, data: bytes) -> None:
        """Hear what was given (IN) or read (OUT, ERR)."""
        if not data:
            return
        with self._lock:
            self.size += len(data)
            if self.size > MOST or len(self.steps) >= _STEPS:
                self.cut = True
                self.steps.clear()
            if self.cut:
                return
            if not self.steps or self.steps[-1][0] != what:
                self.steps.append((what, bytearray()))
            self.steps[-1][1].extend(data)

    def took_back(self, count: int) -> None:
        """Hear that the last bytes that were given did not go."""
        with self._lock:
            for what, data in reversed(self.steps):
                if what == IN:
                    del data[len(data) - count :]
                    self.size -= count
                    return

    def signalled(self, number: int) -> None:
        """Hear that the agent sent a signal."""
        with self._lock:
            if len(self.steps) < _STEPS:
                self.steps.append((SIGNAL, bytearray(str(number).encode())))

    def close_stdin(self) -> None:
        """Hear that the agent closed the child's standard input."""
        with self._lock:
            if not self.shut and not self.is_left:
                self.shut = True
                self.steps.append((SHUT, bytearray()))

    def end(self, stream: str) -> None:
        """Hear that the agent saw the end of a stream: the child closed it, which it may do long before it ends."""
        with self._lock:
            if stream not in self.ended:
                self.ended.add(stream)
                if not self.cut and len(self.steps) < _STEPS:
                    self.steps.append((END, bytearray(stream.encode())))

    def inputs(self) -> list[bytes]:
        """Give what was written to the child, a piece for each turn."""
        return [bytes(data) for what, data in self.steps if what == IN and data]

    def takes_turns(self) -> bool:
        """Tell whether the child was given something, or a signal, after the agent had read of it or saw an end."""
        has_output = ended = False
        for what, _ in self.steps:
            if what in (IN, SIGNAL) and (ended or (has_output and self._answers_after(what))):
                return True
            has_output = has_output or what in (OUT, ERR)
            ended = ended or what == END
        return False

    def _ended_before(self, other: str) -> list[Json]:
        """List the streams whose end the agent saw before another step."""
        streams: list[Json] = []
        for what, data in self.steps:
            if what == other:
                return streams
            if what == END:
                streams.append(data.decode())
        return []

    def _answers_after(self, what: str) -> bool:
        """Tell whether the child said anything after the last step of a kind: else nothing hangs on its place."""
        if what == IN:
            return True
        at = max(number for number, step in enumerate(self.steps) if step[0] == what)
        return any(step[0] in (OUT, ERR) for step in self.steps[at:])

    def outcome(self, streams: set[str]) -> dict[str, Json]:
        """Spell it: each of the streams in `streams` as a whole, or the turns."""
        if self.cut:
            return {CUT: self.size}
        spelling: dict[str, Json] = {"stdin_broken": True} if self.broken else {}
        if self.takes_turns():
            spelling["talk"] = [_turn(what, bytes(data)) for what, data in self._turns()]
            return spelling
        if IN in streams:
            data = b"".join(self.inputs())
            spelling["stdin"] = text_of(data)
            spelling["stdin_bytes"] = len(data)
            spelling["stdin_closed"] = self.shut
            if ended := self._ended_before(SHUT):
                spelling["ended"] = ended
        for stream in (OUT, ERR):
            if stream in streams:
                spelling[stream] = text_of(b"".join(bytes(data) for what, data in self.steps if what == stream))
        signals: list[Json] = [int(data) for what, data in self.steps if what == SIGNAL]
        if signals:
            spelling["signals"] = signals
        return spelling

    def _turns(self) -> list[tuple[str, bytearray]]:
        """List the steps, less the ends at the end: a child that has ended has closed its streams."""
        last = max((at for at, (what, _) in enumerate(self.steps) if what in (IN, SIGNAL)), default=-1)
        return [step for at, step in enumerate(self.steps) if step[0] != END or at < last]


def _turn(what: str, data: bytes) -> Json:
    match what:
        case "in":
            return {"in": text_of(data), "bytes": len(data)}
        case "signal":
            return {"signal": int(data)}
        case "shut":
            return {"shut": True}
        case "end":
            return {"end": data.decode()}
        case _:
            return {what: text_of(data)}


class Reader(io.FileIO):
    """A child's output as `subprocess` opens it, and what is read there is heard."""

    talk: Talk
    stream: str
    handed: Callable[[int, Reader], None]
    """Hears that somebody took the descriptor to read there by himself."""
    starved: Callable[[str], None]
    """Hears that the agent came to the end."""

    def readinto(self, buffer: Any, /) -> int | None:
        """Read, and tell."""
        count = super().readinto(buffer)
        if count is not None:
            self.got(bytes(memoryview(buffer)[:count]))
        return count

    def read(self, size: int | None = -1, /) -> bytes | None:
        """Read, and tell."""
        if size is None or size < 0:
            return self.readall()
        data = super().read(size)
        if data is not None and size:
            self.got(data)
        return data

    def readall(self) -> bytes:
        """Read to the end, and tell."""
        data: bytes | None = super().readall()
        if data is None:  # pyright: ignore[reportUnnecessaryComparison] - nothing is there yet, and it does not block
            return data
        if data:
            self.got(data)
        if os.get_blocking(super().fileno()):
            self.got(b"")
        return data

    def got(self, data: bytes) -> None:
        """Hear a piece; an empty one is the end."""
        try:
            if data:
                self.talk.piece(self.stream, data)
                return
            self.talk.end(self.stream)
        except Exception:  # what is not heard is said
            alarms.pass_on()
            return
        self.starved(self.stream)

    def fileno(self) -> int:
        """Give the descriptor."""
        descriptor = super().fileno()
        if not _asked_within():
            self.handed(descriptor, self)
        return descriptor

    def close(self) -> None:
        """Close, and tell."""
        was = self.closed
        super().close()
        if not was and hasattr(self, "talk"):
            self.starved("")


class Writer(io.FileIO):
    """A child's input as `subprocess` opens it, and what is written there is heard before the child has it."""

    talk: Talk

    def write(self, data: Any, /) -> int | None:
        """Tell, and write; what did not go is taken back."""
        payload = bytes(data)
        self.talk.piece(IN, payload)
        try:
            count = super().write(data)
        except BaseException as error:
            self.talk.took_back(len(payload))
            self.talk.broken = self.talk.broken or isinstance(error, BrokenPipeError)
            raise
        if (count or 0) < len(payload):
            self.talk.took_back(len(payload) - (count or 0))
        return count

    def close(self) -> None:
        """Tell, and close."""
        if not self.closed and hasattr(self, "talk"):
            self.talk.close_stdin()
        super().close()


def _asked_within() -> bool:
    """Tell whether `subprocess` or `asyncio` asks for a descriptor: we hear of what they read."""
    frame: Any = inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")) in _PASSING:
        frame = frame.f_back
    return frame is not None and str(frame.f_globals.get("__name__")).startswith(_INTERNAL)


def opened_over(file: Any, raw: type[Reader | Writer], bufsize: int) -> tuple[Any, Any]:
    """Give a file object like `file`, as `subprocess` made it, over a raw file of ours; and that raw file.

    It reads or writes by a descriptor of its own; `file` is closed.
    """
    text = isinstance(file, io.TextIOWrapper)
    buffered: Any = cast("Any", file).buffer if text else file
    raw_file: Any = getattr(buffered, "raw", buffered)
    mode = "rb" if raw is Reader else "wb"
    ours: Any = raw(os.dup(raw_file.fileno()), mode)
    file_object: Any = ours
    if buffered is not raw_file:
        size = bufsize if bufsize > 1 else getattr(raw_file, "_blksize", 0)
        size = size if size > 1 else io.DEFAULT_BUFFER_SIZE
        file_object = io.BufferedReader(ours, size) if raw is Reader else io.BufferedWriter(ours, size)
    if text:
        file_object = io.TextIOWrapper(
            file_object,
            encoding=file.encoding,
            errors=file.errors,
            line_buffering=file.line_buffering,
            write_through=file.write_through,
        )
    file.close()
    return file_object, ours
