"""A replay that Landlock seals: in a copy of the working folder, which has another path that Python code never sees."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from desk import Desk
from reenact.values.effects import COPIED_IN, EFFECTS, Seal

pytestmark = pytest.mark.sample(2)

PROGRAM = """
import ctypes, os, subprocess, sys, traceback
from pathlib import Path
import reenact
import beside

libc = ctypes.CDLL(None, use_errno=True)

@reenact.tool
def look_up(item):
    return f"{item} is there"

print(look_up("tea"))
print(os.getcwd(), os.environ["PWD"], __file__, sys.path[0], sys.argv[0], beside.__file__, Path("x").resolve())
print(sorted(entry.path for entry in os.scandir(os.getcwd()) if entry.name.endswith(".py")))
for name in (b"report.txt", os.fsencode(Path("report.txt").absolute())):
    file = libc.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    print(libc.write(file, b"a line\\n", 7) if file >= 0 else os.strerror(ctypes.get_errno()), file=sys.stderr)
print(subprocess.run([sys.executable, "beside.py"], capture_output=True, text=True).stdout)
try:
    1 / 0
except ZeroDivisionError:
    traceback.print_exc(file=sys.stdout)
"""
BESIDE = "import os, sys; print(os.getcwd(), __file__, sys.path[0])"
NO_NAMESPACES = [sys.executable, str(Path(__file__).parents[1] / "seal" / "no_namespaces.py")]


@pytest.fixture
def project(desk: Desk) -> Desk:
    desk.write("beside.py", BESIDE)
    desk.write("agent.py", PROGRAM)
    done = desk.reenact("run", "-q", "--", "python", "agent.py")
    assert done.returncode == 0, done.stderr
    assert (desk.folder / "report.txt").read_text() == "a line\n" * 2
    (desk.folder / "report.txt").write_text("kept\n")
    return desk


def sealed(said: dict[str, object]) -> dict[str, object]:
    world = said["world"]
    assert isinstance(world, dict)
    if COPIED_IN not in world:
        pytest.skip("no cell can be made here: tests/seal says why")
    return world


@pytest.mark.slow
@pytest.mark.parametrize("cold", [False, True])
def test_a_program_sees_the_paths_of_the_original(project: Desk, cold: bool) -> None:  # noqa: FBT001 - a parameter
    printed = project.reenact("run", "-q", "--", "python", "agent.py").stdout
    (project.folder / "report.txt").write_text("kept\n")
    environ = {**os.environ, "REENACT_ENFORCE": "landlock"}
    done = project.reenact("replay", "last", "--outcome", "structure", environ=environ, cold=cold)
    sealed(json.loads(project.reenact("replay", "last", "--json", environ=environ).stdout))
    assert done.stdout == printed
    assert str(project.folder / "agent.py") in done.stdout
    assert "7\nPermission denied\n" in done.stderr, "by its whole path native code is refused"
    assert done.returncode == 0, done.stderr
    assert (project.folder / "report.txt").read_text() == "kept\n", "the original was written to"
    told = f"copied: files in {project.folder}; enforced: files elsewhere, {', '.join(EFFECTS[1:])}\n"
    assert told in done.stderr


@pytest.mark.slow
def test_a_program_that_a_shell_starts_sees_them_too(project: Desk) -> None:
    project.write("run.sh", f"echo first; {sys.executable} agent.py 2> /dev/null | tail -n +2; echo last > made.txt")
    command = ("--", "sh", "run.sh")
    printed = project.reenact("run", "-q", *command).stdout
    (project.folder / "made.txt").unlink()
    environ = {**os.environ, "REENACT_ENFORCE": "landlock"}
    said = json.loads(
        project.reenact("replay", "last", "--json", "--outcome", "structure", *command, environ=environ).stdout
    )
    sealed(said)
    assert said["result"] == "same"
    done = project.reenact("replay", "last", *command, environ=environ)
    assert done.stdout == printed
    assert not (project.folder / "made.txt").exists()


def test_where_namespaces_are_refused_landlock_is_tried_next(project: Desk) -> None:
    command = [*NO_NAMESPACES, sys.executable, "-m", "reenact", "replay", "last", "--json"]
    done = subprocess.run(
        command, env=project.settings(), cwd=project.folder, capture_output=True, text=True, check=False
    )
    world = sealed(json.loads(done.stdout))
    assert world == {**dict.fromkeys(EFFECTS, Seal.ENFORCED), COPIED_IN: str(project.folder)}
    assert (project.folder / "report.txt").read_text() == "kept\n"


@pytest.mark.slow
def test_a_folder_that_is_too_large_is_watched(project: Desk) -> None:
    environ = {**os.environ, "REENACT_ENFORCE": "landlock", "REENACT_COPY_FILES": "1"}
    said = json.loads(project.reenact("replay", "last", "--json", environ=environ).stdout)
    assert said["result"] == "same"
    assert said["world"]["files"] == Seal.WATCHED


@pytest.mark.slow
@pytest.mark.parametrize(("variable", "value"), [("REENACT_ENFORCE", "strictly"), ("REENACT_COPY_MB", "many")])
def test_a_setting_that_nobody_knows_is_told(project: Desk, variable: str, value: str) -> None:
    done = project.reenact("replay", "last", environ={**os.environ, variable: value})
    assert done.returncode == 2
    assert f"{variable}={value}" in done.stderr


ANOTHER_WORLD = """
import os, tempfile
import reenact

@reenact.tool
def look_up(item):
    return f"{item} is there"

print(look_up("tea"))
child = os.fork()
if child == 0:
    while True:
        os.read(0, 1)
try:
    for process in (child, LIVES):
        os.kill(process, 0)
    print("it lives")
except OSError:
    print("it is gone" if process != child else "the child is gone")
os.kill(child, 9)
os.wait()
print(os.environ.get("TMPDIR", tempfile.gettempdir()) if TELLS else "")
"""


@pytest.mark.parametrize(
    ("level", "lives", "tells", "why"),
    [
        ("namespaces", "os.getpid()", "True", ""),
        ("namespaces", str(os.getpid()), "False", f"signal 0 to process {os.getpid()} at "),
        ("landlock", "os.getpid()", "True", "the temporary folder has another name in this world"),
    ],
    ids=["own processes", "another process", "the temporary folder"],
)
def test_what_differs_since_another_world_answers_otherwise_says_nothing_of_the_program(
    desk: Desk, level: str, lives: str, tells: str, why: str
) -> None:
    desk.write("agent.py", ANOTHER_WORLD.replace("LIVES", lives).replace("TELLS", tells))
    first = desk.reenact("run", "--", "python", "agent.py")
    assert "it lives" in first.stdout, first.stderr
    assert "replayable: exact" in first.stderr
    done = desk.reenact("replay", "last", "--json", environ={**desk.settings(), "REENACT_ENFORCE": level})
    said = json.loads(done.stdout)
    if said["level"] != level:
        pytest.skip(f"no world of {level} can be made here: tests/seal says why")
    assert said["result"] == ("unjudged" if why else "same"), done.stderr
    assert (said["why"] or "").startswith(why)


SILENT = """
import ctypes, os
import reenact

look_up = reenact.tool(lambda item: item)
print(look_up("tea"))
place = os.path.join(os.environ["OUTSIDE"], "AKIAQ7XJ2LMN5PRS4TUV.txt")
print(ctypes.CDLL(None).open(os.fsencode(place), os.O_WRONLY | os.O_CREAT, 0o600) >= 0)
"""


@pytest.mark.slow
def test_a_refusal_that_native_code_keeps_to_itself_is_why_and_its_path_is_redacted(desk: Desk, tmp_path: Path) -> None:
    (outside := tmp_path / "outside").mkdir()
    program = desk.write("silent.py", SILENT)
    environ = {**os.environ, "OUTSIDE": str(outside)}
    recorded = desk.reenact("run", "--", "python", program, environ=environ, cold=True)
    assert recorded.stdout == "tea\nTrue\n", recorded.stderr
    (made,) = outside.iterdir()
    made.unlink()
    done = desk.reenact("replay", "last", "--json", environ={**environ, "REENACT_ENFORCE": "landlock"}, cold=True)
    said = json.loads(done.stdout)
    sealed(said)
    assert said["result"] == "unjudged", said
    assert f"open {outside}" in said["why"]
    assert "to be written (a system call of " in said["why"]
    assert "AKIAQ7XJ2LMN5PRS4TUV" not in done.stdout
    assert [*outside.iterdir()] == []
