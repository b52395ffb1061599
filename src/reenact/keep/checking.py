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
    findings = Looked()
    frame_store = FrameStore(store.folder)
    if frame_store.folder.is_dir():
        with _alone(frame_store) if repair else _looking():
            damaged = [path for path in sorted(frame_store.folder.glob("*.rnf")) if _damaged(path, findings)]
            if repair and damaged:
                for path in damaged:
                    _cut_out(path, findings)
                frame_store.forget_index()
                frame_store.catch_up()
                findings.mended.append("the index of frames is made again")
            _look_at_index(frame_store, findings, repair=repair)
    frame_store.close()
    for trace_id in store.trace_ids():
        findings.traces += 1
        try:
            for _ in store.records(trace_id):
                pass
        except InputError as error:
            findings.damage.append(str(error))
    try:
        store.probe_index()
    except IndexDamagedError as error:
        findings.damage.append(str(error))
    if repair:
        with suppress(InputError):
            index_anew(store)
            findings.mended.append("the index of runs is made again")
    return findings


@contextmanager
def _alone(frame_store: FrameStore) -> Generator[None]:
    """Be the only one that writes, whatever is torn cut already."""
    with packing(frame_store.folder):
        lock = frame_store.lock()
        try:
            yield
        finally:
            os.close(lock)


@contextmanager
def _looking() -> Generator[None]:
    yield


def _damaged(path: Path, findings: Looked) -> bool:
    findings.files += 1
    with path.open("rb") as file:
        begins = file.read(len(frames.MAGIC))
    if begins != frames.MAGIC:
        findings.damage.append(f"{path}: begins like no file of frames")
        return True
    bad = False
    with _mapped(path) as data:
        for at, size, whole in frames.survey(data):
            findings.frames += whole
            if not whole:
                bad = True
                findings.damage.append(f"{path}: byte {at}: {spelled(size)} are no whole frame")
    return bad


def _cut_out(path: Path, findings: Looked) -> None:
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
    findings.mended.append(f"{path.name} is written without what was damaged; kept as {aside.name}")


def _look_at_index(frame_store: FrameStore, findings: Looked, *, repair: bool) -> None:
    try:
        frame_store.trace_ids()
    except InputError as error:
        findings.damage.append(str(error))
        if repair:
            frame_store.forget_index()
            frame_store.catch_up()
            findings.mended.append("the index of frames is made again")


@contextmanager
def _mapped(path: Path) -> Generator[bytes | mmap.mmap]:
    if not path.stat().st_size:
        yield b""
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data
