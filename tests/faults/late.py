"""An agent with an object that writes a file when it is finalized, at the very end; where it is kept is told."""

from __future__ import annotations

import atexit
import builtins
import codecs
import os
import sys
from collections.abc import Callable

import reenact
import reenact.boundary


class Late:
    def __init__(self) -> None:
        self.path, self.open, self.write, self.remove = sys.argv[2], os.open, os.write, os.remove

    def __del__(self, error: type[BaseException] = BaseException, flags: int = os.O_WRONLY | os.O_CREAT) -> None:
        try:
            self.open(self.path, flags)
            if sys.argv[3:]:
                self.remove(self.path)
        except error as raised:
            self.write(2, f"the agent saw {type(raised).__name__}\n".encode())


@reenact.tool
def slight(number: int) -> int:
    return number


def in_cycle() -> object:
    late = Late()
    late.me = late  # type: ignore[attr-defined]
    return late


def holding(late: Late) -> Callable[..., None]:
    def held(*_: object) -> None:
        del _
        late  # noqa: B018 - it is held

    return held


PLACES: dict[str, Callable[[], object]] = {
    "global": lambda: globals().update(kept=Late()),
    "cycle": lambda: globals().update(kept=in_cycle()),
    "builtins": lambda: setattr(builtins, "kept", Late()),
    "sys": lambda: setattr(sys, "kept", Late()),
    "os": lambda: setattr(os, "kept", Late()),
    "a package of the recorder's": lambda: setattr(reenact.boundary, "kept", Late()),
    "atexit": lambda: atexit.register(Late().__del__),
    "a codec": lambda: codecs.register(holding(Late())),
    "excepthook": lambda: setattr(sys, "excepthook", holding(Late())),
    "an audit hook": lambda: sys.addaudithook(holding(Late())),
    "its class": lambda: setattr(Late, "kept", Late()),
}
PLACES[sys.argv[1]]()
slight(1)
