"""Journals become traces in the store, and leave for backends: exporting is reading the journal."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from reenact.dialects.openinference import DIALECT
from reenact.errors import InputError
from reenact.export.delivery import Report
from reenact.export.fanout import FanOut
from reenact.export.sender import Sender
from reenact.formats.journal import FORMAT, Reader
from reenact.graph.build import interpret
from reenact.pipeline.catalog import index, index_anew, mended, runs_of
from reenact.pipeline.owning import owned
from reenact.stores.directory import DirectoryStore, IndexDamagedError, IndexUnusableError
from reenact.values.run import Run
from reenact.values.span import SpanRecord
from reenact.values.unit import INBOUND

_EXIT_CODE = "process.exit.code"
_MOST_BUILT = 1000
_AT_ONCE = 100
"""Traces that are noted in one transaction."""


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
    over: bool = False
    """What was still open when its writer went has been given."""
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
        self._due: dict[str, None] = {}
        """Traces that grew since they were noted in the index."""
        self._built: dict[str, Run] = {}
        """Runs as they were noted last, of the traces that did not grow since; the newest ones."""
        self._failed: InputError | None = None
        """Why a trace is not in the index."""
        self._fan_out = FanOut(backends) if backends else None
        self.reports: list[Report] = []
        self.done = Drained()

    def poll(self, exit_codes: Mapping[int, int] | None = None) -> None:
        """Carry what ended since, and close the journals whose writers are gone."""
        prefix = f"{self._recording}-" if self._recording else ""
        paths = sorted(self._store.journals.glob(f"{prefix}*{FORMAT.suffix}"))
        going_on = set[str]() if self._living else {_recording_of(path) for path in paths if Tail(path).is_written()}
        going_on |= set() if self._living else owned(self._store)
        for path in paths:
            if _recording_of(path) in going_on:  # who lives on will carry it, what its children left included
                continue
            tail = self._tails.setdefault(path, Tail(path))
            written = tail.is_written()  # asked first: what it wrote before it went is read below
            if written and not self._living:
                continue
            try:
                spans = tail.poll()
                if not written and not tail.over:
                    tail.over = True
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
            if not written and self._note(list(self._due)):  # noted first: what is in no journal has to be in the index
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
            came_in = INBOUND in span.attributes  # how the server ended says nothing of a request
            if span.attributes.get("reenact.run.root") and isinstance(pid, int) and not came_in:
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
        traces = dict.fromkeys(self._store.append(spans))
        self.done.traces.update(traces)
        self._due.update(traces)
        for trace_id in traces.keys() & self._built.keys():
            del self._built[trace_id]
        self.done.spans += len(spans)
        if written:  # a process that lives on: its finished runs can be found meanwhile
            self._note([span.trace_id for span in spans if span.attributes.get("reenact.run.root")])
        if self._fan_out is None:
            return
        try:
            self.reports += self._fan_out.deliver([flattened(span) for span in spans])
        except Exception as error:  # noqa: BLE001 - they are in the store, and are not stored again for this
            self._report(f"exporting failed: {error!r}; `reenact export RUN --to URL` sends them again")

    def _note(self, traces: Sequence[str]) -> bool:
        """Note runs in the index. False where it cannot be written now; they stay due, and so does their journal."""
        wanted = list(dict.fromkeys(traces))
        for start in range(0, len(wanted), _AT_ONCE):
            batch = wanted[start : start + _AT_ONCE]
            try:
                runs = index(self._store, batch, self._report)
            except IndexUnusableError as error:
                self._failed = error
                return False
            except InputError as error:
                if len(batch) > 1:
                    noted = [self._note([trace_id]) for trace_id in batch]
                    if not all(noted):
                        return False
                    continue
                self._failed = error  # a damaged trace, told at the end, when everything else is done
            else:
                self._built.update({run.id: run for run in runs})
            for trace_id in batch:
                self._due.pop(trace_id, None)
        while len(self._built) > _MOST_BUILT:
            del self._built[next(iter(self._built))]
        return True

    def finish(self, exit_codes: Mapping[int, int] | None = None) -> list[Run]:
        """Carry the rest, and give the runs that came in, noted in the index. Raises `InputError` where one is not."""
        self._failed = None
        self.poll(exit_codes)
        for pid, code in (exit_codes or {}).items():
            root = self._roots.get(pid)
            if root is not None and _EXIT_CODE not in root.attributes:  # it was carried before its process had ended
                self._due.update(dict.fromkeys(self._store.append([_ended(root, code)])))
        self._note(list(self._due))
        if self._failed is not None:
            raise self._failed
        return [run for trace_id in self.done.traces for run in self._runs(trace_id)]

    def _runs(self, trace_id: str) -> list[Run]:
        known = self._built.get(trace_id)
        return [known] if known is not None else runs_of(self._store, trace_id)


def _recording_of(path: Path) -> str:
    return path.stem.partition("-")[0]


def _ended(root: SpanRecord, exit_code: int) -> SpanRecord:
    return replace(root, attributes={**root.attributes, _EXIT_CODE: exit_code})


def leftovers(store: DirectoryStore) -> list[Run]:
    """Carry the journals of processes that are gone, as every command does first; make a missing index again."""
    runs: list[Run] = []
    if store.journals.is_dir() and any(store.journals.glob(f"*{FORMAT.suffix}")):
        runs = Drain(store, living=False, report=say).finish()
    try:
        if not store.indexed:
            index_anew(store)
        store.probe_index()
    except IndexDamagedError as error:
        mended(store, error, say)
    except InputError:
        pass  # a damaged trace is told when it is asked for
    return runs


def say(line: str) -> None:
    """Tell the user on stderr."""
    sys.stderr.write(f"reenact: {line}\n")
