"""The journal: what a recording process writes down before its agent gets an answer, and spans made of it again.

Theory of operation. One file per process, append-only. After the 8-byte magic come frames: payload length and
Adler-32 (RFC 1950), both unsigned 32-bit big-endian, then the payload, one JSON object. A frame is one `write(2)`; a
process that is killed leaves at most a torn last frame, at which reading stops. A frame that was damaged later is
passed over: no payload holds the zero bytes that a head begins with, so the next whole frame is found by looking. So is
a damaged magic. What stood in a damaged place is mostly legible yet, and says which trace lost something. Frame
types by `t`: `open` (first: resource and process; in what is exported again where these change), `start` and `end` of a
span, `head` and `chunk` of a stream, `note` (facts about the process). A span without an `end` is read back as
incomplete with what is known.

A `start` with `turn: [n, of, shared]` is a turn of a conversation: its `input.value` is the first `shared` characters
of the text that turn `of` had, and then what is written; it is known as `n` from there on in the place of `of`.
The last `CONVERSATIONS` are known. Where the turn before is lost, the value is left out and `reenact.damaged` names it.

A journal that grows long goes on in further files, `<name>.1.rnj` and so on, each with a head and an `open` of its own;
a span may begin in one and end in another. `torn` stands behind a frame that a full disk cut.

Behind the `open` stands a `note` of a fixed length, as good as empty. A full disk does not keep a writer from writing
over it, in place: it says why the rest is missing (`cut`), and how many records are (`dropped`).

The version is in the magic; a reader keeps every version it ever knew (the first had CRC-32, the second no turns).
"""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import orjson

from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.values.json import Json, compact, exactly, parsed_or_none
from reenact.values.span import STATUS_ERROR, Resource, Scope, SpanEvent, SpanLink, SpanRecord

MAGIC = b"RNACTJ3\n"
_SUMS: Mapping[bytes, Callable[[bytes | memoryview], int]] = {
    b"RNACTJ1\n": zlib.crc32,
    b"RNACTJ2\n": zlib.adler32,
    MAGIC: zlib.adler32,
}
"""The checksum of each version. CRC-32 needs tables that an agent's own work drives out of the cache at every call."""
_HEAD = struct.Struct(">II")
_LARGEST_FRAME = 1 << 30
SUFFIX = ".rnj"
TEXT = "input.value"
"""The attribute that grows with a conversation."""
_MOST_HEADLESS = 10_000
CONVERSATIONS = 8
"""The last texts of so many conversations are known; the one that was not heard of for longest goes."""
_BEGINS = b'{"t":"'
"""How every payload begins."""
_SLOT: Final = 240
"""Bytes of the note that is written over."""
_LEGIBLE: Final = 1 << 16
"""So much of a damaged place is looked at for what it says."""
_MOST_LOSSES: Final = 10_000
_TYPE, _OF_TRACE = re.compile(rb'"t":"(\w+)"'), re.compile(rb'"trace":"([0-9a-f]{32})"')
_OF_SPAN = re.compile(rb'"span":"([0-9a-f]{16})"')
_NAMED = re.compile(r"([0-9a-f]{16})-([0-9a-f]{16})")
_TOLD_BY = (_TYPE, _OF_TRACE, _OF_SPAN)
_ROOTS: Final = frozenset({"reenact.run.root", "reenact.process.root"})
_LEAST_LIKE: Final = 2
"""Bytes at which the first frame of a file with a damaged magic is known; another bit of it may be damaged, too."""
CUT: Final = "reenact.cut"
"""Why a span is written down in part: what the system said when no more could be written."""
_LOST, _LOST_OF_REQUEST = "reenact.lost", "reenact.lost.request"


def segment_name(name: str, number: int) -> str:
    """Name the file of a journal with this number, from 0."""
    return f"{name}.{number}{SUFFIX}" if number else f"{name}{SUFFIX}"


def segment_of(file: str) -> tuple[str, int]:
    """Give the name of the journal that a file belongs to, and its number in it."""
    name, _, number = file.removesuffix(SUFFIX).partition(".")
    return name, int(number) if number.isdecimal() else 0


def frame(payload: dict[str, Any]) -> bytes:
    """Spell one frame. Any value is written: what JSON cannot hold is tagged, never an error."""
    try:
        data = orjson.dumps(payload, default=_tagged)
    except (TypeError, orjson.JSONEncodeError):  # lone surrogates, integers over 64 bit
        data = json.dumps(payload, default=_tagged, separators=(",", ":")).encode()
    return _HEAD.pack(len(data), zlib.adler32(data)) + data


_TORN = b'{"t":"torn"}'
TORN = _HEAD.pack(len(_TORN), zlib.adler32(_TORN)) + _TORN
"""Written behind a frame that could not be written whole, so that what is left of it is no damage."""


def slot(**note: Any) -> bytes:
    """Make the note that has the same length whatever it says, so that it can be written over."""
    data = orjson.dumps({"t": "note", "note": note})
    if len(data) > _SLOT:  # what the system says is long
        data = orjson.dumps({"t": "note", "note": {**note, "cut": str(note.get("cut", ""))[: _SLOT // 8]}})
    data = data.ljust(_SLOT)
    return _HEAD.pack(len(data), zlib.adler32(data)) + data


def _tagged(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, tuple | set | frozenset):
        return list(cast("Iterable[Any]", value))
    try:
        return dict(cast("Mapping[str, Any]", value))
    except (TypeError, ValueError):
        return f"<{type(value).__qualname__}>"


def _untagged(value: Any) -> Any:
    if isinstance(value, dict):
        mapping = cast("dict[str, Any]", value)
        if mapping.keys() == {"$bytes"}:
            return base64.b64decode(mapping["$bytes"])
        return {key: _untagged(item) for key, item in mapping.items()}
    if isinstance(value, list):
        return [_untagged(item) for item in cast("list[Any]", value)]
    return value


@dataclass(slots=True)
class _Open:
    """A span on its way through the journal."""

    start: dict[str, Any]
    attributes: dict[str, Any]
    chunks: list[list[Any]] = field(default_factory=list[list[Any]])
    files: set[int] = field(default_factory=set[int])
    """The files that hold anything of it."""
    damaged: dict[str, None] = field(default_factory=dict[str, None])
    """What of it stood in a damaged place: `outcome` or `reenact.stream.chunks`. An end makes up for pieces."""

    @property
    def begun_in(self) -> int:
        """The number of the file in which it began."""
        return min(self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What a reader has to know of a journal, the files of which are removed when they were carried."""

    file: int
    """The number of the file that was read when files were removed last."""
    open_spans: frozenset[str]
    """The ids of the spans that had not ended then. All others that began in an earlier file had."""
    crossings: Mapping[int, int]
    """How many spans had ended in that file then that began in an earlier one, by the number of the earlier one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What is known of one damaged place."""

    trace: str
    """The trace that it says it is of; empty where that is not legible."""
    suspects: frozenset[str]
    """The traces that were being written at that time."""


class Reader:
    """Reads frames into spans, now or while the journal still grows. Not thread-safe."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.header: dict[str, Any] = {}
        self.notes: dict[str, Any] = {}
        self._open: dict[str, _Open] = {}
        self._turns: dict[int, str] = {}
        self._rest = b""
        self._has_begun = False
        self._sum = _SUMS[MAGIC]
        self.damaged = 0
        """Gaps that had to be passed over."""
        self.losses: list[Loss] = []
        """What is known of them, but for pieces of streams whose end holds them again."""
        self.beginnings: dict[str, str] = {}
        """Trace by span, of spans whose beginning stood in a damaged place."""
        self._latest = ""
        self.file = 0
        """The number of the file that is read."""
        self.spans = 0
        """Spans that ended."""
        self.above: dict[tuple[str, str], None] = {}
        """Trace and span id of parents that began nowhere in this journal, or had ended before."""
        self.traces: set[str] = set()
        """The trace of all that it holds; two where they are several."""
        self.headless: dict[str, dict[str, Any]] = {}
        """Ends of spans whose beginning is not there, by span id: of a damaged journal, or of a forked process."""
        self._given_up = 0
        self.crossings = Counter[int]()
        """Spans that ended in the file that is read and began in another, by the number of that one."""
        self.release: Release | None = None
        """What was noted of files that are no longer there."""

    def feed(self, data: bytes) -> Iterator[SpanRecord]:
        """Take more bytes and yield the spans that ended in them."""
        self._rest = self._rest + data if self._rest else data
        del data  # a frame may be as large as the memory that is left
        if not self._has_begun:
            if len(self._rest) < len(MAGIC):
                return
            self._begin_file()
        offset = 0
        try:
            while (next_frame := self._next(offset)) is not None:
                offset, payload = next_frame
                span = self._span_of(payload)
                if span is not None:
                    yield span
        finally:
            self._rest = self._rest[offset:]

    def _begin_file(self) -> None:
        """Take the magic; a damaged one is that which it is nearest to. Raises `InputError` where there is none."""
        head = self._rest[: len(MAGIC)]
        nearest = min(_SUMS, key=lambda magic: sum(one != other for one, other in zip(magic, head, strict=True)))
        if head not in _SUMS:
            if (
                not self._rest[len(MAGIC) + _HEAD.size :].startswith(_BEGINS[:_LEAST_LIKE])
                and _BEGINS not in self._rest
            ):
                raise InputError(self.place, "this is not a reenact journal of a version that can be read")
            self.damaged += 1
        self._rest, self._has_begun, self._sum = self._rest[len(MAGIC) :], True, _SUMS[nearest]
        if self._frame(0) is None:  # a bit makes one version of another
            for checksum in {*_SUMS.values()} - {self._sum}:
                before, self._sum = self._sum, checksum
                if self._frame(0) is not None:
                    self.damaged += head in _SUMS
                    return
                self._sum = before

    def wanted(self) -> int:
        """Say how many bytes the frame that is read at the moment lacks, by its head; 0 where nothing says."""
        if len(self._rest) < _HEAD.size or not self._has_begun:
            return 0
        length, _ = _HEAD.unpack_from(self._rest)
        return max(0, _HEAD.size + length - len(self._rest)) if length <= _LARGEST_FRAME else 0

    def next_file(self, number: int) -> None:
        """Go on with a further file of the journal."""
        self.file = number
        self._given_up += len(self._rest)
        self._rest, self._has_begun = b"", False
        self._turns.clear()
        self.crossings.clear()

    untagged = staticmethod(_untagged)

    def needed(self) -> set[int]:
        """Give the numbers of the files that hold anything of a span which has not ended."""
        return {number for opened in self.still_open() for number in opened.files}

    def still_open(self) -> list[_Open]:
        """Give the spans that have not ended, without those whose end stood in a file that is no longer there."""
        release = self.release
        if release is None:
            return [*self._open.values()]
        return [
            opened
            for span_id, opened in self._open.items()
            if opened.begun_in >= release.file or span_id in release.open_spans
        ]

    def _next(self, offset: int) -> tuple[int, memoryview] | None:
        """Give the payload of the next whole frame, and where it ends."""
        payload, at = self._frame(offset), offset
        while payload is None:  # the end, a frame that is still being written, or a damaged one with others behind it
            begin = self._rest.find(_BEGINS, at + 1 + _HEAD.size)
            if begin < 0:
                return None
            at = begin - _HEAD.size
            payload = self._frame(at)
        if at > offset:
            self.damaged += 1
            self._note_loss(bytes(self._rest[offset : min(at, offset + _LEGIBLE)]))
        return at + _HEAD.size + len(payload), payload

    def _note_loss(self, place: bytes) -> None:
        """Find out from a damaged place, of which most is as it was, what stood there."""
        kind, trace, span = (match[1].decode() if (match := sought.search(place)) else "" for sought in _TOLD_BY)
        opened = self._open.get(span)
        if opened is not None and kind in {"chunk", "head", "end"}:
            opened.damaged["outcome" if kind == "end" else "reenact.stream.chunks"] = None
            return  # it is said of that span, where it turns out that anything is missing
        if kind == "start" and trace and span:
            self.beginnings[span] = trace
        if kind in {"note", "open"} or len(self.losses) >= _MOST_LOSSES:
            return
        suspects = {str(each.start["trace"]) for each in self._open.values()} or {self._latest} - {""}
        self.losses.append(Loss(trace=trace, suspects=frozenset(suspects)))

    def _span_of(self, payload: memoryview) -> SpanRecord | None:
        try:
            try:
                read: Any = orjson.loads(payload)
            except orjson.JSONDecodeError:  # lone surrogates
                read = exactly(bytes(payload))
            return self._take(read)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(self.place, f"a frame is none of a journal's: {error!r}") from error

    def _frame(self, offset: int) -> memoryview | None:
        """Give the payload of the frame at `offset`, or None at the end, at a torn tail or at a damaged frame."""
        rest = self._rest
        if len(rest) - offset < _HEAD.size:
            return None
        length, checksum = _HEAD.unpack_from(rest, offset)
        if length > _LARGEST_FRAME or len(rest) - offset < _HEAD.size + length:
            return None
        payload = memoryview(rest)[offset + _HEAD.size : offset + _HEAD.size + length]
        return payload if self._sum(payload) == checksum else None

    def _take(self, payload: dict[str, Any]) -> SpanRecord | None:
        match payload["t"]:
            case "open":
                self.header = payload
            case "start":
                self._begin(payload)
            case "head" | "chunk":
                self._go_on(payload)
            case "note":
                self.notes.update(payload["note"])
            case "end":
                return self._end(payload)
            case "torn":
                self.damaged -= self.damaged > 0
                if self.losses:
                    self.losses.pop()
            case _:
                pass  # a later version's frame: nothing of ours is lost by passing over it
        return None

    def _begin(self, payload: dict[str, Any]) -> None:
        attributes = self._begun_with(payload)
        self._latest = payload["trace"]
        self._open[payload["span"]] = _Open(payload, attributes, files={self.file})
        if len(self.traces) < 2:
            self.traces.add(payload["trace"])
        parent = payload["parent"]
        if parent is not None and parent not in self._open and attributes.get("reenact.run.root") is not True:
            self.above[payload["trace"], parent] = None

    def _go_on(self, payload: dict[str, Any]) -> None:
        opened = self._open.get(payload["span"])
        if opened is None:
            return
        opened.files.add(self.file)
        if payload["t"] == "head":
            opened.attributes.update(_untagged(payload["attributes"]))
        else:
            opened.chunks.append(payload["chunk"])

    def _end(self, payload: dict[str, Any]) -> SpanRecord | None:
        opened = self._open.pop(payload["span"], None)
        if opened is not None:
            self.spans += 1
            if opened.begun_in != self.file:
                self.crossings[opened.begun_in] += 1
            return self._span(opened, payload)
        if len(self.headless) < _MOST_HEADLESS:
            self.headless[payload["span"]] = payload
        return None

    def _begun_with(self, start: dict[str, Any]) -> dict[str, Any]:
        """Give the attributes of a span that began, with the text of a turn put together."""
        attributes: dict[str, Any] = _untagged(start["attributes"])
        if "turn" not in start:
            return attributes
        number, of, shared = start["turn"]
        before = self._turns.pop(of, "")
        if not 0 <= shared <= len(before):  # the turn before was damaged, or this one is
            del attributes[TEXT]
            return {**attributes, "reenact.damaged": TEXT}
        self._turns[number] = attributes[TEXT] = before[:shared] + attributes[TEXT]
        if len(self._turns) > CONVERSATIONS:
            del self._turns[next(iter(self._turns))]
        return attributes

    def resource(self) -> dict[str, Any]:
        """Give the attributes of the process; where they stood in a damaged place, what the name of the file says."""
        if self.header:
            return _untagged(self.header.get("resource", {}))
        match = _NAMED.match(Path(self.place).name)
        if match is None:
            return {}
        return {
            "reenact.recording.id": match[1],
            "reenact.process.id": match[2],
            "service.instance.id": match[2],
            "service.name": "python",
        }

    def note_again(self, head: bytes) -> None:
        """Read the notes at the beginning of a file again, which may have been written over since."""
        again = Reader(self.place)
        with suppress(InputError):
            for _ in again.feed(head):
                pass
        self.notes.update(again.notes)

    def torn(self) -> int:
        """Count the bytes at the end that are no whole frame."""
        return self._given_up + len(self._rest)

    def unfinished(self) -> Iterator[SpanRecord]:
        """Yield the spans that never ended, as incomplete, with what is known of them."""
        why = "the process ended before this call did"
        cut_note: dict[str, Any] = {}
        if cut := self.notes.get("cut"):
            why, cut_note = f"no more could be written: {cut}", {CUT: str(cut)}
        for opened in self.still_open():
            last = opened.chunks[-1][0] * 1000 if opened.chunks else 0
            attributes: dict[str, Any] = {"reenact.incomplete": True, **cut_note}
            if cut_note and _ROOTS & opened.attributes.keys():
                attributes["reenact.dropped"] = self.notes.get("dropped", 1)
            if opened.damaged:
                attributes["reenact.damaged"] = ", ".join(opened.damaged)
            if opened.chunks:
                attributes["reenact.stream.chunks"] = compact(cast("Json", opened.chunks))
                attributes["reenact.stream.end"] = "unfinished"
                attributes["reenact.outcome"] = "streamed"
            else:
                attributes["reenact.outcome"] = "unfinished"
            end = {
                "ns": opened.start["ns"] + last,
                "attributes": attributes,
                "status": STATUS_ERROR,
                "message": "its record is damaged" if "outcome" in opened.damaged else why,
            }
            yield self._span(opened, end)

    def next_release(self) -> Release:
        """Say what a later reader has to know when the files before the one that is read are removed."""
        open_spans = frozenset(str(opened.start["span"]) for opened in self.still_open())
        return Release(file=self.file, open_spans=open_spans, crossings=dict(self.crossings))

    def _span(self, opened: _Open, end: dict[str, Any]) -> SpanRecord:
        start = opened.start
        return SpanRecord(
            trace_id=start["trace"],
            span_id=start["span"],
            parent_id=start["parent"],
            name=end.get("name", start["name"]),
            kind=start["kind"],
            start_ns=start["ns"],
            end_ns=max(start["ns"], end["ns"]),
            status=end.get("status", 0),
            status_message=end.get("message", ""),
            attributes=_told_once(opened.attributes | _untagged(end["attributes"])),
            events=tuple(
                SpanEvent(name=name, time_ns=ns, attributes=_untagged(attributes))
                for name, ns, attributes in end.get("events", ())
            ),
            links=tuple(
                SpanLink(trace_id=trace, span_id=span, attributes=_untagged(attributes))
                for trace, span, attributes in start.get("links", ())
            ),
            resource=Resource(attributes=self.resource()),
            scope=Scope(name=self.header.get("scope", "reenact"), version=self.header.get("version", "")),
        )


def _told_once(attributes: dict[str, Any]) -> dict[str, Any]:
    """Say in one place what was left out of a span at its beginning and at its end."""
    early, late = (_listed(attributes.get(name)) for name in (_LOST_OF_REQUEST, _LOST))
    if early is not None:  # else it is the program's own attribute, whatever it is called
        del attributes[_LOST_OF_REQUEST]
        attributes[_LOST] = compact(cast("Json", [*early, *(late or [])]))
    return attributes


def _listed(value: Any) -> list[Any] | None:
    json_value = parsed_or_none(value) if isinstance(value, str) else None
    return json_value if isinstance(json_value, list) else None


def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    reader = Reader(str(path))
    while data := stream.read(1 << 20):
        yield from reader.feed(data)
    yield from reader.unfinished()


def _encode(spans: Iterable[SpanRecord]) -> bytes:
    """Spell finished spans as a journal would hold them, its beginning again where another process or scope follows."""
    pieces = [MAGIC]
    before = b""
    for span in spans:
        # As bytes: of a flag and a number, True equals 1.
        opening = frame(header(dict(span.resource.attributes), span.scope.name, span.scope.version))
        if opening != before:
            pieces.append(opening)
            before = opening
        pieces.append(frame(start_frame(span)))
        pieces.append(frame(end_frame(span)))
    return b"".join(pieces)


def header(resource: dict[str, Any], scope: str, version: str) -> dict[str, Any]:
    """Make the first frame of a journal."""
    return {"t": "open", "resource": resource, "scope": scope, "version": version}


def start_frame(span: SpanRecord) -> dict[str, Any]:
    """Make the frame that says a span began."""
    return {
        "t": "start",
        "trace": span.trace_id,
        "span": span.span_id,
        "parent": span.parent_id,
        "name": span.name,
        "kind": span.kind,
        "ns": span.start_ns,
        "attributes": span.attributes,
        "links": [[link.trace_id, link.span_id, link.attributes] for link in span.links],
    }


def end_frame(span: SpanRecord) -> dict[str, Any]:
    """Make the frame that says a span ended; its attributes are added to those of the start."""
    return {
        "t": "end",
        "span": span.span_id,
        "name": span.name,
        "ns": span.end_ns,
        "attributes": {},
        "status": span.status,
        "message": span.status_message,
        "events": [[event.name, event.time_ns, event.attributes] for event in span.events],
    }


_SURE = 0.99
"""How sure eight bytes of magic make: whatever else begins with them is no journal."""

FORMAT = Format(
    name="journal",
    suffix=SUFFIX,
    recognises=lambda head: _SURE if head[: len(MAGIC)] in _SUMS else 0.0,
    encode=_encode,
    decode=_decode,
    marks=HeadMarks(texts=tuple((magic.decode(),) for magic in _SUMS)),
    most=_SURE,
)
