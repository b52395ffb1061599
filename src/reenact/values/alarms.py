"""Errors that a signal handler of the program's raises while we are at work: an alarm that ends a call, for one.

Where we forgive whatever fails, these are not ours to forgive. What must be written whole is written first: meanwhile
handlers are put off (`postponed`), and each runs as soon as it is written. A server's worker that is told to quit
raises `SystemExit` wherever it is, and that is often behind an answer which its client has got.

A search for tools forgives thousands of times, so this is quick: most errors come out of the very frame that forgives
them, and the signals are looked at without `signal`, which makes an enum of every answer.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from types import CodeType, FrameType
from typing import Any, Final, cast

_SIGNALS: Final = tuple(int(number) for number in signal.valid_signals())
_handler_of: Final = cast("Callable[[int], Any]", sys.modules["_signal"].getsignal)
"""What `signal.getsignal` asks, before it makes an enum of the answer."""
_handle: Final = cast("Callable[[int, Any], Any]", sys.modules["_signal"].signal)


class _Postponed:
    """Stands in for the handlers of the program's for a moment, and keeps which signals came."""

    def __init__(self) -> None:
        self.handlers: dict[int, Callable[[int, FrameType | None], object]] = {}
        self.came: dict[int, FrameType | None] = {}

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.came[number] = frame

    def take_over(self) -> None:
        """Stand in for each handler that is Python's."""
        for number in _SIGNALS:
            handler = _handler_of(number)
            if callable(handler) and not isinstance(handler, _Postponed):
                self.handlers[number] = handler
                _handle(number, self)

    def give_back(self) -> None:
        """Put the handlers back, then run those whose signal came. Raises what they raise, the first one."""
        for number, handler in self.handlers.items():
            if _handler_of(number) is self:
                _handle(number, handler)
        self._run([*self.came.items()])

    def _run(self, signals: list[tuple[int, FrameType | None]]) -> None:
        for at, (number, frame) in enumerate(signals):
            try:
                self.handlers[number](number, frame)
            except BaseException:
                self._run(signals[at + 1 :])
                raise


def handler_of(number: int) -> Any:
    """Give what handles a signal, as `signal.getsignal` does; of one that is put off what will."""
    handler = _handler_of(number)
    return handler.handlers[number] if isinstance(handler, _Postponed) else handler


@contextmanager
def postponed() -> Generator[None]:
    """Put off the program's signal handlers while something of ours is written. Raises what they raise, behind it."""
    if threading.get_ident() != threading.main_thread().ident:  # handlers run on the main thread alone
        yield
        return
    instead = _Postponed()
    try:
        instead.take_over()
        yield
    finally:
        instead.give_back()


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
