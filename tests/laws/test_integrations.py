"""What holds for every integration, whoever wrote it: found by looking into the family."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from reenact.contracts.integration import Integration
from reenact.discover import members

WAITING = [each for each in members("integrations", Integration) if each.hooks]
every_waiting = pytest.mark.parametrize("integration", WAITING, ids=lambda each: each.name)
LOADING = """
import json, sys
from reenact.pipeline import joining, recording
from reenact.contracts.integration import Integration
from reenact.discover import members

waiting = [each for each in members("integrations", Integration) if each.hooks]
print(json.dumps(sorted({hook for each in waiting for hook in each.hooks} & set(sys.modules))))
"""


class Waits:
    """A set of patches that notes what is waited for, and refuses any cut."""

    def __init__(self) -> None:
        self.modules: list[str] = []

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        raise AssertionError(f"{owner}.{name} is cut with {make} before any module was imported")

    def when_imported(self, module: str, patch: Callable[[Any], None]) -> None:
        assert callable(patch)
        self.modules.append(module)

    def when_undone(self, undo: Callable[[], None]) -> None:
        raise AssertionError(f"{undo} is to be undone before anything was cut")


@every_waiting
def test_an_integration_waits_for_its_hooks_and_does_nothing_before(integration: Integration) -> None:
    seen = Waits()
    integration.install(seen)
    assert sorted(seen.modules) == sorted(integration.hooks)


def test_no_integration_imports_what_another_waits_for() -> None:
    """Two threads that import two libraries would wait for each other's imports else."""
    done = subprocess.run([sys.executable, "-c", LOADING], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_most_integrations_wait() -> None:
    assert {each.name for each in WAITING} >= {
        "aiohttp_client",
        "asgi",
        "celery",
        "http_clients",
        "urllib3_pools",
        "wsgi",
    }
