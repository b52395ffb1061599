"""What an integration promises: to cut one library where it meets the outside world, and to leave nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from reenact.values.json import Json


class PatchSet(Protocol):
    """Where replaced attributes are noted, so that they are undone as one (`boundary.patching.Patches`)."""

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Replace attribute `name` of `owner` by `make(original)`."""

    def when_imported(self, module: str, patch: Callable[[Any], None]) -> None:
        """Call `patch(module)` now if it is imported, else right after its import."""

    def when_undone(self, undo: Callable[[], None]) -> None:
        """Call `undo` when this set is undone: for what is no attribute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Integration:
    """One library's boundary. Each module of `reenact.integrations` that patches declares one as `INTEGRATION`."""

    name: str
    libraries: tuple[str, ...]
    """The modules it cuts, such as `httpx`."""
    install: Callable[[PatchSet], None]
    """Cut, now or when the library is imported. Imports no library itself."""
    hooks: tuple[str, ...] = ()
    """The modules that `install` waits for, where it does nothing else: it is loaded with the first of them.

    Empty where it cuts at once. None of them is a module that the integration itself imports: two threads could wait
    for each other's imports.
    """

    def outline(self) -> dict[str, Json]:
        """Give what is known of the integration before it is loaded, for the index of families (`discover`)."""
        return {"name": self.name, "hooks": [*self.hooks]}
