"""What a program prints: the texts that its Python code gave to its standard streams, as part of its outcome.

Whose a text is goes by where the code stands: that of the unit of work that came in, of the run opened with
`with reenact.run`, or of the process. Texts are kept by lane, since the lines of two threads may come in another order
next time. What is printed inside an answered call is told there (`record.tool_prints`), and is part of this where the
answer prints it again; else (the log lines of an HTTP client) it is none of the program's. Texts are redacted before
they are written down, and a digest is that of the redacted text.
"""

from __future__ import annotations

import base64
import hashlib
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from reenact.boundary import inbound, lanes, place, program_threads
from reenact.boundary.inbound import Inbound
from reenact.record import console, tool_prints
from reenact.record.console import Source
from reenact.record.file_writes import Owner, Redacted
from reenact.values import alarms
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.run import OUTPUT, PRINTED_INSIDE

_KEPT: Final = 64 << 10
"""Characters of one stream that are written down."""
_MOST_DIGESTS: Final = 20_000
"""Lines behind them of which a digest is."""
_LAST: Final = 2048
"""Characters of the last of these that are written down as well."""
_HEARD: Final = 1 << 20
"""Characters of one stream that are kept until the end of its run; of what comes behind them the digest is told."""
_MOST_PIECES: Final = 20_000
_MOST_NAMES: Final = 200
_MOST_LANES: Final = 200
_SLACK_NS: Final = 1_000_000_000
_now: Callable[[], int] = time.time_ns  # the real one, before the clock integration stands in front of it


class _Stream:
    """What came to one stream."""

    __slots__ = ("is_terminal", "pieces", "rest", "rest_size", "size")

    def __init__(self) -> None:
        self.pieces: list[tuple[str, str, list[str]]] = []
        """Lane, format of the lines where they were logged, texts."""
        self.size = self.rest_size = 0
        self.rest: Any = None
        self.is_terminal = False

    def add(self, lane: str, form: str, text: str) -> None:
        self.size += len(text)
        if self.size > _HEARD or len(self.pieces) > _MOST_PIECES:
            if self.rest is None:
                self.rest = hashlib.blake2b(digest_size=16)
            self.rest.update(text.encode("utf-8", "surrogatepass"))
            self.rest_size += len(text)
        elif self.pieces and self.pieces[-1][:2] == (lane, form):
            self.pieces[-1][2].append(text)
        else:
            self.pieces.append((lane, form, [text]))


class _Part:
    """What one unit, one run, or the process printed."""

    __slots__ = ("began_ns", "lanes", "mixed", "passed", "pending", "streams", "threads")

    def __init__(self, began_ns: int) -> None:
        self.began_ns = began_ns
        self.streams: dict[str, _Stream] = {}
        self.passed: Counter[str] = Counter()
        """What was heard and is not the program's own, by what it is."""
        self.threads: set[int] = set()
        self.lanes: dict[str, int] = {}
        """On which thread each lane printed; 0 where there were several."""
        self.mixed = False
        self.pending = False


class Outputs:
    """Notes what one process prints while it is recorded or replayed."""

    def __init__(
        self,
        redacted: Redacted,
        owner: Callable[[], Owner],
        names: Callable[[], Iterable[str]] = tuple,
        *,
        keeps_texts: bool = True,
    ) -> None:
        """`redacted` scrubs attributes, `owner` says whose code runs now, `names` gives what `tempfile` made.

        `keeps_texts` says that the policy lets texts stand, less what is found in them.
        """
        self._keeps_texts = keeps_texts
        self._redact, self._owner, self._names = redacted, owner, names
        self._began = _now()
        self._parts: dict[int | None, _Part] = {}
        self._unspelled: list[str] = []
        self._leave_units: Callable[[], None] = lambda: None

    def listen(self) -> None:
        """Hear of every text from here on."""
        console.listen(self.note)
        self._leave_units = inbound.hear(lambda _: console.follow())

    def leave(self) -> None:
        """Hear no more."""
        console.leave(self.note)
        self._leave_units()
        self._leave_units = lambda: None

    def forked(self) -> None:
        """Leave to the parent what it printed: this process is a copy of it."""
        self._parts, self._began = {}, _now()

    def note(self, stream: str, text: str, source: Source | None) -> None:
        """Note a text that is about to be printed."""
        here = place.current()
        if not text:
            return
        part = self._part(self._owner())
        if here is not None and here.whole and not tool_prints.is_of_tool(here.span_id):
            if source is None or source.own:  # a hook of a client, say: an answer does not run it
                part.passed[PRINTED_INSIDE] += 1
            return
        if source is not None and not source.own:
            part.passed[source.what] += 1
            return
        part.pending = True
        lane, thread = _lane(), threading.get_ident()
        part.threads.add(thread)
        if part.lanes.setdefault(lane, thread) != thread:
            part.lanes[lane] = 0
        output = part.streams.get(stream)
        if output is None:
            output = part.streams.setdefault(stream, _Stream())
            output.is_terminal = _is_terminal(stream)
        output.add(lane, source.form if source is not None else "", text)

    def mixed(self) -> None:
        """Hear that a tool and something else printed at the same time: an answer prints as one what was apart."""
        self._part(self._owner()).mixed = True

    def _part(self, owner: Owner) -> _Part:
        if isinstance(owner, Inbound):
            if owner.printed is None:
                owner.printed = _Part(_now())
            return cast("_Part", owner.printed)
        part = self._parts.get(owner)
        return part or self._parts.setdefault(owner, _Part(self._began if owner is None else _now()))

    @property
    def pending(self) -> bool:
        """Tell whether the process printed anything outside of every run that was not told yet."""
        part = self._parts.get(None)
        return part is not None and part.pending

    def unspelled(self) -> list[str]:
        """Take the lines whose addresses were replaced: libraries' draws are looked for there, too."""
        lines, self._unspelled = self._unspelled, []
        return lines

    def report(self, owners: Iterable[Owner]) -> str:
        """Tell what was printed by the owners of one run, as JSON. Never raises an `Exception`."""
        parts: list[_Part] = []
        for owner in owners:
            owner_part = owner.printed if isinstance(owner, Inbound) else self._parts.pop(owner, None)
            parts += [owner_part] if isinstance(owner_part, _Part) else []
        report: dict[str, Json] = {"streams": {}}
        try:
            streams = {name: each for part in parts for name, each in part.streams.items()}
            report["streams"] = {name: self._stream_entry(each) for name, each in streams.items()}
            if passed_counts := sum((part.passed for part in parts), Counter[str]()):
                report["passed"] = dict(passed_counts)
        except Exception:
            alarms.pass_on()
            report["lost"] = "what it printed could not be written down"
        if parts and (report["streams"] or "passed" in report):
            report["span"] = [min(each.began_ns for each in parts) - _SLACK_NS, _now() + _SLACK_NS]
            report["pid"], report["parent"], report["offset"] = os.getpid(), os.getppid(), time.localtime().tm_gmtoff
            if any(part.mixed or len(part.threads) > 1 for part in parts):
                report["threads"] = True
                report["ordered"] = _ordered(parts)
            if names := [each.rpartition("/")[2] for each in self._names()][-_MOST_NAMES:]:
                report["temporary"] = [*names]
        spelled = compact(report)
        ids = program_threads.among(spelled)
        return compact({**report, "thread_ids": [*ids]}) if ids else spelled

    def _stream_entry(self, stream: _Stream) -> dict[str, Json]:
        pieces: list[Json] = [[lane, form, "".join(texts)] for lane, form, texts in stream.pieces]
        clean = self._scrubbed(pieces)
        entry: dict[str, Json] = {"size": stream.size}
        if stream.is_terminal:
            entry["terminal"] = True
        if not self._keeps_texts:
            return {**entry, "lost": "the redaction policy keeps no text"}
        if clean is None:
            return {**entry, "lost": "redaction drops it"}
        texts = [as_text(as_list(piece)[2]) for piece in clean]
        if clean != pieces:
            entry["redacted"] = sum(each.count("REDACTED_") for each in texts)
            from reenact.values.redaction_marks import lines_with_addresses

            before = "".join(as_text(as_list(piece)[2]) for piece in pieces)
            self._unspelled.append(lines_with_addresses(before, "".join(texts)))
        entry["digest"] = _hash("".join(texts))
        if stream.rest is not None:
            entry["rest"] = {"size": stream.rest_size, "digest": stream.rest.hexdigest()}
        return {**entry, **_short(clean, texts)}

    def _scrubbed(self, pieces: list[Json]) -> list[Json] | None:
        """Redact texts as they will be where they are written down; None where a policy drops them."""
        around = {"openinference.span.kind": "CHAIN", OUTPUT: compact({"pieces": pieces})}
        redacted_output = as_object(parsed_or_none(str(self._redact(around).get(OUTPUT, ""))))
        clean = as_list(redacted_output.get("pieces"))
        whole = len(clean) == len(pieces) and all(isinstance(each, list) and len(each) == 3 for each in clean)
        return clean if whole else None


def _short(clean: list[Json], texts: list[str]) -> dict[str, Json]:
    """Give the pieces to a bound, with lanes and formats by number, and whether that is all."""
    numbers: dict[str, int] = {}
    short_pieces: list[Json] = []
    left = _KEPT
    for piece, text in zip(clean, texts, strict=True):
        if left <= 0:
            break
        lane, form = (as_text(each) for each in as_list(piece)[:2])
        shortened: list[Json] = [numbers.setdefault(lane, len(numbers)), text[:left]]
        short_pieces.append([*shortened, numbers.setdefault(form, len(numbers))] if form else shortened)
        left -= len(text)
    entry: dict[str, Json] = {"pieces": short_pieces, "names": [*numbers]}
    return entry if left >= 0 else {**entry, "cut": True, "later": _later("".join(texts))}


def _later(text: str) -> dict[str, Json]:
    """Give what is kept of the lines behind the pieces, from that in which they end on: digests, the last texts."""
    from reenact.values.output import line_digest  # most programs print less

    lines = text[text.rfind("\n", 0, _KEPT) + 1 :].split("\n")
    digests = b"".join(line_digest(line) for line in lines[:_MOST_DIGESTS])
    end = text[max(text.find("\n", -_LAST) + 1, 0) :] if len(lines) <= _MOST_DIGESTS else ""
    return {
        "from": text.count("\n", 0, _KEPT) + 1,
        "digests": base64.b64encode(digests).decode(),
        "last": end if len(end) < _LAST else "",
    }


def _ordered(parts: list[_Part]) -> list[Json]:
    """List the lanes whose own lines stand in one order, though others printed meanwhile."""
    if any(part.mixed for part in parts):
        return []
    threads: dict[str, int] = {}
    for part in parts:
        for lane, thread in part.lanes.items():
            threads[lane] = thread if threads.get(lane, thread) == thread else 0
    ordered: list[Json] = [lane for lane, thread in threads.items() if thread]
    return ordered[:_MOST_LANES]


def _lane() -> str:
    """Name the lane that prints; what a tool's body does on lanes of its own is its caller's."""
    path = lanes.current().path
    at = path.find("()#")
    return path if at < 0 else path[:at].rpartition("/")[0]


def _is_terminal(stream: str) -> bool:
    try:
        return bool(getattr(sys, stream).isatty())
    except Exception:  # a stream of the agent's own
        alarms.pass_on()
        return False


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
