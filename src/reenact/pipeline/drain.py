"""Journals become traces in the store, and leave for backends: exporting is reading the journal."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from reenact.dialects.openinference import DIALECT
from reenact.errors import InputError
from reenact.export.delivery import Report
from reenact.export.fanout import FanOut
from reenact.export.sender import Sender
from reenact.formats.journal import FORMAT, Reader
from reenact.graph.build import interpret
from reenact.pipeline.catalog import index
from reenact.stores.directory import DirectoryStore
from reenact.values.run import Run
from reenact.values.span import SpanRecord

_EXIT_CODE = "process.exit.code"


def flattened(span: SpanRecord) -> SpanRecord:
    """Add the derived, view-only attributes (messages one by one, token counts) that other vendors' screens read."""
    if "reenact.schema_version" not in span.attributes or "reenact.boundary" not in span.attributes:
        return span
    call, outcome = interpret(span)
    return replace(span, attributes={**DIALECT.flatten(call, outcome), **span.attributes})


@dataclass(slots=True)
class Tail:
    """One journal and how far it was read."""

    path: Path
    reader: Reader = field(init=False)
    _offset: int = 0

    def __post_init__(self) -> None:
        self.reader = Reader(str(self.path))

    def poll(self) -> list[SpanRecord]:
        """Read on, and give the spans that ended since."""
        try:
            with self.path.open("rb") as stream:
                stream.seek(self._offset)
                data = stream.read()
        except FileNotFoundError:
            return []
        self._offset += len(data)
        return list(self.reader.feed(data))

    def is_written(self) -> bool:
        """Tell whether a living process still holds the journal."""
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: others may be asking at this moment
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False


@dataclass(slots=True)
class Drained:
    """What a drain carried."""

    spans: int = 0
    unfinished: int = 0
    traces: dict[str, None] = field(default_factory=dict[str, None])
    damaged: list[str] = field(default_factory=list[str])


class Drain:
    """Carries the journals of a store, once or again and again while they grow."""

    def __init__(
        self,
        store: DirectoryStore,
        *,
        recording: str | None = None,
        backends: Sequence[Sender] = (),
        report: Callable[[str], None] = print,
        living: bool = True,
    ) -> None:
        self._store, self._recording, self._report, self._living = store, recording, report, living
        self._roots: dict[int, SpanRecord] = {}
        """The root that ended last, by process."""
        self._tails: dict[Path, Tail] = {}
        self._fan_out = FanOut(backends) if backends else None
        self.reports: list[Report] = []
        self.done = Drained()

    def poll(self, exit_codes: Mapping[int, int] | None = None) -> None:
        """Carry what ended since, and close the journals whose writers are gone."""
        prefix = f"{self._recording}-" if self._recording else ""
        for path in sorted(self._store.journals.glob(f"{prefix}*{FORMAT.suffix}")):
            tail = self._tails.setdefault(path, Tail(path))
            written = tail.is_written()  # asked first: what it wrote before it went is read below
            if written and not self._living:
                continue
            try:
                spans = tail.poll()
                if not written:
                    unfinished = list(tail.reader.unfinished())
                    self.done.unfinished += len(unfinished)
                    spans += unfinished
            except InputError as error:
                self._set_aside(path, error.problem)
                continue
            try:
                self._carry(self._with_exit_codes(spans, exit_codes or {}), written=written)
            except BaseException:
                del self._tails[path]  # read again from its beginning next time: what is stored twice is folded
                raise
            if not written:
                self._close(path, tail.reader)

    def _close(self, path: Path, reader: Reader) -> None:
        """Be done with a journal. What was damaged is kept, for whoever can read more of it."""
        del self._tails[path]
        if reader.damaged:
            self._set_aside(path, f"{reader.damaged} places in a journal are damaged; the rest was read")
        else:
            path.unlink(missing_ok=True)

    def _set_aside(self, path: Path, problem: str) -> None:
        aside = path.with_suffix(".damaged")
        path.rename(aside)
        self._tails.pop(path, None)
        self.done.damaged.append(str(aside))
        self._report(f"{problem}; kept as {aside}")

    def _with_exit_codes(self, spans: list[SpanRecord], exit_codes: Mapping[int, int]) -> list[SpanRecord]:
        """Note how a process ended, which only its parent knows, on the root that ended last."""
        for span in spans:
            pid = span.resource.attributes.get("process.pid")
            if span.attributes.get("reenact.run.root") and isinstance(pid, int):
                self._roots[pid] = span
        last = {self._roots[pid].span_id: pid for pid in self._roots.keys() & exit_codes.keys()}
        noted: list[SpanRecord] = []
        for span in spans:
            if (pid := last.get(span.span_id)) is not None:
                span = self._roots[pid] = _ended(span, exit_codes[pid])  # noqa: PLW2901
            noted.append(span)
        return noted

    def _carry(self, spans: list[SpanRecord], *, written: bool) -> None:
        if not spans:
            return
        self.done.traces.update(dict.fromkeys(self._store.append(spans)))
        self.done.spans += len(spans)
        if written:  # a process that lives on: its finished runs can be found meanwhile
            with suppress(InputError):  # told at the end, when they are noted again
                index(self._store, {span.trace_id: None for span in spans if span.attributes.get("reenact.run.root")})
        if self._fan_out is None:
            return
        try:
            self.reports += self._fan_out.deliver([flattened(span) for span in spans])
        except Exception as error:  # noqa: BLE001 - they are in the store, and are not stored again for this
            self._report(f"exporting failed: {error!r}; `reenact export RUN --to URL` sends them again")

    def finish(self, exit_codes: Mapping[int, int] | None = None) -> list[Run]:
        """Carry the rest, and give the runs that came in, noted in the index."""
        self.poll(exit_codes)
        for pid, code in (exit_codes or {}).items():
            root = self._roots.get(pid)
            if root is not None and _EXIT_CODE not in root.attributes:  # it was carried before its process had ended
                self._store.append([_ended(root, code)])
        return index(self._store, self.done.traces)


def _ended(root: SpanRecord, exit_code: int) -> SpanRecord:
    return replace(root, attributes={**root.attributes, _EXIT_CODE: exit_code})


def leftovers(store: DirectoryStore) -> list[Run]:
    """Carry the journals of processes that are gone, as every command does first; make a missing index again."""
    runs: list[Run] = []
    if store.journals.is_dir() and any(store.journals.glob(f"*{FORMAT.suffix}")):
        runs = Drain(store, living=False).finish()
    if not store.indexed:
        with suppress(InputError):  # a damaged trace is told when it is asked for
            index_anew(store)
    return runs


def index_anew(store: DirectoryStore) -> None:
    """Make the index again from the traces. Raises `InputError` where one is damaged, when the rest is done."""
    store.forget_index()
    damaged: list[InputError] = []
    for trace_id in store.trace_ids():
        try:
            index(store, [trace_id])
        except InputError as error:
            damaged.append(error)
    if damaged:
        raise damaged[0]
