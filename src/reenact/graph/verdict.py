"""The verdict: how far a recording can be replayed, computed from the graph alone, the same way everywhere.

Theory of operation. Each rule looks at one thing that a replay needs (an outcome, the state that a tool changed, what
was printed, written, drawn or read) and yields a `Reason` where it is missing: which call, which field, what is lost
and what would keep it. No rule knows another, and no rule weighs: no reason is `exact`, any reason is `partial`, and
without one call that can be answered it is `none`. What was never looked at must therefore be told by whoever recorded,
as an attribute of its own; a rule cannot see it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from reenact.boundary.reading import answered, asked, frames
from reenact.foreign.partial_question import rebuilt_parts
from reenact.graph.foreign import carrier_reasons, foreign_reasons
from reenact.values import typed, unit
from reenact.values.call import (
    MCP_ERROR,
    MCP_OWN_CODE,
    MCP_UNHEARD,
    CallKind,
    Outcome,
    Raised,
    Returned,
    Streamed,
    StreamEnd,
    Unfinished,
    Value,
)
from reenact.values.discovered_tools import (
    DREW,
    FOLDER,
    UNSPELLED,
    acted,
    is_found,
    is_mixed,
    returns_state,
    run_again,
    unrestored,
)
from reenact.values.history import History
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.message import Text
from reenact.values.protection import protection
from reenact.values.redaction_marks import MARK, count_in, given_by, given_to
from reenact.values.run import (
    FAILURES,
    LOCKED,
    NATIVE_CODE,
    NOTHING_WRITTEN,
    OURS,
    OUTPUT,
    PAUSES,
    PRINTED_INSIDE,
    PROCESS_REST,
    SIDE_EFFECT,
    STDIN,
    STOPPED,
    UNDECLARED,
    WRITTEN,
    Grade,
    KitItem,
    Node,
    Reason,
    Run,
    Verdict,
)

if TYPE_CHECKING:
    from reenact.values.file_writes import FileWrites
from reenact.values.unread_parts import lost_spans

_RECORD = "record with `reenact run -- …`, which keeps it"
_RECORD_AGAIN = "record it again: what is written is noted now"
_FREE = "a replay works in a copy of the file, which nobody else has locked"
_ON_FILES = (
    "write ",
    "remove ",
    "make folder ",
    "truncate ",
    "change ",
    "move ",
    "link ",
    "copy ",
    "unpack ",
    "open database ",
)
"""How acts on files begin in recordings that list them with all others (`boundary.touches`)."""
_ROOM = "make room on the disk, or name another with REENACT_STORE"
_CUT = "reenact.cut"
UNITS = "units"
"""The field of the reason that a run is of a server's own process."""
_OPENINFERENCE_MARK = "__REDACTED__"


def judge(run: Run, history: History | None = None) -> Verdict:
    """Say how far `run` can be replayed; of a unit that came in, delivered behind what is known of its history."""
    outer = frames(run.nodes)
    calls = [node for node in run.nodes if not node.call.is_structure and node.id not in outer]
    again = run_again(run.nodes)
    reasons = [*_server_reasons(run)]
    reasons += (reason for node in calls for reason in _call_reasons(node, runs_again=node.id in again))
    reasons += _run_reasons(run, history)
    answerable = [node for node in calls if not isinstance(node.outcome, Unfinished)]
    if not answerable and not (not calls and unit.leaves(run)):  # a unit that only left something has its answer
        grade = Grade.NONE
        if not calls:
            reasons.append(
                Reason(call="run", field="calls", lost="no call of a model or tool was recorded", fix=_RECORD)
            )
    else:
        grade = Grade.PARTIAL if reasons else Grade.EXACT
    if failed := protection(run).failed:  # nothing else is worth mending before that
        fix = "mend the policy (`reenact policy FILE` says what is wrong), and record again"
        reasons = [Reason(call="run", field="payloads", lost=f"redaction left them out: {failed}", fix=fix)]
    tokens = (*given_to(run), *(each for node in calls for each in given_by(node)))
    return Verdict(
        grade=grade,
        reasons=tuple(reasons),
        kit=tuple(_kit(run, calls, history)),
        redacted=_redacted(run),
        replaced_inputs=tokens,
    )


def _call_reasons(node: Node, *, runs_again: bool = False) -> Iterator[Reason]:
    if not runs_again:  # what runs again needs no recorded value to be made anew
        yield from _outcome_reasons(node)
        yield from _state_reasons(node)
    yield from foreign_reasons(node)
    if node.call.is_query:
        yield from _query_reasons(node)
    if MCP_UNHEARD in node.span.attributes:
        lost = "what its server said meanwhile; the session is another run's"
        fix = "open the session in the unit that asks, if its callbacks matter"
        yield Reason(call=node.label, field="session", lost=lost, fix=fix)
    if names := node.span.attributes.get(MCP_OWN_CODE):
        lost = f"what code of the agent's did inside the transport ({names}); a replay runs none of it"
        fix = "keep what it prints and changes out of the transport"
        yield Reason(call=node.label, field="transport", lost=lost, fix=fix)
    if damaged := node.span.attributes.get("reenact.damaged"):
        lost = f"{damaged}: the journal is damaged where it was written down"
        yield Reason(call=node.label, field="request", lost=lost, fix="look after the disk")
    if dropped := node.span.dropped_attributes:
        lost = f"{dropped} attributes were dropped by a limit"
        fix = "set OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT in the emitter to a large number"
        yield Reason(call=node.label, field="attributes", lost=lost, fix=fix)
    if any(_OPENINFERENCE_MARK in value for value in node.span.attributes.values() if isinstance(value, str)):
        fix = "unset OPENINFERENCE_HIDE_* and raise OPENINFERENCE_BASE64_IMAGE_MAX_LENGTH"
        yield Reason(call=node.label, field="content", lost="hidden by the emitter", fix=fix)


def _query_reasons(node: Node) -> Iterator[Reason]:
    """Name what keeps a query from being answered, or what of its answer is missing."""
    from reenact.values.query import SETTINGS, UNOPENED  # most recordings have none

    if node.span.attributes.get(UNOPENED) is True:
        lost = "the connection that it went over, which was made before recording began"
        yield Reason(call=node.label, field="connection", lost=lost, fix="record from the program's start")
    if asked := _unanswered(node.span.attributes.get(SETTINGS)):
        lost = f"what was answered when another unit set the connection up: {asked}"
        fix = "let each unit make its own connection (Django: CONN_MAX_AGE = 0)"
        yield Reason(call=node.label, field="connection", lost=lost, fix=fix)


def _unanswered(text: object) -> str:
    """Name what other units asked to set connections up and whose answer was not kept."""
    if not isinstance(text, str):
        return ""
    listed = parsed_or_none(text)
    if not isinstance(listed, list):  # an earlier recorder kept no answers
        return text
    told = map(as_object, listed)
    return "; ".join(as_text(as_object(each.get("asked")).get("text")) for each in told if "answer" not in each)


def _outcome_reasons(node: Node) -> Iterator[Reason]:
    """Name what is missing of an outcome."""
    ended = "nothing to do: the run ended here"
    label, field = node.label, "outcome"
    match node.outcome:
        case Unfinished() if node.call.is_aside:
            pass  # nobody waited for it
        case Unfinished() | Streamed(end=StreamEnd.UNFINISHED) if cut := node.span.attributes.get(_CUT):
            yield Reason(call=label, field=field, lost=f"its end could not be written: {cut}", fix=_ROOM)
        case Unfinished() if node.span.attributes.get("reenact.incomplete"):
            yield Reason(call=label, field=field, lost="the process ended before the call did", fix=ended)
        case Unfinished():
            fix = f"turn on content capture in the emitter, or {_RECORD}"
            yield Reason(call=label, field=field, lost="the emitter wrote down no reply", fix=fix)
        case Streamed(end=StreamEnd.UNFINISHED):
            yield Reason(call=label, field=field, lost="the process ended in the middle of the stream", fix=ended)
        case Returned(payload=Value(json=value)) if node.call.is_child:
            yield from _child_reasons(node, value)
        case Returned() if returns_state(node):
            return
        case Returned(payload=Value(json=value)):
            yield from _unstable(node, "result", value)
        case outcome:
            yield from _unstable_reasons(node, outcome)


def _unstable_reasons(node: Node, outcome: Outcome) -> Iterator[Reason]:
    """Name each place of an exception or a stream whose value cannot be made anew."""
    if isinstance(outcome, Raised) and MCP_ERROR in node.span.attributes:
        return  # a client of MCP makes its exception of the server's error
    if isinstance(outcome, Raised):
        yield from _unstable(node, "exception.args", outcome.exception.args)
        yield from _unstable(node, "exception.state", outcome.exception.state)
    elif isinstance(outcome, Streamed):
        yield from _unstable(node, "result", outcome.result)
        for number, chunk in enumerate(outcome.chunks):
            if chunk.data is None:
                yield from _unstable(node, f"chunk[{number}]", chunk.value)


def _child_reasons(node: Node, outcome: Json) -> Iterator[Reason]:
    """Name what a replay cannot give back of a program that was started."""
    from reenact.values import child

    fix = "declare the function around it with @reenact.tool, so that its result stands for it"
    if why := child.lost(outcome):
        yield Reason(call=node.label, field="child", lost=f"{why}; a replay refuses it", fix=fix)
    if MARK in child.conversation(outcome):
        lost = "what it said word for word, since redaction changed some; who reads by counting reads on elsewhere"
        keep = "keep such values in the policy (docs/policies.md), or declare the function around it with @reenact.tool"
        yield Reason(call=node.label, field="child", lost=lost, fix=keep)
    for path, how in child.changed(outcome):
        if how != "made":
            lost = f"it {how} {path}, whose state before was not kept"
            yield Reason(call=node.label, field="files", lost=lost, fix=fix)


def _state_reasons(node: Node) -> Iterator[Reason]:
    """Name what an answer cannot do of what a tool did beside giving its result."""
    if is_mixed(node):
        lost = "what it printed, since it was too much; an answer does not print it"
        yield Reason(call=node.label, field="printed", lost=lost, fix=f"print apart from {node.call.name}")
    if isinstance(folder := node.span.attributes.get(FOLDER), str):
        lost = f"the working folder that it left behind ({folder}); an answer changes none"
        yield Reason(call=node.label, field="state", lost=lost, fix="change the working folder outside of a tool")
    if isinstance(generators := node.span.attributes.get(DREW), str):
        lost = f"where {generators} stands, which the program had seeded: an answer draws nothing"
        yield Reason(call=node.label, field="state", lost=lost, fix="let the tool draw from a generator of its own")
    changed = unrestored(node)
    if not changed:
        return
    if not is_found(node):
        unspelled = str(node.span.attributes.get(UNSPELLED) or "it changed while it gave its pieces")
        lost = f"what it changed in memory ({', '.join(changed[:5])}): {unspelled}"
        fix = f"keep in {node.call.name} what only tools use, or let it change plain data"
        yield Reason(call=node.label, field="state", lost=lost, fix=fix)
        return
    why = ", ".join(acted(node)[:3]) or "use state that another call changed so"
    lost = f"what it changed in memory ({', '.join(changed[:5])}); it is not run again, since it did or may {why}"
    fix = f"keep the state apart from {node.call.name}, or declare with @reenact.tool the part that acts outside"
    yield Reason(call=node.label, field="state", lost=lost, fix=fix)


def _unstable(node: Node, field: str, value: Json) -> Iterator[Reason]:
    fix = f"let {node.call.name} return plain data, a dataclass or a pydantic model"
    for place in typed.unstable_places(value):
        yield Reason(call=node.label, field=f"{field}{place}", lost="a value that cannot be rebuilt", fix=fix)


def _run_reasons(run: Run, history: History | None) -> Iterator[Reason]:
    if run.root is None:
        yield Reason(call="run", field="root", lost="the root span is missing", fix="export the whole trace")
    else:
        yield from _end_reasons(run.root)
    if orphans := [node for node in run.nodes if node.orphan]:
        lost = f"{len(orphans)} spans hang below a span that is not here"
        yield Reason(call="run", field="structure", lost=lost, fix="export the whole trace, unsampled")
    if not run.entry:
        yield Reason(
            call="run",
            field="entry",
            lost="how the program was started",
            fix="name the program: `reenact replay RUN -- CMD`, or " + _RECORD,
        )
    suppressed = run.root.span.attributes.get("reenact.suppressed") if run.root else None
    if suppressed:
        lost = f"{suppressed} calls made under suppress_tracing"
        yield Reason(call="run", field="calls", lost=lost, fix="do not suppress calls that a replay must answer")
    yield from _dropped_reasons(run)
    yield from _input_reasons(run)
    yield from _printed_reasons(run)
    for note in lost_spans(run.notes):
        fix = "export the trace anew, or mend the ids: any of them may be a call of this run"
        yield Reason(call="run", field="calls", lost=note, fix=fix)
    unrecorded = run.root.span.attributes.get("reenact.unrecorded") if run.root else None
    if unrecorded:
        lost = f"{unrecorded} HTTP calls whose body is a stream, or that are a web socket's; a replay refuses them"
        yield Reason(call="run", field="calls", lost=lost, fix="declare the function around them with @reenact.tool")
    yield from carrier_reasons(run)
    yield from _undeclared_reasons(run)
    yield from _written_reasons(run)
    yield from _draw_reasons(run)
    if any(PAUSES in node.span.attributes for node in run.nodes):
        from reenact.graph.waits import wait_reasons  # most programs never pause

        yield from wait_reasons(run)
    if unit.inbound(run) is not None:
        from reenact.graph.units import unit_reasons

        yield from unit_reasons(run, history)


def _server_reasons(run: Run) -> Iterator[Reason]:
    """Say that what the process did for others is not in its own run, and that nobody asks for it in a replay."""
    units = unit.units_served(run)
    if units is None:
        return
    if units:
        lost = f"{units} units of work that others asked its process for; a replay of the process has nobody who asks"
        fix = "replay one of them: `reenact replay ID`, as `reenact ls` lists them"
    else:
        lost = "who asks: it is a server's process, and a replay of it has nobody who does"
        fix = "declare the function that does what is asked with @reenact.unit, if no unit of it is a run of its own"
    yield Reason(call="run", field=UNITS, lost=lost, fix=fix)


def _end_reasons(root: Node) -> Iterator[Reason]:
    """Say why the recording has no end, or not the program's own."""
    attributes = root.span.attributes
    if cut := attributes.get(_CUT):
        lost = f"no more could be written ({cut}); what it did from then on is missing"
        yield Reason(call="run", field="end", lost=lost, fix=_ROOM)
    elif stopped := attributes.get(STOPPED):
        lost = f"{stopped} stopped the server; what it does at its own end is not recorded"
        if not attributes.get("reenact.incomplete"):
            lost = f"{stopped} made it end; a replay sends that by the clock, behind its last call"
        yield Reason(call="run", field="end", lost=lost, fix="nothing to do")
    elif attributes.get("reenact.incomplete"):
        from reenact.values.ending import cut_off_by  # few recordings are cut off

        lost = f"{cut_off_by(attributes)}; what it did last may be missing"
        yield Reason(call="run", field="end", lost=lost, fix="nothing to do")


def _input_reasons(run: Run) -> Iterator[Reason]:
    """Name what was read from the standard input and not kept: the program itself, for one."""
    if run.entry.get("main") == "<stdin>":
        lost = "the program, which Python read from its standard input"
        yield Reason(call="run", field="entry point", lost=lost, fix="keep it in a file, and run that")
    if run.entry.get("replaced"):
        lost = "what the process did before this program took its place (os.exec); a replay does it not"
        yield Reason(call="run", field="entry point", lost=lost, fix="start the program by `subprocess`, or alone")
    for node in run.nodes:
        if isinstance(stdin_text := node.span.attributes.get(STDIN), str) and '"lost":' in stdin_text:
            lost = "what it read from its standard input behind the first 4 MiB"
            yield Reason(call="run", field="stdin", lost=lost, fix="read it from a file")


def _printed_reasons(run: Run) -> Iterator[Reason]:
    """Name what the program printed where a replay does not run it."""
    texts = (node.span.attributes.get(OUTPUT) for node in run.nodes)
    if any(isinstance(text, str) and PRINTED_INSIDE in text for text in texts):
        fix = "print outside of what a client or a transport calls back"
        yield Reason(call="run", field="printed", lost=f"{PRINTED_INSIDE}; no replay prints them", fix=fix)


def _dropped_reasons(run: Run) -> Iterator[Reason]:
    """Name what the recorder itself could not write down: at its bound, on a full disk, or by a fault of its own."""
    if dropped := _sum(run, "reenact.dropped"):
        lost = f"{dropped} records that could not be written to the journal, or not whole"
        yield Reason(call="run", field="records", lost=lost, fix="make room on the disk, or raise REENACT_JOURNAL_MAX")
    if failures := _sum(run, FAILURES):
        lost = f"what reenact failed to write down, {failures} times, by a fault of its own"
        yield Reason(call="run", field="records", lost=lost, fix="report what it logged on stderr, and record again")


def _sum(run: Run, name: str) -> int:
    counts = [node.span.attributes.get(name) for node in run.nodes]
    return sum(count for count in counts if isinstance(count, int))


_DECLARE = (
    "declare the function around it with @reenact.tool and record again, "
    "or replay this recording with --stub MODULE:FUNCTION=VALUE"
)


def _undeclared_reasons(run: Run) -> Iterator[Reason]:
    for node in run.nodes:
        attribute = node.span.attributes.get(UNDECLARED)
        for what in as_list(parsed_or_none(attribute)) if isinstance(attribute, str) else ():
            act = as_text(what)
            if act.startswith(_ON_FILES):  # of a recorder that did not note what was written
                lost = f"{act}: a replay writes it to a copy, and has nothing to compare it with"
                yield Reason(call="run", field=SIDE_EFFECT, lost=lost, fix=_RECORD_AGAIN)
            elif act.startswith(NATIVE_CODE):
                lost = f"{act}: what it does is not witnessed"
                fix = _DECLARE
                yield Reason(call="run", field=SIDE_EFFECT, lost=lost, fix=fix)
            else:
                lost = f"{act}: {_FREE if act.startswith(LOCKED) else 'a replay refuses it'}"
                fix = _DECLARE
                yield Reason(call="run", field=SIDE_EFFECT, lost=lost, fix=fix)


def _written_reasons(run: Run) -> Iterator[Reason]:
    """Name what the program may have read of files that it then changed, and that nobody has any more."""
    if all(node.span.attributes.get(WRITTEN, NOTHING_WRITTEN) == NOTHING_WRITTEN for node in run.nodes):
        return
    from reenact.values.file_writes import FileWrites, writes_of

    writes = writes_of(run) or FileWrites()
    yield from _tool_file_reasons(run, writes)
    for file in (*writes.files.values(), *writes.caches.values()):
        before = file.before or {}
        if before.get("read") is True:
            lost = f"{writes.named(file.path)} as it was before: {as_text(before.get('lost'))}"
            fix = "let the policy keep its values" if "redaction" in lost else "keep it smaller than 64 KiB"
            fix += ", or read it in a function declared with @reenact.tool"
            yield Reason(call="run", field="files", lost=lost, fix=fix)
    mixed = {file.part_of or file.path: None for file in writes.files.values() if file.mixed}
    for path in mixed:
        lost = f"{writes.named(path)} as it was whenever it was read: others may have changed it meanwhile"
        yield Reason(call="run", field="files", lost=lost, fix="read it in a function declared with @reenact.tool")
    for file in writes.files.values():
        if file.read_back:
            lost = f"{writes.named(file.path)} as the program read it: what `logging` wrote has the times of the replay"
            yield Reason(call="run", field="files", lost=lost, fix="read it in a function declared with @reenact.tool")
    for path in sorted(writes.rewritten - _by_programs(run)):
        lost = f"{writes.named(path)} as it was before: native code or another program wrote over it"
        yield Reason(call="run", field="files", lost=lost, fix="do that in a function declared with @reenact.tool")
    if writes.more:
        lost = f"what {writes.more} more files became; the first 1,000 of a run are noted"
        yield Reason(call="run", field="files", lost=lost, fix="write them in a function declared with @reenact.tool")


def _tool_file_reasons(run: Run, writes: FileWrites) -> Iterator[Reason]:
    """Name the files that a tool changed, that an answer cannot change likewise, and that other code meets."""
    from reenact.values.tool_files import tool_files

    for node in run.nodes:
        for file in tool_files(node):
            path = f"{writes.cwd}/{file.path}" if writes.cwd and not file.path.startswith("/") else file.path
            noted = writes.files.get(path)
            if noted is not None and noted.answered:
                continue
            if file.lost and (noted is not None or path in writes.read_of_tools):
                lost = f"what it wrote to {file.path}, which other code meets: {file.lost}"
                fix = f"let {node.call.name} write less at once, or close what it writes to"
                yield Reason(call=node.label, field="files", lost=lost, fix=fix)


def _by_programs(run: Run) -> set[str]:
    """Name what other programs changed that the run started."""
    from reenact.values import child

    outcomes = (node.outcome for node in run.nodes if node.call.is_child)
    payloads = (each.payload for each in outcomes if isinstance(each, Returned))
    return {path for each in payloads if isinstance(each, Value) for path, _ in child.changed(each.json)}


def _redacted(run: Run) -> int:
    """Count the replaced values that the run carries, in requests, replies and what it read."""
    return sum(
        count_in(value)
        for node in run.nodes
        for name, value in node.span.attributes.items()
        if isinstance(value, str)
        and name in {"input.value", "output.value", "reenact.stream.chunks", "reenact.exception", STDIN}
    )


def _kit(run: Run, calls: list[Node], history: History | None) -> Iterator[KitItem]:
    models = [node for node in calls if node.kind is CallKind.LLM]
    requests = [asked(node) for node in models]
    known_requests = [request for request in requests if request is not None]
    replies = [answered(node) for node in models if not isinstance(node.outcome, Raised | Unfinished)]
    tools = [node for node in calls if node.kind is CallKind.TOOL]
    exact = [node for node in calls if OURS in node.span.attributes]
    yield _share("inputs, byte-exact", len(exact), len(calls), _RECORD)
    system = [m for r in known_requests for m in r.messages if m.role in {"system", "developer"}]
    prompt = "".join(part.text for message in system[:1] for part in message.parts if isinstance(part, Text))
    whole = len(known_requests) == len(models) and len(exact) == len(
        calls
    )  # every request is there: what is absent was not sent
    detail = f"{len(prompt)} characters, {_digest(prompt)}" if prompt else "none was sent"
    yield _either("system prompt", bool(system), not whole, detail)
    schemas = {compact(schema) for request in known_requests for schema in request.tools}
    detail = (
        f"{len(schemas)} sent, {_digest(''.join(sorted(schemas)))}" if schemas else "" if tools else "none were sent"
    )
    yield _either("tool schemas", bool(schemas), bool(tools) and not whole, detail)
    kept_whole = sum("request" not in rebuilt_parts(node) for node in models if asked(node) is not None)
    yield _share("parameters", kept_whole, len(models), _RECORD)
    yield _share("asked model", sum(bool(r.model) for r in known_requests), len(models), _RECORD)
    yield _share("resolved model", sum(r is not None and bool(r.model) for r in replies), len(replies), _RECORD)
    hosts = {str(h) for node in models if (h := node.span.attributes.get("server.address"))}
    yield _either("provider and region", bool(hosts), bool(models), ", ".join(sorted(hosts)))
    yield from _content_kit(calls, tools)
    yield from _world_kit(run, calls, models)
    if unit.inbound(run) is not None:
        from reenact.graph.units import unit_kit

        yield from unit_kit(run, history)


def _digest(text: str) -> str:
    """Spell what tells one version of a prompt or of schemas from another."""
    return f"sha256 {hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def _content_kit(calls: list[Node], tools: list[Node]) -> Iterator[KitItem]:
    retrievers = [node for node in calls if node.kind is CallKind.RETRIEVER]
    yield _share(
        "retrieved content",
        sum(isinstance(n.outcome, Returned | Streamed) for n in retrievers),
        len(retrievers),
        _RECORD,
    )
    answered_count = sum(not isinstance(node.outcome, Unfinished) for node in tools)
    yield _share("tool requests and results", answered_count, len(tools), "declare tools with @reenact.tool")
    embeddings = [node for node in calls if node.kind is CallKind.EMBEDDING]
    model_count = sum(1 for node in embeddings if (request := asked(node)) is not None and request.model)
    yield _share("embedding model", model_count, len(embeddings), _RECORD)


def _world_kit(run: Run, calls: list[Node], models: list[Node]) -> Iterator[KitItem]:
    streams = [node for node in models if isinstance(node.outcome, Streamed)]
    yield _share("times", sum(node.span.end_ns > 0 for node in calls), len(calls), _RECORD)
    yield _share("time of first token", sum(bool(_chunks(node)) for node in streams), len(streams), _RECORD)
    yield _either("order of releases", any(node.end_order for node in calls), bool(calls), "")
    commit = run.surroundings.get("commit")
    build = run.surroundings.get("build")
    yield _either(
        "commit", isinstance(commit, dict) and bool(commit.get("id")), True, _commit(commit), "run from a git work tree"
    )
    yield _either("build", bool(build), True, str(build or ""), "set REENACT_BUILD to the image or build id")
    environment = run.surroundings.get("environment")
    yield _either("settings", bool(environment), True, "", "name them in REENACT_KEEP_ENV")
    flags = sorted({name for node in run.nodes for name in _flags(node)})
    fix = "tell them: reenact.flag(name, value)"
    yield _either("feature flags", bool(flags), False, ", ".join(flags[:5]) + (", …" if len(flags) > 5 else ""), fix)
    seed = run.surroundings.get("hash_seed")
    fix = "set PYTHONHASHSEED=0, or record with `reenact run -- …`, which sets one"
    yield _either("hash seed", seed not in (None, "random"), True, str(seed or ""), fix)
    yield _clock_kit(run)
    yield _either("entry point", bool(run.entry), True, _argv(run.entry), _RECORD)


def _clock_kit(run: Run) -> KitItem:
    """Say whether clock and chance are there: a root says so even where nothing was drawn."""
    tape_text = run.root.span.attributes.get("reenact.tape") if run.root is not None else None
    tape = parsed_or_none(tape_text) if isinstance(tape_text, str) else None
    if not isinstance(tape, dict):
        return KitItem(name="clock and chance", state="missing", fix=_RECORD)
    untaped = tape.get("untaped")
    if not isinstance(untaped, dict) or not untaped:
        return KitItem(name="clock and chance", state="present")
    detail = "; ".join(f"{source}: {why}" for source, why in untaped.items())
    return KitItem(name="clock and chance", state="partial", detail=detail, fix="use Python 3.11, 3.12 or 3.13")


def _draw_reasons(run: Run) -> Iterator[Reason]:
    """Name draws of clock and chance that were not kept, or that redaction changed."""
    lost = redacted = forgotten = 0
    for node in run.nodes:
        texts = [value for name in _DRAWS if isinstance(value := node.span.attributes.get(name), str)]
        lost += sum(int(count) for text in texts for count in _LOST.findall(text))
        redacted += sum(text.count(MARK) for text in texts)
        many = node.span.attributes.get("reenact.draws.forgotten")
        forgotten += many if isinstance(many, int) else 0
    field, fix = "clock and chance", "draw less often between two calls"
    if lost:
        yield Reason(call="run", field=field, lost=f"{lost} draws past the first 10,000 of a loop", fix=fix)
    if forgotten:
        said_lost = f"the draws of {forgotten} tasks or threads that made no call"
        yield Reason(call="run", field=field, lost=said_lost, fix="open a run for each unit of work")
    if redacted:
        fix = "draw no value that looks like a credential, or configure the redaction"
        yield Reason(call="run", field=field, lost=f"{redacted} drawn values were redacted", fix=fix)


def _flags(node: Node) -> Iterator[str]:
    """Name the feature flags of which a call tells a value."""
    for attribute in _DRAWS:
        if isinstance(text := node.span.attributes.get(attribute), str):
            yield from (str(parsed_or_none(f'"{name}"')) for name in _FLAGS.findall(text))


_FLAGS = re.compile(r'"[^"\\ ]+ flag ((?:[^"\\]|\\.)+)",\s*\[')
_DRAWS = ("reenact.draws", "reenact.draws.before", "reenact.draws.rest", "reenact.draws.earlier")
_LOST = re.compile(r'\{"lost":\s*(\d+)\}')


def _chunks(node: Node) -> int:
    return len(node.outcome.chunks) if isinstance(node.outcome, Streamed) else 0


def _commit(commit: Json) -> str:
    if not isinstance(commit, dict):
        return ""
    return f"{str(commit.get('id') or '')[:12]}{', with uncommitted changes' if commit.get('uncommitted') else ''}"


def _argv(entry: dict[str, Json]) -> str:
    argv = entry.get("argv")
    return " ".join(str(word) for word in argv) if isinstance(argv, list) else ""


def _share(name: str, have: int, of: int, fix: str) -> KitItem:
    if of == 0:
        return KitItem(name=name, state="not applicable")
    state = "present" if have == of else "missing" if have == 0 else "partial"
    return KitItem(name=name, state=state, detail=f"{have} of {of}", fix="" if state == "present" else fix)


def _either(name: str, have: object, applies: object, detail: str, fix: str = _RECORD) -> KitItem:
    if not applies and not have:
        return KitItem(name=name, state="not applicable", detail=detail)
    return KitItem(name=name, state="present" if have else "missing", detail=detail, fix="" if have else fix)


def facts(nodes: Iterable[Node]) -> dict[str, int]:
    """Count calls by kind, lower case, leaving out roots."""
    counts: dict[str, int] = {}
    for node in nodes:
        if not node.span.attributes.get("reenact.run.root") and PROCESS_REST not in node.span.attributes:
            counts[node.call.word] = counts.get(node.call.word, 0) + 1
    return counts
