"""When `logging` begins another log file by the clock: at the same line of the log in a replay.

`TimedRotatingFileHandler` compares the clock with the time of the file's last change. A replay runs at another time,
and a file that it made is of that time; so the moment of the next file and the clock that is held against it are taped.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from reenact.boundary import tape
from reenact.boundary.tape import Site, Source
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.json import Json

_MODULE: Final = "logging.handlers"
_HANDLER: Final = "TimedRotatingFileHandler"


def _read(value: Json) -> float:
    if isinstance(value, int | float):
        return value
    raise TypeError(f"{value!r} is not what a clock says")


_NEXT: Final = Site(
    key=f"{_MODULE}:{_HANDLER}.__init__ rolloverAt", source=Source(name="rolloverAt", read=_read, moment=float)
)
_NOW: Final = Site(
    key=f"{_MODULE}:{_HANDLER} time.time", source=Source(name="time.time", read=_read, moment=float, elapses=True)
)


class _Time:
    """Stands for the module `time` in the module of the handlers, with a clock that is taped."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)

    def time(self) -> float:
        """Give the time in seconds, from the recording in a replay."""
        drawn: float = tape.draw(_NOW, self._module.time, float)
        return drawn


def _init_of(original: Callable[..., None]) -> Callable[..., None]:
    @wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self.rolloverAt = tape.draw(_NEXT, lambda: self.rolloverAt)

    return init


def _of_module(patches: PatchSet, module: Any) -> None:
    patches.replace(module, "time", _Time)
    patches.replace(getattr(module, _HANDLER), "__init__", _init_of)


def _install(patches: PatchSet) -> None:
    patches.when_imported(_MODULE, lambda module: _of_module(patches, module))


INTEGRATION = Integration(name="log_rotation", libraries=(_MODULE,), install=_install, hooks=(_MODULE,))
