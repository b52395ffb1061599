"""Secrets that a stream hands over in pieces: `sk-pro` in one event, `j-4f…` in the next.

The texts of a stream's events are put together field by field, as a reader will: by their path in the event's JSON
and by the indexes that say which choice, block or call they belong to. They are searched whole; what stands for a value
goes where the value began, the rest of it is cut out, and every piece keeps its place. Spellings are read before they
are joined, so that a value may be parted anywhere, inside an escape or a character too.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

import orjson

from reenact.redact.documents import Edit, Looks, Path, applied, walk
from reenact.redact.fields import OPAQUE_KEYS
from reenact.redact.octets import Octets
from reenact.redact.truncated_json import as_cut_off

_LINE: Final = re.compile(r"(?:[^\S\r\n]*data:[^\S\r\n]?)?([^\r\n]*)(?:\r\n|\n|\r|\Z)")
_INDEXES: Final = frozenset({"index", "output_index", "content_index", "summary_index", "item_id", "contentBlockIndex"})
"""Members that say which of several texts an event goes on with."""
_IDENTITIES: Final = ("id", "Id", "model", "object", "created", "fingerprint", "role", "type", "name")
"""How members end that are the same in every event, and no part of a text."""
_ARGUMENTS: Final = frozenset({"arguments", "partial_json", "input"})
"""Members that hold a piece of the JSON of a call's arguments."""
_DEEPEST: Final = 40
_DATA: Final = re.compile(r"(?m)^(?:data|event|id|retry):|^:")
_DECODER: Final = json.JSONDecoder(strict=False)

Field = tuple[Any, ...]


class Value(NamedTuple):
    """A value found in a joined text, as `scan.Found` is one."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What is done to the texts of a stream."""

    find: Callable[[str], Sequence[Any]]
    """Give what must go of a text, in order."""
    stand: Callable[[Any], str]
    """Give what stands for a finding."""
    is_clean: Callable[[str], bool]
    """Tell cheaply that nothing can be found."""
    looks: Looks
    """What is done to what is no part of a joined text."""
    joined: Callable[[str, Path], str] | None = None
    """Redact a joined text that is taken whole; None where nothing is."""
    whole: Callable[[Path], bool] | None = None


class _Event(NamedTuple):
    start: int
    end: int
    value: Any


class _Part(NamedTuple):
    event: int
    path: Path
    text: str


def is_stream(text: str) -> bool:
    """Tell the text of server-sent events."""
    return _DATA.match(text) is not None


def scrubbed(pieces: Sequence[bytes], means: Means) -> list[bytes]:
    """Scrub a stream's pieces. Without a finding they are given back as they are, to the byte."""
    first = next(filter(None, pieces), b"")
    if first[:1] == b"\0" and (spelled := _scrubbed_frames(pieces, means)) is not None:  # no text begins so
        return spelled
    stream_octets = Octets(b"".join(pieces))
    edits = edits_of(stream_octets.text, means)
    return _applied(pieces, edits, stream_octets) if edits else list(pieces)


def _scrubbed_frames(pieces: Sequence[bytes], means: Means) -> list[bytes] | None:
    """Scrub Amazon's frames: their events as those of one stream, then each that changes is framed anew.

    Of a frame that changes all is given with its first byte. None where these are no such frames.
    """
    from reenact.values.event_stream import framed, frames, inner, is_event_stream, with_inner  # few are asked for

    data = b"".join(pieces)
    if not is_event_stream(data):
        return None
    messages = frames(data)
    payloads = [content if (content := inner(frame.payload)) is not None else frame.payload for frame in messages]
    clean = scrubbed([line for each in payloads for line in (each, b"\n")], means)[::2]
    changed: list[tuple[int, int, bytes]] = []
    for frame, old, new in zip(messages, payloads, clean, strict=True):
        if new != old:
            payload = with_inner(frame.payload, new) if old is not frame.payload else new
            changed.append((frame.start, frame.end, framed(frame.headers, payload)))
    rest = messages[-1].end if messages else 0
    tail = data[rest:]
    if tail and (clean_tail := scrubbed([b" " + tail], means)[0][1:]) != tail:  # a frame that was cut off
        changed.append((rest, len(data), clean_tail))
    return _respelled(pieces, changed)


def _respelled(pieces: Sequence[bytes], changed: Sequence[tuple[int, int, bytes]]) -> list[bytes]:
    """Put other bytes in the place of some ranges; they come with the piece in which the range began."""
    result: list[bytes] = []
    begin = 0
    for piece in pieces:
        out, at, end = list[bytes](), 0, begin + len(piece)
        for start, stop, new in changed:
            if start < end and stop > begin:
                out += (piece[at : max(at, start - begin)], new if start >= begin else b"")
                at = min(len(piece), stop - begin)
        result.append(b"".join((*out, piece[at:])))
        begin = end
    return result


def edits_of(text: str, means: Means) -> list[Edit]:
    """Give what is to be changed in the text of a stream, in order."""
    events, plain = _events(text)
    fields = _fields(events, whole=means.whole is not None)
    if plain:
        fields[("data",)] = plain
    joined = {field: "".join(part.text for part in parts) for field, parts in fields.items()}
    if means.whole is None and means.is_clean(text) and all(map(means.is_clean, joined.values())):
        return []
    changed: dict[tuple[int, Path], str] = {}
    for field, parts in fields.items():
        changed |= {place: new for place, new in _parted(joined[field], parts, means) if place not in changed}
    return _edits(text, events, changed, means)


def _events(text: str) -> tuple[list[_Event], list[_Part]]:
    """Find the JSON of each event, and what the others say."""
    events: list[_Event] = []
    plain: list[_Part] = []
    at, size = 0, len(text)
    if text.lstrip()[:1] in {"{", "["} and (whole := _parsed(text)) is not None:
        return [_Event(0, size, whole)], plain  # no stream of events, but one document in pieces
    while at < size:
        match = cast("re.Match[str]", _LINE.match(text, at))  # it matches any line
        start, end = match.span(1)
        if text[start : start + 1] in {"{", "["}:
            events += _values(text, start, end)
        elif start > match.start() and start < end and not text.startswith("[DONE]", start):
            events.append(_Event(start, end, None))
            plain.append(_Part(len(events) - 1, (), text[start:end]))
        at = max(match.end(), at + 1)
    return events, plain


def _parsed(text: str) -> Any:
    try:
        return orjson.loads(text)
    except ValueError:
        return None


def _values(text: str, start: int, end: int) -> Iterator[_Event]:
    """Read the JSON of a line, of which there may be several in a row."""
    try:
        yield _Event(start, end, orjson.loads(text[start:end]))
    except ValueError:
        at, line = start, text if end == len(text) else text[:end]
        while at < end:
            try:
                value, after = _DECODER.raw_decode(line, at)
            except (ValueError, RecursionError):
                return
            yield _Event(at, after, value)
            at = after
            while at < end and text[at] in " \t,":
                at += 1


def _fields(events: list[_Event], *, whole: bool = False) -> dict[Field, list[_Part]]:
    """Put the texts of events together by what they belong to; what is the same in all of them is no text.

    What is taken `whole` becomes something else where it is the arguments of a call, be it in one piece.
    """
    fields: defaultdict[Field, list[_Part]] = defaultdict(list)
    for number, event in enumerate(events):
        if isinstance(event.value, dict | list):
            _collect(event.value, (), (), (), number, fields)
    return {
        field: parts
        for field, parts in fields.items()
        if (len(parts) > 1 and len({part.text for part in parts}) > 1) or (whole and parts[0].path[-1] in _ARGUMENTS)
    }


def _collect(  # noqa: C901 - three kinds of values
    value: Any, path: Path, stream_path: Path, field: Field, number: int, fields: dict[Field, list[_Part]]
) -> None:
    """Collect texts. By `stream_path` a text goes on: an item that says its index stands at that one."""
    if len(path) > _DEEPEST:
        return
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        indexes = tuple(
            (name, item) for name, item in members.items() if name in _INDEXES and isinstance(item, int | str)
        )
        kind = members.get("type") if not (path and "index" in members) else ""  # only the first piece of a call has it
        below = (*field, indexes, kind if isinstance(kind, str) else "")
        for name, item in members.items():
            if isinstance(item, str):
                if item and not name.endswith(_IDENTITIES) and name not in OPAQUE_KEYS:
                    fields[*stream_path, name, below].append(_Part(number, (*path, name), item))
            elif isinstance(item, dict | list):
                _collect(item, (*path, name), (*stream_path, name), below, number, fields)
        return
    for at, item in enumerate(cast("list[Any]", value)):
        if isinstance(item, str):
            if item:
                fields[*stream_path, at, field].append(_Part(number, (*path, at), item))
        elif isinstance(item, dict | list):
            place = "*" if isinstance(item, dict) and "index" in item else at
            _collect(item, (*path, at), (*stream_path, place), field, number, fields)


def _parted(text: str, parts: list[_Part], means: Means) -> Iterator[tuple[tuple[int, Path], str]]:
    """Say what becomes of each part of a joined text, as far as it changes."""
    path = parts[0].path
    if means.whole is not None and means.joined is not None and path and means.whole(path):
        joined = means.joined
        new = as_cut_off(text, lambda it: joined(it, path)) if path[-1] in _ARGUMENTS else joined(text, path)
        for part in parts:  # of one that stays, each part does: alone it would look like something else
            yield (part.event, part.path), part.text if new == text else new if part is parts[0] else ""
        return
    if means.is_clean(text):
        return
    edits = [Edit(finding.start, finding.end, means.stand(finding)) for finding in means.find(text)]
    at = 0
    for part in parts:
        end = at + len(part.text)
        new = _edited(part.text, at, edits)
        if new != part.text:
            yield (part.event, part.path), new
        at = end


def _edits(text: str, events: list[_Event], changed: dict[tuple[int, Path], str], means: Means) -> list[Edit]:
    """Give the edits of the whole: of the events, and of what stands between them."""
    edits: list[Edit] = []
    at = 0
    between: list[tuple[int, int]] = []
    for number, event in enumerate(events):
        between.append((at, event.start))
        at = event.end
        if event.value is None:
            if (new := changed.get((number, ()))) is not None:
                edits.append(Edit(event.start, event.end, new))
            continue
        stretch = text[event.start : event.end]
        if means.whole is None and means.is_clean(stretch) and not any(place[0] == number for place in changed):
            continue
        inner_edits = walk(stretch, _looks_of(number, changed, means))
        if inner_edits is None:  # deeper or stranger than what is walked
            inner_edits = [Edit(finding.start, finding.end, means.stand(finding)) for finding in means.find(stretch)]
        edits += [Edit(event.start + start, event.start + end, new) for start, end, new in inner_edits]
    between.append((at, len(text)))
    for start, end in between:
        if end > start and not means.is_clean(stretch := text[start:end]):
            edits += [Edit(start + f.start, start + f.end, means.stand(f)) for f in means.find(stretch)]
    return sorted(edits)


def _looks_of(number: int, changed: dict[tuple[int, Path], str], means: Means) -> Looks:
    looks = means.looks

    def leaf(value: str, key: str, path: Path) -> str | None:
        new = changed.get((number, path))
        if new is None:
            return looks.leaf(value, key, path)
        return None if new == value else new

    return Looks(leaf=leaf, number=looks.number, key=looks.key, whole=looks.whole, mask=looks.mask)


def _applied(pieces: Sequence[bytes], edits: list[Edit], octets: Octets) -> list[bytes]:
    """Make the edits, each piece keeping what is left of it. A character cut in two goes to the later piece."""
    result: list[bytes] = []
    at = 0
    for text in octets.parts(pieces):
        result.append(octets.spelled(_edited(text, at, edits)))
        at += len(text)
    return result


def _edited(text: str, at: int, edits: Sequence[Edit]) -> str:
    """Give the part of a text that begins at `at`, with the edits that touch it made."""
    out: list[str] = []
    edited_end = 0
    for start, end, token in edits:
        low, high = start - at, end - at
        if low >= len(text):
            break
        if high <= 0 and end > start:
            continue
        if low >= 0:
            out += (text[edited_end:low], token)
        edited_end = max(edited_end, min(high, len(text)))
    return "".join((*out, text[edited_end:]))


__all__ = ["Means", "applied", "edits_of", "is_stream", "scrubbed"]
