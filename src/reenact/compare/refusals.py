"""Side effects that a replay refuses and that the recorded run had too: they say nothing of the program.

A recording names each effect that no replay does again. Where the program is refused just that, it is not the program
that differs; and of what comes after nobody knows. A sealed world refuses more, and no recording names it (a socket of
the network, a link from one copy to another): the program tells of it, by the words of the kernel's error.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from reenact.values import child
from reenact.values.call import Returned, Value
from reenact.values.difference import one_line
from reenact.values.effects import COPIED_IN, Seal
from reenact.values.file_writes import WrittenFile, writes_of
from reenact.values.json import Json, compact
from reenact.values.lenient import as_list, as_object, as_text, parsed_or_none
from reenact.values.run import UNDECLARED, WRITTEN, Node, Run
from reenact.values.tool_files import tool_files

Entry = Mapping[str, Json]

_STOPS: Final = frozenset({"miss", "refused"})
_OF_THE_WORLD: Final = frozenset({"socket.bind", "sqlite3.attach"})
"""Audit events that no recording notes, and that a world refuses where it has no place for them."""
_NATIVE: Final = "reenact.native"
"""The event of what a known native client is asked (`boundary.touches`)."""
_KERNEL: Final = "kernel"
"""The event of what the kernel refused, whoever asked it; its place is the name of a process."""
_SOCKET: Final = "make a socket of the network"
_BY_NAMESPACES: Final = (
    *(errno.EXDEV, errno.EROFS, errno.EOVERFLOW, errno.EPERM, errno.ENOSYS, errno.EAFNOSUPPORT),
    *(errno.ECONNREFUSED, errno.ENETUNREACH, errno.ENXIO),
)
_BY_LANDLOCK: Final = (errno.EACCES, errno.EPERM, errno.EXDEV, errno.ENOSYS, errno.ENOTTY)
"""The errors by which a kind of world refuses what was allowed outside."""
_APART: Final = {
    "copied_link": "made a copy, since this world cannot link the two, and they may differ by now",
    "asked": "asked for a process that this world does not have, and another answer came than outside",
}
"""Kinds of entries by which a replay tells that its world is another one there, and what that means."""
_TEMPORARY: Final = re.compile(r"/reenact-copy-[^/\s]+/t(?![\w.-])")
"""The temporary folder of a world that can mount nothing."""
_NUMBER: Final = re.compile(r"\d+")
_STARTED: Final = re.compile(r"child process ['\"](.+)['\"]")
_AT: Final = " at "
_WROTE: Final = "wrote "
_NO_PLACE: Final = "which this world has no place for"


def until_prevented(recorded: Run, siblings: Sequence[Run], ledger: Sequence[Entry]) -> tuple[Sequence[Entry], str]:
    """Cut a ledger behind an effect that was refused though the recorded run had it, if that stopped the program first.

    Gives why nothing can be said of what follows, too; empty where no such effect was refused.
    """
    first = next((at for at, entry in enumerate(ledger) if entry.get("t") in _STOPS), None)
    if first is None:
        return ledger, ""
    if ledger[first].get("event") in _OF_THE_WORLD or _is_native_write(ledger[first]):
        why = _NO_PLACE
    elif _was_recorded(recorded, siblings, ledger[first]):
        why = "and the recorded run did it too"
    elif ledger[first].get("worker"):
        why = "and what such a process wrote when it was recorded was not noted"
    else:
        return ledger, ""
    return ledger[: first + 1], f"{_spelled(ledger[first])} was refused, {why}; what follows was not seen"


def _is_native_write(entry: Entry) -> bool:
    """Tell that native code was refused a file: no recording notes those, and a copy that it sees takes them."""
    return entry.get("event") == _NATIVE and bool(as_text(entry.get("path")))


def by_the_world(
    divergences: Sequence[Entry], ledger: Sequence[Entry], world: Mapping[str, str], nodes: Mapping[str, Node]
) -> str:
    """Say that a sealed world may be why a replay differs, and by what; empty where nothing tells so.

    `divergences` are what differs, `nodes` the recorded calls by id. The program met an error of the world's that the
    recorded run did not meet, or was refused something that no recording names; or a program that it started was.
    """
    if why := _unanswerable(nodes.get(as_text(divergences[0].get("node_a")))):
        return why
    if world.get("files") != Seal.COPIED.value and (why := _of_unmade_files(divergences[0], ledger, nodes)):
        return why
    if world.get("processes") != Seal.ENFORCED.value:
        return ""
    if why := _by_its_folder(divergences[:1], world):
        return why
    first = next((entry for entry in _unexcused(ledger) if entry.get("t") in {*_STOPS, "prevented"}), None)
    if first is not None and first.get("t") == "prevented":
        return f"{_spelled(first)} was refused, {_NO_PLACE}; what follows was not seen"
    apart = next((entry for entry in ledger if entry.get("t") in _APART), None)
    if apart is not None:
        return f"{_spelled(apart)} {_APART[as_text(apart.get('t'))]}"
    return _by_its_bounds(divergences, world, nodes)


def _unexcused(ledger: Sequence[Entry]) -> Iterator[Entry]:
    """Leave out what the kernel says of the sockets that libraries make while they are imported, one for each."""
    excused = 0
    for entry in ledger:
        if entry.get("t") == "excused":
            excused += 1
        elif excused and entry.get("event") == _KERNEL and entry.get("what") == _SOCKET:
            excused -= 1
        else:
            yield entry


def _by_its_folder(divergences: Sequence[Entry], world: Mapping[str, str]) -> str:
    """Say that a file that differs lies outside the one folder of which the world has a copy; empty for none."""
    copied = world.get(COPIED_IN, "")
    path = _file_outside(divergences, copied) if copied else ""
    return f"it writes {path}, and this world has a copy of {copied} alone" if path else ""


def _by_its_bounds(divergences: Sequence[Entry], world: Mapping[str, str], nodes: Mapping[str, Node]) -> str:
    """Say which bound of the world the program met, by what differs; empty where nothing tells of one."""
    if why := _by_its_folder(divergences, world):
        return why
    copied = world.get(COPIED_IN, "")
    words = _words(_BY_LANDLOCK if copied else _BY_NAMESPACES)
    for each in divergences:
        if path := _written_elsewhere(nodes.get(as_text(each.get("node_a"))), copied):
            return f"{as_text(each.get('call'))} ran again and was refused to change {path}, as it did when recorded"
        if copied and _TEMPORARY.search(_text(each.get("b"))):
            return f"the temporary folder has another name in this world, and the program tells it: {one_line(each)}"
        met = words.search(_text(each.get("b")))
        if met is not None and met[0] not in _text(each.get("a")):
            return (
                f"it met an error that this world makes ({met[0]}) and the recorded run did not meet: {one_line(each)}"
            )
    return ""


def _file_outside(divergences: Sequence[Entry], folder: str) -> str:
    """Name a written file that differs and lies outside the one folder that is a copy; nothing where there is none."""
    paths = (as_text(each.get("path")) for each in divergences if as_text(each.get("field")).startswith(_WROTE))
    return next((path for path in paths if path.startswith("/") and not path.startswith(f"{folder}/")), "")


def _unanswerable(node: Node | None) -> str:
    """Say why no replay gives a recorded child back; empty for another call, and for a child that it can."""
    if node is None or not node.call.is_child or not isinstance(node.outcome, Returned):
        return ""
    payload = node.outcome.payload
    why = child.lost(payload.json) if isinstance(payload, Value) else ""
    return f"{node.label} cannot be given back: {why}; what follows was not seen" if why else ""


def _written_elsewhere(node: Node | None, folder: str) -> str:
    """Name what a recorded child changed outside the one folder that is a copy; nothing where all files are."""
    if not folder or node is None or not node.call.is_child or not isinstance(node.outcome, Returned):
        return ""
    payload = node.outcome.payload
    changed = child.changed(payload.json) if isinstance(payload, Value) else ()
    return next((path for path, _ in changed if path.startswith("/") and not path.startswith(f"{folder}/")), "")


def _of_unmade_files(divergence: Entry, ledger: Sequence[Entry], nodes: Mapping[str, Node]) -> str:
    """Say that other code reads what an answered tool wrote, and that no copy holds it; empty where none does.

    What differs in a call before that is the program's.
    """
    notes = [note for node in nodes.values() if isinstance(note := node.span.attributes.get(WRITTEN), str)]
    paths = [as_text(path) for note in notes for path in as_list(as_object(parsed_or_none(note)).get("of_tools"))]
    differing, answers = nodes.get(as_text(divergence.get("node_a"))), {as_text(entry.get("id")) for entry in ledger}
    for node in sorted(nodes.values(), key=lambda each: each.start_order) if paths else ():
        if differing is not None and differing.start_order <= node.start_order:
            return ""
        path = next((file.path for file in tool_files(node) if any(each.endswith(file.path) for each in paths)), "")
        if path and node.id in answers:
            return (
                f"{node.label} was answered, and {path} is made in a copy alone; other code reads what it wrote there"
            )
    return ""


def _text(value: Json) -> str:
    return value if isinstance(value, str) else compact(value)


@cache
def _words(numbers: tuple[int, ...]) -> re.Pattern[str]:
    spelled = "|".join(re.escape(os.strerror(each)) for each in numbers)
    return re.compile(rf"{spelled}|\[Errno (?:{'|'.join(map(str, numbers))})\]")


def _spelled(entry: Entry) -> str:
    what, where = as_text(entry.get("what")), as_text(entry.get("where"))
    return f"{what} (a system call of {where})" if entry.get("event") == _KERNEL else f"{what}{_AT}{where}"


def _was_recorded(recorded: Run, siblings: Sequence[Run], entry: Entry) -> bool:
    """Tell whether the recorded run wrote the same file, or did the same: numbers, as of a process, differ by run.

    A file that the same line writes by the same name lies in another folder where that is one of the run's own.
    """
    if path := as_text(entry.get("path")):
        name, line = Path(path).name, as_text(entry.get("where"))
        notes = [note for run in (recorded, *siblings) if (note := writes_of(run)) is not None]
        files: list[WrittenFile] = [file for note in notes for file in note.files.values()]
        return any(each.path == path or (each.at == line and _alike(Path(each.path).name, name)) for each in files)
    if entry.get("t") != "refused":
        return False
    what, line = as_text(entry.get("what")), _without_numbers(_spelled(entry))
    if (started := _STARTED.fullmatch(what)) is not None:
        name = Path(started[1]).name
        children = [node for run in (recorded, *siblings) for node in run.nodes if node.call.is_child]
        if any(node.call.name == name for node in children):
            return True
    acts = _acts((recorded, *siblings))
    return any(act.rpartition(_AT)[0] == what or _without_numbers(act) == line for act in acts)


def _alike(one: str, other: str) -> bool:
    """Tell whether two names are the same but for numbers, as of a process."""
    return _NUMBER.sub("0", one) == _NUMBER.sub("0", other)


def _acts(runs: Iterable[Run]) -> Iterable[str]:
    """List what programs did past every boundary, each with its line."""
    for run in runs:
        for node in run.nodes:
            attribute = node.span.attributes.get(UNDECLARED)
            yield from map(as_text, as_list(parsed_or_none(attribute)) if isinstance(attribute, str) else ())


def _without_numbers(text: str) -> str:
    """Give an act and its line without the numbers that it names."""
    what, at, line = text.rpartition(_AT)
    return f"{_NUMBER.sub('0', what)}{at}{line}"
