"""Being stopped: whoever ends a long command by a signal gets what it has come to."""

from __future__ import annotations

import signal
import threading
from typing import Final, Self


class stops_as_interrupted:  # noqa: N801 - reads as a function does
    """While it lasts, SIGTERM and SIGHUP raise `KeyboardInterrupt` on the main thread, as SIGINT does.

    A signal that is ignored, as SIGINT is for a job in the background, stays ignored.
    """

    _SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)

    def __enter__(self) -> Self:
        self.by = ""
        """The name of the signal that came; empty where none did."""
        self._before = {}
        if threading.current_thread() is threading.main_thread():
            signals = [each for each in self._SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
            self._before = {number: signal.signal(number, self._interrupt) for number in signals}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _interrupt(self, number: int, _frame: object) -> None:
        self.by = signal.Signals(number).name
        raise KeyboardInterrupt(number)
