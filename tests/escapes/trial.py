"""One program recorded, its effect undone, replayed; what was said is held against what is seen from outside."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from escapes.ground import Ground

LIMIT_S = 90
LEVELS: dict[str, dict[str, str]] = {"A": {}, "B": {"REENACT_ENFORCE": "landlock"}, "C": {"REENACT_ENFORCE": "off"}}
"""What the environment of a replay says, for each level of enforcement."""
STRONG = ("copied", "enforced")

HEAD = """
import ctypes, json, os, signal, socket, struct, subprocess, sys
import reenact
where = json.load(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "where.json")))
globals().update(where)
kept, other, home, abstract = folder + "/kept.txt", folder + "/new", folder + "/home", tag
libc = ctypes.CDLL(None, use_errno=True)
said = None
def called(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
@reenact.tool
def look_up(city):
    return {"city": city, "sky": "clear"}
"""
OWN = """
if __name__ == "__main__":
    look_up("Delft")
{indented}
    print("OUTCOME", repr(said), flush=True)
    look_up("Ghent")
"""
FOUND = """
import httpx
def ask(*messages):
    tool = {{"type": "function", "function": {{"name": "act", "parameters": {{"type": "object", "properties": {{}}}}}}}}
    body = {{"model": "m-1", "messages": [{{"role": "user", "content": "Act."}}, *messages], "tools": [tool]}}
    return httpx.post(model, json=body, timeout=60).json()["choices"][0]["message"]
def act():
    global said
{indented}
    return repr(said)
TOOLS = {{"act": act}}
look_up("Delft")
wanted = ask()
(call,) = wanted["tool_calls"]
answer = TOOLS[call["function"]["name"]]()
print("OUTCOME", answer, flush=True)
ask(wanted, {{"role": "tool", "tool_call_id": call["id"], "content": answer}})
"""


@dataclass(frozen=True, slots=True)
class Probe:
    """A program that changes something outside itself."""

    code: str
    word: str
    """The kind of effect under which the result speaks of it."""
    needs: tuple[str, ...] = ()
    """Modules that it imports; the server that it talks to, as a key of `where.json`."""
    client: str = ""
    """A native client that a watched replay must name."""
    stdin: str = ""
    """What its standard input is: `file` (the user's, by `<`), `folder`, `terminal`; nothing otherwise."""
    silent: bool = False
    """Whether it must not have any effect while it is recorded either: it asks for what no user may do."""


@dataclass
class Row:
    """What came of a program at one level."""

    kind: str
    name: str
    place: str
    level: str
    verdict: str = ""
    result: str = ""
    word: str = ""
    changed: list[str] = field(default_factory=list[str])
    faults: list[str] = field(default_factory=list[str])
    said: str = ""

    def spelled(self) -> str:
        """Give it as a line of the table."""
        changed = "changed: " + ", ".join(self.changed) if self.changed else "nothing outside"
        faults = "  << " + "; ".join(self.faults) if self.faults else ""
        return (
            f"{self.kind:16} {self.name[:44]:44} {self.place:5} {self.level}  {self.verdict:8} {self.result:9} "
            f"{self.word:9} {changed}{faults}"
        )


@dataclass(frozen=True)
class Done:
    """How a command ended, and what of its process group and its terminal was seen."""

    code: int
    out: str
    err: str
    besides: dict[str, object]


@contextmanager
def neighbour() -> Iterator[subprocess.Popen[bytes]]:
    """Start a process beside the command, in the same process group, as a shell's pipeline has them."""
    process = subprocess.Popen(["sleep", "900"], process_group=0)
    try:
        yield process
    finally:
        process.kill()
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGCONT)
        process.wait()


def ran(argv: list[str], cwd: Path, ground: Ground, probe: Probe, more: dict[str, str]) -> Done:
    """Run a command as a user would, beside another process of its group."""
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith(("REENACT_", "OTEL_", "PYTHON"))
    }
    environ |= {"HOME": str(ground.folder / "home"), "REENACT_KEY": "a key of these tests", **more}
    environ |= {"PYTHONPATH": "", "TMPDIR": str(ground.folder.with_name("tmp"))}
    if probe.stdin == "terminal":
        return _at_a_terminal(argv, cwd, environ)
    given: Any = subprocess.DEVNULL
    if probe.stdin:
        place = {"file": ground.folder / "kept.txt", "folder": ground.folder}[probe.stdin]
        given = os.open(place, os.O_RDONLY)
    with neighbour() as beside, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            argv, cwd=cwd, env=environ, stdin=given, stdout=out, stderr=err, process_group=beside.pid
        )
        try:
            code = process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            code = 999
            process.kill()
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGCONT)
            process.wait()
        time.sleep(0.05)  # for what a server hears on a thread
        state = Path(f"/proc/{beside.pid}/stat").read_text().rpartition(")")[2].split()
        besides: dict[str, object] = {"neighbour": (state[0] not in "TtZX", state[16])}
        texts = _read(out), _read(err)
    if probe.stdin:
        besides["offset"] = os.lseek(given, 0, os.SEEK_CUR) if probe.stdin == "file" else 0
        os.close(given)
    return Done(code, *texts, besides)


def _at_a_terminal(argv: list[str], cwd: Path, environ: dict[str, str]) -> Done:
    import fcntl
    import pty
    import termios

    leader, follower = pty.openpty()

    def own() -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(argv, cwd=cwd, env=environ, stdin=follower, stdout=out, stderr=err, preexec_fn=own)  # noqa: PLW1509 - before any program runs
        try:
            code = process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            code = 999
            process.kill()
            process.wait()
        os.set_blocking(follower, False)
        typed = b""
        with suppress(OSError):
            typed = os.read(follower, 1000)
        mode: object = None
        with suppress(termios.error):  # another line discipline has none
            mode = termios.tcgetattr(follower)[:4], os.get_terminal_size(follower)
        texts = _read(out), _read(err)
    os.close(leader)
    os.close(follower)
    return Done(code, *texts, {"typed": typed, "mode": mode})


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def written(ground: Ground, probe: Probe, place: str) -> Path:
    """Write the program into a project of its own."""
    project = Path(tempfile.mkdtemp(prefix="project-", dir=ground.folder.parent))
    code = textwrap.dedent(probe.code)
    body = (FOUND if place == "found" else OWN).format(indented=textwrap.indent(code, "    "))
    (project / "program.py").write_text(f"{HEAD}\n{body}")
    return project


def try_out(
    ground: Ground, kind: str, name: str, probe: Probe, *, place: str = "own", levels: tuple[str, ...] = ("A", "B", "C")
) -> list[Row]:
    """Record, undo, and replay a program at each level; a row for each."""
    ground.asked, ground.trying = kind == "databases", name
    ground.reset()
    project = written(ground, probe, place)
    python = sys.executable
    before = ground.seen()
    quiet = ran(["true"], project, ground, probe, {}).besides
    done = ran([python, "-m", "reenact", "run", "--", python, "program.py"], project, ground, probe, {})
    verdict = found[1] if (found := re.search(r"replayable: (\w+)", done.err)) else "none"
    happened = _differing(before | quiet, ground.seen() | done.besides)
    outcome = _outcome(done.out)
    rows: list[Row] = []
    for level in levels:
        ground.reset()
        before = ground.seen()
        row = Row(kind, name, place, level, verdict)
        rows.append(row)
        if not happened and not probe.silent:
            row.faults.append(f"no effect when recorded: {done.err.strip()[-300:]}")
        again = ran([python, "-m", "reenact", "replay", "last", "--json"], project, ground, probe, LEVELS[level])
        row.changed = _differing(before | quiet, ground.seen() | again.besides)
        judged(row, probe, again, outcome)
    ground.reset()
    return rows


@dataclass(frozen=True)
class Told:
    """What was seen and said of a program that does many things."""

    changed: list[str]
    words: dict[str, str]
    place: str
    said: str


def together(ground: Ground, probes: list[Probe]) -> tuple[Told, Told, Told]:
    """Record one program that does what all of these do, and replay it sealed and watched."""
    tried = "\n".join(f"try:\n{textwrap.indent(each.code, '    ')}\nexcept OSError:\n    pass" for each in probes)
    ground.reset()
    probe = Probe(tried, "files")
    project = written(ground, probe, "own")
    python = sys.executable
    quiet = ran(["true"], project, ground, probe, {}).besides
    found: list[Told] = []
    for words, more in (
        (["run", "--", python, "program.py"], {}),
        (["replay", "last", "--json"], LEVELS["A"]),
        (["replay", "last", "--json"], LEVELS["C"]),
    ):
        ground.reset()
        before = ground.seen()
        done = ran([python, "-m", "reenact", *words], project, ground, probe, more)
        changed = _differing(before | quiet, ground.seen() | done.besides)
        world = json.loads(done.out).get("world") or {} if words[0] == "replay" else {}
        sealed = "sealed" if world.get("processes") == "enforced" else "watched"
        found.append(Told(changed, world, sealed, done.err))
    ground.reset()
    return found[0], found[1], found[2]


def judged(row: Row, probe: Probe, again: Done, outcome: str) -> None:
    """Hold what the replay said against what was seen."""
    row.said = again.err.strip()
    try:
        told = json.loads(again.out)
    except ValueError:
        row.result = f"code {again.code}"
        row.faults.append(f"no result: {again.err.strip()[-400:]}")
        return
    row.result = told.get("result", "?")
    world = told.get("world") or {}
    row.word = world.get(probe.word, "none")
    same = row.result == "same"
    if row.changed and row.level in "AB":
        row.faults.append("got out")
    if row.changed and row.word in STRONG:
        row.faults.append(f"happened, and the word is {row.word}")
    if row.changed and same and probe.client and probe.client not in json.dumps(world) + json.dumps(told):
        row.faults.append(f"untold: {probe.client} is not named")
    if row.changed and same and row.level == "C" and not (told.get("unwatched") or probe.stdin == "terminal"):
        row.faults.append("untold")
    is_another = probe.silent or row.kind == "machinery"  # these do on purpose in a replay what they did not before
    if row.verdict == "exact" and not same and row.level == "A" and not is_another:
        why = str(told.get("why") or json.dumps(told.get("divergences")))
        row.faults.append(f"exact, then {row.result}: {why[:400]}")
    if row.verdict == "exact" and row.result == "diverged" and row.level == "B" and not is_another:
        row.faults.append("exact, then diverged, though the world is why")
    if same and _outcome(again.err) != outcome:
        row.faults.append(f"same over another outcome: {outcome!r}, then {_outcome(again.err)!r}")


def _outcome(text: str) -> str:
    return next((line for line in text.splitlines() if line.startswith("OUTCOME")), "")


def _differing(before: dict[str, object], after: dict[str, object]) -> list[str]:
    """Name what differs; of files, which."""
    found: list[str] = []
    for name in {**before, **after}:
        one, two = before.get(name), after.get(name)
        if one == two:
            continue
        if isinstance(one, dict) and isinstance(two, dict):
            found += sorted(f"{path}" for path in {*one, *two} if one.get(path) != two.get(path))[:4]
        else:
            found.append(name)
    return found
