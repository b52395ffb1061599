"""The sections of a run: agents, nodes, steps, crews and hand-offs, as the framework of the program names them.

Theory of operation. A section is no call. It says where calls hang, for people to read, and no part of a recording or
replay goes by it: the place of a call (`boundary.place`), by which draws and answers are looked up, is what it is
without sections. That is why an integration opens none with the doorman.

The recorder asks `above` whenever a call comes in. The section in which the call is made is then written down, with
those around it. One in which nothing is called is written where the one around it is; without any call there is none.
So sections begin no run, and a program that calls nobody has none.

Which section is current is told by the framework itself where it keeps that (`use`), or by a variable of ours that an
integration sets around what it cuts (`inside`). Of several frameworks within each other, the innermost section counts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Final, Protocol

from reenact.boundary import door, lanes, place
from reenact.boundary.forgiving import swallow
from reenact.boundary.place import Place
from reenact.contracts.integration import PatchSet
from reenact.values import locks, typed
from reenact.values.call import CallKind, Outcome, Raised, Returned, Value
from reenact.values.json import Json
from reenact.values.run import LEFT_BY

_MOST_WAITING: Final = 1000
"""So many sections are kept at most that wait for a call in the one around them."""
_NOTHING: Final = object()
_time_ns: Callable[[], int] = time.time_ns  # the real one, before the clock integration stands in front of it
_lock = locks.rlock()
_generation = [0]
"""How often this process was forked off: a section of the original is not for its copy to write."""


def _forked() -> None:
    _generation[0] += 1


os.register_at_fork(after_in_child=_forked)


class Writer(Protocol):
    """Who writes sections down: the recorder in charge."""

    def begin(self, section: Section, trace_id: int, above: int, root: int) -> int:
        """Write that a section began below the span `above`, and give the id of its span."""
        ...

    def end(self, section: Section) -> None:
        """Write how it ended."""
        ...


class Section:
    """One section, open until `end`."""

    __slots__ = (
        *("_generation", "_waiting", "_writer", "at", "attributes", "bare", "began_ns", "depth", "ended_ns"),
        *("framework", "inputs", "kind", "name", "outcome", "parent", "root", "span_id", "trace_id"),
    )

    def __init__(self, framework: str, kind: CallKind, name: str, parent: Section | None, *, bare: bool) -> None:
        self.framework, self.kind, self.name, self.parent, self.bare = framework, kind, name, parent, bare
        """A bare one is written only where a call is made in it."""
        self.at: Place | None = place.current()
        self.depth: int = parent.depth + 1 if parent is not None else 0
        self.attributes: dict[str, Json] = {}
        self.inputs: Json = None
        self.began_ns, self.ended_ns = _time_ns(), 0
        self.outcome: Outcome | None = None
        self.trace_id = self.root = self.span_id = 0
        self._writer: Writer | None = None
        self._waiting: list[Section] = []
        self._generation = _generation[0]

    def is_at(self, here: Place | None) -> bool:
        """Tell whether nothing but sections lies between this one and code that stands `here`."""
        at = self.at
        is_same = at is here or (at is not None and here is not None and at.span_id == here.span_id)
        return is_same and self._generation == _generation[0]

    def is_written(self, writer: Writer, root: int) -> bool:
        """Tell whether it is a part of a run that `writer` writes."""
        return self._writer is writer and self.root == root

    def hold(self, inner: Section) -> None:
        """Take a section in that began inside. A bare one that holds another is none any more."""
        if inner.bare:
            return
        if self._writer is not None:
            inner.write(self._writer, self.trace_id, self.span_id, self.root)
            return
        if len(self._waiting) < _MOST_WAITING:
            self._waiting.append(inner)
        if self.bare:
            self.bare = False
            if self.parent is not None:
                self.parent.hold(self)

    def write(self, writer: Writer, trace_id: int, above: int, root: int) -> None:
        """Have it written down, with what waited in it."""
        if self._writer is not None:
            return
        self._writer, self.trace_id, self.root = writer, trace_id, root
        self.span_id = writer.begin(self, trace_id, above, root)
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            self.hold(each)
        if self.ended_ns:
            writer.end(self)

    def end(self, outcome: Outcome | None) -> None:
        """Note its end, once."""
        if self.ended_ns:
            return
        self.ended_ns, self.outcome = _time_ns(), outcome
        if self._writer is not None:
            self._waiting = []
            if self._generation == _generation[0]:
                self._writer.end(self)


_SECTION: ContextVar[Section | None] = ContextVar("reenact_section", default=None)
_tellers: list[Callable[[], Section | None]] = []


class _Use:
    """Counts the integrations that are at work."""

    def __init__(self) -> None:
        self.count = 0
        self.stop: Callable[[], None] | None = None


_use = _Use()


def use(patches: PatchSet, teller: Callable[[], Section | None] | None = None) -> None:
    """Have calls hang in sections until `patches` are undone; `teller` is asked for the one in which code runs."""
    if _use.count == 0:
        _use.stop = lanes.carry(_SECTION)
        place.hangers.append(above)
    _use.count += 1
    if teller is not None:
        _tellers.append(teller)

    def release() -> None:
        if teller is not None:
            _tellers.remove(teller)
        _use.count -= 1
        if _use.count == 0 and _use.stop is not None:
            place.hangers.remove(above)
            _use.stop()

    patches.when_undone(release)


def begin(
    framework: str,
    kind: CallKind,
    name: str,
    *,
    below: Section | None = None,
    inputs: object = _NOTHING,
    attributes: Mapping[str, Json] | None = None,
    bare: bool = False,
) -> Section | None:
    """Begin a section, below the current one unless it is told which; None where nobody records."""
    try:
        if not door.is_kept() or door.is_quiet():
            return None
        section = Section(framework, kind, name, below or current(), bare=bare)
        section.attributes |= attributes or {}
        if inputs is not _NOTHING:
            section.inputs = typed.encode(inputs)
        if section.parent is not None:
            with _lock:
                section.parent.hold(section)
    except Exception:
        swallow("sections.begin", structure=True)
        return None
    return section


def end(
    section: Section | None,
    result: object = _NOTHING,
    *,
    error: BaseException | None = None,
    left_by: BaseException | None = None,
) -> None:
    """End a section with what it gave, the error that it died of, or the exception that hands control on."""
    try:
        if section is None or section.ended_ns:
            return
        if left_by is not None:
            section.attributes[LEFT_BY] = type(left_by).__name__
        outcome: Outcome | None = None
        if error is not None:
            outcome = Raised(exception=typed.encode_exception(error))
        elif result is not _NOTHING:
            outcome = Returned(payload=Value(json=typed.encode(result)))
        with _lock:
            section.end(outcome)
    except Exception:
        swallow("sections.end", structure=True)


def keep(section: Section) -> None:
    """Have a bare section written even where nothing is called in it, once more is known of it."""
    with _lock:
        if section.bare:
            section.bare = False
            if section.parent is not None:
                section.parent.hold(section)


def current() -> Section | None:
    """Give the innermost section in which the code now running stands."""
    section = _SECTION.get()
    for teller in _tellers:
        told = teller()
        if told is not None and (section is None or told.depth > section.depth):
            section = told
    return section


def above(writer: Writer, parent: Place) -> Place:
    """Give where the span of a call hangs that is made in `parent`: in a section, or there."""
    if not _tellers and _SECTION.get() is None:
        return parent
    try:
        here = place.current()
        section = current()
        while section is not None and not section.is_at(here):
            section = section.parent
        if section is None:
            return parent
        with _lock:
            _write(section, writer, parent)
        if section.is_written(writer, parent.root):
            return Place(parent.trace_id, section.span_id, None, parent.root)
    except Exception:
        swallow("sections.above", structure=True)
    return parent


def _write(section: Section, writer: Writer, parent: Place) -> None:
    """Write a section with those around it, the outermost first."""
    unwritten: list[Section] = []
    at: Section | None = section
    while at is not None and not at.span_id and at.is_at(section.at):
        unwritten.append(at)
        at = at.parent
    outer = at.span_id if at is not None and at.is_written(writer, parent.root) else parent.span_id
    for each in reversed(unwritten):
        each.write(writer, parent.trace_id, outer, parent.root)
        outer = each.span_id


class inside:  # noqa: N801 - reads as a function does
    """Stand in a section: a context manager, entered again for every step of a generator."""

    __slots__ = ("_before", "_section")

    def __init__(self, section: Section | None) -> None:
        self._section = section

    def __enter__(self) -> None:
        self._before = _SECTION.get()
        if self._section is not None:
            _SECTION.set(self._section)

    def __exit__(self, *_: object) -> None:
        if _SECTION.get() is self._section:  # else it is closed in another context
            _SECTION.set(self._before)
