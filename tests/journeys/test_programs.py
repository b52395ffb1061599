"""Programs that are no Python: what they said is recorded and given back; none of them is started again."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from desk import Desk

pytestmark = pytest.mark.sample(7)

BEGIN = """
import asyncio, os, selectors, signal, subprocess, sys, tempfile, time
from concurrent.futures import ThreadPoolExecutor, as_completed
import reenact

@reenact.tool
def note() -> int:
    return 1

note()
PIPE = subprocess.PIPE
"""

READS = {
    "run": """
done = subprocess.run(["tally", "out"], capture_output=True, text=True)
print(done.stdout, done.stderr, done.returncode, done.args)
""",
    "check_output of a shell": """
print(subprocess.check_output("tally out; tally err >&2", shell=True, stderr=subprocess.STDOUT))
""",
    "getoutput": 'print(subprocess.getoutput("tally out"), subprocess.getstatusoutput("tally out; exit 3"))',
    "communicate": """
child = subprocess.Popen(["tally", "cat"], stdin=PIPE, stdout=PIPE, stderr=PIPE)
print(child.communicate(b"given" * 50_000, timeout=20)[0][-40:], child.returncode)
""",
    "input alone": 'print(subprocess.run(["tally", "cat"], input="a\\nb\\n", stdout=PIPE, text=True).stdout)',
    "iterate": """
with subprocess.Popen(["tally", "lines"], stdout=PIPE, text=True, bufsize=1) as child:
    for line in child.stdout:
        print("line", line.strip())
print(child.returncode)
""",
    "read and readline": """
child = subprocess.Popen(["tally", "lines"], stdout=PIPE, stderr=PIPE)
print(child.stdout.readline(), child.stdout.read(2), child.stdout.read(), child.stderr.read(), child.wait())
""",
    "unbuffered": """
child = subprocess.Popen(["tally", "lines"], stdout=PIPE, bufsize=0)
print(isinstance(child.stdout, __import__("io").FileIO), child.stdout.read(3), child.stdout.readall(), child.wait())
""",
    "by descriptor": """
child = subprocess.Popen(["tally", "lines"], stdout=PIPE)
pieces = []
while piece := os.read(child.stdout.fileno(), 7):
    pieces.append(piece)
print(b"".join(pieces), child.wait())
""",
    "selectors": """
child = subprocess.Popen(["tally", "both"], stdout=PIPE, stderr=PIPE)
chosen, got = selectors.DefaultSelector(), {}
for name in ("stdout", "stderr"):
    chosen.register(getattr(child, name), selectors.EVENT_READ, name)
while chosen.get_map():
    for key, _ in chosen.select():
        piece = os.read(key.fd, 100)
        got[key.data] = got.get(key.data, b"") + piece
        if not piece:
            chosen.unregister(key.fileobj)
print(sorted(got.items()), child.wait())
""",
    "a file": """
with tempfile.TemporaryFile() as file:
    subprocess.run(["tally", "out"], stdout=file, check=True)
    file.seek(0)
    print(file.read())
""",
    "a pipe of its own": """
read, write = os.pipe()
child = subprocess.Popen(["tally", "out"], stdout=write)
os.close(write)
print(os.read(read, 100), os.read(read, 100), child.wait())
""",
    "a pipeline": """
first = subprocess.Popen(["tally", "lines"], stdout=PIPE)
second = subprocess.Popen(["sort", "-r"], stdin=first.stdout, stdout=PIPE)
first.stdout.close()
print(second.communicate()[0], first.wait())
""",
    "a dialogue": """
child = subprocess.Popen(["tally", "talk"], stdin=PIPE, stdout=PIPE, text=True)
for word in ("one", "two"):
    print(word, file=child.stdin, flush=True)
    print(child.stdout.readline().strip())
child.stdin.close()
print(child.stdout.read(), child.wait())
""",
    "a broken pipe": """
child = subprocess.Popen(["tally", "silent"], stdin=PIPE)
try:
    for _ in range(2000):
        child.stdin.write(b"y" * 1000)
except BrokenPipeError as error:
    print(error)
try:
    child.stdin.close()
except BrokenPipeError as error:
    print("closing", error)
print(child.wait())
""",
    "os.popen": 'print(os.popen("tally out").read(), os.popen("tally out; exit 2").close())',
    "os.system": 'print(os.system("tally silent; exit 3"))',
    "os.spawn": """
print(os.spawnlp(os.P_WAIT, "tally", "tally", "fail"))
print(os.waitstatus_to_exitcode(os.waitpid(os.spawnvp(os.P_NOWAIT, "tally", ["tally", "fail"]), 0)[1]))
""",
    "os.posix_spawn": """
read, write = os.pipe()
child = os.posix_spawnp("tally", ["tally", "out"], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, write, 1)])
os.close(write)
print(os.read(read, 100), os.read(read, 100), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""",
    "polls": """
child, looks = subprocess.Popen(["tally", "slow"], stdout=PIPE), 0
while child.poll() is None:
    looks += 1
    time.sleep(0.02)
print(looks, child.stdout.read())
""",
    "a timeout": """
try:
    subprocess.run(["tally", "long"], timeout=0.5, stdout=PIPE)
except subprocess.TimeoutExpired as error:
    print(error, error.output)
""",
    "signals": """
child = subprocess.Popen(["tally", "trap"], stdout=PIPE, text=True)
print(child.stdout.readline())
child.terminate()
print(child.stdout.read(), child.wait())
child = subprocess.Popen(["tally", "long"], stdout=PIPE, start_new_session=True)
child.stdout.readline()
os.killpg(child.pid, signal.SIGTERM)
print(child.wait())
""",
    "errors": """
for words in (["nosuchprogram"], ["tally", "fail"], ["tally", "die"]):
    try:
        subprocess.run(words, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(type(error), error, getattr(error, "filename", None))
""",
    "threads": """
with ThreadPoolExecutor(4) as pool:
    jobs = [pool.submit(subprocess.check_output, ["tally", "wait", f"0.{6 - 2 * number}"]) for number in range(3)]
    print([job.result() for job in as_completed(jobs)])
""",
    "temporary names": """
with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
    file.write("content")
    file.flush()
    print(subprocess.check_output(["tally", "name", file.name], text=True).replace(file.name, "(its name)"))
""",
    "a closed output": """
child = subprocess.Popen(["tally", "shut"], stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True)
print(child.stdout.read(), child.stderr.read())
print("word", file=child.stdin, flush=True)
child.stdin.close()
print(child.wait())
child = subprocess.Popen(["tally", "daemon"], stdout=PIPE, stderr=subprocess.STDOUT)
print(child.stdout.read())
child.terminate()
print(child.wait())
with subprocess.Popen(["tally", "shut"], stdin=PIPE, stdout=PIPE) as child:
    print(child.stdout.read())
child = subprocess.Popen(["tally", "out"], stdout=PIPE)
print(child.stdout.read(), os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT).si_status)
os.kill(child.pid, signal.SIGKILL)
print(child.wait())
print(os.popen("exec tally daemon").read(), os.popen("tally out; exit 2").close())
""",
    "left": 'child = subprocess.Popen(["tally", "long"], stdin=PIPE, stdout=PIPE); print(child.stdout.readline())',
    "asyncio": """
async def one(delay):
    child = await asyncio.create_subprocess_exec("tally", "wait", delay, stdout=PIPE)
    return (await child.communicate())[0]

async def main():
    child = await asyncio.create_subprocess_exec("tally", "both", stdout=PIPE, stderr=PIPE)
    print(await child.communicate(), child.returncode)
    child = await asyncio.create_subprocess_shell("tally cat; exit 3", stdin=PIPE, stdout=PIPE)
    print(await child.communicate(b"given"), child.returncode)
    child = await asyncio.create_subprocess_exec("tally", "lines", stdout=PIPE)
    print([line async for line in child.stdout], await child.wait())
    child = await asyncio.create_subprocess_exec("tally", "talk", stdin=PIPE, stdout=PIPE)
    for word in (b"one\\n", b"two\\n"):
        child.stdin.write(word)
        await child.stdin.drain()
        print(await child.stdout.readline())
    child.stdin.close()
    print(await child.wait())
    print([await done for done in asyncio.as_completed([one("0.4"), one("0.2"), one("0.0")])])
    child = await asyncio.create_subprocess_exec("tally", "long", stdout=PIPE)
    print(await child.stdout.readline())
    try:
        await asyncio.wait_for(child.wait(), 0.1)
    except asyncio.TimeoutError:
        child.kill()
    print(await child.wait())
    try:
        await asyncio.create_subprocess_exec("nosuchprogram")
    except FileNotFoundError as error:
        print(error, error.filename)

asyncio.run(main())
""",
}
"""Every way to start a program and to read it. What `tally` says is another each time."""

TALLY = """#!/bin/sh
echo "$*" >> '{counted}'
now=$(date +%s%N)
case "$1" in
    out) echo "out $now" ;;
    err) echo "err $now" ;;
    both) echo "out $now"; echo "err $now" >&2 ;;
    lines) echo "a $now"; echo "b $now"; printf 'no end' ;;
    cat) cat; echo " $now" ;;
    talk) while read -r word; do echo "$word $now"; done ;;
    silent) ;;
    fail) exit 7 ;;
    die) kill -9 $$ ;;
    slow) sleep 0.3; echo "$now" ;;
    long) echo "begun $now"; exec sleep 100 ;;
    trap) trap 'echo "ended $now"; exit 5' TERM; echo "begun $now"; while :; do sleep 0.05; done ;;
    shut) echo "$now"; exec >&- 2>&-; read -r word; exit 4 ;;
    daemon) echo "$now"; exec >&- 2>&-; exec sleep 30 ;;
    wait) sleep "$2"; echo "$2 $now" ;;
    name) echo "$2 $now"; cat "$2" ;;
esac
"""


@pytest.fixture
def tally(desk: Desk, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Put a program into PATH that counts its starts in a file outside of everything, and give that file."""
    folder = tmp_path_factory.mktemp("outside")
    counted = folder / "counted"
    counted.touch()
    program = folder / "tally"
    program.write_text(TALLY.replace("{counted}", str(counted)))
    program.chmod(0o755)
    desk.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return counted


def starts(counted: Path) -> int:
    return len(counted.read_text().splitlines())


def replayed(desk: Desk, *words: str, **environ: str) -> tuple[int, dict[str, Any], str]:
    """Replay the last run; gives the exit code, the result and what the program printed."""
    done = desk.reenact("replay", "last", "--json", *words, environ={**desk.settings(), **environ})
    return done.returncode, json.loads(done.stdout), done.stderr


@pytest.mark.sample(5)
@pytest.mark.parametrize("how", READS)
def test_a_program_is_given_back_however_it_is_started_and_read(desk: Desk, tally: Path, how: str) -> None:
    program = desk.write("agent.py", BEGIN + READS[how])
    recorded = desk.reenact("run", "--", "python", program)
    assert recorded.returncode == 0, recorded.stderr
    assert "replayable: exact" in recorded.stderr
    before = starts(tally)
    assert before or how == "a pipeline"
    code, told, printed = replayed(desk, REENACT_ENFORCE="off")  # what would be started would count for real
    assert (code, told["result"], printed) == (0, "same", recorded.stdout)
    assert told["released_out_of_order"] == []
    assert starts(tally) == before


@pytest.mark.slow
def test_all_of_them_in_a_sealed_world(desk: Desk, tally: Path) -> None:
    program = desk.write("agent.py", BEGIN + "\n".join(READS.values()))
    recorded = desk.reenact("run", "--", "python", program)
    assert "replayable: exact" in recorded.stderr
    before = starts(tally)
    code, told, printed = replayed(desk)
    assert (code, told["result"], printed) == (0, "same", recorded.stdout)
    assert told["answered"]["child"] > 30
    assert starts(tally) == before
    shown = json.loads(desk.reenact("show", "last", "--json").stdout)
    assert shown["run"]["verdict"]["grade"] == "exact"


@pytest.mark.skipif(not shutil.which("git"), reason="there is no git")
def test_git_names_the_recorded_commit_after_another_was_made(desk: Desk) -> None:
    def git(*words: str) -> str:
        named = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        done = subprocess.run(["git", *named, *words], cwd=desk.folder, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "first")
    first = git("rev-parse", "HEAD")
    program = desk.write(
        "agent.py",
        f"{BEGIN}\nprint(subprocess.check_output(['git', 'rev-parse', 'HEAD'], text=True).strip())\nprint(os.getcwd())",
    )
    recorded = desk.reenact("run", "--", "python", program)
    assert recorded.stdout.splitlines()[0] == first
    assert "(1 tool, 1 child); replayable: exact" in recorded.stderr
    git("commit", "-q", "--allow-empty", "-m", "second")
    assert replayed(desk)[::2] == (0, recorded.stdout)
    assert replayed(desk, REENACT_ENFORCE="off")[::2] == (0, recorded.stdout)
    code, told, _ = replayed(desk, "--children", "run")
    assert (code, told["result"], told["divergences"][0]["field"]) == (1, "diverged", "result.stdout")
    assert told["divergences"][0]["a"] == f"{first}\n"
    git("reset", "-q", "--hard", first)
    code, told, printed = replayed(desk, "--children", "run")
    assert (code, told["ran_again"], printed) == (0, {"child": 1}, recorded.stdout)


def test_what_a_program_is_asked_and_given_is_compared(desk: Desk, tally: Path) -> None:
    agent = BEGIN + "print(subprocess.run(['tally', 'cat'], input=WORD, capture_output=True, text=True).stdout)\n"
    desk.write("agent.py", f"WORD = 'one'{agent}")
    assert desk.reenact("run", "-q", "--", "python", "agent.py").returncode == 0
    before = starts(tally)
    for changed, field, sides in (
        (agent.replace("'cat'", "'out'"), "arguments.args[1]", ("cat", "out")),
        (f"WORD = 'two'{agent}", "stdin", ("one", "two")),
        (f"WORD = 'twelve'{agent}", "stdin", ("one", "twelve")),
    ):
        desk.write("agent.py", changed if changed.startswith("WORD") else f"WORD = 'one'{changed}")
        code, told, _ = replayed(desk, REENACT_ENFORCE="off")
        first = told["divergences"][0]
        assert (code, told["result"]) == (1, "diverged")
        assert (first["field"], first["a"], first["b"]) == (field, *sides)
    assert starts(tally) == before


@pytest.mark.usefixtures("tally")
def test_a_dialogue_that_says_something_else_diverges(desk: Desk) -> None:
    desk.write("agent.py", BEGIN + READS["a dialogue"])
    assert desk.reenact("run", "-q", "--", "python", "agent.py").returncode == 0
    desk.write("agent.py", BEGIN + READS["a dialogue"].replace('"two"', '"six"'))
    code, told, _ = replayed(desk)
    assert (code, told["result"]) == (1, "diverged")
    assert (told["divergences"][0]["field"], told["divergences"][0]["b"]) == ("stdin", "six\n")


def test_what_cannot_be_heard_is_named_and_refused(desk: Desk, tally: Path) -> None:
    desk.write(
        "agent.py",
        BEGIN
        + """
read, write = os.pipe()
child = subprocess.Popen(["tally", "out"], stdout=write)
os.close(write)
with open(read) as file:
    print(file.read(), child.wait())
""",
    )
    recorded = desk.reenact("run", "--", "python", "agent.py")
    assert "replayable: partial" in recorded.stderr
    assert "child tally #3: child: stdout went past the recorder; a replay refuses it" in recorded.stderr
    before = starts(tally)
    code, told, _ = replayed(desk, REENACT_ENFORCE="off")
    assert (code, told["result"]) == (125, "failed")
    assert starts(tally) == before


def test_a_fork_that_becomes_a_program_is_named_and_refused(desk: Desk, tally: Path) -> None:
    lines = 'if not (pid := os.fork()):\n    os.execlp("tally", "tally", "silent")\nprint(os.waitpid(pid, 0)[1])\n'
    desk.write("agent.py", BEGIN + lines)
    recorded = desk.reenact("run", "--", "python", "agent.py")
    assert "replayable: partial" in recorded.stderr
    assert "took the place of a process" in recorded.stderr
    before = starts(tally)
    code, told, _ = replayed(desk, REENACT_ENFORCE="off")
    assert (code, told["result"]) == (125, "unjudged")
    assert starts(tally) == before


@pytest.mark.parametrize("how", ["execv(sys.executable, words)", "execve(sys.executable, words, {**os.environ})"])
def test_a_program_that_takes_the_place_of_another_one_of_pythons_is_partial(desk: Desk, how: str) -> None:
    lines = f"""
import os, sys
import reenact
if os.environ.get("STAGE") != "2":
    print("one", flush=True)
    os.environ["STAGE"] = "2"
    words = [sys.executable, *sys.argv]
    os.{how}
print("two", [name for name in os.environ if "REPLACED" in name], reenact.tool(lambda: 3)())
"""
    desk.write("agent.py", lines)
    recorded = desk.reenact("run", "--", "python", "agent.py")
    assert recorded.stdout == "one\ntwo [] 3\n"
    assert "replayable: partial" in recorded.stderr
    assert "what the process did before this program took its place (os.exec)" in recorded.stderr


def test_a_program_on_a_terminal_of_its_own_is_named_and_refused(desk: Desk, tally: Path) -> None:
    """As pexpect starts it: a fork that closes each descriptor but its terminal."""
    lines = """
import pty
pid, terminal = pty.fork()
if not pid:
    os.closerange(3, 256)
    os.execlp("tally", "tally", "silent")
print(os.waitpid(pid, 0)[1])
"""
    desk.write("agent.py", BEGIN + lines)
    recorded = desk.reenact("run", "--", "python", "agent.py")
    assert "replayable: partial" in recorded.stderr
    assert "took the place of a process" in recorded.stderr
    before = starts(tally)
    code, told, _ = replayed(desk)
    assert (code, told["result"]) == (125, "unjudged")
    assert re.search(
        r"^child process '\S*tally' at \S*agent\.py:\d+ was refused, and the recorded run did it", told["why"]
    )
    assert starts(tally) == before


def test_policies_refuse_and_run(desk: Desk, tally: Path) -> None:
    desk.write("agent.py", BEGIN + "print(subprocess.run(['tally', 'fail']).returncode)\n")
    assert desk.reenact("run", "-q", "--", "python", "agent.py").stdout == "7\n"
    before = starts(tally)
    code, told, _ = replayed(desk, "--children", "refuse", REENACT_ENFORCE="off")
    assert (code, told["refused"][0]["what"]) == (125, "child process 'tally'")
    code, told, _ = replayed(desk, "--children", "run", REENACT_ENFORCE="off")
    assert code == 125
    assert "not sealed" in told["refused"][0]["hint"]
    code, told, printed = replayed(desk, "--children", "run")
    assert (code, told["result"], told["ran_again"], printed) == (0, "same", {"child": 1}, "7\n")
    assert starts(tally) == before


def test_a_python_that_cannot_join_is_given_back(desk: Desk) -> None:
    lines = "print(subprocess.check_output([sys.executable, '-I', '-c', 'import time; print(time.time_ns())']))\n"
    desk.write("agent.py", BEGIN + lines)
    recorded = desk.reenact("run", "--", "python", "agent.py")
    assert "(1 tool, 1 child); replayable: exact" in recorded.stderr
    assert replayed(desk, REENACT_ENFORCE="off")[::2] == (0, recorded.stdout)


@pytest.mark.slow
def test_a_shell_around_a_python_runs_again_with_it(desk: Desk) -> None:
    desk.write("inner.py", BEGIN + "print('inner', note())")
    desk.write(
        "agent.py", BEGIN + "print(subprocess.check_output([f'{sys.executable} inner.py'], shell=True, text=True))\n"
    )
    recorded = desk.reenact("run", "--", "python", "agent.py")
    assert "(3 tool, 1 child, 1 chain); replayable: exact" in recorded.stderr
    code, told, printed = replayed(desk)
    assert (code, told["ran_again"], told["answered"], printed) == (0, {"child": 1}, {"tool": 3}, recorded.stdout)
    desk.write("inner.py", BEGIN + "print('other', note())")
    code, told, _ = replayed(desk)
    assert (code, told["divergences"][0]["field"]) == (1, "result.stdout")


def test_what_a_tool_starts_is_the_tool_s(desk: Desk, tally: Path) -> None:
    lines = "@reenact.tool\ndef look():\n    return subprocess.check_output(['tally', 'out'])\nprint(look())\n"
    desk.write("agent.py", BEGIN + lines)
    recorded = desk.reenact("run", "--", "python", "agent.py")
    assert "(2 tool); replayable: exact" in recorded.stderr
    before = starts(tally)
    assert replayed(desk, REENACT_ENFORCE="off")[::2] == (0, recorded.stdout)
    assert starts(tally) == before


def test_too_much_is_not_kept_and_said(desk: Desk) -> None:
    desk.write("agent.py", BEGIN + "print(len(subprocess.check_output(['head', '-c', '9000000', '/dev/zero'])))\n")
    recorded = desk.reenact("run", "--", "python", "agent.py")
    assert recorded.stdout == "9000000\n"
    assert "replayable: partial" in recorded.stderr
    assert "it said more than is kept of a child" in recorded.stderr
    assert replayed(desk)[0] == 125


def test_a_program_that_makes_files_makes_them_in_the_copy_and_is_refused_where_there_is_none(desk: Desk) -> None:
    lines = """
print(subprocess.run(["sh", "-c", "echo made > made.txt; mkdir folder; echo deep > folder/deep.txt; echo done"],
                     capture_output=True))
print(open("made.txt").read(), open("folder/deep.txt").read())
with tempfile.TemporaryDirectory() as folder:
    print(os.system(f"cp agent.py {folder}/copy"), len(open(f"{folder}/copy").read()))
"""
    desk.write("agent.py", BEGIN + lines)
    recorded = desk.reenact("run", "--", "python", "agent.py")
    assert "(1 tool, 2 child); replayable: exact" in recorded.stderr
    shown = json.loads(desk.reenact("show", "last", "--json").stdout)
    changed = [call["outcome"]["returned"]["changed"] for call in shown["calls"] if call["kind"] == "child"]
    named = [(str(desk.folder / "folder"), "made"), (str(desk.folder / "made.txt"), "made")]
    assert [(each["path"], each["how"]) for each in changed[0]] == named
    assert changed[1][0]["path"] == "{temporary 1}/copy"
    before = (desk.folder / "made.txt").stat().st_mtime_ns
    code, told, printed = replayed(desk)
    assert (code, told["result"], told["ran_again"], printed) == (0, "same", {"child": 2}, recorded.stdout)
    assert (desk.folder / "made.txt").stat().st_mtime_ns == before
    code, told, _ = replayed(desk, REENACT_ENFORCE="off")
    assert (code, told["result"]) == (125, "unjudged")
    assert "made.txt" in told["refused"][0]["hint"]
    assert (desk.folder / "made.txt").stat().st_mtime_ns == before


CLONES = """
import os, subprocess, reenact

@reenact.tool
def ask(text):
    return "thanks"

if not os.path.exists("clone"):
    subprocess.run(["sh", "-c", "mkdir clone && echo one > clone/notes"], check=True)
if not os.path.exists("work"):
    os.mkdir("work")
    subprocess.run(["sh", "-c", "echo one > work/notes"], check=True)
for folder in ("clone", "work"):
    with open(f"{folder}/notes", "a") as file:
        file.write("two\\n")
    print(open(f"{folder}/notes").read(), ask(folder))
"""


def test_what_a_program_made_is_not_there_when_the_replay_begins(desk: Desk) -> None:
    program = desk.write("agent.py", CLONES)
    done = desk.reenact("run", "--", "python", program)
    assert "replayable: exact" in done.stderr, done.stderr
    code, told, printed = replayed(desk)
    assert (code, told["result"], printed) == (0, "same", done.stdout), told["divergences"]
    assert (desk.folder / "clone/notes").read_text() == "one\ntwo\n"


def test_a_program_that_changes_what_was_there_makes_the_recording_partial(desk: Desk) -> None:
    (desk.folder / "notes.txt").write_text("a\n")
    desk.write("agent.py", BEGIN + "subprocess.run(['sed', '-i', 's/a/b/', 'notes.txt'], check=True)\n")
    recorded = desk.reenact("run", "--", "python", "agent.py")
    assert "replayable: partial" in recorded.stderr
    assert "notes.txt, whose state before was not kept" in recorded.stderr


def test_a_descriptor_that_a_program_is_handed_is_not_heard(desk: Desk) -> None:
    lines = """
read, write = os.pipe()
child = subprocess.Popen(["sh", "-c", f"echo extra >&{write}"], pass_fds=(write,))
os.close(write)
print(os.read(read, 100), child.wait())
"""
    desk.write("agent.py", BEGIN + lines)
    recorded = desk.reenact("run", "--", "python", "agent.py")
    assert "a descriptor that it was handed went past the recorder" in recorded.stderr
    assert replayed(desk)[:2][0] == 125


def test_a_conversation_in_which_redaction_changed_words_makes_the_recording_partial(desk: Desk) -> None:
    """A program that is told how many bytes come, as by `git cat-file --batch`, would read on in the middle."""
    lines = """
child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdin.write(b"u@example.org\\nover\\n"); child.stdin.flush()
assert child.stdout.read(19).endswith(b"over\\n")
child.stdin.write(b"again\\n"); child.stdin.close()
assert child.stdout.read() == b"again\\n" and child.wait() == 0
"""
    desk.write("agent.py", BEGIN + lines)
    recorded = desk.reenact("run", "--", "python", "agent.py")
    assert "replayable: partial" in recorded.stderr
    assert "child: what it said word for word, since redaction changed some" in recorded.stderr


FORKS = """
import os, sys
import reenact

@reenact.tool
def hand(what: str) -> str:
    return what

hand("a")
if os.fork() == 0:
    os.closerange(3, 4096)
    try:
        os.execv(sys.executable, [sys.executable, "-c", "print('child', flush=True)"])
    finally:
        os._exit(3)
print(os.wait()[1])
hand("b")
"""


def test_a_fork_that_closes_all_and_becomes_another_python_is_said_and_not_judged(desk: Desk) -> None:
    desk.write("agent.py", FORKS)
    recorded = desk.reenact("run", "--", "python", "agent.py")
    assert "replayable: partial" in recorded.stderr, recorded.stderr
    assert "took the place of a process (os.exec) went past the recorder" in recorded.stderr
    done = desk.reenact("replay", "last", "--json")
    assert (done.returncode, json.loads(done.stdout)["result"]) == (125, "unjudged"), done.stderr
    assert "Bad file descriptor" not in done.stderr


ON_A_TERMINAL = """
import os, pty, subprocess
import reenact

@reenact.tool
def price(item): return len(item)

leader, follower = pty.openpty()
process = subprocess.Popen(["echo", "hello"], stdout=follower)
os.close(follower)
process.wait()
print(price("tea"), os.read(leader, 100))
"""


def test_a_program_on_a_terminal_of_the_agent_s_own_is_told_to_be_lost(desk: Desk) -> None:
    desk.write("agent.py", ON_A_TERMINAL)
    live = desk.reenact("run", "--", "python", "agent.py")
    assert "replayable: partial" in live.stderr
    assert "child: stdout went past the recorder; a replay refuses it" in live.stderr


SETTINGS = """
import os
import reenact

@reenact.tool
def price(item): return len(item)

print(price(os.environ["ITEM"]), os.environ.get("MODE"), "SHOP_TOKEN" in os.environ)
"""
SCRIPT = """
export ITEM=coffee MODE=fast SHOP_TOKEN=abcdef1234567890xyz
"{python}" agent.py
"""


@pytest.mark.parametrize("command", [("env", "ITEM=tea", "MODE=slow", sys.executable, "agent.py"), ("sh", "run.sh")])
def test_a_replay_sets_the_variables_that_the_command_had_set(desk: Desk, command: tuple[str, ...]) -> None:
    desk.write("agent.py", SETTINGS)
    desk.write("run.sh", SCRIPT.format(python=sys.executable))
    live = desk.reenact("run", "--", *command)
    assert "replayable: exact" in live.stderr
    for present in ({}, {"MODE": "another"}):
        again = desk.reenact("replay", "last", environ=desk.settings() | present)
        assert (again.returncode, again.stdout) == (0, live.stdout), again.stderr
    kept = [path for path in desk.folder.rglob("*") if path.is_file() and path.name != "run.sh"]
    assert any(b"set_by_command" in path.read_bytes() for path in kept)
    assert not any(b"abcdef1234567890xyz" in path.read_bytes() for path in kept)
