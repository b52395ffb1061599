"""Starting a program in a new process."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from reenact.errors import CannotJudge
from reenact.pipeline.parentage import bound_to_us
from reenact.pipeline.replaying import Start


def spawned(
    argv: Sequence[str], cwd: Path, environ: Mapping[str, str], stdout: IO[bytes], stderr: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start a program. Raises `CannotJudge` where that cannot be done."""
    try:
        return subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            preexec_fn=bound_to_us(),  # noqa: PLW1509 - it does two system calls
        )
    except OSError as error:
        raise CannotJudge(f"cannot start {argv[0]!r}: {error.strerror}", hint="name a program that exists") from error


def new_process(stdout: IO[bytes], stderr: IO[bytes]) -> Start:
    """Make what runs a program in a new process, its output in two files."""

    def start(argv: Sequence[str], cwd: Path, environ: Mapping[str, str]) -> int:
        return spawned(argv, cwd, environ, stdout, stderr).wait()

    return start
