"""ASGI: each HTTP request to an application is a run. Cut where servers hand it over and at the frameworks' own door.

The server's cut comes first and sees every application, plain ones too; the frameworks' cut sees servers that we do
not know, and test clients. Only the outermost is a run: an application that is mounted in another, or called by it,
belongs to the request around it. Lifespan and websocket scopes pass through; what they call belongs to the process.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import suppress
from functools import partial, wraps
from typing import Any, TypeAlias, cast

from reenact.boundary import children, door, inbound, inbound_clients, origins
from reenact.boundary.own_code import is_own_code
from reenact.boundary.web import Exchange, asks_itself, nobody
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.json import Json

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


def _text(raw: object) -> str:
    return raw.decode("latin-1") if isinstance(raw, bytes | bytearray) else str(raw or "")


def _headers(scope: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in scope.get("headers") or ():
        yield _text(name).lower(), _text(value)


def _facts(scope: Scope) -> dict[str, Json]:
    """Read a scope as it is when the first call is made: a proxy's headers have been applied to it by then."""
    facts: dict[str, Json] = {
        "interface": "asgi",
        "version": _text(scope.get("http_version")),
        "scheme": _text(scope.get("scheme")) or "http",
        "method": _text(scope.get("method")),
        "path": _text(scope.get("path")),
        "raw_path": _text(scope.get("raw_path")),
        "query": _text(scope.get("query_string")),
        "root_path": _text(scope.get("root_path")),
    }
    if spec := cast("dict[str, Any]", scope.get("asgi") or {}).get("spec_version"):
        facts["spec"] = str(spec)
    for name in ("client", "server"):
        if address := scope.get(name):
            facts[name] = [str(address[0]), address[1]]
    with suppress(Exception):  # a route of the framework's own making
        if route := getattr(scope.get("route"), "path", None):
            facts["route"] = str(route)
    return facts


def _is_own(function: Any) -> bool:
    """Tell whether a function is code of the agent's own, such as a middleware around a framework's application."""
    function = getattr(function, "__func__", function)
    code: Any = getattr(function, "__code__", None)
    return code is not None and is_own_code(code, getattr(function, "__globals__", {}))


async def serve(app: App, scope: Scope, receive: Receive, send: Send, served: Any = None) -> None:
    """Run one request through `app` as a run of its own. Raises what the application raises.

    `served` is the application's own object, where `app` is only how it is called.
    """
    path, root_path = scope.get("path"), scope.get("root_path")  # a router may write to the scope
    as_it_came = lambda: {**_facts(scope), "path": _text(path), "root_path": _text(root_path)}  # noqa: E731 - asked for only if it is needed
    exchange = Exchange(served or app, "asgi", as_it_came, partial(_headers, scope))
    complete, hands_over = False, not _is_own(send)

    async def receiving() -> MutableMapping[str, Any]:
        message = await receive()
        if message["type"] == "http.request":
            exchange.unit.receive()
            exchange.body.add(message.get("body") or b"")
        elif message["type"] == "http.disconnect" and not complete:
            exchange.gone()
        return message

    async def sending(message: MutableMapping[str, Any]) -> None:
        nonlocal complete
        kind = message["type"]
        if kind == "http.response.start":
            exchange.begun(message["status"], partial(_headers, message))
        elif kind == "http.response.body" and exchange.left_at is None:
            exchange.answer.add(message.get("body") or b"")
            if not (complete or message.get("more_body", False)):
                exchange.unit.reply()
            complete = complete or not message.get("more_body", False)
        if hands_over:
            with inbound.outside():  # a server may write its log there
                await send(message)
        else:
            await send(message)

    with inbound.inside(exchange.unit):
        try:
            await app(scope, receiving, sending)
        except BaseException as error:
            _note_entry(exchange, scope)
            exchange.end(error)
            raise
        _note_entry(exchange, scope)
        exchange.end()


def _note_entry(exchange: Exchange, scope: Scope) -> None:
    """Say which function answered, as far as the framework tells, and which ones answer other requests."""
    with suppress(Exception):  # a framework of another kind
        routes = scope["app"].routes
        exchange.unit.entry = scope.get("endpoint") or nobody
        exchange.unit.others = lambda: _endpoints(routes)


def _endpoints(routes: Any) -> Iterator[Any]:
    for route in routes:
        yield getattr(route, "endpoint", None)
        yield from _endpoints(getattr(route, "routes", None) or ())


class Served:
    """An application as a server calls it: each HTTP request through it is a run."""

    __slots__ = ("_app",)

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one scope."""
        if scope.get("type") != "http" or door.doorman() is None:
            await self._app(scope, receive, send)
        else:
            await serve(self._app, scope, receive, send)


def _run_asgi(original: Any) -> Any:
    @wraps(original)
    async def run_asgi(self: Any, app: Any) -> None:
        await original(self, app if door.doorman() is None else Served(app))

    return run_asgi


def _call(original: Any) -> Any:
    @wraps(original)
    async def __call__(self: Any, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: N807 - a method of the class that is patched
        is_apart = scope.get("type") == "http" and door.doorman() is not None and not inbound.under_way()
        if not is_apart or asks_itself(self, send):
            await original(self, scope, receive, send)
            return
        await serve(partial(original, self), scope, receive, send, self)

    return __call__


def _load(original: Any) -> Any:
    @wraps(original)
    def load(self: Any) -> None:
        original(self)
        with suppress(Exception):  # a configuration of another version; the modules are searched instead
            app = self.loaded_app
            while type(app).__module__.startswith("uvicorn.") and hasattr(app, "app"):
                app = app.app
            origins.note(app, self.app, factory=bool(self.factory))

    return load


def _apart(original: Any) -> Any:
    @wraps(original)
    def start(self: Any) -> None:
        inbound_clients.workers_started()
        with children.apart():
            original(self)

    return start


def _load_wsgi(original: Any) -> Any:
    """Cut gunicorn's own worker for ASGI."""

    @wraps(original)
    def load_wsgi(self: Any) -> None:
        original(self)
        if (app := getattr(self, "asgi", None)) is not None:
            origins.note(app, getattr(self.app, "app_uri", None))
            self.asgi = Served(app)

    return load_wsgi


def _wrapped(original: Any) -> Any:
    """Cut hypercorn, which wraps each application that it serves."""

    @wraps(original)
    async def __call__(self: Any, scope: Scope, receive: Receive, send: Send, *rest: Any) -> None:  # noqa: N807 - as above
        if not isinstance(self.app, Served):
            self.app = Served(self.app)
        await original(self, scope, receive, send, *rest)

    return __call__


def _install(patches: PatchSet) -> None:
    def uvicorn(name: str) -> Callable[[Any], None]:
        return lambda module: patches.replace(getattr(module, name), "run_asgi", _run_asgi)

    patches.when_imported("uvicorn.config", lambda module: patches.replace(module.Config, "load", _load))
    patches.when_imported(
        "uvicorn.supervisors.multiprocess", lambda module: patches.replace(module.Process, "start", _apart)
    )
    patches.when_imported(
        "uvicorn.supervisors.basereload",
        lambda module: patches.replace(module.BaseReload, "startup", _apart),
    )
    patches.when_imported(
        "gunicorn.workers.gasgi", lambda module: patches.replace(module.ASGIWorker, "load_wsgi", _load_wsgi)
    )
    for module in ("h11_impl", "httptools_impl"):
        patches.when_imported(f"uvicorn.protocols.http.{module}", uvicorn("RequestResponseCycle"))
    patches.when_imported("starlette.applications", lambda module: patches.replace(module.Starlette, "__call__", _call))
    patches.when_imported(
        "hypercorn.app_wrappers", lambda module: patches.replace(module.ASGIWrapper, "__call__", _wrapped)
    )
    patches.when_imported("litestar.app", lambda module: patches.replace(module.Litestar, "__call__", _call))
    patches.when_imported("quart.app", lambda module: patches.replace(module.Quart, "__call__", _call))
    patches.when_imported(
        "django.core.handlers.asgi", lambda module: patches.replace(module.ASGIHandler, "__call__", _call)
    )


INTEGRATION = Integration(
    name="asgi",
    libraries=("uvicorn", "hypercorn", "starlette", "litestar", "quart", "django"),
    install=_install,
    hooks=(
        "uvicorn.config",
        "uvicorn.supervisors.multiprocess",
        "uvicorn.supervisors.basereload",
        "gunicorn.workers.gasgi",
        "uvicorn.protocols.http.h11_impl",
        "uvicorn.protocols.http.httptools_impl",
        "hypercorn.app_wrappers",
        "litestar.app",
        "quart.app",
        "starlette.applications",
        "django.core.handlers.asgi",
    ),
)
