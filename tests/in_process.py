"""The command line in this process: what `python -m reenact` does and prints, without a new interpreter.

A command goes through `main` itself, so that errors become sentences and exit codes as they do for a user. Folder,
environment, standard streams, module path, signal handlers, filters of warnings and modules of the user's own that the
command imported are put back. Only commands that read, and start no program, are run so; `tests/cli/test_in_process.py`
holds that each says the same in a process of its own.
"""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import sysconfig
import threading
import time
import traceback
import warnings
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from reenact import __main__ as program
from reenact.cli.main import main
from reenact.disk import user_key

STARTING = frozenset({"run", "replay", "fork", "fuzz", "promote", "collect", "demo"})
"""Commands that start programs, or stay: they are processes. All others read, and end."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_LIBRARIES = tuple(sysconfig.get_paths().values())


def fits(words: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Tell whether a command may be run here: it reads, starts no program, and needs no interpreter of its own."""
    if threading.current_thread() is not threading.main_thread() or "LD_PRELOAD" in environ:
        return False  # folder, environment and streams are the process's: another thread may not have them
    return bool(words) and words[0] not in STARTING and "--" not in words


def run(words: Sequence[str], cwd: Path, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run `reenact WORDS` with nothing on its standard input."""
    with _streams() as (out, err), _process(words, cwd, environ), _modules():
        code = _ended()
    said = [stream.getvalue().decode().replace("\r\n", "\n") for stream in (out, err)]
    return subprocess.CompletedProcess([sys.executable, "-m", "reenact", *words], code, *said)


def _ended() -> int:
    try:
        main()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xFF
        sys.stderr.write(f"{end.code}\n")
        return 1
    except BaseException:  # noqa: BLE001 - as the interpreter does at its top
        traceback.print_exc()
        return 1
    return 0


@contextmanager
def _streams() -> Generator[tuple[io.BytesIO, io.BytesIO]]:
    before = sys.stdin, sys.stdout, sys.stderr, sys.__stdout__
    out, err = _Kept(), _Kept()
    with Path(os.devnull).open() as nothing:
        sys.stdin = nothing
        sys.stdout = sys.__stdout__ = io.TextIOWrapper(out, encoding="utf-8", errors="surrogateescape")  # type: ignore[misc]
        sys.stderr = io.TextIOWrapper(err, encoding="utf-8", errors="backslashreplace", line_buffering=True)
        written = sys.stdout, sys.stderr
        try:
            yield out, err
        finally:
            for stream in written:
                if not stream.closed:
                    stream.flush()
            sys.stdin, sys.stdout, sys.stderr, sys.__stdout__ = before  # type: ignore[misc]


class _Kept(io.BytesIO):
    """What was written stays to be read when the stream around it is closed."""

    def close(self) -> None:
        """Stay open."""


@contextmanager
def _process(words: Sequence[str], cwd: Path, environ: Mapping[str, str]) -> Generator[None]:
    """Have what belongs to a process be the command's."""
    before, here, path = dict(os.environ), Path.cwd(), [*sys.path]
    argv, original, main_module = sys.argv, sys.orig_argv, sys.modules["__main__"]
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    key = user_key.key_message()
    try:
        user_key.hear("")  # a new process knows the one of its environment alone
        os.environ.clear()
        os.environ.update(environ)
        time.tzset()
        os.chdir(cwd)
        sys.path.insert(0, str(cwd))  # as `python -m` does
        sys.modules["__main__"] = program
        sys.argv = [str(program.__file__), *words]
        sys.orig_argv = [sys.executable, "-m", "reenact", *words]
        with warnings.catch_warnings():
            warnings.resetwarnings()
            yield
    finally:
        user_key.hear(key)
        os.environ.clear()
        os.environ.update(before)
        time.tzset()
        os.chdir(here)
        sys.path[:] = path
        sys.argv, sys.orig_argv, sys.modules["__main__"] = argv, original, main_module
        for number, handler in handlers.items():
            if signal.getsignal(number) is not handler:
                signal.signal(number, handler)


@contextmanager
def _modules() -> Generator[None]:
    """Forget modules of the user's own that a command imported, such as a judge: the next one may be another's."""
    before = {*sys.modules}
    try:
        yield
    finally:
        import reenact

        kept = (*_LIBRARIES, *reenact.__path__)
        for name in {*sys.modules} - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file is not None and not file.startswith(kept):
                del sys.modules[name]
