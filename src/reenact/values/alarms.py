"""Errors that a signal handler of the program's raises while we are at work: an alarm that ends a call, for one.

Where we forgive whatever fails, these are not ours to forgive. What must be written whole is written first: meanwhile
signals are put off (`postponed`), and handlers run as soon as it is written. A server's worker that is told to quit
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
from types import CodeType
from typing import Any, Final, cast

_SIGNALS: Final = tuple(int(number) for number in signal.valid_signals())
_handler_of: Final = cast("Callable[[int], Any]", sys.modules["_signal"].getsignal)
"""What `signal.getsignal` asks, before it makes an enum of the answer."""
_PUT_OFF: Final = tuple(
    int(getattr(signal, name))
    for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
)
"""What tells a program to do something else; a fault of its own (SIGSEGV) is none."""
_mask: Final = cast("Callable[[int, Any], Any] | None", getattr(sys.modules["_signal"], "pthread_sigmask", None))


@contextmanager
def postponed() -> Generator[None]:
    """Put off the program's signal handlers while something of ours is written. Raises what they raise, behind it.

    The thread blocks the signals, and each waits for it (pthread_sigmask(3)). Which handlers there are, and which
    system calls they interrupt, stays as it is. A process of several threads is not helped: the kernel hands a signal
    to one that does not block it, and Python runs the handler on the main thread at once.
    """
    if _mask is None or threading.get_ident() != threading.main_thread().ident:  # handlers run there alone
        yield
        return
    before, error = _mask(signal.SIG_BLOCK, ()), None
    try:
        _mask(signal.SIG_BLOCK, _PUT_OFF)
    except BaseException as raised:  # noqa: BLE001 - of a handler whose signal came just before: raised behind it
        error = raised
    try:
        yield
    finally:
        _mask(signal.SIG_SETMASK, before)
    if error is not None:
        raise error


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
