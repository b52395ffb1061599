"""What two runs wrote, held against each other: final states, line by line where texts were kept.

A path that only one run touched is held against what stood there before: a run that left a file as it was is like one
that never touched it. What differs in its bytes alone is not decided here: it may differ from run to run. A line may
differ in its numbers alone where the program at hand writes another one each time (`compare.unstable`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final

from reenact.compare.rotated_logs import RotatedLog, rotated_logs
from reenact.compare.unstable import UNSTABLE, is_another_order, is_unstable
from reenact.compare.volatile import Side, Volatile
from reenact.values.difference import ABSENT, Absent, Divergence, divergence_to_json
from reenact.values.file_writes import DISK_TICK_NS, FileWrites, State, WrittenFile
from reenact.values.json import Json, compact
from reenact.values.lenient import as_count, as_text

_MOST_LINES: Final = 2000
"""Lines of a file that are looked for in another order."""
AreOne = Callable[[str, str], bool]
"""Tells that two texts differ by the names of redacted values alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WritesCompared:
    """What was found."""

    divergences: tuple[dict[str, Json], ...] = ()
    """As JSON; further keys are `path`, `line`, and `where`, the line of code that wrote it."""
    passed: tuple[dict[str, Json], ...] = ()
    """What was passed over: `path`, `kind`, `count`."""
    undecided: tuple[tuple[WrittenFile, WrittenFile], ...] = ()
    """Files that differ in their bytes alone."""
    notes: tuple[str, ...] = ()
    same: tuple[str, ...] = ()
    """Names of files that were written alike."""


@dataclass(slots=True)
class _Found:
    divergences: list[dict[str, Json]] = field(default_factory=list[dict[str, Json]])
    passed: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    undecided: list[tuple[WrittenFile, WrittenFile]] = field(default_factory=list[tuple[WrittenFile, WrittenFile]])
    notes: list[str] = field(default_factory=list[str])
    same: list[str] = field(default_factory=list[str])


def compare_writes(
    a: FileWrites,
    b: FileWrites,
    are_one: AreOne = lambda _a, _b: False,
    drawn: frozenset[str] = frozenset(),
    again: FileWrites | None = None,
) -> WritesCompared:
    """Compare what two runs wrote; `drawn` are the UUIDs that the one of `a` drew or gave out.

    `again` is what a second replay of the program of `b` wrote.
    """
    findings, volatile = _Found(), Volatile(_side(a), _side(b), drawn=drawn)
    ordered = a.threads or b.threads
    rotated = rotated_logs(a, b)
    for log in {log.name: log for log in rotated.values()}.values():
        left, right = ({"text": text} for text in log.texts)
        _compare_log(_Pair(log.name, log.file, left, right, volatile, are_one, threads=ordered), log, findings)
    for name, one, other in _paired(a, b, volatile):
        if any(each is not None and each.log_of in rotated for each in (one, other)):
            continue
        file = one or other
        if file is None or file.part_of or any(each is not None and each.answered for each in (one, other)):
            continue
        left, right = _final(one, other), _final(other, one)
        if not _kind_differs(name, left, right, file, findings):
            pair = _Pair(name, file, left or {}, right or {}, volatile, are_one, threads=ordered)
            pair.shared = any(each is not None and each.shared for each in (one, other))
            pair.files, pair.again = (one, other), _lines_again(again, b, other)
            if not _compare_facts(pair, (a, b), findings):
                _compare_content(pair, findings)
    passed_differences: list[dict[str, Json]] = [
        {"path": path, "kind": kind, "count": count} for (path, kind), count in findings.passed.items()
    ]
    return WritesCompared(
        divergences=tuple(findings.divergences),
        passed=tuple(passed_differences),
        undecided=tuple(findings.undecided),
        notes=tuple(findings.notes),
        same=tuple(findings.same),
    )


def _side(writes: FileWrites) -> Side:
    return Side(
        began_ns=writes.began_ns,
        ended_ns=writes.ended_ns,
        offset_s=writes.offset_s,
        processes=writes.processes,
        temporary=writes.temporary,
        threads=writes.thread_ids,
    )


@dataclass(slots=True)
class _Pair:
    """One file of both runs."""

    name: str
    file: WrittenFile
    left: State
    right: State
    volatile: Volatile
    are_one: AreOne
    threads: bool
    shared: bool = False
    files: tuple[WrittenFile | None, WrittenFile | None] = (None, None)
    again: Sequence[str] = ()
    """The lines that a second replay wrote."""


def _paired(
    a: FileWrites, b: FileWrites, volatile: Volatile
) -> Iterator[tuple[str, WrittenFile | None, WrittenFile | None]]:
    """Give the files of both by the name that they share; a time or a temporary name may stand in one."""
    left = {a.named(path): file for path, file in a.files.items()}
    right = {b.named(path): file for path, file in b.files.items()}
    alone = [name for name in right if name not in left]
    for name, file in left.items():
        other = right.get(name)
        if other is None:
            match = next((each for each in alone if volatile.alike(name, each, dates=True) is not None), None)
            if match is not None:
                alone.remove(match)
                other = right[match]
        if other is None and b.more:
            continue
        yield name, file, other
    if not a.more:
        yield from ((name, None, right[name]) for name in alone)


def _lines_again(again: FileWrites | None, writes: FileWrites, file: WrittenFile | None) -> Sequence[str]:
    """Give the lines that a second replay wrote to the same file; none where nobody knows."""
    if again is None or file is None:
        return ()
    name = writes.named(file.path)
    texts = (as_text((each.after or {}).get("text")) for path, each in again.files.items() if again.named(path) == name)
    return next(texts, "").split("\n")


def _final(file: WrittenFile | None, other: WrittenFile | None) -> State | None:
    """Say what stands there at the end of a run; of one that never touched the path, what the other one found there."""
    if file is not None:
        return file.after
    if other is None:
        return None
    return other.after if not other.changed else other.before


def _kind_differs(name: str, left: State | None, right: State | None, file: WrittenFile, findings: _Found) -> bool:
    """Compare whether something is there, and what it is; True where nothing more is to be compared."""
    if left is right or (left is not None and right is not None and _kind(left) == _kind(right) == "file"):
        return left is right
    if left is not None and right is not None and _kind(left) == _kind(right):
        if left.get("to") != right.get("to"):
            findings.divergences.append(_divergence("changed", name, file, left.get("to"), right.get("to")))
        modes = [as_count(each.get("mode")) for each in (left, right)]
        if _kind(left) == "folder" and file.before is None and None not in modes and modes[0] != modes[1]:
            spelled_modes = [f"{mode or 0:04o}" for mode in modes]
            findings.divergences.append(
                {**_divergence("changed", name, file, *spelled_modes), "field": f"wrote mode of {name}"}
            )
        return True
    kind = "extra" if left is None else "missing" if right is None else "changed"
    sides: list[Json | Absent] = [ABSENT if each is None else _state_text(each) for each in (left, right)]
    findings.divergences.append(_divergence(kind, name, file, sides[0], sides[1]))
    return True


def _kind(state: State) -> str:
    return as_text(state.get("kind")) or "file"


def _state_text(state: State) -> Json:
    if _kind(state) != "file":
        return _kind(state)
    text = as_text(state.get("text")).partition("\n")[0]
    return text or f"{state.get('size')} bytes"


def _compare_facts(pair: _Pair, writes: tuple[FileWrites, FileWrites], findings: _Found) -> bool:
    """Compare what is known of a file and is not its content, where a run changed that; tell whether it differs.

    What a run only found is not compared: a copy need not have it.
    """
    sides = [file for file in pair.files if file is not None]
    if len(sides) < len(pair.files) or pair.shared:
        return False
    before = [each.before or {} for each in sides]
    states = (pair.left, pair.right)
    if all("mode" in state for state in states) and any(
        was.get("mode") != state["mode"] for was, state in zip(before, states, strict=True)
    ):
        modes = [as_count(state["mode"]) or 0 for state in states]
        if modes[0] != modes[1]:
            _diverge_in("mode", pair, f"{modes[0]:04o}", f"{modes[1]:04o}", findings)
            return True
    if not any("attributes" in was for was in before):
        attributes = [state.get("attributes") for state in states]
        if attributes[0] != attributes[1]:
            _diverge_in("attributes", pair, compact(attributes[0]), compact(attributes[1]), findings)
            return True
    times = [_set_time(file, state, run) for file, state, run in zip(sides, states, writes, strict=True)]
    if times[0] != times[1] and not _lies_within(times[1] or times[0], writes) and pair.file.log is None:
        _diverge_in("time", pair, _spelled_time(times[0]), _spelled_time(times[1]), findings)
        return True
    return False


def _set_time(file: WrittenFile, state: State, run: FileWrites) -> int:
    """Give the time of a file's last change in nanoseconds, where the program set it; 0 where it wrote then."""
    changed, was = (as_text(each.get("mtime")) for each in (state, file.before or {}))
    if not changed.isdecimal() or changed == was or not run.began_ns:
        return 0
    return 0 if run.began_ns - DISK_TICK_NS <= int(changed) <= run.ended_ns else int(changed)


def _spelled_time(changed_ns: int) -> str:
    return str(changed_ns) if changed_ns else "of the run"


def _lies_within(changed_ns: int, writes: tuple[FileWrites, FileWrites]) -> bool:
    """Tell whether a time is one of either run: a program may set the time that its clock says."""
    return any(run.began_ns <= changed_ns <= run.ended_ns for run in writes)


def _diverge_in(what: str, pair: _Pair, one: str, other: str, findings: _Found) -> None:
    divergence = _divergence("changed", pair.name, pair.file, one, other)
    divergence["field"] = f"wrote {what} of {pair.name}"
    findings.divergences.append(divergence)


def _compare_content(pair: _Pair, findings: _Found) -> None:
    left, right = pair.left, pair.right
    if others := max(as_count(each.get("of_libraries")) or 0 for each in (left, right)):
        findings.passed[pair.name, "lines that libraries logged"] += others
    if "digest" in left and left.get("digest") == right.get("digest"):
        findings.same.append(pair.name)
        return
    if left.get("same") is True and right.get("same") is True:
        return
    if pair.shared and not ("from" in left and "from" in right):
        findings.notes.append(f"{pair.name} was not compared: others wrote it meanwhile")
        return
    texts = left.get("text"), right.get("text")
    if left.get("same") is True or right.get("same") is True:  # an append of nothing
        texts = texts[0] or "", texts[1] or ""
    if not isinstance(texts[0], str) or not isinstance(texts[1], str):
        if left.get("redacted") or right.get("redacted"):
            findings.notes.append(
                f"{pair.name} was not compared: redacted values stand in it, and its text was not kept"
            )
            return
        one, other = pair.files
        if one is not None and other is not None:
            findings.undecided.append((one, other))
        else:
            findings.divergences.append(
                _divergence("changed", pair.name, pair.file, _state_text(left), _state_text(right))
            )
        return
    _compare_lines(pair, texts[0].split("\n"), texts[1].split("\n"), findings)


def _compare_log(pair: _Pair, log: RotatedLog, findings: _Found) -> None:
    """Compare a log with its older parts. Where lines are of another length it is rotated at another line."""
    left, right = (text.split("\n") for text in log.texts)
    if log.dropped:  # the oldest lines of either may be gone
        least = min(len(left), len(right))
        left, right = left[len(left) - least :], right[len(right) - least :]
    _compare_lines(pair, left, right, findings)


def _compare_lines(pair: _Pair, left: Sequence[str], right: Sequence[str], findings: _Found) -> None:
    counts: Counter[str] = Counter()
    if pair.shared:
        if not _is_among(right, left, pair, counts):
            _diverge(pair, left, right, findings)
        return
    unstable: list[tuple[str, str]] = []
    for at, (one, other) in enumerate(zip_longest(left, right)):
        alike = _alike(one, other, pair) if one is not None and other is not None else None
        if alike is None and one is not None and other is not None and _is_unstable(one, other, at, pair):
            unstable.append((one, other))
            alike = Counter({UNSTABLE: 1})
        if alike is None:
            break
        counts += alike
    else:
        if is_another_order(unstable):
            _diverge(pair, left, right, findings)
            return
        findings.same.append(pair.name)
        findings.passed.update({(pair.name, kind): count for kind, count in counts.items()})
        return
    if pair.threads and len(left) == len(right) <= _MOST_LINES and _is_reordered(left, right, pair, counts):
        findings.notes.append(f"the lines of {pair.name} stand in another order: several threads were at work")
        return
    _diverge(pair, left, right, findings)


def _alike(one: str, other: str, pair: _Pair) -> Counter[str] | None:
    alike = pair.volatile.alike(one, other, log=pair.file.log)
    if alike is None and pair.are_one(one, other):
        return Counter()
    return alike


def _is_unstable(one: str, other: str, at: int, pair: _Pair) -> bool:
    again = pair.again
    return at < len(again) and is_unstable(one, other, again[at], pair.volatile, pair.file.log or None)


def _is_among(lines: Sequence[str], among: Sequence[str], pair: _Pair, counts: Counter[str]) -> bool:
    """Tell whether lines stand among others, in their order."""
    left = iter(among)
    for line in lines:
        alike = next((likeness for each in left if (likeness := _alike(each, line, pair)) is not None), None)
        if alike is None:
            return False
        counts.update(alike)
    return True


def _is_reordered(left: Sequence[str], right: Sequence[str], pair: _Pair, counts: Counter[str]) -> bool:
    waiting = list(right)
    for line in left:
        at = next((at for at, each in enumerate(waiting) if (alike := _alike(line, each, pair)) is not None), None)
        if at is None:
            return False
        del waiting[at]
        counts.update(alike or {})
    return True


def _diverge(pair: _Pair, left: Sequence[str], right: Sequence[str], findings: _Found) -> None:
    """Say the first line in which two texts differ."""
    begin = 0
    for number, (one, other) in enumerate(zip_longest(left, right), 1):
        if one is None or other is None or _alike(one, other, pair) is None:
            begin = number
            break
    sides: list[Json | Absent] = [
        lines[begin - 1] if begin <= len(lines) and not (begin == len(lines) and lines[begin - 1] == "") else ABSENT
        for lines in (left, right)
    ]
    appended = "from" in pair.left and "from" in pair.right
    findings.divergences.append(
        _divergence("changed", pair.name, pair.file, sides[0], sides[1], line=begin, appended=appended)
    )


def _divergence(
    kind: str,
    name: str,
    file: WrittenFile,
    a: Json | Absent,
    b: Json | Absent,
    *,
    line: int = 0,
    appended: bool = False,
) -> dict[str, Json]:
    place = f", line {line}{' of what was appended' if appended else ''}" if line else ""
    entry = divergence_to_json(
        Divergence(kind=kind, call="run", field=f"wrote {name}{place}", a=a, b=b, structural=kind != "changed")
    )
    entry["path"] = name
    if line:
        entry["line"] = line
    if file.at:
        entry["where"] = file.at
    return entry


def decided(
    pairs: Iterable[tuple[WrittenFile, WrittenFile]],
    writes: FileWrites,
    again: FileWrites | None,
    *,
    drew: bool = False,
) -> tuple[list[dict[str, Json]], list[str]]:
    """Decide on files that differ in their bytes alone by a second replay: divergences, and names that stay undecided.

    Where two replays of the program at hand agree with each other, it is the program that came to something else; so it
    is where it drew of the clock or of chance what the recording does not hold (`drew`).
    """
    divergences: list[dict[str, Json]] = []
    open_still: list[str] = []
    for recorded, replayed in pairs:
        name = writes.named(replayed.path)
        other = again.files.get(replayed.path) if again is not None else None
        mark = (replayed.after or {}).get("digest")
        agree = other is not None and mark is not None and (other.after or {}).get("digest") == mark
        if agree or drew:
            sides = [f"{(each.after or {}).get('size')} bytes" for each in (recorded, replayed)]
            divergence = _divergence("changed", name, recorded, sides[0], sides[1])
            why = "the same in two replays" if agree else "it drew of the clock or of chance what was not recorded"
            divergence["reason"] = f"wrote {name}: its bytes are others than recorded, and {why}"
            divergences.append(divergence)
        else:
            open_still.append(name)
    return divergences, open_still
