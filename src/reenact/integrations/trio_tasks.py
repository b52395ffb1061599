"""Tasks of trio: each has a lane of its own, and those that could go on together do so in one order.

trio's scheduler throws a coin for each batch of tasks that can run, and wakes who waits for one event, or is cancelled
with others, in the order of addresses. Both would come out otherwise in each run, so it is first come, first served
here, in recordings too. `trio.sleep` of the agent's own code ends in its recorded place, as that of asyncio does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from random import Random
from sys import _getframe  # pyright: ignore[reportPrivateUsage] - what the running code is called costs least so
from typing import Any, Final

from reenact.boundary import lanes, pauses, tape
from reenact.boundary.pauses import LONGER_S, Waiting
from reenact.boundary.tape import Sites, Source
from reenact.boundary.task_births import InOrder, note
from reenact.contracts.integration import Integration, PatchSet

_SLEEP: Final = Source(name="trio.sleep pause")


class _FirstCome(Random):
    """Chance that has trio take a batch of tasks in the order in which they became ready."""

    def random(self) -> float:
        """Give what reverses the batch, of which the last one goes first."""
        return 0.0


def _in_order(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make the named sets of a new object ones that are gone through in a known order."""

    def make(original: Callable[..., None]) -> Callable[..., None]:
        @wraps(original)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is that method
            original(self, *args, **kwargs)
            for name in names:
                setattr(self, name, InOrder[Any](getattr(self, name)))
            note(self, lanes.current().path)

        return __init__

    return make


def _sleep(original: Callable[[float], Any]) -> Callable[[float], Any]:
    sites = Sites(_SLEEP, libraries=False)

    @wraps(original)
    async def sleep(seconds: float) -> None:
        if not pauses.is_on() or not pauses.is_a_while(seconds) or sites.of(frame := _getframe().f_back) is None:
            await original(seconds)
            return
        waiting = Waiting(frame)
        try:
            await original(seconds)
            if waiting.was_late is False:  # somebody cut it short when recorded, and will again
                await original(LONGER_S)
        except BaseException:
            waiting.cut_short()
            raise
        await waiting.over_async()

    return sleep


def _cut_scheduler(patches: PatchSet, module: Any) -> None:
    patches.replace(module.Runner, "spawn_impl", lanes.spawning_task)
    patches.replace(module.Runner, "task_exited", lanes.ending_task)
    patches.replace(module.CancelStatus, "__init__", _in_order("_tasks", "_children"))
    chance = _FirstCome()
    patches.replace(module, "_r", lambda _: chance)


def _cut_sleep(patches: PatchSet, module: Any) -> None:
    original = module.sleep
    patches.replace(module, "sleep", _sleep)
    tape.rebind(patches, {id(original): module.sleep})


_CUTS: Final[dict[str, Callable[[PatchSet, Any], None]]] = {
    "trio._core._run": _cut_scheduler,
    "trio._sync": lambda patches, module: patches.replace(module.Event, "__init__", _in_order("_tasks")),
    "trio": _cut_sleep,
}


def _install(patches: PatchSet) -> None:
    def cut(module: Any) -> None:
        _CUTS[module.__name__](patches, module)

    for name in _CUTS:
        patches.when_imported(name, cut)


INTEGRATION = Integration(name="trio_tasks", libraries=("trio",), install=_install, hooks=tuple(_CUTS))
