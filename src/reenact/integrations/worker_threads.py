"""Jobs that tasks hand to the threads of anyio and of trio: whoever waits for one goes on in its recorded place.

Such a job runs on the lane of the task that waits for it. Threads race for the end; what the task does then, another
task may see. What a library hands over during a real call nobody hands over in a replay, and it is left alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, Final, TypeVar

from reenact.boundary import lanes, pauses
from reenact.boundary.pauses import Waiting
from reenact.contracts.integration import Integration, PatchSet

T = TypeVar("T")


def _awaited(original: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T]]:
    @wraps(original)
    async def run_sync(*args: Any, **kwargs: Any) -> T:
        if not pauses.is_on() or lanes.current().is_aside:
            return await original(*args, **kwargs)
        waiting = Waiting()
        try:
            result = await original(*args, **kwargs)
        except Exception:  # the job's own
            await waiting.over_async()
            raise
        except BaseException:
            waiting.cut_short()
            raise
        await waiting.over_async()
        return result

    return run_sync


def _of_anyio(patches: PatchSet, module: Any) -> None:
    patches.replace(module.AsyncIOBackend, "run_sync_in_worker_thread", lambda each: staticmethod(_awaited(each)))


_CUTS: Final[dict[str, Callable[[PatchSet, Any], None]]] = {
    "anyio._backends._asyncio": _of_anyio,
    "trio.to_thread": lambda patches, module: patches.replace(module, "run_sync", _awaited),
}


def _install(patches: PatchSet) -> None:
    def cut(module: Any) -> None:
        _CUTS[module.__name__](patches, module)

    for name in _CUTS:
        patches.when_imported(name, cut)


INTEGRATION = Integration(name="worker_threads", libraries=("anyio", "trio"), install=_install, hooks=tuple(_CUTS))
