"""OpenSearch's client, blocking and asynchronous: cut at a connection, where one attempt of a request is made.

Retries and the choice of a node are made above it. What a status means is decided in it, so errors are told as errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import wraps
from typing import Any, Final, cast
from urllib.parse import urlencode

from reenact.boundary import databases, door, rest
from reenact.boundary.forgiving import forgive
from reenact.boundary.search_requests import asks
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.json import Json
from reenact.values.query import Query

_SYSTEM: Final = "opensearch"
_BLOCKING: Final = {
    "opensearchpy.connection.http_urllib3": "Urllib3HttpConnection",
    "opensearchpy.connection.http_requests": "RequestsHttpConnection",
}
_ASYNCHRONOUS: Final = {
    "opensearchpy._async.http_aiohttp": "AIOHttpConnection",
    "opensearchpy.connection.http_async": "AsyncHttpConnection",
}
_Asked = tuple[str, str, Mapping[str, Any] | None, Any]


def _query(connection: Any, asked: _Asked) -> Query | None:
    """Make the question of a request; None where nobody listens, or it cannot be read."""
    if not door.is_kept():
        return None
    method, url, params, body = asked
    try:
        data = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else bytes(body or b"")
        target = f"{url}?{urlencode(params)}" if params else url
        where = f"{getattr(connection, 'url_prefix', '') or ''}{target}"
        server = databases.server_of(connection.hostname, connection.port)
        return rest.question(_SYSTEM, (method, where, data), asks(method, target, data), server)
    except Exception:  # our failure is never the agent's
        forgive("opensearch.query")
        return None


def _reply(reply: Any) -> Json:
    status, headers, text = reply
    pairs = [(str(name), str(value)) for name, value in cast("Mapping[Any, Any]", headers).items()]
    return rest.spell_reply(status, pairs, text.encode("utf-8", "surrogatepass"))


def _untold(answer: Json) -> Any:
    from urllib3 import HTTPHeaderDict

    status, headers, body = rest.untold(answer)
    return status, HTTPHeaderDict(headers), body.decode("utf-8", "surrogatepass")


def _perform(original: Any) -> Any:
    @wraps(original)
    def perform_request(
        self: Any, method: str, url: str, params: Any = None, body: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        query = _query(self, (method, url, params, body))
        run = lambda: original(self, method, url, params, body, *args, **kwargs)  # noqa: E731 - it is used here only
        return run() if query is None else databases.through(query, run, _reply, _untold)

    return perform_request


def _perform_async(original: Any) -> Any:
    @wraps(original)
    async def perform_request(
        self: Any, method: str, url: str, params: Any = None, body: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        query = _query(self, (method, url, params, body))
        run = lambda: original(self, method, url, params, body, *args, **kwargs)  # noqa: E731 - it is used here only
        return await (run() if query is None else databases.through_async(query, run, _reply, _untold))

    return perform_request


def _install(patches: PatchSet) -> None:
    def cut(module: Any) -> None:
        patches.replace(getattr(module, _BLOCKING[module.__name__]), "perform_request", _perform)

    def cut_async(module: Any) -> None:
        patches.replace(getattr(module, _ASYNCHRONOUS[module.__name__]), "perform_request", _perform_async)

    for name in _BLOCKING:
        patches.when_imported(name, cut)
    for name in _ASYNCHRONOUS:
        patches.when_imported(name, cut_async)


INTEGRATION = Integration(
    name="opensearch_connections",
    libraries=("opensearchpy",),
    install=_install,
    hooks=(*_BLOCKING, *_ASYNCHRONOUS),
)
