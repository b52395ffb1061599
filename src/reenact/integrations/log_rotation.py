"""When a log begins another file by the clock: at the same line in a replay, and under the same name.

`logging`'s `TimedRotatingFileHandler` compares the clock with the time of the file's last change, loguru with the time
of its making, which is part of the new name as well. A replay runs at another time, and a file that it made is of that
time; so both the clock and the time of the file are taped, as the log reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial, wraps
from typing import Any, Final

from reenact.boundary import tape
from reenact.boundary.tape import Site, Source
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.json import Json

_HANDLER: Final = "TimedRotatingFileHandler"


def _read_number(value: Json) -> float:
    if isinstance(value, int | float):
        return value
    raise TypeError(f"{value!r} is no time")


_SECONDS: Final = Source(name="time.time", read=_read_number, moment=float, runs_on=True)
_MOMENT: Final = Source(
    name="datetime.now",
    spell=datetime.isoformat,
    read=lambda value: datetime.fromisoformat(str(value)),
    moment=datetime.timestamp,
    runs_on=True,
)
_OF_A_FILE: Final = Source(name="file time", read=_read_number, runs_on=True)


class _Clocks:
    """Stands for the module or the class that holds clocks; those named in `taped` are taped."""

    def __init__(self, taped: Mapping[str, Callable[[], Any]], holder: Any) -> None:
        self.__dict__.update(taped)
        self._holder = holder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._holder, name)


def _in_place_of(source: Source, module: str, name: str, at: Callable[[float], Any]) -> Callable[[Any], _Clocks]:
    site = Site(key=f"{module} {source.name}", source=source)
    return lambda holder: _Clocks({name: lambda: tape.draw(site, getattr(holder, name), at)}, holder)


def _of_logging(patches: PatchSet, module: Any) -> None:
    patches.replace(module, "time", _in_place_of(_SECONDS, module.__name__, "time", float))
    patches.replace(getattr(module, _HANDLER), "__init__", _handler_of)


def _handler_of(original: Callable[..., None]) -> Callable[..., None]:
    site = Site(key=f"logging.handlers:{_HANDLER} rolloverAt", source=_OF_A_FILE)

    @wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self.rolloverAt = tape.draw(site, lambda: self.rolloverAt)

    return init


def _of_loguru_clock(patches: PatchSet, module: Any) -> None:
    patches.replace(module, "datetime_", _in_place_of(_MOMENT, module.__name__, "now", datetime.fromtimestamp))


def _of_loguru_files(patches: PatchSet, module: Any) -> None:
    site = Site(key=f"{module.__name__}:get_ctime", source=_OF_A_FILE)

    def make(original: Callable[[str], float]) -> Callable[[str], float]:
        @wraps(original)
        def get_ctime(path: str) -> float:
            return tape.draw(site, lambda: original(path))

        return get_ctime

    patches.replace(module, "get_ctime", make)


_PATCHES: Final[Mapping[str, Callable[[PatchSet, Any], None]]] = {
    "logging.handlers": _of_logging,
    "loguru._datetime": _of_loguru_clock,
    "loguru._file_sink": _of_loguru_files,
}


def _install(patches: PatchSet) -> None:
    for name, patch in _PATCHES.items():
        patches.when_imported(name, partial(patch, patches))


INTEGRATION = Integration(
    name="log_rotation", libraries=("logging.handlers", "loguru"), install=_install, hooks=(*_PATCHES,)
)
