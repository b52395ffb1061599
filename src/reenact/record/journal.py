"""The writing end of the journal (`formats.journal`): a span processor, last in our own pipe, behind redaction."""

from __future__ import annotations

import fcntl
import os
import sys
import threading
import weakref
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from reenact.formats import journal
from reenact.record.turns import Turns
from reenact.values.json import Json


class JournalProcessor(SpanProcessor):
    """Appends start, progress and end of every span to one file, each in one `write`.

    The file is made at the first span and locked while its writer lives, so that others can tell a leftover from a
    journal in use; it gets its name when it is locked and begun. A full disk or a vanished folder costs spans,
    counted and told once; never the agent.
    """

    def __init__(self, folder: Path, name: str, resource: dict[str, Any], scope: str, version: str) -> None:
        self.path = folder / f"{name}{journal.FORMAT.suffix}"
        self._recording = name.partition("-")[0]
        self._header = journal.header(resource, scope, version)
        self._fd: int | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._torn = b""
        """What is left of a frame that a full disk cut: nothing may be written before it."""
        self._turns = Turns()
        self.dropped = 0
        self._started: dict[int, Mapping[str, Any]] = {}
        forked = weakref.WeakMethod(self._forked)
        os.register_at_fork(after_in_child=lambda: (tell := forked()) and tell())

    def _forked(self) -> None:
        """Leave the parent's file alone: a child writes one of its own, under the same lock rules."""
        self._lock = threading.Lock()
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
        self._torn = b""
        self._turns = Turns()
        pids = {"process.pid": os.getpid(), "process.parent_pid": os.getppid()}
        process = os.urandom(8).hex()
        own = {"reenact.process.id": process, "service.instance.id": process, **pids}
        self._header = {**self._header, "resource": {**self._header["resource"], **own}}
        self._started.clear()  # those spans are the parent's to end
        self.path = self.path.with_name(f"{self._recording}-{process}{journal.FORMAT.suffix}")

    def _open(self) -> int:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(".opening")
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            rest = journal.MAGIC + journal.frame(self._header)
            while rest:
                rest = rest[os.write(fd, rest) :]
            draft.rename(self.path)
        except OSError:
            os.close(fd)
            with suppress(OSError):
                draft.unlink()
            raise
        return fd

    def write(self, payload: dict[str, Any]) -> None:
        """Append one frame, whole, in one `write`."""
        frame = journal.frame(payload)
        with self._lock:
            self._append(frame)

    def write_turn(self, payload: dict[str, Any], text: str) -> None:
        """Append the frame of a call that begins, whose `input.value` is `text`: of a conversation, what is new."""
        with self._lock:
            turn = self._turns.next(text)
            if turn is None:
                self._append(journal.frame(payload))
                return
            attributes = {**payload["attributes"], journal.TEXT: text[turn.shared :]}
            turned = {**payload, "attributes": attributes, "turn": [turn.number, turn.of, turn.shared]}
            if self._append(journal.frame(turned)):
                self._turns.wrote(turn)
            else:
                self._turns.forget()  # it may be in the file yet, by and by

    def _append(self, frame: bytes) -> bool:
        if self._closed:
            return False  # a call that outlived its recording
        data, written = self._torn + frame, 0
        try:
            if self._fd is None:
                self._fd = self._open()
            written = os.write(self._fd, data)
            while written < len(data):
                written += os.write(self._fd, data[written:])
            self._torn = b""
        except OSError as error:
            self._torn = data[written:] if written > len(self._torn) else self._torn[written:]
            self.dropped += 1
            if self.dropped == 1:
                sys.stderr.write(f"reenact: cannot write {self.path}: {error}; the program goes on unrecorded\n")
            return False
        return True

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Write down that a span began."""
        del parent_context
        context = span.get_span_context()
        attributes = self._started[context.span_id] = dict(span.attributes or {})
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
        started = self._started.pop(context.span_id, {})
        self.write(
            {
                "t": "end",
                "span": format(context.span_id, "016x"),
                "name": span.name,
                "ns": span.end_time or 0,
                "attributes": {k: v for k, v in (span.attributes or {}).items() if started.get(k, started) is not v},
                "status": span.status.status_code.value,
                "message": span.status.description or "",
                "events": [[event.name, event.timestamp, dict(event.attributes or {})] for event in span.events],
            }
        )

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
            self._closed = True
            if self._fd is not None:
                os.close(self._fd)
                self._fd = None

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Say whether everything is written: each frame is, before its call goes on."""
        del timeout_millis
        return self.dropped == 0
