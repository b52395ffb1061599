"""An agent that ends well, or kills whoever supervises it and then itself: its journal is left over."""

from __future__ import annotations

import os
import signal
import sys

import reenact


@reenact.tool
def slight(number: int) -> int:
    return number


slight(1)
sys.stdout.write("done\n")
if sys.argv[1] == "killed":
    os.kill(os.getppid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
