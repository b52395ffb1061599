"""What the command line costs before it does anything: processor time and imports of each command, beside a floor.

A part of `make bench`. Each command is a process of its own, in turn, round after round; what counts is the processor
time, user and system, of it and of the processes that it started and waited for (`os.wait4`). The floor is Python with
click and rich imported; `run` and `replay` are measured on a script of three chat calls to a provider on loopback, and
that script alone stands beside them. Modules of ours are counted in one more run of each, whose times do not count, by
what `PYTHONPROFILEIMPORTTIME` makes every process say of its imports.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from figures import Figure, table

_SCRIPT = """
import os

import openai

import reenact


@reenact.tool
def look_up(line):
    return {"line": line, "agrees": line % 2 == 0}


client = openai.OpenAI(base_url=os.environ["BENCH_URL"], api_key="sk-none", max_retries=0)
messages = [{"role": "system", "content": "You check invoices."}]
for line in range(3):
    messages.append({"role": "user", "content": f"Line {line}: {look_up(line)}. Does it agree?"})
    reply = client.chat.completions.create(model="bench-1", messages=messages)
    messages.append({"role": "assistant", "content": reply.choices[0].message.content})
print(len(messages))
"""
_OURS = re.compile(rb"^import time:.*\| +(reenact(?:\.[\w.]+)?)\s*$", re.MULTILINE)
_FLOOR, _ALONE = "floor: python, click, rich", "the script alone"


@dataclass(frozen=True, slots=True)
class _Desk:
    """A folder with the script, a store that holds a recording of it, and the recording as a file."""

    folder: Path
    environ: dict[str, str]

    def commands(self) -> dict[str, list[str]]:
        """Name what is measured, the floor first."""
        python = sys.executable
        ours = [python, "-m", "reenact"]
        return {
            _FLOOR: [python, "-c", "import click, rich"],
            "import reenact": [python, "-c", "import reenact"],
            "reenact --help": [*ours, "--help"],
            "reenact ls": [*ours, "ls"],
            "reenact show last": [*ours, "show", "last"],
            "reenact doctor FILE": [*ours, "doctor", "recorded.jsonl"],
            _ALONE: [python, "script.py"],
            "reenact run -- script": [*ours, "run", "--store", "second", "--", python, "script.py"],
            "reenact replay last": [*ours, "replay", "last"],
        }

    def run(self, command: list[str], **more: str) -> tuple[float, bytes]:
        """Run a command to its end; give the seconds of processor time, and what it said on stderr."""
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=self.environ | more,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
            )
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            said.seek(0)
            told = said.read()
        if process.returncode:
            sys.exit(f"{' '.join(command)} failed:\n{told.decode(errors='replace')}")
        return used.ru_utime + used.ru_stime, told


def _desk(folder: Path, port: str) -> _Desk:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "REENACT_"))}
    desk = _Desk(folder, environ | {"BENCH_URL": f"http://127.0.0.1:{port}/v1"})
    (folder / "script.py").write_text(_SCRIPT, encoding="utf-8")
    desk.run([sys.executable, "-m", "reenact", "run", "--", sys.executable, "script.py"])
    desk.run([sys.executable, "-m", "reenact", "export", "last", "-o", "recorded.jsonl"])
    return desk


def measured(rounds: int, serving: Callable[[str], AbstractContextManager[str]]) -> dict[str, dict[str, Any]]:
    """Run every command in turn, round after round, and count the modules of ours that each imports."""
    with serving("provider") as port, tempfile.TemporaryDirectory(prefix="reenact-starting-") as folder:
        desk = _desk(Path(folder), port)
        commands = desk.commands()
        for command in commands.values():  # whatever is cached for later is cached now
            desk.run(command)
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for number in range(rounds):
            sys.stderr.write(f"\rround {number + 1} of {rounds}: starting      ")
            for name, command in commands.items():
                seconds[name].append(desk.run(command)[0])
        sys.stderr.write("\r" + " " * 60 + "\r")
        modules = {
            name: len(_OURS.findall(desk.run(command, PYTHONPROFILEIMPORTTIME="1")[1]))
            for name, command in commands.items()
        }
    figures = {name: Figure.of(values) for name, values in seconds.items()}
    floor, alone = figures[_FLOOR].median, figures[_ALONE].median
    return {
        name: {
            "seconds": figure.json(),
            "of_the_floor": round(figure.median / floor, 2),
            "over_the_script_s": round(figure.median - alone, 3),
            "modules": modules[name],
        }
        for name, figure in figures.items()
    }


def laid_out(found: dict[str, dict[str, Any]]) -> str:
    """Lay the figures out."""
    rows: list[list[str]] = []
    for name, each in found.items():
        figure = Figure(**each["seconds"])
        over = f"{each['over_the_script_s']:+.2f}" if name.startswith(("reenact run", "reenact replay")) else ""
        rows.append([name, figure.shown(3), f"{each['of_the_floor']:.1f}", over, str(each["modules"])])
    head = ["processor s, median (quartiles)", "user + system", "of the floor", "over the script", "modules of ours"]
    return table(head, rows)
