"""What a start costs, in modules of ours: nearly all of its time is their import, and no clock is needed to count them.

Each limit stands a little above what was reached, so that one module more is no failure and one room more is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from reenact.contracts.integration import Integration
from reenact.demo.provider import StandIn
from reenact.discover import entries

# The site's own start-up module, which ours runs first: what it registers is called last, when all has been imported.
# It tells on stderr, since the files of a replay are copies.
WITNESS = """
import atexit, json, os, sys

kind = "parent" if "reenact" in sys.orig_argv else "child"
atexit.register(lambda: os.write(2, f"\\nWITNESS {kind} {json.dumps(sorted(sys.modules))}\\n".encode()))
"""
HELLO = """
import json, os
from urllib.request import Request, urlopen

question = {"model": "stand-in-cleanup", "messages": [{"role": "user", "content": "hi"}]}
headers = {"content-type": "application/json", "authorization": "Bearer sk-stand-in"}
with urlopen(Request(os.environ["STAND_IN"] + "/chat/completions", json.dumps(question).encode(), headers)) as answer:
    print("hi", len(json.load(answer)["choices"]))
"""
SLOW = frozenset({"grpc", "rich", "numpy", "opentelemetry.exporter", "opentelemetry.proto", "google.protobuf"})
"""What nobody needs who neither sends nor draws a table."""


@dataclass(frozen=True)
class Started:
    """The modules of one command and of the program that it ran, at their ends."""

    parent: frozenset[str]
    child: frozenset[str]


def ours(modules: frozenset[str]) -> set[str]:
    return {name for name in modules if name.partition(".")[0] == "reenact"}


def of_room(modules: frozenset[str], *rooms: str) -> set[str]:
    return {name for name in modules for room in rooms if name == room or name.startswith(f"{room}.")}


def started(folder: Path, environ: dict[str, str], *words: str) -> Started:
    command = [sys.executable, "-m", "reenact", *words]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=110)
    assert done.returncode == 0, done.stderr
    told = [line.split(" ", 2) for line in done.stderr.splitlines() if line.startswith("WITNESS ")]
    assert sorted(kind for _, kind, _ in told) == ["child", "parent"]
    return Started(**{kind: frozenset(json.loads(modules)) for _, kind, modules in told})


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Started]:
    """`print("hi")`, which is all that `nothing` does and what `recorded` does after a model call; and its replay."""
    folder = tmp_path_factory.mktemp("starts")
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(WITNESS)
    (folder / "hello.py").write_text(HELLO)
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("REENACT_", "OTEL_"))}
    environ["PYTHONPATH"] = str(folder / "site")
    with StandIn(max_delay_ms=1) as provider:
        environ["STAND_IN"] = provider.base_url
        return {
            "nothing": started(folder, environ, "run", "--", "python", "-c", "print('hi')"),
            "recorded": started(folder, environ, "run", "--", "python", "hello.py"),
            "replayed": started(folder, environ, "replay", "last"),
        }


@pytest.mark.parametrize(
    ("run", "process", "most"),
    [
        ("nothing", "child", 199),
        ("nothing", "parent", 141),
        ("recorded", "child", 206),
        ("recorded", "parent", 146),
        ("replayed", "child", 255),
        ("replayed", "parent", 209),
    ],
)
def test_a_start_loads_few_modules_of_ours(starts: dict[str, Started], run: str, process: str, most: int) -> None:
    modules = ours(getattr(starts[run], process))
    assert len(modules) <= most, sorted(modules)


def test_a_program_that_is_recorded_or_replayed_loads_nothing_of_what_its_parent_does(
    starts: dict[str, Started],
) -> None:
    rooms = ("assess", "backends", "cli", "collect", "compare", "demo", "export", "report", "testing", "vary")
    for each in starts.values():
        assert of_room(each.child, *(f"reenact.{room}" for room in rooms)) == set()
        assert of_room(each.child, *SLOW, "click") == set()
    for run in ("nothing", "recorded"):
        assert of_room(starts[run].child, "reenact.replay", "reenact.graph", "reenact.read") == set()


def test_a_program_loads_no_integration_for_a_library_that_it_does_not_import(starts: dict[str, Started]) -> None:
    waiting = [entry.load() for entry in entries("integrations", Integration) if entry.outline["hooks"]]
    modules = {each.install.__module__: each.hooks for each in waiting}
    for each in starts.values():
        assert {name for name, hooks in modules.items() if name in each.child and not {*hooks} & each.child} == set()
    assert of_room(starts["nothing"].child, *modules) == set()


def test_a_command_that_runs_a_program_loads_nothing_of_what_the_program_does(starts: dict[str, Started]) -> None:
    apart = ("reenact.pipeline.recording", "reenact.pipeline.family", "reenact.pipeline.joining", "reenact.redact.scan")
    rooms = ("reenact.assess", "reenact.collect", "reenact.testing", "reenact.vary", "reenact.values.assertion")
    for each in starts.values():
        assert of_room(each.parent, *apart, *rooms) == set()
        assert of_room(each.parent, *SLOW, "opentelemetry.sdk") == set()
        assert of_room(each.parent, "reenact.export") <= {
            "reenact.export",
            "reenact.export.backends",
            "reenact.export.limits",
        }


def test_a_replay_loads_no_fork_where_nothing_is_forked(starts: dict[str, Started]) -> None:
    for modules in (starts["replayed"].parent, starts["replayed"].child):
        assert of_room(modules, "reenact.replay.forking", "reenact.replay.changes", "reenact.change.forking") == set()
    assert of_room(starts["replayed"].parent, "reenact.replay.replayer", "reenact.pipeline.suite") == set()
