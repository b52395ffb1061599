"""The start-up hook by which a Python program records or replays itself, as an environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from reenact.disk import user_key
from reenact.values import origin

HOOK: Final = str(Path(__file__).parents[1] / "bootstrap")
"""The folder at the head of PYTHONPATH that makes a program record itself."""
_WITHHELD: Final = frozenset({user_key.VARIABLE, origin.VARIABLE})


def injected(environ: Mapping[str, str], **further: str) -> dict[str, str]:
    """Give `environ` with our start-up hook at the head of PYTHONPATH, as `opentelemetry-instrument` does it.

    No program finds the user's key in it, and none the key of another recording.
    """
    path = [HOOK, *(part for part in environ.get("PYTHONPATH", "").split(os.pathsep) if part and part != HOOK)]
    variables = {name: value for name, value in environ.items() if name not in _WITHHELD}
    return {**variables, "PYTHONPATH": os.pathsep.join(path), **further}
