"""A replayed program in a world of its own (`reenact.seal`): what it needs of the real one, what is taken out of it.

The scratch folder of the replay is the real one: it holds the plan and the ledger. A folder in it stands for that of
the store's journals, which are taken over when the program is over. Nothing else of the copy is taken out.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from reenact.errors import CannotJudge
from reenact.pipeline.scratch import Scratch
from reenact.seal import launch
from reenact.stores.directory import DirectoryStore
from reenact.values import private, user_key
from reenact.values.json import parsed_or_none
from reenact.values.lenient import as_object

_OFF: Final = "REENACT_ENFORCE"
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

    def refused(self) -> str | None:
        """Say why there is no such world here, the program not having been started; None where it was.

        Raises `CannotJudge` where the program cannot be started in any world.
        """
        said = self._said()
        if (number := said.get("start")) is not None:
            hint = "give the program after `--`"
            raise CannotJudge(f"cannot start {self.argv[0]!r}: {os.strerror(int(number))}", hint=hint)
        if "copied" in said:
            self.copied = [str(each) for each in said["copied"]]
            return None
        return str(said.get("refused") or "the kernel gave no reason")

    def _said(self) -> dict[str, Any]:
        said: dict[str, Any] = {}
        with suppress(FileNotFoundError):
            for line in self.answer.read_text(encoding="utf-8").splitlines():
                said |= as_object(parsed_or_none(line))
        return said

    def take_out(self, store: DirectoryStore) -> None:
        """Take over the journals that the program's recorder wrote."""
        for path in _files(self.journals):
            with suppress(OSError):
                path.rename(store.journals / path.name)


def can_be(environ: Mapping[str, str]) -> bool:
    """Tell whether a sealed world is worth a try."""
    return sys.platform.startswith("linux") and environ.get(_OFF) != "off" and launch.GUARDED not in environ


@contextmanager
def sealed(
    argv: Sequence[str],
    cwd: Path,
    store: DirectoryStore,
    scratch: Path,
    ways: Sequence[Mapping[str, Any]] = (),
    sockets: Sequence[str] = (),
) -> Generator[Sealed]:
    """Write the order for a program in a world of its own; the copy goes when the block ends.

    `ways` are the hosts that may be reached from there (`seal.relay.serve`), `sockets` those of the host's.
    """
    with closing(Scratch(_COPY)) as copy:
        upper = copy.path
        journals = scratch / "journal"
        journals.mkdir(mode=0o700)
        configuration = user_key.configuration()
        hidden = [*([str(configuration)] if configuration is not None else []), *_keys()]
        world = {
            "upper": str(upper),
            "doors": [str(scratch)],
            "instead": {str(store.journals): str(journals)},
            "hidden": hidden,
            "sockets": [*sockets],
        }
        order, answer = upper / "order.json", upper / "answer.jsonl"  # in the world they are copies
        told = {
            "argv": list(argv),
            "cwd": str(cwd),
            "world": world,
            "answer": str(answer),
            "ways": [*ways],
            "told": str(scratch / "ledger.jsonl"),
        }
        private.write_text(order, json.dumps(told))
        yield Sealed(launch.command(order), answer, journals, upper, argv)


def _keys() -> list[str]:
    """Name the folders in which the keys of recordings lie (`proving`)."""
    return [str(path) for path in Path(tempfile.gettempdir()).glob(_KEYS)]


def _files(folder: Path) -> Iterator[Path]:
    """Give the plain files that lie in a folder: a program may have left anything there."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
                yield Path(entry.path)
