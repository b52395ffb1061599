"""Kinds of effect that a program has on the world around it, and what was done about each of them in a replay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final


class Seal(StrEnum):
    """What was done about a kind of effect, the strongest word first."""

    COPIED = "copied"
    """It went to a copy, which the program saw as its own."""
    ENFORCED = "enforced"
    """The kernel refused it."""
    WATCHED = "watched"
    """An audit hook refused what Python does; native code is not seen."""
    OPEN = "open"
    """The policy lets it out."""


EFFECTS: Final = ("files", "network", "unix sockets", "processes", "shared memory", "signals")


def seals(files: Seal, network: Seal, others: Seal) -> dict[str, str]:
    """Say what is done about each kind of effect."""
    return {kind: {"files": files, "network": network}.get(kind, others).value for kind in EFFECTS}


IN_PROCESS: Final = dict.fromkeys(("namespaces", "landlock"), "a process that has begun cannot be sealed")
"""Why a replay in a process of its user's is not sealed, by what might have sealed it."""
COPIED_IN: Final = "files copied in"
"""Beside the words: the folder whose files are copied, where files elsewhere have a weaker word."""


def weakest(worlds: Iterable[Mapping[str, object]]) -> dict[str, str]:
    """Give the weakest word for each kind of effect in the worlds of several processes; empty where there is none.

    Where the files of one folder are copied in all of them, and the kernel refuses others, that folder is named.
    """
    all_worlds = list(worlds)
    words = [each.value for each in Seal]
    kind_words = {kind: [str(world.get(kind)) for world in all_worlds] for kind in EFFECTS}
    weak = {
        kind: max(choices, key=lambda word: words.index(word) if word in words else len(words))
        for kind, choices in kind_words.items()
        if choices
    }
    folders = {world.get(COPIED_IN) for world in all_worlds}
    if weak.get("files") == Seal.ENFORCED and len(folders) == 1 and isinstance(folder := folders.pop(), str):
        weak[COPIED_IN] = folder
    return weak


def sentence(world: Mapping[str, str], ways_out: Iterable[str] = ()) -> str:
    """Say it in a line: `copied: files; enforced: unix sockets; network: enforced but for api.openai.com:443`."""
    but: dict[str, list[str]] = {}
    for way in ways_out:
        kind = "unix sockets" if way.startswith("unix:") else "network"
        if world.get(kind) == Seal.ENFORCED.value:
            but.setdefault(kind, []).append(way)
    left = [kind for kind in EFFECTS if kind not in but]
    parts = {word.value: [kind for kind in left if world.get(kind) == word.value] for word in Seal}
    if (folder := world.get(COPIED_IN)) is not None:
        parts = {word: [_ELSEWHERE if kind == "files" else kind for kind in kinds] for word, kinds in parts.items()}
        parts[Seal.COPIED.value].insert(0, f"files in {folder}")
    phrases = [f"{word}: {', '.join(kinds)}" for word, kinds in parts.items() if kinds]
    return "; ".join([*phrases, *(f"{kind}: {world[kind]} but for {', '.join(ways)}" for kind, ways in but.items())])


_ELSEWHERE: Final = "files elsewhere"
