"""Events that the workers of pytest-xdist send: the controller takes them in their recorded order.

A worker is a process with an order of its own. Which of two has ended its test first says which test goes to whom.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from reenact.boundary import lanes, pauses
from reenact.boundary.lanes import Lane
from reenact.contracts.integration import Integration, PatchSet


def _notify_inproc(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def notify_inproc(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not pauses.is_on():
            return original(self, *args, **kwargs)
        main = lanes.main()  # a thread of execnet's that reads has no lane of its own
        with pauses.HandingOver(Lane(f"{main.path}/xdist {self.gateway.id}", main.reel)):
            return original(self, *args, **kwargs)

    return notify_inproc


def _install(patches: PatchSet) -> None:
    patches.when_imported(
        "xdist.workermanage", lambda module: patches.replace(module.WorkerController, "notify_inproc", _notify_inproc)
    )


INTEGRATION = Integration(
    name="xdist_workers", libraries=("pytest-xdist",), install=_install, hooks=("xdist.workermanage",)
)
