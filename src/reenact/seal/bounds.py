"""What lies in a cell: the folders that may be written to, and where paths that others know lead."""

from __future__ import annotations

import os

from reenact.seal.folder import CACHE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Final

    from reenact.seal.folder import Folder

_SHARED_MEMORY: Final = "/dev/shm/"  # noqa: S108 - the place that shm_open(3) and sem_open(3) use


class Bounds:
    """Those of one cell. All paths are absolute."""

    def __init__(
        self, upper: str, folder: Folder, doors: Sequence[str], instead: Mapping[str, str], version: int
    ) -> None:
        """`version` is the ABI of Landlock that keeps them."""
        self.folder, self.abi = folder, version
        self.temporary, self.memory = f"{upper}/t", f"{upper}/m"
        linked = {path: path for path in folder.linked if not path.endswith(f"/{CACHE}")}
        self.leads = {**linked, **instead, folder.original: folder.copy}
        """Folders, and what Python code that names them is led to; what the copy links to is led nowhere."""
        self.open = [folder.copy, self.temporary, self.memory, *doors, *instead.values()]
        self._open = tuple(os.path.realpath(path) for path in self.open)

    def holds(self, real: str) -> bool:
        """Tell whether a path without links lies in the cell."""
        return any(real == path or real.startswith(f"{path}/") for path in self._open)

    def in_memory(self, path: bytes) -> bytes:
        """Give where a file of `/dev/shm` lies in the cell; nothing where it is none."""
        name = os.fsdecode(path)
        if not name.startswith(_SHARED_MEMORY):
            return b""
        last = name[len(_SHARED_MEMORY) :]
        return b"" if "/" in last or last in {"", ".", ".."} else os.fsencode(f"{self.memory}/{last}")

    def copied(self, path: bytes) -> bytes:
        """Give where what lies in the original folder lies in its copy; any other path as it is."""
        original, name = self.folder.original, os.fsdecode(path)
        return os.fsencode(self.folder.copy + name[len(original) :]) if name.startswith(f"{original}/") else path
