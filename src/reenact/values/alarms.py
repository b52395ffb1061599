"""Errors that a signal handler of the program's raises while we are at work: an alarm that ends a call, for one.

Where we forgive whatever fails, these are not ours to forgive.

A search for tools forgives thousands of times, so this is quick: most errors come out of the very frame that forgives
them, and the signals are looked at without `signal`, which makes an enum of every answer.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from types import CodeType
from typing import Any, Final, cast

_SIGNALS: Final = tuple(int(number) for number in signal.valid_signals())
_handler_of: Final = cast("Callable[[int], Any]", sys.modules["_signal"].getsignal)
"""What `signal.getsignal` asks, before it makes an enum of the answer."""


def pass_on() -> None:
    """Raise the error that is being handled again, where it comes out of a signal handler."""
    error = sys.exception()
    if error is not None and _of_a_handler(error):
        raise error


def _of_a_handler(error: BaseException) -> bool:
    trace = error.__traceback__
    if trace is None or trace.tb_next is None:  # a handler has a frame of its own, below the one that was interrupted
        return False
    handlers = set(_handlers())
    while trace is not None:
        if trace.tb_frame.f_code in handlers:
            return True
        trace = trace.tb_next
    return False


def _handlers() -> Iterator[CodeType]:
    for number in _SIGNALS:
        handler = _handler_of(number)
        if not callable(handler):  # it is the default, or ignored
            continue
        while isinstance(handler, partial):
            handler = cast("partial[Any]", handler).func
        kind = cast("Any", type(handler))
        candidates: list[Any] = [handler, getattr(handler, "__func__", None), vars(kind).get("__call__")]
        for each in candidates:
            code: Any = getattr(each, "__code__", None)
            if isinstance(code, CodeType):
                yield code
