"""The earlier units of its process on which a unit stands, as far as they can be delivered before it."""

from __future__ import annotations

from dataclasses import dataclass

from reenact.values.run import Run

MOST = 50
"""Earlier units that are delivered without being asked for more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What is delivered before a unit."""

    units: tuple[Run, ...] = ()
    """In the order in which they came in."""
    lost: tuple[str, ...] = ()
    """What cannot be delivered, and why: each goes on from `stands on`."""
    overlap: bool = False
    """Some of them, or the unit itself, were under way at the same time."""
