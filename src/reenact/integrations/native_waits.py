"""Waits of native code in the agent's own code: locks, `queue.SimpleQueue`, `select` and `selectors`.

In a replay they end as they did when recorded, in their place among the answers; threads take a lock, or an item, in
the order in which they took it. A native class takes no wrapper, so what the agent's own code makes is one of ours,
under the native name; libraries make the native ones.
"""

from __future__ import annotations

import copyreg
import operator
import pkgutil
import queue
import select
import selectors
import sys
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial, wraps
from sys import _getframe  # pyright: ignore[reportPrivateUsage] - what the running code is called costs least so
from types import FrameType
from typing import Any, ClassVar, Final, cast

from reenact.boundary import pauses, program_threads, tape
from reenact.boundary.forgiving import forgive
from reenact.boundary.pauses import LONGER_S, Waiting, begun, hand_over, is_late_again, waited
from reenact.boundary.tape import Sites, Source
from reenact.contracts.integration import Integration, PatchSet
from reenact.values import locks

_SITES: Final = Sites(Source(name="native wait"), libraries=False)
_SHORT_S: Final = 0.001


def _is_own(frame: FrameType | None) -> bool:
    try:
        return pauses.is_on() and _SITES.of(frame) is not None
    except Exception:
        forgive("native_waits.is_own")
        return False


def _taking(frame: FrameType | None) -> Waiting | None:
    """Begin to take something, once the program has threads; None where it has none, or nobody keeps who takes it."""
    return pauses.taking(frame) if program_threads.begun() else None


class _ByName(type):
    """Classes that are pickled by the name under which code has them; by the native one's they are not to be had."""


def _spell_class(kind: type) -> Any:
    name: str | None = vars(kind).get("_name")
    return (pkgutil.resolve_name, (name,)) if name else kind.__qualname__


class _Lock(metaclass=_ByName):
    """A lock of the agent's own code."""

    __slots__ = ("__weakref__", "_lock")
    _native: ClassVar[Any]

    def __new__(cls) -> Any:
        native: Any = cls._native()
        if not _is_own(_getframe(1)):
            return native
        lock: Any = super().__new__(cls)
        lock._lock = native  # noqa: SLF001 - it is this very class
        return lock

    def __getattr__(self: Any, name: str) -> Any:
        return getattr(self._lock, name)

    def __reduce_ex__(self: Any, protocol: Any) -> Any:
        return self._lock.__reduce_ex__(protocol)  # which says that it cannot be copied

    def __repr__(self: Any) -> str:
        return repr(self._lock)

    def __enter__(self: Any) -> bool:
        turn = _taking(_getframe(1))
        return self._lock.acquire() if turn is None else pauses.taken_in_turn(turn, self._lock.acquire)

    def __exit__(self: Any, *_: object) -> None:
        self._lock.release()

    def acquire(self: Any, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002 - as it is called
        """Take the lock, or let the time pass."""
        native: Callable[..., bool] = self._lock.acquire
        if blocking and timeout == -1:
            turn = _taking(_getframe(1))
            return native() if turn is None else pauses.taken_in_turn(turn, native)
        waiting = begun(timeout, _getframe(1)) if blocking and timeout > 0 else None
        if waiting is None:
            return native(blocking, timeout)
        if is_late_again(waiting, timeout):
            return False
        return waited(waiting, timeout, partial(native, True), operator.not_)


def _lock(original: Callable[[], Any], name: str) -> type[_Lock]:
    native = cast("type[Any]", type(original()))
    names: dict[str, Any] = {"__slots__": (), "__module__": native.__module__, "__qualname__": native.__qualname__}
    return _ByName(native.__name__, (_Lock,), names | {"_native": staticmethod(original), "_name": name})


def _simple_queue(original: Any) -> type[Any]:
    class SimpleQueue(original):
        """A queue of the agent's own code."""

        def __new__(cls) -> Any:
            if cls is SimpleQueue and not _is_own(_getframe(1)):
                return original.__new__(original)
            made: Any = original.__new__(cls)
            made._taking = locks.lock()  # noqa: SLF001 - it is this very class
            return made

        def __reduce_ex__(self, protocol: Any) -> Any:
            return original().__reduce_ex__(protocol)  # as a lock's

        def get(self, block: bool = True, timeout: float | None = None) -> Any:  # noqa: FBT001, FBT002 - as it is called
            """Take something out, in turn, or let the time pass."""
            if block and timeout is None and (turn := _taking(_getframe(1))) is not None:
                return pauses.taken_in_turn(turn, lambda: original.get(self), self._taking)
            waiting = begun(timeout, _getframe(1)) if block else None
            if waiting is None or timeout is None:
                return original.get(self, block, timeout)
            if is_late_again(waiting, timeout):
                raise queue.Empty
            return waited(waiting, timeout, lambda seconds: original.get(self, True, seconds), lambda _: False)

        def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:  # noqa: FBT001, FBT002 - as it is called
            """Hand something over, in turn."""
            hand_over(_getframe(1))
            original.put(self, item, block, timeout)

        def put_nowait(self, item: Any) -> None:
            """Hand something over, in turn."""
            hand_over(_getframe(1))
            original.put(self, item)

    SimpleQueue.__module__, SimpleQueue.__qualname__ = original.__module__, original.__qualname__
    return SimpleQueue


def _ready_again(waiting: Waiting, seconds: float | None, is_ready: Callable[[int], bool]) -> tuple[int, ...] | None:
    """Wait until those are ready that were when recorded, or let the time pass; None where they do not come."""
    again = waiting.done
    if again is None:
        return None
    if not again:
        time.sleep(max(0, seconds or 0))
    until = time.monotonic() + LONGER_S
    while not all(map(is_ready, again)):
        if time.monotonic() > until:
            return None
        time.sleep(_SHORT_S)
    return again


def _select(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def chosen(
        rlist: Iterable[Any], wlist: Iterable[Any], xlist: Iterable[Any], timeout: float | None = None, /
    ) -> Any:
        if not _is_own(_getframe(1)):
            return original(rlist, wlist, xlist, timeout)
        lists = [list(rlist), list(wlist), list(xlist)]
        flat = [(kind, each) for kind, items in enumerate(lists) for each in items]

        def is_ready(at: int) -> bool:
            asked = [[flat[at][1]] if kind == flat[at][0] else [] for kind in range(3)]
            return any(original(*asked, 0))

        waiting = Waiting()
        try:
            ready = _ready_again(waiting, timeout, is_ready)
            if ready is None:
                triple = original(*lists, timeout)
                ready = tuple(at for at, (kind, each) in enumerate(flat) if any(each is one for one in triple[kind]))
        except BaseException:
            waiting.cut_short()
            raise
        waiting.over(ready)
        return tuple([flat[at][1] for at in ready if flat[at][0] == kind] for kind in range(3))

    return chosen


def _selector(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def chosen(self: Any, timeout: float | None = None) -> Any:
        if not _is_own(_getframe(1)):
            return original(self, timeout)
        order = [key.fd for key in self.get_map().values()]
        events = dict[int, Any]()

        def is_ready(at: int) -> bool:
            events.update((each[0].fd, each) for each in original(self, 0))
            return at < len(order) and order[at] in events

        waiting = Waiting()
        try:
            ready = _ready_again(waiting, timeout, is_ready)
            if ready is None:
                events.update((each[0].fd, each) for each in original(self, timeout))
                ready = tuple(map(order.index, events))
        except BaseException:
            waiting.cut_short()
            raise
        waiting.over(ready)
        return [events[order[at]] for at in ready]

    return chosen


def _install(patches: PatchSet) -> None:
    replaced: dict[int, Callable[..., Any]] = {}
    makes: tuple[tuple[Any, str, Any], ...] = (
        (threading, "Lock", partial(_lock, name="threading:Lock")),
        (threading, "RLock", partial(_lock, name="threading:RLock")),
        (queue, "SimpleQueue", _simple_queue),
        (select, "select", _select),
    )
    for owner, name, make in makes:
        original = getattr(owner, name)
        patches.replace(owner, name, make)
        replaced[id(original)] = getattr(owner, name)
    patches.replace(sys.modules["_queue"], "SimpleQueue", lambda _: queue.SimpleQueue)  # by which it is pickled
    copyreg.pickle(cast("Any", _ByName), _spell_class)
    for name in ("SelectSelector", "PollSelector", "EpollSelector", "KqueueSelector"):
        if "select" in vars(kind := getattr(selectors, name, object)):
            patches.replace(kind, "select", _selector)
    tape.rebind(patches, replaced)


INTEGRATION = Integration(name="native_waits", libraries=("threading", "queue", "select"), install=_install)
