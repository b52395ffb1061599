"""Which variables of the environment the agent's own code reads, by name, and which of them are none of the program's.

Those that `reenact` sets are not the same in a recording and in its replay. So who goes through all variables does not
see them; by its name each is there. The environment that the agent's own code makes for a child gets them again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, cast

from reenact.boundary import children

MOST: Final = 200
"""So many names of a process are noted."""
ADDED: Final = "REENACT_ADDED"
"""Names further variables that a replay sets, and that were not set when it was recorded; parted by commas."""
_OURS: Final = "REENACT_"
_PYTHONS: Final = frozenset({"PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE"})
_PATH: Final = "PYTHONPATH"
_HOOK: Final = str(Path(__file__).parents[1] / "bootstrap")
_MARKS: Final = frozenset({"REENACT_RECORD", "REENACT_REPLAY"})
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


class _State:
    __slots__ = ("at_start", "on", "read")

    def __init__(self) -> None:
        self.on = False
        self.at_start: frozenset[str] = frozenset()
        self.read: dict[str, bool] = {}


_STATE: Final = _State()


def begin(names: Iterable[str]) -> None:
    """Note from now on what is read; `names` are those that were set when the program began."""
    _STATE.on, _STATE.at_start, _STATE.read = True, frozenset(names), {}


def end() -> None:
    """Note nothing more."""
    _STATE.on = False


def is_new(name: object) -> bool:
    """Tell whether a name would be noted: whoever reads it, nobody of the agent's did before."""
    return _STATE.on and isinstance(name, str) and name not in _STATE.read and len(_STATE.read) < MOST


def note(name: str) -> None:
    """Note that the agent's own code read a variable, set or not."""
    if _NAME.fullmatch(name):
        _STATE.read[name] = name in _STATE.at_start


def variable_readings() -> list[tuple[str, bool]]:
    """List the names that were read, and whether each was set when the program began."""
    return sorted(_STATE.read.items())


def set_by_us() -> set[str]:
    """List the variables of this process that `reenact` sets, or may have set."""
    names = {name for name in os.environ if name.startswith(_OURS) or name in _PYTHONS}
    added = {name for name in os.environ.get(ADDED, "").split(",") if name in os.environ}
    names |= added.difference(children.own_variables())
    return names | {_PATH} if os.environ.get(_PATH) == _HOOK else names


def handed_on(env: Any) -> Any:
    """Give a child's environment that was made of this process's with what could not be seen of that.

    It was made of it where it holds most of its names.
    """
    if not isinstance(env, Mapping) or env is os.environ:
        return cast("Any", env)
    given = cast("Mapping[Any, Any]", env)
    names = {os.fsdecode(name) for name in given}
    hidden = set_by_us()
    if not hidden & _MARKS or names & _MARKS:
        return given
    seen = os.environ.keys() - hidden
    if 2 * len(seen & names) <= len(seen):
        return given
    return {**given, **{name: os.environ[name] for name in hidden - names}}
