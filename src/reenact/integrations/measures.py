"""What the agent's own code measures of its process and its machine: memory, processor, load.

Such figures are like times: they come again as they were, so that what the program prints of them is the same. Kept is
the bare number or tuple; the class is that of the figure which the replay measures.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from sys import _getframe  # pyright: ignore[reportPrivateUsage] - what the running code is called costs least so
from typing import Any, cast

from reenact.boundary import tape
from reenact.boundary.tape import Sites, Source
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.json import Json

_OF_MODULES = {
    "resource": ("getrusage",),
    "tracemalloc": ("get_traced_memory", "get_tracemalloc_memory"),
    "psutil": ("virtual_memory", "swap_memory", "cpu_percent", "cpu_times", "getloadavg"),
}
_OF_A_PROCESS = ("memory_info", "memory_full_info", "memory_percent", "cpu_percent", "cpu_times", "num_fds")


def _read(value: Json) -> Json:
    if isinstance(value, int | float) or (isinstance(value, list) and all(isinstance(v, int | float) for v in value)):
        return value
    raise TypeError(f"{value!r} is no figure")


def _measured(name: str) -> Callable[[Any], Any]:
    """Wrap what measures."""
    sites = Sites(Source(name=name, read=_read))

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def measure(*args: Any, **kwargs: Any) -> Any:
            site = sites.of(_getframe(1)) if tape.is_on() else None
            real = original(*args, **kwargs)
            if site is None or not isinstance(real, int | float | tuple):
                return real
            plain: Any = [*cast("tuple[Any, ...]", real)] if isinstance(real, tuple) else real
            return _like(real, tape.draw(site, lambda: plain))

        return measure

    return make


def _like(real: Any, drawn: Any) -> Any:
    """Give recorded figures in the class of the real ones; these themselves where there are more or fewer."""
    if not isinstance(real, tuple):
        return real if isinstance(drawn, list) else drawn
    figures = cast("tuple[Any, ...]", real)
    if not isinstance(drawn, list) or len(cast("list[Any]", drawn)) != len(figures):
        return figures
    kind: Any = type(figures)
    return kind._make(drawn) if hasattr(kind, "_make") else kind(drawn)


def _install(patches: PatchSet) -> None:
    for module, names in _OF_MODULES.items():
        patches.when_imported(module, partial(_of_module, patches, names))


def _of_module(patches: PatchSet, names: tuple[str, ...], module: Any) -> None:
    for name in names:
        if hasattr(module, name):
            patches.replace(module, name, _measured(f"{module.__name__}.{name}"))
    if module.__name__ == "psutil":
        for name in _OF_A_PROCESS:
            if hasattr(module.Process, name):
                patches.replace(module.Process, name, _measured(f"psutil.Process.{name}"))


INTEGRATION = Integration(
    name="measures",
    libraries=("resource", "tracemalloc", "psutil"),
    install=_install,
    hooks=("resource", "tracemalloc", "psutil"),
)
