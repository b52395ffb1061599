"""What a run printed, as its roots tell it (`OUTPUT`): the texts of its standard streams, lane by lane.

Each process, and each unit of work, tells its own part on what stands for it in the run.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from reenact.values.call import Unfinished
from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_count, as_list, as_object, as_text
from reenact.values.run import OUTPUT, Node, Run


@dataclass(frozen=True, slots=True)
class Piece:
    """A text that one lane printed, with the format of its lines where `logging` wrote them."""

    lane: str
    text: str
    form: str = ""


DIGEST_SIZE: Final = 3
"""Bytes of the digest of one line: it tells which of two texts' lines differ, not whether any does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """What is known of the lines of a stream behind its pieces."""

    number: int
    """That of the first of them, counted from 1."""
    digests: tuple[bytes, ...]
    """Of each line, to a bound."""
    last: tuple[str, ...] = ()
    """The texts of the last of these lines."""

    def digest(self, number: int) -> bytes | None:
        """Give the digest of a line; None where there is no such line, or it is not known."""
        at = number - self.number
        return self.digests[at] if 0 <= at < len(self.digests) else None

    def text(self, number: int) -> str | None:
        """Give the text of a line, where it is known."""
        at = number - self.number - len(self.digests) + len(self.last)
        return self.last[at] if 0 <= at < len(self.last) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """What came to one standard stream."""

    pieces: tuple[Piece, ...] = ()
    size: int = 0
    """Characters, before redaction."""
    digest: str = ""
    """Of the redacted text that was heard whole; empty where nobody knows it."""
    rest: str = ""
    """The digest of what came behind that."""
    is_cut: bool = False
    """There is more than the pieces hold."""
    later: Later | None = None
    """What is known of that; None where nothing is."""
    is_terminal: bool = False
    redacted: int = 0
    """How many values were replaced in it."""
    lost: str = ""
    """Why the text is not known."""

    @property
    def text(self) -> str:
        """Join what is known of it."""
        return "".join(piece.text for piece in self.pieces)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What one process, or one unit of work, printed."""

    streams: Mapping[str, Stream] = field(default_factory=dict[str, Stream])
    passed: Mapping[str, int] = field(default_factory=dict[str, int])
    """What was heard and is not the program's own word, by what it is: how often."""
    began_ns: int = 0
    ended_ns: int = 0
    offset_s: int = 0
    """Of the time zone, east of Greenwich."""
    processes: frozenset[int] = frozenset()
    """Its process id, and its parent's."""
    temporary: frozenset[str] = frozenset()
    """Names that `tempfile` made."""
    threads: bool = False
    """More than one thread printed."""
    ordered: frozenset[str] = frozenset()
    """Where more than one did: the lanes whose own lines stand in one order."""
    thread_ids: frozenset[int] = frozenset()
    """Ids of threads that stand in the texts."""
    lost: str = ""
    """Why nothing is known."""


KILLED: Final = ("", 0)
"""Stands for processes of which nobody knows what they printed."""


def outputs(runs: Iterable[Run]) -> dict[tuple[str, int], Output]:
    """Read what several runs of one program printed, by lane and number among the parts of that lane, oldest first.

    The lane is that of a process which another one started, and empty for runs: who called first began those. What a
    job of a pool printed stands under the lane of the job: which worker takes it is chance.
    """
    runs = [*runs]
    nodes = [
        node
        for run in runs
        for node in run.nodes
        if isinstance(node.span.attributes.get(OUTPUT), str) and not (run.own and node.span.sent)
    ]
    count: Counter[str] = Counter()
    parts: dict[tuple[str, int], Output] = {}
    for node in sorted(nodes, key=lambda each: (each.start_order, each.span.start_ns)):
        is_run = node.parent is None or node.span.attributes.get("reenact.run.root") is True
        part = _part(node)
        for lane, own in {"": part}.items() if is_run else _by_job(node.lane, part).items():
            count[lane] += 1
            parts[lane, count[lane]] = own
    if any(_was_killed(node) for run in runs for node in run.nodes):
        parts[KILLED] = Output(lost="a process was ended before it told what it had printed")
    return parts


def _was_killed(node: Node) -> bool:
    """Tell a process that another one started and that had no end."""
    is_process = node.lane.rpartition("/")[2].startswith("p:") and node.call.is_structure
    return is_process and isinstance(node.outcome, Unfinished) and OUTPUT not in node.span.attributes


def _by_job(lane: str, part: Output) -> dict[str, Output]:
    """Tell what a process printed for itself from what it printed for the jobs that it took from others."""
    if any(stream.is_cut or stream.lost for stream in part.streams.values()):
        return {lane: part}
    job_pieces: dict[str, dict[str, list[Piece]]] = {}
    for name, stream in part.streams.items():
        for piece in stream.pieces:
            of_itself = not piece.lane or piece.lane == lane or piece.lane.startswith(f"{lane}/")
            job_pieces.setdefault(lane if of_itself else piece.lane, {}).setdefault(name, []).append(piece)
    if not job_pieces.keys() - {lane}:
        return {lane: part}
    return {
        each: replace(part, streams={name: _of_pieces(part.streams[name], pieces) for name, pieces in streams.items()})
        for each, streams in job_pieces.items()
    }


def _of_pieces(stream: Stream, pieces: list[Piece]) -> Stream:
    return replace(stream, pieces=tuple(pieces), size=sum(len(each.text) for each in pieces), digest="", rest="")


def is_noted(run: Run) -> bool:
    """Tell whether the recorder of a run noted what it printed."""
    return any(OUTPUT in node.span.attributes for node in run.nodes)


def _part(node: Node) -> Output:
    fields = as_object(parsed_or_none(str(node.span.attributes[OUTPUT])))
    span = [as_count(each) or 0 for each in as_list(fields.get("span"))][:2]
    offset = fields.get("offset")
    return Output(
        streams={name: _stream(as_object(each)) for name, each in as_object(fields.get("streams")).items()},
        passed={name: as_count(each) or 0 for name, each in as_object(fields.get("passed")).items()},
        began_ns=span[0] if len(span) == 2 else node.span.start_ns,
        ended_ns=span[1] if len(span) == 2 else node.span.end_ns,
        offset_s=offset if isinstance(offset, int) else 0,
        processes=frozenset({as_count(fields.get(name)) or 0 for name in ("pid", "parent")} - {0}),
        temporary=frozenset(as_text(each) for each in as_list(fields.get("temporary"))),
        threads=fields.get("threads") is True,
        ordered=frozenset(as_text(each) for each in as_list(fields.get("ordered"))),
        thread_ids=frozenset(as_count(each) or 0 for each in as_list(fields.get("thread_ids"))) - {0},
        lost=as_text(fields.get("lost")),
    )


def _stream(fields: Mapping[str, Json]) -> Stream:
    names = [as_text(each) for each in as_list(fields.get("names"))]
    return Stream(
        pieces=tuple(_piece(as_list(each), names) for each in as_list(fields.get("pieces"))),
        size=as_count(fields.get("size")) or 0,
        digest=as_text(fields.get("digest")),
        rest=as_text(as_object(fields.get("rest")).get("digest")),
        is_cut=fields.get("cut") is True,
        later=_later(as_object(fields.get("later"))),
        is_terminal=fields.get("terminal") is True,
        redacted=as_count(fields.get("redacted")) or 0,
        lost=as_text(fields.get("lost")),
    )


def line_digest(line: str) -> bytes:
    """Make the digest of a line."""
    return hashlib.blake2b(line.encode("utf-8", "surrogatepass"), digest_size=DIGEST_SIZE).digest()


def _later(fields: Mapping[str, Json]) -> Later | None:
    number = as_count(fields.get("from"))
    if not number:
        return None
    try:
        data = base64.b64decode(as_text(fields.get("digests")), validate=True)
    except ValueError:
        return None
    digests = tuple(data[at : at + DIGEST_SIZE] for at in range(0, len(data), DIGEST_SIZE))
    last = as_text(fields.get("last"))
    return Later(number=number, digests=digests, last=tuple(last.split("\n")) if last else ())


def _piece(items: list[Json], names: list[str]) -> Piece:
    match items:
        case [int(lane), str(text), int(form)]:
            return Piece(_name(names, lane), text, _name(names, form))
        case [int(lane), str(text)]:
            return Piece(_name(names, lane), text)
        case _:
            return Piece("", "")


def _name(names: list[str], at: int) -> str:
    return names[at] if 0 <= at < len(names) else ""
