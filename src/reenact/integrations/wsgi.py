"""WSGI (PEP 3333): each request to an application is a run. Cut at the servers' own door and at the frameworks'.

As with ASGI only the outermost is a run. An answer is made in steps, after the application has returned: each step
runs inside the run again, and `close` ends it. A file handed to the server as it is (`wsgi.file_wrapper`) passes by.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial, wraps
from typing import Any, TypeAlias, cast

from reenact.boundary import children, door, inbound, inbound_clients, origins
from reenact.boundary.web import Exchange, asks_itself, nobody
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.json import Json

Environ: TypeAlias = dict[str, Any]
App: TypeAlias = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]

_PIECES = 8
"""Pieces of an answer after each of which its client may go on."""
_READ = frozenset({"read", "read1", "readall", "readline", "readlines"})
_UNMARKED = {"CONTENT_TYPE": "content-type", "CONTENT_LENGTH": "content-length"}


def _utf8(text: object) -> str:
    """Undo PEP 3333's bytes-as-latin-1."""
    return str(text or "").encode("latin-1", "replace").decode("utf-8", "replace")


def _headers(environ: Environ) -> Iterator[tuple[str, str]]:
    for key, value in environ.items():
        if key.startswith("HTTP_"):
            yield key[5:].replace("_", "-").lower(), str(value)
        elif key in _UNMARKED and value:
            yield _UNMARKED[key], str(value)


def _facts(environ: Environ) -> dict[str, Json]:
    root_path, path = _utf8(environ.get("SCRIPT_NAME")), _utf8(environ.get("PATH_INFO"))
    facts: dict[str, Json] = {
        "interface": "wsgi",
        "version": str(environ.get("SERVER_PROTOCOL", "")).removeprefix("HTTP/"),
        "scheme": str(environ.get("wsgi.url_scheme") or "http"),
        "method": str(environ.get("REQUEST_METHOD") or "GET"),
        "path": root_path + path,
        "root_path": root_path,
        "query": str(environ.get("QUERY_STRING") or ""),
        "workers": [bool(environ.get(f"wsgi.{name}")) for name in ("multithread", "multiprocess", "run_once")],
        "server": [str(environ.get("SERVER_NAME") or ""), _port(environ.get("SERVER_PORT"))],
    }
    if client := environ.get("REMOTE_ADDR"):
        facts["client"] = [str(client), _port(environ.get("REMOTE_PORT"))]
    return facts


def _port(value: object) -> int:
    return int(text) if (text := str(value or "")).isdigit() else 0


class _Input:
    """The body of a request, which is noted as it is read. It can do what the server's own can."""

    def __init__(self, stream: Any, exchange: Exchange) -> None:
        self._stream, self._exchange = stream, exchange

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._stream, name)
        if name in _READ:
            return partial(self._read_pieces, attribute)
        return partial(self._read_into, attribute) if name in {"readinto", "readinto1"} else attribute

    def __iter__(self) -> Iterator[bytes]:
        for line in self._stream:
            self._exchange.body.add(line)
            yield line

    def _read_pieces(self, read: Callable[..., Any], *args: Any) -> Any:
        data = read(*args)
        for piece in cast("list[bytes]", data) if isinstance(data, list) else [data]:
            self._exchange.body.add(piece or b"")
        return cast("Any", data)

    def _read_into(self, read: Callable[[Any], int | None], buffer: Any) -> int | None:
        count = read(buffer)
        self._exchange.body.add(bytes(memoryview(buffer)[: count or 0]))
        return count


class _Answer:
    """The answer of an application, step by step, each inside the run."""

    def __init__(self, pieces: Iterable[bytes], exchange: Exchange) -> None:
        self._pieces, self._exchange = pieces, exchange
        self._steps: Iterator[bytes] | None = None
        self._over = False
        self._piece_count = 0

    def __iter__(self) -> _Answer:
        return self

    def __next__(self) -> bytes:
        try:
            with inbound.inside(self._exchange.unit):
                if self._steps is None:
                    self._steps = iter(self._pieces)
                piece = next(self._steps)
        except StopIteration:
            self._over = True
            raise
        except BaseException as error:
            self._exchange.end(error)
            raise
        self._exchange.answer.add(piece)
        self._piece_count += 1
        if self._piece_count <= _PIECES:  # of a longer one nobody knows which is the last
            self._exchange.unit.reply()
        else:
            self._exchange.unit.replied = 0
        return piece

    def close(self) -> None:
        """End the run: the server is done with the answer."""
        if not self._over:
            self._exchange.gone()
        try:
            close = getattr(self._pieces, "close", None)
            if close is not None:
                with inbound.inside(self._exchange.unit):
                    close()
        except BaseException as error:
            self._exchange.end(error)
            raise
        self._exchange.end()

    def __del__(self) -> None:
        with suppress(Exception):  # a server that does not call close, against PEP 3333
            self._exchange.end()


def serve(app: App, environ: Environ, start_response: Callable[..., Any], served: Any = None) -> Iterable[bytes]:
    """Run one request through `app` as a run of its own, and give the answer to send.

    `served` is the application's own object, where `app` is only how it is called. Raises what the application raises.
    """
    facts, headers = _facts(environ), list(_headers(environ))  # frameworks write to the environment
    exchange = Exchange(served or app, "wsgi", lambda: facts, lambda: headers)
    if (stream := environ.get("wsgi.input")) is not None:
        environ["wsgi.input"] = _Input(stream, exchange)

    def starting(status: str, header_list: list[tuple[str, str]], *exc_info: Any) -> Callable[[bytes], Any]:
        with suppress(ValueError):  # a status that the server will refuse
            code, _, reason = status.strip().partition(" ")
            headers = lambda: [(":reason", reason), *((name.lower(), value) for name, value in header_list)]  # noqa: E731 - asked for only if it is needed
            exchange.begun(int(code), headers)
        write = start_response(status, header_list, *exc_info)

        def writing(data: bytes) -> Any:
            exchange.answer.add(data)
            return write(data)

        return writing

    try:
        with inbound.inside(exchange.unit):
            pieces = app(environ, starting)
    except BaseException as error:
        _note_entry(exchange, environ, served or app)
        exchange.end(error)
        raise
    _note_entry(exchange, environ, served or app)
    wrapper = environ.get("wsgi.file_wrapper")
    if isinstance(pieces, list | tuple):
        for piece in cast("list[bytes]", pieces):
            exchange.answer.add(piece)
    elif not (isinstance(wrapper, type) and isinstance(pieces, wrapper)):
        return _Answer(pieces, exchange)
    exchange.end()
    return pieces


def _note_entry(exchange: Exchange, environ: Environ, app: Any) -> None:
    """Say which function answered, as far as Flask tells, and which ones answer other requests."""
    with suppress(Exception):  # a framework of another kind
        views = app.view_functions
        exchange.unit.entry = views.get(environ["werkzeug.request"].endpoint, nobody)
        exchange.unit.others = views.values


class Served:
    """An application as a server calls it: each request through it is a run."""

    def __init__(self, app: App) -> None:
        self._app = app

    def __getattr__(self, name: str) -> Any:
        return getattr(self._app, name)

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Serve one request."""
        if door.doorman() is None:
            return self._app(environ, start_response)
        return serve(self._app, environ, start_response)


def _call(original: Any) -> Any:
    @wraps(original)
    def __call__(self: Any, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:  # noqa: N807 - a method of the class that is patched
        if door.doorman() is None or inbound.under_way() or asks_itself(self, start_response):
            return original(self, environ, start_response)
        app: App = lambda environ, start_response: original(self, environ, start_response)  # noqa: E731 - asked for only if it is needed
        return serve(app, environ, start_response, self)

    return __call__


def _load_wsgi(original: Any) -> Any:
    @wraps(original)
    def load_wsgi(self: Any) -> None:
        original(self)
        origins.note(self.wsgi, getattr(self.app, "app_uri", None))
        if not _is_asynchronous(self.wsgi) and not type(self).__name__.lower().startswith(("uvicorn", "asgi")):
            self.wsgi = Served(self.wsgi)

    return load_wsgi


def _apart(original: Any) -> Any:
    @wraps(original)
    def spawn_worker(self: Any) -> Any:
        inbound_clients.workers_started()
        with children.apart():
            return original(self)

    return spawn_worker


def _is_asynchronous(app: Any) -> bool:
    called: Any = getattr(cast("type[Any]", type(app)), "__call__", None)  # noqa: B004 - its colour is asked, not whether
    return inspect.iscoroutinefunction(app) or inspect.iscoroutinefunction(called)


def _locate_app(original: Any) -> Any:
    """Hear under which name the command line of Flask or Quart finds an application: given, or one of these four."""

    @wraps(original)
    def locate_app(module_name: str, app_name: str | None = None, *args: Any, **kwargs: Any) -> Any:
        app = original(module_name, app_name, *args, **kwargs)
        names = [app_name] if app_name else ["app", "application", "create_app", "make_app"]
        module = sys.modules.get(module_name)
        held = next((each for each in names if app_name or callable(getattr(module, each, None))), None)
        if app is not None and held is not None:
            origins.note(app, f"{module_name}:{held}")
        return app

    return locate_app


def _run(original: Any) -> Any:
    @wraps(original)
    def run(self: Any, application: Any) -> Any:
        return original(self, Served(application))

    return run


def _run_wsgi(original: Any) -> Any:
    """Cut werkzeug's development server, which asks its server for the application at each request."""

    @wraps(original)
    def __init__(self: Any, host: Any, port: Any, app: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - a method of the class that is patched
        original(self, host, port, Served(app), *args, **kwargs)

    return __init__


def _server_of(original: Any) -> Any:
    """Cut waitress, which is given the application when its server is made."""

    @wraps(original)
    def __init__(self: Any, application: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - a method of the class that is patched
        original(self, application if isinstance(application, Served) else Served(application), *args, **kwargs)

    return __init__


def _server_at(original: Any) -> Any:
    """Cut cheroot likewise."""

    @wraps(original)
    def __init__(self: Any, bind_addr: Any, wsgi_app: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - as above
        original(self, bind_addr, Served(wsgi_app), *args, **kwargs)

    return __init__


_CUTS = (
    ("gunicorn.arbiter", "Arbiter", "spawn_worker", _apart),
    ("gunicorn.workers.base", "Worker", "load_wsgi", _load_wsgi),
    ("wsgiref.handlers", "BaseHandler", "run", _run),
    ("werkzeug.serving", "BaseWSGIServer", "__init__", _run_wsgi),
    ("waitress.server", "BaseWSGIServer", "__init__", _server_of),
    ("cheroot.wsgi", "Server", "__init__", _server_at),
    ("flask.cli", "", "locate_app", _locate_app),
    ("quart.cli", "", "locate_app", _locate_app),
    ("flask.app", "Flask", "__call__", _call),
    ("django.core.handlers.wsgi", "WSGIHandler", "__call__", _call),
)
"""Modules, each with the class (or none) and the function in it that is replaced, and what makes the replacement."""


def _install(patches: PatchSet) -> None:
    for module, owner, name, make in _CUTS:
        patches.when_imported(module, _replacing(patches, owner, name, make))


def _replacing(patches: PatchSet, owner: str, name: str, make: Callable[[Any], Any]) -> Callable[[Any], None]:
    return lambda module: patches.replace(getattr(module, owner) if owner else module, name, make)


INTEGRATION = Integration(
    name="wsgi",
    libraries=("gunicorn", "werkzeug", "waitress", "cheroot", "flask", "quart", "django"),
    install=_install,
    hooks=tuple(module for module, *_ in _CUTS),
)
