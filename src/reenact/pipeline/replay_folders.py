"""The folders that a recorded run listed: which names are left out of the copy, and what is said of those that differ.

Only what stood there when the run began counts: its own files, and those of programs that it started, come and go.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from reenact.values.file_writes import FileWrites
from reenact.values.json import Json
from reenact.values.lenient import as_text

_PASSED: Final = frozenset({".reenact", "__pycache__", ".pytest_cache"})
"""Our store, and caches."""
_MODULES: Final = (".py", ".pyc", ".pyi", ".so")
_NAMED: Final = 5
"""Names that are said of a folder."""
Entries = list[dict[str, Json]]


def of_folders(
    writes: FileWrites,
    here: Callable[[str], str],
    entries: Iterable[Mapping[str, Json]],
    sealed: Callable[[str], str],
    *,
    hides: bool,
) -> tuple[Entries, Entries]:
    """Give what is left out of the copy, and what is said of the folders that hold other names now.

    `here` gives the path that stands for a recorded one, `entries` say how the copy begins, `sealed` names the replays
    that can have a path as it was. With `hides` files that were not there are left out; folders and modules stay, since
    a program may need them.
    """
    begin = {as_text(each["path"]): as_text(each["kind"]) for each in entries}
    own = {*map(here, (*writes.files, *writes.caches, *writes.made)), *begin}
    absent = [path for path, kind in begin.items() if kind == "absent"]
    left_out: Entries = []
    unlike: Entries = []
    for folder, names in writes.folders.items():
        path = here(folder)
        if not os.path.isabs(path) or "REDACTED_" in path:  # noqa: PTH117 - a test in a project reads what is there
            continue
        if any(path == each or path.startswith(f"{each}{os.sep}") for each in absent):
            continue
        foreign = {name for name in (*names, *_names(path)) if not _is_passed(path, name, own, writes)}
        less = sorted(foreign - {*_names(path)})
        more = sorted(foreign - {*names})
        hidden = [name for name in more if hides and _may_be_hidden(f"{path}{os.sep}{name}")]
        for each in hidden:
            left_out.append({"path": f"{path}{os.sep}{each}", "kind": "absent"})
        said = "." if folder == writes.cwd else writes.named(folder)
        shown = [each for each in more if each not in hidden]
        unlike += _lines(said, hidden, shown, less, f"{sealed(path)} leaves that out")
    return left_out, unlike


def _lines(
    folder: str, hidden: Sequence[str], shown: Sequence[str], gone: Sequence[str], leaves_out: str
) -> Iterable[dict[str, Json]]:
    unseen = "now, which the recorded run did not see"
    if hidden:
        line = f"holds {_listed(hidden)} {unseen}: {leaves_out} (--reads present: what is there now)"
        yield {"path": folder, "line": line, "put_back": True}
    if shown:
        yield {"path": folder, "line": f"holds {_listed(shown)} {unseen}: the replay sees it", "put_back": False}
    if gone:
        lost = "which is gone and was not kept: the replay goes without it"
        yield {"path": folder, "line": f"held {_listed(gone)}, {lost}", "put_back": False}


def _names(path: str) -> list[str]:
    try:
        return sorted(os.listdir(path))  # noqa: PTH208 - names, no objects
    except OSError:  # it is gone, or no folder any more
        return []


def _is_passed(folder: str, name: str, own: set[str], writes: FileWrites) -> bool:
    return name in _PASSED or name in writes.temporary or f"{folder}{os.sep}{name}" in own


def _may_be_hidden(path: str) -> bool:
    """Tell whether the program can go without a file: a folder or a module may be what was mended."""
    return os.path.isfile(path) and not path.endswith(_MODULES)  # noqa: PTH113 - many


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
