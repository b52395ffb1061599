"""A run: the graph rebuilt from the spans of one execution, and how far it can be replayed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from reenact.values.call import Call, CallKind, Outcome
from reenact.values.json import Json
from reenact.values.span import SpanRecord

PROCESS_ROOT = "reenact.process.root"
"""The attribute of a root that stands for a process: the calls outside every unit of work."""

STOPPED = "reenact.stopped"
"""The attribute of a process's root that names the signal by which a server was stopped: SIGTERM, SIGINT or SIGHUP."""

ENDED_BY = "reenact.ended_by"
"""The attribute of a process's root that names the call by which it ended past Python's own end: `os._exit`."""

NOTHING_WRITTEN = '{"files":[]}'
"""What WRITTEN says where that is nothing."""

ANSWERED_WITH = "reenact.answer.headers"
"""The attribute of the root of a unit over HTTP that holds, as JSON, the headers of its answer that are compared."""

STDIN = "reenact.input"
"""The attribute of what stands for a process that holds, as JSON, what it read from its standard input."""

PROCESS_REST = "reenact.process.rest"
"""The attribute of what stands for what a process gave out behind its last run; it is no call."""

CAME_IN = "reenact.inbound.order"
"""When a unit came in, in the sequence that numbers what reached agent code in its process."""

THREAD = "reenact.inbound.thread"
"""The attribute of the root of a unit that names the thread that it began on, where that is not the main one."""

FROM_OUTSIDE = "reenact.inbound.from_outside"
"""The attribute of the root of a unit that tells that others asked its process for work."""

FORK_PARENT = "reenact.fork.parent"
"""On the root of a fork: the trace id of the run that it was forked from."""
FORK_AT = "reenact.fork.at"
"""On the root of a fork: the label of the call at which it was; absent where from the beginning."""
FORK_CHANGES = "reenact.fork.changes"
"""On the root of a fork, JSON: `[{"call", "id", "path", "from", "to"}]`."""
FORK_PARAMETERS = "reenact.fork.parameters"
"""On the root of a fork, JSON: what every model call from there on was asked with, by name of the field."""
FORK_CHANGED = "reenact.fork.changed"
"""On the calls of a fork whose question or answer was changed; always true."""

FORK_ASKED = "reenact.fork.asked"
"""On a model call of a fork that went out with another request than the program made: the body that it made."""

RECORDED_NAME = "reenact.recorded.name"
RECORDED_KIND = "reenact.recorded.kind"
VIEW = "reenact.view"
"""Names of attributes that are derived, and are taken away where the span is read (`values.semconv`)."""
SHOWN = (VIEW, RECORDED_NAME, RECORDED_KIND)
"""What a span has that was shown to others: one of these at least."""

OURS = "reenact.schema_version"
"""The attribute that every span of ours has."""

CARRIER = "reenact.carrier"
"""The attribute that names the format of the file that a call was read from and that holds no spans, as a cassette."""

SESSION, USER, TENANT = "session.id", "user.id", "reenact.tenant"
"""The attributes by which a span says for whom it is: OpenInference's, and ours."""

SESSION_NAMES, USER_NAMES = (SESSION, "gen_ai.conversation.id"), (USER, "enduser.id")
"""The same with OpenTelemetry's names behind them, which a span may have in their place."""

FOLLOWED = "reenact.unit.followed"
"""The call was made when its unit was at its end, and another one had come in since."""

VISITED = "reenact.process.visited"
"""The attribute of a call outside of every unit that tells that others had asked its process for something by then."""

SERVED = "reenact.process.served"
"""The attribute of what stands for a process that counts the units that came in; it is there where others asked."""

RECEIVED = "reenact.inbound.received"
"""When the body of a request was there, in the same sequence."""

REPLIED = "reenact.inbound.replied"
"""When the last of an answer was handed over, likewise; it is there where nothing in memory changed after that."""

STANDS_ON = "reenact.stands_on"
"""JSON: what earlier units of the process left in memory that a unit may have read, and which units those were."""
LEAVES = "reenact.leaves"
"""JSON: names of what a unit may have left in memory that code of its process reads back."""
UNDECLARED = "reenact.undeclared"
"""The attribute of a root that lists, as JSON, what its program did past every boundary: `what at file:line`."""

NATIVE_CODE = "native code: "
"""How an act of that list begins that is the agent's own call of a native function: nobody sees what that does."""

LOCKED = "a lock that another process holds: "
"""How an act of that list begins that is a lock on a file: the path of the file follows."""

WRITTEN = "reenact.written"
"""The attribute of a root that tells, as JSON, what its program wrote; it is there where it wrote nothing as well."""

PAUSES = "reenact.pauses"
"""The attribute of a root that tells, as JSON, where its code waited by the clock."""
LANDINGS = "reenact.landings"
"""The attribute of a root that tells, as JSON, which ends of jobs an event loop heard of close behind others."""
UNPAUSED = "reenact.pauses.more"
"""The attribute of a root that counts how often its code waited beyond what is told."""
READ_VARIABLES = "reenact.variables"
"""The attribute of a root that names, as JSON, the variables of the environment that its code had read so far."""
FAILURES = "reenact.failures"
"""The attribute of a root that counts what the recorder failed to write down, for a reason of its own."""
TOGETHER = "reenact.order.together"
"""The attribute of a call whose answer reached its task in the same turn of the event loop as the one before."""
TURNS = "reenact.stream.turns"
"""The attribute of a stream that lists, as JSON, the numbers of its head and of pieces that were not the first in their
turn of the event loop, each with the number of what was."""
ENDED_LATER = "reenact.stream.ended_later"
"""The attribute of a stream whose end came by itself, and later than its last piece, so that nobody may ask for it."""
AT_ONCE = "reenact.order.at_once"
"""The call of a coroutine function that ended in the turn of the loop in which it began: nobody else ran meanwhile."""
PRINTED_INSIDE = "texts that the program printed inside calls whose answer stands for them"
"""A kind of what is passed over: a hook of a client prints, say, and no answer runs it."""

SECTION = "reenact.section"
"""The attribute that tells a section from a call; it names the framework."""

LEFT_BY = "reenact.section.left_by"
"""The attribute that names the exception by which a framework hands control on: an interrupt, a hand-off."""

NODE_ID, NODE_NAME, NODE_PARENT = "graph.node.id", "graph.node.name", "graph.node.parent_id"
"""OpenInference's names for a node of a graph, and for the one that led to it."""

OUTPUT = "reenact.output"
"""The attribute of a root that tells, as JSON, what its program printed; it is there where that is nothing as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One call in its place in the graph."""

    id: str
    """The span id, 16 hexadecimal digits."""
    trace_id: str
    parent: str | None
    """The id of the node it hangs below; None at the top."""
    number: int
    """Place in causal order, from 1."""
    call: Call
    outcome: Outcome
    span: SpanRecord
    lane: str = ""
    start_order: int = 0
    """When the call was asked for, in the process's one sequence; 0 where the emitter did not say."""
    head_order: int | None = None
    end_order: int = 0
    """When its outcome reached agent code; 0 where the emitter did not say."""
    caused_by: str | None = None
    """For a tool call: the id of the model call that asked for it."""
    tool_call_id: str | None = None
    orphan: bool = False
    """Its parent was named and is not in the recording."""
    twins: tuple[SpanRecord, ...] = ()
    """What other instrumentations, or the same one from farther out, wrote down of the same call."""

    section: str | None = None
    """The id of the section of a framework (`Run.sections`) that it was made in; the parent is what that stands in."""

    @property
    def written(self) -> SpanRecord:
        """The span as it was written down."""
        return self.span if self.section is None else replace(self.span, parent_id=self.section)

    @property
    def kind(self) -> CallKind:
        """What the call is."""
        return self.call.kind

    @property
    def label(self) -> str:
        """The call in three words, for messages: kind, name, number."""
        return f"{self.call.word} {self.call.name} #{self.number}"


def spans_of(runs: Iterable[Run]) -> list[SpanRecord]:
    """Give everything that was written down of runs, the twins of calls too: what is read again gives the same."""
    return [span for run in runs for node in (*run.nodes, *run.sections) for span in (node.written, *node.twins)]


SIDE_EFFECT = "side effect"
"""The field of a reason that names an act past every boundary."""


class Grade(StrEnum):
    """How far a recording can be replayed."""

    EXACT = "exact"
    PARTIAL = "partial"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One thing that the recording lost."""

    call: str
    """Label of the call, or `run`."""
    field: str
    lost: str
    fix: str
    """The line of configuration or code that would keep it next time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KitItem:
    """One piece of the replay kit."""

    name: str
    state: str
    """`present`, `missing`, `partial` or `not applicable`."""
    detail: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedInputs:
    """Replaced values that a program was given in one place."""

    node: str
    """Id of the call."""
    call: str
    """Label of the call, or `run`."""
    field: str
    """`reply` of a model or over HTTP, `result` of a function, `stream`, `exception`; of the run `command line` or
    `input`."""
    classes: Mapping[str, int]
    """How many, by class."""
    tokens: frozenset[str] = frozenset()
    """The tokens themselves, less masks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How far a recording can be replayed, and why not further."""

    grade: Grade
    reasons: tuple[Reason, ...] = ()
    kit: tuple[KitItem, ...] = ()
    redacted: int = 0
    """How many values redaction replaced. Where any is consumed, `exact` is up to redaction."""
    replaced_inputs: tuple[ReplacedInputs, ...] = ()
    """The replaced values that the program was given, by call and field: what it reads out of them is not recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One execution of an agent."""

    id: str
    """The trace id."""
    name: str
    root: Node | None
    nodes: tuple[Node, ...]
    """In causal order: start order where it was recorded, then start time, parents before children."""
    source: str = ""
    """Where it was read from."""
    session: str | None = None
    user: str | None = None
    tenant: str | None = None
    recording: str | None = None
    """The `reenact.recording.id` that the runs of one recording share."""
    notes: tuple[str, ...] = ()
    """What had to be mended while the graph was built: duplicates, orphans, clock skew."""
    surroundings: dict[str, Json] = field(default_factory=dict[str, Json])
    entry: dict[str, Json] = field(default_factory=dict[str, Json])
    salt: str = ""
    policy_digest: str = ""
    """Names the redaction policy that was in force; empty where none of ours was."""
    own: bool = False
    """This user's recorder wrote its root into the store that it was read from. What a run says of how its program is
    started is used where this holds, or where the user said so."""
    sections: tuple[Node, ...] = ()
    """Agents, nodes and steps as the framework of the program names them, by time. They are no calls,
    and none of `nodes` has one for a parent: its `section` says in which it was made."""
    key_id: str = ""
    """Names the secret key of its tokens of guessable values; empty where the trace names none."""

    @property
    def started_ns(self) -> int:
        """The earliest start, in nanoseconds since the epoch; 0 where no call says when it was."""
        return min((node.span.start_ns for node in self.nodes if node.span.start_ns > 0), default=0)

    @property
    def ended_ns(self) -> int:
        """The latest end, in nanoseconds since the epoch."""
        return max((node.span.end_ns for node in self.nodes), default=0)
