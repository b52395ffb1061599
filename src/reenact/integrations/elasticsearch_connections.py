"""Elasticsearch's clients, blocking and asynchronous: cut at a node, where one attempt of a request is made.

Retries, the choice of a node, the check of the product and errors are made above it, by the client itself, and so are
done again in a replay. Whatever carries the request (urllib3, requests, httpx, aiohttp) lies below and stays unused.
"""

from __future__ import annotations

import sys
from functools import wraps
from typing import Any, Final

from reenact.boundary import databases, door, rest
from reenact.boundary.forgiving import forgive
from reenact.boundary.search_requests import asks
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.json import Json
from reenact.values.lenient import as_object
from reenact.values.query import Query

_SYSTEM: Final = "elasticsearch"
_NODES: Final = {
    "elastic_transport._node._http_urllib3": ("Urllib3HttpNode",),
    "elastic_transport._node._http_requests": ("RequestsHttpNode",),
    "elastic_transport._node._http_httpx": ("HttpxHttpNode", "HttpxAsyncHttpNode"),
    "elastic_transport._node._http_aiohttp": ("AiohttpHttpNode",),
}
"""Module to the classes of nodes in it; those of one that has `Async` or `Aio` in its name do not block."""


def _query(node: Any, method: str, target: str, body: Any) -> Query | None:
    """Make the question of a request; None where nobody listens, or it cannot be read."""
    if not door.is_kept():
        return None
    try:
        data = bytes(body) if body else b""
        where = f"{getattr(node, 'path_prefix', '') or ''}{target}"
        server = databases.server_of(node.host, node.port)
        return rest.question(_SYSTEM, (method, where, data), asks(method, target, data), server)
    except Exception:  # our failure is never the agent's
        forgive("elasticsearch.query")
        return None


def _reply(reply: Any) -> Json:
    answer = as_object(rest.spell_reply(reply.meta.status, list(reply.meta.headers.items()), reply.body))
    return {**answer, "version": str(reply.meta.http_version), "duration": float(reply.meta.duration)}


def _untold(node: Any, answer: Json) -> Any:
    """Make what a node gives of a recorded answer."""
    models: Any = sys.modules["elastic_transport._models"]
    base: Any = sys.modules["elastic_transport._node._base"]
    status, headers, body = rest.untold(answer)
    about = as_object(answer)
    meta = models.ApiResponseMeta(
        node=node.config,
        duration=about.get("duration", 0.0),
        http_version=about.get("version", "1.1"),
        status=status,
        headers=models.HttpHeaders(headers),
    )
    return base.NodeApiResponse(meta, body)


def _perform(original: Any) -> Any:
    @wraps(original)
    def perform_request(self: Any, method: str, target: str, body: Any = None, *args: Any, **kwargs: Any) -> Any:
        query = _query(self, method, target, body)
        run = lambda: original(self, method, target, body, *args, **kwargs)  # noqa: E731 - it is used here only
        return run() if query is None else databases.through(query, run, _reply, lambda reply: _untold(self, reply))

    return perform_request


def _perform_async(original: Any) -> Any:
    @wraps(original)
    async def perform_request(self: Any, method: str, target: str, body: Any = None, *args: Any, **kwargs: Any) -> Any:
        query = _query(self, method, target, body)
        run = lambda: original(self, method, target, body, *args, **kwargs)  # noqa: E731 - it is used here only
        if query is None:
            return await run()
        return await databases.through_async(query, run, _reply, lambda reply: _untold(self, reply))

    return perform_request


def _install(patches: PatchSet) -> None:
    def cut(module: Any) -> None:
        for name in _NODES[module.__name__]:
            make = _perform_async if "Async" in name or "Aio" in name else _perform
            patches.replace(getattr(module, name), "perform_request", make)

    for name in _NODES:
        patches.when_imported(name, cut)


INTEGRATION = Integration(
    name="elasticsearch_connections", libraries=("elastic_transport",), install=_install, hooks=tuple(_NODES)
)
