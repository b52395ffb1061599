"""What the name of a lane tells: where a process was left for another one."""

from __future__ import annotations


def in_unit(unit: str, lane: str) -> str:
    """Name a lane apart from those of other units of its process, all of which begin on lanes of one name."""
    return f"{unit[:12]}:{lane}" if unit else lane


MARK = "p:"
"""How the segment of a lane begins at which a process was left for another one."""


def sequence(lane: str, process: str) -> str:
    """Name the sequence that numbers releases on `lane`: each process, and each job in another process, has its own."""
    at = lane.rfind(f"/{MARK}")
    if at < 0:
        return process
    end = lane.find("/", at + 1)
    return f"{process} {lane if end < 0 else lane[:end]}"
