"""The files of a replay: how they were when the recorded run began, what of the copy was changed, what is taken out.

What a program wrote lies in the upper layers of the world's overlays (`seal.world`). Nobody lives there any more when
they are looked through; whatever they hold was made by the program, so no link in them is followed.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reenact.find.sources import RunSource
from reenact.pipeline.bisecting import is_bisecting
from reenact.pipeline.bytecode import is_in_package
from reenact.replay.policy import Reads
from reenact.seal import inventory
from reenact.values import unit
from reenact.values.call import FunctionCall, Returned, Value
from reenact.values.discovered_tools import FILES
from reenact.values.file_writes import (
    DISK_TICK_NS,
    Absences,
    FileWrites,
    State,
    WrittenFile,
    content_of,
    together,
    writes_of,
)
from reenact.values.json import Json
from reenact.values.lenient import as_count, as_list, as_text
from reenact.values.output import outputs
from reenact.values.run import Node, Run
from reenact.values.tool_files import ToolFile, tool_files

_MOST: Final = 20_000
"""Entries of the copy that are looked at."""
_DEEPEST: Final = 100
"""Folders in folders that are looked into."""
_COMPARED: Final = 64 << 20
"""Bytes of files that are compared with what they were."""
_OURS: Final = ("reenact-",)
_LEFT_OUT: Final = (*_OURS, ".reenact", "__pycache__")
_BESIDE: Final = ("-wal", "-journal", "-shm")


if TYPE_CHECKING:
    from reenact.seal.inventory import Mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """How a world begins."""

    entries: tuple[dict[str, Json], ...] = ()
    unlike: tuple[dict[str, Json], ...] = ()
    """The files that are not as they were, as `ReplayResult.unlike` has them."""

    def made(self, change: Changed) -> bool:
        """Tell whether a change of the copy is the beginning: what was put back there, or taken away for it."""
        kinds = (as_text(each.get("kind")) for each in self.entries if each.get("path") == change.path)
        return any(kind != "absent" or change.at is None for kind in kinds)


def begin(recording: RunSource, cwd: Path, reads: Reads | None = None) -> Begin:
    """Say what stood where the recorded run wrote, for a replay in `cwd`; and, as `reads` has it, where it read.

    Only the user's own runs say so.
    """
    runs = _whole(recording)
    writes = of_all(runs)
    if writes is None or not recording.run.own:
        return Begin()
    absences = Absences(writes, (creation for run in runs for node in run.nodes for creation in _child_files(node)))
    names = {*writes.temporary, *(name for part in outputs(runs).values() for name in part.temporary)}
    left = (*writes.temporary_paths, *(os.path.join(tempfile.gettempdir(), name) for name in names))  # noqa: PTH118 - as the program names it
    absent = (*absences.of_programs(), *_made_past_notes(writes, runs), *filter(os.path.lexists, left))
    paths = (moved(path, writes, cwd) for path in absent)
    # What a recording cached of our own modules is none of the program's, and a replay would compile them each time.
    gone = (path for path in paths if _is_path(path) and not is_in_package(path))
    entries: list[dict[str, Json]] = [{"path": path, "kind": "absent"} for path in gone]
    unlike: list[dict[str, Json]] = []
    for file in (*writes.files.values(), *writes.caches.values()):
        path = moved(file.path, writes, cwd)
        if not _is_path(path):
            continue
        entry = _entry(path, None if absences.holds(file) else file.before) or _answered_entry(path, file)
        if entry is not None:
            entries.append(entry)
        elif file.before is not None and file.before.get("read") is True and _differs(path, file.before):
            why = as_text(file.before.get("lost")) or "it was not kept"
            line = f"is not what it was when the run began, and was not kept: {why}"
            unlike.append({"path": writes.named(file.path), "line": line, "put_back": False})
    for file in _before_tools(runs, writes):
        path = str(cwd / file.path)
        if (entry := _entry(path, file.before)) is not None:
            entries = [each for each in entries if each["path"] != path] + [entry]
            if file.is_database:  # what is left of its log belongs to what it is now
                entries.extend({"path": path + end, "kind": "absent"} for end in _BESIDE)
    noted = {*writes.files, *absent}
    files_read = [file for path, file in _with_start(writes.reads, recording).items() if path not in noted]
    put_back, others = _of_reads(files_read, writes, cwd, reads or Reads.RECORDED)
    if put_back and reads is None and is_bisecting(cwd):
        reads = Reads.PRESENT
        put_back, others = _of_reads(files_read, writes, cwd, reads)
    begun = Begin(entries=(*entries, *put_back), unlike=(*unlike, *others))
    return _with_folders(begun, writes, cwd, reads or Reads.RECORDED) if writes.folders else begun


def _with_folders(begun: Begin, writes: FileWrites, cwd: Path, reads: Reads) -> Begin:
    """Add the folders that the recorded run listed, and that hold other names now."""
    from reenact.pipeline.replay_folders import of_folders  # most programs list none

    def here(path: str) -> str:
        return moved(path, writes, cwd)

    left_out, unlike = of_folders(
        writes, here, begun.entries, lambda path: sealed(path, cwd), hides=reads is Reads.RECORDED
    )
    return Begin(entries=(*begun.entries, *left_out), unlike=(*begun.unlike, *unlike))


def _of_reads(
    files: Sequence[WrittenFile], writes: FileWrites, cwd: Path, reads: Reads
) -> tuple[list[dict[str, Json]], list[dict[str, Json]]]:
    """Give how files that were only read are put back, and what is said of those that are others now."""
    entries: list[dict[str, Json]] = []
    unlike: list[dict[str, Json]] = []
    for file in files:
        path = moved(file.path, writes, cwd)
        entry, line = _entry_of_read(file, path, reads, sealed(path, cwd))
        entries += [entry] if entry is not None else []
        if line:
            unlike.append({"path": writes.named(file.path), "line": line, "put_back": entry is not None})
    return entries, unlike


def sealed(path: str, cwd: Path) -> str:
    """Name the replays that can have a path as it was: where Landlock is all there is, only the folder is copied."""
    is_below = path == str(cwd) or path.startswith(f"{cwd}{os.sep}")
    return "a sealed replay" if is_below else "a replay that namespaces seal"


def _entry_of_read(file: WrittenFile, path: str, reads: Reads, replays: str) -> tuple[dict[str, Json] | None, str]:
    """Give how a file that was only read is put back, and what is said of it; nothing of one that is as it was.

    `replays` names those that can have it as it was.
    """
    if not _is_path(path) or _holds(path, file.before):
        return None, ""
    if reads is Reads.PRESENT or (reads is Reads.MISSING and os.path.lexists(path)):
        return None, "is not what the recorded run read: the replay reads it as it is now"
    entry = _entry(path, file.before)
    if entry is not None:
        return (
            entry,
            f"is not what the recorded run read: {replays} reads that (--reads present: what is there now)",
        )
    if file.before is None or as_text(file.before.get("kind")):  # it was no file
        return None, ""
    why = as_text(file.before.get("lost")) or "it is no more what was kept"
    return None, f"is not what the recorded run read, which was not kept ({why}): the replay reads it as it is now"


def _holds(path: str, before: State | None) -> bool:
    """Tell whether a file that was read holds now what it held then, as far as that is known."""
    if before is None:
        return not os.path.lexists(path)
    if not _differs(path, before):
        return True
    size, digest = as_count(before.get("size")), as_text(before.get("digest"))
    if not digest or size is None or size > _COMPARED or _size(path) != size:
        return False
    with suppress(OSError):
        return hashlib.blake2b(Path(path).read_bytes(), digest_size=16).hexdigest() == digest
    return False


def _with_start(reads: Mapping[str, WrittenFile], recording: RunSource) -> dict[str, WrittenFile]:
    """Add what the process of a unit that came in read at its start-up: a unit tells little of what these held."""
    if unit.inbound(recording.run) is None:
        return {**reads}
    parts = (writes_of(each) for each in recording.siblings if each.own)
    at_start = {path: file for part in parts if part is not None for path, file in part.reads.items()}
    own = {path: file for path, file in reads.items() if not _is_less(file, at_start.get(path))}
    return {**at_start, **own}


def _is_less(file: WrittenFile, other: WrittenFile | None) -> bool:
    """Tell whether another note of the same content has it, and this one does not."""
    before, known = file.before or {}, (other.before if other is not None else None) or {}
    return "lost" in before and "lost" not in known and before.get("digest") == known.get("digest")


def _made_past_notes(writes: FileWrites, runs: Iterable[Run]) -> list[str]:
    """List what came into being past every note, less what a call made that is answered: nobody makes that again."""
    calls = [
        (node.span.start_ns - DISK_TICK_NS, node.span.end_ns)
        for run in runs
        for node in run.nodes
        if isinstance(node.call.request, FunctionCall)
        and not (node.call.is_structure or node.call.is_query or node.call.is_child)
    ]
    return [path for path, ns in writes.made.items() if not any(began <= ns <= ended for began, ended in calls)]


def _before_tools(runs: Iterable[Run], writes: FileWrites) -> list[ToolFile]:
    """Say what stood where tools wrote that are answered, unless the program came there first, or it is not known."""
    nodes = [node for run in runs for node in run.nodes if FILES in node.span.attributes]
    files: dict[str, list[tuple[int, ToolFile]]] = {}
    for node in sorted(nodes, key=lambda each: each.span.start_ns):
        for file in tool_files(node):
            files.setdefault(file.path, []).append((node.span.start_ns, file))
    firsts: list[ToolFile] = []
    for path, each in files.items():
        began_ns, first = each[0]
        own = writes.files.get(f"{writes.cwd}/{path}" if not path.startswith("/") else path)
        if (
            "REDACTED_" not in path
            and first.temporary is None  # the program makes it
            and not any(file.lost for _, file in each)
            and (own is None or began_ns < own.touched_ns)
        ):
            firsts.append(first)
    return firsts


def _child_files(node: Node) -> Iterator[tuple[str, int]]:
    """Give what a program made that the recorded run started, with when it was started."""
    if not node.call.is_child or not isinstance(node.outcome, Returned):
        return
    from reenact.values import child  # most runs start none

    payload = node.outcome.payload
    for path, how in child.changed(payload.json) if isinstance(payload, Value) else ():
        if how == "made" and path.startswith("/"):
            yield path, node.span.start_ns


def _is_path(path: str) -> bool:
    return path.startswith("/") and "REDACTED_" not in path


def _whole(source: RunSource) -> list[Run]:
    """List the runs of the whole program: a unit that came in is replayed with the earlier ones on which it stands."""
    runs = (source.run, *(source.history.units if unit.inbound(source.run) is not None else source.siblings))
    return [run for run in runs if run.own]


def of_all(runs: Iterable[Run]) -> FileWrites | None:
    """Join what several runs of one program wrote; None where none of them says it."""
    parts = [part for run in runs if (part := writes_of(run)) is not None]
    return together((part.ended_ns, part) for part in parts)


def moved(path: str, writes: FileWrites, cwd: Path) -> str:
    """Give the path that stands for a recorded one where the program runs in another folder."""
    name = "" if path == writes.cwd else writes.named(path)
    return str(cwd / name) if name != path and writes.cwd != str(cwd) else path


def _entry(path: str, before: State | None) -> dict[str, Json] | None:
    if before is None:
        return {"path": path, "kind": "absent"}
    kind = as_text(before.get("kind"))
    if kind == "folder":
        return {"path": path, "kind": kind}
    if kind == "link":
        return {"path": path, "kind": kind, "to": as_text(before.get("to"))}
    size = as_count(before.get("size"))
    if kind or size is None:
        return None
    time = {"mtime": mtime} if (mtime := as_text(before.get("mtime"))).isdecimal() else {}
    if before.get("cut") is True:
        return {"path": path, "kind": "cut", "size": size, **time} if _size(path) >= size else None
    content = content_of(before)
    if content is None:
        return None
    mode = (as_count(before.get("mode")) or 0o644) & 0o777
    return {"path": path, "kind": "file", "content": base64.b64encode(content).decode(), "mode": mode, **time}


def _answered_entry(path: str, file: WrittenFile) -> dict[str, Json] | None:
    """Give an empty database for one that is answered and is no more there: a program may look whether it is."""
    is_gone = file.answered and not file.part_of and not os.path.lexists(path)
    return {"path": path, "kind": "file", "content": "", "mode": 0o644} if is_gone else None


def _size(path: str) -> int:
    try:
        status = os.lstat(path)
    except OSError:
        return -1
    return status.st_size if stat.S_ISREG(status.st_mode) else -1


def _differs(path: str, before: State) -> bool:
    """Tell that a file is not what it was, as far as its size and the time of its last change tell."""
    try:
        status = os.lstat(path)
    except OSError:
        return True
    return status.st_size != before.get("size") or str(status.st_mtime_ns) != before.get("mtime")


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """One path that the program changed in the copy."""

    path: str
    at: Path | None
    """The file in the upper layer; None where the path is gone."""
    same: bool = False
    """It holds what the real one holds."""


def changed(upper: Path, copied: Sequence[str], left_out: Iterable[str]) -> list[Changed]:
    """List what lies in the copy, folders that were only entered aside, to a bound."""
    look = _Look((*left_out, _cache()))
    for number, folder in enumerate(copied):
        look.through(upper / str(number) / "upper", folder, _laid(upper / str(number)))
    return look.changed


def changed_in(copy: Path, folder: str, upper: Path, left_out: Iterable[str]) -> list[Changed]:
    """List what is in a copy of one whole folder, most of it as it was, and what is no more, to a bound."""
    look = _Look((*left_out, _cache(), f"{folder}/.git/objects"))
    look.through(copy, folder, _laid(upper))
    return look.changed


def _laid(beside: Path) -> Mapping[str, Mark]:
    """Read what was laid into a copy before the program began: nothing where it is a layer alone (`seal.inventory`)."""
    try:
        return inventory.decode((beside / inventory.NAME).read_bytes())
    except FileNotFoundError:
        return {}


def _cache() -> str:
    return os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - a user may have no home


class _Look:
    """One look through copies, to a bound."""

    def __init__(self, spared: Sequence[str]) -> None:
        self.changed: list[Changed] = []
        self._spared = spared
        self._entries_left, self._bytes_left = _MOST, _COMPARED

    def through(self, copy: Path, folder: str, laid: Mapping[str, Mark]) -> None:
        """Look through the copy of a folder, in which those files were laid."""
        there = set[str]()
        self._walk(copy, folder.rstrip("/"), len(str(copy)) + 1, laid, there)
        if self._entries_left < 0:
            return
        for name in sorted(laid.keys() - there):
            path = f"{folder.rstrip('/')}/{name}"
            if not self._is_spared(path) and not any(part.startswith(_LEFT_OUT) for part in name.split("/")):
                self.changed.append(Changed(path=path, at=None))

    def _walk(
        self, layer: Path, folder: str, cut: int, laid: Mapping[str, Mark], there: set[str], depth: int = 0
    ) -> None:
        try:
            with os.scandir(layer) as entries:
                listed = sorted(entries, key=lambda each: each.name)
        except OSError:  # the program made it unreadable for its own user
            return
        for entry in listed:
            path = f"{folder}/{entry.name}"
            self._entries_left -= 1
            if self._entries_left < 0:
                return
            there.add(entry.path[cut:])
            if entry.name.startswith(_OURS) or entry.name == "__pycache__" or entry.name.endswith(".pyc"):
                continue
            if self._is_spared(path):
                continue
            if entry.is_dir(follow_symlinks=False):
                if depth < _DEEPEST:
                    self._walk(Path(entry.path), path, cut, laid, there, depth + 1)
            elif laid.get(entry.path[cut:]) != inventory.mark(status := entry.stat(follow_symlinks=False)):
                self.changed.append(self._change(entry, status, path))

    def _is_spared(self, path: str) -> bool:
        return any(path == each or path.startswith(f"{each}/") for each in self._spared)

    def _change(self, entry: os.DirEntry[str], status: os.stat_result, path: str) -> Changed:
        """Say what a file of the copy is to the one at its path."""
        if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:  # a whiteout (overlayfs)
            return Changed(path=path, at=None)
        same = stat.S_ISREG(status.st_mode) and self._is_same(Path(entry.path), path, status.st_size)
        return Changed(path=path, at=Path(entry.path), same=same)

    def _is_same(self, layer: Path, path: str, size: int) -> bool:
        """Tell that a file was copied and not changed."""
        try:
            status = os.lstat(path)
            if not stat.S_ISREG(status.st_mode) or status.st_size != size:
                return False
            self._bytes_left -= size
            if self._bytes_left < 0:  # too much to read: a copy keeps the time of the last change
                return os.lstat(layer).st_mtime_ns == status.st_mtime_ns
            with layer.open("rb") as one, Path(path).open("rb") as other:
                while piece := one.read(1 << 18):
                    if piece != other.read(len(piece)):
                        return False
        except OSError:
            return False
        return True


def unwitnessed(
    changes: Iterable[Changed], notes: Iterable[FileWrites], entries: Iterable[Mapping[str, Any]], began: Begin
) -> list[str]:
    """Name the changed paths that no note names: native code wrote them, or a child that is not Python."""
    ledger = _Noted(entries)
    known_paths = ledger.paths | {path for note in notes for path in note.files}
    known_paths |= {path for paths in by_tools(entries).values() for path in paths}
    known_paths |= {as_text(each.get("path")) for each in entries if each.get("t") == "tool_left"}
    differ = [each.path for each in changes if not each.same and not began.made(each)]
    return [each for each in differ if not ledger.is_of(each, known_paths) and not ledger.is_temporary(each)]


def by_tools(entries: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Say by name which paths the tools wrote that ran since they were named (`--tool-live`)."""
    paths_by_tool: dict[str, dict[str, None]] = {}
    for entry in entries:
        if entry.get("t") == "tool_wrote":
            paths = map(as_text, as_list(entry.get("paths")))
            paths_by_tool.setdefault(as_text(entry.get("tool")), {}).update(dict.fromkeys(paths))
    return {tool: [*paths] for tool, paths in paths_by_tool.items()}


def written_by(changes: Iterable[Changed], entries: Iterable[Mapping[str, Any]], began: Begin) -> list[str]:
    """Name the changed paths that the program wrote itself, temporary files aside."""
    ledger = _Noted(entries)
    own_changes = [each for each in changes if not each.same or each.path in ledger.paths]
    own = [each.path for each in own_changes if each.path in ledger.paths or not began.made(each)]
    return [each for each in own if not ledger.is_temporary(each)]


class _Noted:
    """What the replay's processes say that they wrote."""

    def __init__(self, entries: Iterable[Mapping[str, Any]]) -> None:
        write_entries = [entry for entry in entries if entry.get("t") == "wrote"]
        self.paths = {as_text(path) for entry in write_entries for path in as_list(entry.get("paths"))}
        self._temporary = {as_text(path) for entry in write_entries for path in as_list(entry.get("temporary"))}

    @staticmethod
    def is_of(path: str, known_paths: set[str]) -> bool:
        """Tell whether a path is among those, or lies beside a database that is."""
        beside = (path.removesuffix(each) for each in _BESIDE if path.endswith(each))
        return path in known_paths or any(each in known_paths for each in beside)

    def is_temporary(self, path: str) -> bool:
        """Tell whether `tempfile` made a path, or a folder above it."""
        return any(path == root or path.startswith(f"{root}/") for root in self._temporary)


def keep(changes: Iterable[Changed], folder: Path, cwd: Path, chosen_paths: Iterable[str]) -> list[str]:
    """Take what was written out into a folder; give the paths there. Raises `OSError` where that cannot be written.

    Files below the program's folder keep their place, others lie below `outside`.
    """
    wanted, copies = set(chosen_paths), list[str]()
    for each in changes:
        if each.at is None or each.path not in wanted:
            continue
        inside = f"{str(cwd).rstrip('/')}/"
        name = each.path[len(inside) :] if each.path.startswith(inside) else f"outside{each.path}"
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not stat.S_ISREG(os.lstat(each.at).st_mode):
            continue
        with suppress(FileNotFoundError):
            target.unlink()
        handle = os.open(each.at, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as source, target.open("xb") as stream:
            shutil.copyfileobj(source, stream)
        copies.append(str(target))
    return copies
