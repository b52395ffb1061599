"""Libraries that write files, or start and reach others, in native code, where no audit event tells of it.

Where a world is sealed that goes to the copy or is refused. Elsewhere nobody sees it, so a result names those that the
program loaded.
"""

from __future__ import annotations

import sys
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


def loaded() -> list[str]:
    """Name those of the libraries that this process has loaded."""
    return sorted(name for module, name in WRITERS.items() if module in sys.modules)
