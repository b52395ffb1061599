"""A warm interpreter for tests: `python -m reenact` and the programs that it starts, each in a fork of its own.

One server a test process has imported what a command and a recorded program import: the project's own modules, by the
warm interpreter that the pytest plugin uses (`reenact.testing.warm_interpreter`), and the SDKs. A command is a fork of
it. A program that the command starts by `subprocess` is the command's own child, as in real life: a spare, forked
before the command's first line and therefore without anything that the command did. What an interpreter does at its
start, it does after the fork: PYTHONPATH goes into `sys.path`, and `site` runs `sitecustomize`, which is the project's
hook.

What only a start from nothing settles (another interpreter, its flags, the seed of hashes, the locale, libraries that
LD_PRELOAD names) and all that a program starts by itself is started from nothing.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import inspect
import json
import os
import pkgutil
import shutil
import site
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from reenact.boundary.own_code import own_modules
from reenact.seal import launch

HASH_SEED = "0"
"""The seed of the warm interpreters. A program that has to have another one is started from nothing."""
LIMIT_S = 110.0
_MOST = 8 << 20
_SERVERS = 3
_FILES = 16
_AFTER_THE_START = frozenset({"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED"})
_LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")
_LIBRARIES = (
    "httpx",
    "httpx2",
    "openai",
    "anthropic",
    "pydantic",
    "yaml",
    "fastapi",
    "uvicorn",
    "flask",
    "_pytest.config",
    "_pytest.assertion.rewrite",
)
_NEVER = ("reenact.bootstrap.sitecustomize", "reenact.pytest_plugin", "reenact.instrumentor", "reenact.__main__")


def run(
    argv: Sequence[str],
    cwd: Path,
    environ: Mapping[str, str],
    *,
    programs: Sequence[int] = (0,),
    limit_s: float = LIMIT_S,
) -> subprocess.CompletedProcess[str] | None:
    """Run a Python program in a fork; None where it must start from nothing.

    `programs` has a number for each Python program that it may start as a fork: how many that one may start so. Raises
    `subprocess.TimeoutExpired` where it does not end.
    """
    if not _fits(argv, environ) or not _free.acquire(blocking=False):
        return None
    try:
        server = _server(environ)
        if server is None:
            return None
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, Path(os.devnull).open("rb") as nothing:
            request = {"argv": [*argv], "cwd": str(cwd), "environ": dict(environ), "programs": [*programs]}
            server.send(request, [nothing.fileno(), out.fileno(), err.fileno()])
            code = server.ended(argv, limit_s)
            out.seek(0)
            err.seek(0)
            said = [stream.read().decode().replace("\r\n", "\n") for stream in (out, err)]
        return subprocess.CompletedProcess([*argv], code, *said)
    finally:
        _free.release()


def completed(
    argv: Sequence[str],
    cwd: Path,
    environ: Mapping[str, str],
    *,
    programs: Sequence[int] = (0,),
    limit_s: float = LIMIT_S,
) -> subprocess.CompletedProcess[str]:
    """Run a program: in a fork, as `run`, where it may be one, else in a new process."""
    seeded = {"PYTHONHASHSEED": HASH_SEED, **environ}
    done = run(argv, cwd, seeded, programs=programs, limit_s=limit_s)
    if done is not None:
        return done
    null = subprocess.DEVNULL
    return subprocess.run(
        [*argv], cwd=cwd, env=dict(environ), stdin=null, capture_output=True, text=True, timeout=limit_s, check=False
    )


def close() -> None:
    """Let every warm interpreter go."""
    while _servers:
        _servers.popitem()[1].close()


def _settled(environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Give what an interpreter settles when it starts. Without a locale it takes C.UTF-8 (PEP 538)."""
    python = {name: value for name, value in environ.items() if name.startswith("PYTHON")}
    found = {name: value for name, value in python.items() if name not in _AFTER_THE_START}
    return tuple(sorted({**found, "locale": _locale(environ)}.items()))


def _locale(environ: Mapping[str, str]) -> str:
    return next((environ[name] for name in _LOCALE if environ.get(name)), "C.UTF-8")


def _fits(argv: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Tell whether a program is this interpreter's, with nothing that only a new process settles."""
    if not hasattr(os, "fork") or "LD_PRELOAD" in environ or environ.get("PYTHONHASHSEED", HASH_SEED) != HASH_SEED:
        return False
    if len(argv) < 2 or shutil.which(argv[0], path=environ.get("PATH", "")) != sys.executable:
        return False
    return len(argv) > 2 if argv[1] in {"-m", "-c"} else not argv[1].startswith("-")


class _Server:
    """One warm interpreter, seen from the tests."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair()
        kept = {name: value for name, value in environ.items() if name.startswith(("PYTHON", "LC_", "LANG", "PATH"))}
        kept = {**kept, "PYTHONHASHSEED": HASH_SEED}
        kept.pop("PYTHONPATH", None)
        null = subprocess.DEVNULL
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                env=kept,
                pass_fds=[theirs.fileno()],
                stdin=null,
                stdout=null,
            )
        self._connection = ours
        self._answers = ours.makefile("rb")

    def send(self, request: Mapping[str, Any], files: Sequence[int]) -> None:
        """Have a program run."""
        _send(self._connection, request, files)

    def ended(self, argv: Sequence[str], limit_s: float) -> int:
        """Wait for the program, and give its exit code."""
        self._connection.settimeout(limit_s)
        begun: dict[str, Any] = {}
        try:
            begun = json.loads(self._answers.readline())
            return int(json.loads(self._answers.readline())["code"])
        except BaseException as error:  # a time limit, or a key: the program goes, and its interpreter with it
            with suppress(ProcessLookupError, KeyError):
                os.kill(begun["pid"], 9)
            self._process.kill()
            if isinstance(error, TimeoutError):
                raise subprocess.TimeoutExpired([*argv], limit_s) from None
            raise

    def is_gone(self) -> bool:
        """Tell whether it can be asked no longer."""
        return self._process.poll() is not None

    def close(self) -> None:
        """Let it go: it ends when its connection does."""
        self._answers.close()
        self._connection.close()
        self._process.wait()


_servers: dict[tuple[tuple[str, str], ...], _Server] = {}
_free = threading.Lock()
"""A server runs one program at a time; who comes meanwhile starts from nothing."""


def _server(environ: Mapping[str, str]) -> _Server | None:
    key = _settled(environ)
    if key in _servers and _servers[key].is_gone():
        del _servers[key]
    if key not in _servers:
        if len(_servers) >= _SERVERS:
            return None
        if not _servers:
            atexit.register(close)
        _servers[key] = _Server(environ)
    return _servers[key]


def _send(connection: socket.socket, request: Mapping[str, Any], files: Sequence[int]) -> None:
    data = json.dumps(request).encode() + b"\n"
    sent = socket.send_fds(connection, [data], [*files])
    if sent < len(data):
        connection.sendall(data[sent:])


def _received(connection: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    data, files, _, _ = socket.recv_fds(connection, _MOST, _FILES)
    while data and not data.endswith(b"\n"):
        data += connection.recv(_MOST)
    return (json.loads(data), files) if data else None


# The server's side.


def serve(connection: socket.socket) -> None:
    """Fork for every request until the tests are gone."""
    del sys.path[0]  # the folder of this file is none of the programs'
    sys.modules.pop("sitecustomize", None)
    _import()
    own_modules()  # who asks again in a fork finds the files judged
    gc.collect()
    gc.freeze()
    while (asked := _received(connection)) is not None:
        request, files = asked
        if len(os.listdir("/proc/self/task")) != 1:  # noqa: PTH208 - names are all that is asked
            raise RuntimeError("a library has started a thread: this process must not be forked")
        copy = os.fork()
        if copy == 0:
            connection.close()
            _lend([_Spare(number) for number in request["programs"]])
            _be(request, files)
        for file in files:
            os.close(file)
        connection.sendall(json.dumps({"pid": copy}).encode() + b"\n")
        _, status = os.waitpid(copy, 0)
        connection.sendall(json.dumps({"code": os.waitstatus_to_exitcode(status)}).encode() + b"\n")


def _import() -> None:
    """Import what commands and programs do; nothing of a program's own."""
    import reenact
    from reenact.testing import warm_interpreter

    for name in warm_interpreter._OURS:
        import_module(name)
    warm_interpreter._warm()
    for module in pkgutil.walk_packages(reenact.__path__, "reenact.", onerror=lambda _: None):
        if not module.name.startswith(_NEVER):
            with suppress(ImportError):  # what needs an extra that is not installed
                import_module(module.name)
    for name in _LIBRARIES:
        with suppress(ImportError):
            import_module(name)


class _Spare:
    """A fork that waits to be a program: a child of the command, and nothing of what the command did is in it."""

    def __init__(self, programs: int) -> None:
        """Fork; it may start so many programs as forks itself."""
        from reenact.pipeline.parentage import bound_to_us

        ours, theirs = socket.socketpair()
        bind = bound_to_us()
        self.pid = os.fork()
        if self.pid == 0:
            for connection in (ours, *_connections):
                connection.close()  # else the others would wait for this one to end, too
            _connections.clear()
            asked = _received(theirs)
            theirs.close()
            if asked is None:
                os._exit(0)
            if asked[0]["bound"] and bind is not None:
                bind()
            if asked[0]["session"]:
                os.setsid()
            if asked[0].get("order") is not None:
                launch.carry_out(asked[0]["order"], lambda answer: _be_sealed(answer, programs, *asked), asked[1])
            _lend([_Spare(0) for _ in range(programs)])
            _be(*asked)
        theirs.close()
        _connections.append(ours)
        self._connection = ours

    def become(self, request: Mapping[str, Any], files: Sequence[int]) -> int:
        """Have it be a program, and give its process id."""
        _send(self._connection, request, files)
        self._connection.close()
        return self.pid


_connections: list[socket.socket] = []
"""Where the spares of this process wait."""


def _lend(spares: list[_Spare]) -> None:
    """Have `subprocess` take a spare for a program that need not start from nothing."""
    if not spares:
        return
    original: Any = subprocess.Popen._execute_child
    form = inspect.signature(original)

    def execute_child(process: Any, *given: Any) -> None:
        how = form.bind(process, *given).arguments
        args, cwd, environ = how["args"], str(Path(how["cwd"] or ".").absolute()), how["env"] or os.environ
        before = how["preexec_fn"]
        bound = getattr(before, "__module__", "") == "reenact.pipeline.parentage"  # a spare can do that by itself
        order = launch.ordered_by(args) if isinstance(args, list) else None
        if order is not None:
            args = order["argv"]
        plain = not (how["shell"] or (before and not bound) or how["executable"] or how["process_group"] != -1)
        plain = plain and isinstance(args, list) and Path(cwd).is_dir()
        fits = plain and _fits(args, environ) and _settled(environ) == _settled(_STARTED)
        spare = _taken(spares) if fits else None
        if spare is None:
            original(process, *given)
            return
        ends = [how["p2cread"], how["c2pwrite"], how["errwrite"]]
        files = [number if end == -1 else end for number, end in enumerate(ends)]
        passed = [*how["pass_fds"]]
        request = {"argv": args, "cwd": cwd, "environ": dict(environ), "files": [0, 1, 2, *passed], "bound": bound}
        request["order"] = order
        process.pid = spare.become({**request, "session": how["start_new_session"]}, [*files, *passed])
        process._child_created = True
        process._close_pipe_fds(*(how[name] for name in _PIPES))

    subprocess.Popen._execute_child = execute_child  # type: ignore[attr-defined]


def _taken(spares: list[_Spare]) -> _Spare | None:
    """Take the next spare; None where none is left. Several threads may ask at once."""
    try:
        return spares.pop()
    except IndexError:
        return None


_PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
_STARTED = dict(os.environ)


def _be_sealed(answer: int, programs: int, request: Mapping[str, Any], files: Sequence[int]) -> NoReturn:
    """Be a program in a sealed world; the spares of its children are made in it."""
    os.close(answer)
    _lend([_Spare(0) for _ in range(programs)])
    _be({**request, "environ": {**request["environ"], **launch.marks()}}, files)


def _be(request: Mapping[str, Any], files: Sequence[int]) -> NoReturn:
    """Be a program, from the start of its interpreter to its end."""
    from reenact.testing import warm_interpreter

    code = 70
    try:
        numbers = request.get("files", range(3))
        apart = [fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, 100) for file in files]  # out of the way of `numbers`
        for file in files:
            os.close(file)
        for file, number in zip(apart, numbers, strict=True):
            os.dup2(file, number)
            os.close(file)
        argv, environ = request["argv"], request["environ"]
        os.environ.clear()
        os.environ.update(environ)
        if not any(environ.get(name) for name in _LOCALE):
            os.environ["LC_CTYPE"] = "C.UTF-8"  # PEP 538
        time.tzset()
        os.chdir(request["cwd"])
        sys.dont_write_bytecode = bool(environ.get("PYTHONDONTWRITEBYTECODE"))
        sys.orig_argv = [*argv]
        sys.argv = [*argv[1:]] if argv[1] not in {"-m", "-c"} else [argv[1], *argv[3:]]
        sys.path[:0] = [part for part in environ.get("PYTHONPATH", "").split(os.pathsep) if part]
        main = types.ModuleType("__main__")
        main.__dict__.update(__builtins__=__builtins__, __annotations__={})
        sys.modules["__main__"] = main
        if argv[1] == "-m" and not hasattr(sys.modules.get(argv[2]), "__path__"):
            sys.modules.pop(argv[2], None)  # it is the program: nobody has imported it yet
        site.execsitecustomize()
        code = warm_interpreter._run_main(main, argv[1:])
    except BaseException as error:  # noqa: BLE001 - nothing of this copy may go on in the loop above
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        warm_interpreter._end(code)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
