"""Deadlines of trio and anyio in the agent's own code: `move_on_after`, `fail_after`, a `CancelScope` with a deadline.

Which were missed is kept, as those of asyncio are (`integrations.deadlines`): in a replay the same are missed again, in
their place among the answers, and the others not, however slow it is. A scope of anyio on trio is one of trio's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, wraps
from sys import _getframe  # pyright: ignore[reportPrivateUsage] - what the running code is called costs least so
from types import FrameType
from typing import Any, Final

from reenact.boundary import pauses
from reenact.boundary.forgiving import forgive
from reenact.boundary.pauses import LONGER_S, Waiting
from reenact.boundary.tape import Sites, Source
from reenact.contracts.integration import Integration, PatchSet

_SITES: Final = Sites(Source(name="scope deadline"), libraries=False)
_MAKES_SCOPES: Final = ("contextlib", "trio._timeouts", "anyio._core._tasks", "anyio._backends._trio")
_TRIO: Final = "trio._core._run"
_ASYNCIO: Final = "anyio._backends._asyncio"


class _Scopes:
    """The scopes with a deadline that the agent's own code is in."""

    def __init__(self) -> None:
        self._entered: dict[int, tuple[Any, Waiting]] = {}
        """By identity: scopes of anyio take no weak reference."""
        self._longer: set[int] = set()

    def enter(self, scope: Any, seconds: float, frame: FrameType | None) -> None:
        """Hear that code behind `frame` enters a scope that has so long."""
        try:
            if not pauses.is_on() or math.isinf(seconds) or not pauses.is_a_while(seconds):
                return
            while frame is not None and frame.f_globals.get("__name__") in _MAKES_SCOPES:
                frame = frame.f_back
            if _SITES.of(frame) is not None:
                self._entered[id(scope)] = scope, Waiting()
        except Exception:
            forgive("scope_deadlines.enter")

    def leave(self, scope: Any) -> None:
        """Hear that a scope is left; its deadline was not missed if it is still known."""
        _, waiting = self._entered.pop(id(scope), (None, None))
        self._longer.discard(id(scope))
        if waiting is not None:
            waiting.cut_short()

    def waiting(self, scope: Any) -> Waiting | None:
        """Give what is known of a scope whose time is up; None where it is to go the way of all others."""
        _, waiting = self._entered.get(id(scope), (None, None))
        if waiting is None or waiting.was_late is not None:
            return waiting
        waiting.ended(late=True)  # nobody knows better: it is recorded
        del self._entered[id(scope)]
        return None

    def takes_longer(self, scope: Any) -> bool:
        """Tell, once, that a scope is given more time: it was left in time when recorded."""
        is_first = id(scope) not in self._longer
        self._longer.add(id(scope))
        return is_first

    async def miss_in_turn(self, scope: Any, waiting: Waiting, miss: Callable[[], None]) -> None:
        """Have a scope `miss` its deadline in its recorded place."""
        await waiting.over_async()
        if self._entered.pop(id(scope), None) is not None:
            miss()


_SCOPES: Final = _Scopes()


def _leaving(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def __exit__(self: Any, *error: Any) -> Any:  # noqa: N807 - it is that method
        _SCOPES.leave(self)
        return original(self, *error)

    return __exit__


# trio


def _entering_trio(module: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def __enter__(self: Any) -> Any:  # noqa: N807 - it is that method
        relative = getattr(self, "_relative_deadline", math.inf)
        deadline = self._deadline
        seconds = relative if math.isinf(deadline) else deadline - module.current_time()
        _SCOPES.enter(self, seconds, _getframe().f_back)
        return original(self)

    return __enter__


def _expiring(module: Any, original: Callable[..., bool]) -> Callable[..., bool]:
    @wraps(original)
    def expire(self: Any, now: float) -> bool:
        due = [each for at, _, each in self._heap if at <= now and at == each._registered_deadline]  # noqa: SLF001 - trio tells it so alone
        for scope in due:
            if (waiting := _SCOPES.waiting(scope)) is None:
                continue
            if waiting.was_late:
                miss = partial(setattr, scope, "deadline", scope.deadline)  # which is up: trio does the rest
                scope.deadline = math.inf
                module.GLOBAL_RUN_CONTEXT.runner.spawn_system_task(_SCOPES.miss_in_turn, scope, waiting, miss)
            elif _SCOPES.takes_longer(scope):
                scope.deadline = now + LONGER_S
        return original(self, now)

    return expire


def _cut_trio(patches: PatchSet, module: Any) -> None:
    if not hasattr(module, "Deadlines"):
        return
    patches.replace(module.CancelScope, "__enter__", partial(_entering_trio, module))
    patches.replace(module.CancelScope, "__exit__", _leaving)
    patches.replace(module.Deadlines, "expire", partial(_expiring, module))


# anyio on asyncio


def _entering_anyio(module: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def __enter__(self: Any) -> Any:  # noqa: N807 - it is that method
        deadline = self.deadline
        seconds = deadline if math.isinf(deadline) else deadline - module.get_running_loop().time()
        _SCOPES.enter(self, seconds, _getframe().f_back)
        return original(self)

    return __enter__


def _timing_out(module: Any, original: Callable[..., None]) -> Callable[..., None]:
    @wraps(original)
    def _timeout(self: Any) -> None:
        loop = module.get_running_loop()
        waiting = _SCOPES.waiting(self) if self.deadline <= loop.time() else None
        if waiting is None:
            original(self)
        elif waiting.was_late:
            self._timeout_handle = None
            tasks.add(task := loop.create_task(_SCOPES.miss_in_turn(self, waiting, self.cancel)))
            task.add_done_callback(tasks.discard)
        elif _SCOPES.takes_longer(self):
            self._timeout_handle = loop.call_at(loop.time() + LONGER_S, self._timeout)
        else:
            original(self)

    tasks: set[Any] = set()
    return _timeout


def _cut_anyio(patches: PatchSet, module: Any) -> None:
    scope = module.CancelScope
    if not hasattr(scope, "_timeout"):
        return
    patches.replace(scope, "__enter__", partial(_entering_anyio, module))
    patches.replace(scope, "__exit__", _leaving)
    patches.replace(scope, "_timeout", partial(_timing_out, module))


def _install(patches: PatchSet) -> None:
    patches.when_imported(_TRIO, partial(_cut_trio, patches))
    patches.when_imported(_ASYNCIO, partial(_cut_anyio, patches))


INTEGRATION = Integration(
    name="scope_deadlines", libraries=("trio", "anyio"), install=_install, hooks=(_TRIO, _ASYNCIO)
)
