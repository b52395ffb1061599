"""What pytest rewrites as it imports it is cut like any other module; its workers' events come in their order."""

from __future__ import annotations

from pathlib import Path

import pytest

from desk import Desk

CUT = """
import anyio
import anyio._backends._asyncio as backend

def test_a_plugin_of_pytest_is_cut():
    assert hasattr(backend.AsyncIOBackend.run_sync_in_worker_thread, "__wrapped__")
"""

SHARED_OUT = """
import random
import time

import pytest
import reenact

@reenact.tool
def look_up(city: str) -> str:
    time.sleep(random.random() / 50)
    return city.upper()

@pytest.mark.parametrize("number", range(8))
def test_look_up(number, tmp_path):
    (tmp_path / "answer").write_text(look_up(str(number)))
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    desk.cold = True  # in a warm interpreter the modules are there already
    return desk


def test_a_module_that_pytest_rewrites_is_cut(desk: Desk) -> None:
    desk.write("test_it.py", CUT)
    done = desk.reenact("run", "-q", "--", "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py")
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_tests_go_to_the_workers_that_had_them(desk: Desk) -> None:
    desk.write("test_it.py", SHARED_OUT)
    words = ("python", "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "test_it.py")
    environ = desk.settings() | {"PYTEST_DEBUG_TEMPROOT": str(desk.folder)}
    recorded = desk.reenact("run", "-q", "--", *words, environ=environ)
    assert recorded.returncode == 0, recorded.stdout
    for _ in range(3):
        again = desk.reenact("replay", "last", environ=environ)
        assert (again.returncode, "given up" in again.stderr) == (0, False), again.stderr
