"""Errors that a signal handler of the program's raises while we are at work: an alarm that ends a call, for one.

Where we forgive whatever fails, these are not ours to forgive.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from functools import partial
from types import CodeType
from typing import Any, cast


def pass_on() -> None:
    """Raise the error that is being handled again, where it comes out of a signal handler."""
    error = sys.exception()
    if error is not None and _of_a_handler(error):
        raise error


def _of_a_handler(error: BaseException) -> bool:
    trace, handlers = error.__traceback__, set(_handlers())
    while trace is not None:
        if trace.tb_frame.f_code in handlers:
            return True
        trace = trace.tb_next
    return False


def _handlers() -> Iterator[CodeType]:
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        while isinstance(handler, partial):
            handler = cast("partial[Any]", handler).func
        kind = cast("Any", type(handler))
        held: list[Any] = [handler, getattr(handler, "__func__", None), vars(kind).get("__call__")]
        for each in held:
            code: Any = getattr(each, "__code__", None)
            if isinstance(code, CodeType):
                yield code
