"""A warm interpreter, which runs programs in copies of itself: `python -m reenact.testing.warm_interpreter FD`.

In: orders over a Unix socket, one JSON line each. `{"modules": [...]}` has libraries be imported. Any other is a
program: its command, folder and whole environment, the order of a sealed world or null, and whether it leads a session
of its own; two open files come with it, for standard output and error. Out: for modules `{"ready": ...}`, whether the
interpreter can still be forked; for a program `{"pid": ...}` when it begins, and when it has ended
`{"code": ..., "modules": [...]}`, with the library modules that it imported beyond those that were there.

Each program runs in a fork of this process, with `__main__`, `sys.argv`, `sys.path` and the environment as a new
interpreter would have them; the agent's own modules are never loaded here. What an interpreter settles when it starts
(PYTHONHASHSEED, PYTHONPATH and its like) is settled by starting this one so. `pipeline.warm_python` is the other side.
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
import sysconfig
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
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def serve(connection: socket.socket) -> None:
    """Work through orders until the other side is gone."""
    if not sys.flags.safe_path:
        del sys.path[0]  # the folder that it was started in is none of the program's
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a key on the terminal is for the program and for who orders
    for name in _OURS:
        import_module(name)
    _warm()
    own_modules()  # who asks again in a fork finds the files judged
    while (received := _next_order(connection)) is not None:
        order, files = received
        if "modules" in order:
            for name in order["modules"]:
                with suppress(Exception):  # the program is to meet it
                    import_module(name)
            _answer(connection, {"ready": _is_alone()})
        else:
            _run(order, files, connection)


def _answer(connection: socket.socket, answer: dict[str, Any]) -> None:
    with suppress(BrokenPipeError):  # nobody is there any more to hear it
        connection.sendall(json.dumps(answer).encode() + b"\n")


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


def _next_order(connection: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    data, files, _, _ = socket.recv_fds(connection, _MOST, 2)
    while data and not data.endswith(b"\n"):
        more = connection.recv(_MOST)
        if not more:
            return None
        data += more
    return (json.loads(data), files) if data else None


def _is_alone() -> bool:
    """Tell whether this process has one thread: with more it must not be forked."""
    with suppress(OSError):
        return len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208 - names are all that is asked
    return threading.active_count() == 1


def _run(order: dict[str, Any], files: Sequence[int], connection: socket.socket) -> None:
    gc.collect()
    gc.freeze()
    bind = bound_to_us()  # the program ends where it is given up, as by a time limit: this process is then killed
    with tempfile.TemporaryFile() as names:
        child = os.fork()
        if child == 0:
            if bind is not None:
                bind()
            _become(order, files, connection, names.fileno())
        for file in files:
            os.close(file)
        _answer(connection, {"pid": child})
        code = os.waitstatus_to_exitcode(status_of(child, connection.fileno()))
        names.seek(0)
        _answer(connection, {"code": code, "modules": names.read().decode().split()})


def _become(order: dict[str, Any], files: Sequence[int], connection: socket.socket, names: int) -> NoReturn:
    """Be the program, or have a copy in a sealed world be it, from its first line to its last."""
    code, before = 70, {*sys.modules}
    try:
        connection.close()
        if order["session"]:
            os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        for number, file in enumerate(files, 1):
            os.dup2(file, number)
            os.close(file)
        coerced = {name: value for name, value in os.environ.items() if name == "LC_CTYPE"}  # PEP 538, at the start
        os.environ.clear()
        os.environ.update(coerced | order["environ"])
        time.tzset()
        if order["world"] is not None:
            launch.carry_out(order["world"], lambda answer: _sealed_program(answer, order, names, before), [names])
        code = _program(order)
    except BaseException as error:  # noqa: BLE001 - nothing of this copy may go on in the loop above
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        _finish(code, names, before)


def _sealed_program(answer: int, order: dict[str, Any], names: int, before: set[str]) -> NoReturn:
    """Be the program in a sealed world."""
    code = 70
    try:
        os.close(answer)
        os.environ.update(launch.marks())
        code = _program(order)
    except BaseException as error:  # noqa: BLE001 - nothing of this copy may go on in the loop above
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        _finish(code, names, before)


def _program(order: dict[str, Any]) -> int:
    os.chdir(order["cwd"])
    random.seed()
    return _main(order["argv"])


def _finish(code: int, names: int, before: set[str]) -> NoReturn:
    """Leave the names of the library modules that the program loaded, in their order, and end."""
    new = [
        name
        for name, module in [*sys.modules.items()]
        if name not in before and str(getattr(module, "__file__", None) or "").startswith(_LIBRARIES)
    ]
    with suppress(OSError):
        os.write(names, "\n".join(new).encode())
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
