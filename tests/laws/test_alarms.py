"""Whatever forgives in a program that is recorded passes on what the program's own signal handlers raise."""

from __future__ import annotations

import ast
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOMS = ("boundary", "integrations", "record", "redact", "values")
"""What runs in the thread that makes a call."""
PASSING = {"forgive", "swallow", "pass_on"}
OTHERS = {
    "boundary/forgiving.py": "logs what was forgiven already",
    "boundary/generators.py": "throws it into the program's own generator",
    "boundary/section_cuts.py": "throws it into the framework's own generator",
    "redact/in_force.py": "tells of a policy, at the start",
    "values/alarms.py": "raises it behind what is written meanwhile",
    "integrations/psycopg_connections.py": "throws it into psycopg's own generator, which raises it",
    "integrations/http_clients.py": "tells the program of a broken coding by its client's own error",
}
"""Handlers that do something else with it, by file; each has one of that kind at most."""


def catches_all(handler: ast.ExceptHandler) -> bool:
    named = {each.id for each in ast.walk(handler.type or ast.Name("Exception")) if isinstance(each, ast.Name)}
    return bool(named & {"Exception", "BaseException"})


def passes_on(handler: ast.ExceptHandler) -> bool:
    for each in ast.walk(handler):
        if isinstance(each, ast.Raise):
            return True
        if isinstance(each, ast.Call):
            function = each.func
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if name in PASSING:
                return True
    return False


def forgiving(source: str) -> Iterator[int]:
    for each in ast.walk(ast.parse(source)):
        if isinstance(each, ast.ExceptHandler) and catches_all(each) and not passes_on(each):
            yield each.lineno


def test_the_law_sees_a_handler_that_keeps_what_it_caught() -> None:
    kept = "try:\n    f()\nexcept Exception:\n    return None\n"
    assert [*forgiving(kept)] == [3]
    assert [*forgiving(kept.replace("return None", "forgive('f')"))] == []
    assert [*forgiving(kept.replace("Exception", "ValueError"))] == []


def test_who_forgives_passes_alarms_on(root: Path) -> None:
    package = root / "src" / "reenact"
    found = [
        f"{path.relative_to(package)}:{line}"
        for room in ROOMS
        for path in sorted((package / room).rglob("*.py"))
        if str(path.relative_to(package)) not in OTHERS
        for line in forgiving(path.read_text(encoding="utf-8"))
    ]
    assert found == []


PROGRAM = """
import signal, sys
from reenact.boundary import offers

class Late(Exception):
    pass

def ring(*_):
    raise Late

class Body(bytes):
    def endswith(self, *_):
        signal.raise_signal(signal.SIGALRM)

signal.signal(signal.SIGALRM, ring)
offers.listen(print)
offers._OFFERS.known.append(offers._Known(b"x", frozenset()))
try:
    offers.hear(Body(b"{}"))
except Late:
    sys.exit(7)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="this system has no alarm")
def test_an_alarm_that_rings_while_tools_are_looked_for_ends_the_call() -> None:
    assert subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=False).returncode == 7
