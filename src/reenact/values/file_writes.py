"""What a run wrote: the files that its program's Python code made, changed, moved and removed, as its roots tell it.

Each process, and each unit of work, writes its own part into the attribute `WRITTEN` of what stands for it in the run;
a run's is all of them together. What a file was before is that of the part which touched it first, what it became that
of the part which ended last.
"""

from __future__ import annotations

import base64
import hashlib
import os
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final

from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_count, as_list, as_object, as_text
from reenact.values.run import WRITTEN, Node, Run

State = Mapping[str, Json]
"""What stood at a path: `kind` (`folder`, `link`, `other`) where it was no plain file, and what is known of it."""


DISK_TICK_NS: Final = 10_000_000
"""So far the clock of a disk may be behind: a tick of the slowest kernel (CONFIG_HZ=100)."""


_LARGEST: Final = 1 << 20
"""Bytes of one file that a recording may keep."""


def content_of(state: State) -> bytes | None:
    """Give what a file held; None where that was not kept, or is no more what was kept."""
    text, packed = state.get("text"), state.get("zlib")
    try:
        if isinstance(text, str):
            content = text.encode()
        elif isinstance(packed, str):
            content = zlib.decompressobj().decompress(base64.b64decode(packed), _LARGEST)
        else:
            return None
    except (ValueError, zlib.error):
        return None
    return content if hashlib.blake2b(content, digest_size=16).hexdigest() == state.get("digest") else None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """One path, before a run and after it. None stands for nothing there."""

    path: str
    before: State | None
    after: State | None
    at: str = ""
    """The line of the program that touched it first, as `file:line`."""
    log: str | None = None
    """The format of the lines that `logging` wrote to it, empty where that is not known; None where it wrote none."""
    log_of: str = ""
    """The file that a log which is rotated goes to; older parts lie beside it."""
    backups: int = 0
    """How many older parts of it are kept."""
    read_back: bool = False
    """It is a log with times in it, which the program read after it had written to it."""
    shared: bool = False
    """Others wrote to it meanwhile: another unit of work, or another process."""
    mixed: bool = False
    """It was read, and others changed it meanwhile: which state was read when is not known."""
    answered: bool = False
    """It is a database that a replay answers: its statements are compared, and not the file."""
    part_of: str = ""
    """The database that it belongs to; it says nothing by itself."""
    touched_ns: int = 0
    """When it was touched first; 0 where the recording does not say so."""

    @property
    def changed(self) -> bool:
        """Tell whether something else stands there than did before."""
        if self.before is None or self.after is None:
            return self.before is not self.after
        return self.after.get("same") is not True


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWrites:
    """What a run wrote."""

    files: Mapping[str, WrittenFile] = field(default_factory=dict[str, WrittenFile])
    """By path, in the order of their first touch."""
    caches: Mapping[str, WrittenFile] = field(default_factory=dict[str, WrittenFile])
    """Files in caches, of which only is told what stood there before."""
    reads: Mapping[str, WrittenFile] = field(default_factory=dict[str, WrittenFile])
    """Files that the program only read, with what stood there."""
    folders: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Folders that the program listed, with the names that stood there, in the disk's order."""
    made: Mapping[str, int] = field(default_factory=dict[str, int])
    """What native code or another program made in the program's folder, with its time of change."""
    rewritten: frozenset[str] = frozenset()
    """Files of the program's folder that native code, or another program, wrote over."""
    read_of_tools: frozenset[str] = frozenset()
    """Files that a tool changed, and that other code read then."""
    began_ns: int = 0
    ended_ns: int = 0
    offset_s: int = 0
    """Of the time zone, east of Greenwich."""
    processes: frozenset[int] = frozenset()
    temporary: frozenset[str] = frozenset()
    """Names that `tempfile` made."""
    temporary_paths: frozenset[str] = frozenset()
    """The same, as whole paths; a recording of before holds none."""
    threads: bool = False
    """More than one thread was at work."""
    thread_ids: frozenset[int] = frozenset()
    """Ids of threads that stand in the texts."""
    more: int = 0
    """How many paths were touched beyond those that are listed."""
    cwd: str = ""
    """The folder that the program was started in."""

    def named(self, path: str) -> str:
        """Name a path as a person would: below the program's folder from there."""
        inside = f"{self.cwd.rstrip(os.sep)}{os.sep}" if self.cwd else ""
        return path[len(inside) :] if inside and path.startswith(inside) else path


def writes_of(run: Run) -> FileWrites | None:
    """Read what a run wrote; None where its recorder did not note it."""
    return together(_part(node, run) for node in run.nodes if isinstance(node.span.attributes.get(WRITTEN), str))


def together(parts: Iterable[tuple[int, FileWrites]]) -> FileWrites | None:
    """Join parts, each with the time of its end; None where there is none."""
    ordered = [part for _, part in sorted(parts, key=lambda each: each[0])]
    if not ordered:
        return None
    files: dict[str, WrittenFile] = {}
    caches: dict[str, WrittenFile] = {}
    reads: dict[str, WrittenFile] = {}
    folders: dict[str, tuple[str, ...]] = {}
    for part in sorted(ordered, key=lambda each: each.began_ns):
        for path, file in part.files.items():
            files.setdefault(path, file)
        for path, file in part.caches.items():
            caches.setdefault(path, file)
        for path, file in part.reads.items():
            reads.setdefault(path, file)
        folders = {**part.folders, **folders}
    program_paths = {path: changed_ns for part in ordered for path, changed_ns in part.made.items()}
    for part in ordered:
        for path, file in part.files.items():
            first = files[path]
            files[path] = replace(file, **_of_first(first, file))
    return FileWrites(
        files=files,
        caches=caches,
        reads={path: file for path, file in reads.items() if path not in files},
        folders=folders,
        made={path: changed_ns for path, changed_ns in program_paths.items() if path not in files},
        rewritten=frozenset(path for part in ordered for path in part.rewritten if path not in files),
        read_of_tools=frozenset(path for part in ordered for path in part.read_of_tools),
        began_ns=min(each.began_ns for each in ordered),
        ended_ns=max(each.ended_ns for each in ordered),
        offset_s=ordered[0].offset_s,
        processes=frozenset(number for each in ordered for number in each.processes),
        temporary=frozenset(name for each in ordered for name in each.temporary),
        temporary_paths=frozenset(path for each in ordered for path in each.temporary_paths),
        threads=any(each.threads for each in ordered) or len(ordered) > 1,
        thread_ids=frozenset(number for each in ordered for number in each.thread_ids),
        more=sum(each.more for each in ordered),
        cwd=next((each.cwd for each in ordered if each.cwd), ""),
    )


class Absences:
    """What was not there when a run began, though something stood there when its Python code came to it.

    A program that the run started made it first (`git init`, `tar x`), or it lies in a folder that the run made. It
    is no file of the beginning: a replay that began with it would find the repository cloned already, and not clone it.
    """

    def __init__(self, writes: FileWrites, program_paths: Iterable[tuple[str, int]]) -> None:
        """`program_paths` are the paths that programs made, each with when the program was started."""
        self._files = writes.files
        self._by_programs = [*program_paths]
        self._since = [(each.path, each.touched_ns) for each in writes.files.values() if each.before is None]

    def holds(self, file: WrittenFile) -> bool:
        """Tell whether a file was not there at the beginning."""
        if file.before is None:
            return True
        return any(
            ns < file.touched_ns and _below(file.path, path) for path, ns in chain(self._by_programs, self._since)
        )

    def of_programs(self) -> list[str]:
        """List what programs made where nothing had stood, each once, but for what is noted as a file by itself."""
        listed = dict.fromkeys(path for path, ns in self._by_programs if not self._stood(path, ns))
        return [path for path in listed if path not in self._files]

    def _stood(self, path: str, ns: int) -> bool:
        """Tell whether something had stood there before a program made it: the run took it away in between."""
        return any(
            each.before is not None and each.touched_ns < ns and _below(each.path, path)
            for each in self._files.values()
        )


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _of_first(first: WrittenFile, file: WrittenFile) -> dict[str, Any]:
    """Give what the first touch of a path says of it."""
    return {
        "before": first.before,
        "at": first.at or file.at,
        "touched_ns": first.touched_ns,
        "shared": first.shared or file.shared,
        "mixed": first.mixed or file.mixed,
        "read_back": first.read_back or file.read_back,
        "answered": first.answered or file.answered,
    }


def _part(node: Node, run: Run) -> tuple[int, FileWrites]:
    fields = as_object(parsed_or_none(str(node.span.attributes[WRITTEN])))
    span = [as_count(each) or 0 for each in as_list(fields.get("span"))][:2]
    files = [_file(as_object(each)) for each in as_list(fields.get("files"))]
    caches = [_file(as_object(each)) for each in as_list(fields.get("caches"))]
    reads = [_file(as_object(each)) for each in as_list(fields.get("reads"))]
    folders = [pair for each in as_list(fields.get("folders")) if len(pair := as_list(each)) == 2]
    program_paths = [pair for each in as_list(fields.get("made")) if len(pair := as_list(each)) == 2]
    offset = fields.get("offset")
    temporary = [as_text(each) for each in as_list(fields.get("temporary"))]
    part = FileWrites(
        files={each.path: each for each in files if each.path},
        caches={each.path: each for each in caches if each.path},
        reads={each.path: each for each in reads if each.path},
        folders={as_text(path): tuple(map(as_text, as_list(names))) for path, names in folders if path},
        made={as_text(path): as_count(changed_ns) or 0 for path, changed_ns in program_paths if path},
        rewritten=frozenset(as_text(each) for each in as_list(fields.get("rewritten"))) - {""},
        read_of_tools=frozenset(as_text(each) for each in as_list(fields.get("of_tools"))) - {""},
        began_ns=span[0] if len(span) == 2 else node.span.start_ns,
        ended_ns=span[1] if len(span) == 2 else node.span.end_ns,
        offset_s=offset if isinstance(offset, int) else 0,
        processes=frozenset({as_count(fields.get("pid")) or 0} - {0}),
        temporary=frozenset(each.rpartition("/")[2] for each in temporary),
        temporary_paths=frozenset(each for each in temporary if each.startswith("/")),
        threads=fields.get("threads") is True,
        thread_ids=frozenset(as_count(each) or 0 for each in as_list(fields.get("thread_ids"))) - {0},
        more=as_count(fields.get("more")) or 0,
        cwd=as_text(run.entry.get("cwd")),
    )
    return node.span.end_ns, part


def _file(fields: Mapping[str, Json]) -> WrittenFile:
    log = fields.get("log")
    return WrittenFile(
        path=as_text(fields.get("path")),
        before=_state(fields.get("before")),
        after=_state(fields.get("after")),
        at=as_text(fields.get("at")),
        log=log if isinstance(log, str) else None,
        log_of=as_text(fields.get("log_of")),
        backups=as_count(fields.get("backups")) or 0,
        shared=fields.get("shared") is True,
        mixed=fields.get("mixed") is True,
        read_back=fields.get("read_back") is True,
        answered=fields.get("answered") is True,
        part_of=as_text(fields.get("part_of")),
        touched_ns=as_count(fields.get("touched")) or 0,
    )


def _state(value: Json) -> State | None:
    return value if isinstance(value, dict) else None
