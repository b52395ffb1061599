"""Waits of native code in the agent's own code: locks, those of conditions too, `queue.SimpleQueue` and `select`.

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
from typing import Any, ClassVar, Final, TypeVar, cast

from reenact.boundary import pauses, tape
from reenact.boundary.forgiving import forgive
from reenact.boundary.pauses import LONGER_S, Waiting, begun, is_late_again, waited
from reenact.boundary.tape import Sites, Source
from reenact.contracts.integration import Integration, PatchSet
from reenact.values import locks

T = TypeVar("T")
_SITES: Final = Sites(Source(name="native wait"), libraries=False)
_SHORT_S: Final = 0.001


def _is_own(frame: FrameType | None) -> bool:
    try:
        return pauses.is_on() and _SITES.of(frame) is not None
    except Exception:
        forgive("native_waits.is_own")
        return False


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
        return cls.made() if _is_own(_getframe().f_back) else cls._native()

    @classmethod
    def made(cls) -> Any:
        """Make one, whoever asks."""
        lock: Any = super().__new__(cls)
        lock._lock = cls._native()  # noqa: SLF001 - it is this very class
        return lock

    def __getattr__(self: Any, name: str) -> Any:
        return getattr(self._lock, name)

    def __reduce_ex__(self: Any, protocol: Any) -> Any:
        return self._lock.__reduce_ex__(protocol)  # which says that it cannot be copied

    def __repr__(self: Any) -> str:
        return repr(self._lock)

    def __enter__(self: Any) -> bool:
        turn = pauses.looking(_getframe().f_back)
        return self._lock.acquire() if turn is None else pauses.taken_in_turn(turn, self._lock.acquire)

    def __exit__(self: Any, *_: object) -> None:
        self._lock.release()

    def acquire(self: Any, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002 - as it is called
        """Take the lock, or let the time pass."""
        native: Callable[..., bool] = self._lock.acquire
        if blocking and timeout == -1:
            turn = pauses.looking(_getframe().f_back)
            return native() if turn is None else pauses.taken_in_turn(turn, native)
        if not blocking and timeout == -1:
            look = pauses.looking(_getframe().f_back)
            return pauses.looked(look, lambda seconds: native(bool(seconds), seconds or -1) or None) is not None
        waiting = begun(timeout, _getframe().f_back) if blocking and timeout > 0 else None
        if waiting is None:
            return native(blocking, timeout)
        if is_late_again(waiting, timeout):
            return False
        return waited(waiting, timeout, partial(native, True), operator.not_)

    def _acquire_restore(self: Any, state: Any) -> None:
        native = getattr(self._lock, "_acquire_restore", None)
        pauses.retake(self._lock.acquire if native is None else partial(native, state))


def _own_lock() -> Any:
    """Make a lock for a condition of the agent's own."""
    make: Callable[[], Any] | None = getattr(threading.RLock, "made", None)
    return make() if make is not None else None


def _condition(original: Callable[..., None]) -> Callable[..., None]:
    @wraps(original)
    def __init__(self: threading.Condition, lock: Any = None) -> None:  # noqa: N807 - it is that method
        original(self, _own_lock() if lock is None and _is_own(_getframe().f_back) else lock)

    return __init__


def _entered(original: Callable[..., bool]) -> Callable[..., bool]:
    @wraps(original)
    def __enter__(self: threading.Condition) -> bool:  # noqa: N807 - likewise
        turn = pauses.looking(_getframe().f_back)
        return original(self) if turn is None else pauses.taken_in_turn(turn, partial(original, self))

    return __enter__


def _lock(original: Callable[[], Any], name: str) -> type[_Lock]:
    native = cast("type[Any]", type(original()))
    names: dict[str, Any] = {"__slots__": (), "__module__": native.__module__, "__qualname__": native.__qualname__}
    return _ByName(native.__name__, (_Lock,), names | {"_native": staticmethod(original), "_name": name})


class _IfFree:
    """Holds a lock for a moment where nobody has it: who only looks waits for nobody."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        self._has_it = self._lock.acquire(blocking=False)

    def __exit__(self, *_: object) -> None:
        if self._has_it:
            self._lock.release()


def _one(take: Callable[[bool], T], alone: Any, frame: FrameType | None, *, block: bool) -> T:
    """Take one item out, in turn."""
    turn = pauses.looking(frame)
    if turn is not None:
        return pauses.taken_in_turn(turn, partial(take, block), alone if block else _IfFree(alone))
    if block:
        begun(None, frame)
    return take(block)


def _put(put: Callable[[], None], alone: Any, frame: FrameType | None) -> None:
    """Hand one item over, in turn."""
    turn = pauses.taking(frame)
    if turn is None:
        put()
    else:
        pauses.taken_in_turn(turn, put, alone)


def _one_in_time(take: Callable[[float], T], seconds: float, frame: FrameType | None) -> T:
    """Take one item out, or let the time pass."""
    waiting = begun(seconds, frame)
    if waiting is None:
        return take(seconds)
    if is_late_again(waiting, seconds):
        raise queue.Empty
    return waited(waiting, seconds, take, lambda _: False)


def _simple_queue(original: Any) -> type[Any]:
    class SimpleQueue(original):
        """A queue of the agent's own code."""

        def __new__(cls) -> Any:
            is_own = cls is not SimpleQueue or _is_own(_getframe().f_back)
            made: Any = original.__new__(cls if is_own else original)
            if is_own:
                made._taking, made._putting = locks.rlock(), locks.rlock()  # noqa: SLF001 - it is this very class
            return made

        def __reduce_ex__(self, protocol: Any) -> Any:
            return original().__reduce_ex__(protocol)  # as a lock's

        def get(self, block: bool = True, timeout: float | None = None) -> Any:  # noqa: FBT001, FBT002 - as it is called
            """Take something out, in turn, or let the time pass."""
            if not block or timeout is None:
                return _one(partial(original.get, self), self._taking, _getframe().f_back, block=block)
            return _one_in_time(partial(original.get, self, True), timeout, _getframe().f_back)

        def get_nowait(self) -> Any:
            """Take something out that is there, in turn."""
            return _one(partial(original.get, self), self._taking, _getframe().f_back, block=False)

        def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:  # noqa: FBT001, FBT002 - as it is called
            """Hand something over, in turn."""
            _put(partial(original.put, self, item, block, timeout), self._putting, _getframe().f_back)

        def put_nowait(self, item: Any) -> None:
            """Hand something over, in turn."""
            _put(partial(original.put, self, item), self._putting, _getframe().f_back)

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
        if not _is_own(_getframe().f_back):
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
        if not _is_own(_getframe().f_back):
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
    patches.replace(threading.Condition, "__init__", _condition)
    patches.replace(threading.Condition, "__enter__", _entered)
    patches.replace(sys.modules["_queue"], "SimpleQueue", lambda _: queue.SimpleQueue)  # by which it is pickled
    copyreg.pickle(cast("Any", _ByName), _spell_class)
    for name in ("SelectSelector", "PollSelector", "EpollSelector", "KqueueSelector"):
        if "select" in vars(kind := getattr(selectors, name, object)):
            patches.replace(kind, "select", _selector)
    tape.rebind(patches, replaced)


INTEGRATION = Integration(name="native_waits", libraries=("threading", "queue", "select"), install=_install)
