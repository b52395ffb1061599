"""Files that `logging` writes: in what form, and which of their texts are the program's. Loaded where there is one."""

from __future__ import annotations

import os
from collections import Counter
from typing import Final

from reenact.record.log_format import log_format
from reenact.values.json import Json

_TIMES: Final = ("asctime", "created", "msecs", "relativeCreated")
"""What a line of a log is given of the clock (`logging`, "LogRecord attributes")."""


def facts(handler: object) -> dict[str, Json]:
    """Say in what form the lines of a log are, which file its handler writes to, and how many old ones it keeps."""
    log_fields: dict[str, Json] = {"log": log_format(handler)}
    base, backups = getattr(handler, "baseFilename", ""), getattr(handler, "backupCount", 0)
    if isinstance(base, str) and base and isinstance(backups, int) and hasattr(handler, "doRollover"):
        log_fields["log_of"], log_fields["backups"] = os.path.realpath(base), backups
    return log_fields


def tells_time(form: str) -> bool:
    """Tell whether the lines of a log may have the time in them: a form that nobody knows may."""
    return not form or any(f"%({name}" in form for name in _TIMES)


def own_text(text: str, logged: Counter[str]) -> tuple[str, int]:
    """Leave out of a log what libraries logged; say how many texts that was."""
    if not logged:
        return text, 0
    left, begins = Counter(logged), dict[str, list[str]]()
    for each in logged:
        begins.setdefault(each.partition("\n")[0], []).append(each)
    own_lines: list[str] = []
    at = 0
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        entry = next((each for each in begins.get(text[at:end], ()) if left[each] and text.startswith(each, at)), None)
        if entry is None:
            own_lines.append(text[at : end + 1])
            at = end + 1
        else:
            left[entry] -= 1
            at += len(entry)
    return "".join(own_lines), logged.total() - left.total()
