"""How a process ended that left a run open, as far as anybody saw it."""

from __future__ import annotations

import signal
from collections.abc import Mapping

_CODE = "process.exit.code"


def cut_off_by(attributes: Mapping[str, object]) -> str:
    """Say what ended the process in the middle of a run, by the attributes of its root; empty where the run has an end.

    Only a parent that waited for the process saw it: `reenact run` does, and the agent for its children.
    """
    if not attributes.get("reenact.incomplete"):
        return ""
    code = attributes.get(_CODE)
    if not isinstance(code, int) or isinstance(code, bool):
        return "the process ended before it did, and nobody saw by what"
    if code < 0:
        return f"the process was ended by {_signal(-code)}"
    return f"the process ended itself with exit code {code}, past Python's own end"


def in_short(attributes: Mapping[str, object]) -> str:
    """Say the same in a word or two."""
    code = attributes.get(_CODE)
    if isinstance(code, int) and code >= 0:
        return f"ended itself, exit code {code}"
    if isinstance(code, int) and -code != signal.SIGKILL:
        return f"ended by {_signal(-code)}"
    return "killed" if isinstance(code, int) else "cut off"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
