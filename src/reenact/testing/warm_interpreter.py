"""A warm interpreter, which runs programs in copies of itself: `python -m reenact.testing.warm_interpreter FD`.

In: over a Unix socket, one request at a time: the command, its folder, its whole environment, and the files that are to
be its standard output and error. Out: its process id's exit code. Each program runs in a fork of this process, with
`__main__`, `sys.argv`, `sys.path` and the environment as a new interpreter would have them; the agent's own modules are
never loaded here. What an interpreter settles when it starts (PYTHONHASHSEED, PYTHONPATH and its like) is settled by
starting this one so; `reenact.testing.warm` asks another one for other settings.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import random
import runpy
import signal
import socket
import sys
import tempfile
import threading
import time
import types
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, cast

from reenact.boundary.own_code import own_modules
from reenact.pipeline.parentage import bound_to_us, status_of
from reenact.seal import launch

_MOST = 8 << 20
_OURS = ("reenact.pipeline.joining", "reenact.bootstrap.start")
_SDKS = frozenset(
    {"openai", "anthropic", "httpx", "httpx2", "httpcore", "httpcore2", "h11", "anyio", "sniffio", "certifi", "idna"}
    | {
        "pydantic",
        "pydantic_core",
        "annotated_types",
        "typing_inspection",
        "jiter",
        "distro",
        "tqdm",
        "docstring_parser",
    }
)
"""Packages that are the same whoever imports them. What programs load of them late is loaded before the next fork."""


def serve(connection: socket.socket) -> None:
    """Run programs until the other side is gone."""
    if not sys.flags.safe_path:
        del sys.path[0]  # the folder that pytest was started in is none of the program's
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a key on the terminal is for the program and for pytest
    for name in _OURS:
        import_module(name)
    _warm()
    own_modules()  # who asks again in a fork finds the files judged
    while (asked := _received(connection)) is not None:
        request, files = asked
        for name in request["libraries"]:
            with suppress(ImportError):
                import_module(name)
        report = _run(request, files, connection) if _threads() == 1 else {"refused": "a library started a thread"}
        for file in files:
            os.close(file)
        connection.sendall(json.dumps(report).encode() + b"\n")


def _warm() -> None:
    """Load every member of our families, and what their members load when they are first used."""
    from reenact.contracts.dialect import Dialect
    from reenact.contracts.format import Format
    from reenact.contracts.integration import Integration
    from reenact.contracts.shape import Shape
    from reenact.discover import members
    from reenact.redact.text_redactor import compile_patterns

    compile_patterns()
    for family, kind in (
        ("dialects", Dialect),
        ("formats", Format),
        ("integrations", Integration),
        ("shapes", Shape),
    ):
        members(family, cast("type[Any]", kind))


def _received(connection: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    data, files, _, _ = socket.recv_fds(connection, _MOST, 2)
    while data and not data.endswith(b"\n"):
        more = connection.recv(_MOST)
        if not more:
            return None
        data += more
    return (json.loads(data), files) if data else None


def _threads() -> int:
    with suppress(OSError):
        return len(os.listdir("/proc/self/task"))  # noqa: PTH208 - one system call, before every program
    return threading.active_count()


def _run(request: dict[str, Any], files: Sequence[int], connection: socket.socket) -> dict[str, Any]:
    gc.collect()
    gc.freeze()
    bind = bound_to_us()  # the program ends where a test is given up, as by a time limit: this process is then killed
    with tempfile.TemporaryFile() as learnt:
        child = os.fork()
        if child == 0:
            if bind is not None:
                bind()
            _become(request, files, connection, learnt.fileno())
        status = status_of(child, connection.fileno())
        learnt.seek(0)
        for name in learnt.read().decode().split():
            with suppress(Exception):
                import_module(name)
    return {"exit_code": os.waitstatus_to_exitcode(status)}


def _become(request: dict[str, Any], files: Sequence[int], connection: socket.socket, learnt: int) -> NoReturn:
    """Be the program, from its first line to its last."""
    code, before = 70, {*sys.modules}
    try:
        connection.close()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        for number, file in enumerate(files, 1):
            os.dup2(file, number)
            os.close(file)
        coerced = {name: value for name, value in os.environ.items() if name == "LC_CTYPE"}  # PEP 538, at the start
        os.environ.clear()
        os.environ.update(coerced | request["environ"])
        time.tzset()
        if request["order"] is not None:
            launch.carry_out(request["order"], lambda answer: _sealed(answer, request, learnt, before), [learnt])
        os.chdir(request["cwd"])
        random.seed()
        code = _main(request["argv"])
    except BaseException as error:  # noqa: BLE001 - nothing of this copy may go on in the loop above
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        _finish(code, learnt, before)


def _sealed(answer: int, request: dict[str, Any], learnt: int, before: set[str]) -> NoReturn:
    """Be the program in a sealed world."""
    code = 70
    try:
        os.close(answer)
        os.environ.update(launch.marks())
        os.chdir(request["cwd"])
        random.seed()
        code = _main(request["argv"])
    except BaseException as error:  # noqa: BLE001 - nothing of this copy may go on in the loop above
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        _finish(code, learnt, before)


def _finish(code: int, learnt: int, before: set[str]) -> NoReturn:
    """Tell which libraries the program loaded, and end."""
    with suppress(OSError):
        new = [name for name in {*sys.modules} - before if name.partition(".")[0] in _SDKS]
        os.write(learnt, "\n".join(new).encode())
    _end(code)


def _main(argv: Sequence[str]) -> int:
    """Run the command as the interpreter does, and give its exit code."""
    from reenact.bootstrap.start import start

    sys.orig_argv = list(argv)
    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=__builtins__, __annotations__={})
    sys.modules["__main__"] = main
    start()  # what the start-up hook does before the program's first line
    return _run_main(main, list(argv[1:]))


def _run_main(main: types.ModuleType, words: list[str]) -> int:
    """Run a script, `-m MODULE` or `-c CODE`, `words` being its command line, in `main`; give its exit code."""
    try:
        if words[0] == "-m":
            sys.path.insert(0, str(Path.cwd()))
            sys.argv = ["-m", *words[2:]]
            runpy._run_module_as_main(words[1])  # type: ignore[attr-defined]  # noqa: SLF001 - what `python -m` calls
        elif words[0] == "-c":
            sys.path.insert(0, "")
            sys.argv = ["-c", *words[2:]]
            exec(compile(words[1], "<string>", "exec"), main.__dict__)  # noqa: S102 - it is `python -c`
        else:
            _script(main, words)
    except SystemExit as asked:
        return _exit_code(asked)
    except BaseException as error:  # noqa: BLE001 - as the interpreter does at its top
        trace = _of_the_program(error.__traceback__)
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 1
    return 0


def _of_the_program(trace: TracebackType | None) -> TracebackType | None:
    """Leave out the frames that only start the program."""
    ours = {__file__, runpy.__file__, "<frozen runpy>"}
    while trace is not None and trace.tb_frame.f_code.co_filename in ours:
        trace = trace.tb_next
    return trace


def _script(main: types.ModuleType, words: list[str]) -> None:
    path = words[0]
    sys.argv = words
    sys.path.insert(0, str(Path(path).resolve().parent))
    file = str(Path.cwd() / path)
    loader = SourceFileLoader("__main__", file)
    main.__dict__.update(__file__=file, __loader__=loader, __spec__=None, __cached__=None)
    code = loader.source_to_code(loader.get_data(file), file)
    exec(code, main.__dict__)  # noqa: S102 - it is `python FILE`


def _exit_code(asked: SystemExit) -> int:
    if asked.code is None:
        return 0
    if isinstance(asked.code, int):
        return asked.code & 0xFF
    sys.stderr.write(f"{asked.code}\n")
    return 1


def _end(code: int) -> NoReturn:
    """End as an interpreter does: threads, then what was registered, then what the program held, then the streams."""
    try:
        with suppress(BaseException):
            threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001 - waits for threads that are no daemons
        with suppress(BaseException):
            atexit._run_exitfuncs()  # type: ignore[attr-defined]  # noqa: SLF001 - what the interpreter calls
        with suppress(BaseException):
            vars(sys.modules["__main__"]).clear()  # files and streams that were left open close now, as they would
            gc.collect()
        for stream in (sys.stdout, sys.stderr):
            with suppress(BaseException):
                stream.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
