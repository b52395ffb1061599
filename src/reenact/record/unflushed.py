"""What a program wrote to files that it has still open at its end, and that Python holds back: it is written out."""

from __future__ import annotations

import gc
import io
from collections.abc import Callable, Container
from typing import Any

from reenact.values import alarms


def write_out(paths: Container[str], path_of: Callable[[int], str]) -> None:
    """Flush every open file that is written to one of these paths; `path_of` gives that of a descriptor."""
    for each in gc.get_objects():
        if issubclass(type(each), io.TextIOWrapper | io.BufferedWriter | io.BufferedRandom):
            _flush(each, paths, path_of)


def _flush(file: Any, paths: Container[str], path_of: Callable[[int], str]) -> None:
    try:
        if not file.closed and file.writable() and path_of(file.fileno()) in paths:
            file.flush()
    except Exception:  # the program closes it itself
        alarms.pass_on()
