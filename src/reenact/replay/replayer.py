"""The doorman who answers from recordings, and lets nothing else through.

Each live call becomes a question, passes the recording's redaction, and takes the stub that stands for it. What is
answered is recorded like any call, so that a replay is a run. What is not is a miss: written to the ledger, then
thrown into the agent as a `BaseException`; after the first one every further call is refused too, since nothing that
follows is evidence, but for what `replay.after_divergence` lets go on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from reenact.boundary import lanes, place
from reenact.boundary.inbound import LANE
from reenact.boundary.place import Place
from reenact.boundary.question import Question, question
from reenact.boundary.source_line import where
from reenact.contracts.redactor import Redactor
from reenact.errors import Miss
from reenact.replay.after_divergence import ASSUMING, EVIDENCE, Going, answers, going, takes_as, word_for
from reenact.replay.guard import allowed, into_the_copy, is_sealed, refuse
from reenact.replay.ledger import Ledger, moved
from reenact.replay.miss_text import about, differing, plain, sentence
from reenact.replay.pace import alarm_clock
from reenact.replay.partial_match import as_told, failed_for_good
from reenact.replay.pauses import Pacing
from reenact.replay.policy import Children, Policy, Source
from reenact.replay.release import Gate
from reenact.replay.renaming import Renamed, Renaming
from reenact.replay.stubs import Stub, Stubs, as_asked, as_ended, orders, sequence_of
from reenact.replay.tool_rerun import Again, unmake
from reenact.values import locks
from reenact.values.call import (
    Body,
    Call,
    CallKind,
    HttpReply,
    HttpRequest,
    Outcome,
    Returned,
    Rewritten,
    Streamed,
    StreamEnd,
    Unfinished,
)
from reenact.values.child import changed, served
from reenact.values.difference import ABSENT, FieldDifference
from reenact.values.discovered_tools import AFTER, CHANGED, FOUND, OF_FOUND, SOURCE, Print, listed, printed, unrestored
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lane import in_unit
from reenact.values.lenient import as_object, members
from reenact.values.run import Node

if TYPE_CHECKING:
    from reenact.replay.recorders import Recorder, Recording


TWIN = "reenact.replay.instead_of"
"""The recorded call in whose place a live one stands."""
_OUTER = frozenset({"LLM", "EMBEDDING", "RERANKER"})
"""Kinds whose function is only a frame around a provider's call when one is recorded inside."""
_READY_S, _LOOK_S = 10.0, 0.001
"""How long a tool that runs again waits for the one before it at most, and how often it looks."""


class ReplayPassage:
    """One crossing in a replay: told to the recorder, answered by a stub, released by the gate."""

    def __init__(
        self,
        owner: Replayer,
        call: Call,
        inner: Recording,
        stub: Stub | None,
        answer: Outcome | Rewritten | None,
        lane: str,
        again: Again | None = None,
    ) -> None:
        self._again = again
        self.is_named = False
        """It is of a tool that is named to run in the sealed world."""
        self._owner, self._call, self._inner, self._stub = owner, call, inner, stub
        self._lane = in_unit(lanes.current().reel.again, lane)
        self.answer = answer
        node = stub.node if stub is not None else None
        self.head_order, self.end_order = (node.head_order, node.end_order) if node else (None, None)
        self._killed = owner.stubs.family.killed(node) if node else None
        if self._killed is not None and isinstance(answer, Unfinished):
            self.end_order = owner.last_order(stub)
        self.took_s = (node.span.end_ns - node.span.start_ns) / 1e9 if node else None
        inside = inner.place
        self.place = Place(inside.trace_id, inside.span_id, node.id if node else None, inside.root, inside.whole)

    @contextmanager
    def crossing(self) -> Generator[None]:
        """Stand inside this call. Live model and tool calls may use the network while they run."""
        asks = self.answer is None or isinstance(self.answer, Rewritten)
        live = asks and not self._call.is_structure and self._stub is None
        with self._inner.crossing():
            before = place.move(self.place)
            around = allowed() if live else into_the_copy(self._call.name) if self.is_named else nullcontext()
            try:
                with around:
                    yield
            finally:
                place.move(before)

    def turn(self) -> AbstractContextManager[None]:
        """Have no other lane of the agent's be given anything while what the call did beside its answer is done."""
        return self._owner.gate_of(self._stub).turn(self._lane)

    def ready(self) -> None:
        """Block until the call whose changes of the same state came first has ended."""
        until = time.monotonic() + _READY_S
        while self._follows_another() and time.monotonic() < until:
            time.sleep(_LOOK_S)

    async def ready_async(self) -> None:
        """Wait likewise, without blocking the loop."""
        until = time.monotonic() + _READY_S
        while self._follows_another() and time.monotonic() < until:  # noqa: ASYNC110 - any thread may end it
            await asyncio.sleep(_LOOK_S)

    def _follows_another(self) -> bool:
        if self._again is None or self._stub is None:
            return False
        order = self._owner.stubs.following.get(self._stub.node.id)
        return order is not None and not self._owner.gate_of(self._stub).has_passed(order)

    def wait(self, order: int | None) -> None:
        """Block until the recorded release may happen."""
        self._owner.gate_of(self._stub).wait(order, self._lane, self.answer)
        if self._killed is not None and isinstance(self.answer, Unfinished):
            self._owner.die(self._call, self._stub, *self._killed)

    async def wait_async(self, order: int | None) -> None:
        """Wait likewise, without blocking the loop."""
        await self._owner.gate_of(self._stub).wait_async(order, self._lane)
        if self._killed is not None and isinstance(self.answer, Unfinished):
            self._owner.die(self._call, self._stub, *self._killed)

    @property
    def aftermath(self) -> Json:
        """Give what the recorded call changed in memory, where it is answered."""
        if self._stub is None or self.answer is None:
            return None
        change_json = self._stub.node.span.attributes.get(AFTER)
        change = parsed_or_none(change_json) if isinstance(change_json, str) else None
        if unrestored(self._stub.node):
            self.unrestored("")
        return change

    @property
    def printed(self) -> Sequence[Print]:
        """Give what the recorded call printed, where it is answered."""
        return () if self._stub is None or self.answer is None else printed(self._stub.node)

    def unrestored(self, why: str) -> None:
        """Note that what the recorded call changed in memory is not as it left it."""
        if self._stub is None:
            return
        node = self._stub.node
        foretold = bool(unrestored(node)) and node.id not in self._owner.stubs.harmless
        changed: list[Json] = [*listed(node, CHANGED)]
        self._owner.ledger.note("unrestored", id=node.id, call=node.label, changed=changed, why=why, foretold=foretold)

    def number_end(self) -> None:
        """Tell the recorder."""
        self._inner.number_end()

    def differs(self, field: str, recorded: Json, now: Json) -> BaseException | None:
        """Hold what the call was given against the recording, and note a miss where it is something else."""
        node = self._stub.node if self._stub is not None else None
        if node is None or self._owner.is_alike(node, recorded, now):
            return None
        difference = FieldDifference(path=field, a=recorded, b=now)
        return self._owner.missed(self._call, "", nearest=node, differs=difference)

    def recorded(self, attribute: str) -> list[Json]:
        """Give a list that stands on the recorded call's span."""
        return [] if self._stub is None else members(self._stub.node.span.attributes.get(attribute))

    def miss(self, reason: str) -> BaseException:
        """Note that the matched call cannot be answered after all."""
        if self._killed is not None:
            self._owner.die(self._call, self._stub, *self._killed)
        return self._owner.missed(self._call, reason, nearest=self._stub.node if self._stub else None)

    def head(self, status: int, headers: tuple[tuple[str, str], ...]) -> None:
        """Tell the recorder."""
        self._inner.head(status, headers)

    def chunk(self, data: bytes | None = None, value: Json = None) -> None:
        """Tell the recorder."""
        self._inner.chunk(data, value)
        if self._again is not None:
            self._again.piece(value)

    def annotate(self, attributes: Mapping[str, Json]) -> None:
        """Tell the recorder."""
        self._inner.annotate(attributes)

    def replied(self, status: int, headers: tuple[tuple[str, str], ...], body: bytes) -> None:
        """Tell the recorder."""
        self.closed(Returned(payload=HttpReply(status=status, headers=headers, body=Body(body))))

    def closed(self, outcome: Outcome) -> None:
        """Tell the recorder, and compare what ran again."""
        self._inner.closed(outcome)
        if self._again is not None:
            self._again.returned(outcome)
        alarm_clock.leave()

    def raised(self, error: BaseException) -> None:
        """Tell the recorder, and compare what ran again."""
        self._inner.raised(error)
        if self._again is not None:
            self._again.raised(error)

    def ended(self, end: StreamEnd, error: BaseException | None = None, result: Json = None) -> None:
        """Tell the recorder; pieces that the agent no longer wants hold up nobody."""
        if self._again is not None:
            self._again.ended(end, error, result)
        elif self._stub is not None and isinstance(self._stub.node.outcome, Streamed):
            self._owner.left(self._stub, end)
        self._inner.ended(end, error, result)


class Replayer:
    """Answers calls from `stubs` under `policy`."""

    def __init__(
        self,
        stubs: Stubs,
        recorder: Recorder,
        redactor: Redactor,
        ledger: Ledger,
        policy: Policy,
        process: str = "",
    ) -> None:
        self.stubs, self._recorder, self._redactor, self.ledger = stubs, recorder, redactor, ledger
        ledger.redactor = redactor
        self._policy = policy
        self._renaming = Renaming(stubs.runs, redactor, as_asked)
        live = {kind for kind in CallKind if policy.source(kind) is Source.LIVE}
        self._gates = {process: Gate(entries, self._skipped) for process, entries in stubs.expected(live).items()}
        self._no_gate = Gate(())
        self.pacing = Pacing(stubs.pauses, lambda each: self._gates.get(each, self._no_gate), lambda: self._process)
        self._process = process
        """The recorded process whose calls this one makes again."""
        self._stray = self._ended = ""
        """The lane of this process, where the recording holds none on it, or one that its parent ended."""
        self._lock = locks.lock()
        self._stop_reason: str | None = None
        self._beyond = False
        """It went on past its first divergence."""
        self._live = live
        self.crossed: Callable[[str, Node], None] | None = None
        """Hears which recorded call a lane made again."""
        self._stop_listening = lanes.listen(self)
        self._stop_finishing = lanes.finish_with(self)

    def turn_of(self, unit: str) -> tuple[Gate, tuple[int, int], str]:
        """Give the gate of a unit that is delivered again, when it began and ended, and the lane it begins on."""
        root = self.stubs.units[unit].root
        gate = self._gates.get(sequence_of(root), self._no_gate) if root is not None else self._no_gate
        return gate, self.stubs.turn(unit), in_unit(unit, LANE)

    def forget_order(self) -> None:
        """Hear that nobody need wait for anybody any more."""
        for gate in self._gates.values():
            gate.give_up()

    @property
    def stopped(self) -> bool:
        """Whether nothing that follows is evidence."""
        return self._stop_reason is not None

    @property
    def process(self) -> str:
        """The recorded process whose calls this one makes again; empty where none was."""
        return self._process

    def gate_of(self, stub: Stub | None) -> Gate:
        """Give the gate of the recorded process that made a call."""
        return self._gates.get(sequence_of(stub.node), self._no_gate) if stub is not None else self._no_gate

    def last_order(self, stub: Stub | None) -> int | None:
        """Give the number behind everything that the process of a call was seen to consume."""
        return self.gate_of(stub).last_order

    def die(self, call: Call, stub: Stub | None, number: int, after_s: float) -> None:
        """End this process as the recorded one ended in the middle of this call; the one above may be about to."""
        label = stub.node.label if stub is not None else call.name
        self.ledger.note("killed", call=label, id=stub.node.id if stub is not None else None, signal=number)
        from reenact.replay import child_ends  # few recordings hold such a process

        child_ends.end_in_call(number, after_s)

    def before_signal(self, lane: str, number: int) -> None:
        """Hear that this process is about to send a signal to its child on `lane`."""
        from reenact.replay import child_ends  # as above

        child_ends.hold_signal(self.ledger, self.stubs.family, lane, number)

    holds = True
    """Ends of pool jobs wait for those before them."""

    def take_in(self, lane: str) -> None:
        """Play the recorded process that stood on `lane`: the one that was started alike where there are several."""
        processes = self.stubs.family.on(lane)
        if self._process not in processes:
            self._process = processes[0] if processes else ""
        self._stray = "" if processes else lane
        self._ended = lane if processes and self.stubs.family.was_ended(lane) else ""

    def _await_end(self, of: str, call: Call, lane: str) -> str:
        """Hold up the process on the lane `of`, which was ended before it asked for this; give what lane is left."""
        if not of or lane != of or call.is_structure:
            return of
        from reenact.replay import child_ends  # as above

        child_ends.await_signal()
        return ""

    def forked(self) -> None:
        """Begin afresh with who waits; what was taken before the fork stays taken."""
        self._gates = {each: Gate(entries, self._skipped) for each, entries in self.stubs.expected(self._live).items()}

    def refuse_child(self, what: str) -> None:
        """Refuse a child that would run for real. Raises `SideEffectRefused`."""
        refuse(self.ledger, what, "child process")

    def close(self) -> None:
        """Stop hearing of lanes."""
        self._stop_listening()
        self._stop_finishing()

    def lane_spawned(self, lane: lanes.Lane) -> None:
        """Hear that a lane started a thread."""
        for gate in self._gates.values():
            gate.spawned(_at(lane))

    def lane_ended(self, lane: lanes.Lane) -> None:
        """Hear that a lane ended; whoever started it may have waited for that."""
        at = _at(lane)
        self.pacing.ended(lane)
        for gate in self._gates.values():
            gate.settled(at)
            if lane.threaded:
                gate.woken(at.rpartition("/")[0])

    def may_end(self, lane: lanes.Lane) -> None:
        """Hold a pool job until those that ended before it when recorded are resolved."""
        at = (self._process, _at(lane))
        lane_key = at if at in self.stubs.lane_ends else self.stubs.ends_on.get(_at(lane))
        if lane_key is None:
            self.pacing.end_job(lane)
            return
        if (gate := self._gates.get(self.stubs.lane_ends.sequences[lane_key])) is not None:
            gate.wait(self.stubs.lane_ends[lane_key][0], _at(lane))

    def ended(self, lane: lanes.Lane) -> None:
        """Hear nothing more: the future's own callback tells that the lane settled."""

    def open(self, call: Call) -> ReplayPassage:
        """Let a call in and find its answer. Raises `Miss`."""
        alarm_clock.enter()
        lane, unit = (here_on := lanes.current()).path, here_on.reel.again
        for gate in self._gates.values():
            gate.settled(_at(here_on))
        if self._stop_reason is not None:
            raise Miss(self._stop_reason)
        self._stray = self._await_end(self._stray, call, lane)
        asked, here = question(call, self._redactor), place.current()
        parent = here.recorded if here is not None else None
        source = self._policy.source_of(call)
        if call.is_child and self._policy.children is Children.REFUSE:
            refuse(self.ledger, f"child process {call.name!r}", "child process")
        with self._lock:
            stub = None
            if call.is_structure or source is not Source.LIVE:
                above = parent if isinstance(parent, str) else None
                stub = self.stubs.take(asked, above, lane, self._process, unit)
                if stub is None and not call.is_structure:
                    stub = self._foreign_stub(call, asked, above) or self._renamed(call, asked, above, lane)
        if stub is not None:
            self._made_again(here_on, stub.node)
        if call.is_structure:
            return ReplayPassage(self, call, self._recorder.open(call), stub, None, lane)
        if stub is None:
            if (ready := self.stubs.ready(call, asked)) is not None:
                return ReplayPassage(self, call, self._recorder.open(ready[0]), None, ready[1], lane)
            return self._unanswered(call, asked, source, lane, parent)
        return self._answer(call, asked, stub, lane)

    def _made_again(self, lane: lanes.Lane, node: Node) -> None:
        """Tell that a lane made a recorded call again."""
        self.pacing.crossed(lane, node)
        if self.crossed is not None:
            self.crossed(lane.path, node)

    def _foreign_stub(self, call: Call, asked: Question, parent: str | None) -> Stub | None:
        """Take the call of another emitter that stands for a live one, and say what could not be compared."""
        agreement = self.stubs.take_kept(asked, parent, self._redactor, lanes.current().reel.again)
        if agreement is None:
            again = isinstance(call.request, HttpRequest) and call.request.attempt > 0
            return self.stubs.retried(asked, self._redactor) if again else None
        node = agreement.node
        whose = {"id": node.id, "call": node.label}
        for each in agreement.ignored:
            why = "the trace did not keep it" if each.a is ABSENT else "the trace keeps another spelling of it"
            fields = {"field": each.path, "recorded": plain(each.a), "replay": plain(each.b), "reason": why}
            self.ledger.note("ignored", **whose, **fields)
        if agreement.among > 1:
            why = f"{agreement.among} recorded calls agree in all that was kept; this one comes first"
            self.ledger.note("ignored", **whose, field="place", recorded=agreement.among, replay=1, reason=why)
        return self.stubs.stubs[node.id]

    def _renamed(self, call: Call, asked: Question, parent: str | None, lane: str) -> Stub | None:
        """Take the call whose question only redaction spells otherwise, and say so."""
        own = (
            stub for stub in self.stubs.stubs.values() if not stub.is_structure and not self.stubs.kept.holds(stub.node)
        )
        is_free = self.stubs.free_in(lanes.current().reel.again)
        match = self._renaming.find(call, asked, own, is_free, (parent, lane, self._process))
        if isinstance(match, int):
            foreign_match = self.stubs.kept.find_renamed(asked, is_free, self._redactor, self._renaming.fits)
            if foreign_match is None:
                return None
            node, renamed = foreign_match[0], self._renaming.keep(foreign_match[1])
        else:
            node, renamed = match[0].node, match[1]
        self.stubs.taken.add(node.id)
        self._note_renamed(node, renamed)
        return self.stubs.stubs[node.id]

    def _note_renamed(self, node: Node, renamed: Renamed) -> None:
        field, recorded, replay, reason = self._renaming.why(renamed)
        about = {"id": node.id, "call": node.label, "field": field, "recorded": recorded, "replay": replay}
        self.ledger.note("ignored", **about, reason=reason)
        if renamed.pairs:
            self.ledger.note("renamed", id=node.id, call=node.label, pairs=dict(renamed.pairs))

    def _answer(self, call: Call, asked: Question, stub: Stub, lane: str) -> ReplayPassage:
        node = stub.node
        if (FOUND in call.attributes and node.id in self.stubs.again) or (call.is_child and self._is_run(call, stub)):
            return self._running_again(call, asked, stub, lane)
        if self._policy.runs(call):
            if not is_sealed():
                why = "the world of this replay is not sealed: it would run for real"
                refuse(self.ledger, f"{call.word} {call.name}", "live", why)
            return self._running_again(call, asked, stub, lane, named=True)
        answer: Outcome | None = as_told(node, call)
        with self._lock:
            if call.kind in _OUTER and self.stubs.holds_evidence(stub):
                answer = None  # the model call inside has full evidence and answers for itself
                never = {sequence_of(node): orders(node)}
            else:
                never = self.stubs.orders_below(stub, self.stubs.cover(stub))
        for sequence, numbers in never.items():
            if numbers and (gate := self._gates.get(sequence)) is not None:
                gate.drop(numbers)
        if isinstance(answer, Unfinished) and self.stubs.family.killed(node) is None:
            open_still = "was in flight when the recorded run ended"
            kept_nothing = "is nearest, and the recording holds no reply for this call"
            why = open_still if node.span.attributes.get("reenact.incomplete") else kept_nothing
            raise self.missed(call, why, nearest=node)
        tries_again = isinstance(call.request, HttpRequest) and call.request.attempt > 0 and failed_for_good(node)
        if not isinstance(answer, Unfinished) and not tries_again:
            self.ledger.note("answered", id=node.id, kind=node.kind.value, **self._worth(), **moved(node.lane, lane))
        recorded_source, now = node.span.attributes.get(SOURCE), call.attributes.get(SOURCE)
        if answer is not None and recorded_source and now and recorded_source != now:
            self.ledger.note("other_code", id=node.id, call=node.label, name=call.name)
        self._note_noise(asked, stub)
        inner = self._recorder.open(call)
        tool_attributes = {name: node.span.attributes[name] for name in OF_FOUND if name in node.span.attributes}
        inner.annotate({"reenact.replay.answered_by": node.id, **tool_attributes, **self._marks()})
        return ReplayPassage(self, call, inner, stub, answer, lane)

    def _is_run(self, call: Call, stub: Stub) -> bool:
        """Tell whether a child runs again: by policy, or since it starts Pythons that replay themselves.

        Raises `SideEffectRefused` where the policy says so and the world is not sealed.
        """
        if self._policy.children is Children.RUN and not is_sealed():
            why = "the world of this replay is not sealed: it would run for real"
            refuse(self.ledger, f"child process {call.name!r}", "child process", why)
        files = changed(as_ended(stub))
        if files and not is_sealed():
            listed = ", ".join(path for path, _ in files[:5])
            why = f"files changed while it ran ({listed}), and the world of this replay is not sealed"
            refuse(self.ledger, f"child process {call.name!r}", "child process", why)
        if (serves := served(as_ended(stub))) and not is_sealed():
            why = "the program connected to it, and the world of this replay is not sealed"
            refuse(self.ledger, f"child process {call.name!r}", "child process", why)
        if files:
            unmake(path for path, how in files if how == "made")
        runs = bool(files) or serves or self._policy.children is Children.RUN
        return is_sealed() and (runs or self.stubs.holds_process(stub))

    def _running_again(
        self, call: Call, asked: Question, stub: Stub, lane: str, *, named: bool = False
    ) -> ReplayPassage:
        """Let a tool run again: a found one that touched nothing, or a `named` one in the sealed world."""
        node = stub.node
        facts = {**({"live": True} if named else {}), **moved(node.lane, lane)}
        self.ledger.note("ran_again", id=node.id, kind=node.call.word, **facts)
        self._note_noise(asked, stub)
        gate = self.gate_of(stub)
        if isinstance(node.outcome, Streamed):
            gate.drop(orders(node))
        else:
            gate.running(node.end_order)
        inner = self._recorder.open(call)
        inner.annotate({"reenact.replay.ran_again": node.id, **self._marks()})
        again = Again(node, self._redactor, self.ledger, self._comes_again, facts)
        passage = ReplayPassage(self, call, inner, stub, None, lane, again)
        passage.is_named = named
        return passage

    def _comes_again(self, node: Node, recorded: Json, live: Json, raw: Json) -> bool:
        """Tell that a result is the recorded one, redacted otherwise, and say so."""
        with self._lock:
            renamed = self._renaming.same(recorded, live, raw)
        if renamed is not None:
            self._note_renamed(node, renamed)
        return renamed is not None

    def is_alike(self, node: Node, recorded: Json, now: Json) -> bool:
        """Tell whether something that a call was given is what was recorded, redaction aside."""
        around = {"openinference.span.kind": node.kind.value, "reenact.boundary": "function"}
        clean_json = self._redactor.attributes({**around, "output.value": compact({"given": now})}).get("output.value")
        clean = as_object(parsed_or_none(str(clean_json))).get("given")
        return clean == recorded or self._comes_again(node, recorded, clean, now)

    def _note_noise(self, asked: Question, stub: Stub) -> None:
        node = stub.node
        for name, value in asked.noise.items():
            if stub.question.noise.get(name) and stub.question.noise[name] != value:  # a foreign trace names no URL
                recorded = stub.question.noise[name]
                self.ledger.note("ignored", id=node.id, call=node.label, field=name, recorded=recorded, replay=value)

    def _worth(self) -> dict[str, bool]:
        """Say of an answer in the ledger that it is no evidence, where it is none."""
        return {"beyond": True} if self._marks() else {}

    def _marks(self) -> dict[str, str]:
        """Mark the span of an answer that is no evidence."""
        return {EVIDENCE: self._policy.after.value} if self._beyond and self._policy.after in ASSUMING else {}

    def _onward(self, call: Call, asked: Question, lane: str) -> Stub | None:
        """Go on past a call that nobody recorded: the stub that is to answer it, or None for a live answer.

        Raises `Miss` where the policy has it stop, or nothing recorded could stand for an answer.
        """
        how, stub = going(self._policy.after, call), None
        if how in {Going.NEAREST, Going.WRITE}:
            fits = answers(call, asked) if how is Going.NEAREST else takes_as(call)
            with self._lock:
                stub = word_for(call, self.stubs) if call.is_query else None
                nearest_pair = None if stub else self.stubs.nearest(asked, lane, fits, lanes.current().reel.again)
                if nearest_pair is not None:
                    stub = nearest_pair[0]
                    self.stubs.taken.add(stub.node.id)
        if stub is None and how is not Going.LIVE:
            raise self.missed(call, "", asked=asked, lane=lane)
        self.missed(call, "", asked=asked, lane=lane, onward=stub or Going.LIVE)
        if how is Going.LIVE and not self._beyond:
            for gate in self._gates.values():
                gate.give_up()  # the world sets the pace from here on
        self._beyond = True
        return stub

    def _unanswered(self, call: Call, asked: Question, source: Source, lane: str, parent: object) -> ReplayPassage:
        self._ended = self._await_end(self._ended, call, lane)
        if source is Source.RECORDED and (stub := self._onward(call, asked, lane)) is not None:
            if stub is not self.stubs.stubs.get(stub.node.id):
                (inner := self._recorder.open(call)).annotate(self._marks())
                return ReplayPassage(self, call, inner, None, stub.node.outcome, lane)
            if self.crossed is not None:
                self.crossed(lane, stub.node)
            return self._answer(call, asked, stub, lane)
        self._check_way(call)
        twin = self._in_place_of(asked, lane, parent) if source is Source.LIVE else {}
        inner = self._recorder.open(call)
        inner.annotate({"reenact.replay.live": True, **({TWIN: twin["id"]} if "id" in twin else {})})
        if isinstance(parent, str):
            inner.annotate({"reenact.replay.parent": parent})
        span = format(inner.place.span_id, "016x")
        after = {"beyond": True} if self._beyond and source is Source.RECORDED else {}
        self.ledger.note("live", kind=call.kind.value, call=f"{call.word} {call.name}", span=span, **after, **twin)
        return ReplayPassage(self, call, inner, None, None, lane)

    compares = True
    """What comes back live is held against the recording; a fork means it to be something else."""

    def _in_place_of(self, asked: Question, lane: str, parent: object) -> dict[str, Any]:
        """Find the recorded call that asked what goes live now, so that both answers can be compared."""
        if not self.compares:
            return {}
        with self._lock:
            above = parent if isinstance(parent, str) else None
            stub = self.stubs.take(asked, above, lane, self._process, lanes.current().reel.again)
        return {"compare": True, **({"id": stub.node.id} if stub is not None else {})}

    def _check_way(self, call: Call) -> None:
        """Raise `SideEffectRefused` where a call is to go live to a host that the policy does not let out."""
        ways, request = self._policy.ways, call.request
        if ways is None or not isinstance(request, HttpRequest):
            return
        from reenact.values import way  # most replays let nothing out

        host = way.of_url(request.url)
        if host is None or host not in ways:
            host_name = str(host) if host is not None else "HOST:PORT"
            hint = f"the policy does not let it out; --allow-host {host_name} does"
            refuse(self.ledger, f"{call.word} {call.name} to {host_name}", "live", hint)

    def missed(
        self,
        call: Call,
        reason: str,
        *,
        asked: Question | None = None,
        lane: str = "",
        nearest: Node | None = None,
        onward: Stub | Going = Going.NOWHERE,
        differs: FieldDifference | None = None,
    ) -> Miss:
        """Write a miss down and make the error for it: of a question, or of the outcome of the `nearest` call.

        A question is shown as a call of the replay's run, with no outcome. With `onward` the replay goes on, answered
        by that recorded call or live.
        """
        label = f"{call.word} {call.name}"
        entry: dict[str, Any] = {"call": label, "field": "outcome", "reason": reason, "where": where()}
        if nearest is not None:
            entry |= {"call": nearest.label, "nearest": nearest.id}
        if differs is not None:
            entry |= {"field": differs.path, "recorded": plain(differs.a), "replay": plain(differs.b)}
        if asked is not None and not reason:
            entry |= self._nearest(asked, lane, onward)
        with self._lock:
            first = self._stop_reason is None and not self._beyond
            if onward is Going.NOWHERE:
                self._stop_reason = self._stop_reason or sentence(entry)
            else:
                entry["onward"] = "live" if isinstance(onward, Going) else self._policy.after.value
        self.ledger.note("miss", **entry, first=first)
        if asked is not None and onward is Going.NOWHERE:
            inner = self._recorder.open(call)
            inner.annotate({"reenact.replay.missed": str(entry.get("nearest") or "")})
            inner.closed(Unfinished())
        return Miss(sentence(entry))

    def _nearest(self, asked: Question, lane: str, onward: Stub | Going) -> dict[str, Any]:
        with self._lock:
            asked = replace(asked, asked=self._renaming.renamed(asked.asked))
            if isinstance(onward, Stub):
                nearest_pair = onward, self.stubs.differences(onward, asked)
            else:
                nearest_pair = self.stubs.nearest(asked, lane, unit=lanes.current().reel.again)
        label = f"{asked.word} {asked.name}"
        if nearest_pair is None:
            return {"field": "call", "recorded": None, "replay": label, "reason": f"no {label} was recorded"}
        stub, fields = nearest_pair
        entry: dict[str, Any] = {"call": stub.node.label, "nearest": stub.node.id}
        if hint := self._renaming.hint(asked, stub.question):
            entry["hint"] = hint
        if not fields:
            times = sum(each.question.key == asked.key for each in self.stubs.stubs.values())
            what = about(asked.asked)
            return entry | {
                "field": "call",
                "recorded": {"times": times, "about": what},
                "replay": {"times": times + 1, "about": what},
            }
        return entry | differing(fields)

    def left(self, stub: Stub, end: StreamEnd) -> None:
        """Hear that the agent is done with a stream; whatever it did not read holds up nobody."""
        self.gate_of(stub).drop(orders(stub.node))
        outcome = stub.node.outcome
        if isinstance(outcome, Streamed) and outcome.end is StreamEnd.FINISHED and end is StreamEnd.ABANDONED:
            self.ledger.note("left", id=stub.node.id, call=stub.node.label)

    def _skipped(self, numbers: list[int], granted: int) -> None:
        if numbers := self.pacing.answers(numbers):
            self.ledger.note("released_out_of_order", granted=granted, passed=numbers[:50], count=len(numbers))


def _at(lane: lanes.Lane) -> str:
    """Name a lane where those of several units may be at work."""
    return in_unit(lane.reel.again, lane.path)
