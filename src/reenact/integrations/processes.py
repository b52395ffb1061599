"""Child processes: `subprocess`, `asyncio`'s, `os.posix_spawn`, `os.fork`, `multiprocessing` and pools of processes.

A Python child finds where it hangs in its environment, on its process object, or on the job that it is handed; the
host of the process (`boundary.children`) takes it in there. Other programs are calls (`boundary.program_starts`).
"""

from __future__ import annotations

import _thread
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial, wraps
from pathlib import Path
from sys import _getframe  # pyright: ignore[reportPrivateUsage] - what the running code is called costs least so
from types import FrameType
from typing import Any, Final, cast

from reenact.boundary import children, door, lanes, place, task_births, touches, variables
from reenact.boundary.children import Descent, Host, Job
from reenact.boundary.forgiving import forgive
from reenact.boundary.tape import Sites, Source
from reenact.contracts.integration import Integration, PatchSet
from reenact.values import alarms

_PYTHON = re.compile(r"python[0-9.]*")
_OF_OS = {"os", "_collections_abc"}
_TAKES_ONE_MORE = {"-W", "-X", "--check-hash-based-pycs"}
_ENV = 9
"""Place of `env` among the arguments of `Popen` behind the first."""
_PASS_FDS = 15
"""The place of `pass_fds`."""
_DESCENT, _EAGER, _SENT = "_reenact_descent", "_reenact_eager", "_reenact_sent"
_WORKERS = {("multiprocessing.pool", "worker"), ("concurrent.futures.process", "_process_worker")}
"""What the processes of pools run: they do nothing of their own, their jobs hang where they were submitted."""

_CLOSED_WITHIN_S: Final = 10.0
"""So long the recording of a terminated worker may take to be closed."""
_POKE: Final = signal.SIGURG
"""Interrupts a system call of a worker that hears it, and does nothing to any other process (signal(7))."""
_POKED_EVERY_S: Final = 0.05
_send: Final = os.kill
_leaving: list[int] = []
"""This process, from when on it ends by itself."""
_children: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
"""The objects of child processes, by their process ids."""
_starting = threading.local()
"""What this thread's process object that starts carries, beside itself: it is unpickled behind the main module."""
_taken_in: list[str] = []
"""The lane that this process was taken in on before its own object came."""


def _described(name: str) -> tuple[Host, Descent] | None:
    """Say where a child hangs that is about to start; None where nobody is in charge, or we fail."""
    try:
        host = children.host()
        descent = host.descent(name) if host is not None else None
    except Exception:
        alarms.pass_on()
        return None
    return (host, descent) if host is not None and descent is not None else None


# programs


def _words(args: Any) -> list[str]:
    """Give the command line; a single string or path is a program without arguments."""
    if isinstance(args, str | bytes | os.PathLike):
        return [os.fsdecode(cast("str", args))]
    return [os.fsdecode(word) for word in cast("Sequence[str]", args)]


def program(words: Sequence[str]) -> str | None:
    """Name what a Python runs: its script, module or `-c`. None where the program is no Python."""
    if not words or not (_PYTHON.fullmatch(Path(words[0]).name) or words[0] == sys.executable):
        return None
    rest = iter(words[1:])
    for word in rest:
        if word in _TAKES_ONE_MORE:
            next(rest, None)
        elif word == "-m":
            return next(rest, "python")
        elif word == "-c" or not word.startswith("-"):
            return _steady(word)
    return "python"


def _steady(script: str) -> str:
    """Name a script; one that `tempfile` named anew is called so, since a replay finds it by its name."""
    from reenact.boundary.side_effects import temporary_paths

    path = Path(script)
    is_drawn = any(Path(each).name == path.name for each in temporary_paths())
    return f"temporary{path.suffix}" if is_drawn else path.name


def _of_program(words: Sequence[str], env: Mapping[Any, Any] | None) -> tuple[Descent, dict[str, str]] | None:
    """Give where a Python child hangs, and its environment; None for one that will not run our hook, as for others."""
    name = program(words)
    description = _described(name) if name is not None else None
    if description is None:
        return None
    environ = {os.fsdecode(key): os.fsdecode(value) for key, value in (os.environ if env is None else env).items()}
    child_environ = description[0].environment(environ, description[1])
    return (description[1], child_environ) if child_environ is not None else None


def _joins(words: Sequence[str], env: Mapping[Any, Any] | None) -> bool:
    """Tell whether a command is this Python under flags that let our start-up hook run; or is not worth a call."""
    if not words or Path(words[0]).name in touches.HARMLESS_PROGRAMS:
        return bool(words)
    from reenact.boundary.program import is_this_python
    from reenact.boundary.pythons import isolates

    if isolates(words[1:]):
        return False
    path = None if env is None else env.get("PATH")
    return is_this_python(words[0], None if path is None else os.fsdecode(path))


def _popen(original: Callable[..., None]) -> Callable[..., None]:
    @wraps(original)
    def __init__(self: Any, args: Any, *rest: Any, **kwargs: Any) -> None:  # noqa: N807 - it is that method
        child, joins = None, True
        if children.serving.get():
            _serve(original, self, args, rest, kwargs)
            return
        try:
            rest, env = _with_what_is_unseen(rest, kwargs)
            shell = rest[7] if len(rest) > 7 else kwargs.get("shell")
            joins = not shell and _joins(_words(args), env)
            child = _of_program(_words(args), env) if joins else None
        except Exception:  # arguments that are none: it will say so
            alarms.pass_on()
            child = None
        if child is not None:
            if len(rest) > _ENV:
                rest = (*rest[:_ENV], child[1], *rest[_ENV + 1 :])
            else:
                kwargs["env"] = child[1]
            vars(self)[_DESCENT] = child[0]
        if not joins and door.is_kept():
            from reenact.boundary import program_starts

            program_starts.start(
                original, self, args, {**dict(zip(program_starts.NAMES, rest, strict=False)), **kwargs}
            )
            return
        with children.starting(), _handing_on(child) as handles:  # a preexec_fn runs the hooks of os.fork
            if handles and len(rest) <= _PASS_FDS and kwargs.get("close_fds", True):
                kwargs["pass_fds"] = (*kwargs.get("pass_fds", ()), *handles)
            original(self, args, *rest, **kwargs)
        if child is not None:
            _children[self.pid] = self

    return __init__


def _with_what_is_unseen(rest: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], Any]:
    """Put what the agent's own code could not see of the environment into a child's; give the arguments, and it."""
    if len(rest) > _ENV:
        env = variables.handed_on(rest[_ENV])
        return (*rest[:_ENV], env, *rest[_ENV + 1 :]), env
    env = variables.handed_on(kwargs.get("env"))
    if env is not None:
        kwargs["env"] = env
    return rest, env


def _serve(original: Callable[..., None], popen: Any, args: Any, rest: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Start a program that serves the agent, which is no part of the run."""
    from reenact.boundary import servers  # few programs start any

    if len(rest) > _ENV:
        rest = (*rest[:_ENV], servers.environment(rest[_ENV]), *rest[_ENV + 1 :])
    else:
        kwargs["env"] = servers.environment(kwargs.get("env"))
    with children.starting():
        original(popen, args, *rest, **kwargs)


def _spawn(original: Callable[..., int]) -> Callable[..., int]:
    @wraps(original)
    def spawn(path: Any, argv: Any, env: Any, **kwargs: Any) -> int:
        joins = True
        try:
            env = variables.handed_on(env)
            words = [os.fsdecode(path), *_words(argv)[1:]]
            joins = _joins(words, env)
            child = _of_program(words, env) if joins else None
        except Exception:  # as above
            alarms.pass_on()
            child = None
        if not joins and door.is_kept():
            from reenact.boundary import program_plain

            return program_plain.posix_spawned(original, path, argv, env, kwargs)
        with _handing_on(child):
            return original(path, argv, env if child is None else child[1], **kwargs)

    return spawn


def _execute(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap what becomes another program: it gets of the environment what the agent's own code could not see."""

    @wraps(original)
    def execve(path: Any, argv: Any, env: Any) -> Any:
        try:
            env = variables.handed_on(env)
        except Exception:  # an environment that is none: it will say so
            forgive("processes.execute")
        return original(path, argv, env)

    return execve


@contextmanager
def _handing_on(child: tuple[Descent, dict[str, str]] | None) -> Generator[list[int]]:
    """Let a child inherit the descriptor that its environment names, while it starts."""
    handles = [int(child[1][children.HANDED])] if child is not None and children.HANDED in child[1] else []
    try:
        for handle in handles:
            os.set_inheritable(handle, True)
        yield handles
    finally:
        for handle in handles:
            os.close(handle)


def _left(child: Any, exit_code: int | None) -> None:
    """Tell how a child ended, once."""
    try:
        descent = cast("Descent | None", vars(child).pop(_DESCENT, None))
        host = children.host()
        if descent is not None and host is not None:
            host.left(descent, exit_code or 0, sent=_SENT in vars(child))
    except Exception:
        alarms.pass_on()
        return


def _exit_status(original: Callable[..., None]) -> Callable[..., None]:
    @wraps(original)
    def handle(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        _left(self, self.returncode)

    return handle


def _transport_exited(original: Callable[..., Any]) -> Callable[..., Any]:
    """See the children of asyncio, which are waited for elsewhere."""

    @wraps(original)
    def exited(self: Any, returncode: int) -> Any:
        if (process := getattr(self, "_proc", None)) is not None:
            _left(process, returncode)
        return original(self, returncode)

    return exited


def _sending(original: Callable[[int, int], None]) -> Callable[[int, int], None]:
    """See the signals that go to a child, whichever object of it sends them."""

    @wraps(original)
    def kill(pid: int, number: int, /) -> None:
        child = _children.get(pid) if number else None
        if child is not None:
            _note_signal(child, number)
        original(pid, number)

    return kill


def _note_signal(child: Any, number: int) -> None:
    try:
        descent = cast("Descent | None", vars(child).get(_DESCENT))
        host = children.host()
        if descent is not None and host is not None:
            vars(child)[_SENT] = True
            host.signals(descent, number)
    except Exception:
        alarms.pass_on()


# multiprocessing


def _start(original: Callable[..., None]) -> Callable[..., None]:
    @wraps(original)
    def start(self: Any) -> None:
        host = children.host()
        if host is None or getattr(self, "_popen", None) is not None:
            original(self)
            return
        target = cast("Any", vars(self).get("_target"))
        if not isinstance(self, _forking()):
            host.refuse(f"child process {lanes.label(target or type(self))!r}")
            _note_another_python()
        description = _described(lanes.label(target) if target is not None else type(self).__qualname__)
        if description is not None:
            target_name = getattr(target, "__module__", None), getattr(target, "__qualname__", None)
            vars(self)[_DESCENT], vars(self)[_EAGER] = description[1], target_name not in _WORKERS
        _starting.process = description and (description[1].spelled(), vars(self)[_EAGER])
        try:
            with children.starting():
                original(self)
        finally:
            _starting.process = None
        descent, _eager = _take_back(self)
        if descent is not None and (popen := getattr(self, "_popen", None)) is not None:
            vars(popen)[_DESCENT] = descent
            _children[popen.pid] = popen

    return start


def _note_another_python() -> None:
    """Record that `multiprocessing.set_executable` named an interpreter that cannot join. Raises a miss in a replay."""
    spawn: Any = sys.modules.get("multiprocessing.spawn")
    executable = spawn.get_executable() if spawn is not None else None
    from reenact.boundary.program import is_this_python

    if executable and not is_this_python(os.fsdecode(executable)):
        from reenact.boundary import program_plain

        program_plain.unheard("multiprocessing", [os.fsdecode(executable)], how="multiprocessing")


def _take_back(process: Any) -> tuple[Descent | None, bool]:
    """Take back what a process object carried to the other side."""
    attributes = cast("dict[str, Any]", vars(process))
    return attributes.pop(_DESCENT, None), bool(attributes.pop(_EAGER, False))


def _forking() -> Any:
    """Give the classes of processes that are copies of this one."""
    import multiprocessing.context as found

    forks: tuple[Any, ...] = (found.ForkProcess,)
    return (*forks, found.Process) if _default_method() == "fork" else forks


def _default_method() -> str:
    import multiprocessing

    return str(multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0])


def _preparation(original: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    @wraps(original)
    def get_preparation_data(*args: Any, **kwargs: Any) -> dict[str, Any]:
        data = original(*args, **kwargs)
        if (starts := getattr(_starting, "process", None)) is not None:
            data[_DESCENT], data[_EAGER] = starts
        return data

    return get_preparation_data


def _prepare(original: Callable[..., None]) -> Callable[..., None]:
    """Take a spawned process in before it imports the program's main module, which may make calls."""

    @wraps(original)
    def prepare(data: dict[str, Any]) -> None:
        try:
            descent, eager = children.read(data.pop(_DESCENT, "")), bool(data.pop(_EAGER, False))
            host = children.host()
            if host is not None and descent is not None:
                host.take_in(descent, eager=eager)
                _taken_in.append(descent.lane)
        except Exception:  # as below
            alarms.pass_on()
            original(data)
            return
        original(data)

    return prepare


def _bootstrap(original: Callable[..., int]) -> Callable[..., int]:
    @wraps(original)
    def bootstrap(self: Any, *args: Any, **kwargs: Any) -> int:
        descent, eager = _take_back(self)
        host = children.host()
        if host is not None and descent is not None:
            try:
                if descent.lane not in _taken_in:
                    host.take_in(descent, eager=eager)
            except Exception:  # the child runs, whatever becomes of us
                alarms.pass_on()
                return original(self, *args, **kwargs)
            self.run = partial(_run_told, self.run, host)
        return original(self, *args, **kwargs)

    return bootstrap


def _run_told(run: Callable[[], None], host: Host) -> None:
    _close_at_sigterm(host)
    try:
        run()
    except SystemExit:
        raise
    except BaseException as error:
        host.died_of(error)
        raise


def _close_at_sigterm(host: Host) -> None:
    """Have the recording of a worker closed when it is terminated, as pools do at the end of their `with` block.

    A handler of the program's own stays, or takes this one's place.
    """
    try:
        if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            return
        process = os.getpid()

        def close(number: int, _frame: FrameType | None) -> None:
            if os.getpid() == process:
                _thread.start_new_thread(_end_late, ())  # what was interrupted may hold a lock that closing needs
                if _leaving:  # it ends by itself, and has begun to close
                    return
                host.close(-number)
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

        signal.signal(signal.SIGTERM, close)
        if signal.getsignal(_POKE) is signal.SIG_DFL:
            signal.signal(_POKE, _wake_up)
    except Exception:  # on another thread than the first
        forgive("processes.sigterm")


def _wake_up(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: a handler that was due runs beside this one."""


def _end_late() -> None:
    time.sleep(_CLOSED_WITHIN_S)
    os.kill(os.getpid(), signal.SIGKILL)


def _poll(original: Callable[..., int | None]) -> Callable[..., int | None]:
    @wraps(original)
    def poll(self: Any, *args: Any, **kwargs: Any) -> int | None:
        code = original(self, *args, **kwargs)
        if code is not None:
            _left(self, code)
        elif _SENT in vars(self):
            _poke(self.pid)
        return code

    return poll


def _wait(original: Callable[..., int | None]) -> Callable[..., int | None]:
    """Wake a child up again and again that was sent a signal, until it has ended.

    Our handler of SIGTERM is Python's, and runs on the child's main thread. A signal that comes just before that thread
    goes into a system call, or to another thread, does not end the call (signal(7)): the handler would never run.
    """

    @wraps(original)
    def wait(self: Any, timeout: float | None = None) -> int | None:
        if _SENT not in vars(self):
            return original(self, timeout)
        left = math.inf if timeout is None else timeout
        while True:
            code = original(self, min(left, _POKED_EVERY_S))
            code = self.poll() if code is None else code  # a grandchild may hold what `wait` looks at
            left -= _POKED_EVERY_S
            if code is not None or left <= 0:
                return code

    return wait


def _poke(pid: int) -> None:
    with suppress(OSError):
        _send(pid, _POKE)


def _exit(original: Callable[[int], Any]) -> Callable[[int], Any]:
    """Close the recording of a process that ends without Python's clean-up, as those of multiprocessing do.

    It ends whatever is raised meanwhile, by a signal handler for one: a copy of its parent would go on as the parent.
    """

    @wraps(original)
    def leave(status: int) -> Any:
        try:
            host = children.host()
            if host is not None:
                _leaving.append(os.getpid())
                host.close(status)
        finally:
            original(status)

    return leave


# pools of processes


def _submit(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def submit(self: Any, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        description = _described(lanes.label(fn))
        return original(self, fn if description is None else Job(fn, description[1]), *args, **kwargs)

    return submit


def _work_item(original: Callable[..., None]) -> Callable[..., None]:
    """Tie the future to the lane of its job, before anybody can resolve it."""

    @wraps(original)
    def __init__(self: Any, future: Any, fn: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - as above
        original(self, future, fn, *args, **kwargs)
        here = place.current()
        if isinstance(fn, Job) and not (here is not None and here.whole):
            task_births.runs_elsewhere(future, fn.lane)

    return __init__


def _variable(original: Callable[..., None]) -> Callable[..., None]:
    """Hear which variables of the environment the agent's own code sets: children inherit them."""
    sites = Sites(Source(name="environment"), libraries=False)

    @wraps(original)
    def put(name: Any, value: Any) -> None:
        original(name, value)
        try:
            frame: FrameType | None = _getframe().f_back
            while frame is not None and frame.f_globals.get("__name__") in _OF_OS:
                frame = frame.f_back
            if sites.of(frame) is not None:
                children.inherits_variable(os.fsdecode(name))
        except Exception:
            forgive("processes.variable")

    return put


def _install_multiprocessing(patches: PatchSet, module: Any) -> None:
    patches.replace(module.BaseProcess, "start", _start)
    patches.replace(module.BaseProcess, "_bootstrap", _bootstrap)


def _install_spawning(patches: PatchSet, module: Any) -> None:
    patches.replace(module, "get_preparation_data", _preparation)
    patches.replace(module, "prepare", _prepare)


def _install_popen(patches: PatchSet, module: Any) -> None:
    patches.replace(module.Popen, "poll", _poll)
    if "wait" in vars(module.Popen):
        patches.replace(module.Popen, "wait", _wait)


def _install_executor(patches: PatchSet, module: Any) -> None:
    patches.replace(module.ProcessPoolExecutor, "submit", _submit)
    patches.replace(module._WorkItem, "__init__", _work_item)  # noqa: SLF001 - there is no public place to carry a context by


def _install(patches: PatchSet) -> None:
    patches.replace(subprocess.Popen, "__init__", _popen)
    patches.replace(subprocess.Popen, "_handle_exitstatus", _exit_status)
    patches.replace(os, "kill", _sending)
    patches.replace(os, "_exit", _exit)
    patches.replace(os, "execve", _execute)
    children.inherits_from_here()
    patches.replace(os, "putenv", _variable)
    for name in ("posix_spawn", "posix_spawnp"):
        if hasattr(os, name):
            patches.replace(os, name, _spawn)
    patches.when_imported(
        "asyncio.base_subprocess",
        lambda module: patches.replace(module.BaseSubprocessTransport, "_process_exited", _transport_exited),
    )
    patches.when_imported("multiprocessing.spawn", partial(_install_spawning, patches))
    patches.when_imported("multiprocessing.process", partial(_install_multiprocessing, patches))
    for name in ("multiprocessing.popen_fork", "multiprocessing.popen_forkserver"):
        patches.when_imported(name, partial(_install_popen, patches))
    for name in ("concurrent.futures.process", "loky.process_executor", "joblib.externals.loky.process_executor"):
        patches.when_imported(name, partial(_install_executor, patches))


INTEGRATION = Integration(
    name="processes",
    libraries=("subprocess", "multiprocessing", "concurrent.futures.process"),
    install=_install,
)
