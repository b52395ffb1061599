"""An agent that goes on for long: it notes its process id, then waits; it does not hear SIGTERM."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from contextlib import suppress

import reenact


@reenact.tool
def slight(number: int) -> int:
    return number


signal.signal(signal.SIGTERM, signal.SIG_IGN)
with suppress(TimeoutError):
    slight(1)
if len(sys.argv) > 2 and os.environ.get("REENACT_REPLAY") is None:
    sys.exit(0)  # what is recorded ends; its replay lasts
tempfile.mkstemp(prefix=f"{os.getpid()}-", dir=sys.argv[1])  # such a file is spared in a replay
time.sleep(60)
