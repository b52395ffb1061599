"""What the seal adds to a replay: the time on the clock of a replay in each kind of world, in turn.

A part of `make bench`. A script of one declared tool is recorded once; then it is replayed unsealed, in namespaces and
under Landlock, round after round. What counts is the time from start to end of `reenact replay`, and by how much its
median is above the unsealed one. A world that cannot be had here is left out, and said.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from figures import Figure, table

_SCRIPT = """
import reenact


@reenact.tool
def weigh(words):
    return len(words)


print(weigh("a few words"))
"""
_UNSEALED = "off"
_WORLDS = {_UNSEALED: "unsealed", "namespaces": "namespaces (level A)", "landlock": "Landlock (level B)"}


def _replayed(folder: str, world: str) -> tuple[float, dict[str, Any]]:
    """Replay the recording in a kind of world; give the milliseconds it took, and what it said."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "REENACT_"))}
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "reenact", "replay", "last", "--json"],
        cwd=folder,
        env=environ | {"REENACT_ENFORCE": world},
        capture_output=True,
        check=False,
    )
    took = (time.perf_counter() - began) * 1000
    if done.returncode:
        sys.exit(f"a replay in the world {world!r} failed:\n{done.stderr.decode(errors='replace')}")
    return took, json.loads(done.stdout)


def measured(rounds: int) -> dict[str, dict[str, Any]]:
    """Replay in every kind of world that can be had, in turn."""
    with tempfile.TemporaryDirectory(prefix="reenact-sealing-") as folder:
        Path(folder, "script.py").write_text(_SCRIPT, encoding="utf-8")
        subprocess.run(
            [sys.executable, "-m", "reenact", "run", "--quiet", "--", sys.executable, "script.py"],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        levels = {world: str(_replayed(folder, world)[1]["level"]) for world in _WORLDS}
        had = [world for world in _WORLDS if world == _UNSEALED or levels[world] == world]
        times: dict[str, list[float]] = {world: [] for world in had}
        for number in range(rounds):
            sys.stderr.write(f"\rround {number + 1} of {rounds}: sealing      ")
            for world in had:
                times[world].append(_replayed(folder, world)[0])
        sys.stderr.write("\r" + " " * 60 + "\r")
    figures = {world: Figure.of(values) for world, values in times.items()}
    floor = figures[_UNSEALED].median
    found: dict[str, dict[str, Any]] = {world: {"had": world in had} for world in _WORLDS}
    for world, figure in figures.items():
        found[world] |= {"ms": figure.json(), "added_ms": round(figure.median - floor, 1)}
    return found


def laid_out(found: dict[str, dict[str, Any]]) -> str:
    """Lay the figures out."""
    rows = [
        [_WORLDS[world], Figure(**each["ms"]).shown(0), f"{each['added_ms']:+.0f}"]
        if each["had"]
        else [_WORLDS[world], "not to be had here", ""]
        for world, each in found.items()
    ]
    return table(["ms of a replay, median (quartiles)", "from start to end", "added"], rows)
