from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from desk import Desk
from reenact.find.sources import runs_in
from reenact.values.run import spans_of
from reenact.values.span import SpanRecord
from trust.hostile import AGENT, Lair, lair


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> list[SpanRecord]:
    """The spans of a recorded agent as a stranger would send them: exported."""
    desk = Desk(tmp_path_factory.mktemp("stranger"))
    desk.write("agent.py", AGENT)
    done = desk.reenact("run", "-q", "--", "python", "agent.py")
    assert done.returncode == 0, done.stderr
    done = desk.reenact("export", "last", "-o", "trace.jsonl")
    assert done.returncode == 0, done.stderr
    return spans_of(runs_in(desk.folder / "trace.jsonl"))


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """The user's project, which this process stands in, with an agent of the user's own."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text("")
    (project / "tests").mkdir()
    monkeypatch.chdir(project)
    for name in [name for name in os.environ if name.startswith(("REENACT_", "OTEL_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    found = Desk(project)
    found.write("agent.py", AGENT)
    return found


@pytest.fixture
def here(tmp_path: Path, desk: Desk) -> Iterator[Lair]:
    with lair(tmp_path / "lair", desk.folder) as made:
        yield made
