"""A forked process finds every lock of ours open, also in the hooks that other libraries registered for it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOMS = ("boundary", "integrations", "record", "redact", "replay", "export", "stores", "values")
"""What runs in the program that is recorded or replayed."""
FORK = """
import os, threading
from reenact.values import locks

held = [locks.lock(), locks.rlock()]
seen = []
os.register_at_fork(after_in_child=lambda: seen.extend(each.acquire(timeout=0.2) for each in held))
taken, over = threading.Event(), threading.Event()

def hold():
    with held[0], held[1]:
        taken.set()
        over.wait()

threading.Thread(target=hold, daemon=True).start()
taken.wait()
child = os.fork()
if child == 0:
    os._exit(0 if seen == [True, True] else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert not held[0].acquire(blocking=False)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_what_another_thread_held_is_open_in_a_forked_process_and_held_in_the_original() -> None:
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def made_by_hand(source: str) -> Iterator[int]:
    """Give the lines that make a lock which stays closed in a forked process."""
    for each in ast.walk(ast.parse(source)):
        if isinstance(each, ast.Call):
            name = each.func.attr if isinstance(each.func, ast.Attribute) else getattr(each.func, "id", "")
            if name in {"Lock", "RLock"}:
                yield each.lineno


def test_the_law_sees_a_lock_made_by_hand() -> None:
    assert [*made_by_hand("import threading\na = threading.Lock()\nb = RLock()\nc = locks.lock()\n")] == [2, 3]


def test_all_locks_in_a_recorded_program_are_open_after_a_fork(root: Path) -> None:
    package = root / "src" / "reenact"
    found = [
        f"{path.relative_to(package)}:{line}"
        for room in ROOMS
        for path in (package / room).rglob("*.py")
        if path.name != "locks.py"
        for line in made_by_hand(path.read_text("utf-8"))
    ]
    assert found == []
