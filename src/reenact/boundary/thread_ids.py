"""The ids of this process's threads, as `threading.get_ident` gives them, found again in what the process gave out.

On Linux an id is the address of the thread's descriptor (pthread_self(3)): a number of 12 digits and more that is
another in each run, and that log lines in JSON often hold.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from typing import Final

_MOST: Final = 2_000
_NUMBER: Final = re.compile(r"(?<!\d)\d{12,16}(?!\d)")
_ids: deque[int] = deque(maxlen=_MOST)
"""Those of threads other than the main one, the newest last."""


def note() -> None:
    """Note the id of the thread that is running."""
    _ids.append(threading.get_ident())


def among(text: str) -> list[int]:
    """Give the ids that a text holds, in their order as numbers."""
    numbers = {int(each) for each in _NUMBER.findall(text)}
    return sorted(numbers.intersection({*_ids, threading.main_thread().ident}))
