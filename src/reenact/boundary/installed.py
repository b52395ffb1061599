"""Where code stands that is nobody's own: Python's folders, those that packages are installed in, and ours.

Packages are installed in more places than in this interpreter's own folder: the user's (PEP 370), the system's where a
virtual environment lets it in, another environment that a `.pth` file or PYTHONPATH adds, a folder of `pip --target`.
Installers leave a `*.dist-info` beside what they install (PEP 376).
"""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

_NAMES: Final = ("site-packages", "dist-packages")
_RECORD: Final = ".dist-info"


def _with_ends(folders: Iterable[str]) -> tuple[str, ...]:
    return tuple({f"{folder.rstrip(os.sep)}{os.sep}" for folder in folders})


def _package_folders() -> Iterator[str]:
    yield from (sysconfig.get_path(name) for name in ("purelib", "platlib"))
    yield from site.getsitepackages()
    if site.ENABLE_USER_SITE:
        yield site.getusersitepackages()
    yield from (path for path in sys.path[1:] if path and _is_installed_in(path))


def _is_installed_in(folder: str) -> bool:
    if folder.rstrip(os.sep).endswith(_NAMES):
        return True
    try:
        with os.scandir(folder) as entries:
            return any(each.name.endswith(_RECORD) for each in entries)
    except OSError:  # an archive, or nothing
        return False


OURS: Final = f"{Path(__file__).parents[1]}{os.sep}"
PYTHON: Final = _with_ends(sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))
PACKAGES: Final = _with_ends(_package_folders())
CODE: Final = (*{*PYTHON, *PACKAGES, OURS},)
