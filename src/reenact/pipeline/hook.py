"""The start-up hook by which a Python program records or replays itself, as an environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

_HOOK = str(Path(__file__).parents[1] / "bootstrap")


def injected(environ: Mapping[str, str], **further: str) -> dict[str, str]:
    """Give `environ` with our start-up hook at the head of PYTHONPATH, as `opentelemetry-instrument` does it."""
    path = [_HOOK, *(part for part in environ.get("PYTHONPATH", "").split(os.pathsep) if part and part != _HOOK)]
    return {**environ, "PYTHONPATH": os.pathsep.join(path), **further}
