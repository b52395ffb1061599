"""Log files in a replay: led to nowhere, since a program's log is not what a replay is for."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import cast


@contextmanager
def logs_to_nowhere() -> Generator[None]:
    """Lead log files that are opened meanwhile to nowhere."""
    original = logging.FileHandler._open  # noqa: SLF001 - the one place where a handler opens its file

    def _open(self: logging.FileHandler) -> TextIOWrapper:
        return cast("TextIOWrapper", Path(os.devnull).open(self.mode, encoding=self.encoding))

    logging.FileHandler._open = _open  # noqa: SLF001 - the one place where the standard library opens a log
    try:
        yield
    finally:
        if logging.FileHandler._open is _open:  # noqa: SLF001 - the one place where the standard library opens a log
            logging.FileHandler._open = original  # noqa: SLF001 - the one place where the standard library opens a log
