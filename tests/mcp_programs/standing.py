"""What the tests of MCP share: a folder with a server and a client, recorded, then without its server, replayed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parent


class Place:
    """A folder with the programs of this one, and the command line."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for each in ("server.py", "client.py", "asked.py", "agent.py"):
            shutil.copy(PROGRAMS / each, folder / each)
        shutil.copy(PROGRAMS / "asked.py", folder / "served.py")
        self.effects = folder.with_name(f"{folder.name}-effects.txt")  # what others write in the folder is `partial`
        taken = ("REENACT_", "OTEL_", "PYTHON")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(taken)}
        self.environ = {**inherited, "EFFECTS": str(self.effects)}

    def reenact(self, *words: str, strace: Path | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "reenact", *words]
        if strace is not None:
            command = ["strace", "-f", "-qq", "-e", "trace=execve,connect", "-o", str(strace), *command]
        settings = {**self.environ, **environ}
        return subprocess.run(
            command, cwd=self.folder, env=settings, capture_output=True, text=True, check=False, timeout=300
        )

    def done(self) -> list[str]:
        """Say what the server did for its clients."""
        return self.effects.read_text().splitlines() if self.effects.exists() else []

    def without_server(self) -> None:
        """Take the server's files away, and what it did."""
        for each in ("server.py", "served.py"):
            (self.folder / each).unlink()
        self.effects.unlink(missing_ok=True)

    @contextmanager
    def serving(self, *words: str) -> Iterator[str]:
        """Run a server over HTTP at a port of its own, and give its address."""
        with socket.socket() as drawn:
            drawn.bind(("127.0.0.1", 0))
            port = drawn.getsockname()[1]
        log = (self.folder / "server.log").open("w")
        started = subprocess.Popen(
            [sys.executable, *words, str(port)], cwd=self.folder, env=self.environ, stdout=log, stderr=log
        )
        try:
            for _ in range(600):
                with socket.socket() as looking:
                    if looking.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            started.kill()
            started.wait()
            log.close()
