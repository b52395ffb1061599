"""Every function of the recorder's way fails in turn: the agent's result, exit code and stdout stay as they are."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from random import Random

import pytest

from dying import Provider, serving

FAULTY = Path(__file__).parent / "faulty.py"
SAMPLE = 24
ARMS = ("hook", "call")
_PARTS = 30
"""Tests over which all of them are spread: some 40 each, of which each takes seconds."""

Live = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Generator[Live]:
    """What has an agent live, and gives its exit code, stdout and stderr."""
    folder = tmp_path_factory.mktemp("faults")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("REENACT_", "OTEL_"))}
    numbers = itertools.count()
    with serving(Provider) as port:
        command = [sys.executable, str(FAULTY), str(port), str(folder)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ, cwd=folder
        ) as process:
            given, told = process.stdin, process.stdout
            assert given is not None
            assert told is not None

            def one(
                function: str | None, arm: str, *, shown: bool = False, seen: Path | None = None
            ) -> tuple[int, str, str]:
                number = next(numbers)
                out = folder / f"{number}.out"
                order = {
                    "number": number,
                    "function": function,
                    "arm": arm,
                    "out": str(out),
                    "shown": shown,
                    "seen": str(seen) if seen else None,
                }
                given.write(json.dumps(order) + "\n")
                given.flush()
                code = int(told.readline())
                return code, out.read_text(), Path(f"{out}.err").read_text()

            yield one
            given.close()


def _called(live: Live, folder: Path) -> list[tuple[str, str, bool]]:
    """Name what is called while an agent is recorded: function, how, and whether it has a provider of its own."""
    found: dict[str, tuple[str, str, bool]] = {}
    for arm, shown in (("hook", False), ("hook", True), ("call", False)):
        seen = folder / f"seen {arm} {shown}"
        live(None, arm, shown=shown, seen=seen)
        for name in seen.read_text().splitlines():
            found.setdefault(name, (name, arm, shown))
    return list(found.values())


def _same(live: Live, cases: list[tuple[str, str, bool]]) -> list[str]:
    bare = {shown: live(None, "bare", shown=shown) for shown in (False, True)}
    assert bare[False][0] == 5, bare[False][2]
    said: list[str] = []
    for name, arm, shown in cases:
        code, out, err = live(name, arm, shown=shown)
        if (code, out) != bare[shown][:2]:
            lines = err.strip().splitlines()
            said.append(f"{name} ({arm}): exit {code}; {lines[-1] if lines else ''}")
    return said


@pytest.mark.slow
def test_recorded_it_does_what_it_does_alone(live: Live) -> None:
    alone = live(None, "bare")
    for arm in ARMS:
        code, out, err = live(None, arm)
        assert (code, out) == alone[:2], err
        assert "failed" not in err


@pytest.mark.slow  # some 25 s
def test_some_function_of_the_recorder_fails(live: Live, tmp_path: Path) -> None:
    cases = _called(live, tmp_path)
    assert len(cases) > 300, "the recorder's functions are found and called"
    assert _same(live, Random(7).sample(cases, SAMPLE)) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(_PARTS))
def test_every_function_of_the_recorder_fails(live: Live, tmp_path: Path, part: int) -> None:
    cases = _called(live, tmp_path)[part::_PARTS]
    wrong = _same(live, cases)
    sys.stdout.write(f"\n{len(cases)} functions failed in turn, {len(wrong)} were noticed by the agent\n")
    assert wrong == []
