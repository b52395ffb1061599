"""Files in a replay: logs are led to nowhere where writes are refused; in a copy what is moved is copied where it must.

The world of a copy has a file system for each top-level folder, and cannot move a folder that was there before
(overlayfs): what was one act when recorded fails with EXDEV there. It is then done by copying and deleting.
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final, cast

_MOVES: Final = ("rename", "replace")
_LINK: Final = "link"
_BY_DESCRIPTOR: Final = frozenset({"src_dir_fd", "dst_dir_fd"})


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


@contextmanager
def moved_by_copy(tell: Callable[[str, str], None]) -> Generator[None]:
    """Have `os.rename`, `os.replace` and `os.link` copy meanwhile, where the copy of the world cannot move and link.

    `tell` hears of each link that is a copy: what is written by one of its names is not read by the other.
    """
    originals = {name: getattr(os, name) for name in (*_MOVES, _LINK)}
    ours = {name: _moving(originals[name]) for name in _MOVES} | {_LINK: _linking(originals[_LINK], tell)}
    for name, moving in ours.items():
        setattr(os, name, moving)
    try:
        yield
    finally:
        for name, moving in ours.items():
            if getattr(os, name) is moving:
                setattr(os, name, originals[name])


def _moving(original: Callable[..., None]) -> Callable[..., None]:
    def move(src: Any, dst: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None) -> None:
        try:
            original(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        except OSError as error:
            if error.errno != errno.EXDEV or src_dir_fd is not None or dst_dir_fd is not None:
                raise
            _move(original, os.fsdecode(src), os.fsdecode(dst))

    move.__name__ = move.__qualname__ = original.__name__
    return move


def _linking(original: Callable[..., None], tell: Callable[[str, str], None]) -> Callable[..., None]:
    def link(src: Any, dst: Any, **how: Any) -> None:
        try:
            original(src, dst, **how)
        except OSError as error:
            source, target = os.fsdecode(src), os.fsdecode(dst)
            is_file = Path(source).is_file()
            if error.errno != errno.EXDEV or how.keys() & _BY_DESCRIPTOR or not is_file:
                raise
            _link(original, source, target, follow=how.get("follow_symlinks", True))
            tell(source, target)

    link.__name__ = link.__qualname__ = _LINK
    return link


def _link(original: Callable[..., None], source: str, target: str, *, follow: bool) -> None:
    """Copy beside the target, and give the copy its name if that is free, as a link does."""
    beside = f"{target}.{os.getpid()}.linked"
    shutil.copy2(source, beside, follow_symlinks=follow)
    try:
        original(beside, target, follow_symlinks=False)
    finally:
        Path(beside).unlink()


def _move(original: Callable[..., None], source: str, target: str) -> None:
    """Copy beside the target, and put it in its place at once, as a move does; then delete the source."""
    beside = f"{target}.{os.getpid()}.moved"
    if os.path.isdir(source) and not os.path.islink(source):  # noqa: PTH112, PTH114 - as `os` is spoken
        shutil.copytree(source, beside, symlinks=True)
        try:
            original(beside, target)
        except OSError:
            shutil.rmtree(beside, ignore_errors=True)
            raise
        shutil.rmtree(source)
        return
    shutil.copy2(source, beside, follow_symlinks=False)
    original(beside, target)
    Path(source).unlink()
