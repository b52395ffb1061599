"""Stubs: recorded calls, found again by what they asked.

Matching is by key first. Equal keys are told apart by place in the graph (the recorded call that the live parent was
matched with), then by process and lane, then by the order in which they were asked. Every look-up is a few dictionary
steps, however long the recording: entries that were taken are passed over once and forgotten.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace

from reenact.boundary.cancelled import was_cancelled
from reenact.boundary.question import Question, question
from reenact.contracts.redactor import Redactor
from reenact.replay.partial_match import Agreed, KeptCalls, failed_for_good
from reenact.replay.pauses import Pauses
from reenact.replay.release import Expected
from reenact.values.call import (
    DATABASE,
    SQLITE,
    Body,
    Call,
    CallKind,
    FunctionCall,
    HttpRequest,
    Outcome,
    Returned,
    Streamed,
    StreamEnd,
    Unfinished,
    Value,
)
from reenact.values.child import LEFT
from reenact.values.difference import ABSENT, FieldDifference, differences
from reenact.values.discovered_tools import follow, run_again
from reenact.values.json import Json, parsed_or_none
from reenact.values.lane import in_unit, sequence
from reenact.values.lenient import as_list, as_object, as_text, members
from reenact.values.run import (
    AT_ONCE,
    CAME_IN,
    ENDED_LATER,
    FORK_ASKED,
    RECEIVED,
    REPLIED,
    TOGETHER,
    TURNS,
    Node,
    Run,
)

_CANDIDATES = 200
_UNTIL_ENDED_S = 10.0
"""How long a call sleeps that goes on until its program ends, before it does again."""


def _databases(runs: Iterable[Run], units: Collection[str]) -> Iterator[tuple[str | None, str]]:
    """Name the databases of SQLite's that are answered, each with its unit where there are several.

    What a process is answered outside of every unit has None for its unit.
    """
    for run in runs:
        is_process = any(
            node.span.attributes.get("reenact.run.root") and node.span.attributes.get("reenact.process.root")
            for node in run.nodes
        )
        unit = None if is_process else run.id if run.id in units else ""
        for node in run.nodes:
            if node.span.attributes.get("db.system.name") == SQLITE:
                yield unit, str(node.span.attributes.get("db.namespace"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stub:
    """A recorded call that can stand for a live one."""

    node: Node
    question: Question

    @property
    def is_structure(self) -> bool:
        """Its code runs again; it only says where others hang."""
        return self.node.call.is_structure


def _places(key: Hashable, parent: str | None, lane: str, process: str) -> tuple[Hashable, ...]:
    """Name where a question may stand, the narrowest place first."""
    below = ((key, "below", parent, lane), (key, "below", parent)) if parent is not None else ()
    return (*below, (key, "in", process, lane), (key, "on", lane), (key, "in", process), (key,))


class Stubs:
    """The recorded calls of one or more runs, each to be taken once. Not thread-safe: its owner holds a lock."""

    def __init__(
        self, runs: Iterable[Run], *, sealed: bool = False, units: Collection[str] = (), first: str = ""
    ) -> None:
        """Take the calls of `runs`. Only where the world is sealed do calls of found tools run again.

        `units` are runs of units that are delivered one with another: each is answered from its own recording. Of
        calls that differ in nothing those of the run `first` come first.
        """
        self.runs = runs = tuple(runs)
        self.units = {run.id: run for run in runs if run.id in units}
        self.nodes: dict[str, Node] = {node.id: node for run in runs for node in run.nodes}
        self._children: dict[str, list[str]] = defaultdict(list)
        for node in self.nodes.values():
            if node.parent is not None:
                self._children[node.parent].append(node.id)
        self.stubs: dict[str, Stub] = {
            node.id: Stub(node=node, question=question(as_asked(node)))
            for node in sorted(self.nodes.values(), key=lambda node: (node.start_order, node.number))
            if not node.span.attributes.get("reenact.run.root")
            and not (node.call.is_aside and isinstance(node.outcome, Unfinished))
        }
        self.harmless = run_again(self.nodes.values())
        """Calls of found tools that run again in a sealed world, by id."""
        self.again = self.harmless if sealed else frozenset[str]()
        """Calls of found tools that run again, by id."""
        self.following = follow(self.nodes.values(), self.again)
        self.lane_ends = _lane_ends(self.nodes.values(), self.units)
        self.pauses = Pauses(self.nodes.values(), self.units)
        self.ends_on = {lane: place for place in self.lane_ends for lane in [place[1]]}
        """By lane alone: a pool's jobs run in whatever process is free."""
        self.family = Family(self.nodes.values())
        self.taken: set[str] = set()
        self.covered: set[str] = set()
        self.kept = KeptCalls(self.stubs.values())
        """Calls that other emitters wrote down."""
        self._set_ups = dict(_set_ups(self.nodes.values()))
        self._databases = frozenset(_databases(runs, self.units))
        self._stubs_by_index: dict[Hashable, deque[Stub]] = defaultdict(deque)
        for stub in sorted(self.stubs.values(), key=lambda stub: bool(first) and stub.node.trace_id != first):
            node = stub.node
            if self.kept.holds(node):
                continue
            for index in self._indices(stub.question, node.parent, node.lane, process_of(node)):
                self._stubs_by_index[index].append(stub)
                if node.trace_id in self.units:
                    self._stubs_by_index[node.trace_id, index].append(stub)

    @staticmethod
    def _indices(asked: Question, parent: str | None, lane: str, process: str) -> tuple[Hashable, ...]:
        key, url = asked.key, asked.noise.get("url")
        if isinstance(url, str) and url:  # calls that ask the same of two hosts are told apart by that first
            return (*_places((key, url), parent, lane, process), *_places(key, parent, lane, process))
        return _places(key, parent, lane, process)

    def take(self, asked: Question, parent: str | None, lane: str, process: str = "", unit: str = "") -> Stub | None:
        """Take the stub that stands for a live call, or None where the recording has no more of it.

        A call of a `unit` is answered from the recording of that unit, and from what belongs to none.
        """
        for index in self._indices(asked, parent, lane, process):
            if unit and (stub := self._first((unit, index))) is not None:
                return stub
        for index in self._indices(asked, parent, lane, process):
            if (stub := self._first(index, apart=bool(unit))) is not None:
                return stub
        return None

    def answers_database(self, unit: str | None, name: str) -> bool:
        """Tell whether a database of SQLite's in a file of this name is answered in a unit; None is outside of any."""
        return (unit, name) in self._databases

    def ready(self, call: Call, asked: Question) -> tuple[Call, Outcome] | None:
        """Give the answer of a call that makes a connection ready once more than recorded, and how that call is noted.

        What another unit asked to set its connection up is asked again by one that connects in its replay.
        """
        if (again := self._shaken(call, asked)) is not None:
            return call, again.node.outcome
        if (answer := self._set_ups.get(asked.key)) is None:
            return None
        from reenact.values.query import as_set_up  # most recordings have none

        return as_set_up(call), answer

    def _shaken(self, call: Call, asked: Question) -> Stub | None:
        """Give the stub of a connection again: a pool may make more of them than when it was recorded.

        Of a call that a client makes aside, the recorded run may have ended before: then it goes on for as long here.
        """
        if not call.is_handshake:
            return None
        waiting = [stub for stub in self.stubs.values() if stub.question.key == asked.key]
        while call.is_aside and not waiting:
            time.sleep(_UNTIL_ENDED_S)
        return waiting[-1] if waiting else self._same_statement(call)

    def _same_statement(self, call: Call) -> Stub | None:
        """Give the answered call of the statement that a client prepares: a connection of before may have had it."""
        from reenact.values.query import statement  # most recordings have none

        text = statement(call)
        alike = (stub for stub in self.stubs.values() if text and statement(stub.node.call) == text)
        return next((stub for stub in alike if isinstance(stub.node.outcome, Returned)), None)

    def _first(self, index: Hashable, *, apart: bool = False) -> Stub | None:
        """Take the first free stub of an index; `apart` from those of units."""
        waiting = self._stubs_by_index.get(index)
        if apart and waiting and any(stub.node.trace_id in self.units for stub in waiting):
            waiting = deque(stub for stub in waiting if stub.node.trace_id not in self.units)
        while waiting:
            stub = waiting.popleft()
            if stub.node.id not in self.taken and stub.node.id not in self.covered:
                self.taken.add(stub.node.id)
                return stub
        return None

    def take_kept(
        self, asked: Question, parent: str | None, redactor: Redactor | None, unit: str = ""
    ) -> Agreed | None:
        """Take the call of another emitter that agrees with a live one in all that was kept."""
        agreement = self.kept.find(asked, parent, self.free_in(unit), redactor)
        if agreement is not None:
            self.taken.add(agreement.node.id)
        return agreement

    def retried(self, asked: Question, redactor: Redactor | None) -> Stub | None:
        """Give the call that was answered with a failure already and that an SDK tries again."""
        agreement = self.kept.find(asked, None, lambda node: node.id in self.taken and failed_for_good(node), redactor)
        return None if agreement is None else self.stubs[agreement.node.id]

    def is_free(self, node: Node) -> bool:
        """Tell whether a recorded call can still be taken."""
        return node.id not in self.taken and node.id not in self.covered

    def free_in(self, unit: str) -> Callable[[Node], bool]:
        """Make what tells whether a recorded call can be taken by code of a unit."""
        if not self.units:
            return self.is_free
        return lambda node: self.is_free(node) and (node.trace_id == unit or node.trace_id not in self.units)

    def cover(self, stub: Stub) -> list[Node]:
        """Note that everything recorded below an answered call will not be asked for."""
        below = [self.nodes[node_id] for node_id in self._below(stub.node.id)]
        self.covered.update(node.id for node in below)
        return below

    def _below(self, node_id: str) -> Iterator[str]:
        left = [node_id]
        while left:
            children = self._children.get(left.pop(), ())
            yield from children
            left += children

    def holds_evidence(self, stub: Stub) -> bool:
        """Tell whether a recorded model call stands below: the innermost boundary answers, the outer one runs again."""
        return any(
            self.nodes[below].kind in {CallKind.LLM, CallKind.EMBEDDING}
            and not isinstance(self.nodes[below].call.request, FunctionCall)
            for below in self._below(stub.node.id)
        )

    def holds_process(self, stub: Stub) -> bool:
        """Tell whether Pythons that a child started recorded themselves below it."""
        below = (self.nodes[each].span.attributes for each in self._below(stub.node.id))
        return any(attributes.get("reenact.process.root") is True for attributes in below)

    def _turns(self) -> Iterator[tuple[str, list[Expected]]]:
        """Give when pool jobs and pauses ended, and when units began and ended, by sequence."""
        yield from self.pauses.expected()
        for place, (order, at) in self.lane_ends.items():
            yield self.lane_ends.sequences[place], [Expected(order, at, at)]
        for each in self.units.values():
            begin, end = self.turn(each.id)
            if each.root is not None and begin and end:
                at, over = each.root.span.start_ns / 1e9, each.root.span.end_ns / 1e9
                turns = [Expected(begin, at, at), Expected(end, over, over)]
                if received := self.received(each.id):
                    turns.append(Expected(received, at, at))
                if replied := self.replied(each.id):
                    ends = [node.span.end_ns / 1e9 for node in each.nodes if 0 < node.end_order < replied]
                    last_s = max([at, *ends])
                    turns.append(Expected(replied, last_s, last_s))
                yield sequence_of(each.root), turns

    def turn(self, unit: str) -> tuple[int, int]:
        """Give when a unit began and ended, in the sequence of its process; zeros where its recorder did not say."""
        root = self.units[unit].root
        begin = root.span.attributes.get(CAME_IN) if root is not None else None
        return (begin, root.end_order) if isinstance(begin, int) and root is not None else (0, 0)

    def received(self, unit: str) -> int:
        """Give when the body of a request was there; 0 where it is not told, or there is nothing to wait for."""
        return self._moment(unit, RECEIVED)

    def replied(self, unit: str) -> int:
        """Give when a unit handed its answer over and did nothing more; 0 where it is not told."""
        return self._moment(unit, REPLIED)

    def _moment(self, unit: str, name: str) -> int:
        root = self.units[unit].root
        order = root.span.attributes.get(name) if root is not None else None
        return order if isinstance(order, int) else 0

    def unconsumed(self) -> list[Stub]:
        """Give the recorded calls that nobody asked for. Structure and unfinished calls are not owed."""
        return [
            stub
            for stub in self.stubs.values()
            if not stub.is_structure
            and stub.node.id not in self.taken
            and stub.node.id not in self.covered
            and not isinstance(stub.node.outcome, Unfinished)
            and not stub.node.call.is_handshake
        ]

    def nearest(
        self, asked: Question, lane: str, fits: Callable[[Stub], bool] | None = None, unit: str = ""
    ) -> tuple[Stub, list[FieldDifference]] | None:
        """Find the recorded call that a missed one resembles most, those not yet asked for first.

        Gives it with the fields that differ. A list of no differences means that it was recorded, and taken already.
        With `fits` only those count that are free and fit; in a `unit` those of other units do not.
        """
        stubs = [stub for stub in self.stubs.values() if not unit or self._is_of(stub, unit)]
        again = [stub for stub in stubs if stub.question.key == asked.key]
        if again and fits is None:
            return again[-1], []
        alike = [stub for stub in stubs if stub.node.kind is asked.kind and not stub.is_structure]
        alike = [stub for stub in alike if stub.question.shape == asked.shape] or alike
        candidates = [stub for stub in alike if stub.question.name == asked.name] or alike
        free = [stub for stub in candidates if stub.node.id not in self.taken and stub.node.id not in self.covered]
        if fits is not None:
            free = candidates = [stub for stub in free if fits(stub)]
        best: tuple[tuple[int, int], Stub, list[FieldDifference]] | None = None
        for number, stub in enumerate((free or candidates)[:_CANDIDATES]):
            fields = self.differences(stub, asked)
            weight = (_weight(fields) + (stub.node.lane != lane), number)
            if best is None or weight < best[0]:
                best = (weight, stub, fields)
        return None if best is None else (best[1], best[2])

    def _is_of(self, stub: Stub, unit: str) -> bool:
        return stub.node.trace_id == unit or stub.node.trace_id not in self.units

    def differences(self, stub: Stub, asked: Question, redactor: Redactor | None = None) -> list[FieldDifference]:
        """List the fields in which a question differs from a recorded one."""
        partly = self.kept.differences(stub.node, asked, redactor)
        if partly is not None:
            return partly
        fields = list(differences(stub.question.asked, asked.asked))
        if stub.question.name != asked.name:
            fields.insert(0, FieldDifference(path="name", a=stub.question.name, b=asked.name))
        return fields

    def orders_below(self, stub: Stub, nodes: Collection[Node]) -> dict[str, list[int]]:
        """List the order numbers of calls that nobody will make below an answered one, by sequence.

        Those of the pool jobs that made them and of the pauses between them are among them.
        """
        orders_by_sequence: dict[str, list[int]] = defaultdict(list)
        for numbers, pauses in self.pauses.covered({stub.node.id, *(node.id for node in nodes)}).items():
            orders_by_sequence[numbers] += pauses
        for node in nodes:
            orders_by_sequence[sequence_of(node)] += orders(node)
            place = (process_of(node), in_unit(node.trace_id if node.trace_id in self.units else "", node.lane))
            if (end := self.lane_ends.get(place)) is not None:
                orders_by_sequence[self.lane_ends.sequences[place]].append(end[0])
        return orders_by_sequence

    def _connecting(self) -> list[Node]:
        """List the calls that make a connection ready, which a program may notice: nobody waits for one not made."""
        nodes = [stub.node for stub in self.stubs.values() if stub.node.call.is_query and _is_idle(stub.node)]
        return [node for node in nodes if node.end_order and not (node.call.is_aside or was_cancelled(node.outcome))]

    def expected(self, live: Collection[CallKind] = ()) -> dict[str, list[Expected]]:
        """List every numbered release that agent code saw in the recording, for the gates, by sequence.

        Each process numbers its own, and in a pool of processes each job stands alone. Calls of the kinds in `live` are
        not awaited: the world sets their pace.
        """
        releases: dict[str, list[Expected]] = defaultdict(list)
        for stub in self.stubs.values():
            node = stub.node
            if stub.is_structure or node.kind in live or node.end_order == 0 or _is_idle(node):
                continue
            releases[sequence_of(node)] += _releases(node)
        for each, turns in self._turns():
            releases[each] = _parted([*releases[each], *turns], {turn.order for turn in turns})
        for node in self._connecting():
            start, end = node.span.start_ns / 1e9, node.span.end_ns / 1e9
            releases[sequence_of(node)].append(Expected(node.end_order, start, end, optional=True))
        for cut in {sequence_of(node) for node in self.nodes.values() if self.family.killed(node) is not None}:
            if own := releases[cut]:
                last = max(own, key=lambda each: each.order)
                own.append(Expected(last.order + 1, last.released_s, last.released_s))
        return releases


def _set_ups(nodes: Iterable[Node]) -> Iterator[tuple[str, Outcome]]:
    """Give the questions that set connections up, each with its answer, as units were told of them by others."""
    asked = [node.span.attributes for node in nodes if node.call.is_query]
    if not asked:
        return
    from reenact.values.query import SETTINGS  # most recordings have none

    for text in {str(attributes[SETTINGS]) for attributes in asked if SETTINGS in attributes}:
        for each in map(as_object, as_list(parsed_or_none(text))):
            if "answer" in each:
                request = FunctionCall(function=DATABASE, arguments=as_object(each.get("asked")))
                call = Call(kind=CallKind.UNKNOWN, name=as_text(each.get("name")), request=request)
                yield question(call).key, Returned(payload=Value(json=each["answer"]))


def _is_idle(node: Node) -> bool:
    """Tell that a call sets no pace: a pool makes connections when it likes."""
    return node.call.is_handshake


def as_asked(node: Node) -> Call:
    """Give a call as the program made it: a fork may have let another request go out."""
    body, request = node.span.attributes.get(FORK_ASKED), node.call.request
    if not isinstance(body, str) or not isinstance(request, HttpRequest):
        return node.call
    return replace(node.call, request=replace(request, body=Body(body.encode("utf-8", "surrogatepass"))))


def process_of(node: Node) -> str:
    """Name the recorded process that made a call; empty where the emitter did not say."""
    return str(node.span.resource.attributes.get("reenact.process.id") or "")


def sequence_of(node: Node) -> str:
    """Name the sequence in which the releases of a call are numbered."""
    return sequence(node.lane, process_of(node))


class Family:
    """The processes of a recording: who they were, and how those that were killed ended."""

    def __init__(self, nodes: Collection[Node]) -> None:
        roots = [node for node in nodes if node.span.attributes.get("reenact.process.root") is True]
        self._on: dict[str, list[str]] = defaultdict(list)
        self._lanes: dict[str, str] = {}
        for node in sorted(roots, key=lambda node: node.span.start_ns):
            if "reenact.entry" in node.span.attributes and node.parent is not None:  # else a job, or the program itself
                self._on[node.lane].append(process_of(node))
                self._lanes[process_of(node)] = node.lane
        self._ends_by_lane: dict[str, tuple[int, int | None]] = {}
        self._nodes = nodes
        for node in nodes:
            ends_json = node.span.attributes.get("reenact.children")
            ends = parsed_or_none(ends_json) if isinstance(ends_json, str) else None
            for lane, end in (ends if isinstance(ends, dict) else {}).items():
                match end:
                    case [int(code), int(ns) | (None as ns)]:
                        self._ends_by_lane[lane] = (code, ns)
                    case _:
                        continue

    def on(self, lane: str) -> list[str]:
        """Give the recorded processes that stood on a lane: one, but for children of a program that is no Python."""
        return self._on.get(lane, [])

    def was_ended(self, lane: str) -> bool:
        """Tell whether the process above sent the signal that ended the one on a lane."""
        return self._ends_by_lane.get(lane, (0, None))[1] is not None

    def calls_before(self, lane: str, number: int) -> set[str]:
        """List the calls, by their ids, that a process on a lane had made when signal `number` from above ended it."""
        if not self.was_ended(lane) or self._ends_by_lane[lane][0] != -number:
            return set()
        calls = {node.id: node for node in self._nodes if not node.call.is_structure}
        own = (node for node in calls.values() if process_of(node) in self.on(lane))
        return {node.id for node in own if node.parent not in calls}  # what is below one may be answered with it

    def killed(self, node: Node) -> tuple[int, float] | None:
        """Say which signal ended a call's process in the middle of it.

        Where the process above sent it, say also how many seconds after the call had begun; else 0.
        """
        outcome = node.outcome
        cut = isinstance(outcome, Unfinished) or (isinstance(outcome, Streamed) and outcome.end is StreamEnd.UNFINISHED)
        end = self._ends_by_lane.get(self._lanes.get(process_of(node), "")) if cut else None
        if end is None or end[0] >= 0:
            return None
        return -end[0], (end[1] - node.span.start_ns) / 1e9 if end[1] is not None else 0.0


class LaneEnds(dict[tuple[str, str], tuple[int, float]]):
    """When each pool job was resolved: order number and seconds since the epoch, by process and lane."""

    def __init__(self) -> None:
        super().__init__()
        self.sequences: dict[tuple[str, str], str] = {}
        """In which sequence the order is a number."""


def _lane_ends(nodes: Iterable[Node], units: Collection[str] = ()) -> LaneEnds:
    """Read the ends of pool jobs. Whichever root says so knows it."""
    ends = LaneEnds()
    for node in nodes:
        ends_json = node.span.attributes.get("reenact.lane.ends")
        ends_by_lane = parsed_or_none(ends_json) if isinstance(ends_json, str) else None
        if isinstance(ends_by_lane, dict):
            for told_lane, end in ends_by_lane.items():
                lane = in_unit(node.trace_id if node.trace_id in units else "", told_lane)
                match end:
                    case [int(order), int(ns)]:
                        ends[process_of(node), lane] = (order, ns / 1e9)
                        ends.sequences[process_of(node), lane] = sequence_of(node)
                    case _:
                        continue
    return ends


def orders(node: Node) -> list[int]:
    """List the order numbers of one call."""
    chunks = [chunk.order for chunk in node.outcome.chunks] if isinstance(node.outcome, Streamed) else []
    begin = node.start_order if was_cancelled(node.outcome) else 0
    return [order for order in (begin, node.head_order, *chunks, node.end_order) if order]


def _releases(node: Node) -> list[Expected]:
    """List the releases of one call.

    Of one that the agent gave up that is its question: the answer that made it give it up comes no sooner.
    """
    start, end = node.span.start_ns / 1e9, node.span.end_ns / 1e9
    if was_cancelled(node.outcome):
        return [Expected(node.start_order, start, start)] if node.start_order else []
    releases: list[Expected] = []
    if isinstance(node.outcome, Streamed):
        turns = dict(_pairs(node.span.attributes.get(TURNS)))
        pieces = [(node.head_order or 0, start)]
        pieces += [(chunk.order, start + chunk.offset_us / 1e6) for chunk in node.outcome.chunks]
        releases += [
            Expected(order, at, at, order in turns, turn=turns.get(order, 0), stream=node.id)
            for order, at in pieces
            if order
        ]
    if not _was_left(node):
        together, at_once = (node.span.attributes.get(name) is True for name in (TOGETHER, AT_ONCE))
        is_left_alone = ENDED_LATER in node.span.attributes
        releases.append(Expected(node.end_order, start, end, together, at_once, is_left_alone))
    return releases


def _pairs(value: object) -> Iterator[tuple[int, int]]:
    for each in members(value):
        match each:
            case [int(order), int(first)]:
                yield order, first
            case _:
                continue


def _parted(expected: list[Expected], turns: Collection[int]) -> list[Expected]:
    """Have no release go at once with one that a unit's begin or end, or that of a pool job, parts it from."""
    in_order = sorted(expected, key=lambda each: each.order)
    return [
        replace(each, together=False) if each.together and at and in_order[at - 1].order in turns else each
        for at, each in enumerate(in_order)
    ]


def _was_left(node: Node) -> bool:
    """Tell whether the agent left this stream, or child: its end gave nothing to anybody and may come at any time."""
    if node.span.attributes.get(LEFT) is True:
        return True
    return isinstance(node.outcome, Streamed) and node.outcome.end is StreamEnd.ABANDONED


def _weight(fields: list[FieldDifference]) -> int:
    """Weigh differences: a field that is there on one side only says less than one that changed."""
    return sum(2 if difference.a is not ABSENT and difference.b is not ABSENT else 3 for difference in fields)


def as_ended(stub: Stub) -> Json:
    """Give what a recorded child came to; None where it failed to start."""
    outcome = stub.node.outcome
    value = outcome.payload if isinstance(outcome, Returned) else None
    return value.json if isinstance(value, Value) else None
