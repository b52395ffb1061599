"""The doorman who lets every call through and writes down what was asked and what came back.

Everything that agent code consumes gets a number from one sequence (`reenact.order.*`), taken at the moment it is
handed over and not when it came off the network: that is the order in which a replay releases answers.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from opentelemetry.trace import SpanKind
from opentelemetry.trace.status import StatusCode

from reenact.boundary import door, flows, inbound, inbound_clients, lanes, place
from reenact.boundary.forgiving import swallow
from reenact.boundary.pauses import Pause
from reenact.boundary.place import Place
from reenact.contracts.dialect import Writing
from reenact.contracts.redactor import Place as Where
from reenact.contracts.redactor import Redactor
from reenact.record import draws, loop_turns, stream_backlog, tool_prints, touches
from reenact.record.journal import JournalProcessor
from reenact.record.projection import Projected, Projection
from reenact.record.runs import Run, Runs, from_context
from reenact.record.shield import shielded
from reenact.record.span import CallSpan, CallSpans
from reenact.record.stream_backlog import Unwritten
from reenact.values import alarms, typed
from reenact.values.call import (
    Body,
    Call,
    CallKind,
    Chunk,
    FunctionCall,
    HttpReply,
    HttpRequest,
    Outcome,
    Raised,
    Returned,
    Streamed,
    StreamEnd,
)
from reenact.values.discovered_tools import FILES, FOUND, PRINTED, TAKEN, TOUCHED
from reenact.values.json import Json, compact
from reenact.values.run import FOLLOWED, TOGETHER, TURNS, VISITED

if TYPE_CHECKING:
    from reenact.boundary.sqlite_statements import Statement
    from reenact.record.file_writes import Writes
    from reenact.record.standard_input import StandardInput

_FIRST_ERROR_STATUS = 400
_NOWHERE: AbstractContextManager[None] = nullcontext()


def order_clock() -> Callable[[], int]:
    """Make the sequence that numbers releases to agent code; taking a number is atomic in CPython."""
    return itertools.count(1).__next__


class SpanPassage:
    """One recorded crossing. Its span is open until an outcome is told."""

    __slots__ = (
        *("_chunks", "_head", "_number", "_open", "_recorder", "_start_ns", "_turns", "_waiting"),
        *("call", "place", "projected", "span"),
    )
    answer: Outcome | None = None
    head_order: int | None = None
    end_order: int | None = None
    took_s: float | None = None

    def __init__(self, recorder: Recorder, call: Call, span: CallSpan, parent: Place, *, whole: bool) -> None:
        self._recorder, self.call, self.span = recorder, call, span
        self.place = Place(parent.trace_id, span.span_id, None, parent.root, whole)
        self._start_ns = time.perf_counter_ns()
        self._chunks: list[Chunk] = []
        self._turns: list[Json] = []
        """The numbers of the head and of pieces that were not the first of their turn of a loop, each with that one."""
        self._waiting: Unwritten | None = None
        self._head: tuple[int, tuple[tuple[str, str], ...]] | None = None
        self._open = True
        self._number = 0
        self.projected: Projected | None = None

    def crossing(self) -> AbstractContextManager[None]:
        """Stand inside this call: what is called meanwhile hangs below it."""
        try:
            return place.at(self.place) if self.projected is None else self._projecting(self.projected)
        except Exception:
            swallow("SpanPassage.crossing")
            return _NOWHERE

    @contextmanager
    def _projecting(self, projected: Projected) -> Generator[None]:
        with place.at(self.place):
            attached = projected.attach()
            try:
                yield
            finally:
                projected.detach(attached)

    def ready(self) -> None:
        """Let it begin at once."""

    async def ready_async(self) -> None:
        """Let it begin at once."""

    def wait(self, order: int | None) -> None:
        """Let it through at once: while recording, the world sets the pace."""

    async def wait_async(self, order: int | None) -> None:
        """Let it through at once."""

    @shielded
    def number_end(self) -> None:
        """Take the number of the end."""
        self._number = self._number or self._recorder.next_order()

    def _end_number(self) -> int:
        return self._number or self._recorder.next_order()

    def differs(self, _field: str, _recorded: Json, _now: Json) -> BaseException | None:
        """Find nothing: there is no recording."""

    def recorded(self, _attribute: str) -> list[Json]:
        """Give nothing: there is no recording."""
        return []

    def miss(self, reason: str) -> BaseException:
        """Give an error that cannot happen while recording."""
        return RuntimeError(reason)

    @shielded
    def annotate(self, attributes: Mapping[str, Any]) -> None:
        """Add facts to the span."""
        self.span.set_attributes(attributes)

    def _note_turn(self, order: int) -> None:
        first, _ = loop_turns.first_of(order, self.place.span_id)
        if first:
            self._turns.append([order, first])

    @shielded
    def head(self, status: int, headers: tuple[tuple[str, str], ...]) -> None:
        """Note that a stream opened."""
        self._head = (status, headers)
        order = self._recorder.next_order()
        self._note_turn(order)
        self.span.set_attributes({"reenact.order.head": order})
        self._recorder.write_head(self.place.span_id, status, headers, order)

    @shielded
    def chunk(self, data: bytes | None = None, value: Json = None) -> None:
        """Write a piece down before it is handed over."""
        offset = (time.perf_counter_ns() - self._start_ns) // 1000
        chunk = Chunk(offset_us=offset, order=self._recorder.next_order(), data=data, value=value)
        self._chunks.append(chunk)
        self._note_turn(chunk.order)
        if self._waiting is None:
            self._waiting = Unwritten()
        tool_prints.piece(self.place.span_id)
        self._recorder.write_chunk(self.place.span_id, chunk, self._waiting)

    aftermath = None
    printed = ()

    def turn(self) -> AbstractContextManager[None]:
        """Surround nothing: nothing is answered."""
        return nullcontext()

    def unrestored(self, why: str) -> None:
        """Never called: nothing is answered."""

    def closed(self, outcome: Outcome) -> None:
        """Write down a whole outcome."""
        try:
            self._finish(outcome)
        except Exception:
            swallow("SpanPassage.closed")

    def replied(self, status: int, headers: tuple[tuple[str, str], ...], body: bytes) -> None:
        """Write down a whole reply."""
        try:
            if self.projected is not None:
                self._finish(Returned(payload=HttpReply(status=status, headers=headers, body=Body(body))))
            elif self._open:
                self._open = False
                attributes: dict[str, Any] = self._recorder.dialect.encode_reply(self.call, status, headers, body)
                self._end(attributes, status)
        except Exception:
            swallow("SpanPassage.replied")

    @shielded
    def raised(self, error: BaseException) -> None:
        """Write down a failure."""
        self._finish(Raised(exception=typed.encode_exception(error)), error)

    @shielded
    def ended(self, end: StreamEnd, error: BaseException | None = None, result: Json = None) -> None:
        """Write down the whole stream and how it ended."""
        status, headers = self._head or (200, ())
        outcome = Streamed(
            status=status,
            headers=headers,
            chunks=self._recorder.scrubbed(self._chunks, self.call),
            end=end,
            exception=typed.encode_exception(error) if error is not None else None,
            result=result,
        )
        self._finish(outcome, error)

    def _finish(self, outcome: Outcome, error: BaseException | None = None) -> None:
        if not self._open:
            return
        self._open = False
        attributes: dict[str, Any] = self._recorder.dialect.encode_outcome(self.call, outcome)
        if flows.are_held() and self.call.is_structure:
            attributes |= draws.given_out(str(attributes.get("output.value", "")), lanes.current().reel)
        reply = outcome.payload if isinstance(outcome, Returned) else outcome
        status = reply.status if isinstance(reply, HttpReply | Streamed) else 0
        code, message = self._end(attributes, status, error)
        if self.projected:
            self.projected.finish(self.call, outcome, code, message)

    def _end(
        self, attributes: dict[str, Any], status: int, error: BaseException | None = None
    ) -> tuple[StatusCode, str]:
        """End the span, and give the status that it got."""
        span = self.span
        self.number_end()
        if loop_turns.first_of(self._number, span.span_id)[1]:
            attributes[TOGETHER] = True
        if self._turns:
            attributes[TURNS] = compact(self._turns)
        if touches.open_calls and (touched := touches.end(span.span_id)) and FOUND in self.call.attributes:
            attributes[TOUCHED] = compact([*touched])
        writes = self._recorder.writes
        if writes is not None and writes.has_tools and (files := writes.tools.end(span.span_id)):
            attributes[FILES] = files
        if (stdin := self._recorder.stdin) is not None and (taken := stdin.end(span.span_id)):
            attributes[TAKEN] = compact([taken])
        prints = tool_prints.end(span.span_id) if tool_prints.is_open() else None
        if prints is not None and prints.span == span.span_id and prints.texts:
            attributes[PRINTED] = compact("mixed" if prints.is_cut else [*prints.texts])
            if prints.mixed:
                self._recorder.mixed()
        code, message = StatusCode.OK, ""
        if error is not None:
            code, message = StatusCode.ERROR, _note_error(span, error)
        elif status >= _FIRST_ERROR_STATUS:
            code, message = StatusCode.ERROR, f"HTTP {status}"
        span.end(attributes, code, message, self._end_number)
        return code, message


def _asked(call: Call) -> str:
    """Give what is asked as one text."""
    match call.request:
        case HttpRequest(url=url, body=body):
            return f"{url}\n{body.data.decode('utf-8', 'replace')}"
        case request:
            return compact(request.arguments)


def _note_error(span: CallSpan, error: BaseException) -> str:
    """Write an error down as OpenTelemetry does, and say it in one line; what its own code spoils is named."""
    try:
        message = str(error)
    except Exception:  # a __str__ of the agent's
        alarms.pass_on()
        message = "<no message: its __str__ raised>"
    record = typed.encode_exception(error)
    attributes = {
        "exception.type": f"{record.module}.{record.qualname}" if record.module != "builtins" else record.qualname,
        "exception.message": message,
        "exception.stacktrace": record.stacktrace,
        "exception.escaped": "True",
    }
    span.add_event("exception", attributes)
    return f"{type(error).__name__}: {message}"


class _NoPassage(SpanPassage):
    """What stands in where recording a call failed: the call goes on, nothing is written."""

    def __init__(self) -> None:
        self.projected = None
        self.place = place.current() or Place(0, 0)
        self._open = False

    def crossing(self) -> AbstractContextManager[None]:
        return nullcontext()

    def number_end(self) -> None: ...
    def annotate(self, attributes: Mapping[str, Any]) -> None: ...
    def head(self, status: int, headers: tuple[tuple[str, str], ...]) -> None: ...
    def chunk(self, data: bytes | None = None, value: Json = None) -> None: ...
    def replied(self, status: int, headers: tuple[tuple[str, str], ...], body: bytes) -> None: ...
    def closed(self, outcome: Outcome) -> None: ...
    def raised(self, error: BaseException) -> None: ...
    def ended(self, end: StreamEnd, error: BaseException | None = None, result: Json = None) -> None: ...


class Recorder:
    """Writes a span for every call it lets through."""

    def __init__(
        self,
        spans: CallSpans,
        journal: JournalProcessor | None,
        redactor: Redactor,
        dialect: Writing,
        *,
        runs: Runs,
        next_order: Callable[[], int],
        projection: Callable[[], Projection | None] = lambda: None,
    ) -> None:
        self._spans, self._journal, self._redactor, self.dialect = spans, journal, redactor, dialect
        self._runs, self.next_order, self._projection = runs, next_order, projection
        runs.write_statements = self._write_statements
        self._sections: object = None
        plan: Any = getattr(redactor, "plan", None)
        self._placed = plan is not None and not plan.uniform
        self._takes_whole = plan is not None and bool(plan.takes_whole)

    holds = False
    """Ends of pool jobs are numbered as they come."""

    @property
    def writes(self) -> Writes | None:
        """Who notes what is written to files."""
        return self._runs.writes

    @property
    def stdin(self) -> StandardInput | None:
        """Who keeps what is read of the standard input."""
        return self._runs.stdin

    def may_end(self, lane: lanes.Lane) -> None:
        """Let every pool job end when it will."""

    def ended(self, lane: lanes.Lane) -> None:
        """Number the end of a pool job, as long as its run is open; of one that made no call, as the end of a pause."""
        if (run := self._runs.with_root(lane.root)) is not None:
            run.lane_ends[lane.path] = [self.next_order(), time.time_ns()]
        elif lane.is_work and not lane.root:
            order = self.next_order()
            lane.reel.paused(lane.path, Pause(order, order, time.time_ns(), lane.call))

    def open(self, call: Call) -> SpanPassage:
        """Let a call in, its request written down."""
        try:
            return self._open(call)
        except Exception:
            swallow("Recorder.open")
            return _NoPassage()

    def _parent(self) -> tuple[Place, dict[str, bool]]:
        """Give the place in which a call is made, and what is known of others that asked its process for work."""
        facts = {FOLLOWED: True} if (unit := inbound.current()) is not None and unit.is_followed else {}
        if (above := place.current()) is not None:
            return above, facts
        parent = self._runs.parent()
        is_visited = unit is None and inbound_clients.are_known()
        return parent, {VISITED: True} if is_visited else facts

    def _open(self, call: Call) -> SpanPassage:
        parent, facts = self._parent()
        shared, attributes = self.dialect.split_call(call)
        attributes |= facts
        lane = lanes.current()
        lane.used, lane.root = True, parent.root
        attributes["reenact.lane"] = lane.path
        attributes["reenact.order.start"] = self.next_order()
        if flows.are_held() and not call.is_structure:
            attributes |= draws.given_out(_asked(call), lane.reel)
        places_draws = call.places_draws
        if places_draws and draws.are_there(lane):
            attributes[draws.NAME] = draws.take_draws(lane, parent)
        if (run := self._runs.with_root(parent.root)) is not None:
            attributes.update(run.identity)
        if door.application_context():
            attributes.update(from_context())
        http = isinstance(call.request, HttpRequest)
        elsewhere = http or call.is_query or call.is_mcp
        span_kind = SpanKind.CLIENT if elsewhere else SpanKind.INTERNAL
        above = self._above(parent) if place.hangers else parent
        span = self._spans.start(call.name, above, span_kind, attributes, shared)
        if places_draws:
            draws.crossed(lane, span.span_id)
        passage = SpanPassage(self, call, span, parent, whole=http or parent.whole or call.is_whole)
        self._watch(call, span.span_id, parent.span_id)
        if (projection := self._projection()) is not None:
            passage.projected = projection.begin(call, {**shared, **attributes}, passage.place.span_id)
        return passage

    def _watch(self, call: Call, span: int, parent: int) -> None:
        """Have noted what a call does that an answer to it is to do likewise: what it touches, writes and prints."""
        elsewhere = isinstance(call.request, HttpRequest) or call.is_query or call.is_mcp
        if FOUND in call.attributes:
            touches.begin(span)
        elif touches.open_calls and call.is_structure:
            touches.inherit(span, parent)
        if (writes := self.writes) is not None:
            if isinstance(call.request, FunctionCall) and not (call.is_structure or elsewhere or call.is_child):
                writes.tools.begin(span, parent, writes.watched())
                if self.stdin is not None:
                    self.stdin.begin(span)
            elif writes.has_tools:
                writes.tools.inherit(span, parent)
        if call.is_whole and not elsewhere:
            tool_prints.begin(span, parent)
        elif tool_prints.is_open():
            tool_prints.inherit(span, parent)

    def _write_statements(self, run: Run, statements: Iterable[Statement]) -> None:
        from reenact.record.statement_calls import write_statements  # few units need any

        since_ns = getattr(run.span, "start_time", None) or 0
        write_statements(self._spans, self.dialect, run.place, run.identity, statements, since_ns)

    def _above(self, parent: Place) -> Place:
        """Give where the span of a call hangs: below its parent, or in a section of a framework's there."""
        if self._sections is None:
            from reenact.record.sections import SectionSpans  # most programs have no framework

            self._sections = SectionSpans(self._spans, self.dialect, self._runs)
        for hanger in tuple(place.hangers):
            parent = hanger(self._sections, parent)
        return parent

    def mixed(self) -> None:
        """Hear that a tool and something else printed at the same time."""
        if self._runs.outputs is not None:
            self._runs.outputs.mixed()

    def scrubbed(self, chunks: Sequence[Chunk], call: Call) -> tuple[Chunk, ...]:
        """Scrub a whole stream, whose pieces may each hold a part of a secret."""
        if not self._placed:
            return stream_backlog.scrubbed(chunks, self._redactor)
        tool = call.name if call.kind is CallKind.TOOL else ""
        boundary = "http" if isinstance(call.request, HttpRequest) else "function"
        place = Where(attribute="reenact.stream.chunks", kind=call.kind.value, tool=tool, boundary=boundary)
        return stream_backlog.scrubbed(chunks, self._redactor, place)

    def write_head(self, span_id: int, status: int, headers: tuple[tuple[str, str], ...], order: int) -> None:
        """Write to the journal that a stream opened, for the case that it is never seen to end."""
        if self._journal is not None:
            facts: dict[str, Any] = {"http.response.status_code": status, "reenact.order.head": order}
            if headers:
                facts["reenact.http.response.headers"] = compact([[name, value] for name, value in headers])
            self._journal.head(span_id, self._redactor.attributes(facts))

    def write_chunk(self, span_id: int, chunk: Chunk, waiting: Unwritten) -> None:
        """Write a piece of a stream to the journal, scrubbed, with those that waited for it; or let it wait."""
        if self._journal is None:
            return
        for each in waiting.settle(chunk, self._redactor, whole=self._takes_whole):
            self._journal.chunk(span_id, [each.offset_us, each.order, stream_backlog.spelled(each)])
