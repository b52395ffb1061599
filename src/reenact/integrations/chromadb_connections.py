"""chromadb: its clients of a server, blocking and asynchronous, and its collections in memory or in a folder.

A client of a server is cut where it makes a request, and its own code makes results of the JSON that comes back. What
lies in this process is Rust's, over files that no event tells of: it is cut where Python asks it, and in a replay is
not made at all, so that no file is opened. Its answers are objects of which only attributes are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial, wraps
from types import SimpleNamespace
from typing import Any, Final, cast

from reenact.boundary import databases, door, rest
from reenact.boundary.forgiving import forgive
from reenact.contracts.integration import Integration, PatchSet
from reenact.values import alarms, typed
from reenact.values.call import CallKind
from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_list, as_object, at
from reenact.values.query import PING, Query

_SYSTEM: Final = "chroma"
_EMBEDDED: Final = "chromadb.api.rust"
_CLIENTS: Final = {"chromadb.api.fastapi": "FastAPI", "chromadb.api.async_fastapi": "AsyncFastAPI"}
_SEARCHES: Final = frozenset({"query", "search"})
_OWN: Final = frozenset(
    {"", "auth", "heartbeat", "version", "get_version", "pre-flight-checks", "healthcheck", "get_max_batch_size"}
)
"""What a client asks of the server itself, when it likes."""
_ABOVE: Final = re.compile(r"^/tenants/[^/]+(?:/databases/[^/]+)?/?")
_PLURAL: Final = {"GET": "list", "POST": "create"}
_SINGULAR: Final = {"GET": "get", "PUT": "update", "POST": "update", "DELETE": "delete"}
_MOST_NAMES: Final = 10_000
_names: Final[dict[str, str]] = {}
"""The names of collections, by their ids: a question has the id only."""


# values


def _plain(value: Any) -> Json:
    if isinstance(value, list | tuple):
        return [_plain(each) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in cast("Mapping[Any, Any]", value).items()}
    if hasattr(value, "tolist"):  # an array, or a number out of one
        return value.tolist()
    return typed.encode(value)


def _learn(value: Json) -> None:
    """Note the name of each collection that an answer tells of."""
    for each in [value, *as_list(value)]:
        identity, name = at(each, "id"), at(each, "name")
        if isinstance(identity, dict):
            identity = next(iter(identity.values()), None)
        if isinstance(identity, str) and isinstance(name, str):
            if len(_names) > _MOST_NAMES:
                _names.clear()
            _names[identity] = name


def _json_told(value: Any) -> Json:
    json_value = typed.encode(value)
    _learn(json_value)
    return {"body": {"json": json_value}}


def _json_untold(answer: Json) -> Any:
    value = at(answer, "body", "json")
    _learn(value)
    return typed.decode(value)


def _objects_told(value: Any) -> Json:
    """Spell what the embedded library gives: plain values, an object, or a list of objects."""
    listed = cast("list[Any]", value) if isinstance(value, list) else [value]
    are_objects = any(type(each).__module__ == "builtins" and not _is_plain(each) for each in listed)
    items: list[Json] = [_attributes(each) if are_objects else typed.encode(each) for each in listed]
    answer: Json = items if isinstance(value, list) else items[0]
    _learn(answer)
    return {"body": {"json": answer}, "objects": are_objects}


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool | list | dict | tuple)


def _attributes(value: Any) -> dict[str, Json]:
    names = [name for name in dir(value) if not name.startswith("_")]
    return {name: typed.encode(attribute) for name in names if not callable(attribute := getattr(value, name))}


def _objects_untold(answer: Json) -> Any:
    value = at(answer, "body", "json")
    _learn(value)
    if as_object(answer).get("objects") is not True:
        return typed.decode(value)
    objects = [_object(each) for each in as_list(value)]
    return objects if isinstance(value, list) else _object(value)


def _object(fields: Json) -> SimpleNamespace:
    return SimpleNamespace(**{name: typed.decode(value) for name, value in as_object(fields).items()})


# questions


@lru_cache(maxsize=4096)
def _said(method: str, path: str) -> tuple[str, str]:
    """Say what a request does, and to which collection."""
    parts = [each for each in _ABOVE.sub("", path).split("/") if each]
    if not parts:
        return ("database" if "/databases/" in path else "tenant" if path.startswith("/tenants/") else ""), ""
    if parts[0] != "collections":
        return parts[0], ""
    if len(parts) == 1:
        return f"{_PLURAL.get(method, method)}_collection{'s' * (method == 'GET')}", ""
    return (parts[2] if len(parts) > 2 else f"{_SINGULAR.get(method, method)}_collection"), parts[1]


def _question(asked: tuple[str, str, str], text: str, parameters: Json, server: str) -> Query:
    word, _, collection = asked
    return Query(
        system=_SYSTEM,
        operation=PING if word in _OWN else "request",
        text=text,
        parameters=parameters,
        server=server,
        kind=CallKind.RETRIEVER if word in _SEARCHES else CallKind.UNKNOWN,
        target=_names.get(collection, collection),
        word=word or "version",
    )


def _request(client: Any, method: str, path: str, kwargs: Mapping[str, Any]) -> Query | None:
    """Make the question of a request; None where nobody listens, or it cannot be read."""
    if not door.is_kept():
        return None
    try:
        word, collection = _said(method.upper(), path)
        asked = {name: _plain(kwargs[name]) for name in ("json", "params") if kwargs.get(name)}
        if isinstance(content := kwargs.get("content"), str | bytes):
            asked["json"] = parsed_or_none(content)
        server = rest.server_of(client.get_api_url())
        return _question((word, method, collection), f"{method.upper()} {path}", asked or None, server)
    except Exception:  # our failure is never the agent's
        forgive("chromadb.request")
        return None


def _asked(name: str, args: tuple[Any, ...], where: str) -> Query | None:
    """Make the question of something that the embedded library is asked."""
    if not door.is_kept():
        return None
    try:
        texts = [each for each in args[:2] if isinstance(each, str)]
        known_name = next((each for each in texts if each in _names), "")
        collection = texts[0] if texts and name.endswith("_collection") else known_name
        return _question((name, "", collection), name, _plain(args), where)
    except Exception:
        forgive("chromadb.asked")
        return None


# cuts


def _make_request(original: Any) -> Any:
    @wraps(original)
    def make(self: Any, method: str, path: str, **kwargs: Any) -> Any:
        query = _request(self, method, path, kwargs)
        run = lambda: original(self, method, path, **kwargs)  # noqa: E731 - it is used here only
        return run() if query is None else databases.through(query, run, _json_told, _json_untold)

    return make


def _make_request_async(original: Any) -> Any:
    @wraps(original)
    async def make(self: Any, method: str, path: str, **kwargs: Any) -> Any:
        query = _request(self, method, path, kwargs)
        run = lambda: original(self, method, path, **kwargs)  # noqa: E731 - it is used here only
        return await (run() if query is None else databases.through_async(query, run, _json_told, _json_untold))

    return make


class _Embedded:
    """Stands before the library of this process, which a replay makes only where it is asked for real."""

    def __init__(self, make: Callable[[], Any], where: str) -> None:
        self._make, self._where = make, where
        self._library: Any = None if door.is_strict() else make()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return partial(self._ask, name)

    def _ask(self, name: str, *args: Any) -> Any:
        query = _asked(name, args, self._where)
        run = partial(self._really, name, *args)
        return run() if query is None else databases.through(query, run, _objects_told, _objects_untold)

    def _really(self, name: str, *args: Any) -> Any:
        if self._library is None:
            self._library = self._make()
        return getattr(self._library, name)(*args)


def _bindings(original: Any) -> Any:
    @wraps(original, updated=())
    def make(*args: Any, **kwargs: Any) -> Any:
        really = partial(original, *args, **kwargs)
        if not door.is_kept():
            return really()
        return _Embedded(really, str(kwargs.get("persist_path") or ":memory:"))

    return make


def _install(patches: PatchSet) -> None:
    def cut(module: Any) -> None:
        make = _make_request if module.__name__ == "chromadb.api.fastapi" else _make_request_async
        patches.replace(getattr(module, _CLIENTS[module.__name__]), "_make_request", make)

    def cut_embedded(module: Any) -> None:
        try:
            patches.replace(module.chromadb_rust_bindings, "Bindings", _bindings)
        except AttributeError:  # an older release, whose collections are Python's own code
            alarms.pass_on()

    for name in _CLIENTS:
        patches.when_imported(name, cut)
    patches.when_imported(_EMBEDDED, cut_embedded)


INTEGRATION = Integration(
    name="chromadb_connections", libraries=("chromadb",), install=_install, hooks=(*_CLIENTS, _EMBEDDED)
)
