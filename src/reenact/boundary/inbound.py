"""A unit of work that comes in from outside: a request, a job, a message. Each is a run of its own.

The run begins with the first call inside: a health check that asks nobody is no run. One that asks nobody and changes
what later units may read is one, which begins at its end: a replay of these delivers it first. What asked for the unit
(its input) is described by whoever delivers it, when the run begins; what came of it is told at its end. The unit is a
context variable of our own, so that it goes along to tasks, threads and pool jobs that it spawns; it is set and
restored by hand, as `place` is, since a streamed answer is made in steps.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from reenact.boundary import door, inbound_clients, lanes, memory_databases, place
from reenact.boundary.lanes import Lane
from reenact.boundary.place import Place
from reenact.values import alarms, locks

if TYPE_CHECKING:
    from reenact.boundary.unit_dependencies import Standing

LANE = "unit"
"""The lane on which every unit begins, in a process of many as in a replay of one."""

Answered = Callable[[], Mapping[str, Any]]
"""Says what came of a unit, as attributes of its root."""

End = Callable[[Answered, BaseException | None], None]
"""Ends a run: takes what came of it, and what it died of."""

Open = Callable[["Inbound"], tuple[Place, End] | None]
"""Begins the run of a unit: gives the place of its root and what ends it; None where that failed."""


_UNSEEN: Final[Mapping[str, Any]] = {"unseen": "state that could not be looked at"}


class _Stand:
    """Notes what units of this process stand on, while a recorder wants to know."""

    def __init__(self) -> None:
        self.wanted = False
        self.by: Standing | None = None

    def begin(self) -> int:
        try:
            if not self.wanted:
                return 0
            if self.by is None:
                from reenact.boundary.unit_dependencies import Standing

                self.by = Standing()
            return self.by.begin()
        except Exception:
            from reenact.boundary.forgiving import forgive

            forgive("inbound.stand")
            return 0

    def known(self, number: int, at: Place | None) -> None:
        """Hear of which run a unit is."""
        try:
            if self.by is not None and number and at is not None:
                self.by.known(number, format(at.trace_id, "032x"))
        except Exception:
            from reenact.boundary.forgiving import forgive

            forgive("inbound.stand")

    def reply(self, number: int) -> None:
        """Hear that a unit hands its answer over."""
        try:
            if self.by is not None and number:
                self.by.reply(number)
        except Exception:
            from reenact.boundary.forgiving import forgive

            forgive("inbound.stand")

    def end(self, number: int, entry: object, others: Callable[[], Iterable[object]] | None) -> Mapping[str, Any]:
        try:
            if not number:
                return {}
            return self.by.end(number, entry, others) if self.by is not None else _UNSEEN
        except Exception:
            from reenact.boundary.forgiving import forgive

            forgive("inbound.stand")
            return _UNSEEN


_stand = _Stand()
_again: ContextVar[str | None] = ContextVar("reenact_again", default=None)


class does_again:  # noqa: N801 - reads as a function does
    """Have the unit that begins in the block be the one of a recorded run, done again; "" where it is the only one."""

    __slots__ = ("_run",)

    def __init__(self, run: str) -> None:
        self._run = run

    def __enter__(self) -> None:
        _again.set(self._run)

    def __exit__(self, *_: object) -> None:
        _again.set(None)


def _thread_name() -> str:
    """Name the thread that runs, if it is not the main one; none is made of one that Python does not know."""
    known: dict[int, threading.Thread] = vars(threading).get("_active", {})
    thread = known.get(threading.get_ident())
    return "" if thread is None or thread is threading.main_thread() else thread.name


def _begin_lane() -> tuple[Lane, bool]:
    """Make the lane of a unit, and tell whether a replay does it again: it alone, and none that its tasks begin."""
    lane, again = Lane(LANE), _again.get()
    if again is not None:
        lane.reel.again = again
        _again.set(None)
    return lane, again is not None


def _number() -> int:
    """Number the arrival of a unit in the sequence of its recorder; 0 where nobody counts."""
    next_order: Callable[[], int] | None = getattr(door.doorman(), "next_order", None)
    return 0 if next_order is None else next_order()


def watch() -> Callable[[], None]:
    """Note from now on what each unit stands on; gives a function that stops it."""
    _stand.wanted, _stand.by = True, None
    memory_databases.listen()

    def stop() -> None:
        _stand.wanted = False  # a unit that is under way as the process ends is still to say on what it stands

    return stop


_begins: list[Callable[[Inbound], None]] = []
_ends: list[Callable[[Inbound], None]] = []


def hear(begins: Callable[[Inbound], None], ends: Callable[[Inbound], None] | None = None) -> Callable[[], None]:
    """Have `begins` called for each unit before it does anything, `ends` when it is at its end; gives what stops it."""
    _begins.append(begins)
    if ends is not None:
        _ends.append(ends)

    def leave() -> None:
        _begins.remove(begins)
        if ends is not None:
            _ends.remove(ends)

    return leave


_begun = [0]
"""How many units have come in."""


_keepers: list[Callable[[Inbound], object]] = []
KEEPS: Final = "keeps"
"""Stands in what a unit stands on where it called nobody, and later ones may stand on it."""


def have_kept(keep: Callable[[Inbound], object]) -> Callable[[], None]:
    """Have `keep` begin the run of each unit that called nobody and changed what later ones may read, at its end.

    Gives what stops it.
    """
    _keepers.append(keep)
    return lambda: _keepers.remove(keep)


class Inbound:
    """One unit of work. `name` and `asked` (attributes of the root) are called once, when its run begins."""

    __slots__ = (
        "_answer",
        "_end",
        "_last",
        "_lock",
        "_name",
        "_owner",
        "_place",
        "_request_attributes",
        "_standing",
        "answers",
        "ended",
        "entry",
        "is_again",
        "lane",
        "order",
        "others",
        "over",
        "printed",
        "received",
        "replied",
        "stands_on",
        "statements",
        "thread",
        "undeclared",
        "written",
    )

    def __init__(
        self, name: Callable[[], str], asked: Callable[[], Mapping[str, Any]], *, handed: bool = False
    ) -> None:
        self._name, self._request_attributes = name, asked
        if _stand.wanted:
            inbound_clients.unit_came(handed=handed)
        self.lane, self.is_again = _begin_lane()  # one that a replay does again has a run, whether or not it calls
        self.order, self.thread = _number(), _thread_name()
        """When it came in, in the sequence of its recorder; and the name of the thread that it began on: servers number
        those of their pools. Empty for the main one."""
        self.received = 0
        """When the last of its body was there."""
        self.replied = 0
        """When the last of its answer was handed over."""
        self.entry: object = None
        """The function that does it, where that is known."""
        self.others: Callable[[], Iterable[object]] | None = None
        """Gives the functions that do other units of its application, where any but those may run in it."""
        self.ended = self.over = False
        """It is at its end; and all of that has been told."""
        self.answers = False
        """Its answer is on its way; its end may be near."""
        self.undeclared: dict[str, None] = {}
        """What it did past every boundary."""
        self.written: object = None
        self.statements: object = None
        """What of files it wrote, as its recorder keeps it; and what it asked databases that live in the process."""
        self.printed: object = None
        """What it printed, as its recorder keeps it."""
        self._answer: tuple[Answered, BaseException | None] = (dict, None)
        self._place: Place | None = None
        self._end: End | None = None
        self._owner: object = None
        self._lock = locks.lock()
        self.stands_on: Mapping[str, Any] = {}
        """What earlier units of the process left that it may have read; known at its end."""
        self._standing = _stand.begin()
        _begun[0] += 1
        self._last = 0
        """How many had come in at its end."""
        for each in tuple(_begins):
            each(self)

    def reply(self) -> None:
        """Hear that the last of its answer is about to be handed over, as far as is known: its client may go on."""
        self.replied = _number()
        _stand.reply(self._standing)

    def receive(self) -> None:
        """Hear that a piece of its body reaches the application."""
        self.received = _number()

    @property
    def name(self) -> str:
        """The name of the run."""
        return self._name()

    @property
    def is_followed(self) -> bool:
        """It is at its end, and another unit came in since."""
        return self.ended and _begun[0] != self._last

    def asked(self) -> Mapping[str, Any]:
        """Say what asked for the unit, as attributes of its root."""
        return self._request_attributes()

    def place(self, owner: object, begin: Open) -> Place | None:
        """Give the place of the unit's root, begun by `begin` at first need; one for each owner (a recording)."""
        if self._owner is owner:
            return self._place
        with self._lock:
            if self._owner is owner:  # another thread was faster
                return self._place
            begun = begin(self)
            self._place, self._end = begun or (None, None)
            self._owner = owner
            _stand.known(self._standing, self._place)
            if self.ended and self._end is not None:  # a task that outlived the unit was the first to call
                self._end(*self._answer)
            return self._place

    def end(self, answered: Answered, error: BaseException | None = None) -> None:
        """Tell what came of the unit, once.

        `answered` is called if its run has begun, or once it does: a task may outlive the unit.
        """
        with self._lock:
            if self.ended:
                return
            self.ended, self._answer = True, (answered, error)
            self._last = _begun[0]
        with alarms.postponed():  # a server's worker is often told to quit just now, and raises where it is
            for each in tuple(_ends):
                each(self)
            self.stands_on = _stand.end(self._standing, self.entry, self.others)
            try:
                if self._end is not None:
                    self._end(answered, error)
                elif self.is_again or self.stands_on.get(KEEPS):
                    for keep in tuple(_keepers):
                        keep(self)
            finally:
                self.over = True


_UNIT: ContextVar[Inbound | None] = ContextVar("reenact_inbound", default=None)


current: Callable[[], Inbound | None] = _UNIT.get
"""Give the unit that the code now running belongs to; the variable's own method, since every call asks."""


def under_way() -> bool:
    """Tell whether the code now running already belongs to a run: of a unit, or of the script around it."""
    unit = _UNIT.get()
    return place.current() is not None or (unit is not None and not unit.ended)


class inside:  # noqa: N801 - reads as a function does; a generator would cost each step three times as much
    """Run as part of `unit`, on its lane: a context manager, entered again for every step of a streamed answer."""

    __slots__ = ("_before", "_on", "_stood", "_unit")

    def __init__(self, unit: Inbound) -> None:
        self._unit = unit
        self._on = lanes.on(unit.lane)

    def __enter__(self) -> None:
        self._before = _UNIT.get()
        self._stood = place.move(None)
        _UNIT.set(self._unit)
        self._on.__enter__()

    def __exit__(self, *_: object) -> None:
        self._on.__exit__()
        _UNIT.set(self._before)
        place.move(self._stood)


class outside:  # noqa: N801 - as above
    """Run as part of no unit: what a server does with an answer that it is handed is none of the application's."""

    __slots__ = ("_stood", "_unit")

    def __enter__(self) -> None:
        self._unit = _UNIT.get()
        self._stood = place.move(None)
        _UNIT.set(None)

    def __exit__(self, *_: object) -> None:
        _UNIT.set(self._unit)
        place.move(self._stood)


def carry() -> Callable[[], None]:
    """Have the unit go along to threads and pool jobs; gives a function that stops it."""
    return lanes.carry(_UNIT)
