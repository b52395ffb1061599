"""Which files this process has open, as Linux tells it (proc_pid_fd(5)); none elsewhere."""

from __future__ import annotations

import os


def open_paths() -> list[str]:
    """List the paths of what is open, one for each descriptor."""
    try:
        return [open_path(name) for name in os.listdir("/proc/self/fd")]  # noqa: PTH208 - names, no objects
    except OSError:
        return []


def open_path(handle: int | str) -> str:
    """Give the path of a descriptor; nothing where it is closed."""
    try:
        return os.readlink(f"/proc/self/fd/{handle}")  # noqa: PTH115 - many
    except OSError:
        return ""


def appends(path: str) -> bool:
    """Tell whether every descriptor of a file only writes at its end, wherever that is by then."""
    import fcntl

    handles = [int(each) for each in os.listdir("/proc/self/fd") if open_path(each) == path]  # noqa: PTH208 - as above
    flags = [fcntl.fcntl(each, fcntl.F_GETFL) for each in handles]
    return all(flag & os.O_APPEND for flag in flags if flag & os.O_ACCMODE != os.O_RDONLY)
