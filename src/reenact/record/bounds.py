"""How a journal is kept: how large it may become, what goes first at its bound, and when it is forced to the disk."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from reenact.values.json import Json, compact
from reenact.values.terminal import tell

MAX: Final = "REENACT_JOURNAL_MAX"
FSYNC: Final = "REENACT_JOURNAL_FSYNC"
_DEFAULT: Final = 1 << 30
_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE: Final = re.compile(r"(\d+)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_LEAST: Final = 1 << 16
_LARGEST_SEGMENT: Final = 64 << 20
_SHORT: Final = 256
"""Texts up to this length are structure: names, lanes, ids. Longer ones are payload."""
_COUNTS: Final = "reenact.dropped"
LOST: Final = "reenact.lost"
"""Under which name a span says what was left out of it: JSON, a list of `{"field", "lost", "fix"}`."""


class Fsync(StrEnum):
    """When a journal is forced to the disk.

    What a process handed to the system outlives the process in any case; this is about the machine.
    """

    OFF = "off"
    END = "end"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The settings of one journal."""

    most: int = _DEFAULT
    """Bytes of one process that may wait to be carried; 0 for any number."""
    fsync: Fsync = Fsync.OFF

    @property
    def segment(self) -> int:
        """Bytes after which a new file is begun, so that what was carried can go from the disk."""
        return min(_LARGEST_SEGMENT, max(self.most // 8, _LEAST // 4)) if self.most else _LARGEST_SEGMENT

    @property
    def payload(self) -> int:
        """Bytes from which on only roots and structure are written; the rest of `most` is for them."""
        return self.most - self.most // 8


def bounds_from(environ: Mapping[str, str]) -> Bounds:
    """Read REENACT_JOURNAL_MAX (bytes, or as `512M`; `off` for none) and REENACT_JOURNAL_FSYNC (off, end, always).

    A value that cannot be read is told on stderr, and the default is taken: recording forgives.
    """
    size, fsync = environ.get(MAX, "").strip().lower(), environ.get(FSYNC, "").strip().lower()
    most = _DEFAULT
    if size in {"0", "off", "none"}:
        most = 0
    elif size and (match := _SIZE.fullmatch(size)) is not None:
        most = max(_LEAST, int(match[1]) * _UNITS[match[2]])
    elif size:
        tell(f"{MAX}={size} is no size, as 512M is; {_DEFAULT} bytes are taken")
    if fsync not in {"", *Fsync}:
        tell(f"{FSYNC}={fsync} is none of {', '.join(Fsync)}; {Fsync.OFF} is taken")
        fsync = ""
    return Bounds(most=most, fsync=Fsync(fsync or Fsync.OFF))


def is_root(payload: Mapping[str, Any]) -> bool:
    """Tell the frame of a root's start, of what stands for a process, or of what is no span's."""
    kind = payload["t"]
    if kind == "start":
        attributes = payload["attributes"]
        return "reenact.run.root" in attributes or "reenact.process.root" in attributes
    return kind not in {"end", "head", "chunk"} or _COUNTS in payload.get("attributes", ())


def structure(payload: Mapping[str, Any], why: str, *, whole_start: bool) -> tuple[dict[str, Any] | None, bool]:
    """Give the frame without its payload, and whether it has none; None for one that is nothing else, as of a stream.

    A call of which anything is missing is unfinished, so that no replay answers from the rest. `whole_start` tells
    that the start which this end belongs to was written whole.
    """
    if payload["t"] not in {"start", "end"}:
        return None, False
    attributes: Mapping[str, Any] = payload["attributes"]
    short_attributes = {name: value for name, value in attributes.items() if not _is_long(value)}
    names = [name for name in attributes if name not in short_attributes]
    if payload["t"] == "end" and (names or not whole_start):
        short_attributes |= {"reenact.outcome": "unfinished"}
    if names:
        field = "request" if payload["t"] == "start" else "outcome"
        lost: list[Json] = [{"field": field, "lost": f"{', '.join(names)}: {why}", "fix": f"raise {MAX} or make room"}]
        short_attributes[LOST if field == "outcome" else f"{LOST}.request"] = compact(lost)
    frame = {**payload, "attributes": short_attributes}
    frame.pop("turn", None)
    if frame.get("events"):
        frame["events"] = [[name, ns, {}] for name, ns, _ in frame["events"]]
    return frame, not names and (payload["t"] == "start" or whole_start)


def _is_long(value: Any) -> bool:
    if isinstance(value, str | bytes):
        return len(value) > _SHORT
    return isinstance(value, list | tuple | dict)
