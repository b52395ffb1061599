"""The format of the lines that a handler of `logging` writes, with that of their dates."""

from __future__ import annotations

import re
import sys
from typing import Any, Final

_TIME: Final = re.compile(r"%\(asctime\)")


def log_format(handler: Any) -> str:
    """Spell it as the program did; a format of dates stands in its field: `%(asctime:%d/%m/%Y)s %(message)s`.

    Nothing where nobody knows it.
    """
    formatter = getattr(handler, "formatter", None)
    if formatter is None and handler is not None and "logging" in sys.modules:
        return "%(message)s"
    spelled, dates = getattr(formatter, "_fmt", ""), getattr(formatter, "datefmt", None)
    if not isinstance(spelled, str):
        return ""
    if not isinstance(dates, str) or ")" in dates:
        return spelled
    return _TIME.sub(lambda _: f"%(asctime:{dates})", spelled)
