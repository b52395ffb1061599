"""A program recorded, its provider gone, replayed as it was and with its bug."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from outcomes.programs import Program
from outcomes.standin import standin

LIMIT_S = 120
OURS = ("REENACT_", "OTEL_", "PYTHON", "PYTEST_", "OPENAI_", "ANTHROPIC_")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    code: int
    out: bytes
    err: str

    @property
    def said(self) -> str:
        """The word of a replay, with its reason; nothing if there is none."""
        found = re.search(r"^(same|diverged|fixed|reproduced|unjudged|failed)\b.*", self.err, re.MULTILINE)
        return found[0] if found else ""


@dataclass
class Stage:
    """A project's folder, the user's home and store beside it, and where the provider is, or was."""

    top: Path
    program: Program
    port: int
    asked: int = 0
    answers: list[tuple[int, bytes, dict[str, str]]] = field(default_factory=list[tuple[int, bytes, dict[str, str]]])

    @property
    def project(self) -> Path:
        return self.top / "project"

    def environ(self) -> dict[str, str]:
        """Give the environment of a user who has set the provider's address, and nothing else."""
        given = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        given.pop("XDG_CONFIG_HOME", None)
        address = f"http://127.0.0.1:{self.port}"
        return given | {
            "HOME": str(self.top / "home"),
            "REENACT_KEY": "a key of these tests",
            "REENACT_STORE": str(self.top / "store"),
            "OPENAI_BASE_URL": f"{address}/v1",
            "OPENAI_API_KEY": "sk-of-nobody",
            "ANTHROPIC_BASE_URL": address,
            "ANTHROPIC_API_KEY": "sk-of-nobody",
            "STANDIN": address,
        }

    def ran(self, argv: list[str], cwd: Path | None = None, stdin: str | None = None) -> Ended:
        """Run a command in the project."""
        given = self.program.stdin if stdin is None else stdin
        done = subprocess.run(
            argv,
            cwd=cwd or self.project,
            env=self.environ(),
            input=given.encode(),
            capture_output=True,
            check=False,
            timeout=LIMIT_S,
        )
        return Ended(done.returncode, done.stdout, done.stderr.decode(errors="replace"))

    def live(self, before: list[str], cwd: Path) -> Ended:
        """Run the program, or the service and what is asked of it, while the provider is there."""
        python = sys.executable
        with standin(self.program.answers, self.port) as (_, script):
            if self.program.serve:
                ended = self._served(before, cwd)
            else:
                ended = self.ran([*before, python, *self.program.argv], cwd)
        self.asked = script.asked
        return ended

    def _served(self, before: list[str], cwd: Path) -> Ended:
        port = free_port()
        words = [word.format(port=port) for word in self.program.serve]
        if words[0] == "uvicorn":
            words += ["--port", str(port)]
        with tempfile.TemporaryFile() as out:
            process = subprocess.Popen(
                [*before, sys.executable, *([] if words[0].endswith(".py") else ["-m"]), *words],
                cwd=cwd,
                env=self.environ(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                preexec_fn=_hears_interrupts,  # noqa: PLW1509 - before any program runs
            )
            try:
                wait_for(port)
                self.answers = [asked(port, each) for each in self.program.asks]
            finally:
                process.send_signal(signal.SIGINT)
                code = process.wait(LIMIT_S)
            out.seek(0)
            text = out.read()
        return Ended(code, b"", text.decode(errors="replace"))

    def reenact(self, *words: str) -> Ended:
        """Run a command of ours, with nobody at the keyboard."""
        return self.ran([sys.executable, "-m", "reenact", *words], stdin="")

    def recorded(self) -> tuple[Ended, str, str]:
        """Record it; gives how it ended, the verdict, and what is to be replayed."""
        done = self.live([sys.executable, "-m", "reenact", "run", "--"], self.project)
        verdict = found[1] if (found := re.search(r"replayable: (\w+)", done.err)) else "none"
        if not self.program.serve:
            return done, verdict, "last"
        listed = json.loads(self.reenact("ls", "--json").out)["runs"]
        units = [each for each in listed if each["name"].startswith(("GET", "POST"))]
        return done, units[0]["verdict"], units[0]["id"]  # the newest

    def plainly(self, *, wrong: bool) -> tuple[Ended, dict[str, bytes]]:
        """Run it without us, in a folder of its own; gives also what it wrote there."""
        folder = self.top / ("wrong" if wrong else "plain") / "project"
        shutil.rmtree(folder.parent, ignore_errors=True)
        folder.mkdir(parents=True)
        self.program.laid(folder, wrong=wrong)
        ended = self.live([], folder)
        own = {path for path in self.program.files if path.endswith(".py")}
        written = {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts and str(path.relative_to(folder)) not in own
        }
        return ended, written


def _hears_interrupts() -> None:
    """A job that a shell has put into the background ignores them, and hands that on."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def stage(program: Program) -> Iterator[Stage]:
    """Lay out a project."""
    with tempfile.TemporaryDirectory(prefix="outcome-", dir="/var/tmp", ignore_cleanup_errors=True) as name:
        made = Stage(Path(name), program, free_port())
        (made.top / "home").mkdir()
        made.project.mkdir()
        program.laid(made.project)
        yield made


def free_port() -> int:
    """Give a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def wait_for(port: int) -> None:
    """Wait until somebody listens there."""
    until = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


class _Stays(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Follow nobody."""


def asked(port: int, line: str) -> tuple[int, bytes, dict[str, str]]:
    """Ask a service: `METHOD PATH [JSON]`; gives status, body and headers."""
    method, path, *body = line.split(" ", 2)
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}",
        data=body[0].encode() if body else None,
        method=method,
        headers={"Content-Type": "application/json"} if body else {},
    )
    try:
        with urllib.request.build_opener(_Stays).open(request, timeout=60) as reply:
            return reply.status, reply.read(), {key.lower(): value for key, value in reply.headers.items()}
    except urllib.error.HTTPError as error:
        return error.code, error.read(), {key.lower(): value for key, value in error.headers.items()}
