"""The files of a sealed world as they were when the recorded run began. Everything here is done in the copy.

Each entry of the list says of a `path` what stood there: `kind` is `absent`, `folder`, `link` (with `to`), `cut` (with
`size`: the file is as it was up to there), or `file`, with its `content` in base64 and its `mode`.
"""

from __future__ import annotations

import base64
import os
import shutil
import stat
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Entries = Sequence[Mapping[str, Any]]


def put_back(entries: Entries, copied: Sequence[str], doors: Sequence[str]) -> None:
    """Put paths back, those alone that lie in the folders that are `copied` and in none of `doors`, which are real.

    What cannot be put back stays as it is.
    """
    absent = [each for each in entries if each["kind"] == "absent"]
    for entry in sorted(absent, key=lambda each: -len(each["path"])):  # what lies in a folder goes before it
        with suppress(OSError):
            if _is_in_the_copy(entry["path"], copied, doors):
                _remove(entry["path"])
    for entry in sorted(entries, key=lambda each: len(each["path"])):
        with suppress(OSError):
            if entry["kind"] != "absent" and _is_in_the_copy(entry["path"], copied, doors):
                _stand(entry)


def put_back_in(entries: Entries, original: str, copy: str) -> None:
    """Put back the paths below a folder, in the copy that stands for it elsewhere."""
    below = [each for each in entries if _below(each["path"], original)]
    inside = [{**each, "path": copy + each["path"][len(original) :]} for each in below]
    put_back(inside, [copy], ())


def _is_in_the_copy(path: str, copied: Sequence[str], doors: Sequence[str]) -> bool:
    real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    inside = max((each for each in copied if _below(real, each)), key=len, default=None)
    return inside is not None and not any(_below(real, each) or _below(each, real) for each in doors)


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def _stand(entry: Mapping[str, Any]) -> None:
    path, kind = entry["path"], entry["kind"]
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if kind == "folder":
        with suppress(FileExistsError):
            os.mkdir(path)
        return
    if kind == "cut":
        if stat.S_ISREG(os.lstat(path).st_mode) and os.lstat(path).st_size > entry["size"]:
            os.truncate(path, entry["size"])
        _set_time(path, entry)
        return
    in_place = kind == "file" and _is_alone(path)
    if os.path.lexists(path) and not in_place:
        _remove(path)
    if kind == "link":
        os.symlink(entry["to"], path)
        return
    # A stream that is already open keeps its file: an overlay could not copy one whose name another file has taken.
    how = os.O_TRUNC if in_place else os.O_CREAT | os.O_EXCL
    handle = os.open(path, os.O_WRONLY | how | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as stream:
        stream.write(base64.b64decode(entry["content"]))
        os.fchmod(stream.fileno(), entry["mode"])
    _set_time(path, entry)


def _is_alone(path: str) -> bool:
    """Tell whether a plain file stands there that has no other name: by another one it may be real."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and os.access(path, os.W_OK)


def _set_time(path: str, entry: Mapping[str, Any]) -> None:
    """Give a file the time of its last change, by which a log is rotated and a build is up to date."""
    if "mtime" in entry:
        changed = int(entry["mtime"])
        os.utime(path, ns=(changed, changed))
