"""Greenlets of gevent: each has a lane of its own, below the call that spawned it, and a sleep ends in its place.

A greenlet begins with an empty context, which hides lane and place. Its class is native and takes no wrapper, so what
is spawned is of a class of ours, under the native name. `gevent.monkey` makes `time.sleep` the one of gevent.

What gevent's own `subprocess` starts is not heard: its pipes are read by the hub. A recording says so, and a replay
refuses it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from sys import _getframe  # pyright: ignore[reportPrivateUsage] - what the running code is called costs least so
from typing import Any, Final

from reenact.boundary import lanes, pauses, program_plain
from reenact.boundary.forgiving import forgive
from reenact.boundary.pauses import SITES
from reenact.boundary.touches import HARMLESS_PROGRAMS
from reenact.contracts.integration import Integration, PatchSet

_HOLDERS: Final = ("gevent", "gevent.greenlet", "gevent.pool", "gevent.threadpool", "gevent.baseserver", "gevent._imap")
"""The modules that have the class by its name."""
_UNHEARD: Final = "a program that gevent's subprocess started"


def _on_own_lane(run: Callable[..., Any]) -> Callable[..., Any]:
    lane = lanes.current().spawn(lanes.label(run))
    inner = lanes.carried(lane, run)

    @wraps(run)
    def work(*args: Any, **kwargs: Any) -> Any:
        try:
            return inner(*args, **kwargs)
        finally:
            lanes.tell_ended(lane)

    return work


def _class(original: Any) -> type[Any]:
    class Greenlet(original):
        """A greenlet on a lane of its own."""

        def __init__(self, run: Any = None, *args: Any, **kwargs: Any) -> None:
            try:
                run = _on_own_lane(run) if callable(run) else run
            except Exception:
                forgive("gevent.greenlet")
            super().__init__(run, *args, **kwargs)

    Greenlet.__module__, Greenlet.__qualname__ = original.__module__, original.__qualname__
    return Greenlet


def _sleep(original: Callable[..., None]) -> Callable[..., None]:
    @wraps(original)
    def sleep(seconds: Any = 0, ref: bool = True) -> None:  # noqa: FBT001, FBT002 - as it is called
        if not pauses.is_on() or not pauses.is_a_while(seconds) or SITES.of(frame := _getframe().f_back) is None:
            original(seconds, ref)
        else:
            pauses.slept(partial(original, ref=ref), seconds, frame)

    return sleep


def _popen(original: Callable[..., None]) -> Callable[..., None]:
    @wraps(original)
    def __init__(self: Any, args: Any, *more: Any, **kwargs: Any) -> None:  # noqa: N807 - it is that method
        try:
            listed: list[Any] = [args] if isinstance(args, str | bytes | os.PathLike) else [*args]
            words = [os.fsdecode(each) for each in listed]
            if words and Path(words[0]).name not in HARMLESS_PROGRAMS:
                program_plain.unheard(_UNHEARD, words, how="gevent.subprocess", env=kwargs.get("env"))
        except Exception:
            forgive("gevent.subprocess")
        original(self, args, *more, **kwargs)

    return __init__


def _cut_greenlets(patches: PatchSet, module: Any) -> None:
    original = module.Greenlet
    replacement = _class(original)
    for name in _HOLDERS:
        holder = sys.modules.get(name)
        if holder is not None and vars(holder).get("Greenlet") is original:
            patches.replace(holder, "Greenlet", lambda _: replacement)
    pool = sys.modules.get("gevent.pool")
    if pool is not None:
        patches.replace(pool.Group, "greenlet_class", lambda _: replacement)
    for name in ("spawn", "spawn_later"):
        patches.replace(module, name, lambda _, name=name: getattr(replacement, name))


_CUTS: Final[dict[str, Callable[[PatchSet, Any], None]]] = {
    "gevent.hub": lambda patches, module: patches.replace(module, "sleep", _sleep),
    "gevent": _cut_greenlets,
    "gevent.subprocess": lambda patches, module: patches.replace(module.Popen, "__init__", _popen),
}


def _install(patches: PatchSet) -> None:
    def cut(module: Any) -> None:
        _CUTS[module.__name__](patches, module)

    for name in _CUTS:
        patches.when_imported(name, cut)


INTEGRATION = Integration(name="gevent_greenlets", libraries=("gevent",), install=_install, hooks=tuple(_CUTS))
