"""Calls from everywhere hang where they were made: no orphan, no wrong parent, each once, and nothing on stderr."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import warm_python
from reenact.keep.recovering import recover
from reenact.stores.directory import DirectoryStore
from reenact.values.call import FunctionCall
from reenact.values.run import Node, Run
from waiting import until

PROGRAM = Path(__file__).parent / "structured.py"


def _hangs() -> dict[str, dict[str, str]]:
    spec = importlib.util.spec_from_file_location("structured", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.HANGS


HANGS = _hangs()
SLOW = {"multiprocessing_spawn", "multiprocessing_forkserver", "process_pool_spawn", "process_pool_max_tasks_per_child"}
BOOTSTRAP = Path(__file__).parents[2] / "src" / "reenact" / "bootstrap"
CASES = [
    pytest.param(name, shown, marks=[pytest.mark.slow] if name in SLOW or shown else [], id=f"{name}{'-shown' * shown}")
    for name in HANGS
    for shown in (False, True)
]


def _wait_for_all_that_write_to(folder: Path) -> None:
    """Wait for the processes whose store is in `folder`: a fork server outlives the program that it served a little."""

    def gone() -> bool:
        return not any(_has_in_its_environment(process, folder) for process in Path("/proc").glob("[0-9]*"))

    until(gone, 20, lambda: "a process of the program goes on", every_s=0.01)


def _has_in_its_environment(process: Path, folder: Path) -> bool:
    try:
        return os.fsencode(folder) in (process / "environ").read_bytes()
    except OSError:
        return False


@pytest.mark.sample(4)
@pytest.mark.parametrize(("name", "shown"), CASES)
def test_every_call_hangs_where_it_was_made(tmp_path: Path, name: str, shown: bool) -> None:  # noqa: FBT001
    environ = {key: value for key, value in os.environ.items() if not key.startswith(("REENACT_", "OTEL_"))}
    environ |= {"REENACT_RECORD": "1", "REENACT_STORE": str(tmp_path / "store"), "PYTHONPATH": str(BOOTSTRAP)}
    command = [sys.executable, str(PROGRAM), name, *(["shown"] if shown else [])]
    done = warm_python.completed(command, tmp_path, environ, programs=())
    assert (done.returncode, done.stdout.replace("done\n", "")) == (0, ""), done.stderr
    for wrong in ("detach context", "reenact:", "Failed", "Traceback"):
        assert wrong not in done.stderr, done.stderr
    _wait_for_all_that_write_to(tmp_path)
    runs = recover(DirectoryStore(tmp_path / "store")).runs
    expected = sorted((_spelled(mark), _spelled(above)) for mark, above in HANGS[name].items())
    anywhere = {mark for mark, above in expected if above == "*"}
    pairs = [pair for run in runs for pair in _pairs(run)]
    found = sorted((mark, "*" if mark in anywhere else above) for mark, above in pairs)
    sys.stdout.write(f"\n{name:42} {len(found):4} calls, {len(expected):4} expected, {len(runs)} runs\n")
    assert Counter(found) - Counter(expected) == Counter()
    assert Counter(expected) - Counter(found) == Counter()
    assert not [node.span.name for run in runs for node in run.nodes if node.orphan]
    assert all(run.root is not None for run in runs)
    assert len(runs) == 1


def _spelled(mark: str) -> str:
    return mark.replace("_", "-")


def _pairs(run: Run) -> list[tuple[str, str]]:
    by_id = {node.id: node for node in run.nodes}
    return [(mark, _above(node, by_id)) for node in run.nodes if (mark := _mark(node)) is not None]


def _above(node: Node, by_id: dict[str, Node]) -> str:
    """Give the mark of the nearest marked call above; what stands for a process is none."""
    at = node.parent
    while at is not None:
        if (mark := _mark(by_id[at])) is not None:
            return mark
        at = by_id[at].parent
    return ""


def _mark(node: Node) -> str | None:
    request = node.call.request
    if isinstance(request, FunctionCall) and isinstance(request.arguments, dict):
        mark = request.arguments.get("mark")
        return mark.replace("_", "-") if isinstance(mark, str) else None
    return None
