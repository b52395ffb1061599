"""What the agent's own code measures of its process and its machine: memory, processor, disks.

What `os` and `shutil` say is cut with the clock, since nothing waits for their import.

Such figures are like times: they come again as they were, so that what the program prints of them is the same. Kept is
the bare number or tuple; the class is that of the figure which the replay measures.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from reenact.boundary.tape import measurement
from reenact.contracts.integration import Integration, PatchSet

_OF_MODULES = {
    "resource": ("getrusage",),
    "tracemalloc": ("get_traced_memory", "get_tracemalloc_memory"),
    "psutil": (
        *("virtual_memory", "swap_memory", "cpu_percent", "cpu_times", "cpu_times_percent", "cpu_freq", "getloadavg"),
        *("disk_usage", "disk_io_counters", "net_io_counters"),
    ),
}
_OF_A_PROCESS = ("memory_info", "memory_full_info", "memory_percent", "cpu_percent", "cpu_times", "num_fds")


def _install(patches: PatchSet) -> None:
    for module, names in _OF_MODULES.items():
        patches.when_imported(module, partial(_of_module, patches, names))


def _of_module(patches: PatchSet, names: tuple[str, ...], module: Any) -> None:
    for name in names:
        if hasattr(module, name):
            patches.replace(module, name, measurement(f"{module.__name__}.{name}"))
    if module.__name__ == "psutil":
        for name in _OF_A_PROCESS:
            if hasattr(module.Process, name):
                patches.replace(module.Process, name, measurement(f"psutil.Process.{name}"))


INTEGRATION = Integration(
    name="measures",
    libraries=("resource", "tracemalloc", "psutil"),
    install=_install,
    hooks=("resource", "tracemalloc", "psutil"),
)
