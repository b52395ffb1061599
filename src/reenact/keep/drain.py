"""Journals become traces in the store, and leave for backends: exporting is reading the journal.

Theory of operation. A recording process writes one journal and waits for nobody. A drain reads journals from where it
stopped (`keep.journal_reader`), in the process that owns the recording or in the next command (`keep.leftovers`). Each
span goes the same way: into the store, into the outbox as owed to each backend, into the index when its trace has
grown. A journal goes from the disk last, when its writer is gone and what was carried is as safe as the journal was; so
a drain that is killed anywhere is followed by one that reads the same frames again, and the store folds what it has
twice. What cannot be read is set aside under another name, and stands for itself in the run (`keep.stand_ins`). A drain
that has no time left leaves the rest to others and notes how far it came.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from reenact.errors import InputError
from reenact.formats.journal import Loss, segment_name
from reenact.keep.catalog import index, runs_of
from reenact.keep.journal_owner import owned
from reenact.keep.journal_reader import Salvaged, Tail, journals
from reenact.keep.posting import post_for
from reenact.keep.stand_ins import Missing
from reenact.stores.directory import DirectoryStore, IndexUnusableError
from reenact.stores.outbox import Outbox, OutboxUnusableError
from reenact.values.json import parsed_or_none
from reenact.values.lenient import as_object
from reenact.values.losses import marked
from reenact.values.run import FROM_OUTSIDE, PROCESS_ROOT, SERVED, STOPPED, VISITED, Run
from reenact.values.span import SpanRecord
from reenact.values.unit import INBOUND, serves

if TYPE_CHECKING:  # a drain that sends nothing imports nothing that sends
    from reenact.export.post import Post, Standing
    from reenact.export.sender import Sender

_EXIT_CODE = "process.exit.code"
_STOPPING = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
"""The signals by which an operator stops a server."""
_QUICK_S = 1.0
_NOTED_S = 0.0005
"""What noting a span in the index takes at most, on a slow machine."""
_MOST_BUILT = 100
"""Runs that are kept as they were noted last: what a run is told by at its end, and no more."""
_AT_ONCE = 100
"""Traces that are noted in one transaction."""


@dataclass(slots=True)
class Drained:
    """What a drain carried."""

    spans: int = 0
    unfinished: int = 0
    traces: dict[str, None] = field(default_factory=dict[str, None])
    damaged: list[str] = field(default_factory=list[str])
    journals: list[Salvaged] = field(default_factory=list[Salvaged])
    """What was found in the journals whose writers are gone."""
    runs: dict[str, None] = field(default_factory=dict[str, None])
    """The ids of the runs that were noted in the index, those noted last at the end."""
    made: int = 0
    """Spans that stand for others whose record was destroyed."""


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
        gentle: bool = False,
        mend: Callable[[SpanRecord], SpanRecord] | None = None,
    ) -> None:
        """Carry what is in the store's journals, or those of one `recording`; `mend` completes each span."""
        self._mend = mend
        self._store, self._recording, self._report, self._living = store, recording, report, living
        self._roots: dict[int, SpanRecord] = {}
        """The root that ended last, by process."""
        self._open: dict[str, SpanRecord] = {}
        """The roots of processes that did not come to their end, by span."""
        self._units_by_process = Counter[int]()
        """Units that others asked for, by process."""
        self._serves = False
        """A process did a unit of work (a request, a job, a block of `reenact.run`), or was started by a server."""
        self._tails: dict[str, Tail] = {}
        """Journals that are read, by name."""
        self._missing = Missing()
        self._losses: list[Loss] = []
        """Damaged places of the journals that were closed."""
        self._due: dict[str, None] = {}
        """Traces that grew since they were noted in the index."""
        self._recent_runs: dict[str, Run] = {}
        """Runs as they were noted last, of the traces that did not grow since; the newest ones."""
        self._failed: InputError | None = None
        """Why a trace is not in the index."""
        self._outbox = Outbox(store.folder)
        self._recipients: dict[str, list[int]] = {}
        """The backends that are to have the spans of a recording."""
        self._post = self._posted(backends, gentle=gentle)
        self._sizes = Counter[str]()
        """Spans carried, by trace."""
        self._hurried = False
        """What came in was not noted, since there was no time."""
        self._end: float | None = None
        """When to leave the rest to others, by the monotonic clock."""
        self.reports: list[Standing] = []
        """What came of exporting, when this is finished."""
        self.done = Drained()

    def _posted(self, backends: Sequence[Sender], *, gentle: bool) -> Post | None:
        if not backends:
            return None
        try:
            return post_for(self._store, backends, self._recording, gentle=gentle)
        except Exception as error:  # noqa: BLE001 - the store goes on without
            self._report(f"exporting is off: {error}")
            return None

    def poll(self) -> None:
        """Carry what ended since, and close the journals whose writers are gone. Quick backends have it, too."""
        self._poll({})
        begun = time.monotonic()
        while self._post is not None and self._end is None and time.monotonic() - begun < _QUICK_S:
            if self._post.wait(_QUICK_S / 20):
                break

    def flush(self, within_s: float) -> bool:
        """Carry what ended, and tell whether every backend has all that it is to have within so many seconds."""
        self._poll({})
        return self._post is None or self._post.flush(within_s)

    def hurry(self, end: float | None) -> None:
        """Leave what is not carried by then, by the monotonic clock, to others. Safe to call from another thread."""
        self._end = end

    def _poll(self, exit_codes: Mapping[int, int]) -> None:
        prefix = f"{self._recording}-" if self._recording else ""
        groups = journals(self._store.journals, prefix)
        going_on = (
            set[str]() if self._living else {_recording_of(name) for name, files in groups.items() if _is_open(files)}
        )
        going_on |= set() if self._living else owned(self._store)
        for name, files in groups.items():
            if _recording_of(name) in going_on:  # who lives on will carry it, what its children left included
                continue
            tail = self._tails.setdefault(name, Tail(files[0], files))
            written = tail.is_written()  # asked first: what it wrote before it went is read below
            if written and not self._living:
                continue
            try:
                for read in self._read_spans(tail, written=written):
                    spans = read if self._mend is None else [*map(self._mend, read)]
                    self._carry(tail, self._with_exit_codes(self._with_units(spans), exit_codes), written=written)
            except BaseException:
                del self._tails[name]  # read again from its beginning next time: what is stored twice is folded
                raise
            if name not in self._tails:
                continue
            if self._late or not (written or self._affordable()):  # left over, for the next command
                self._leave(tail)
            elif written:
                self._release(tail)
            elif self._note(list(self._due)) and self._forced(tail):  # noted first: else nobody finds it
                self._close(tail)

    def _read_spans(self, tail: Tail, *, written: bool) -> Iterator[list[SpanRecord]]:
        """Give what ended in a journal since, a few megabytes at a time, and last what never will."""
        try:
            while not self._late and (spans := tail.poll()) is not None:
                yield spans
            if not written and not tail.over and not self._late:
                tail.over = True
                tail.note_again()
                unfinished = list(tail.reader.unfinished())
                tail.unfinished = len(unfinished)
                self.done.unfinished += len(unfinished)
                yield unfinished
        except InputError as error:
            self._set_aside(tail, error.problem)

    @property
    def _late(self) -> bool:
        return self._end is not None and time.monotonic() > self._end

    def _affordable(self) -> bool:
        """Tell whether there is time to note in the index what is due: that cannot be broken off."""
        if self._end is None:
            return True
        self._hurried = time.monotonic() + _NOTED_S * sum(self._sizes[trace_id] for trace_id in self._due) > self._end
        return not self._hurried

    def _leave(self, tail: Tail) -> None:
        """Note how far a journal was carried, for whoever carries the rest."""
        if self._store.aside is None and not self._recipients.get(
            _recording_of(tail.name)
        ):  # else it was noted all along
            with suppress(OutboxUnusableError):
                self._outbox.note_journals(tail.span_counts)

    def _release(self, tail: Tail) -> None:
        """Do away with the files of a living process's journal that were carried whole, where this may be done."""
        if self._store.aside is None and tail.reader.file and self._forced(tail):
            tail.release()

    def _forced(self, tail: Tail) -> bool:
        """Have on the disk itself what was carried, where its journal was by REENACT_JOURNAL_FSYNC; it may go then."""
        if not tail.is_forced:
            return True
        try:
            self._store.force()
            self._outbox.force()
        except OSError as error:
            self._report(f"what was recorded cannot be forced to the disk ({error}); its journal stays")
            return False
        return True

    def _close(self, tail: Tail) -> None:
        """Be done with a journal. What was damaged is kept, for whoever can read more of it."""
        del self._tails[tail.name]
        self._missing.note(tail.reader)
        self._losses += tail.reader.losses
        entry = tail.salvaged()
        self.done.journals.append(entry)
        if entry.dropped:
            self._report(f"process {entry.pid} could not write {entry.dropped} records, or not whole; its runs say so")
        if self._store.aside is not None:
            return  # it stays where it is, for whoever can write there
        if tail.reader.damaged:
            self._set_aside(tail, f"{tail.reader.damaged} places in a journal are damaged; the rest was read")
        else:
            for path in (*tail.files, tail.note):
                path.unlink(missing_ok=True)
        self._forget(tail)

    def _forget(self, tail: Tail) -> None:
        """Have the outbox forget a journal that is none any more: whoever else would carry it finds none."""
        if self._outbox.exists:
            with suppress(OutboxUnusableError):  # a name that no journal will ever have again
                self._outbox.forget_journals([*tail.span_counts, *(path.name for path in tail.files)])

    def _set_aside(self, tail: Tail, problem: str) -> None:
        self._tails.pop(tail.name, None)
        if self._store.aside is not None:
            self._report(f"{tail.path}: {problem}")
            return
        for path in tail.files:
            aside = path.with_suffix(".damaged")
            with suppress(FileNotFoundError):
                path.rename(aside)
                self.done.damaged.append(str(aside))
        tail.note.unlink(missing_ok=True)
        self._report(f"{problem}; kept as {tail.path.with_suffix('.damaged')}")

    def _put_made(self, trace_id: str, stand_ins: list[SpanRecord]) -> None:
        """Store what was made, and owe it to the backends that have the rest of its recording."""
        recording = str(stand_ins[0].resource.attributes.get("reenact.recording.id", ""))
        if backends := self._recipients.get(recording, []):
            with suppress(OutboxUnusableError), self._outbox.taking_in(f"{trace_id} made", backends) as intake:
                intake.owe(self._store.put(stand_ins))
                return
        self._store.append(stand_ins)

    def _make_missing(self) -> None:
        """Put what is known in the place of spans whose record was destroyed, where nobody is left to write them."""
        if self._tails:
            return  # a process that lives on may have them
        for trace_id in self._missing.traces():
            with suppress(InputError):  # told where the trace is read
                stand_ins = self._missing.made(trace_id, list(self._store.spans(trace_id)))
                if stand_ins:
                    self._put_made(trace_id, stand_ins)
                    self._due[trace_id] = None
                    self.done.made += len(stand_ins)
                    self.done.traces[trace_id] = None
                    self._recent_runs.pop(trace_id, None)
        self._missing = Missing()

    def _mark_losses(self) -> None:
        """Say on the root of each run that lost something in a damaged place of its journal that it did."""
        counts = Counter[str]()
        for loss in self._losses:
            counts.update([loss.trace] if loss.trace and self._store.resolve(loss.trace) else loss.suspects)
        self._losses = []
        for trace_id, count in counts.items():
            with suppress(InputError):  # told where the trace is read
                spans = self._store.spans(trace_id)
                root = next((span for span in spans if span.attributes.get("reenact.run.root")), None)
                if root is not None:
                    lost = f"what stood in {count} damaged places of its journal"
                    mark = {"field": "records", "lost": lost, "fix": "look after the disk"}
                    self._due.update(dict.fromkeys(self._store.append(marked([root], [mark]), proofs=True)))
                    self.done.traces[trace_id] = None
                    self._recent_runs.pop(trace_id, None)

    def _with_units(self, spans: list[SpanRecord]) -> list[SpanRecord]:
        """Note how many units others asked a process for that did not come to say so itself."""
        new_spans: list[SpanRecord] = []
        for span in spans:
            pid, tags = span.resource.attributes.get("process.pid"), span.attributes
            if not isinstance(pid, int):
                pass
            elif tags.get(FROM_OUTSIDE):
                self._units_by_process[pid] += 1
            elif tags.get(VISITED):
                self._units_by_process.setdefault(pid, 0)  # a server, though no unit of it is a run
            elif tags.get(PROCESS_ROOT) and tags.get("reenact.incomplete") and pid in self._units_by_process:
                span = replace(span, attributes={**tags, SERVED: self._units_by_process[pid]})  # noqa: PLW2901 - the noted one is meant
            new_spans.append(span)
        return new_spans

    def _with_exit_codes(self, spans: list[SpanRecord], exit_codes: Mapping[int, int]) -> list[SpanRecord]:
        """Note how a process ended, which only its parent knows, on the root that ended last."""
        for span in spans:
            pid = span.resource.attributes.get("process.pid")
            if not span.attributes.get("reenact.run.root") or not isinstance(pid, int):
                continue
            is_process = bool(span.attributes.get(PROCESS_ROOT))
            self._serves = self._serves or not is_process or _is_server(span)
            if is_process and span.attributes.get("reenact.incomplete"):
                self._open[span.span_id] = span
            if INBOUND not in span.attributes:  # how the server ended says nothing of a request
                self._roots[pid] = span
        last = {self._roots[pid].span_id: pid for pid in self._roots.keys() & exit_codes.keys()}
        new_spans: list[SpanRecord] = []
        for span in spans:
            if (pid := last.get(span.span_id)) is not None:
                span = self._roots[pid] = _ended(span, exit_codes[pid])  # noqa: PLW2901 - from here on the ended one is meant
            new_spans.append(span)
        return new_spans

    def _taken_in(self, tail: Tail, spans: Sequence[SpanRecord]) -> dict[str, None]:
        """Store spans and owe them to the backends of their recording; give their traces.

        Both at once, with how many spans of the journal that makes: those that were taken in before a drain was killed
        are passed over, and so nothing is owed twice. They are told apart by where they ended, in the order of ending.
        """
        ended = unfinished_of(tail.name) if tail.over else tail.file
        before = tail.span_counts.get(ended, 0)
        tail.span_counts[ended] = before + len(spans)
        try:
            if self._store.aside is not None:
                return dict.fromkeys(self._store.append(spans, proofs=True))
            backends = self._recipients_of(_recording_of(tail.name))
            if not backends and not self._outbox.exists:
                return dict.fromkeys(self._store.append(spans, proofs=True))
            with self._outbox.taking_in(ended, backends) as intake:
                offset = max(0, min(len(spans), intake.carried - before))
                intake.owe(self._store.put(spans[offset:], proofs=True))
        except OutboxUnusableError as error:
            self._report(f"{len(spans)} spans are in the store, but not on their way to any backend: {error}")
            self._store.append(spans, proofs=True)
        return dict.fromkeys(span.trace_id for span in spans)

    def _recipients_of(self, recording: str) -> list[int]:
        if recording not in self._recipients:
            self._recipients[recording] = self._outbox.recipients(recording)
        return self._recipients[recording]

    def _carry(self, tail: Tail, spans: list[SpanRecord], *, written: bool) -> None:
        if not spans:
            return
        if tail.is_forced:
            self._store.note_unforced()
        traces = self._taken_in(tail, spans)
        self.done.traces.update(traces)
        self._due.update(traces)
        for trace_id in traces.keys() & self._recent_runs.keys():
            del self._recent_runs[trace_id]
        self._sizes.update(span.trace_id for span in spans)
        self.done.spans += len(spans)
        if written and self._end is None:  # a process that lives on: its finished runs can be found meanwhile
            self._note([span.trace_id for span in spans if span.attributes.get("reenact.run.root")])
        if self._post is not None:
            self._post.wake()

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
                    outcomes = [self._note([trace_id]) for trace_id in batch]
                    if not all(outcomes):
                        return False
                    continue
                self._failed = error  # a damaged trace, told at the end, when everything else is done
            else:
                for run in runs:
                    self._recent_runs.pop(run.id, None)
                    self.done.runs.pop(run.id, None)
                    self._recent_runs[run.id], self.done.runs[run.id] = run, None
            for trace_id in batch:
                self._due.pop(trace_id, None)
        while len(self._recent_runs) > _MOST_BUILT:
            del self._recent_runs[next(iter(self._recent_runs))]
        return True

    def _note_stop(self, stopped_by: int, exit_codes: Mapping[int, int]) -> None:
        """Note which signal stopped it: on the roots of a server's processes, as a deploy interrupts no work of theirs.

        Likewise on that of a program that is no server, and ended by itself when the signal came.
        """
        if stopped_by not in _STOPPING:
            return
        started = [self._roots[pid] for pid, code in exit_codes.items() if code != -stopped_by and pid in self._roots]
        ended = [root for root in started if not root.attributes.get("reenact.incomplete")]
        for root in self._open.values() if self._serves else ended:
            code = exit_codes.get(cast("int", root.resource.attributes.get("process.pid")))
            attributes = {**root.attributes, STOPPED: signal.Signals(stopped_by).name}
            marked_root = replace(root, attributes=attributes if code is None else {**attributes, _EXIT_CODE: code})
            self._due.update(dict.fromkeys(self._store.append([marked_root], proofs=True)))

    def finish(
        self,
        exit_codes: Mapping[int, int] | None = None,
        *,
        stopped_by: int = 0,
        within_s: float | None = None,
        latest: int | None = None,
    ) -> list[Run]:
        """Carry the rest, and give the runs that came in, noted in the index. Raises `InputError` where one is not.

        `stopped_by` is the number of the signal that the program was sent, or died of; 0 for none.
        With `latest` no more than so many of them are given, those noted last, so that an end does not take as long as
        all that was done before it; `done.runs` names all.
        With `within_s` all of it, sending included, takes about so many seconds at most; what is not carried then is
        left over, as if the process had been killed, and no run is given.
        """
        self._failed = None
        self._end = None if within_s is None else time.monotonic() + within_s
        self._poll(exit_codes or {})
        if self._late or self._hurried:
            if self._post is not None:
                self.reports = self._post.close(max(0.0, (self._end or 0.0) - time.monotonic()))
            return []
        for pid, code in (exit_codes or {}).items():
            root = self._roots.get(pid)
            if root is not None and _EXIT_CODE not in root.attributes:  # it was carried before its process had ended
                self._due.update(dict.fromkeys(self._store.append([_ended(root, code)], proofs=True)))
        self._note_stop(stopped_by, exit_codes or {})
        self._make_missing()
        self._mark_losses()
        self._note(list(self._due))
        with suppress(OSError):  # what was carried is there, but for what was made of it since
            self._store.force()
        if self._post is not None:
            left = self._post.limits.exit_s if self._end is None else max(0.0, self._end - time.monotonic())
            self.reports = self._post.close(left)
        if self._failed is not None:
            raise self._failed
        if latest is not None:
            return [run for run_id in [*self.done.runs][-latest:] for run in self._runs(run_id)] if latest else []
        return [run for trace_id in self.done.traces for run in self._runs(trace_id)]

    def _runs(self, trace_id: str) -> list[Run]:
        run = self._recent_runs.get(trace_id)
        return [run] if run is not None else runs_of(self._store, trace_id)


def _recording_of(name: str) -> str:
    return name.partition("-")[0]


def _is_open(files: list[Path]) -> bool:
    return Tail(files[0], files).is_written()


def unfinished_of(name: str) -> str:
    """Name the spans of a journal that never ended, as those that ended are named by its file."""
    return f"{segment_name(name, 0)} unfinished"


def _ended(root: SpanRecord, exit_code: int) -> SpanRecord:
    """Add the exit code to a root. A unit of work that had ended keeps its own end where a signal came later."""
    if -exit_code in _STOPPING and not root.attributes.get("reenact.incomplete"):
        return root
    return replace(root, attributes={**root.attributes, _EXIT_CODE: exit_code})


def _is_server(root: SpanRecord) -> bool:
    """Return True for the root of a process that a known server of applications or of jobs began."""
    entry = as_object(parsed_or_none(str(root.attributes.get("reenact.entry") or "")))
    return serves(entry)
