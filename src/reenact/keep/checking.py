"""Looking through a store for damage, and mending what can be mended: nothing that can still be read is lost by it."""

from __future__ import annotations

import mmap
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from reenact.disk import frames, private
from reenact.disk.appender import packing
from reenact.errors import InputError
from reenact.keep.catalog import index_anew
from reenact.stores.directory import DirectoryStore, IndexDamagedError
from reenact.stores.frames import FrameStore
from reenact.values.limits import spelled


@dataclass(slots=True)
class Looked:
    """What was found."""

    files: int = 0
    frames: int = 0
    traces: int = 0
    damage: list[str] = field(default_factory=list[str])
    """One sentence each, with its place."""
    mended: list[str] = field(default_factory=list[str])


def looked_through(store: DirectoryStore, *, repair: bool = False) -> Looked:
    """Read every frame and every trace. With `repair`, mend: no collector may run then. Raises `InputError`."""
    found = Looked()
    kept = FrameStore(store.folder)
    if kept.folder.is_dir():
        with _alone(kept) if repair else _looking():
            damaged = [path for path in sorted(kept.folder.glob("*.rnf")) if _damaged(path, found)]
            if repair and damaged:
                for path in damaged:
                    _cut_out(path, found)
                kept.forget_index()
                kept.catch_up()
                found.mended.append("the index of frames is made again")
            _look_at_index(kept, found, repair=repair)
    kept.close()
    for trace_id in store.trace_ids():
        found.traces += 1
        try:
            for _ in store.records(trace_id):
                pass
        except InputError as error:
            found.damage.append(str(error))
    try:
        store.probe_index()
    except IndexDamagedError as error:
        found.damage.append(str(error))
    if repair:
        with suppress(InputError):
            index_anew(store)
            found.mended.append("the index of runs is made again")
    return found


@contextmanager
def _alone(kept: FrameStore) -> Generator[None]:
    """Be the only one that writes, whatever is torn cut already."""
    with packing(kept.folder):
        lock = kept.lock()
        try:
            yield
        finally:
            os.close(lock)


@contextmanager
def _looking() -> Generator[None]:
    yield


def _damaged(path: Path, found: Looked) -> bool:
    found.files += 1
    with path.open("rb") as file:
        begins = file.read(len(frames.MAGIC))
    if begins != frames.MAGIC:
        found.damage.append(f"{path}: begins like no file of frames")
        return True
    bad = False
    with _mapped(path) as data:
        for at, size, whole in frames.survey(data):
            found.frames += whole
            if not whole:
                bad = True
                found.damage.append(f"{path}: byte {at}: {spelled(size)} are no whole frame")
    return bad


def _cut_out(path: Path, found: Looked) -> None:
    """Write a file anew without what is damaged; the file as it was stays beside it."""
    draft, aside = path.with_suffix(".draft"), path.with_suffix(".damaged")
    with _mapped(path) as data, os.fdopen(private.opened(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
        file.write(frames.MAGIC)
        for at, size, whole in frames.survey(data):
            if whole:
                file.write(data[at : at + size])
        file.flush()
        os.fsync(file.fileno())
    os.link(path, aside)
    draft.replace(path)
    found.mended.append(f"{path.name} is written without what was damaged; kept as {aside.name}")


def _look_at_index(kept: FrameStore, found: Looked, *, repair: bool) -> None:
    try:
        kept.trace_ids()
    except InputError as error:
        found.damage.append(str(error))
        if repair:
            kept.forget_index()
            kept.catch_up()
            found.mended.append("the index of frames is made again")


@contextmanager
def _mapped(path: Path) -> Generator[bytes | mmap.mmap]:
    if not path.stat().st_size:
        yield b""
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data
