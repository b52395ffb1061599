"""Waits for a forked agent's end."""

from __future__ import annotations

import os
import signal
import time


def ended(pid: int, hangs_s: float) -> int:
    """Wait for an agent's end, and give its exit code; one that hangs is put out of its misery, with 255."""
    until = time.monotonic() + hangs_s
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return 255
