"""Signals to a whole group of processes: they stay within the program where nobody else is in it."""

from __future__ import annotations

import subprocess
import sys

import pytest

ASKS = """
import os
from reenact.boundary import own_processes

whole = [("os.kill", (0, 0)), ("os.killpg", (os.getpgrp(), 0)), ("os.kill", (-os.getpgrp(), 0))]
owned = ("fcntl.fcntl", (0, 8, -os.getpgrp()))
print(*(own_processes.stays_within(event, args, "X") for event, args in (*whole, owned, ("os.kill", (-1, 0)))))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells who is in a group")
@pytest.mark.parametrize(("before", "own"), [("", True), ("sleep 30 & ", False)], ids=["alone", "beside another"])
def test_a_group_that_holds_somebody_else_is_not_the_programs(before: str, *, own: bool) -> None:
    python = f"{before}{sys.executable} -c '{ASKS.replace(chr(39), chr(34))}'; kill %1 2> /dev/null; true"
    done = subprocess.run(
        ["/bin/bash", "-c", python], capture_output=True, text=True, timeout=60, check=False, start_new_session=True
    )
    assert (done.stdout.split(), done.stderr) == ([*[str(own)] * 4, "False"], "")
