"""Ordinary programs answer the same in a sealed replay as when they were recorded, and leave the outside as it was."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from escapes.ground import files
from escapes.ordinary import DATA, ORDINARY, Ordinary

LIMIT_S = 120
USER = "nobody"
DEBIANS = "/usr/bin/python3"
"""The interpreter that every user may start: a pyenv of root's lies in a folder of root's."""
VERSION = sys.version_info[:2]
FAR = {"tmp": "/tmp", "run": "/run", "shm": "/dev/shm", "root": "/"}
OURS = ("REENACT_", "OTEL_", "PYTHON", "GIT_", "PYTEST_")


@contextmanager
def placed(program: Ordinary) -> Iterator[tuple[Path, Path]]:
    """Give the project's folder, and one for everything else of the user's."""
    with tempfile.TemporaryDirectory(prefix="oo-", dir="/var/tmp", ignore_cleanup_errors=True) as name:
        top = Path(name)
        top.chmod(0o755)
        project = top / "project"
        if program.where in FAR:
            project = Path(tempfile.mkdtemp(prefix="oo-", dir=FAR[program.where]))
        elif program.where == "umlauts":
            project = top / "Jörg Müller" / "Unser Projekt"
        elif program.where == "link":
            (top / "real").mkdir()
            project.symlink_to("real")
        try:
            yield project, top
        finally:
            with suppress(OSError):
                project.chmod(0o755)
            if program.where in FAR:
                shutil.rmtree(project)


def laid(project: Path, top: Path, program: Ordinary) -> None:
    """Lay the project out as it is before the program has ever run."""
    project.mkdir(parents=True, exist_ok=True)
    project.chmod(0o755)
    for path in project.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    main = {"main.py": program.code} if program.code else {}
    for name, text in {"data.csv": DATA, **main, **program.files}.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    if program.where == "repository":
        stamp = {"GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}
        git = ["git", "-c", "user.name=u", "-c", "user.email=u@example.org", "-c", "init.defaultBranch=main"]
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "one"]):
            subprocess.run([*git, *words], cwd=project, check=True, env={**os.environ, **stamp})
    home = top / ("Jörg Müller" if program.where == "umlauts" else "home")
    home.mkdir(exist_ok=True)
    if plain(program):
        subprocess.run(["chown", "-R", USER, str(top)], check=True)
    if program.where == "read only":
        project.chmod(0o555)


def ran(argv: list[str], project: Path, top: Path, program: Ordinary) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    home = top / ("Jörg Müller" if program.where == "umlauts" else "home")
    environ |= {"HOME": str(home), "REENACT_KEY": "a key of these tests", "REENACT_STORE": str(top / "store")}
    environ["PYTEST_DEBUG_TEMPROOT"] = str(top)  # a pytest sweeps what earlier ones of its user left
    environ |= program.environ
    environ.pop("XDG_CONFIG_HOME", None)
    drop: list[str] = []
    if plain(program):
        drop = ["runuser", "-u", USER, "--"]
    return subprocess.run(
        [*drop, *argv],
        cwd=project,
        env=environ,
        input=program.stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )


def absent(program: Ordinary) -> str:
    for need in program.needs:
        if find_spec(need) is None:
            return need
    if plain(program):
        asked = ["runuser", "-u", USER, "--", DEBIANS, "-c", f"import sys; sys.exit(sys.version_info[:2] != {VERSION})"]
        if subprocess.run(asked, capture_output=True, check=False).returncode:
            return f"an interpreter of version {VERSION} that {USER} may start"
    return ""


def plain(program: Ordinary) -> bool:
    """Tell whether another user than root runs it."""
    return program.where in ("plain user", "read only") and os.getuid() == 0


def python_of(top: Path, program: Ordinary) -> str:
    """Give the interpreter that a command names; another environment is made, which sees our packages too."""
    if program.argv[0] != "{venv}" and not plain(program):
        return sys.executable
    made = top / "venv"
    subprocess.run(
        [DEBIANS if plain(program) else sys.executable, "-m", "venv", "--without-pip", str(made)], check=True
    )
    (site,) = made.glob("lib/python*/site-packages")
    packages = [path for path in sys.path if path.endswith("site-packages")]
    (site / "ours.pth").write_text("".join(f"import site; site.addsitedir({path!r})\n" for path in packages))
    return str(made / "bin" / "python")


def tried(name: str) -> tuple[str, list[str]]:
    """Record and replay one; gives a line of the table, and what is wrong."""
    program = ORDINARY[name]
    with placed(program) as (project, top):
        laid(project, top, program)
        python = python_of(top, program)
        ours = python if plain(program) else sys.executable
        argv = [python, *program.argv[1:]]
        done = ran([ours, "-m", "reenact", "run", "--", *argv], project, top, program)
        verdict = found[1] if (found := re.search(r"replayable: (\w+)", done.stderr)) else "none"
        laid(project, top, program)
        shutil.rmtree(top / "home", ignore_errors=True)
        laid(project, top, program)
        before = files(project), files(top / "home") if (top / "home").exists() else {}
        again = ran([ours, "-m", "reenact", "replay", "last"], project, top, program)
        after = files(project), files(top / "home") if (top / "home").exists() else {}
    head = again.stderr.rpartition("\nsame:")[2] if "same:" in again.stderr else again.stderr
    said = re.search(r"^(same|diverged|fixed|reproduced)(: .*)?$", again.stderr, re.MULTILINE)
    result = said[1] if said else f"code {again.returncode}"
    faults: list[str] = []
    if "copied: files" not in again.stderr:
        faults.append(f"not sealed: {head[-200:]}")
    if before != after:
        faults.append("the outside has changed")
    if result != "same":
        faults.append(f"{result}: {(said[2] if said else again.stderr[-300:]) or ''}"[:220])
    elif not program.varies and again.stdout != done.stdout:
        faults.append(f"another output: {done.stdout!r}, then {again.stdout!r}")
    row = f"{name[:46]:46} {verdict:8} {result:9} {'; '.join(faults)}"
    return row, [f"{row}\n--- recorded\n{done.stderr[-1500:]}\n--- replayed\n{again.stderr[-1500:]}"] if faults else []


@pytest.mark.slow
@pytest.mark.parametrize("name", ORDINARY)
def test_an_ordinary_program_answers_the_same_when_it_is_sealed(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    if missing := absent(ORDINARY[name]):
        pytest.skip(f"{missing} is not here")
    row, wrong = tried(name)
    record_property("row", f"ordinary         {row}")
    assert not wrong, wrong[0]
