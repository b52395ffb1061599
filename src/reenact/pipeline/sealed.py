"""A replayed program in a world of its own (`reenact.seal`): what it needs of the real one, what is taken out of it.

The scratch folder of the replay is the real one: it holds the plan and the ledger. A folder in it stands for that of
the store's journals, which are taken over when the program is over. Nothing else of the copy is taken out.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from reenact.disk import private, user_key
from reenact.errors import CannotJudge, UsageError
from reenact.keep.scratch import Scratch
from reenact.redact import in_force
from reenact.seal import launch, room
from reenact.stores.directory import DirectoryStore
from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_list, as_object

_LEVELS: Final = {
    "": ("world", "cell"),
    "namespaces": ("world",),
    "landlock": ("cell",),
    **dict.fromkeys(launch.UNSEALED, ()),
}
"""What is tried for each value of it, in this order."""
_NAMES: Final = {"world": "namespaces", "cell": "landlock"}
_MOST_FILES: Final = "REENACT_COPY_FILES"
_MOST_MEGABYTES: Final = "REENACT_COPY_MB"
_COPY: Final = "reenact-copy-"
_KEYS: Final = "reenact-origin-*"


@dataclass(slots=True)
class Sealed:
    """One program in its world."""

    words: list[str]
    """The command that starts it there."""
    answer: Path
    journals: Path
    upper: Path
    argv: Sequence[str] = ()
    copied: list[str] = field(default_factory=list[str])
    folder: Path | None = None
    """The copy of the working folder, where that alone is a copy."""
    left: list[str] = field(default_factory=list[str])
    """What can be tried next, where there is no such world here."""
    why: dict[str, str] = field(default_factory=dict[str, str])
    """Why what was tried could not be had, by its name in REENACT_ENFORCE."""

    def refused(self) -> str | None:
        """Say why there is no such world here, the program not having been started; None where it was.

        Raises `CannotJudge` where the program cannot be started in any world.
        """
        answer = self._read_answer()
        if (number := answer.get("start")) is not None:
            hint = "give the program after `--`"
            raise CannotJudge(f"cannot start {self.argv[0]!r}: {os.strerror(int(number))}", hint=hint)
        if "copied" in answer:
            self.copied = [str(each) for each in answer["copied"]]
            self.folder = Path(str(answer["folder"])) if "folder" in answer else None
            self._note("world", answer.get("world"))
            return None
        tried = [str(each) for each in as_list(answer.get("tried"))]
        self.left = [level for level in self.left if tried and level not in tried]
        refused = str(answer.get("refused") or "the kernel gave no reason")
        for level in tried:
            self._note(level, answer.get(level) or refused)
        return refused

    def _note(self, level: str, why: object) -> None:
        if why:
            self.why[_NAMES[level]] = str(why)

    def _read_answer(self) -> dict[str, Any]:
        answer: dict[str, Any] = {}
        with suppress(FileNotFoundError):
            for line in self.answer.read_text(encoding="utf-8").splitlines():
                answer |= as_object(parsed_or_none(line))
        return answer

    def take_out(self, store: DirectoryStore) -> None:
        """Take over the journals that the program's recorder wrote."""
        for path in _files(self.journals):
            with suppress(OSError):
                path.rename(store.journals / path.name)


@dataclass(frozen=True, slots=True)
class WorldAccess:
    """What a world has of the real one."""

    ways: Sequence[Mapping[str, Any]] = ()
    """Hosts that may be reached from there (`seal.relay.serve`)."""
    sockets: Sequence[str] = ()
    """Sockets of the host's."""
    begin: Sequence[Mapping[str, Json]] = ()
    """What stood at some paths when the recorded run began (`seal.begin`)."""
    handed: str = ""
    """A text that the program gets by a descriptor."""
    pid: int = 0
    """The number that its process is to have; 0 for any."""
    umask: int | None = None
    """The mask of new files' modes; None for this process's own."""


def levels(environ: Mapping[str, str], *, leads_out: bool = False) -> list[str]:
    """Give what is worth a try here: a `world` of namespaces and overlays, a `cell` of Landlock and a copied folder.

    With `leads_out` hosts are to be reached: no way leads out of a cell.
    Raises `UsageError` where REENACT_ENFORCE asks for something else.
    """
    asked = environ.get(launch.ENFORCE, "")
    if asked not in _LEVELS:
        choices = ", ".join(sorted(level for level in _LEVELS if level))
        raise UsageError(f"{launch.ENFORCE}={asked} is unknown", hint=f"it can be one of {choices}")
    here = sys.platform.startswith("linux") and launch.GUARDED not in environ
    return [level for level in _LEVELS[asked] if level == "world" or not leads_out] if here else []


def untried(environ: Mapping[str, str], *, leads_out: bool = False, writes: bool = False) -> dict[str, str]:
    """Say why what `levels` leaves out is not worth a try, by its name in REENACT_ENFORCE.

    With `writes` the program writes for real.
    """
    left = {_NAMES[level] for level in levels(environ, leads_out=leads_out)} if not writes else set[str]()
    if writes:
        why = "--writes allow: files are the real ones"
    elif not sys.platform.startswith("linux"):
        why = f"{sys.platform} has none"
    elif launch.GUARDED in environ:
        why = "this is a replay itself"
    elif asked := environ.get(launch.ENFORCE, ""):
        why = f"{launch.ENFORCE}={asked}"
    else:
        why = "calls go live, and no way leads out"
    return {name: why for name in _NAMES.values() if name not in left}


def without(refusals: Mapping[str, str], level: str) -> dict[str, str]:
    """Give, of reasons by level, those of levels that are stronger than one."""
    names = [*_NAMES.values()]
    stronger = names[: names.index(level)] if level in names else names
    return {name: refusals[name] for name in stronger if name in refusals}


@contextmanager
def sealed(
    argv: Sequence[str],
    cwd: Path,
    store: DirectoryStore,
    scratch: Path,
    tried: Sequence[str],
    openings: WorldAccess,
) -> Generator[Sealed]:
    """Write the order for a program in a world of its own, of the `levels` to be tried; the copy goes when it ends."""
    copy = Scratch(_COPY)
    try:
        upper = copy.path
        instead, journals = _stand_in(store, cwd, scratch)
        configuration = user_key.configuration()
        hidden = [*([str(configuration)] if configuration is not None else []), *_keys()]
        world = {
            "upper": str(upper),
            "doors": [str(scratch)],
            "instead": instead,
            "hidden": hidden,
        }
        order, answer = upper / "order.json", upper / "answer.jsonl"  # in the world they are copies
        orders = {
            "world": {**world, "sockets": [*openings.sockets], "used": _used(cwd), "working": str(cwd)},
            "cell": {**world, **_bounds(os.environ)},
        }
        instructions = {
            "argv": list(argv),
            "cwd": str(cwd),
            "begin": [*openings.begin],
            "answer": str(answer),
            "ways": [*openings.ways],
            "order": str(order),
            "handed": openings.handed,
            "pid": openings.pid,
            "umask": openings.umask,
            "told": str(scratch / "ledger.jsonl"),
            "room": (_number(os.environ, room.OPTION) or room.MOST_MEGABYTES) << 20,
            **{level: orders[level] for level in tried},
        }
        private.write_text(order, json.dumps(instructions))
        yield Sealed(launch.command(order), answer, journals, upper, argv, left=[*tried])
    finally:
        copy.close_beside()


def _used(cwd: Path) -> list[str]:
    """Name the folders that a user's programs write to. A user may have no home."""
    folders = [str(cwd), tempfile.gettempdir()]
    with suppress(RuntimeError):
        folders.append(str(Path("~").expanduser()))
    return [each for each in folders if Path(each).is_dir()]


def _bounds(environ: Mapping[str, str]) -> dict[str, int]:
    """Give the bounds of a copy of the working folder that the user set. Raises `UsageError`."""
    asked = {"most_files": _MOST_FILES, "most_megabytes": _MOST_MEGABYTES}
    numbers = {name: _number(environ, variable) for name, variable in asked.items()}
    return {name: number for name, number in numbers.items() if number is not None}


def _number(environ: Mapping[str, str], variable: str) -> int | None:
    """Read a number that the user set; None where none is. Raises `UsageError`."""
    if (text := environ.get(variable, "")) == "":
        return None
    if not text.isascii() or not text.isdigit():
        raise UsageError(f"{variable}={text} is no number", hint=f"set {variable} to a whole number")
    return int(text)


def _stand_in(store: DirectoryStore, cwd: Path, scratch: Path) -> tuple[dict[str, str], Path]:
    """Make what stands in the store's place: its policy, and room for a journal. No recording is in it, and no key."""
    folder = scratch / "store"
    journals = folder / store.journals.name
    folder.mkdir(mode=0o700, exist_ok=True)
    journals.mkdir(mode=0o700, exist_ok=True)
    if cwd.is_relative_to(store.folder):  # else it would find its own folder gone
        return {str(store.journals): str(journals)}, journals
    with suppress(OSError):
        shutil.copyfile(store.folder / in_force.FILE, folder / in_force.FILE)
    return {str(store.folder): str(folder)}, journals


def _keys() -> list[str]:
    """Name the folders in which the keys of recordings lie (`proving`)."""
    return [str(path) for path in Path(tempfile.gettempdir()).glob(_KEYS)]


def _files(folder: Path) -> Iterator[Path]:
    """Give the plain files that lie in a folder: a program may have left anything there."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
                yield Path(entry.path)
