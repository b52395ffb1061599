"""qdrant-client over HTTP, blocking and asynchronous: cut where its own client hands a request to httpx.

What is asked and answered is the JSON of Qdrant's API; models and errors are made of it by the client. A client asks
once by itself, on a thread of its own, which version the server has. Collections in memory or in a folder are no
boundary: their code runs again.
"""

from __future__ import annotations

from functools import lru_cache, wraps
from typing import Any, Final
from urllib.parse import unquote

from reenact.boundary import databases, door, rest
from reenact.boundary.forgiving import forgive
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.json import Json
from reenact.values.query import Query

_SYSTEM: Final = "qdrant"
_CLIENTS: Final = "qdrant_client.http.api_client"
_VERSIONS: Final = ("qdrant_client.qdrant_remote", "qdrant_client.async_qdrant_remote")
"""Modules that ask for the version of a server, by a function that they imported by name."""
_BY_METHOD: Final = {"GET": "get", "PUT": "create", "PATCH": "update", "DELETE": "delete"}
_SEARCHES: Final = frozenset({"query", "search", "recommend", "discover"})
_OWN: Final = frozenset({"", "healthz", "livez", "readyz"})
"""What tells of the server, and of nothing in it."""


@lru_cache(maxsize=1024)
def _asks(method: str, path: str) -> rest.Asks:
    """Say what a request does."""
    parts = [unquote(each) for each in path.partition("?")[0].strip("/").split("/")]
    if parts[0] != "collections" or len(parts) < 2:
        return rest.Asks(word=parts[0] or "version", pings=parts[0] in _OWN)
    _, collection, what, *behind = [*parts, ""]
    behind = [each for each in behind if each]
    searches = what == "points" and behind[:1] != [] and behind[0] in _SEARCHES
    return rest.Asks(word=_word(method, what, behind), collection=collection, searches=searches)


def _word(method: str, what: str, behind: list[str]) -> str:
    if not what:
        return f"{_BY_METHOD.get(method, method)}_collection"
    if what != "points":
        return ".".join([what, *behind[:1]])
    if not behind or method == "GET":
        return "upsert" if method == "PUT" else "retrieve"
    return ".".join(behind)


def _query(request: Any) -> Query | None:
    """Make the question of a request; None where nobody listens, or it cannot be read."""
    if not door.is_kept():
        return None
    try:
        url = request.url
        target = url.raw_path.decode("ascii", "replace")
        server = databases.server_of(url.host, url.port or {"https": 443}.get(url.scheme, 80))
        return rest.question(_SYSTEM, (request.method, target, request.read()), _asks(request.method, target), server)
    except Exception:  # our failure is never the agent's
        forgive("qdrant.query")
        return None


def _reply(response: Any) -> Json:
    return rest.spell_reply(response.status_code, response.headers.multi_items(), response.content)


def _untold(request: Any, answer: Json) -> Any:
    import httpx

    status, headers, body = rest.untold(answer)
    return httpx.Response(status, headers=headers, content=body, request=request)


def _send(original: Any) -> Any:
    @wraps(original)
    def send_inner(self: Any, request: Any) -> Any:
        query = _query(request)
        run = lambda: original(self, request)  # noqa: E731 - it is used here only
        return run() if query is None else databases.through(query, run, _reply, lambda reply: _untold(request, reply))

    return send_inner


def _send_async(original: Any) -> Any:
    @wraps(original)
    async def send_inner(self: Any, request: Any) -> Any:
        query = _query(request)
        run = lambda: original(self, request)  # noqa: E731 - it is used here only
        if query is None:
            return await run()
        return await databases.through_async(query, run, _reply, lambda reply: _untold(request, reply))

    return send_inner


def _version(original: Any) -> Any:
    """Cut what asks for the version of a server, and tells nobody unless that is another one."""

    @wraps(original)
    def get_server_version(rest_uri: str, *args: Any, **kwargs: Any) -> Any:
        run = lambda: original(rest_uri, *args, **kwargs)  # noqa: E731 - it is used here only
        if not door.is_kept():
            return run()
        asks = rest.Asks(word="version", aside=True)
        query = rest.question(_SYSTEM, ("GET", "/", b""), asks, rest.server_of(rest_uri))
        return databases.through(query, run, lambda version: version, lambda version: version)

    return get_server_version


def _install(patches: PatchSet) -> None:
    def cut(module: Any) -> None:
        patches.replace(module.ApiClient, "send_inner", _send)
        patches.replace(module.AsyncApiClient, "send_inner", _send_async)

    def cut_version(module: Any) -> None:
        if hasattr(module, "get_server_version"):
            patches.replace(module, "get_server_version", _version)

    patches.when_imported(_CLIENTS, cut)
    for name in _VERSIONS:
        patches.when_imported(name, cut_version)


INTEGRATION = Integration(
    name="qdrant_connections", libraries=("qdrant_client",), install=_install, hooks=(_CLIENTS, *_VERSIONS)
)
