"""A program on a framework recorded, its provider gone, replayed; looked at from outside."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from frameworks.rows import Row
from outcomes.standin import standin
from outcomes.trial import free_port

LIMIT_S = 300
OURS = ("REENACT_", "OTEL_", "PYTHON", "PYTEST_", "OPENAI_", "ANTHROPIC_", "XDG_")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


@dataclass
class Told:
    """What a process of the program said when it was recorded, and of each replay."""

    out: str
    verdict: str
    why: str
    """The reasons of a verdict that is not exact."""
    results: list[str] = field(default_factory=list[str])
    outs: list[str] = field(default_factory=list[str])
    llm: int = 0
    tools: int = 0
    sections: Counter[str] = field(default_factory=Counter[str])
    """The sections of its framework, by kind."""
    outside: int = 0
    """Calls of models and tools that are in no section."""


@dataclass
class Trial:
    """What came of a row: counted at the stand-in and in the folder, and what was said of it."""

    made: int = 0
    """Requests that came to the stand-in."""
    ran: int = 0
    """Lines that the tools wrote."""
    processes: list[Told] = field(default_factory=list[Told])
    is_untouched: bool = True
    """No replay changed a file of the folder."""

    @property
    def llm(self) -> int:
        return sum(each.llm for each in self.processes)

    @property
    def tools(self) -> int:
        return sum(each.tools for each in self.processes)

    @property
    def structure(self) -> str:
        """Count the sections of all processes, by kind."""
        counts = sum((each.sections for each in self.processes), Counter[str]())
        return ", ".join(f"{number} {kind}" for kind, number in sorted(counts.items()))

    @property
    def outside(self) -> int:
        return sum(each.outside for each in self.processes)

    @property
    def verdicts(self) -> list[str]:
        return [*dict.fromkeys(each.verdict for each in self.processes)]

    @property
    def results(self) -> list[str]:
        return [*dict.fromkeys(result for each in self.processes for result in each.results)]

    @property
    def is_identical(self) -> bool:
        """Whether every replay that said `same` printed what was recorded."""
        return all(
            out == each.out
            for each in self.processes
            for result, out in zip(each.results[1:], each.outs, strict=True)  # the first is asked for JSON
            if result == "same"
        )


@dataclass(frozen=True, slots=True)
class Stage:
    """A folder of the program's, the user's home and store beside it, and where the provider is, or was."""

    top: Path
    port: int

    @property
    def folder(self) -> Path:
        return self.top / "project"

    def ran(self, *argv: str) -> Ended:
        """Run a command in the folder, as a user who has set the provider's address and nothing else."""
        given = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        address = f"http://127.0.0.1:{self.port}"
        given |= {
            "HOME": str(self.top / "home"),
            "REENACT_KEY": "a key of these tests",
            "REENACT_STORE": str(self.top / "store"),
            "OPENAI_BASE_URL": f"{address}/v1",
            "OPENAI_API_BASE": f"{address}/v1",
            "OPENAI_API_KEY": "sk-of-nobody",
            "ANTHROPIC_BASE_URL": address,
            "ANTHROPIC_API_KEY": "sk-of-nobody",
            # What libraries fetch and send by themselves stays on this machine.
            "LITELLM_MODEL_COST_MAP_URL": f"{address}/prices",
            "CREWAI_DISABLE_TELEMETRY": "true",
        }
        done = subprocess.run(
            argv,
            cwd=self.folder,
            env=given,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def reenact(self, *words: str) -> Ended:
        return self.ran(sys.executable, "-m", "reenact", *words)

    def files(self) -> dict[str, str]:
        """Give a digest of each file in the folder."""
        return {
            str(path.relative_to(self.folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts
        }


@contextmanager
def stage() -> Iterator[Stage]:
    """Lay out a user's folders."""
    with tempfile.TemporaryDirectory(prefix="framework-", dir="/var/tmp", ignore_cleanup_errors=True) as name:
        made = Stage(Path(name), free_port())
        (made.top / "home").mkdir()
        made.folder.mkdir()
        yield made


def tried(row: Row, replays: int) -> Trial:
    """Record each process of a program in turn, stop the stand-in, and replay each so often."""
    trial = Trial()
    with stage() as made:
        (made.folder / "agent.py").write_text(row.text, encoding="utf-8")
        with standin(row.answers.replace("§", str(secrets.randbelow(10**9))), made.port) as (_, script):
            for words in row.starts:
                trial.processes.append(_recorded(made, words))
            trial.made = script.asked
        runs = _runs(made)
        assert len(runs) == len(row.starts), f"{len(runs)} runs of {len(row.starts)} processes"
        effects = made.folder / "effects.txt"
        trial.ran = len(effects.read_text(encoding="utf-8").splitlines()) if effects.exists() else 0
        before = made.files()
        for run, told in zip(runs, trial.processes, strict=True):
            _look(made, run, told)
            for _ in range(replays):
                _replay(made, run, told)
        trial.is_untouched = made.files() == before
    return trial


def _recorded(made: Stage, words: tuple[str, ...]) -> Told:
    done = made.reenact("run", "--", sys.executable, "agent.py", *words)
    assert done.code == 0, done.err
    verdict = re.search(r"replayable: (\w+)(.*)", done.err)
    assert verdict is not None, done.err
    return Told(done.out, verdict[1], done.err[verdict.start() :].strip())


def _runs(made: Stage) -> list[str]:
    """Name the runs in the order in which they were recorded."""
    listed: list[dict[str, Any]] = json.loads(made.reenact("ls", "--json").out)["runs"]
    return [str(each["id"]) for each in sorted(listed, key=lambda each: str(each["started"]))]


def _look(made: Stage, run: str, told: Told) -> None:
    """Count the sections, and the calls that are in none, below whatever else they are."""
    shown: dict[str, Any] = json.loads(made.reenact("show", run, "--json").out)
    told.sections = Counter(each["kind"] for each in shown.get("sections", []))
    calls: list[dict[str, Any]] = shown["calls"]
    inside = {each["id"] for each in calls if "section" in each}
    inside |= {each["id"] for each in calls if each["parent"] in inside}
    told.outside = sum(each["kind"] in {"llm", "tool"} and each["id"] not in inside for each in calls)


def _replay(made: Stage, run: str, told: Told) -> None:
    if told.results:
        done = made.reenact("replay", run)
        result = re.search(r"^(same|diverged|unjudged|failed)\b", done.err, re.MULTILINE)
        told.results.append(result[1] if result else "nothing")
        told.outs.append(done.out)
    else:
        done = made.reenact("replay", run, "--json")
        said: dict[str, Any] = json.loads(done.out[done.out.index("{") :])
        told.results.append(str(said["result"]))
        kinds: list[dict[str, int]] = [said["answered"], said["ran_again"]]
        told.llm = sum(each.get("llm", 0) for each in kinds)
        told.tools = sum(each.get("tool", 0) for each in kinds)
    if told.results[-1] != "same":
        told.why += f"\n{done.out[:2000]}\n{done.err[:2000]}"
