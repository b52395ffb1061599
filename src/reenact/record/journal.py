"""The writing end of the journal (`formats.journal`): a span processor, last in our own pipe, behind redaction.

Theory of operation. A call is two frames, its start and its end, and each is one `write` to a file that the process has
open for appending: what the kernel took is there when the process is killed in the next moment, and no thread of ours
holds it back. The span that a reader looks for is made of both frames later, in another process (`keep.drain`). A start
without an end is a call that was under way. The agent gets an answer when its end is written, and ends are numbered
under the same lock, so that the order of the numbers is the order in which agent code went on. A frame that did not fit
is taken back, counted, and told with the run.
"""

from __future__ import annotations

import errno
import os
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.trace import SpanContext

from reenact.formats import journal
from reenact.record.bounds import Bounds, Fsync, is_root, structure
from reenact.record.segments import Segments
from reenact.record.turns import Turns
from reenact.values import locks
from reenact.values.json import Json
from reenact.values.origin import ORIGIN, covers
from reenact.values.terminal import tell

_UNBOUND = Bounds()
_ticks: Callable[[], int] = time.perf_counter_ns  # the real one, before the clock integration stands in front of it
_UNKNOWN: tuple[Mapping[str, Any], int] = ({}, 0)
_SMALL = 4096
"""No frame without a payload is larger."""
_MOST_OWED = 1000
_ROOT = "reenact.run.root"
_HEADLESS = -1
"""Marks a span whose start lacks something."""


class JournalProcessor(SpanProcessor):
    """Appends start, progress and end of every span to one file, each in one `write`.

    The file is made at the first span and locked while its writer lives, so that others can tell a leftover from a
    journal in use; it gets its name when it is locked and begun. From a size on a further one is begun, so that what
    was carried away can go from the disk. A full disk or a vanished folder costs spans, counted and told once; never
    the agent. Where room is short, roots and structure are kept before payloads.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        resource: dict[str, Any],
        scope: str,
        version: str,
        bounds: Bounds = _UNBOUND,
        *,
        prove: Callable[[str, str, Mapping[str, Any]], str] | None = None,
    ) -> None:
        """Take down spans in `folder`; `prove` gives the proof of a root's origin (`values.origin`)."""
        self._recording = name.partition("-")[0]
        self._prove = prove
        self._header = journal.header(resource, scope, version)
        if bounds.fsync is not Fsync.OFF:  # told to whoever carries it: nothing of it goes before that is on the disk
            self._header["fsync"] = bounds.fsync.value
        self._files = Segments(folder, name, bounds)
        self._lock = locks.rlock()
        self._fd: int | None = None
        self._is_closed = False
        self._size = 0
        self._limit = 0
        """Up to this size nothing but a write is needed."""
        self._rest = b""
        """What is left of a frame that a full disk cut."""
        self._half: Mapping[str, Any] | None = None
        """The frame that was cut."""
        self._owed: list[Mapping[str, Any]] = []
        """Frames, of roots mostly, that could not be written yet."""
        self._beginning = False
        self._partly: dict[str, int] = {}
        """Spans of which something is not in the file, with how many pieces of their streams."""
        self._turns = Turns()
        self._always = bounds.fsync is Fsync.ALWAYS
        self.dropped = 0
        """Frames that are not in the file, or not with all that they held."""
        self._notice_kinds: set[str] = set()
        self._slot = 0
        """Where the note stands that is written over when no more can be written."""
        self._cut_told = 0
        """What it says of `dropped`."""
        self._open_spans: dict[int, tuple[Mapping[str, Any], int]] = {}
        """What was written of spans that have not ended, and when they began by the clock that is never set."""
        forked = weakref.WeakMethod(self._forked)
        os.register_at_fork(after_in_child=lambda: (tell := forked()) and tell())

    @property
    def path(self) -> Path:
        """The file that is written now."""
        return self._files.path

    def _forked(self) -> None:
        """Leave the parent's file alone: a child writes one of its own, under the same lock rules."""
        if self._fd is not None:
            with suppress(OSError):
                os.close(self._fd)
            self._fd = None
        self._rest, self._half, self._owed, self._partly = b"", None, [], {}
        self._beginning = False
        self._size = self._limit = self.dropped = 0
        self._turns = Turns()
        pids = {"process.pid": os.getpid(), "process.parent_pid": os.getppid()}
        process = os.urandom(8).hex()
        own = {"reenact.process.id": process, "service.instance.id": process, **pids}
        self._header = {**self._header, "resource": {**self._header["resource"], **own}}
        self._open_spans.clear()  # those spans are the parent's to end
        self._files = Segments(self._files.folder, f"{self._recording}-{process}", self._files.bounds)

    def write(self, payload: dict[str, Any]) -> None:
        """Append one frame, whole, in one `write`."""
        frame = journal.frame(payload)
        with self._lock:
            size = self._size + len(frame)
            if size > self._limit:
                self._append_carefully(frame, payload)
                return
            try:  # as `_append` has it, one call of ours less for every frame
                bytes_written = os.write(self._fd, frame)  # type: ignore[arg-type]  # there is a file wherever there is a limit
            except OSError as error:
                self._failed(error, payload)
                return
            if bytes_written == len(frame):
                self._size = size
            else:
                self._ended_short(bytes_written, frame, payload)

    def write_end(self, payload: dict[str, Any], number: Callable[[], int]) -> None:
        """Append the frame of a call that ended, under a number that is taken now.

        Whoever takes a number is the next to go on with an answer: another thread gets its own only when this frame is
        written, so that two answers reach agent code in the order of their numbers.
        """
        with self._lock:
            payload["attributes"]["reenact.order.end"] = number()
            self._append(journal.frame(payload), payload)

    def write_turn(self, payload: dict[str, Any], text: str) -> None:
        """Append the frame of a call that begins, whose `input.value` is `text`: of a conversation, what is new."""
        with self._lock:
            turn = self._turns.next(text)
            if turn is None:
                self._append(journal.frame(payload), payload)
                return
            attributes = {**payload["attributes"], journal.TEXT: text[turn.shared :]}
            turned = {**payload, "attributes": attributes, "turn": [turn.number, turn.of, turn.shared]}
            if self._append(journal.frame(turned), payload):
                self._turns.wrote(turn)
            else:
                self._turns.forget()  # it is not in the file, or not as a turn

    def _append(self, frame: bytes, payload: Mapping[str, Any]) -> bool:
        """Write a frame, and tell whether it is in the file now, as it is."""
        fd = self._fd
        if fd is None or self._size + len(frame) > self._limit:
            return self._append_carefully(frame, payload)
        try:
            bytes_written = os.write(fd, frame)
        except OSError as error:
            return self._failed(error, payload)
        if bytes_written < len(frame):
            return self._ended_short(bytes_written, frame, payload)
        self._size += bytes_written
        return True

    def _ended_short(self, bytes_written: int, frame: bytes, payload: Mapping[str, Any]) -> bool:
        """Go on with a frame that was written in part: the disk may be full, and says so to who writes on."""
        self._size += bytes_written
        self._keep_rest(frame[bytes_written:], payload)
        try:
            self._catch_up()
        except OSError as error:
            return self._failed(error, payload)
        self._limit = self._files.free()
        return True

    def _append_carefully(self, frame: bytes, payload: Mapping[str, Any]) -> bool:
        """Write a frame where anything is to be done before: a file begun, a bound kept, a failure made good."""
        if self._is_closed:
            return False  # a call that outlived its recording
        if self._beginning:  # a finalizer's or a signal handler's, while a file is begun
            self._owed.append(payload)
            return False
        before = self._fd
        try:
            self._make_ready(len(frame))
            self._catch_up()
            if before not in {None, self._fd}:
                frame = journal.frame(dict(payload))  # no turn of what stands in another file
            if why := self._kept_out(len(frame), payload):
                self._write_structure(payload, why)
                return False
            self._write_out(frame, payload)
        except OSError as error:
            return self._failed(error, payload)
        if payload["t"] == "end":  # the end of a stream holds all its pieces again
            self.dropped -= self._partly.pop(payload["span"], 0)
        self._limit = 0 if self._partly or self._always else self._files.free()
        return before in {None, self._fd}

    def _kept_out(self, more: int, payload: Mapping[str, Any]) -> str:
        """Say why no more than the structure of a frame is to be written; empty for one that is written whole."""
        if is_root(payload):
            return ""
        if reason := self._files.refuses(self._size + more):
            self._tell("bound", reason)
            return "the journal was at its bound"
        return "its beginning is not in the journal" if self._partly.get(payload["span"], 0) < 0 else ""

    def _make_ready(self, more: int) -> None:
        """Have a file to write to, and a further one in time."""
        if self._fd is None:
            self._begin(self._files.path)
            return
        self._files.look()
        ended = self._size + more > self._files.bounds.segment and self._size > _SMALL
        if ended and not self._files.refuses(self._size + more):
            try:
                self._begin(self._files.next())
            except OSError:  # the file in hand may take more yet
                self._files.back()
            self._files.look()

    def _begin(self, path: Path) -> None:
        opening = {**self._header, "segment": self._files.number} if self._files.number else self._header
        self._beginning = True
        try:
            head = journal.MAGIC + journal.frame(opening)
            begun, before = self._files.open(path, head + journal.slot()), self._fd
            self._slot, self._cut_told = len(head), 0
        finally:
            self._beginning = False
        self._fd, self._size = begun
        self._rest, self._half = b"", None  # what was cut in the file before stays so
        self._turns.forget()
        if self._always:
            self._force_entry()
        if before is not None:
            if self._files.bounds.fsync is not Fsync.OFF:
                self._force(before)
            with suppress(OSError):
                os.close(before)

    def _keep_rest(self, rest: bytes, payload: Mapping[str, Any] | None) -> None:
        """Note that a frame is in the file in part."""
        self._rest, self._half, self._limit = rest, payload, 0
        self.dropped += payload is not None

    def _write_out(self, frame: bytes, payload: Mapping[str, Any] | None) -> None:
        """Write one frame; what is left of one that is cut is kept. Raises `OSError`."""
        if self._fd is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        bytes_written = 0
        try:
            while bytes_written < len(frame):
                bytes_written += os.write(self._fd, frame[bytes_written:])
        finally:
            self._size += bytes_written
            if 0 < bytes_written < len(frame):
                self._keep_rest(frame[bytes_written:], payload)
        if self._always:
            self._force(self._fd)

    def _force(self, fd: int) -> None:
        """Have what is written on the disk itself. Where that fails it is in the file all the same."""
        try:
            os.fdatasync(fd)
        except OSError as error:
            self._tell("sync", f"{self.path} cannot be forced to the disk: {error}")

    def _force_entry(self) -> None:
        """Have the name of the file on the disk, too."""
        try:
            self._files.force_entry()
        except OSError as error:
            self._tell("sync", f"{self.path} cannot be forced to the disk: {error}")

    def _catch_up(self) -> None:
        """Write what is left of a frame that was cut, and what is owed. Raises `OSError`."""
        while self._rest and self._fd is not None:
            bytes_written = os.write(self._fd, self._rest)
            self._size += bytes_written
            self._rest = self._rest[bytes_written:]
        if self._half is not None:
            self._half = None
            self.dropped -= 1
        while self._owed:
            owed = self._owed.pop(0)
            try:
                self._write_out(journal.frame(dict(owed)), owed)
            except OSError:
                if not self._rest:  # nothing of it is in the file
                    self._owed.insert(0, owed)
                raise

    def _write_structure(self, payload: Mapping[str, Any], why: str, *, counted: bool = False) -> None:
        """Write a frame without its payload, where there is room for that, and count it. Raises `OSError`."""
        span = str(payload.get("span", ""))
        pieces = self._partly.get(span, 0)
        left, whole = structure(payload, why, whole_start=pieces >= 0)
        room = left is not None and not self._files.full(self._size + _SMALL)
        self.dropped += not counted and not (whole and room)
        if left is None:
            self._partly[span] = pieces + 1 if pieces >= 0 else pieces
        elif payload["t"] == "start":
            if not (whole and room):
                self._partly[span] = _HEADLESS
        elif payload["t"] == "end":
            self._partly.pop(span, None)
        if left is not None and room:
            try:
                self._write_out(journal.frame(left), None)
            except OSError:
                self.dropped += not counted and whole  # counted already, where more than its payload was lost
                raise

    def _failed(self, error: OSError, payload: Mapping[str, Any]) -> bool:
        """Make the best of a failure: structure may fit where a payload does not; a root is written by and by."""
        self._limit = 0
        if error.errno == errno.EBADF and self._fd is not None and self._again(payload):
            return False
        self._tell("failed", f"cannot write {self.path}: {error}; the program goes on unrecorded")
        try:
            return self._made_good(error, payload)
        finally:
            self._note_cut(error)

    def _note_cut(self, error: OSError, *, last: bool = False) -> None:
        """Say in the file itself why it lacks something, and how much: at first, ever more seldom, and at the end."""
        if self._fd is None or not self._slot or not (last or self.dropped >= 2 * self._cut_told):
            return
        self._cut_told = max(1, self.dropped)
        with suppress(OSError):
            reason = error.strerror or type(error).__name__
            self._files.write_over(self._slot, journal.slot(cut=reason, dropped=self._cut_told))

    def _made_good(self, error: OSError, payload: Mapping[str, Any]) -> bool:
        if self._half is payload:  # the rest of it is tried with the next
            return False
        if is_root(payload):
            self._owed.append(payload)
            if len(self._owed) > _MOST_OWED:
                self._owed.pop()
                self.dropped += 1
            return False
        why = f"it could not be written: {error.strerror}"
        try:
            if self._fd is None:
                self._begin(self._files.path)
            if self._rest:
                self._give_up(why)
        except OSError:  # nothing of this one is anywhere
            self.dropped += 1
            return False
        with suppress(OSError):  # as the file is, readers find their way
            self._write_structure(payload, why)
        return False

    def _again(self, payload: Mapping[str, Any]) -> bool:
        """Begin a further file: the agent closed all files that it did not know."""
        self._fd = None
        try:
            self._begin(self._files.next())
            self._write_out(journal.frame(dict(payload)), payload)
        except OSError:
            return False
        return True

    def _give_up(self, why: str) -> None:
        """Say that the rest of a frame that was cut is not to come, and write its structure. Raises `OSError`."""
        half, self._rest, self._half = self._half, b"", None
        self._write_out(journal.TORN, None)
        if half is not None and not is_root(half):
            self._write_structure(half, why, counted=True)
        elif half is not None:
            self.dropped -= 1
            self._owed.append(half)

    def _tell(self, kind: str, line: str) -> None:
        if kind not in self._notice_kinds:
            self._notice_kinds.add(kind)
            with suppress(Exception):  # a closed stderr
                tell(line)

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Write down that a span began."""
        del parent_context
        context = span.get_span_context()
        attributes = dict(span.attributes or {})
        self._open_spans[context.span_id] = attributes, _ticks()
        if _ROOT in attributes:
            attributes = attributes | self._proof(context, attributes)
        self.write(
            {
                "t": "start",
                "trace": format(context.trace_id, "032x"),
                "span": format(context.span_id, "016x"),
                "parent": format(span.parent.span_id, "016x") if span.parent else None,
                "name": span.name,
                "kind": span.kind.value + 1,
                "ns": span.start_time or 0,
                "attributes": attributes,
                "links": [
                    [
                        format(link.context.trace_id, "032x"),
                        format(link.context.span_id, "016x"),
                        dict(link.attributes or {}),
                    ]
                    for link in span.links
                ],
            }
        )

    def on_end(self, span: ReadableSpan) -> None:
        """Write down that a span ended. Attributes of the start are written again only where they changed."""
        context = span.get_span_context()
        if context is None:
            return
        ended, began = span.end_time or 0, span.start_time or 0
        started, ticks = self._open_spans.pop(context.span_id, _UNKNOWN)
        if ended < began:  # the clock was set back meanwhile
            ended = began + (_ticks() - ticks if ticks else 0)
        changed = {k: v for k, v in (span.attributes or {}).items() if started.get(k, started) is not v}
        if _ROOT in started and any(map(covers, changed)):
            changed |= self._proof(context, dict(span.attributes or {}))
        self.write(
            {
                "t": "end",
                "span": format(context.span_id, "016x"),
                "name": span.name,
                "ns": ended,
                "attributes": changed,
                "status": span.status.status_code.value,
                "message": span.status.description or "",
                "events": [[event.name, event.timestamp, dict(event.attributes or {})] for event in span.events],
            }
        )

    def _proof(self, context: SpanContext, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Prove a root as it is written; empty where that cannot be done."""
        if self._prove is not None:
            with suppress(Exception):  # it is recorded all the same
                root_ids = format(context.trace_id, "032x"), format(context.span_id, "016x")
                return {ORIGIN: self._prove(*root_ids, attributes)}
        return {}

    def head(self, span_id: int, facts: dict[str, Json]) -> None:
        """Write down that a stream opened."""
        self.write({"t": "head", "span": format(span_id, "016x"), "attributes": facts})

    def chunk(self, span_id: int, chunk: list[Json]) -> None:
        """Write down a piece of a stream, in the spelling of `reenact.stream.chunks`."""
        self.write({"t": "chunk", "span": format(span_id, "016x"), "chunk": chunk})

    def note(self, **facts: Json) -> None:
        """Write down facts about the process; without any span there is no file and nothing to note."""
        if self._fd is not None:
            self.write({"t": "note", "note": facts})

    def shutdown(self) -> None:
        """Close the file for good and give up its lock."""
        with self._lock:
            if self._is_closed:
                return
            if self.dropped or self._owed or self._rest:
                self._settle()
            self._is_closed, self._limit = True, 0
            if self._fd is not None:
                if self._files.bounds.fsync is not Fsync.OFF:
                    self._force(self._fd)
                    self._force_entry()
                with suppress(OSError):
                    os.close(self._fd)
                self._fd = None

    def _settle(self) -> None:
        """Write what is owed, and how much is missing; say so where not even that can be written."""
        try:
            if self._fd is None:
                self._begin(self._files.path)
            self._catch_up()
        except OSError:
            self.dropped += len(self._owed)
        if not self.dropped:
            return
        note = {"t": "note", "note": {"dropped": self.dropped}}
        try:
            self._write_out((journal.TORN if self._rest else b"") + journal.frame(note), None)
        except OSError as error:
            self._note_cut(error, last=True)
            self._tell("count", f"{self.dropped} records of this process could not be written to {self.path}")

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Say whether everything is written: each frame is, before its call goes on."""
        del timeout_millis
        return self.dropped == 0 and not self._owed
