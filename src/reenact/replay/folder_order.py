"""The names in a folder come in the order in which the recorded run got them: disks have different ones.

Only folders that the run listed are looked at, and only where their order here is another one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, Self

Ranks = Mapping[str, Mapping[str, int]]
"""The places of the names, by folder."""


def give_back(folders: Mapping[str, Sequence[str]]) -> Callable[[], None]:
    """Have `os.listdir` and `os.scandir` give names in the order of `folders`; gives a function that ends it."""
    ranks = {path: {name: at for at, name in enumerate(names)} for path, names in folders.items()}
    originals = {name: getattr(os, name) for name in ("listdir", "scandir")}
    for name, replacement in (("listdir", _listdir(os.listdir, ranks)), ("scandir", _scandir(os.scandir, ranks))):
        setattr(os, name, replacement)
        if originals[name] in os.supports_fd:
            os.supports_fd.add(replacement)

    def end() -> None:
        for name, original in originals.items():
            os.supports_fd.discard(getattr(os, name))
            setattr(os, name, original)

    return end


def _listdir(original: Callable[..., Any], ranks: Ranks) -> Callable[..., Any]:
    @wraps(original)
    def listdir(path: Any = None) -> Any:
        names = original(path)
        rank = _of(path, ranks)
        return names if rank is None else _in_order(names, rank, os.fsdecode)

    return listdir


def _scandir(original: Callable[..., Any], ranks: Ranks) -> Callable[..., Any]:
    @wraps(original)
    def scandir(path: Any = None) -> Any:
        entries = original(path)
        rank = _of(path, ranks)
        if rank is None:
            return entries
        with entries:
            return _Entries(_in_order(entries, rank, _name))

    return scandir


def _of(path: Any, ranks: Ranks) -> Mapping[str, int] | None:
    return None if isinstance(path, int) else ranks.get(os.path.abspath(os.fsdecode(path or ".")))  # noqa: PTH100 - as the program names it


def _name(entry: Any) -> str:
    return os.fsdecode(entry.name)


def _in_order(items: Iterable[Any], rank: Mapping[str, int], name: Callable[[Any], str]) -> list[Any]:
    """Sort by the recorded places. What was not there then stands behind what it stands behind here."""
    last = -1

    def place(item: Any) -> int:
        nonlocal last
        last = rank.get(name(item), last)
        return last

    return sorted(items, key=place)


class _Entries:
    """The entries of a folder, as `os.scandir` gives them."""

    def __init__(self, entries: Iterable[Any]) -> None:
        self._entries = iter(entries)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._entries)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the folder go."""
        self._entries = iter(())
