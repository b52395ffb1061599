"""Ends child processes as far on as the recorded ones were when a signal of their program ended them.

How far a child is when its parent ends it is a matter of the clock. So in a replay the parent's signal waits until the
child has made the calls that were recorded of it. A child that has made them all waits for that signal before it asks
for more, and one that was in the middle of a call waits there.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Final

from reenact.replay import ledger
from reenact.replay.ledger import Ledger
from reenact.replay.stubs import Family

_LONGER_S: Final = 1.0
"""How much longer than when recorded a process waits in the middle of a call for its parent's signal."""
_LONGEST_S: Final = 10.0
"""How long one waits for the other, before what it does is a difference."""
_LOOK_S: Final = 0.01
_STOPS: Final = frozenset({"miss", "refused"})


def hold_signal(notes: Ledger, family: Family, lane: str, number: int) -> None:
    """Wait until the child on `lane`, which signal `number` of this process ended, has made its recorded calls."""
    calls = family.calls_before(lane, number)
    until = time.monotonic() + _LONGEST_S
    while calls and time.monotonic() < until:
        entries = ledger.read(notes.path) if notes.path is not None else notes.entries
        calls -= {str(each.get("id")) for each in entries}
        if any(each["t"] in _STOPS for each in entries):
            return
        time.sleep(_LOOK_S)


def await_signal() -> None:
    """Hold up this process until its parent's signal ends it; give up after a while."""
    time.sleep(_LONGEST_S)


def end_in_call(number: int, after_s: float) -> None:
    """End this process by the signal that ended the recorded one in the middle of a call.

    `after_s` is how long after the call had begun its parent sent it, in seconds; 0 where somebody else did.
    """
    if after_s > 0:
        time.sleep(after_s + _LONGER_S)
    sys.stdout.flush()
    os.kill(os.getpid(), number)
    time.sleep(1)  # it is on its way
