"""Integrations that are loaded when the program imports what they cut, and not before: most programs use few libraries.

No lock is held while an integration is loaded. It runs inside the program's own import of a library, so a lock, be it
of another of the program's imports, could be waited for by two threads in turn. Threads that import two modules of one
library at once each install the integration into lists of their own, which cuts nothing yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from reenact.boundary.forgiving import forgive
from reenact.contracts.integration import Integration, PatchSet
from reenact.discover import Entry

_Cut = Callable[[Any], None]


def install(entry: Entry[Integration], patches: PatchSet) -> None:
    """Cut now, or have it done right after the first import of a module that the integration waits for."""
    hooks: list[str] = entry.outline["hooks"]
    if not hooks:
        entry.load().install(patches)
        return
    waiting = _Waiting(entry, patches)
    for name in hooks:
        patches.when_imported(name, partial(waiting.cut, name))


class _Waiting:
    """An integration that is installed once one of its modules is imported."""

    def __init__(self, entry: Entry[Integration], patches: PatchSet) -> None:
        self._entry, self._patches = entry, patches
        self._cuts: dict[str, list[_Cut]] | None = None

    def cut(self, name: str, module: Any) -> None:
        """Cut the module `name`, which has just been imported. In a replay raises what keeps it from being cut."""
        if self._cuts is None:
            try:
                collected = _Collected(self._patches, self._entry.outline["hooks"])
                self._entry.load().install(collected)
            except Exception:  # noqa: BLE001 - the library works without us
                forgive("late_cuts.cut")
                return
            self._cuts = collected.over()
        for each in self._cuts.get(name, ()):
            try:
                each(module)
            except Exception:  # noqa: BLE001 - another version of the library, which works without us
                forgive("late_cuts.cut")


class _Collected:
    """A set of patches that notes what waits for which module, instead of asking for it a second time."""

    def __init__(self, patches: PatchSet, hooks: Iterable[str]) -> None:
        self._patches = patches
        self._cuts: dict[str, list[_Cut]] = {name: [] for name in hooks}

    def over(self) -> dict[str, list[_Cut]]:
        """Give what was noted, by module; what is asked for from now on is asked for at once."""
        cuts, self._cuts = self._cuts, {}
        return cuts

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Replace an attribute."""
        self._patches.replace(owner, name, make)

    def when_imported(self, module: str, patch: _Cut) -> None:
        """Note what to do when a module of the hooks is imported; ask for any other."""
        if module in self._cuts:
            self._cuts[module].append(patch)
        else:
            self._patches.when_imported(module, patch)

    def when_undone(self, undo: Callable[[], None]) -> None:
        """Call `undo` when everything is undone."""
        self._patches.when_undone(undo)
