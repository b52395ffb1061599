"""What this process writes to its standard streams, heard at Python's own stream objects.

Theory of operation. `print`, `sys.stdout.write`, `logging` and what else writes text look `write` up on the stream
object; an attribute of the instance stands before the method of its class, also for code written in C. So does that of
the buffer below, where bytes are written; what reaches it only because text above is flushed is told apart by a mark
of the thread that flushes. The descriptors stay the program's own, and so does all that it asks of the streams
(`isatty`, `fileno`, `encoding`). `os.write` to their descriptors is heard as well; what native code and children write
there is not.

Who writes is part of what is heard: what an installed library logs or warns of is its own word and not the program's.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from sys import _getframe as _frame  # pyright: ignore[reportPrivateUsage] - who writes is asked at every text
from typing import Any, Final, TypeAlias, cast

from reenact.boundary.forgiving import forgive
from reenact.boundary.own_code import is_own_file
from reenact.values import locks, terminal
from reenact.values.discovered_tools import RecordedText

STREAMS: Final = ("stdout", "stderr")
_NAMES: Final = {1: "stdout", 2: "stderr"}


@dataclass(frozen=True, slots=True)
class Source:
    """Who wrote a text, where that is not just the code that runs: a record of `logging`, or a warning."""

    own: bool
    """The agent's own code logged it."""
    form: str = ""
    """The format of the lines of its handler, where that is known."""
    what: str = "lines that libraries logged"


Hearer: TypeAlias = Callable[[str, str, Source | None], None]
"""Hears of a text: the stream, the text, who wrote it."""
_hearers: Final[list[Hearer]] = []
_LOG_LINES: Final[list[Callable[[str, str], None]]] = []
"""Each hears what an installed library logged to a file: the path, and the text with its line end."""
_cut: Final[list[tuple[Any, str, Any, Any]]] = []
"""Each object with an attribute of ours: its name, ours, and what stood there in its `__dict__` before."""
_lock: Final = locks.rlock()
_ABSENT: Final = object()
_OURS: Final = "reenact"
"""The logger of our own: what it logs is no part of the program."""
_emit: Final = logging.StreamHandler.emit.__code__


class _Mark(threading.local):
    """What this thread is at."""

    flushing = False
    """Text goes on to the buffer below."""
    record: logging.LogRecord | None = None
    """A handler of `logging` is writing this."""


_mark: Final = _Mark()


def listen(hearer: Hearer) -> None:
    """Have `hearer` told of every text from here on."""
    with _lock:
        _hearers.append(hearer)
        if len(_hearers) == 1:
            _replace_attribute(logging.Handler, "handle", _handling(logging.Handler.handle))
            _replace_attribute(os, "write", _writing_descriptor(os.write))
        for name in STREAMS:
            _cut_stream(name, getattr(sys, name, None))


def follow() -> None:
    """Hear of the streams that the program has put in the places of the standard ones, as well."""
    for name in STREAMS:
        stream = getattr(sys, name, None)
        if not any(stream is each for each, *_ in _cut):
            with _lock:
                _cut_stream(name, stream)


def leave(hearer: Hearer) -> None:
    """Tell `hearer` no more; the streams are given back with the last one."""
    with _lock:
        if hearer in _hearers:
            _hearers.remove(hearer)
        while not _hearers and _cut:
            target, name, ours, before = _cut.pop()
            if vars(target).get(name) is ours:
                if before is _ABSENT:
                    delattr(target, name)
                else:
                    setattr(target, name, before)


def listen_to_logs(hearer: Callable[[str, str], None]) -> None:
    """Have `hearer` told of what libraries log to files, as long as anybody listens to the streams."""
    _LOG_LINES.append(hearer)


def leave_logs(hearer: Callable[[str, str], None]) -> None:
    """Tell `hearer` no more."""
    if hearer in _LOG_LINES:
        _LOG_LINES.remove(hearer)


def tell(name: str, text: str) -> None:
    """Have a text heard that reaches a stream past its object."""
    for hearer in tuple(_hearers):
        hearer(name, text, None)


def _replace_attribute(target: Any, name: str, ours: Any) -> None:
    before = cast("Any", vars(target).get(name, _ABSENT))
    setattr(target, name, ours)
    _cut.append((target, name, ours, before))


def _cut_stream(name: str, stream: Any) -> None:
    try:
        if stream is None or any(stream is each for each, *_ in _cut):
            return
        if getattr(stream, "flush", None) is not None:
            _replace_attribute(stream, "flush", _flushing(stream.flush))
        _replace_attribute(stream, "write", _writing(name, stream.write))
    except Exception:  # it takes no attributes
        forgive("console.cut")
        return
    try:
        buffer = getattr(stream, "buffer", None)
        if buffer is not None and not any(buffer is each for each, *_ in _cut):
            _replace_attribute(buffer, "write", _writing_bytes(name, buffer.write))
    except Exception:
        forgive("console.cut_buffer")


def _writing(name: str, write: Callable[[str], Any]) -> Callable[[str], Any]:
    hearers, mark, tell_text = _hearers, _mark, _tell

    def write_observed(text: str, /) -> Any:
        before, mark.flushing = mark.flushing, True
        try:
            if not before and hearers:
                tell_text(name, text, 2)
            return write(text)
        finally:
            mark.flushing = before

    return write_observed


def _writing_bytes(name: str, write: Callable[[Any], Any]) -> Callable[[Any], Any]:
    hearers, tell_bytes = _hearers, _tell_bytes

    def write_observed(data: Any, /) -> Any:
        if hearers:
            tell_bytes(name, data)
        return write(data)

    return write_observed


def _writing_descriptor(write: Callable[[int, Any], int]) -> Callable[[int, Any], int]:
    # at the end of the interpreter the globals of this module are gone, and agents may write yet
    hearers, names, tell_bytes = _hearers, _NAMES, _tell_bytes

    def write_observed(fd: int, data: Any, /) -> int:
        """Write a bytes object to a file descriptor."""
        if hearers and type(fd) is int and fd in names:
            tell_bytes(names[fd], data)
        return write(fd, data)

    return write_observed


def _tell_bytes(name: str, data: Any) -> None:
    try:
        if not _mark.flushing:
            _tell(name, bytes(data).decode("utf-8", "backslashreplace"), 3)
    except Exception:
        forgive("console.tell_bytes")


def _flushing(flush: Callable[[], Any]) -> Callable[[], Any]:
    mark = _mark

    def flushed() -> Any:
        before, mark.flushing = mark.flushing, True
        try:
            return flush()
        finally:
            mark.flushing = before

    return flushed


def _handling(handle: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def handled(self: logging.Handler, record: logging.LogRecord) -> Any:
        """Emit the record if the filters let it."""
        before, _mark.record = _mark.record, record
        try:
            if _LOG_LINES and isinstance(self, logging.FileHandler) and not is_own_file(record.pathname):
                return _handled_of_library(handle, self, record)
            return handle(self, record)
        finally:
            _mark.record = before

    return handled


def _handled_of_library(
    handle: Callable[[Any, Any], Any], handler: logging.FileHandler, record: logging.LogRecord
) -> Any:
    """Let a handler write what a library logged, and tell the text as the handler makes it."""
    handler_attributes, lines = vars(handler), list[str]()
    with handler.lock or nullcontext():  # all that it writes is written under it
        before, form = handler_attributes.get("format", _ABSENT), handler.format

        def formatted(log_record: logging.LogRecord) -> str:
            lines[:] = [form(log_record)]
            return lines[0]

        handler_attributes["format"] = formatted
        try:
            return handle(handler, record)
        finally:
            handler_attributes.pop("format", None) if before is _ABSENT else handler_attributes.update(format=before)
            for hearer in tuple(_LOG_LINES) if lines else ():
                hearer(os.path.realpath(handler.baseFilename), lines[0] + handler.terminator)


def _tell(name: str, text: object, depth: int) -> None:
    """Have a text heard; who writes it stands so deep in the stack, or nowhere where the interpreter does."""
    try:
        frame = _frame_at(depth)
        if frame is not None and frame.f_globals.get("__name__") == terminal.__name__:  # what we say ourselves
            return
        if _mark.record is not None and _mark.record.name == _OURS:
            return
        source = _source(text, frame)
        if isinstance(text, str):  # else the stream complains of it
            for hearer in tuple(_hearers):
                hearer(name, str(text), source)
    except Exception:
        forgive("console.tell")


def _frame_at(depth: int) -> Any:
    """Give the frame that stands so deep below the caller; None where the interpreter itself called."""
    try:
        return _frame(depth + 1)
    except ValueError:  # it prints the message of a `SystemExit`, with no frame of the program's left
        return None


def _source(text: object, frame: Any) -> Source | None:
    record = _mark.record
    if type(text) is RecordedText:
        return Source(own=False, what=text.passed) if text.passed else None
    if record is not None:
        form = _form(frame.f_locals.get("self")) if frame is not None and frame.f_code is _emit else ""
        return Source(own=is_own_file(record.pathname), form=form)
    if type(text) is not str and isinstance(logged := getattr(text, "record", None), dict):  # loguru's
        file = cast("dict[str, Any]", logged).get("file")
        return Source(own=is_own_file(str(getattr(file, "path", ""))))
    if frame is not None and frame.f_globals.get("__name__") == "warnings":
        warned = getattr(frame.f_locals.get("msg"), "filename", "")
        return Source(own=is_own_file(str(warned)), what="warnings about libraries")
    return None


def _form(handler: Any) -> str:
    from reenact.record.log_format import log_format  # most programs log nothing

    return log_format(handler) or "%(message)s"
