"""Making a recorded application again in this process, without serving it.

By its name, as the server imported it. One that was made by the program itself and has no name is made by running that
program up to the point at which it would serve: there it is stopped, before it opens a port.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from reenact.boundary import touches
from reenact.boundary.patching import Patches
from reenact.errors import CannotJudge
from reenact.values import unit
from reenact.values.lenient import as_list, as_text
from reenact.values.run import Run

_TAKES_ONE_MORE = frozenset({"-X", "-W", "--check-hash-based-pycs"})
"""Options of Python that stand before their value."""
_HINT = "name it: `reenact replay RUN --app module:attribute`"


class _Serving(BaseException):
    """Thrown where the program would begin to serve `app`."""

    def __init__(self, app: Any) -> None:
        self.app = app


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """How an application is made again. Of a recording only where what it says may be run (`pipeline.commands`)."""

    name: str = ""
    """`module:attribute`, `module:factory(…literals…)`, `file.py` or `file.py:attribute`."""
    factory: bool = False
    """What the name leads to is called to make the application."""
    file: str = ""
    """The program that holds it, run up to where it would serve."""
    module: str = ""
    """The name under which that was started, by `python -m`."""
    arguments: tuple[str, ...] = ()
    """What stood behind the program on its command line."""
    path: tuple[str, ...] = ()
    """Where its modules are searched for, before all else."""
    modules: tuple[str, ...] = ()
    """What is imported with it: those that declare the tasks of a queue."""

    @staticmethod
    def of(run: Run) -> Making:
        """Read how the application of a recorded request or job was made."""
        app, job = unit.app(run), unit.job_of(run)
        name, file = as_text(app.get("import")), as_text(app.get("file"))
        program = file or ("" if name else as_text(run.entry.get("main")))
        words = [as_text(each) for each in as_list(run.entry.get("argv"))]
        module = _module_in(words)
        return Making(
            name=name,
            factory=app.get("factory") is True,
            file=program,
            module=module,
            arguments=tuple(_arguments(words, module or program)),
            path=tuple(as_text(each) for each in as_list(app.get("path"))),
            modules=(job.module,) if job is not None and job.module else (),
        )

    def with_given(self, target: str | None, path: Sequence[str] = (), modules: Sequence[str] = ()) -> Making:
        """Give it with what the user names in its place.

        `target` may be a program and its arguments as a shell has them, `file.py:attribute --flag`.
        """
        more = replace(self, path=(*path, *self.path), modules=(*modules, *self.modules))
        if target is None:
            return more
        try:
            words = shlex.split(target)
        except ValueError:  # a factory whose arguments no shell reads
            words = [target]
        file, _, attribute = words[0].partition(":") if words else ("", "", "")
        if not file.endswith(".py"):
            return replace(more, name=target, factory=False, file="", arguments=())
        name = f"__main__:{attribute}" if attribute else ""
        file = str(Path(file).absolute())
        return replace(more, name=name, factory=False, file=file, module="", arguments=tuple(words[1:]))

    def search(self) -> None:
        """Have its modules found where they were."""
        folders = [str(Path(each).absolute()) for each in self.path if Path(each).is_dir()]
        sys.path[:] = list(dict.fromkeys([*folders, *sys.path]))


def make_application(making: Making) -> Any:
    """Make the application. Raises `CannotJudge` where it cannot be."""
    making.search()
    for module in making.modules:
        _module(module, module)
    name, program = making.name, making.file
    if name and not program:
        return _imported(name, factory=making.factory)
    if not program or not Path(program).is_file():
        raise CannotJudge("the recording does not say how its application is made", hint=_HINT)
    served = _run_until_served(Path(program), making.module, [*making.arguments])
    if name:
        return _attribute(sys.modules["__main__"], name)
    if served is None:
        raise CannotJudge(f"what {program} serves cannot be found", hint=_HINT)
    return served


def _imported(name: str, *, factory: bool) -> Any:
    """Import `module:attribute`, `module:factory` or `module:factory(…literals…)`."""
    module_name, _, expression = name.partition(":")
    module = _module(module_name, name)
    expression = expression or "application"
    name = f"{module_name}:{expression}"
    try:
        called = ast.parse(expression, mode="eval").body
    except SyntaxError as error:
        raise CannotJudge(f"{name} does not name an application", hint=_HINT) from error
    if not isinstance(called, ast.Call):
        attribute = _attribute(module, name)
        return attribute() if factory else attribute
    attribute = _attribute(module, f"{module_name}:{ast.unparse(called.func)}")
    keywords = {each.arg: ast.literal_eval(each.value) for each in called.keywords if each.arg}
    return attribute(*(ast.literal_eval(each) for each in called.args), **keywords)


def _module(module: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise CannotJudge(f"the application {name} cannot be imported: {error}", hint=_HINT) from error


def _attribute(module: ModuleType, name: str) -> Any:
    value: Any = module
    for part in name.partition(":")[2].split("."):
        try:
            value = getattr(value, part)
        except AttributeError as error:
            raise CannotJudge(f"there is no {name}: {error}", hint=_HINT) from error
    return value


def _module_in(words: list[str]) -> str:
    """Give the name behind `-m` of a command that started Python; empty where there is none."""
    rest = iter(words[1:])
    for word in rest:
        if word == "-m":
            return next(rest, "")
        if word in _TAKES_ONE_MORE:
            next(rest, None)
        elif not word.startswith("-"):
            return ""
    return ""


def _arguments(words: list[str], program: str) -> list[str]:
    """Give the words behind the program's own, as it was started."""
    at = next((number for number, word in enumerate(words) if word and Path(word).name == Path(program).name), None)
    return words[at + 1 :] if at is not None else []


def _main_module(program: Path, name: str) -> ModuleType:
    """Make `__main__` of a program, as Python does of a script, or of what `python -m` names."""
    module = ModuleType("__main__")
    module.__file__ = str(program)
    module.__dict__["__builtins__"] = __builtins__
    if name:
        name = f"{name}.__main__" if program.name == "__main__.py" else name
        module.__spec__ = importlib.util.find_spec(name)
        module.__package__ = name.rpartition(".")[0]
    else:
        sys.path.insert(0, str(program.parent))
    return module


def _run_until_served(program: Path, name: str, arguments: list[str]) -> Any:
    """Run a program as `__main__` until it would serve; gives what it would serve, or None where it ended before."""
    before = sys.argv
    try:
        sys.modules["__main__"] = module = _main_module(program, name)
    except ImportError as error:
        raise CannotJudge(f"the program {name} cannot be found: {error}", hint=_HINT) from error
    sys.argv = [str(program), *arguments]
    try:
        with _stopped_at_servers():
            exec(compile(program.read_bytes(), str(program), "exec"), vars(module))  # noqa: S102 - it is the user's own
    except _Serving as serving:
        return serving.app
    except SystemExit:
        return None
    finally:
        sys.argv = before
    return None


@contextmanager
def _stopped_at_servers() -> Generator[None]:
    """Stop the program where one of the servers that we know would begin to serve."""
    patches = Patches()

    def stop(find: Callable[..., Any]) -> Callable[[Any], Any]:
        def make(original: Any) -> Any:
            @wraps(original)
            def serve(*args: Any, **kwargs: Any) -> Any:
                if threading.current_thread() is threading.main_thread():
                    raise _Serving(find(*args, **kwargs))
                try:
                    serving = _Serving(find(*args, **kwargs))
                except Exception as error:  # noqa: BLE001 - it is the program's to see
                    _stop_the_program(error)
                _stop_the_program(serving)

            return serve

        return make

    def later(module: str, owner: str, name: str, find: Callable[..., Any]) -> None:
        def patch(imported: Any) -> None:
            patches.replace(getattr(imported, owner) if owner else imported, name, stop(find))

        patches.when_imported(module, patch)

    for module, owner, name, find in _SERVERS:
        later(module, owner, name, find)
    sys.addaudithook(_at_ports)
    _watching.append(True)
    try:
        with _interrupted_from_threads():
            yield
    finally:
        _watching.clear()
        patches.undo()


@contextmanager
def _interrupted_from_threads() -> Generator[None]:
    """Have the program stopped, in whatever it waits for, where a thread of its own would serve."""

    def stop(*_: object) -> None:
        if _elsewhere:
            raise _elsewhere.pop()

    before = signal.signal(_SIGNAL, stop) if _SIGNAL is not None else None
    try:
        yield
    finally:
        if _SIGNAL is not None:
            signal.signal(_SIGNAL, before or signal.SIG_DFL)


def _stop_the_program(serving: BaseException) -> NoReturn:
    """Stop the program from the thread that would serve, and that thread. Raises what a system without signals has."""
    main = threading.main_thread().ident
    if _SIGNAL is None or main is None:
        raise serving
    _elsewhere.append(serving)
    signal.pthread_kill(main, _SIGNAL)
    raise SystemExit


_watching: list[bool] = []
_elsewhere: list[BaseException] = []
"""What a thread of the program's would serve, or why it could not."""
_SIGNAL = getattr(signal, "SIGURG", None)
"""What interrupts the program's own waiting: by default a process takes no notice of it."""


def _at_ports(event: str, arguments: tuple[Any, ...]) -> None:
    """Stop the program where it would open a port for a server that we do not know. A hook cannot be taken away."""
    if event != "socket.bind" or not _watching or not isinstance(arguments[1], tuple):
        return
    if touches.is_importing():  # a library looks whether there is IPv6
        return
    if threading.current_thread() is threading.main_thread():
        raise _Serving(None)
    _stop_the_program(_Serving(None))


def _of_uvicorn(server: Any, *_: Any, **__: Any) -> Any:
    config = server.config
    if not config.loaded:
        config.load()
    app = config.loaded_app
    while type(app).__module__.startswith("uvicorn.") and hasattr(app, "app"):
        app = app.app
    return app


def _of_gunicorn(arbiter: Any, *_: Any) -> Any:
    return arbiter.app.wsgi()


def _of_werkzeug(_host: Any, _port: Any, application: Any, *_: Any, **__: Any) -> Any:
    return application


def _of_werkzeug_server(_self: Any, _host: Any, _port: Any, app: Any, *_: Any, **__: Any) -> Any:
    return app


def _of_waitress(_self: Any, application: Any, *_: Any, **__: Any) -> Any:
    return application


def _of_cheroot(_self: Any, _address: Any, wsgi_app: Any, *_: Any, **__: Any) -> Any:
    return wsgi_app


def _of_wsgiref(server: Any, *_: Any, **__: Any) -> Any:
    return server.get_app()


def _of_django(_address: Any, _port: Any, application: Any, *_: Any, **__: Any) -> Any:
    return application


def _of_reloader(main: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run on this thread what Django's reloader runs on another, up to where it would serve."""
    return main(*args, **kwargs)


_SERVERS: tuple[tuple[str, str, str, Callable[..., Any]], ...] = (
    ("uvicorn.server", "Server", "run", _of_uvicorn),
    ("uvicorn.server", "Server", "serve", _of_uvicorn),
    ("uvicorn.supervisors.multiprocess", "Multiprocess", "run", _of_uvicorn),
    ("gunicorn.arbiter", "Arbiter", "run", _of_gunicorn),
    ("werkzeug.serving", "", "run_simple", _of_werkzeug),
    ("werkzeug.serving", "BaseWSGIServer", "__init__", _of_werkzeug_server),
    ("waitress.server", "BaseWSGIServer", "__init__", _of_waitress),
    ("cheroot.wsgi", "Server", "__init__", _of_cheroot),
    ("django.core.servers.basehttp", "", "run", _of_django),
    ("django.utils.autoreload", "", "run_with_reloader", _of_reloader),
    ("wsgiref.simple_server", "", "make_server", _of_werkzeug),
    ("wsgiref.simple_server", "WSGIServer", "serve_forever", _of_wsgiref),
)
"""Module, class or nothing, what begins to serve, and how to find from its arguments what."""
