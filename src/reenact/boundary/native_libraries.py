"""Libraries that write files, or start and reach others, in native code, where no audit event tells of it.

Where a world is sealed that goes to the copy or is refused. Elsewhere nobody sees it, so a result names those that the
program loaded.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

WRITERS: Final = {
    "apsw": "apsw",
    "cv2": "cv2",
    "deltalake": "deltalake",
    "duckdb": "duckdb",
    "fastparquet": "fastparquet",
    "h5py": "h5py",
    "lancedb": "lancedb",
    "leveldb": "leveldb",
    "lmdb": "lmdb",
    "lxml": "lxml",
    "netCDF4": "netCDF4",
    "plyvel": "plyvel",
    "polars": "polars",
    "pyarrow": "pyarrow",
    "pycurl": "pycurl",
    "pygit2": "pygit2",
    "rocksdict": "rocksdict",
    "tables": "tables",
    "uvloop": "uvloop",
    "vtk": "vtk",
    "zarr": "zarr",
    "_cffi_backend": "cffi",
}
"""Module to the name by which it is known."""


_RING: Final = "anon_inode:[io_uring]"
"""What a descriptor leads to, by which the kernel takes orders that no filter of system calls sees (io_uring(7))."""


def rings() -> bool:
    """Tell whether this process has a ring of io_uring open or mapped."""
    with suppress(OSError):
        for each in Path("/proc/self/fd").iterdir():
            with suppress(OSError):  # the one by which they are listed
                if str(each.readlink()) == _RING:
                    return True
        return _RING in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    return False


def loaded() -> list[str]:
    """Name those of the libraries that this process has loaded."""
    return sorted(name for module, name in WRITERS.items() if module in sys.modules)
