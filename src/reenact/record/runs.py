"""What a run is: a script's execution, or one unit of work in it (`with reenact.run(...)`, a request that comes in).

Each run is one trace with one root. The process's own root is made only when a call happens outside every unit, so
that a script with one `with reenact.run` is one run; that of a unit that came in, when a call happens inside it. All
runs of one recording share `reenact.recording.id`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.sdk.trace import Span, TracerProvider
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, SpanKind, TraceFlags, set_span_in_context
from opentelemetry.trace.status import Status, StatusCode

from reenact.boundary import door, flows, inbound, inbound_clients, lanes, place, variables
from reenact.boundary.children import Descent
from reenact.boundary.inbound import Answered, Inbound
from reenact.boundary.place import Place
from reenact.record import draws
from reenact.record.file_writes import Owner, Writes
from reenact.record.outputs import Outputs
from reenact.record.shield import shielded
from reenact.record.standard_input import StandardInput
from reenact.record.surroundings import entry_point
from reenact.record.undeclared import Undeclared
from reenact.values import alarms, locks, typed
from reenact.values.call import ExceptionRecord
from reenact.values.json import Json, compact
from reenact.values.run import (
    CAME_IN,
    ENDED_BY,
    FAILURES,
    FROM_OUTSIDE,
    LEAVES,
    OURS,
    OUTPUT,
    PROCESS_REST,
    READ_VARIABLES,
    RECEIVED,
    REPLIED,
    SERVED,
    SESSION,
    STANDS_ON,
    STDIN,
    TENANT,
    THREAD,
    UNDECLARED,
    USER,
    WRITTEN,
)

if TYPE_CHECKING:
    from reenact.boundary.sqlite_statements import Statement

_CONTEXT_KEYS = (
    "session.id",
    "user.id",
    "metadata",
    "tag.tags",
    "llm.prompt_template.template",
    "llm.prompt_template.variables",
    "llm.prompt_template.version",
)
"""What OpenInference's `using_session`, `using_user`, … put into the OpenTelemetry context."""

_IDENTITY_KEYS = (USER, SESSION, TENANT)

_SERVER_ERROR = 500
REPLACED = "reenact.redaction.count"
AROUND = "reenact.inbound.process"
"""Under which name a unit that came in tells the run of the process around it, whose start-up calls a replay needs."""
_REMEMBERED = 10_000
_SETTLE_S, _LOOK_S = 0.5, 0.005
"""How long the end of a process waits at most for units whose answer is sent, and how often it looks."""


def from_context() -> dict[str, Any]:
    """Take what OpenInference's context managers put into the application's context."""
    context = door.application_context()
    return {key: context[key] for key in _CONTEXT_KEYS if key in context} if context else {}


class Run:
    """An open run: its root span and who it is for."""

    def __init__(self, span: Span, identity: Mapping[str, Any]) -> None:
        context = span.get_span_context()
        self.span, self.identity = span, dict(identity)
        self.place = Place(trace_id=context.trace_id, span_id=context.span_id, root=context.span_id)
        self.lane_ends: dict[str, Json] = {}
        """When the pool jobs that crossed its boundaries were resolved: lane to order number and nanoseconds."""
        self.children: dict[str, Json] = {}
        """How child processes ended that did not end well: lane to exit code, and when where this process killed it."""
        self.facts: Mapping[str, int] = {}
        """Counts of the recording when the run began."""
        self.reel = lanes.current().reel
        """What its lanes draw of the clock and of chance."""
        self.unit: Inbound | None = None
        """The unit of work that came in."""
        self.came_in = False
        """It is a unit of work that came in from outside; what is called outside of it is never its own."""

    @property
    def id(self) -> str:
        """The run's id: its trace id, 32 hexadecimal digits."""
        return format(self.place.trace_id, "032x")


class _Job:
    """A job that another process handed to this one. Its span begins with its first call."""

    __slots__ = ("descent", "run")

    def __init__(self, descent: Descent) -> None:
        self.descent = descent
        self.run: Run | None = None


_JOB: ContextVar[_Job | None] = ContextVar("reenact_job", default=None)


class Runs:
    """Opens and closes the runs of one process."""

    write_statements: Callable[[Run, Iterable[Statement]], None] | None = None
    """Writes down, below a run that ends, what it asked of databases in the process."""

    def __init__(  # noqa: PLR0913 - what a recording and a process say of themselves
        self,
        provider: TracerProvider,
        root_attributes: Callable[[], Mapping[str, Any]],
        counts: Callable[[], Mapping[str, int]],
        *,
        next_order: Callable[[], int],
        identity: Mapping[str, Any] | None = None,
        links: tuple[Link, ...] = (),
        version: str = "",
        entry: Callable[[], Mapping[str, Json]] = entry_point,
    ) -> None:
        self._entry = entry
        self.below: Mapping[str, Any] = {}
        """Further attributes of what stands for a child process."""
        self.around_unit: Mapping[str, Any] = {}
        """Further attributes of the process's own root, where one unit is run again in it; None removes one."""
        self._tracer = provider.get_tracer("reenact", version)
        self._root_attributes, self._counts, self._links = root_attributes, counts, links
        self._next_order, self._identity = next_order, dict(identity or {})
        self._open: dict[int, Run] = {}
        """By root span."""
        self.with_root: Callable[[int], Run | None] = self._open.get
        """Give the open run whose root span has this id."""
        self._ending: dict[int, None] = {}
        """Runs, by root span, whose end is being written down."""
        self._host_trace_ids: dict[int, None] = {}
        """Traces of the application's that hold a run of ours."""
        self.undeclared = Undeclared()
        """What was done past every boundary."""
        self.writes: Writes | None = None
        """What of files is written there; None where nobody notes it."""
        self.outputs: Outputs | None = None
        """What is printed is written there; None where nobody notes it."""
        self.stdin: StandardInput | None = None
        """What is read from the standard input is kept there; None where nobody keeps it."""
        self.wrote: Callable[[Iterable[str]], None] | None = None
        """Hears the paths that this process wrote, at its end."""
        self._tape: dict[str, Any] = {}
        """How draws are taped, as the last root said it: at the end of the process nothing is taped any more."""
        self._last: Run | None = None
        """The run that ended last, units that came in aside."""
        self._process: Run | None = None
        self._units = 0
        """Units that came in and called anybody."""
        self._copied_from: str | None = None
        """The run of the process that this one was forked off."""
        self._descent: Descent | None = None
        """Where this process hangs in the run of the one that started it."""
        self._lock = locks.rlock()

    def parent(self) -> Place:
        """Give the run of a call that hangs below no other.

        It is that of the unit that came in; outside every context of ours the only open one, else the process's.
        """
        if (job := _JOB.get()) is not None:
            return self._of_job(job).place
        unit = inbound.current()
        if unit is not None and (root := unit.place(self, self._begin_inbound)) is not None:
            return root
        inbound_clients.called()
        process = self._process
        if process is None:
            units = [run for run in tuple(self._open.values()) if not run.came_in]
            process = units[0] if len(units) == 1 else self.process()
        return process.place

    def keep(self, unit: Inbound) -> None:
        """Begin the run of a unit that called nobody, and end it with the unit."""
        unit.place(self, self._begin_inbound)

    @shielded
    def _begin_inbound(self, unit: Inbound) -> tuple[Place, inbound.End] | None:
        return self._inbound(unit, unit.name, {})

    def _inbound(self, unit: Inbound, name: str, identity: Mapping[str, Any]) -> tuple[Place, inbound.End]:
        """Begin the run of a unit that came in."""
        asked = dict(unit.asked())
        caller = {key: asked.pop(key) for key in _IDENTITY_KEYS if key in asked}
        if (around := self._process.id if self._process is not None else self._copied_from) is not None:
            asked[AROUND] = around
        if unit.order:
            asked[CAME_IN] = unit.order
        if unit.thread:
            asked[THREAD] = unit.thread
        self._units += 1
        if inbound_clients.are_known():
            asked[FROM_OUTSIDE] = True
        with lanes.on(unit.lane):
            run = self._begin(name, "AGENT", {**self._identity, **caller, **identity, **from_context()}, facts=asked)
        run.unit = unit

        def end(answered: Answered, error: BaseException | None) -> None:
            self._end_inbound(run, answered, error)

        return run.place, end

    @shielded
    def _end_inbound(self, run: Run, answered: Answered, error: BaseException | None) -> None:
        facts = dict(answered())
        if run.unit is not None and run.unit.received:
            facts[RECEIVED] = run.unit.received
        if run.unit is not None and (connection := dict(run.unit.stands_on)):
            connection.pop(inbound.KEEPS, None)
            facts[LEAVES] = compact(connection.pop("leaves", []))
            if connection.pop("goes_on", None) is False and run.unit.replied:
                facts[REPLIED] = run.unit.replied
            if connection:
                facts[STANDS_ON] = compact(connection)
        self.end(run, typed.encode_exception(error) if error is not None else None, facts)

    def process(self) -> Run:
        """Give the run of the process itself, opened at first need."""
        with self._lock:
            if self._process is None:
                begun = self._begin_process()
                if self._process is not None:  # a signal handler's call was first
                    self.end(begun)
                else:
                    self._process = begun
            return self._process

    def _begin_process(self) -> Run:
        if self._descent is not None:
            return self._begin_below(self._descent, {"reenact.entry": compact(dict(self._entry()))})
        name = Path(sys.argv[0]).name if sys.argv and sys.argv[0] not in {"", "-c"} else "python"
        return self._begin(name, "CHAIN", self._identity, further={"reenact.process.root": True, **self.around_unit})

    def take_in(self, descent: Descent, *, eager: bool) -> None:
        """Hang this process below the run that `descent` names, at once if `eager`, else with its first call."""
        self._descent = descent
        self._identity = {**self._identity, **descent.identity}
        if eager:
            self.process()

    def forked(self) -> None:
        """Forget, in a copy of a process, the runs that are the original's to close."""
        inbound_clients.forget()
        self._units = 0
        self.undeclared.forked()
        if self.writes is not None:
            self.writes.forked()
        if self.outputs is not None:
            self.outputs.forked()
        self._last = self.stdin = None
        self._open.clear()
        self._copied_from = self._process.id if self._process is not None else self._copied_from
        self._process = self._descent = None

    def is_process(self, where: Place) -> bool:
        """Tell whether a place is that of the process itself, outside every unit of work and call."""
        return self._process is not None and self._process.place.span_id == where.span_id

    @property
    def within(self) -> bool:
        """Whether this process was started inside a unit of work or a call."""
        return self._descent is not None and self._descent.within

    def _begin_below(self, descent: Descent, facts: Mapping[str, Any]) -> Run:
        """Begin what stands for a process, or a job in one, in the run of another process."""
        attributes: dict[str, Any] = {
            "openinference.span.kind": "CHAIN",
            OURS: "1",
            "reenact.process.root": True,
            "reenact.lane": descent.lane,
            "reenact.order.start": self._next_order(),
            **draws.opening(),
            **facts,
            **descent.identity,
        }
        counts = self._counts()
        attributes |= self.below
        above = SpanContext(descent.trace_id, descent.span_id, is_remote=True, trace_flags=TraceFlags(1))
        context = set_span_in_context(NonRecordingSpan(above), otel_context.Context())
        span_attributes = {key: value for key, value in attributes.items() if value is not None}
        span = self._tracer.start_span(descent.name, context, SpanKind.INTERNAL, span_attributes)
        run = Run(span, descent.identity)  # type: ignore[arg-type]  # the SDK's span, not the API's
        run.facts = counts
        self._open[run.place.root] = run
        return run

    def _of_job(self, job: _Job) -> Run:
        with self._lock:
            if job.run is None:
                job.run = self._begin_below(job.descent, {})
            return job.run

    @contextmanager
    def job(self, descent: Descent) -> Generator[None]:
        """Surround a job that another process handed to this one: what it calls hangs where it was submitted."""
        job = _Job(descent)
        before, stood = _JOB.get(), place.move(None)
        _JOB.set(job)
        error: BaseException | None = None
        try:
            yield
        except BaseException as failure:
            error = failure
            raise
        finally:
            _JOB.set(before)
            place.move(stood)
            if job.run is None and lanes.current().reel.drew:  # it called nobody, and drew of the clock or of chance
                shielded(self._of_job)(job)
            if job.run is not None:
                self.end(job.run, typed.encode_exception(error) if error is not None else None)

    @staticmethod
    def carry() -> Callable[[], None]:
        """Have jobs go along to threads and pools; gives a function that stops it."""
        return lanes.carry(_JOB)

    def _begin(
        self,
        name: str,
        kind: str,
        identity: Mapping[str, Any],
        value: Json = None,
        facts: Mapping[str, Any] | None = None,
        further: Mapping[str, Any] | None = None,
    ) -> Run:
        counts = self._counts()
        self._tape = draws.opening()
        attributes: dict[str, Any] = {
            "openinference.span.kind": kind,
            OURS: "1",
            "reenact.run.root": True,
            "reenact.lane": lanes.current().path,
            "reenact.order.start": self._next_order(),
            **self._root_attributes(),
            **self._tape,
            **identity,
            **({} if facts is None else {**facts, **draws.of_process()}),
            **(further or {}),
        }
        if value is not None:
            attributes |= {"input.value": compact(value), "input.mime_type": "application/json"}
        context, links = self._within_the_application(alone=facts is not None)
        attributes = {key: value for key, value in attributes.items() if value is not None}
        span = self._tracer.start_span(name, context, SpanKind.INTERNAL, attributes, links)
        run = Run(span, identity)  # type: ignore[arg-type]  # the SDK's span, not the API's
        run.facts, run.came_in = counts, facts is not None
        self._open[run.place.root] = run
        return run

    def _within_the_application(self, *, alone: bool) -> tuple[otel_context.Context, tuple[Link, ...]]:
        """Give the context whose current span a root hangs under, the application's or an empty one, and links.

        One trace holds one run: a further run in the same trace of the application's only points there. So does one
        that is to be `alone`, unless the trace began with it: another process may serve another request of the trace.
        """
        span = trace.get_current_span()
        current = span.get_span_context()
        if not current.is_valid or place.current() is not None:
            return otel_context.Context(), self._links
        if current.trace_id in self._host_trace_ids or (alone and getattr(span, "parent", None) is not None):
            return otel_context.Context(), (*self._links, Link(current, {"reenact.link": "application"}))
        self._host_trace_ids[current.trace_id] = None
        if len(self._host_trace_ids) > _REMEMBERED:
            self._host_trace_ids.pop(next(iter(self._host_trace_ids)), None)
        sampled = SpanContext(current.trace_id, current.span_id, is_remote=True, trace_flags=TraceFlags(1))
        return set_span_in_context(NonRecordingSpan(sampled), otel_context.Context()), self._links

    @contextmanager
    def unit(self, name: str, identity: Mapping[str, Any], value: Json = None) -> Generator[Run | None]:
        """Open a run for one unit of work. Inside one that came in, it is that one, which gets name and identity."""
        unit = inbound.current()
        if unit is not None and not unit.ended:
            yield from self._within(unit, name, identity, value)
            return
        lane = lanes.current()
        reel = lane.reel
        run = self._begin_unit(name, identity, value)
        if run is None:
            yield None
            return
        self._begin_reel(run, lane)
        before = place.move(run.place)
        try:
            yield run
        except BaseException as error:
            self.end(run, typed.encode_exception(error))
            raise
        else:
            self.end(run)
        finally:
            place.move(before)
            lane.reel = reel

    @shielded
    def _begin_reel(self, run: Run, lane: lanes.Lane) -> None:
        """Have what the unit draws apart from what was drawn before."""
        draws.crossed(lane, run.place.root)
        run.reel = lane.reel = lane.reel.begin_unit(lane.path)

    def _within(self, unit: Inbound, name: str, identity: Mapping[str, Any], value: Json) -> Generator[Run | None]:
        """Stand in the run of the unit that came in. It ends with the unit, not with this block."""
        facts = {"metadata": compact({"input": value})} if value is not None else {}
        root = unit.place(self, shielded(lambda unit: self._inbound(unit, name, {**identity, **facts})))
        run = self._open.get(root.root) if root is not None else None
        before = place.current()
        place.move(before or root)
        try:
            yield run
        finally:
            place.move(before)

    @shielded
    def _begin_unit(self, name: str, identity: Mapping[str, Any], value: Json) -> Run | None:
        if self.within and _JOB.get() is None:  # it is part of what this process was started for
            above, full_identity = self.process().place, {**self._identity, **identity, **from_context()}
            facts = {} if value is None else {"input.value": compact(value), "input.mime_type": "application/json"}
            descent = Descent(
                trace_id=above.trace_id,
                span_id=above.span_id,
                lane=lanes.current().path,
                name=name,
                identity=full_identity,
                within=True,
            )
            facts |= {"openinference.span.kind": "AGENT", "reenact.process.root": None, **draws.before(lanes.current())}
            return self._begin_below(descent, facts)
        full_identity = {**self._identity, **identity, **from_context()}
        return self._begin(name, "AGENT", full_identity, value, further=draws.before(lanes.current()))

    @shielded
    def end(self, run: Run, error: ExceptionRecord | None = None, facts: Mapping[str, Any] | None = None) -> None:
        """Close a run, once, with what it died of and further facts about it."""
        if self._open.pop(run.place.root, None) is None:
            return
        self._ending[run.place.root] = None
        try:
            with alarms.postponed():
                self._write_end(run, error, facts)
        finally:
            self._ending.pop(run.place.root, None)

    def _write_end(self, run: Run, error: ExceptionRecord | None, facts: Mapping[str, Any] | None) -> None:
        span = run.span
        span.set_attributes(
            {"reenact.order.end": self._next_order(), **self._closing(run, facts or {}), **(facts or {})}
        )
        if error is None:
            answered = int((facts or {}).get("http.response.status_code", 0))
            failed = Status(StatusCode.ERROR, f"HTTP {answered}") if answered >= _SERVER_ERROR else None
            span.set_status(failed or Status(StatusCode.OK))
        else:
            span.set_attributes(
                {"reenact.outcome": "raised", "exception.type": error.qualname, "exception.message": error.message}
            )
            span.set_status(Status(StatusCode.ERROR, f"{error.qualname}: {error.message}"))
            span.add_event(
                "exception",
                {
                    "exception.type": f"{error.module}.{error.qualname}",
                    "exception.message": error.message,
                    "exception.stacktrace": error.stacktrace,
                },
            )
        span.end()

    def _counted(self, run: Run, *, alone: bool) -> dict[str, Any]:
        """Say what was counted since a run began; the run of the process has the failures of its start-up, too."""
        counts = self._counts()
        since = {name: count - run.facts.get(name, 0) for name, count in counts.items()}
        if alone and FAILURES in counts:
            since[FAILURES] = counts[FAILURES]
        return {name: count for name, count in since.items() if count or name == REPLACED}

    def _closing(self, run: Run, answer: Mapping[str, Any]) -> dict[str, Any]:
        """Say what was counted since the run began; `answer` is what a unit of work came to."""
        alone = run is self._process
        facts = self._counted(run, alone=alone)
        if run.lane_ends:
            facts["reenact.lane.ends"] = compact(dict(run.lane_ends))
        if run.children:
            facts["reenact.children"] = compact(dict(run.children))
        if listed := self.undeclared.listed(run.unit):
            facts[UNDECLARED] = compact([*listed])
        owners: list[Owner] = [*([None] if alone else []), run.place.root if run.unit is None else run.unit]
        asked: list[str] = []
        if self.writes is not None:
            write = partial(self._write_statements, run, asked) if self.write_statements is not None else None
            root = 0 if self.within else run.place.root
            facts[WRITTEN] = self.writes.report(owners, write, alone=alone, root=root)
        if self.outputs is not None:
            facts[OUTPUT] = self.outputs.report(owners)
        if alone and self.stdin is not None and self.stdin.pending:
            facts[STDIN] = self.stdin.report()
        unspelled = [line for each in (self.writes, self.outputs) if each is not None for line in each.unspelled()]
        if flows.are_held():
            outputs = (facts.get(OUTPUT), facts.get(WRITTEN), *answer.values(), *unspelled, *asked)
            facts |= draws.given_out("\n".join(each for each in outputs if isinstance(each, str)), run.reel)
        facts |= draws.rest(run.reel, run.place.root)
        facts |= draws.paused(run.reel, getattr(run.span, "start_time", None) or 0, run.place.root)
        if read := variables.variable_readings():
            facts[READ_VARIABLES] = compact([[name, was_set] for name, was_set in read])
        if run.unit is None:
            self._last = run
        return facts

    def _write_statements(self, run: Run, asked: list[str], statements: Iterable[Statement]) -> None:
        """Write down what a run asked of databases in the process, and add it to what was given out."""
        if self.write_statements is not None:
            self.write_statements(run, statements)
            asked += [each.spelled() for each in statements]

    def owner(self) -> Owner:
        """Say whose code runs now: that of a unit that came in, of a run, or of the process."""
        unit = inbound.current()
        if unit is not None and not unit.ended:
            return unit
        here = place.current()
        if here is None or here.root not in self._open:
            return None
        return None if self._process is not None and here.root == self._process.place.root else here.root

    def close(self, error: ExceptionRecord | None) -> None:
        """Close every open run, at the end of the process or of the recording."""
        self._settle()
        if self.writes is not None:
            self.writes.flush()
        for run in tuple(self._open.values()):
            if run is not self._process:
                self.end(run, error)
        self._end_process(error)
        self._process = None

    def _settle(self) -> None:
        """Wait for units on other threads whose answer is sent: the interpreter is about to stop these threads."""
        until = time.monotonic() + _SETTLE_S
        while time.monotonic() < until and (self._ending or any(map(_is_near_its_end, tuple(self._open.values())))):
            time.sleep(_LOOK_S)

    def leave(self, error: ExceptionRecord | None, code: int | None = None) -> None:
        """Close the run of the process alone: it ends without Python's clean-up, perhaps with an exit code."""
        self._end_process(error, {} if code is None else {"process.exit.code": code, ENDED_BY: "os._exit"})

    @shielded
    def _end_process(self, error: ExceptionRecord | None, facts: Mapping[str, Any] | None = None) -> None:
        """End the run of the process. What it gave out outside of it hangs below the last run, if any was."""
        writes, served = self.writes, self._units if inbound_clients.are_known() else None
        is_pending = any(each is not None and each.pending for each in (writes, self.outputs, self.stdin))
        if (is_pending or (self._descent is not None and lanes.current().reel.drew)) and self._process is None:
            if self._descent is not None:
                self.process()
            elif self._last is not None:
                served = None
                above = self._last.place
                name, lane = "after the run", lanes.current().path
                after = Descent(trace_id=above.trace_id, span_id=above.span_id, lane=lane, name=name, within=True)
                self._process = self._begin_below(
                    after, {"reenact.process.root": None, PROCESS_REST: True, **self._tape}
                )
        if self._process is not None:
            self.end(self._process, error, {**(facts or {}), **({} if served is None else {SERVED: served})})
        if writes is not None and self.wrote is not None:
            self.wrote(writes.paths())

    def opened(self) -> bool:
        """Tell whether any run was opened and is still open."""
        return bool(self._open)


def _is_near_its_end(run: Run) -> bool:
    return run.unit is not None and (run.unit.ended or run.unit.answers)
