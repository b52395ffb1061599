"""Delivering units that block: one after the other, or each on a thread where they were under way at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable

from reenact.deliver.unit_turns import Turns
from reenact.values import alarms
from reenact.values.run import Run


def one_by_one(turns: Turns, do: Callable[[Run], None]) -> bool:
    """Do the earlier units, and wait for the turn of the one that is asked for; tell whether none is left to be had."""

    def earlier(run: Run) -> None:
        turns.begin(run)
        if turns.stopped:
            return
        try:
            do(run)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # noqa: BLE001 - a server goes on; what left the recording is in the ledger
            alarms.pass_on()
        finally:
            turns.end(run)

    if turns.overlap:
        for run in turns.earlier:  # who is not over when the unit that is asked for is, is left behind
            threading.Thread(target=earlier, args=(run,), daemon=True).start()
    else:
        for run in turns.earlier:
            earlier(run)
    turns.begin(turns.asked_for)
    return turns.stopped
