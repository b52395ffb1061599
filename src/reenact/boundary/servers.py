"""Programs that a client library of the agent's starts to be served by them: none of the agent's own Pythons.

Such a program is no part of the run, even where it is a Python: what it does is the outside world's doing. It is
started without the variables by which a child of the agent's would record itself.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from reenact.boundary.children import serving

_OURS: Final = "REENACT_"
_HOOK: Final = str(Path(__file__).parents[1] / "bootstrap")
"""The folder at the head of PYTHONPATH that makes a program record itself."""


@contextmanager
def starting() -> Generator[None]:
    """Surround what starts such a program, here and in the tasks that it spawns."""
    before = serving.get()
    serving.set(True)
    try:
        yield
    finally:
        serving.set(before)


def environment(variables: Mapping[Any, Any] | None) -> dict[Any, Any]:
    """Give the environment of such a program, without our own variables; None stands for this process's."""
    environ = dict(os.environ if variables is None else variables)
    others = {key: value for key, value in environ.items() if not os.fsdecode(key).startswith(_OURS)}
    for key in [key for key in others if os.fsdecode(key) == "PYTHONPATH"]:
        parts = [part for part in os.fsdecode(others.pop(key)).split(os.pathsep) if part and part != _HOOK]
        if parts:
            others[key] = os.pathsep.join(parts)
    return others
