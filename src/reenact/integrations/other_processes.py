"""Other processes of `multiprocessing`: what they put into a queue, what they send, and whether they are still at work.

The processes of a replay have nothing that keeps them apart. What comes out earlier than it did when recorded is held
until its turn, known by a checksum of the bytes that came through the queue's pipe. Who looks, or waits with an end,
finds what it found when recorded.
"""

from __future__ import annotations

import queue
import threading
import time
import zlib
from collections.abc import Callable
from functools import partial, wraps
from sys import _getframe  # pyright: ignore[reportPrivateUsage] - what the running code is called costs least so
from types import FrameType
from typing import Any, Final, cast
from weakref import WeakKeyDictionary

from reenact.boundary import pauses
from reenact.boundary.pauses import LONGER_S, Waiting
from reenact.boundary.tape import Sites, Source
from reenact.contracts.integration import Integration, PatchSet

_SITES: Final = Sites(Source(name="queue of processes"), libraries=False)
_NOTHING_NEW_S: Final = 2.0
"""So long it is waited for what is due where other things came."""
_early: Final[WeakKeyDictionary[Any, list[tuple[int, Any]]]] = WeakKeyDictionary()
_received: Final = threading.local()


class _Received:
    """What gives a queue its bytes, and keeps the checksum of the last ones of this thread."""

    def __init__(self, original: Callable[..., bytes]) -> None:
        self._original = original

    def __call__(self, *args: Any, **kwargs: Any) -> bytes:
        """Receive the bytes of one item."""
        data = self._original(*args, **kwargs)
        _received.checksum = zlib.crc32(data)
        return data


def _take(early: list[tuple[int, Any]], due: int, get: Callable[[float], tuple[int, Any]]) -> tuple[int, Any]:
    """Take what is due, or the first of those that came before it where it does not come."""
    for at, (checksum, _) in enumerate(early):
        if checksum == due:
            return early.pop(at)
    while True:
        try:
            entry = get(_NOTHING_NEW_S if early else LONGER_S)
        except queue.Empty:
            if early:
                return early.pop(0)
            raise
        if entry[0] == due:
            return entry
        early.append(entry)


def _get(original: Callable[..., Any]) -> Callable[..., Any]:
    def one(source: Any, *how: Any) -> tuple[int, Any]:
        _received.checksum = 0
        own = cast("dict[str, Any]", vars(source))
        receive = own.get("_recv_bytes")  # there is no public way to the bytes
        if receive is not None and not isinstance(receive, _Received):
            own["_recv_bytes"] = _Received(receive)
        item = original(source, *how)
        return _received.checksum, item

    @wraps(original)
    def get(self: Any, block: bool = True, timeout: float | None = None) -> Any:  # noqa: FBT001, FBT002 - as it is called
        early = _early.get(self)
        if not pauses.is_on() or _SITES.of(_getframe().f_back) is None:
            return early.pop(0)[1] if early else original(self, block, timeout)
        waiting = Waiting()
        try:
            checksum, item = _item(self, waiting.done, timeout if block else 0, lambda *how: one(self, *how))
        except queue.Empty:
            waiting.over(())
            raise
        except BaseException:
            waiting.cut_short()
            raise
        waiting.over((checksum,))
        return item

    return get


def _item(
    source: Any, recorded: tuple[int, ...] | None, seconds: float | None, get: Callable[..., tuple[int, Any]]
) -> tuple[int, Any]:
    """Give what comes out of a queue: in a replay what came out when recorded, or nothing again."""
    early = _early.setdefault(source, [])
    if recorded:
        return _take(early, recorded[0], lambda longest: get(True, longest))
    if recorded is not None:
        time.sleep(seconds or 0)
        raise queue.Empty
    if early:
        return early.pop(0)
    return get(True, seconds) if seconds != 0 else get(False)


def _empty(original: Callable[..., bool]) -> Callable[..., bool]:
    @wraps(original)
    def empty(self: Any) -> bool:
        def item(seconds: float) -> bool | None:
            has_one = bool(_early.get(self)) or (self._poll(seconds) if seconds else not original(self))
            return True if has_one else None

        return pauses.looked(pauses.taking(_getframe().f_back), item) is None

    return empty


def _poll(original: Callable[..., bool]) -> Callable[..., bool]:
    """Look whether another process has sent anything down a pipe."""

    @wraps(original)
    def poll(self: Any, timeout: float | None = 0.0) -> bool:
        if timeout is None:
            return original(self, None)
        return bool(
            pauses.looked(pauses.taking(_getframe().f_back), lambda seconds: original(self, seconds) or None, timeout)
        )

    return poll


def _turn_to_look_at(process: Any, frame: FrameType | None) -> Waiting | None:
    """Begin to look at a process; None where nobody keeps it, or where its end is known here already."""
    is_known = getattr(getattr(process, "_popen", None), "returncode", None) is not None
    return None if is_known else pauses.taking(frame)


def _is_alive(original: Callable[..., bool]) -> Callable[..., bool]:
    @wraps(original)
    def is_alive(self: Any) -> bool:
        def ended(seconds: float) -> bool | None:
            if seconds:
                self.join(seconds)
            return None if original(self) else True

        return pauses.looked(_turn_to_look_at(self, _getframe().f_back), ended) is None

    return is_alive


def _join(original: Callable[..., None]) -> Callable[..., None]:
    @wraps(original)
    def join(self: Any, timeout: float | None = None) -> None:
        def ended(seconds: float) -> bool | None:
            original(self, seconds)
            return True if self.exitcode is not None else None

        if timeout is None:
            original(self)
        else:
            pauses.looked(_turn_to_look_at(self, _getframe().f_back), ended, timeout)

    return join


def _exit_code(original: Any) -> Any:
    def exitcode(self: Any) -> int | None:
        def code(seconds: float) -> int | None:
            if seconds:
                self.join(seconds)
            return original.fget(self)

        return pauses.looked(_turn_to_look_at(self, _getframe().f_back), code)

    return property(exitcode, doc=original.__doc__)


def _install_queues(patches: PatchSet, module: Any) -> None:
    patches.replace(module.Queue, "get", _get)
    patches.replace(module.Queue, "empty", _empty)


def _install_processes(patches: PatchSet, module: Any) -> None:
    for name, make in (("is_alive", _is_alive), ("join", _join), ("exitcode", _exit_code)):
        patches.replace(module.BaseProcess, name, make)


def _install(patches: PatchSet) -> None:
    patches.when_imported("multiprocessing.queues", partial(_install_queues, patches))
    patches.when_imported("multiprocessing.process", partial(_install_processes, patches))
    patches.when_imported(
        "multiprocessing.connection",
        lambda module: patches.replace(module._ConnectionBase, "poll", _poll),  # noqa: SLF001 - what all are made of
    )


INTEGRATION = Integration(
    name="other_processes",
    libraries=("multiprocessing",),
    install=_install,
    hooks=("multiprocessing.process", "multiprocessing.queues", "multiprocessing.connection"),
)
