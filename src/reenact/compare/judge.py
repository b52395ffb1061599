"""A replay held against its recording: same, diverged, failed, or not to be judged.

The ledger decides, not the program, which may have swallowed whatever was thrown into it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

from reenact.compare.answers import answer_differences
from reenact.compare.content import gist
from reenact.compare.ending import crashed, died_of, was_cut_off
from reenact.compare.fields import is_structural
from reenact.compare.live import LiveTold, told_of_live
from reenact.compare.redaction import Renamings, redaction_of
from reenact.compare.return_values import returned_differences
from reenact.compare.swapped import swapped
from reenact.compare.unasked_calls import Recorded
from reenact.values import unit
from reenact.values.call import CallKind, Streamed, StreamEnd, Unfinished
from reenact.values.difference import ABSENT, Divergence, FieldDifference, divergence_to_json, one_line
from reenact.values.effects import weakest
from reenact.values.json import Json
from reenact.values.judgement import PrintedTold, ReplayResult, Strictness, WritesTold
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.run import Node, Run

if TYPE_CHECKING:
    from reenact.compare.console_text import Parts
    from reenact.values.file_writes import FileWrites

__all__ = ["ReplayResult", "judge_replay", "one_line"]

Entry = Mapping[str, Json]
_LABEL = re.compile(r"(.+ #\d+)(?:: | was in flight\b)")
_MODELS = frozenset({CallKind.LLM, CallKind.EMBEDDING})


_MET = frozenset({"answered", "ran_again"})
"""Entries of recorded calls that the program made."""


class _Stop(Enum):
    """What a miss means."""

    DIVERGED = "the program asked for something else"
    ENDED = "the recording ends here: the process was killed"
    FAILED = "the recording holds the call, and not what could answer it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the recorded program gave out, and what this one did; a None in a pair stands for one that does not know."""

    wrote: tuple[FileWrites | None, FileWrites | None] | None = None
    """The files; None where they are not to be compared."""
    printed: tuple[Parts | None, Parts | None] | None = None
    """What came to the standard streams; None where that is not to be compared."""
    why: str = ""
    """Why nothing of it is to be compared but how the program ended."""
    strictness: Strictness = Strictness.EXACT
    printed_again: Parts | None = None
    """What a second replay of the same program printed."""
    wrote_again: FileWrites | None = None
    """What it wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _GivenOut:
    """What came of comparing the outcome."""

    writes: WritesTold = field(default_factory=WritesTold)
    printed: PrintedTold = field(default_factory=PrintedTold)
    divergences: list[dict[str, Json]] = field(default_factory=list[dict[str, Json]])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Miss:
    """A miss of the ledger and the recorded call that it is about."""

    entry: Entry
    node: Node | None
    place: float
    """Where it lies in the recorded causal order."""
    means: _Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unasked:
    """Recorded calls that nobody asked for."""

    passed: list[Node]
    not_reached: int
    nothing_owed: bool


def judge_replay(  # noqa: PLR0913 - what is judged, and by what
    recorded: Run,
    siblings: Sequence[Run],
    replay: Run | None,
    ledger: Sequence[Entry],
    *,
    exit_code: int | None,
    recorded_exit: int | None,
    outcome: Outcome | None = None,
    beside: Sequence[Run] = (),
) -> ReplayResult:
    """Judge a replay of `recorded` and its `siblings`, the other runs of the same recording, by its ledger.

    An exit code of None says that nobody knows how the program ended; untouched siblings are owed nothing then.
    """
    ledger = _up_to_the_delivery(ledger)
    result = replace(_totals(ledger, replay), exit_code=exit_code, recorded_exit=recorded_exit, why=_unbegun(ledger))
    if result.why:
        return result
    (ledger, stopped), of = _until_prevented(recorded, siblings, ledger), Recorded((recorded, *siblings))
    misses = [_read_miss(at, ledger, of, recorded) for at, entry in enumerate(ledger) if entry.get("t") == "miss"]
    refused = [] if stopped else [at for at, entry in enumerate(ledger) if entry.get("t") == "refused"]
    answered = _answered(of, ledger, misses)
    live = _live(of, replay, beside, ledger, answered)
    unasked = _unasked(of, ledger, answered, misses, live, whole=exit_code is not None)
    renamings = Renamings(recorded, replay, ledger)
    divergences = [*_divergences(of, ledger, misses, refused, unasked.passed, live), *_conflicts(renamings)]
    divergences = [*(() if stopped else crashed(recorded, replay, divergences, exit_code)), *divergences]
    outputs, outcome = _GivenOut(), outcome or Outcome()
    if not (divergences or misses or refused or stopped or outcome.strictness is Strictness.IGNORE):
        ends = _ends(recorded, replay, exit_code, recorded_exit, alone=not siblings, compares=not outcome.why)
        divergences = (outputs := _given_out(recorded, outcome, ends, renamings)).divergences
    divergences, stopped = _by_the_program(divergences, ledger, result, stopped, of.nodes)
    events = answered or result.ran_again or misses or refused or live.count or _is_told(recorded, replay, outcome)
    word, why = _result(divergences, misses, result, live.unknown, stopped, nothing=unasked.nothing_owed and not events)
    return replace(
        result,
        result=word,
        why=why,
        answered=dict(Counter(of.nodes[each].call.word for each in answered if each not in of.frames)),
        unconsumed=[_node_entry(node) for node in unasked.passed if divergences or not stopped],
        not_reached=unasked.not_reached,
        live=live.count,
        divergences=divergences,
        writes=outputs.writes,
        printed=outputs.printed,
        strictness=outcome.strictness,
        redaction=None if _all(ledger, "forked") else redaction_of(recorded, of.nodes, ledger, divergences),
        ended_with=next((miss.node.label for miss in misses if miss.means is _Stop.ENDED and miss.node), None),
    )


def _unbegun(ledger: Sequence[Entry]) -> str:
    """Say why there is nothing to judge; empty where there is."""
    if damaged := _all(ledger, "damaged"):
        return f"the program changed what the replay took down about it (its ledger): {as_text(damaged[0].get('why'))}"
    if not _all(ledger, "joined"):
        return "the program never joined the replay"
    if unfit := _all(ledger, "unfit"):
        return f"--stub {as_text(unfit[0].get('name'))} cannot stand in its place: {as_text(unfit[0].get('why'))}"
    undelivered = _all(ledger, "undelivered")
    stopped = _all(ledger, "miss") or _all(ledger, "refused")
    return as_text(undelivered[0].get("why")) if undelivered and not stopped else ""


def _result(
    divergences: Sequence[object],
    misses: Sequence[_Miss],
    result: ReplayResult,
    unknown: str,
    stopped: str,
    *,
    nothing: bool,
) -> tuple[str, str]:
    """Say what a replay came to, and why where nothing can be said of it."""
    if divergences:
        return "diverged", ""
    if lost := next((miss for miss in misses if miss.means is _Stop.FAILED), None):
        return "failed", as_text(lost.entry.get("reason"))
    if stopped:
        return "unjudged", stopped
    if nothing:
        return "unjudged", "the recording holds no call that could be answered, and none was made"
    if result.other_code:
        return "unjudged", result.of_other_code
    if result.unrestored:
        return "unjudged", _of_state(result.unrestored[0])
    return ("unjudged", f"what {unknown} was answered live was not written down") if unknown else ("same", "")


def _until_prevented(recorded: Run, siblings: Sequence[Run], ledger: Sequence[Entry]) -> tuple[Sequence[Entry], str]:
    """Cut a ledger behind what was refused and says nothing of the program; give why, too."""
    if not _all(ledger, "refused") and not _all(ledger, "miss"):
        return ledger, ""
    from reenact.compare.refusals import until_prevented  # most replays are refused nothing

    return until_prevented(recorded, siblings, ledger)


def _by_the_program(
    divergences: list[dict[str, Json]],
    ledger: Sequence[Entry],
    result: ReplayResult,
    stopped: str,
    nodes: Mapping[str, Node],
) -> tuple[list[dict[str, Json]], str]:
    """Give what differs, and why nothing can be said: where the sealed world may be why it differs, nothing does.

    Nor does what differs behind a call that was answered and whose change in memory nobody wrote down.
    """
    if not divergences or stopped:
        return divergences, stopped
    lost = next((each for each in result.unrestored if not each.get("why")), None)
    if lost is not None and not _begins_before(divergences[0], lost, nodes):
        return [], _of_state(lost)
    from reenact.compare.refusals import by_the_world  # most replays differ in nothing

    why = by_the_world(divergences, ledger, result.world, nodes)
    return ([], why) if why else (divergences, "")


def _begins_before(divergence: Mapping[str, Json], call: Mapping[str, Json], nodes: Mapping[str, Node]) -> bool:
    """Tell whether the recorded call that differs began before another one."""
    differing, other = nodes.get(as_text(divergence.get("node_a"))), nodes.get(as_text(call.get("id")))
    return differing is not None and other is not None and differing.start_order < other.start_order


def _of_state(entry: Mapping[str, Json]) -> str:
    """Say that a program went on with another state than the recorded one."""
    names = ", ".join(as_text(each) for each in as_list(entry.get("changed"))[:5]) or "state"
    why = as_text(entry.get("why"))
    sentence = f"what {as_text(entry.get('call'))} changed in memory ({names}) could not be put back"
    return f"{sentence}: {why}" if why else sentence


def _answered(of: Recorded, ledger: Sequence[Entry], misses: Sequence[_Miss]) -> list[str]:
    """List the recorded calls that were answered, by id, as often as they were."""
    failed = {miss.node.id for miss in misses if miss.node and miss.means is not _Stop.DIVERGED}
    answer_ids = [as_text(entry.get("id")) for entry in _all(ledger, "answered")]
    return [node_id for node_id in answer_ids if node_id in of.nodes and node_id not in failed]


def _live(
    of: Recorded, replay: Run | None, beside: Sequence[Run], ledger: Sequence[Entry], answered: Sequence[str]
) -> LiveTold:
    """Compare what came back live, in `replay` or runs `beside` it, with its recording, where anything went."""
    entries = _all(ledger, "live")
    if not entries:
        return LiveTold()
    again = [as_text(entry.get("id")) for entry in _all(ledger, "ran_again")]
    return told_of_live(of, [run for run in (replay, *beside) if run], entries, {*answered, *again})


def _totals(ledger: Sequence[Entry], replay: Run | None) -> ReplayResult:
    """Take over what the ledger says by itself."""
    return ReplayResult(
        result="unjudged",
        replay=replay.id if replay else None,
        ran_again=dict(Counter(as_text(entry.get("kind")).lower() for entry in _all(ledger, "ran_again"))),
        unrestored=[each for each in _plain(ledger, "unrestored") if each.pop("foretold", None) is not True],
        other_code=_plain(ledger, "other_code"),
        live=len(_all(ledger, "live")),
        beyond=sum(entry.get("beyond") is True for entry in _all(ledger, "answered")),
        misses=_plain(ledger, "miss"),
        refused=_plain(ledger, "refused"),
        ignored=_plain(ledger, "ignored"),
        volatile=_plain(ledger, "volatile"),
        released_out_of_order=_plain(ledger, "released_out_of_order"),
        unwatched=_plain(ledger, "unwatched"),
        left=len(_all(ledger, "left")),
        killed=_plain(ledger, "killed"),
        stubs=_stubs(ledger),
        world=weakest(as_object(each.get("world")) for each in _all(ledger, "guard")),
        ways_out=tuple(
            dict.fromkeys(as_text(way) for each in _all(ledger, "guard") for way in as_list(each.get("ways")))
        ),
        reached=dict(Counter(_reached(each) for each in _all(ledger, "reached") if not each.get("error"))),
    )


def _stubs(ledger: Sequence[Entry]) -> dict[str, int | None]:
    """Count the calls of each function that stood in the place of the agent's own; None for one that never stood."""
    asked, placed, calls = (
        Counter(as_text(entry.get("name")) for entry in _all(ledger, what))
        for what in ("stub", "substitute", "substituted")
    )
    return {name: calls[name] if name in placed else None for name in asked}


def _reached(entry: Entry) -> str:
    host = as_text(entry.get("host"))
    return f"[{host}]:{entry.get('port')}" if ":" in host else f"{host}:{entry.get('port')}"


def _up_to_the_delivery(ledger: Sequence[Entry]) -> Sequence[Entry]:
    """Leave out what came after a request had been delivered: the shutdown of its application is no part of it."""
    over = next((at for at, entry in enumerate(ledger) if entry.get("t") == "delivered"), len(ledger))
    return ledger[:over]


def _node_entry(node: Node) -> dict[str, Json]:
    return {"id": node.id, "call": node.label, "kind": node.call.word, "asked": gist(node)}


def _all(ledger: Sequence[Entry], what: str) -> list[Entry]:
    return [entry for entry in ledger if entry.get("t") == what]


def _was_stopped(ledger: Sequence[Entry]) -> bool:
    """Tell whether something was refused, so that the program cannot be expected to have made what was recorded later.

    Answers to other questions (`--after nearest`) do not stop it; behind a live one nothing recorded is to be expected.
    """
    return any(miss.get("onward") not in {"nearest", "writes"} for miss in _all(ledger, "miss")) or bool(
        _all(ledger, "refused")
    )


def _plain(ledger: Sequence[Entry], what: str) -> list[dict[str, Json]]:
    return [{key: value for key, value in entry.items() if key != "t"} for entry in _all(ledger, what)]


def _place(at: int, ledger: Sequence[Entry], of: Recorded) -> float:
    """Place an entry that names no recorded call right behind the furthest call that was answered before it."""
    before = [as_text(entry.get("id")) for entry in ledger[:at] if entry.get("t") in _MET]
    return max((of.rank[node_id] for node_id in before if node_id in of.rank), default=0) + 0.5


def _read_miss(at: int, ledger: Sequence[Entry], of: Recorded, recorded: Run) -> _Miss:
    entry = ledger[at]
    node = of.nodes.get(as_text(entry.get("nearest")))
    if node is None and (match := _LABEL.match(as_text(entry.get("reason")))):
        node = of.by_label.get(match[1])
    means = _means(entry, node, recorded)
    before = {as_text(entry.get("id")) for entry in ledger[:at] if entry.get("t") in _MET}
    again = node is not None and node.id in before and entry.get("field") != "outcome"
    place = _place(at, ledger, of) if node is None or again else float(of.rank[node.id])
    return _Miss(entry=entry, node=None if again else node, place=place, means=means)


def _means(entry: Entry, node: Node | None, recorded: Run) -> _Stop:
    """Tell a program that asked for something else from a recording that cannot answer what it holds."""
    if entry.get("field") != "outcome" or node is None or "recorded" in entry:
        return _Stop.DIVERGED
    match node.outcome:
        case Unfinished() | Streamed(end=StreamEnd.UNFINISHED):
            killed = bool(node.span.attributes.get("reenact.incomplete")) or was_cut_off(recorded)
            return _Stop.ENDED if killed else _Stop.FAILED
        case Streamed(end=StreamEnd.ABANDONED):
            return _Stop.DIVERGED  # the program reads on where it stopped reading before
        case _:
            return _Stop.FAILED


def _is_told(recorded: Run, replay: Run | None, outcome: Outcome) -> bool:
    """Tell whether a unit that calls nobody gave its answer again, and that was compared."""
    is_compared = outcome.strictness is not Strictness.IGNORE and not outcome.why
    return replay is not None and is_compared and bool(unit.leaves(recorded))


def _unasked(
    of: Recorded,
    ledger: Sequence[Entry],
    answered: list[str],
    misses: list[_Miss],
    live_calls: LiveTold,
    *,
    whole: bool,
) -> _Unasked:
    again = [as_text(entry.get("id")) for entry in _all(ledger, "ran_again")]
    touched = {of.run_of[node_id] for node_id in (*answered, *again) if node_id in of.run_of}
    touched |= {of.run_of[miss.node.id] for miss in misses if miss.node}
    uncompared = [entry for entry in _all(ledger, "live") if entry.get("compare") is not True]
    live = {as_text(entry.get("kind")) in _MODELS for entry in uncompared}
    live -= {of.nodes[node_id].kind in _MODELS for node_id in answered}
    owed = [
        node for node in of.answerable(None if whole else touched | {of.selected}) if (node.kind in _MODELS) not in live
    ]
    settled = {
        *answered,
        *again,
        *live_calls.stood_for,
        *of.covered(answered),
        *of.set_ups_like(answered),
        *(miss.node.id for miss in misses if miss.node),
    }
    left = [node for node in owed if node.id not in settled]
    reached = {*answered, *again, *live_calls.stood_for, *(miss.node.id for miss in misses if miss.node)}
    passed_nodes = of.passed(left, reached) if _was_stopped(ledger) else left
    return _Unasked(passed=passed_nodes, not_reached=len(left) - len(passed_nodes), nothing_owed=not owed)


def _divergences(
    of: Recorded, ledger: Sequence[Entry], misses: list[_Miss], refused: list[int], nodes: list[Node], live: LiveTold
) -> list[dict[str, Json]]:
    """List what differs, the first one first. What was refused after the first miss is its aftermath."""
    placed = [(miss.place, _of_miss(miss)) for miss in misses if miss.means is _Stop.DIVERGED]
    placed += [(float(of.rank[node.id]), divergence_to_json(_unconsumed(node))) for node in nodes]
    placed += [(float(of.rank[node.id]), _of_repeated(node, times)) for node, times in _repeated(of, ledger)]
    placed += [
        (float(of.rank.get(as_text(entry.get("id")), 0)), _of_change(entry)) for entry in _all(ledger, "changed")
    ]
    placed += live.found
    placed += [(float(of.rank[node.id]), swap) for node, swap in swapped(of, ledger)]
    first_miss = next((at for at, entry in enumerate(ledger) if entry.get("t") == "miss"), len(ledger))
    placed += [(_place(at, ledger, of), _of_refusal(ledger[at])) for at in refused if at < first_miss]
    return [divergence for _, divergence in sorted(placed, key=lambda each: each[0])]


def _unconsumed(node: Node) -> Divergence:
    return Divergence(
        kind="missing", call=node.label, field="call", a=gist(node), b=ABSENT, structural=True, node_a=node.id
    )


def _of_miss(miss: _Miss) -> dict[str, Json]:
    entry, node = miss.entry, miss.node
    absent = as_list(entry.get("absent"))
    missing = "recorded" in absent or (entry.get("recorded") is None and not entry.get("nearest"))
    divergence = divergence_to_json(
        Divergence(
            kind="changed" if node is not None else "extra",
            call=as_text(entry.get("call")),
            field=as_text(entry.get("field")),
            a=ABSENT if missing else entry.get("recorded"),
            b=ABSENT if "replay" in absent or "replay" not in entry else entry.get("replay"),
            structural=_is_structural(entry, node),
            node_a=node.id if node else None,
        )
    )
    if reason := entry.get("reason"):
        divergence["reason"] = reason
    elif node is not None and (part := _part(node, as_text(divergence["field"]))):
        divergence["part"] = part
    return divergence


def _part(node: Node, field: str) -> str:
    """Name the system prompt, or the schema of a tool, that a field of a call belongs to; empty for any other."""
    from reenact.compare.prompts import changed_part  # most replays miss nothing

    return changed_part(node, field)


def _repeated(of: Recorded, ledger: Sequence[Entry]) -> list[tuple[Node, int]]:
    """Find calls that were answered more than once: by several processes, each of which takes it once."""
    counted = Counter(as_text(entry.get("id")) for entry in _all(ledger, "answered"))
    several = ((of.nodes[each], times) for each, times in counted.items() if times > 1 and each in of.nodes)
    return [(node, times) for node, times in several if not node.call.is_handshake]


def _of_repeated(node: Node, times: int) -> dict[str, Json]:
    divergence = divergence_to_json(
        Divergence(
            kind="changed",
            call=node.label,
            field="call",
            a={"times": 1, "about": gist(node)},
            b={"times": times, "about": gist(node)},
            structural=True,
            node_a=node.id,
        )
    )
    divergence["reason"] = f"it was recorded once and asked for {times} times, by several processes"
    return divergence


def _conflicts(renamings: Renamings) -> Iterator[dict[str, Json]]:
    """Say where two processes took one redacted value for two."""
    for entry in renamings.conflicts:
        yield _conflict(entry)


def _conflict(entry: Entry) -> dict[str, Json]:
    call, pairs = as_text(entry.get("call")), as_object(entry.get("pairs"))
    divergence = divergence_to_json(
        Divergence(
            kind="changed",
            call=call,
            field="redaction key",
            a=[*pairs.values()],
            b=[*pairs],
            structural=True,
            node_a=as_text(entry.get("id")),
        )
    )
    divergence["reason"] = "matched by renaming, but another process of the replay took these values for others"
    return divergence


def _of_change(entry: Entry) -> dict[str, Json]:
    """Say that a tool which ran again did not come to what was recorded."""
    absent = as_list(entry.get("absent"))
    is_live = entry.get("live") is True
    divergence = divergence_to_json(
        Divergence(
            kind="changed",
            call=as_text(entry.get("call")),
            field=as_text(entry.get("field")),
            a=ABSENT if "recorded" in absent else entry.get("recorded"),
            b=ABSENT if "replay" in absent else entry.get("replay"),
            structural=is_live,
            node_a=as_text(entry.get("id")),
        )
    )
    return {**divergence, "live": "structure"} if is_live else divergence


def _is_structural(entry: Entry, node: Node | None) -> bool:
    listed = [as_object(each) for each in as_list(entry.get("differences"))]
    fields = [FieldDifference(path=as_text(d.get("field")), a=d.get("recorded"), b=d.get("replay")) for d in listed]
    return node is None or not fields or any(is_structural(field, node.kind) for field in fields)


def _of_refusal(entry: Entry) -> dict[str, Json]:
    what = f"{as_text(entry.get('what'))} at {as_text(entry.get('where'))}"
    divergence = divergence_to_json(
        Divergence(kind="extra", call="run", field="side effect", a=ABSENT, b=what, structural=True)
    )
    divergence["reason"] = f"{what} was refused"
    return divergence


def _ends(
    recorded: Run, replay: Run | None, code: int | None, recorded_code: int | None, *, alone: bool, compares: bool
) -> list[Divergence]:
    """Compare how the program ended, as far as that is known. A recording that was cut off has no end."""
    if code is None:
        return []
    if was_cut_off(recorded):  # by a signal, or by itself (`os._exit`)
        ended = recorded_code is not None and recorded_code >= 0 and recorded_code != code
        return [_of_run("exit code", recorded_code, code)] if ended else []
    differences: list[Divergence] = []
    if replay is not None:
        differences = [*answer_differences(recorded, replay)]
    if replay is not None and compares:
        differences += returned_differences(recorded, replay)
    if alone and replay is not None and recorded.root is not None and replay.root is not None:
        died = died_of(recorded), died_of(replay)
        if died[0] != died[1]:
            differences.append(_of_run("outcome", died[0] or "ended", died[1] or "ended"))
    if recorded_code is not None and recorded_code != code:
        differences.append(_of_run("exit code", recorded_code, code))
    return differences


def _given_out(recorded: Run, outcome: Outcome, ends: Sequence[Divergence], renamings: Renamings) -> _GivenOut:
    """Compare what was given out."""
    cut_off = was_cut_off(recorded)
    writes, files = _writes(recorded, outcome, renamings, cut_off=cut_off)
    printed, texts = _printed(recorded, outcome, renamings, cut_off=cut_off)
    divergences = [*(divergence_to_json(each) for each in ends if not renamings.are_one(each)), *files, *texts]
    if outcome.strictness is Strictness.STRUCTURE:
        divergences = [each for each in divergences if not is_of_text(each)]
    return _GivenOut(writes=writes, printed=printed, divergences=divergences)


def _writes(
    run: Run, outcome: Outcome, renamings: Renamings, *, cut_off: bool
) -> tuple[WritesTold, list[dict[str, Json]]]:
    """Compare what was written. A recording that was cut off does not say what it wrote last."""
    if outcome.wrote is None:
        return WritesTold(), []
    recorded, replay = outcome.wrote
    if recorded is None or replay is None or cut_off:
        whose = "the recording has no end" if cut_off else "the recording" if recorded is None else "the replay"
        return WritesTold(why=whose if cut_off else f"{whose} does not say what was written"), []
    if not (recorded.files or replay.files):
        return WritesTold(compared=True), []
    from reenact.compare.console_text import drawn_uuids
    from reenact.compare.file_writes import compare_writes

    def are_one(a: str, b: str) -> bool:
        return renamings.are_one(_of_run("wrote", a, b))

    comparison = compare_writes(recorded, replay, are_one, drawn_uuids(run), outcome.wrote_again)
    return WritesTold(
        compared=True,
        as_recorded=comparison.same,
        passed_over=comparison.passed,
        undecided=comparison.undecided,
        bytes_differ=tuple(recorded.named(one.path) for one, _ in comparison.undecided),
        notes=comparison.notes,
    ), [*comparison.divergences]


def _printed(
    run: Run, outcome: Outcome, renamings: Renamings, *, cut_off: bool
) -> tuple[PrintedTold, list[dict[str, Json]]]:
    """Compare what was printed. A recording that was cut off does not say what it printed."""
    if outcome.printed is None:
        return PrintedTold(why=outcome.why), []
    recorded, replay = outcome.printed
    if recorded is None or replay is None or cut_off:
        whose = "the recording has no end" if cut_off else "the recording" if recorded is None else "the replay"
        return PrintedTold(why=whose if cut_off else f"{whose} does not say what was printed"), []
    from reenact.compare.console_text import compare_printed, drawn_uuids, told_uuids, unheard

    if not any(part.streams or part.lost for part in (*recorded.values(), *replay.values())):
        return PrintedTold(compared=True, notes=unheard(run)), []

    def are_one(a: str, b: str) -> bool:
        return renamings.are_one(_of_run("printed", a, b))

    known = told_uuids(run), drawn_uuids(run)
    comparison = compare_printed(recorded, replay, are_one, outcome.printed_again, *known)
    notes = (*comparison.notes, *unheard(run))
    summary = PrintedTold(compared=True, as_recorded=comparison.same, passed_over=comparison.passed, notes=notes)
    return summary, [*comparison.divergences]


def is_of_text(divergence: Mapping[str, Json]) -> bool:
    """Tell a divergence of the outcome that is one of text or numbers: both sides have a value of one type."""
    if as_text(divergence.get("field")) in {"outcome", "exit code", "answer.status"} or divergence.get("absent"):
        return "stream" in divergence
    return divergence.get("kind") == "changed" and type(divergence.get("a")) is type(divergence.get("b"))


def _of_run(field: str, a: Json, b: Json) -> Divergence:
    return Divergence(kind="changed", call="run", field=field, a=a, b=b, structural=True)
