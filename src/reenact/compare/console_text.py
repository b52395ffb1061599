"""What two runs printed, held against each other: stream by stream, line by line.

What may differ by nature is a closed list (`compare.volatile`, `compare.screen`). Beyond it a line may differ in its
numbers alone where the program at hand prints another one each time (`compare.unstable`).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final, TypeAlias

from reenact.compare.redraws import goes_up
from reenact.compare.screen import Line, lines
from reenact.compare.unstable import UNSTABLE, differs_in_values, is_another_order, is_unstable
from reenact.compare.volatile import Side, Volatile, uuids_in
from reenact.values.child import INHERITED
from reenact.values.difference import ABSENT, Absent, Divergence, divergence_to_json
from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_list
from reenact.values.output import KILLED, Output, Piece, Stream
from reenact.values.run import OUTPUT, STDIN, WRITTEN, Run

Parts: TypeAlias = Mapping[tuple[str, int], Output]
AreOne: TypeAlias = Callable[[str, str], bool]
"""Tells that two texts differ by the names of redacted values alone."""
_MOST_LINES: Final = 2000
"""Lines of a stream that are looked for in another order."""
_STREAMS: Final = ("stdout", "stderr")
_NOT_KEPT: Final = "(a line that was not kept)"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedCompared:
    """What was found."""

    divergences: tuple[dict[str, Json], ...] = ()
    """As JSON; further keys are `stream`, `line`, and `lane`, of the process or unit that printed it."""
    passed: tuple[dict[str, Json], ...] = ()
    """What was passed over: `stream`, `kind`, `count`."""
    notes: tuple[str, ...] = ()
    same: tuple[str, ...] = ()
    """The streams that came out alike."""


@dataclass(slots=True)
class _Found:
    divergences: list[dict[str, Json]] = field(default_factory=list[dict[str, Json]])
    passed: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    notes: dict[str, None] = field(default_factory=dict[str, None])
    streams: dict[str, bool] = field(default_factory=dict[str, bool])


@dataclass(slots=True)
class _Pair:
    """One stream of one part of both runs."""

    name: str
    lane: str
    left: Stream
    right: Stream
    volatile: Volatile
    are_one: AreOne
    apart: bool
    """More than one thread printed, or tools at the same time: how the lines of lanes interleave says nothing."""
    ordered: frozenset[str]
    """The lanes whose own lines stand in one order all the same."""
    again: Sequence[Line] | None
    """The lines of a second replay."""
    second: Stream | None = None
    styled: bool = True
    """Colours count."""
    passed: Counter[str] = field(default_factory=Counter[str])

    def lines(self, stream: Stream) -> list[Line]:
        """Give the lines of one side."""
        return lines(stream.text, _forms(stream), self.passed)


def compare_printed(
    a: Parts,
    b: Parts,
    are_one: AreOne = lambda _a, _b: False,
    again: Parts | None = None,
    known_uuids: frozenset[str] = frozenset(),
    drawn: frozenset[str] = frozenset(),
) -> PrintedCompared:
    """Compare what two runs printed.

    `again` is what a second replay of the program of `b` did, `known_uuids` the UUIDs in answers to the program of `a`,
    `drawn` those that it drew or gave out.
    """
    findings, volatile = _Found(), Volatile(_side(a.values()), _side(b.values()), known_uuids, drawn)
    for key in dict.fromkeys((*a, *b)):
        one, other = a.get(key, Output()), b.get(key, Output())
        second = again.get(key, Output()) if again is not None else None
        if key[0] and (key not in a or key not in b):  # it may be what the other side's worker did not tell
            missing = a if key not in a else b
            one = missing.get(KILLED, one)
        for lost in dict.fromkeys(each.lost for each in (one, other) if each.lost):
            findings.notes[lost] = None
        if one.lost or other.lost:
            continue
        for kind, count in one.passed.items():
            findings.passed["stderr", kind] += count
        ordered = one.ordered & other.ordered
        for name in _STREAMS:
            if name not in one.streams and name not in other.streams:
                continue
            left, right = one.streams.get(name, Stream()), other.streams.get(name, Stream())
            pair = _Pair(name, key[0], left, right, volatile, are_one, one.threads or other.threads, ordered, None)
            if second is not None:
                pair.second = second.streams.get(name, Stream())
                pair.again = pair.lines(pair.second)
                pair.passed.clear()
            before = len(findings.divergences)
            _compare_stream(pair, findings)
            findings.streams[name] = findings.streams.get(name, True) and len(findings.divergences) == before
    return PrintedCompared(
        divergences=tuple(findings.divergences),
        passed=tuple({"stream": name, "kind": kind, "count": n} for (name, kind), n in findings.passed.items()),
        notes=tuple(findings.notes),
        same=tuple(name for name, alike in findings.streams.items() if alike),
    )


def _side(parts: Iterable[Output]) -> Side:
    ended_outputs = [each for each in parts if each.ended_ns]
    return Side(
        began_ns=min((each.began_ns for each in ended_outputs), default=0),
        ended_ns=max((each.ended_ns for each in ended_outputs), default=0),
        offset_s=ended_outputs[0].offset_s if ended_outputs else 0,
        processes=frozenset(number for each in ended_outputs for number in each.processes),
        temporary=frozenset(name for each in ended_outputs for name in each.temporary),
        threads=frozenset(number for each in ended_outputs for number in each.thread_ids),
    )


def _forms(stream: Stream) -> dict[int, str]:
    """Name the format of the logged lines, by number from 1."""
    forms: dict[int, str] = {}
    number = 1
    for piece in stream.pieces:
        count = piece.text.count("\n")
        if piece.form:
            forms.update({number + at: piece.form for at in range(count + 1)})
        number += count
    return forms


def _compare_stream(pair: _Pair, findings: _Found) -> None:
    left, right = pair.left, pair.right
    if left.digest == right.digest and left.rest == right.rest and left.digest:
        return
    for lost in dict.fromkeys(each.lost for each in (left, right) if each.lost):
        findings.notes[f"{pair.name} was not compared: {lost}"] = None
    if left.lost or right.lost:
        return
    one, other = pair.lines(left), pair.lines(right)
    _settle_styles(one, other, pair)
    is_cut = left.is_cut or right.is_cut
    if is_cut:
        least = min(len(one), len(other)) - 1  # the last line of either may be cut
        one, other = one[:least], other[:least]
    first = _first_difference(one, other, pair)
    if first is not None and pair.apart:
        first = _first_unmatched(one, other, pair) or _first_out_of_order(one, other, pair)
        if first is None:
            findings.notes[f"the lines of {pair.name} stand in another order: several threads or tools printed"] = None
    if first is None and is_cut:
        first = _beyond(pair, len(one), findings)
    if first is not None and left.is_terminal != right.is_terminal:
        verbs = ["was" if each.is_terminal else "was no" for each in (left, right)]
        mismatch = f"{pair.name} {verbs[0]} terminal when recorded and {verbs[1]} terminal now"
        findings.notes[f"{mismatch}: a program may print other things there"] = None
    if first is None:
        findings.passed.update({(pair.name, kind): count for kind, count in pair.passed.items() if count})
    else:
        findings.divergences.append(_divergence(pair, *first))


def _settle_styles(one: Sequence[Line], other: Sequence[Line], pair: _Pair) -> None:
    """Let colours count where both sides have any, and had the same kind of place to show them."""
    styled = [sum(1 for line in each if line.styles) for each in (one, other)]
    pair.styled = all(styled) and pair.left.is_terminal == pair.right.is_terminal
    if any(styled) and not pair.styled:
        pair.passed["lines in colour"] += max(styled)


def _beyond(pair: _Pair, least: int, findings: _Found) -> tuple[Line | None, Line | None] | None:
    """Decide on what lies behind the text that was kept, of which only the digest is known.

    A first replay calls it a difference; a second one that came to the same text stands by that.
    """
    marks = [(each.digest, each.rest) for each in (pair.left, pair.right)]
    if pair.second is not None and (pair.second.digest, pair.second.rest) != marks[1]:
        findings.notes[f"{pair.name} was compared up to line {least}: what follows differs from replay to replay"] = (
            None
        )
        return None
    if (lines_beyond := _first_later(pair)) is not None:
        return lines_beyond
    sizes = [
        Line(least + 1, f"({each.size} characters, of which the rest is another)") for each in (pair.left, pair.right)
    ]
    return sizes[0], sizes[1]


def _first_later(pair: _Pair) -> tuple[Line | None, Line | None] | None:
    """Find the first line behind the text that was kept whose digest is another; None where none is known to be."""
    left, right = pair.left.later, pair.right.later
    if left is None or right is None:
        return None
    ends = left.number + len(left.digests), right.number + len(right.digests)
    for number in range(max(left.number, right.number), max(ends)):
        if left.digest(number) == right.digest(number):
            continue
        texts = left.text(number), right.text(number)
        one, other = (None if text is None else Line(number, text) for text in texts)
        if one is not None and other is not None and _alike(one, other, pair) is not None:
            continue
        lines_there = [
            Line(number, _NOT_KEPT if text is None else text) if number < end else None
            for text, end in zip(texts, ends, strict=True)
        ]
        return lines_there[0], lines_there[1]
    return None


def _first_difference(
    left: Sequence[Line], right: Sequence[Line], pair: _Pair
) -> tuple[Line | None, Line | None] | None:
    """Find the first line that differs; what is passed over on the way is counted."""
    counts: Counter[str] = Counter()
    unstable: list[tuple[Line, Line]] = []
    for at, (one, other) in enumerate(zip_longest(left, right)):
        alike = None
        if one is not None and other is not None:
            alike = _alike(one, other, pair, at if len(left) == len(right) else None)
        if alike is None:
            return one, other
        if UNSTABLE in alike and one is not None and other is not None:
            unstable.append((one, other))
        counts += alike
    if is_another_order((one.text, other.text) for one, other in unstable):
        return unstable[0]
    pair.passed.update(counts)
    return None


def _alike(one: Line, other: Line, pair: _Pair, at: int | None = None) -> Counter[str] | None:
    if one.drawn and other.drawn and one.text == other.text:
        return Counter()
    if pair.styled and not (one.drawn or other.drawn) and one.styles != other.styles:
        return None
    alike = pair.volatile.alike(one.text, other.text, log=one.form or None)
    if alike is None and pair.are_one(one.text, other.text):
        return Counter()
    if alike is None and at is not None and _is_unstable(one, other, at, pair):
        return Counter({UNSTABLE: 1})
    return alike


def _is_unstable(one: Line, other: Line, at: int, pair: _Pair) -> bool:
    """Tell that a line differs in its numbers or tokens alone, and does so between two replays as well."""
    if pair.again is None or at >= len(pair.again):
        return False
    return is_unstable(one.text, other.text, pair.again[at].text, pair.volatile, one.form or None)


def _first_unmatched(
    left: Sequence[Line], right: Sequence[Line], pair: _Pair
) -> tuple[Line | None, Line | None] | None:
    """Find the first line without a counterpart, where the order says nothing.

    Where lines were torn by each other, the texts of each lane are compared.
    """
    if max(len(left), len(right)) > _MOST_LINES:
        return _first_difference(left, right, pair)
    ours, theirs = _unmatched(left, right, pair, _alike)
    ours, theirs = _unmatched(ours, theirs, pair, _is_unmatched_again)
    if not (ours or theirs):
        return None
    if not (pair.left.is_cut or pair.right.is_cut) and _are_torn_alike(pair):
        return None
    return next(zip_longest(ours, theirs))


def _first_out_of_order(left: Sequence[Line], right: Sequence[Line], pair: _Pair) -> tuple[Line, Line] | None:
    """Find the first line that stands in another place among those of its own lane."""
    if not pair.ordered or goes_up(pair.left.text) or goes_up(pair.right.text):
        return None
    sides = [_whole_lines(each, stream, pair.ordered) for each, stream in ((left, pair.left), (right, pair.right))]
    for lane in sorted(sides[0].keys() & sides[1].keys()):
        ours, theirs = sides[0][lane], sides[1][lane]
        if len(ours) != len(theirs):
            continue
        for one, other in zip(ours, theirs, strict=True):
            if _alike(one, other, pair) is None and _is_unmatched_again(one, other, pair) is None:
                return one, other
    return None


def _whole_lines(rows: Sequence[Line], stream: Stream, lanes: frozenset[str]) -> dict[str, list[Line]]:
    """Part lines by the lane that printed them; lanes of which others tore a line are left out."""
    printers: dict[int, set[str]] = defaultdict(set)
    number = 1
    for piece in stream.pieces:
        for at, text in enumerate(piece.text.split("\n")):
            if text:
                printers[number + at].add(piece.lane)
        number += piece.text.count("\n")
    torn = {lane for each in printers.values() if len(each) > 1 for lane in each}
    parted: dict[str, list[Line]] = {lane: [] for lane in sorted(lanes - torn)}
    for line in rows:
        for lane in printers.get(line.number, ()):
            if lane in parted:
                parted[lane].append(line)
    return parted


def _are_torn_alike(pair: _Pair) -> bool:
    ours, theirs = _by_lane(pair.left), _by_lane(pair.right)
    return ours.keys() == theirs.keys() and all(
        _first_difference(pair.lines(ours[lane]), pair.lines(theirs[lane]), pair) is None for lane in ours
    )


def _unmatched(
    left: Sequence[Line], right: Sequence[Line], pair: _Pair, fits: Callable[[Line, Line, _Pair], Counter[str] | None]
) -> tuple[list[Line], list[Line]]:
    """Give the lines of either side that have no counterpart on the other, wherever that stands."""
    ours, theirs = list[Line](), list(right)
    for line in left:
        match = next(((at, fit) for at, each in enumerate(theirs) if (fit := fits(line, each, pair)) is not None), None)
        if match is None:
            ours.append(line)
        else:
            pair.passed.update(match[1])
            del theirs[match[0]]
    return ours, theirs


def _is_unmatched_again(one: Line, other: Line, pair: _Pair) -> Counter[str] | None:
    """Tell that a line differs in its numbers alone, and that the second replay has no line like it either."""
    if pair.again is None or pair.volatile.are_swapped(one.text, other.text, log=one.form or None):
        return None
    if not differs_in_values(one.text, other.text):
        return None
    return Counter({UNSTABLE: 1}) if all(_alike(other, each, pair) is None for each in pair.again) else None


def _by_lane(stream: Stream) -> dict[str, Stream]:
    pieces = defaultdict[str, list[Piece]](list)
    for piece in stream.pieces:
        pieces[piece.lane].append(piece)
    return {lane: Stream(pieces=tuple(each)) for lane, each in pieces.items()}


def _divergence(pair: _Pair, one: Line | None, other: Line | None) -> dict[str, Json]:
    line = one or other
    number = line.number if line is not None else 0
    in_colour = one is not None and other is not None and one.text == other.text
    sides: list[Json | Absent] = [
        ABSENT if each is None else _line_text(each, in_colour=in_colour) for each in (one, other)
    ]
    entry = divergence_to_json(
        Divergence(
            kind="changed",
            call="run",
            field=f"{pair.name}, line {number}",
            a=sides[0],
            b=sides[1],
            structural=True,
        )
    )
    return {**entry, "stream": pair.name, "line": number, "lane": pair.lane}


def _line_text(line: Line, *, in_colour: bool) -> str:
    """Give the text of a line; where that is no difference, with its colours."""
    return f"{line.text} (in colours {', '.join(line.styles) or 'none'})" if in_colour else line.text


_DRAWS: Final = "reenact.draws"
_DIGITS: Final = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")


def told_uuids(run: Run) -> frozenset[str]:
    """Find the UUIDs that answers told a recorded program."""
    return uuids_in(
        value
        for node in run.nodes
        for name, value in node.span.attributes.items()
        if name in {"output.value", "reenact.stream.chunks", STDIN} and isinstance(value, str)
    )


def drawn_uuids(run: Run) -> frozenset[str]:
    """Find the UUIDs that a recorded program drew (32 hexadecimal digits on the tape), or gave out."""
    texts = [
        value
        for node in run.nodes
        for name, value in node.span.attributes.items()
        if isinstance(value, str) and (name in {OUTPUT, WRITTEN} or name.startswith(_DRAWS))
    ]
    digits = (each for text in texts for each in _DIGITS.findall(text))
    return uuids_in(texts) | {"-".join((each[:8], each[8:12], each[12:16], each[16:20], each[20:])) for each in digits}


def unheard(run: Run) -> tuple[str, ...]:
    """Say which children printed past the program's own streams."""
    notes: dict[str, None] = {}
    for node in run.nodes:
        attribute = node.span.attributes.get(INHERITED)
        streams = as_list(parsed_or_none(attribute)) if isinstance(attribute, str) else attribute
        if isinstance(streams, list | tuple) and streams:
            names = " and ".join(sorted((str(each) for each in streams), reverse=True))
            notes[f"what {node.call.name} printed to {names} itself was not witnessed and is not compared"] = None
    return tuple(notes)
