"""An agent that goes on for long: it takes a name by which it is known, then waits; it does not hear SIGTERM.

A name of a process is seen from outside, whatever world the process lives in (PR_SET_NAME, prctl(2)).
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
import zlib
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
ctypes.CDLL(None).prctl(15, f"work-{zlib.crc32(sys.argv[1].encode()):08x}".encode(), 0, 0, 0)
time.sleep(60)
