"""Other programs that the agent starts: how it reads them, looks after them, signals them and hears of their end.

`Popen` itself is cut by `processes`, which knows a Python that records itself from any other program. What is cut here
does nothing for a child that is not recorded.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial, wraps
from sys import _getframe  # pyright: ignore[reportPrivateUsage] - what the running code is called costs least so
from types import FrameType
from typing import Any, cast

from reenact.boundary import children, door, pauses
from reenact.contracts.integration import Integration, PatchSet

_CHILD, _TIDYING, _EARLY = "_reenact_child", "_reenact_tidying", "_reenact_early"
_STARTS, _PLAIN = "reenact.boundary.program_starts", "reenact.boundary.program_plain"
"""Modules of ours that are loaded with the first child that needs them, and not before."""


def _child_of(popen: Any) -> Any:
    """Give what is known of a process object; None of most."""
    return _attributes_of(popen).get(_CHILD)


def _attributes_of(popen: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", vars(popen))


def _poll(original: Callable[..., int | None]) -> Callable[..., int | None]:
    @wraps(original)
    def poll(self: Any) -> int | None:
        child = _child_of(self)
        if child is None and self.returncode is not None:  # the agent knows already
            return original(self)
        if child is None:
            return pauses.looked(pauses.taking(_getframe().f_back), partial(_code_of, self, original))
        from reenact.boundary import program_starts as starts

        if starts.looking():
            return original(self)
        if starts.is_to_run(child):
            return None
        with starts.inside():
            if child.answer is not None and child.code is None and child.ends:
                return self.wait()
            code = original(self)
        if code is None:
            starts.found_running(child)
        return code

    return poll


def _code_of(popen: Any, poll: Callable[..., int | None], seconds: float) -> int | None:
    """Give how a process ended, after `seconds` at most; None where it has not."""
    code = poll(popen)
    if code is None and seconds:
        with suppress(subprocess.TimeoutExpired):
            return popen.wait(seconds)
    return code


def _in_time(popen: Any, wait: Callable[..., int], frame: FrameType | None, timeout: float) -> int:
    """Wait for a Python, which runs again in a replay: for as many times in vain as when recorded."""

    def code(seconds: float) -> int | None:
        try:
            return wait(popen, seconds)
        except subprocess.TimeoutExpired:
            return None

    if (found := pauses.looked(pauses.taking(frame), code, timeout)) is None:
        raise subprocess.TimeoutExpired(popen.args, timeout)
    return found


def _talk_in_time(popen: Any, talk: Callable[..., Any], stdin: Any, endtime: Any, timeout: float | None) -> Any:
    """Hear out a Python likewise, and keep what it had said in a time that was too short."""
    if timeout is None:
        return _attributes_of(popen).pop(_EARLY, None) or talk(popen, stdin, endtime, timeout)
    frame, own, expiry = _getframe(1).f_back, _attributes_of(popen), subprocess.TimeoutExpired(popen.args, timeout)
    while frame is not None and frame.f_globals.get("__name__") == "subprocess":
        frame = frame.f_back

    def listen(seconds: float) -> Any:
        nonlocal expiry
        try:
            return own.pop(_EARLY, None) or talk(popen, stdin, time.monotonic() + seconds, timeout)
        except subprocess.TimeoutExpired as error:
            expiry = error
            return None

    def keep(seconds: float) -> None:
        own[_EARLY] = listen(seconds)

    if (texts := pauses.looked(pauses.taking(frame), listen, timeout, keep)) is None:
        raise expiry
    return texts


def _wait(original: Callable[..., int]) -> Callable[..., int]:
    @wraps(original)
    def wait(self: Any, timeout: float | None = None) -> int:
        child = _child_of(self)
        if child is None:
            return original(self) if timeout is None else _in_time(self, original, _getframe().f_back, timeout)
        from reenact.boundary import program_starts as starts

        if not starts.looking() and timeout is not None and starts.is_to_run(child):
            starts.sleep(timeout)
            raise subprocess.TimeoutExpired(self.args, timeout)
        outer = not starts.looking()
        try:
            with starts.inside():
                return original(self, timeout)
        except subprocess.TimeoutExpired:
            if outer:
                starts.found_running(child)
            raise

    return wait


def _communicate(original: Callable[..., Any]) -> Callable[..., Any]:
    """Hear what `communicate` reads and writes past the file objects."""

    @wraps(original)
    def communicate(self: Any, stdin: Any, endtime: Any, orig_timeout: Any) -> Any:
        child = _child_of(self)
        if child is None:
            return _talk_in_time(self, original, stdin, endtime, orig_timeout)
        from reenact.boundary import program_starts as starts

        begun = bool(getattr(self, "_communication_started", False))
        read_counts: dict[str, int] = _attributes_of(self).setdefault("_reenact_read", {})
        if stdin and self.stdin is not None and not begun:
            data = stdin.encode(self.stdin.encoding, self.stdin.errors) if isinstance(stdin, str) else bytes(stdin)
            child.talk.piece("in", data)
            child.talk.close_stdin()
            child.check()
        if orig_timeout is not None and starts.is_to_run(child):
            starts.sleep(orig_timeout)
            raise subprocess.TimeoutExpired(self.args, orig_timeout)
        child.communicating += 1
        try:
            with starts.inside():
                return original(self, stdin, endtime, orig_timeout)
        except subprocess.TimeoutExpired:
            starts.found_running(child)
            raise
        finally:
            child.communicating -= 1
            read_counts.update(starts.communicated(child, self, read_counts))
            child.settle()

    return communicate


def _exit_status(original: Callable[..., None]) -> Callable[..., None]:
    @wraps(original)
    def handle(self: Any, *args: Any, **kwargs: Any) -> None:
        child = _child_of(self)
        tidying = bool(_attributes_of(self).get(_TIDYING))
        if child is not None and not tidying:
            child.wait()
        original(self, *args, **kwargs)
        if child is not None:
            child.exited(self.returncode, reported=not tidying)

    return handle


def _internal_poll(original: Callable[..., int | None]) -> Callable[..., int | None]:
    """Know a look of `subprocess`'s own, at a process object that nobody holds any more."""

    @wraps(original)
    def poll(self: Any, _deadstate: Any = None, *args: Any, **kwargs: Any) -> int | None:
        if _deadstate is None or _child_of(self) is None:
            return original(self, _deadstate, *args, **kwargs)
        vars(self)[_TIDYING] = True
        try:
            return original(self, _deadstate, *args, **kwargs)
        finally:
            del vars(self)[_TIDYING]

    return poll


def _send_signal(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def send_signal(self: Any, sig: int) -> Any:
        child = _child_of(self)
        if child is None:
            return original(self, sig)
        from reenact.boundary import program_starts as starts

        with starts.inside():
            return original(self, sig)

    return send_signal


def _kill(original: Callable[[int, int], None]) -> Callable[[int, int], None]:
    """Hear of signals to children, whoever sends them; `killpg` names the group of one."""

    @wraps(original)
    def kill(process: int, number: int, /) -> None:
        if (starts := cast("Any", sys.modules.get(_STARTS))) is not None and (
            child := starts.of_process(process)
        ) is not None:
            starts.signalled(child, number)
        original(process, number)

    return kill


# asyncio


def _of_transport(transport: Any) -> Any:
    process = getattr(transport, "_proc", None)
    return None if process is None else _child_of(process)


def _pipe_data_received(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def received(self: Any, fd: int, data: bytes) -> Any:
        if (child := _of_transport(self)) is not None and fd in (1, 2):
            child.talk.piece("stdout" if fd == 1 else "stderr", data)
        return original(self, fd, data)

    return received


def _pipe_connection_lost(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def lost(self: Any, fd: int, exc: Any) -> Any:
        if (child := _of_transport(self)) is not None:
            if fd == 0:
                child.talk.broken = child.talk.broken or isinstance(exc, BrokenPipeError | ConnectionResetError)
                child.talk.close_stdin()
            else:
                child.talk.end("stdout" if fd == 1 else "stderr")
                child.settle()
        return original(self, fd, exc)

    return lost


def _peer_left(original: Callable[..., Any]) -> Callable[..., Any]:
    """Know a pipe that the child closed, as it does by its end, from one that the agent closed."""

    @wraps(original)
    def read_ready(self: Any) -> Any:
        child = _of_transport(getattr(getattr(self, "_protocol", None), "proc", None))
        if child is not None and not getattr(self, "_closing", False) and not getattr(self, "_buffer", None):
            child.talk.is_left = True
        return original(self)

    return read_ready


def _process_exited(original: Callable[..., Any]) -> Callable[..., Any]:
    """Hold the end of a child back until its turn, without blocking the loop."""

    @wraps(original)
    def exited(self: Any, returncode: int) -> Any:
        child = _of_transport(self)
        if child is None:
            return original(self, returncode)
        if child.passage.end_order is None or child.code is not None:
            child.exited(returncode)
            return original(self, returncode)
        from reenact.boundary import program_starts as starts

        return starts.exit_later(child, self._loop, partial(original, self, returncode), returncode)

    return exited


def _write(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def write(self: Any, data: Any) -> Any:
        child = _of_transport(getattr(getattr(self, "_protocol", None), "proc", None))
        if child is not None and not getattr(self, "_closing", False):
            child.talk.piece("in", bytes(data))
        return original(self, data)

    return write


def _write_eof(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def write_eof(self: Any) -> Any:
        child = _of_transport(getattr(getattr(self, "_protocol", None), "proc", None))
        if child is not None:
            child.talk.close_stdin()
        return original(self)

    return write_eof


def _install_transport(patches: PatchSet, module: Any) -> None:
    patches.replace(module.BaseSubprocessTransport, "_pipe_data_received", _pipe_data_received)
    patches.replace(module.BaseSubprocessTransport, "_pipe_connection_lost", _pipe_connection_lost)
    patches.replace(module.BaseSubprocessTransport, "_process_exited", _process_exited)


def _install_pipes(patches: PatchSet, module: Any) -> None:
    transport = getattr(module, "_UnixWritePipeTransport", None)
    if transport is not None:
        patches.replace(transport, "write", _write)
        patches.replace(transport, "write_eof", _write_eof)
        patches.replace(transport, "_read_ready", _peer_left)


# without subprocess


def _system(original: Callable[[Any], int]) -> Callable[[Any], int]:
    @wraps(original)
    def system(command: Any) -> int:
        if not door.is_kept():
            return original(command)
        from reenact.boundary import program_plain

        return program_plain.system(partial(original, command), command)

    return system


def _spawnv(original: Callable[..., int], *, has_env: bool) -> Callable[..., int]:
    @wraps(original)
    def spawn(mode: int, file: Any, args: Any, *env: Any) -> int:
        if not door.is_kept():
            return original(mode, file, args, *env)
        from reenact.boundary import program_plain

        environ = env[0] if has_env and env else None
        return program_plain.spawned(partial(original, mode, file, args, *env), mode, file, args, environ)

    return spawn


def _spawn_terminal(original: Callable[..., int]) -> Callable[..., int]:
    @wraps(original)
    def spawn(argv: Any, *rest: Any, **kwargs: Any) -> int:
        if not door.is_kept():
            return original(argv, *rest, **kwargs)
        from reenact.boundary import program_plain

        hears = bool(rest or kwargs)
        start = partial(original, argv, *rest, **kwargs)
        return program_plain.whole(start, argv, how="pty.spawn", unheard=("terminal",) if hears else ())

    return spawn


def _exec(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def execute(path: Any, args: Any, *env: Any) -> Any:
        if door.is_kept():
            from reenact.boundary import program_plain

            environ = program_plain.replaced(path, args, env[0] if env else None)
            env = (environ,) if env else ()
        return original(path, args, *env)

    return execute


def _waited(original: Callable[..., Any]) -> Callable[..., Any]:
    """Hear how children ended that the agent waits for by itself."""

    @wraps(original)
    def wait(*args: Any, **kwargs: Any) -> Any:
        plain: Any = sys.modules.get(_PLAIN)
        return original(*args, **kwargs) if plain is None else plain.waited(original, args, kwargs)

    return wait


def _read(original: Callable[[int, int], bytes]) -> Callable[[int, int], bytes]:
    from reenact.boundary import program_starts as starts

    @wraps(original)
    def read(fd: int, length: int, /) -> bytes:
        data = original(fd, length)
        if length:
            starts.was_read(fd, data)
        return data

    return read


def _install(patches: PatchSet) -> None:
    children.when_reads_matter(partial(patches.replace, os, "read", _read))
    popen: Any = subprocess.Popen
    ways: Mapping[str, Callable[..., Any]] = {
        "poll": _poll,
        "wait": _wait,
        "_internal_poll": _internal_poll,
        "_communicate": _communicate,
        "_handle_exitstatus": _exit_status,
        "send_signal": _send_signal,
    }
    for name, make in ways.items():
        if hasattr(popen, name):
            patches.replace(popen, name, make)
    for name in ("kill", "killpg"):
        if hasattr(os, name):
            patches.replace(os, name, _kill)
    patches.replace(os, "system", _system)
    for name in ("spawnv", "spawnvp", "spawnve", "spawnvpe"):
        if hasattr(os, name):
            patches.replace(os, name, partial(_spawnv, has_env=name.endswith("e")))
    for name in ("execv", "execve"):
        patches.replace(os, name, _exec)
    for name in ("waitpid", "wait", "wait3", "wait4"):
        if hasattr(os, name):
            patches.replace(os, name, _waited)
    patches.when_imported("pty", lambda module: patches.replace(module, "spawn", _spawn_terminal))
    patches.when_imported("asyncio.base_subprocess", partial(_install_transport, patches))
    patches.when_imported("asyncio.unix_events", partial(_install_pipes, patches))


INTEGRATION = Integration(name="programs", libraries=("subprocess", "os", "asyncio"), install=_install)
