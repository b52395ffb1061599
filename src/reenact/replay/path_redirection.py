"""Leads a replayed program's Python code to the copy of its working folder, where the copy has another path.

Theory of operation. Every function of `os` that takes a path, `open` and `sqlite3.connect` get the path in the copy;
what tells a path (`getcwd`, `readlink`, `scandir`) tells the one in the original. They are replaced in the modules that
hold them (`posix`, `os`, `io`, `builtins`), so `pathlib`, `shutil`, `tempfile` and Python's own import find them. What
native code opens by a whole path is not led: it reads the original, and the kernel refuses its writes.

A program is started in the original folder, so that the interpreter writes down its names (`sys.path[0]`, `__file__`)
as they were, and goes to the copy before its first line: the interpreter raises an audit event then. One that was
started in the copy by its bare name, as by a shell, is started once more from there.
"""

from __future__ import annotations

import builtins
import inspect
import io
import os
import posix
import site
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from types import ModuleType
from typing import Any, Final, Self, cast

import wrapt

from reenact.boundary import audit, touches
from reenact.boundary.path_copies import Leads, of_this_process

_ONE: Final = (
    *("access", "chdir", "chmod", "chown", "execv", "execve", "getxattr", "lchown", "listdir", "listxattr", "lstat"),
    *("mkdir", "mkfifo", "mknod", "open", "pathconf", "posix_spawn", "posix_spawnp", "remove", "removexattr", "rmdir"),
    *("setxattr", "stat", "statvfs", "truncate", "unlink", "utime"),
)
"""The functions whose first argument is a path."""
_TWO: Final = ("link", "rename", "replace", "symlink")
_NAMED: Final = ("path", "src", "dst", "file", "database")
_BEGINS: Final = frozenset({"cpython.run_file", "cpython.run_module", "cpython.run_command", "cpython.run_stdin"})
_STARTS: Final = ("<frozen importlib", "<frozen site")
_VALUED: Final = frozenset("WX")
_STATE: Final = {"led": False}


def lead() -> None:
    """Lead this process where its launcher says, and go to the copy: at once, or when the interpreter has started."""
    leads = of_this_process()
    if leads is None or _STATE["led"]:
        return
    early = _is_starting()
    if early:
        _wait_outside(leads)
    _STATE["led"] = True
    _replace(leads)
    if (working_folder := os.environ.get("PWD")) is not None:  # a shell in the copy told where it is
        os.environ["PWD"] = leads.original(working_folder)
    if not early:
        os.chdir(os.getcwd())
        return
    waiting = [True]

    def begin(_event: str, _args: tuple[Any, ...]) -> None:
        if waiting:
            waiting.clear()
            os.chdir(os.getcwd())

    audit.hear(_BEGINS, begin)


def _is_starting() -> bool:
    """Tell whether the interpreter imports `site` by itself: nothing of the program is on the stack."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_back is not None:
        frame = frame.f_back
    name = frame.f_code.co_filename if frame is not None else ""
    return name.startswith(_STARTS) or name == site.__file__


def _wait_outside(leads: Leads) -> None:
    """Go to the original folder, where this process was started in the copy, until the interpreter has its names."""
    here = os.getcwd()
    there = leads.original(here)
    if there == here or not os.path.isdir(there):
        return
    os.chdir(there)
    script = _script(sys.orig_argv[1:])
    if script is not None and not script.startswith("/"):  # its whole path is spelled already, as in the copy
        os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - the same program


def _script(words: list[str]) -> str | None:
    """Give the script on a Python's command line."""
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            return word
        if word in {"-", "-c", "-m"} or word.startswith(("-c", "-m")):
            return None
        if len(word) == 2 and word[1] in _VALUED:
            next(rest, None)
    return None


def _replace(leads: Leads) -> None:
    for name in _ONE:
        _install(name, lambda original: _one(original, leads))
    for name in _TWO:
        _install(name, lambda original: _two(original, leads))
    touches.tell_paths(leads.original)
    _install("getcwd", lambda original: wraps(original)(lambda: leads.original(original())))
    _install("getcwdb", lambda original: wraps(original)(lambda: os.fsencode(leads.original(os.fsdecode(original())))))
    _install("readlink", lambda original: _readlink(original, leads))
    _install("scandir", lambda original: _scandir(original, leads))
    opened = _one(io.open, leads)
    import _io

    for module in (builtins, io, _io):
        setattr(module, "open", opened)  # noqa: B010 - it is no attribute of every module's stub
    code = _one(io.open_code, leads)
    for module in (io, _io):
        setattr(module, "open_code", code)  # noqa: B010 - as above
    import _posixsubprocess

    _lead_children(_posixsubprocess, leads)
    wrapt.register_post_import_hook(lambda module: _lead_databases(module, leads), "sqlite3")


def _install(name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Put a function into the place of one of `os`, and say of it what is said of that one."""
    original = getattr(posix, name, None)
    if original is None:
        return
    replacement = make(original)
    for module in (posix, os):
        setattr(module, name, replacement)
    for attribute in ("supports_dir_fd", "supports_fd", "supports_follow_symlinks", "supports_effective_ids"):
        supported = cast("set[Any]", getattr(os, attribute))
        if original in supported:
            supported.add(replacement)


def _one(original: Callable[..., Any], leads: Leads) -> Callable[..., Any]:
    led = leads.led

    @wraps(original)
    def function(*args: Any, **options: Any) -> Any:
        if args:
            args = (led(args[0]), *args[1:])
        elif options:
            options = _lead_options(options, leads)
        return original(*args, **options)

    return function


def _two(original: Callable[..., Any], leads: Leads) -> Callable[..., Any]:
    led = leads.led

    @wraps(original)
    def function(*args: Any, **options: Any) -> Any:
        if options:
            options = _lead_options(options, leads)
        return original(*map(led, args[:2]), *args[2:], **options)

    return function


def _lead_options(options: dict[str, Any], leads: Leads) -> dict[str, Any]:
    return {name: leads.led(value) if name in _NAMED else value for name, value in options.items()}


def _readlink(original: Callable[..., Any], leads: Leads) -> Callable[..., Any]:
    led = _one(original, leads)

    @wraps(original)
    def readlink(*args: Any, **options: Any) -> Any:
        target = led(*args, **options)
        original_path = leads.original(os.fsdecode(target))
        return os.fsencode(original_path) if isinstance(target, bytes) else original_path

    return readlink


def _scandir(original: Callable[..., Any], leads: Leads) -> Callable[..., Any]:
    @wraps(original)
    def scandir(path: Any = None) -> Any:
        copy_path = leads.led(path)
        entries = original(copy_path)
        return entries if copy_path is path else _original_entries(entries, path, leads, original)

    return scandir


def _original_entries(entries: Any, path: Any, leads: Leads, scandir: Callable[..., Any]) -> _Entries:
    folder: str = os.fspath(cast("str", path))

    def original_entry(entry: Any) -> Any:
        entry_path = os.path.join(folder, entry.name)
        if leads.led(entry_path) != entry_path:
            return _Entry(entry, entry_path)
        with scandir(path) as originals:  # the copy links to it, and the original is no link
            return next((each for each in originals if each.name == entry.name), _Entry(entry, entry_path))

    return _Entries(entries, original_entry)


class _Entries:
    """The entries of a folder in the copy, told as those of the original."""

    def __init__(self, entries: Any, original_entry: Callable[[Any], Any]) -> None:
        self._entries, self._original_entry = entries, original_entry

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self._original_entry(next(self._entries))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the folder go."""
        self._entries.close()


class _Entry:
    """What `os.DirEntry` is, with the path in the original."""

    __slots__ = ("_entry", "name", "path")

    def __init__(self, entry: Any, path: Any) -> None:
        self._entry, self.name, self.path = entry, entry.name, path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._entry, name)

    def __fspath__(self) -> Any:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"


def _lead_children(module: ModuleType, leads: Leads) -> None:
    """Lead what `subprocess` starts to the copy of its folder, and have programs be found there."""
    original = cast("Any", module).fork_exec

    @wraps(original)
    def fork_exec(args: Any, executables: Any, close_fds: Any, pass_fds: Any, cwd: Any, *rest: Any) -> Any:
        programs = tuple(leads.led(each) for each in executables)
        return original(args, programs, close_fds, pass_fds, leads.led(cwd), *rest)

    for holder in (module, *_holders("_fork_exec", original)):
        setattr(holder, "fork_exec" if holder is module else "_fork_exec", fork_exec)


def _holders(name: str, original: Any) -> Iterator[ModuleType]:
    """Give the modules that hold a function by another name."""
    for module in [*sys.modules.values()]:
        if vars(module).get(name) is original:
            yield module


def _lead_databases(module: ModuleType, leads: Leads) -> None:
    """Lead what `sqlite3` opens, by a path or by a URI."""
    holder = cast("Any", module)
    original = holder.connect

    @wraps(original)
    def connect(*args: Any, **options: Any) -> Any:
        if args:
            args = (_database(args[0], leads), *args[1:])
        elif "database" in options:
            options["database"] = _database(options["database"], leads)
        return original(*args, **options)

    holder.connect = connect
    holder.dbapi2.connect = connect


def _database(database: Any, leads: Leads) -> Any:
    if isinstance(database, str) and database.startswith("file:"):
        path, sign, rest = database[5:].partition("?")
        for scheme in ("//localhost", "//"):
            path = path.removeprefix(scheme) if path.startswith(f"{scheme}/") else path
        return f"file:{leads.led(path)}{sign}{rest}"
    return leads.led(database)
