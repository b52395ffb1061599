"""Tools that no request lists: a framework that tells its model of them in prose calls an object with the tool's name.

Agents that write code (smolagents), and those whose model names a tool in a field of its text (DSPy). With the call of
such an object its tool is offered, and the function behind it is found like that of any other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from reenact.boundary import offers
from reenact.contracts.integration import Integration, PatchSet

_CALLS: Final = {
    "dspy.adapters.types.tool": ("__call__", "acall"),
    "smolagents.tools": ("__call__",),
}
"""Module to the methods by which its `Tool` is called."""


def _offering(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        offers.announce(getattr(self, "name", None))
        return original(self, *args, **kwargs)

    return called


def _install(patches: PatchSet) -> None:
    for module, methods in _CALLS.items():

        def cut(tool_module: Any, methods: tuple[str, ...] = methods) -> None:
            for name in methods:
                patches.replace(tool_module.Tool, name, _offering)

        patches.when_imported(module, cut)


INTEGRATION = Integration(name="tool_objects", libraries=("dspy", "smolagents"), install=_install, hooks=(*_CALLS,))
