"""Side effects that a replay refuses and that the recorded run had too: they say nothing of the program.

A recording names each effect that no replay does again. Where the program is refused just that, it is not the program
that differs; and of what comes after nobody knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from reenact.values.json import Json
from reenact.values.lenient import as_list, as_text, parsed_or_none
from reenact.values.run import UNDECLARED, Run
from reenact.values.written import WrittenFile, written

Entry = Mapping[str, Json]

_STOPS: Final = frozenset({"miss", "refused"})
_OF_THE_WORLD: Final = frozenset({"socket.bind", "sqlite3.attach"})
"""Audit events that no recording notes, and that a world refuses where it has no place for them."""
_NUMBER: Final = re.compile(r"\d+")
_AT: Final = " at "


def until_prevented(recorded: Run, siblings: Sequence[Run], ledger: Sequence[Entry]) -> tuple[Sequence[Entry], str]:
    """Cut a ledger behind an effect that was refused though the recorded run had it, if that stopped the program first.

    Gives why nothing can be said of what follows, too; empty where no such effect was refused.
    """
    first = next((at for at, entry in enumerate(ledger) if entry.get("t") in _STOPS), None)
    if first is None:
        return ledger, ""
    if ledger[first].get("event") in _OF_THE_WORLD:
        why = "which this world has no place for"
    elif _was_recorded(recorded, siblings, ledger[first]):
        why = "and the recorded run did it too"
    else:
        return ledger, ""
    return ledger[: first + 1], f"{_spelled(ledger[first])} was refused, {why}; what follows was not seen"


def _spelled(entry: Entry) -> str:
    return f"{as_text(entry.get('what'))}{_AT}{as_text(entry.get('where'))}"


def _was_recorded(recorded: Run, siblings: Sequence[Run], entry: Entry) -> bool:
    """Tell whether the recorded run wrote the same file, or did the same: numbers, as of a process, differ by run.

    A file that the same line writes by the same name lies in another folder where that is one of the run's own.
    """
    if path := as_text(entry.get("path")):
        name, line = Path(path).name, as_text(entry.get("where"))
        notes = [note for run in (recorded, *siblings) if (note := written(run)) is not None]
        files: list[WrittenFile] = [file for note in notes for file in note.files.values()]
        return any(each.path == path or (each.at == line and Path(each.path).name == name) for each in files)
    if entry.get("t") != "refused":
        return False
    what, line = as_text(entry.get("what")), _without_numbers(_spelled(entry))
    acts = _acts((recorded, *siblings))
    return any(act.rpartition(_AT)[0] == what or _without_numbers(act) == line for act in acts)


def _acts(runs: Iterable[Run]) -> Iterable[str]:
    """List what programs did past every boundary, each with its line."""
    for run in runs:
        for node in run.nodes:
            told = node.span.attributes.get(UNDECLARED)
            yield from map(as_text, as_list(parsed_or_none(told)) if isinstance(told, str) else ())


def _without_numbers(text: str) -> str:
    """Give an act and its line without the numbers that it names."""
    what, at, line = text.rpartition(_AT)
    return f"{_NUMBER.sub('0', what)}{at}{line}"
