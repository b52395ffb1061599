"""What a program that met a variation came to: which harm, where, on what evidence."""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reenact.values import unit
from reenact.values.assertion import Finding, Standing
from reenact.values.difference import one_line
from reenact.values.json import Json, compact
from reenact.values.judgement import ReplayResult
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.run import Run
from reenact.values.variation import Basis, Case, Discovery, Group, Harm

_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_OURS = str(Path(__file__).parents[1])
_FRAME = re.compile(r'^\s*File "([^"]+)", line (\d+)', re.MULTILINE)
_LAST = re.compile(r"^([A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Warning|[A-Z]\w*))(?::\s?(.*))?$", re.MULTILINE)
_TRACE = "Traceback (most recent call last):"
_IN_THREAD = "Exception in thread"
_DRAWN = re.compile(r"0x[0-9a-fA-F]+|\d+")
_SHORTEST_MARK = 3
_CUT = frozenset({"error", "truncated"})
_SAID = frozenset({"raises", "error"})
"""Ways to vary that say aloud that a call failed."""
_STOPPED = frozenset({"Miss", "SideEffectRefused", "ReplayStopped", "SystemExit", "KeyboardInterrupt"})
"""Ends of a program that are none of its own mistakes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """One run of the program."""

    result: ReplayResult
    run: Run | None
    exit_code: int
    out_of_time: bool = False
    seconds: float = 0.0
    stdout: str = ""
    stderr: str = ""
    evident: tuple[Finding, ...] = ()
    """What assertions come to on the part of the run that is evidence."""
    findings: tuple[Finding, ...] = ()
    """What they come to on all of it."""

    @property
    def basis(self) -> Basis:
        """What the end of the run rests on."""
        went_on = any(miss.get("onward") for miss in self.result.misses)
        return Basis.NEAREST if went_on else Basis.EVIDENCE

    @property
    def judged(self) -> bool:
        """Something can be said of it."""
        return self.out_of_time or self.result.result in {"same", "diverged"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """An exception that ended a program, or a thread of it."""

    kind: str
    message: str
    where: str
    """`file:line` of the agent's own code."""


def discoveries(case: Case, met: Met, before: Met) -> list[Discovery]:
    """Say what `case` brought to light, held against `before`, the run of the program that met no variation."""
    findings = [*_hung(case, met), *_asserted(case, met, before), *_built(case, met, before)]
    findings += [*_crashed(case, met, before), *_unfitting(case, met, before)]
    return findings or [*_swallowed(case, met, before)]


def _hung(case: Case, met: Met) -> Iterator[Discovery]:
    if met.out_of_time:
        last = _last_call(met.run) if met.run is not None and met.run.nodes else "its start"
        what = f"the program did not end within {met.seconds:.0f} s; the last it did was {last}"
        yield Discovery(harm=Harm.HANG, what=what, basis=met.basis, outcome=f"hang {last}", case=case)


def _last_call(run: Run) -> str:
    """Label the call that began last, as the store will: it makes a root for a run whose process was ended."""
    last = max(run.nodes, key=lambda node: node.start_order)
    return last.label if run.root is not None else replace(last, number=last.number + 1).label


def _asserted(case: Case, met: Met, before: Met) -> Iterator[Discovery]:
    failed_before = {each.assertion for each in before.findings if each.standing is Standing.FAILS}
    evident = {each.assertion for each in met.evident if each.standing is Standing.FAILS}
    for each in (*met.evident, *met.findings):
        if each.standing is not Standing.FAILS or each.assertion in failed_before or each.layer != "structure":
            continue
        basis = Basis.EVIDENCE if each.assertion in evident else Basis.NEAREST
        yield Discovery(
            harm=Harm.ASSERTION,
            what=f"does not hold: {each.assertion}",
            where=each.place,
            basis=basis,
            because=each.because,
            outcome=f"assertion {each.assertion}",
            case=case,
        )
        failed_before.add(each.assertion)


def _crashed(case: Case, met: Met, before: Met) -> Iterator[Discovery]:
    crash_texts = {_spelled(each) for each in crashes(before)}
    for crash in [] if met.out_of_time else crashes(met):
        if _spelled(crash) not in crash_texts:
            crash_texts.add(_spelled(crash))
            yield Discovery(
                harm=Harm.CRASH,
                what=f"{crash.kind}: {crash.message}" if crash.message else crash.kind,
                where=crash.where,
                basis=met.basis,
                outcome=f"crash {_spelled(crash)}",
                case=case,
            )


def family(discovery: Discovery) -> str:
    """Say what lack it shows: a service that fails is met in one place, whatever way it fails."""
    first = discovery.case.variations[0]
    alone = discovery.harm is Harm.CRASH and len(discovery.case.variations) == 1
    failing = first.kind == "raises" or first.path == "status" or (first.group is Group.MODELS and first.kind in _CUT)
    if alone and failing:
        return f"crash unmet {first.group.value} {discovery.where}"
    return discovery.outcome


def _spelled(crash: Crash) -> str:
    return f"{crash.kind} {crash.where or _DRAWN.sub('0', crash.message)}"


def crashes(met: Met) -> list[Crash]:
    """Tell by which exceptions the program died, a thread of it did, or its answer became a 5xx."""
    traces = [_read(text) for text in met.stderr.split(_TRACE)[1:]]
    parsed_crashes = [crash for crash in traces if crash is not None]
    if met.exit_code != 0 and _TRACE in met.stderr:
        return parsed_crashes[-1:]
    if _IN_THREAD in met.stderr:
        return parsed_crashes
    answer = unit.answer_of(met.run) if met.run is not None else None
    if answer is not None and answer.status >= 500:
        return parsed_crashes[-1:] or [Crash(kind=f"HTTP {answer.status}", message="", where="")]
    died = _died_of(met.run) if met.exit_code != 0 else None
    return [died] if died is not None else []


def _died_of(run: Run | None) -> Crash | None:
    if run is None or run.root is None:
        return None
    attributes = run.root.span.attributes
    kind = str(attributes.get("exception.type") or "")
    if attributes.get("reenact.outcome") != "raised" or not kind or kind.rpartition(".")[2] in _STOPPED:
        return None
    return Crash(kind=kind.rpartition(".")[2], message=str(attributes.get("exception.message") or ""), where="")


def _read(trace: str) -> Crash | None:
    """Read one traceback, from behind its first line: the exception, and the innermost line of the agent's own."""
    ended = next((at for at in _LAST.finditer(trace) if not trace[: at.start()].endswith(" ")), None)
    if ended is None:
        return None
    own = [
        f"{_short(name)}:{line}"
        for name, line in _FRAME.findall(trace[: ended.start()])
        if not name.startswith((*_LIBRARIES, _OURS, "<"))
    ]
    return Crash(kind=ended[1].rpartition(".")[2], message=(ended[2] or "").strip(), where=own[-1] if own else "")


def _short(name: str) -> str:
    """Name a file from the working directory where it lies below it, else by its last two parts."""
    path = Path(name)
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(Path(*path.parts[-2:]))


def _built(case: Case, met: Met, before: Met) -> Iterator[Discovery]:
    """Find calls of tools that nobody recorded, and that were asked for with a value which the variation put in."""
    marks = [mark for variation in case.variations for mark in variation.marks]
    usual = {_about(miss) for miss in before.result.misses}
    if not marks:
        return
    for at, miss in enumerate(met.result.misses):
        word, _, name = as_text(miss.get("call")).partition(" ")
        if word in {"llm", "embedding"} or _about(miss) in usual:
            continue
        for field, value in _asked_otherwise(miss):
            if _holds(value, marks):
                tool = name.partition(" #")[0]
                yield Discovery(
                    harm=Harm.TOOL,
                    what=f"{word} {tool} was called with {field} = {compact(value)[:80]}",
                    where=_place(as_text(miss.get("where"))),
                    basis=Basis.EVIDENCE if at == 0 else Basis.NEAREST,
                    because=one_line({**_as_divergence(miss), "field": field}),
                    outcome=f"tool {tool} {field}",
                    case=case,
                )
                break


def _unfitting(case: Case, met: Met, before: Met) -> Iterator[Discovery]:
    """Find calls with arguments that their function does not take: in a replay it is not called, and does not raise."""
    usual = {_about(miss) for miss in before.result.misses}
    for at, miss in enumerate(met.result.misses):
        arguments = {field: value for field, value in _asked_otherwise(miss) if value is not None}
        if _about(miss) in usual or not {"arguments.args", "arguments.kwargs"} <= arguments.keys():
            continue
        name = as_text(miss.get("call")).partition(" ")[2].partition(" #")[0]
        spelled = [*map(compact, as_list(arguments["arguments.args"]))]
        spelled += [f"{key}={compact(value)}" for key, value in as_object(arguments["arguments.kwargs"]).items()]
        yield Discovery(
            harm=Harm.CRASH,
            what=f"TypeError: {name}({', '.join(spelled)}) does not fit what {name} takes",
            where=_place(as_text(miss.get("where"))),
            basis=Basis.EVIDENCE if at == 0 else Basis.NEAREST,
            because="called for real it raises; the replay answers in its place",
            outcome=f"crash unfitting {name} {as_text(miss.get('where'))}",
            case=case,
        )


def _place(where: str) -> str:
    name, _, line = where.rpartition(":")
    return f"{_short(name)}:{line}" if name else where


def _about(miss: dict[str, Json]) -> str:
    return compact([miss.get("call"), miss.get("field"), miss.get("replay")])


def _asked_otherwise(miss: dict[str, Json]) -> Iterator[tuple[str, Json]]:
    listed = [as_object(each) for each in as_list(miss.get("differences"))]
    for each in listed or [miss]:
        yield as_text(each.get("field")), each.get("replay")


def _as_divergence(miss: dict[str, Json]) -> dict[str, Json]:
    absent: Json = ["a"] if "recorded" in as_list(miss.get("absent")) else []
    return {"call": miss.get("call"), "a": miss.get("recorded"), "b": miss.get("replay"), "absent": absent}


def _holds(value: Json, marks: Sequence[str]) -> bool:
    text = compact(value)
    return any(text == mark or (len(mark) > _SHORTEST_MARK and mark.strip('"') in text) for mark in marks)


def _swallowed(case: Case, met: Met, before: Met) -> Iterator[Discovery]:
    """Find failures that nobody noticed: the program went its way, asked nothing new and said nothing new.

    Of an answer that is only less than it should be something must have been lost by that; it may not have been needed.
    """
    failed = next((each for each in case.variations if each.fails), None)
    quiet = met.exit_code == before.exit_code and not met.result.misses and not met.result.refused
    if failed is None or not quiet or met.out_of_time or len(case.variations) > 1 or met.run is None:
        return
    reached = any(node.span.attributes.get("reenact.replay.answered_by") == failed.node for node in met.run.nodes)
    lost = met.stdout != before.stdout or met.result.unconsumed != before.result.unconsumed
    silent = not _new(met.stdout, before.stdout) and not _new(met.stderr, before.stderr)
    if reached and silent and (lost or failed.kind in _SAID):
        yield Discovery(
            harm=Harm.SWALLOWED,
            what=f"nobody noticed that {failed.call} failed: the program ended as if all were well",
            basis=Basis.EVIDENCE,
            because=_silence(met, before),
            outcome=f"swallowed {failed.call} {failed.kind}",
            case=case,
        )


def _silence(met: Met, before: Met) -> str:
    same = "the same output" if met.stdout == before.stdout else "its output is cut short and says nothing of it"
    left = len(met.result.unconsumed) - len(before.result.unconsumed)
    calls = f"{left} recorded calls were not made any more" if left > 0 else "no further call"
    return f"exit code {met.exit_code}, {calls}, {same}"


def _new(text: str, usual: str) -> bool:
    """Tell whether a text has a line that is not part of one of the usual text's."""
    return any(line.strip() and line.strip() not in usual for line in text.splitlines())
