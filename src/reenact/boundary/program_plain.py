"""Programs that are started without `subprocess`: `os.system`, `os.spawn*`, `os.posix_spawn`, `pty.spawn`, `exec`.

Of these the agent learns how they ended, and of `posix_spawn` what it reads by `os.read` from pipes of its own.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from reenact.boundary import children, door, program
from reenact.boundary import program_starts as starts
from reenact.boundary.forgiving import forgive, swallow
from reenact.boundary.program_stand_in import StandIn
from reenact.boundary.program_starts import Child
from reenact.boundary.side_effects import replaced_in_a_replay
from reenact.values import locks
from reenact.values.json import Json

_HOOKED: Final = frozenset({"REENACT_RECORD", "REENACT_REPLAY"})
_within = threading.local()
_environ: Final = locks.lock()


@contextmanager
def _starting(child: Child) -> Generator[None]:
    """Surround a start by hand: what it forks and executes is no other start; Pythons below hang below it."""
    before, _within.now = getattr(_within, "now", False), True
    try:
        with children.starting(), replaced_in_a_replay(), _parentage(child):
            yield
    finally:
        _within.now = before


@contextmanager
def _parentage(child: Child) -> Generator[None]:
    """Say in our environment, which the child inherits, where Pythons below it hang."""
    descent = starts.descent_of(child) if _HOOKED & os.environ.keys() else None
    if descent is None:
        yield
        return
    with _environ:
        before = os.environ.get(children.VARIABLE)
        os.environ[children.VARIABLE] = descent.spelled()
        try:
            yield
        finally:
            if before is None:
                os.environ.pop(children.VARIABLE, None)
            else:
                os.environ[children.VARIABLE] = before


def _opened(args: Any, *, how: str, shell: bool = False, env: Any = None) -> Child | None:
    doorman = program.doorman([] if shell else program.words_of(args))
    if doorman is None or getattr(_within, "now", False):
        return None
    return starts.opened(doorman, program.call(args, shell=shell, how=how, env=env))


def _let_in(args: Any, *, how: str, shell: bool = False, env: Any = None) -> Child | None:
    """Let a start in; None where it goes straight through."""
    try:
        return _opened(args, how=how, shell=shell, env=env)
    except Exception as error:
        if door.is_strict() or isinstance(error, OSError):
            raise
        swallow("program_plain")
        return None


def whole(
    start: Callable[[], int], args: Any, *, how: str, shell: bool = False, unheard: Sequence[str] = (), env: Any = None
) -> int:
    """Start a program and wait for its end. Gives what `start` gives: a wait status, or an exit code of `os.spawn*`."""
    child = _let_in(args, how=how, shell=shell, env=env)
    if child is None:
        return start()
    if child.answer is not None:
        child.wait()
        status = child.answer.get("status", child.answer.get("exit_code"))
        child.exited(_number(child.answer.get("exit_code")))
        return _number(status)
    child.look_at(None)
    try:
        with _starting(child):
            status = start()
    except BaseException as error:
        child.failed(error)
        raise
    if not how.startswith("os.spawn"):
        child.facts["status"] = status
    child.inherited = {"stdout", "stderr"}
    child.unheard.update(unheard)
    child.exited(status if how.startswith("os.spawn") else os.waitstatus_to_exitcode(status))
    return status


def system(start: Callable[[], int], command: Any) -> int:
    """Run a shell's text as `os.system` does, and give its wait status."""
    return whole(start, command, how="os.system", shell=True)  # noqa: S604 - the agent's own text, which it runs


def spawned(start: Callable[[], int], mode: int, file: Any, args: Any, env: Any) -> int:
    """Start a program as `os.spawn*` does: gives its exit code, or its process id where nobody waits."""
    words = [os.fsdecode(file), *program.words_of(args)[1:]]
    if mode == os.P_WAIT:
        return whole(start, words, how="os.spawn", env=env)
    child = _let_in(words, how="os.spawn", env=env)
    if child is None:
        return start()
    if child.answer is None:
        return _begun(child, start)
    return _stand_in(child, os.posix_spawn, {})


def posix_spawned(original: Callable[..., int], path: Any, argv: Any, env: Any, kwargs: Mapping[str, Any]) -> int:
    """Start a program as `os.posix_spawn` does, and give its process id."""
    words = [os.fsdecode(path), *program.words_of(argv)[1:]]
    child = None if children.is_starting() else _let_in(words, how=original.__name__, env=env)
    if child is None:
        return original(path, argv, env, **kwargs)
    actions = [tuple(each) for each in kwargs.get("file_actions") or ()]
    if child.answer is not None:
        dropped = [each for each in actions if each[0] != os.POSIX_SPAWN_OPEN or os.fsdecode(each[2]) == os.devnull]
        return _stand_in(child, os.posix_spawn, {**kwargs, "file_actions": dropped} if actions else dict(kwargs))
    try:
        _listen(child, actions)
    except Exception:
        forgive("program_plain.listen")
        child.unheard.add("stdout")
    return _begun(child, lambda: original(path, argv, {**env, **starts.environment_of(child, env)}, **kwargs))


def _listen(child: Child, actions: Sequence[tuple[Any, ...]]) -> None:
    for action in actions:
        for stream, fd in (("stdout", 1), ("stderr", 2)):
            if action[0] == os.POSIX_SPAWN_DUP2 and action[2] == fd:
                starts.listen_elsewhere(action[1], stream, child)
            elif action[0] == os.POSIX_SPAWN_OPEN and action[1] == fd and os.fsdecode(action[2]) != os.devnull:
                child.unheard.add(stream)


def _begun(child: Child, start: Callable[[], int]) -> int:
    child.look_at(None)
    try:
        with _starting(child):
            pid = start()
    except BaseException as error:
        child.failed(error)
        raise
    starts.running(child, pid, plain=True)
    return pid


def _stand_in(child: Child, spawn: Callable[..., int], kwargs: Mapping[str, Any]) -> int:
    stand_in = StandIn(child.answer or {}, starts.names_of(child), starts.patience_of(child))
    try:
        stand_in.inheritable()
        with _starting(child):
            pid = spawn(sys.executable, stand_in.words, dict(os.environ), **kwargs)
    except BaseException:
        stand_in.failed()
        raise
    stand_in.started()
    child.stand_in = stand_in
    starts.running(child, pid, plain=True)
    return pid


def waited(original: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Wait as the agent does, and hear whose end it learned."""
    result = original(*args, **kwargs)
    _learn(*result[:2])
    return result


def _learn(pid: int, status: int) -> None:
    try:
        child = starts.of_process(pid)
        if child is not None and child.plain and (os.WIFEXITED(status) or os.WIFSIGNALED(status)):
            child.wait()
            child.exited(os.waitstatus_to_exitcode(status))
    except Exception:
        forgive("program_plain.learn")


def replaced(path: Any, args: Any, env: Any) -> Any:
    """Note that this process, or a fork of it, is about to become another program; gives its environment.

    Nobody hears that one; where it is a Python that records itself, nobody replays what this one did.
    """
    try:
        words = [os.fsdecode(path), *program.words_of(args)[1:]]
        if door.is_strict() or getattr(_within, "now", False) or not os.path.exists(words[0]):  # noqa: PTH110 - tried all along PATH
            return env
        is_joining = program.is_this_python(words[0]) and not children.in_fork()  # a replay refuses that of a fork
        if not is_joining:
            _unheard("a program that took the place of a process (os.exec)", words, how="os.exec", env=env)
        elif not children.in_fork():
            if env is not None:
                return {**env, children.REPLACED: "1"}
            os.environ[children.REPLACED] = "1"
    except Exception:
        forgive("program_plain.replaced")
    return env


def unheard(what: str, words: Sequence[str], *, how: str, env: Any = None) -> None:
    """Record a program, this Python aside, of which nothing can be heard. Raises a miss in a replay."""
    if not program.is_this_python(words[0]):
        _unheard(what, words, how=how, env=env)


def _unheard(what: str, words: Sequence[str], *, how: str, env: Any) -> None:
    child = _opened(list(words), how=how, env=env)
    if child is not None:
        child.unheard.add(what)
        child.close()


def _number(value: Json) -> int:
    return value if isinstance(value, int) else 0
