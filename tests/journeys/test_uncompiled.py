"""Replays where no installer compiled our modules: the first one caches them, and the agent is not told."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import reenact
from desk import Desk
from reenact.demo.provider import StandIn

AGENT = """
import json, os
from urllib.request import Request, urlopen
import mine

question = {"model": "stand-in-cleanup", "messages": [{"role": "user", "content": mine.WORD}]}
headers = {"content-type": "application/json", "authorization": "Bearer sk-stand-in"}
with urlopen(Request(os.environ["STAND_IN"] + "/chat/completions", json.dumps(question).encode(), headers)) as answer:
    print(len(json.load(answer)["choices"]))
"""


@pytest.fixture
def uncompiled(desk: Desk, provider: StandIn) -> Path:
    """A recording, made by a copy of this package in which nothing is compiled but what recording imports."""
    package = desk.folder / "code" / "reenact"
    shutil.copytree(Path(reenact.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "REENACT_"))}
    desk.environ |= {**inherited, "PYTHONPATH": str(package.parent), "STAND_IN": provider.base_url}
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"):
        desk.environ.pop(name, None)
    desk.write("mine.py", "WORD = 'hi'\n")
    desk.write("agent.py", AGENT)
    done = reenacted(desk, "run", "--", "python", "agent.py")
    assert done.returncode == 0, done.stderr
    shutil.rmtree(desk.folder / "__pycache__")
    return package


def reenacted(desk: Desk, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return desk.reenact(*words, environ={**desk.environ, **environ}, cold=True)


def compiled_in(done: subprocess.CompletedProcess[str], package: Path) -> set[str]:
    """Give the files of the package that a process under `python -v` compiled from their source."""
    marks = (line.partition("# code object from ")[2] for line in done.stderr.splitlines())
    return {str(Path(mark).relative_to(package)) for mark in marks if mark.startswith(str(package))}


def replayed(desk: Desk, **environ: str) -> tuple[dict[str, object], subprocess.CompletedProcess[str]]:
    done = reenacted(
        desk, "replay", "last", "--json", "--outcome", "structure", "--", "python", "-v", "agent.py", **environ
    )
    return json.loads(done.stdout), done


@pytest.mark.slow
def test_a_replay_caches_what_only_the_replayed_process_imports(desk: Desk, uncompiled: Path) -> None:
    first, done = replayed(desk)
    assert {"replay/replayer.py", "replay/guard.py"} <= compiled_in(done, uncompiled)
    second, done = replayed(desk)
    assert compiled_in(done, uncompiled) == set()
    for document in (first, second):
        assert document["result"] == "same"
        assert document["refused"] == document["misses"] == document["divergences"] == []
    assert not (desk.folder / "__pycache__").exists(), "the program's own modules stay uncached"


@pytest.mark.slow
def test_a_replay_under_dont_write_bytecode_writes_none(desk: Desk, uncompiled: Path) -> None:
    before = set(uncompiled.rglob("*.pyc"))
    document, _ = replayed(desk, PYTHONDONTWRITEBYTECODE="1")
    assert document["result"] == "same"
    assert set(uncompiled.rglob("*.pyc")) == before


@pytest.mark.slow
def test_a_replay_goes_on_where_no_cache_can_be_written(desk: Desk, uncompiled: Path) -> None:
    (uncompiled / "replay" / "__pycache__").write_text("no folder")
    document, done = replayed(desk)
    assert document["result"] == "same"
    assert "Traceback" not in done.stderr
