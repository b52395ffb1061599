"""Whether others asked this process for work. Then it is a server: no replay of it has anybody who asks again.

Theory of operation. A unit of work that a worker took from its broker was handed over by others. Of a request only the
connection says who asked: a program that asks a server of its own is a script, and so is one that calls an application
by itself, as a test client does. So it is looked who stands at the other end of what this process accepted: a process
of this program, or anybody else. That is done while a unit comes in, or while the process calls somebody outside of
every unit, as a server does that nobody knows: at the first of them, the second, the fourth and so on, until somebody
is there. Where the system does not tell, nobody is.
"""

from __future__ import annotations

from typing import Final

from reenact.boundary import door
from reenact.values import alarms


class _Visits:
    """What came to this process."""

    __slots__ = ("calls", "from_outside", "units")

    def __init__(self) -> None:
        self.units, self.calls = 0, 0
        self.from_outside = False


_visits: Final = [_Visits()]


def unit_came(*, handed: bool = False) -> None:
    """Hear that a unit of work came in; `handed` says that a worker took it from others."""
    visits = _visits[0]
    visits.units += 1
    if handed:
        visits.from_outside = True
    elif not visits.from_outside and _is_due(visits.units):
        visits.from_outside = _is_visited()


def called() -> None:
    """Hear that the process calls somebody outside of every unit."""
    visits = _visits[0]
    if not visits.from_outside:
        visits.calls += 1
        if _is_due(visits.calls):
            visits.from_outside = _is_visited()


def workers_started() -> None:
    """Hear that the process starts workers, which take what others ask for."""
    _visits[0].from_outside = True


def are_known() -> bool:
    """Tell whether others asked this process for work, as far as was seen."""
    return _visits[0].from_outside


def forget() -> None:
    """Begin anew: in a copy of a process, or with a recording of its own."""
    _visits[0] = _Visits()


def _is_due(number: int) -> bool:
    return not number & (number - 1)


def _is_visited() -> bool:
    if door.is_strict():  # a replay asks by itself
        return False
    from reenact.boundary import listeners  # most programs serve nobody

    try:
        return listeners.is_visited()
    except Exception:  # a system of another kind; the agent goes on
        alarms.pass_on()
        return False
