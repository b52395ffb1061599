"""A Python that is ready: it has imported what a program imports from libraries, and forks for each run of it.

`serve` is what that process runs. It reads one order a line on its standard input, forks, and tells pid and exit code
on its standard output. The copy becomes the program as a new interpreter would have: environment, folder, streams,
command line, start-up hook, `__main__`; at its end threads are waited for and exit handlers run, and memory is not
tidied up. No code of the program's own is imported before. What this is good for is looking: what is found is shown
again by a process that was started from nothing.
"""

from __future__ import annotations

import atexit
import builtins
import gc
import importlib
import io
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from reenact.pipeline.parentage import bound_to_us, status_of
from reenact.seal import launch

_SERVE = "from reenact.pipeline.warm_python import serve; serve()"
_START_S = 60.0
_TOLD = "REENACT_MODULES"
"""Names the file in which a program leaves the names of the library modules that it had imported at its end."""


def fits(argv: Sequence[str]) -> bool:
    """Tell whether a program can be run so: Python on a script or module, on a system that forks."""
    if not sys.platform.startswith("linux") or len(argv) < 2 or not Path(argv[0]).name.startswith("python"):
        return False
    return len(argv) > 2 if argv[1] == "-m" else not argv[1].startswith("-") and Path(argv[1]).is_file()


@dataclass(frozen=True, slots=True)
class Order:
    """A run of a program."""

    argv: Sequence[str]
    cwd: Path
    environ: Mapping[str, str]
    streams: tuple[Path, Path]
    """Where its output and its errors go."""
    world: Mapping[str, Any] | None
    """The order of a sealed world to run it in (`seal.launch`)."""

    def spelled(self) -> dict[str, Any]:
        """Spell it as JSON."""
        streams = [str(each) for each in self.streams]
        return {
            "argv": [*self.argv],
            "cwd": str(self.cwd),
            "environ": {**self.environ},
            "streams": streams,
            "world": self.world,
        }


class ReadyPython:
    """A process that forks for each run; the side that asks. One run at a time."""

    def __init__(self, python: str, environ: Mapping[str, str], modules: Sequence[str]) -> None:
        """Start it. Raises `OSError` where it cannot be started, or did not get ready."""
        variables = {name: value for name, value in environ.items() if not name.startswith("REENACT_")}
        self._process = subprocess.Popen(
            [python, "-c", _SERVE],
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,  # what is read ahead is not seen to be there
        )
        self._at_work = 0
        """The process group of the program that runs."""
        self.learn(modules)

    def learn(self, modules: Sequence[str]) -> None:
        """Have it import these. Raises `OSError`, and ends it, where it can be forked no longer."""
        self._say({"modules": [*modules]})
        if (self._hear(_START_S) or {}).get("ready") is not True:
            self.close()
            raise OSError("it did not get ready")

    def run(self, order: Order, limit_s: float) -> tuple[int, bool]:
        """Run a program; give its exit code, and whether it was ended since its time was over.

        Raises `OSError` where the process is gone.
        """
        self._say(order.spelled())
        begun = self._hear(_START_S)
        if begun is None:
            raise OSError("it does not answer")
        self._at_work = int(begun["pid"])
        try:
            return self._await_end(begun, limit_s)
        finally:
            self._at_work = 0

    def _await_end(self, begun: Mapping[str, Any], limit_s: float) -> tuple[int, bool]:
        ended, over = self._hear(limit_s), False
        if ended is None:
            over = True
            with suppress(ProcessLookupError):
                os.killpg(begun["pid"], signal.SIGKILL)
            ended = self._hear(_START_S)
        if ended is None:
            raise OSError("it does not answer")
        return int(ended["code"]), over

    def end(self) -> None:
        """End the program that runs, from another thread, and this process: then `run` raises `OSError`."""
        if self._at_work:
            with suppress(ProcessLookupError):
                os.killpg(self._at_work, signal.SIGKILL)
        self._process.kill()

    def close(self) -> None:
        """End it."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        self._process.kill()
        self._process.wait()

    def _say(self, order: Mapping[str, Any]) -> None:
        if self._process.stdin is None:
            raise OSError("it cannot be asked")
        left = memoryview(json.dumps(order).encode() + b"\n")
        while left:
            left = left[self._process.stdin.write(left) :]

    def _hear(self, limit_s: float) -> dict[str, Any] | None:
        """Read one answer; None where none comes in time, or no more."""
        stream = self._process.stdout
        if stream is None or not select.select([stream], [], [], limit_s)[0]:
            return None
        line = stream.readline()
        return json.loads(line) if line else None


def modules_told(path: Path) -> list[str]:
    """Read which library modules a program had imported, in their order."""
    try:
        return path.read_text().split("\n")
    except OSError:
        return []


def telling(path: Path) -> dict[str, str]:
    """Give the setting with which a program leaves them there."""
    return {_TOLD: str(path)}


def serve() -> None:
    """Get ready, then fork for every order."""
    orders = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    for line in orders:
        order = json.loads(line)
        if "modules" in order:
            _import(order["modules"])
            gc.freeze()
            answers.write(json.dumps({"ready": _is_alone()}).encode() + b"\n")
            continue
        bind = bound_to_us()
        copy = os.fork()
        if copy == 0:
            if bind is not None:
                bind()
            orders.close()
            answers.close()
            os._exit(_become(order))
        answers.write(json.dumps({"pid": copy}).encode() + b"\n")
        status = status_of(copy, orders.fileno())
        with suppress(BrokenPipeError):  # nobody is there any more to hear it
            answers.write(json.dumps({"code": os.waitstatus_to_exitcode(status)}).encode() + b"\n")


def _import(names: Sequence[str]) -> None:
    """Import what a program would; a module that cannot be imported by itself is the program's to meet."""
    for name in ("reenact.bootstrap.start", "reenact.pipeline.joining", *names):
        with suppress(Exception):
            importlib.import_module(name)
    with suppress(Exception):
        importlib.import_module("reenact.redact.text_redactor").compile_patterns()


def _is_alone() -> bool:
    """Tell whether this process has one thread: with more it must not be forked."""
    return len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208 - names are all that is asked


def _become(order: Mapping[str, Any]) -> int:
    """Make this copy, or a copy of it in a sealed world, the program, and run it to its end; gives its exit code."""
    os.setsid()
    for number, path, flags in zip(
        (0, 1, 2), (os.devnull, *order["streams"]), (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY), strict=True
    ):
        opened = os.open(path, flags)
        os.dup2(opened, number)
        os.close(opened)
    handle = -1
    if path := order["environ"].pop(_TOLD, ""):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)  # its folder is a copy in a sealed world
    if order["world"] is not None:
        launch.carry_out(order["world"], lambda answer: _sealed(answer, order, handle), [handle] if handle >= 0 else ())
    return _run_program(order, handle)


def _sealed(answer: int, order: Mapping[str, Any], handle: int) -> NoReturn:
    code = 70
    try:
        os.close(answer)
        order["environ"].update(launch.marks())
        code = _run_program(order, handle)
    finally:
        os._exit(code)


def _run_program(order: Mapping[str, Any], handle: int) -> int:
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environ"])
    time.tzset()
    argv: list[str] = order["argv"]
    sys.orig_argv[:] = argv
    is_module = argv[1] == "-m"
    sys.argv[:] = argv[2:] if is_module else argv[1:]
    sys.path[0] = order["cwd"] if is_module else str(Path(argv[1]).resolve().parent)
    if handle >= 0:
        atexit.register(_tell, handle)
    importlib.import_module("reenact.bootstrap.start").start()
    code = 0
    try:
        runpy._run_module_as_main(argv[2]) if is_module else _run(argv[1])  # type: ignore[attr-defined]  # noqa: SLF001 - what `os._exit` leaves out
    except SystemExit as end:
        code = _exit_code(end)
    except BaseException as error:  # noqa: BLE001 - as the interpreter does at the top of a program
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename in {__file__, runpy.__file__, "<frozen runpy>"}:
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001 - what an interpreter does at its end
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001 - what `os._exit` leaves out
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    return code & 0xFF


def _exit_code(end: SystemExit) -> int:
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    sys.stderr.write(f"{end.code}\n")
    return 1


def _run(script: str) -> None:
    """Run a script as `python script` does."""
    main = ModuleType("__main__")
    facts = {"__file__": script, "__loader__": SourceFileLoader("__main__", script), "__builtins__": builtins}
    vars(main).update(facts, __cached__=None)
    sys.modules["__main__"] = main
    with io.open_code(script) as source:
        code = compile(source.read(), script, "exec", dont_inherit=True)
    exec(code, vars(main))  # noqa: S102 - the user's own program


def _tell(handle: int) -> None:
    """Leave the names of the library modules that are imported by now, in their order."""
    libraries = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
    names = [
        name
        for name, module in [*sys.modules.items()]
        if name != "__main__" and str(getattr(module, "__file__", None) or "").startswith(libraries)
    ]
    with suppress(OSError):
        os.write(handle, "\n".join(names).encode())
