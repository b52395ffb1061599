"""Which line of the agent's code is at work, for messages: on this thread, else where the thread or job was started."""

from __future__ import annotations

import inspect

from reenact.boundary import lanes
from reenact.boundary.own_code import own_frame, own_line

UNKNOWN = "a line of no file"
"""What stands for the line where neither the stack nor the lane names one, as at the end of the interpreter."""


def where() -> str:
    """Name the agent's line, as `file:line`.

    A builtin that runs on a thread, a timer or a pool has no frame of the agent above it: the line that started the
    thread or handed over the job is named then.
    """
    return own_line() or lanes.current().origin or UNKNOWN


def function_around() -> str:
    """Name the agent's innermost function at work that can be named from outside, as `module:Class.function`, or ""."""
    frame = own_frame(inspect.currentframe())
    while frame is not None and "<" in frame.f_code.co_qualname:
        frame = own_frame(frame.f_back)
    return f"{frame.f_globals.get('__name__')}:{frame.f_code.co_qualname}" if frame is not None else ""
