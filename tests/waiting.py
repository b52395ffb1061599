"""Waiting for what other processes do: until it is so, with an end to it."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(holds: Callable[[], object], within_s: float, otherwise: Callable[[], str], every_s: float = 0.1) -> None:
    """Return as soon as something holds; fail with what `otherwise` says where it never does."""
    end = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > end:
            raise AssertionError(otherwise())
        time.sleep(every_s)
