"""The folders whose names a program's own code listed, with the names that it got and their order.

An audit event comes before the folder is listed, so it is listed here as well. The order of names is the disk's: in a
copy of the folder elsewhere it is another one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from reenact.values.json import Json

_MOST: Final = 50
"""Folders of one run that are noted."""
_MOST_NAMES: Final = 1000
"""Names of one folder; of one that holds more nothing is noted."""
_MOST_LOOKS: Final = 20
"""So often a folder is looked at that is listed again and again."""


class ListedFolders:
    """Notes the names of folders: all that ever stood there, those of the last look first."""

    __slots__ = ("_looks", "_names")

    def __init__(self) -> None:
        self._names: dict[str, list[str]] = {}
        self._looks: dict[str, int] = {}

    def note(self, path: str) -> None:
        """Note the names in a folder that is about to be listed."""
        looks = self._looks.get(path, 0)
        if looks >= _MOST_LOOKS or (not looks and len(self._looks) >= _MOST):
            return
        self._looks[path] = looks + 1
        try:
            names = os.listdir(path)  # noqa: PTH208 - in an audit hook
        except OSError:  # the program is told so
            return
        if len(names) > _MOST_NAMES:
            self._names.pop(path, None)
            self._looks[path] = _MOST_LOOKS
            return
        there = frozenset(names)
        self._names[path] = [*names, *(name for name in self._names.get(path, ()) if name not in there)]

    def take(self, safe: Callable[[str], str], is_clean: Callable[[str], bool]) -> list[Json]:
        """Give each folder with its names, once; none of which redaction would change a name."""
        names, self._names = self._names, {}
        return [[safe(path), [*each]] for path, each in names.items() if is_clean("\n".join(each))]
