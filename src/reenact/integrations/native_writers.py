"""Files that libraries of native code write by their path: Python sees nothing of it, and no audit event is raised.

The event of an `open` for writing is raised in their place, just before they begin. So the file is noted like any
other, compared in a replay, and refused where writes are. What is given as an open file is its opener's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Final, cast

from reenact.boundary.forgiving import forgive
from reenact.contracts.integration import Integration, PatchSet

_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
_WRITERS: Final[dict[str, dict[str, int]]] = {
    "pyarrow.parquet.core": {"ParquetWriter.__init__": 1},
    "pyarrow.csv": {"write_csv": 1},
    "pyarrow.feather": {"write_feather": 1},
    "pyarrow.orc": {"write_table": 1},
    "pyarrow.ipc": {"new_file": 0, "new_stream": 0},
    "pandas.io.parquet": {"to_parquet": 1},
    "pandas.io.orc": {"to_orc": 1},
    "pandas.io.feather_format": {"to_feather": 1},
    "polars.dataframe.frame": {
        f"DataFrame.write_{kind}": 1 for kind in ("csv", "parquet", "ipc", "ipc_stream", "json", "ndjson", "avro")
    },
    "polars.lazyframe.frame": {f"LazyFrame.sink_{kind}": 1 for kind in ("csv", "parquet", "ipc", "ndjson")},
    "cv2": {"imwrite": 0, "imwritemulti": 0},
    "soundfile": {"write": 0},
    "faiss": {"write_index": 1},
    "safetensors.numpy": {"save_file": 1},
    "safetensors.torch": {"save_file": 1},
}
"""By module: what writes, and which of its arguments is the path, counted from 0."""
_NAMES: Final = ("where", "output_file", "dest", "sink", "file", "path", "filename")
"""What that argument is called."""
_READS: Final = frozenset({"r", "r-"})


def _write(path: object) -> None:
    """Raise the event, if this is a path. A replay that refuses writes raises here."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        return
    spelled = os.fsdecode(cast("str", path))
    if not os.path.isdir(spelled):  # noqa: PTH112 - at each call of a writer
        sys.audit("open", spelled, "wb", _FLAGS)


def _writer(place: int, original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def write(*args: Any, **kwargs: Any) -> Any:
        path = args[place] if len(args) > place else next((kwargs[name] for name in _NAMES if name in kwargs), None)
        if not kwargs.get("partition_cols"):  # these are files in a folder
            _write(path)
        return original(*args, **kwargs)

    return write


def _hdf5(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def __init__(self: Any, name: Any, mode: Any = "r", *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is that
        if mode not in _READS:
            _write(name)
        original(self, name, mode, *args, **kwargs)

    return __init__


def _install(patches: PatchSet) -> None:
    for name, writers in _WRITERS.items():
        patches.when_imported(name, partial(_of_module, patches, writers))
    patches.when_imported("h5py._hl.files", lambda module: patches.replace(module.File, "__init__", _hdf5))


def _of_module(patches: PatchSet, writers: dict[str, int], module: Any) -> None:
    for spelled, place in writers.items():
        try:
            holder, _, name = spelled.rpartition(".")
            owner = getattr(module, holder) if holder else module
            if isinstance(getattr(owner, name), type):
                continue  # whoever asks for its kind is to find it
            patches.replace(owner, name, partial(_writer, place))
        except Exception:
            forgive("native_writers")


_MODULES: Final = (*_WRITERS, "h5py._hl.files")
INTEGRATION = Integration(
    name="native_writers",
    libraries=("pyarrow", "pandas", "polars", "h5py", "cv2", "soundfile", "faiss", "safetensors"),
    install=_install,
    hooks=_MODULES,
)
