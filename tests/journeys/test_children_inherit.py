"""What a child has of its parent (variables, folder, input, clock and chance) is asked, given back, and compared."""

from __future__ import annotations

import shutil
import sys

import pytest

from desk import Desk

BEGIN = """
import asyncio, os, pathlib, random, subprocess, time, uuid
import reenact

@reenact.tool
def note() -> int:
    return 1

def ask(*words, **options):
    done = subprocess.run(words, capture_output=True, text=True, **options)
    print(done.returncode, done.stdout)

note()
"""

UNCHANGED = {
    "asyncio leaves the input open": """
async def main():
    child = await asyncio.create_subprocess_exec(
        "sh", "-c", "echo hi; exit 3", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    print(await child.communicate(), child.returncode)

asyncio.run(main())
""",
    "the input is closed behind the end": """
child = subprocess.Popen(["sh", "-c", "echo hi; exit 3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
print(child.stdout.read(), child.wait())
child.stdin.close()
""",
    "the child of a fork draws": """
reader, writer = os.pipe()
for code in range(3):
    number = os.fork()
    if not number:
        os.write(writer, f"{uuid.uuid4()} {random.random()} {time.time()}".encode())
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]), os.read(reader, 200))
""",
    "a folder named by a dot": """
pathlib.Path("work").mkdir(exist_ok=True)
pathlib.Path("work/a.txt").write_text("a")
ask("git", "init", "-q", ".", cwd="work")
ask("git", "add", ".", cwd="work")
ask("git", "-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", "one", cwd="work")
ask("git", "status", "--porcelain", cwd="work")
""",
}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows forks no process")
@pytest.mark.parametrize("how", UNCHANGED)
def test_a_child_does_again_what_it_did(desk: Desk, how: str) -> None:
    if "git" in UNCHANGED[how] and shutil.which("git") is None:
        pytest.skip("git is not installed")
    desk.write("agent.py", BEGIN + UNCHANGED[how])
    live = desk.reenact("run", "--", "python", "agent.py")
    assert "replayable: exact" in live.stderr, live.stderr
    replay = desk.reenact("replay", "last", environ=desk.bare())
    assert (replay.returncode, replay.stdout) == (0, live.stdout), replay.stderr


INHERITED = {
    "a variable": ('os.environ["TARGET"] = "staging"\nask("sh", "-c", "echo $TARGET")\n', "arguments.env.TARGET"),
    "a folder": (
        (
            'for each in ("staging", "production"):\n    os.makedirs(each, exist_ok=True)\n'
            'os.chdir("./staging")\nask("sh", "-c", "basename $PWD")\n'
        ),
        "arguments.cwd",
    ),
}


@pytest.mark.parametrize("what", INHERITED)
def test_a_child_that_is_given_something_else_is_another_question(desk: Desk, what: str) -> None:
    code, field = INHERITED[what]
    desk.write("agent.py", BEGIN + code)
    live = desk.reenact("run", "--", "python", "agent.py")
    same = desk.reenact("replay", "last", environ=desk.bare())
    assert (same.returncode, same.stdout) == (0, live.stdout), same.stderr
    for before in ('= "staging"', "./staging"):
        code = code.replace(before, before.replace("staging", "production"))
    desk.write("agent.py", BEGIN + code)
    other = desk.reenact("replay", "last", environ=desk.bare())
    assert other.returncode == 1
    assert f'{field}: recorded "staging", replay "production"' in other.stderr


def test_blanks_within_a_line_are_shown_as_they_are(desk: Desk) -> None:
    desk.write("agent.py", BEGIN + 'print("total  7")\n')
    desk.reenact("run", "--", "python", "agent.py")
    desk.write("agent.py", BEGIN + 'print("total 7")\n')
    assert 'recorded "total  7", replay "total 7"' in desk.reenact("replay", "last", environ=desk.bare()).stderr


def test_a_socket_that_a_library_makes_while_it_is_imported_explains_nothing(desk: Desk) -> None:
    """urllib3 looks whether there is IPv6."""
    pytest.importorskip("requests")
    desk.write("agent.py", BEGIN + "import requests\nprint(3 * 4)\n")
    desk.reenact("run", "--", "python", "agent.py")
    desk.write("agent.py", BEGIN + "import requests\nprint(3 * 5)\n")
    other = desk.reenact("replay", "last", environ={**desk.bare(), "REENACT_ENFORCE": "landlock"})
    assert 'recorded "12", replay "15"' in other.stderr
