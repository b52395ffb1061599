"""The tools that a model call offers, heard from its request as it passes: the moment before any of them can run.

Costs a call that offers none one fast search of its bytes, and a call that offers the same as one before a comparison
of its end.
"""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import ahocorasick_rs

from reenact.boundary import place
from reenact.values import alarms
from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_list, as_object

_log = logging.getLogger("reenact")
_KEYS = ahocorasick_rs.BytesAhoCorasick([b'"tools"', b'"functions"'])
"""Searches for two words at once are some ten times as fast here as Python's for one."""
_REMEMBERED = 32
_RUNS = 10_000
"""Runs whose offered schemas are remembered."""

Listener = Callable[[frozenset[str]], None]


class _Known(NamedTuple):
    """How requests end that offer these tools. Quotation marks inside of JSON text are escaped."""

    end: bytes
    names: frozenset[str]
    properties: Mapping[str, frozenset[str]] = {}
    """The properties of the schemas, by tool."""


class _Offers:
    """Who listens, and requests whose tools are known."""

    __slots__ = ("by_run", "known", "listener")

    def __init__(self) -> None:
        self.listener: Listener | None = None
        self.known: deque[_Known] = deque(maxlen=_REMEMBERED)
        self.by_run: OrderedDict[int, tuple[Mapping[str, frozenset[str]], ...]] = OrderedDict()
        """What each run offered, by its root span; the latest last."""


_OFFERS = _Offers()


def listen(listener: Listener | None) -> None:
    """Have `listener` told of the names of the tools that each request offers; None to stop, and forget them."""
    _OFFERS.listener = listener
    if listener is None:
        _OFFERS.known.clear()
        _OFFERS.by_run.clear()


def announce(name: object) -> None:
    """Have the listener told of a tool that no request lists, as it is called. Never raises an `Exception`."""
    listener = _OFFERS.listener
    if listener is None or not isinstance(name, str):
        return
    try:
        listener(frozenset({name}))
    except Exception:
        alarms.pass_on()
        _log.warning("reenact: looking for the tool %s failed; the program goes on", name, exc_info=True)


def hear(body: bytes) -> None:
    """Hear the request body of a model call. Never raises an `Exception`."""
    listener = _OFFERS.listener
    if listener is None:
        return
    try:
        for offer in _OFFERS.known:
            if body.endswith(offer.end):
                if offer.names:
                    _remember(offer.properties)
                    listener(offer.names)
                return
        if (key_matches := _KEYS.find_matches_as_indexes(body)) and (names := _offered(body, key_matches[0][1])):
            listener(names)
    except Exception:
        alarms.pass_on()
        _log.warning("reenact: looking for the tools of a request failed; the program goes on", exc_info=True)


def _offered(body: bytes, begins: int) -> frozenset[str]:
    """Read the names; `begins` is where tools are first spoken of."""
    parsed = parsed_or_none(body)
    names, end = tool_names(parsed), body[begins:]
    properties = tool_properties(parsed)
    _remember(properties)
    last = parsed_or_none(b"{" + end)
    if tool_names(last) == names and tool_properties(last) == properties:  # they stand at the end, as users put them
        _OFFERS.known.append(_Known(end, names, properties))
    return names


def _remember(properties: Mapping[str, frozenset[str]]) -> None:
    here = place.current()
    root = here.root if here is not None else 0
    history = _OFFERS.by_run.get(root, ())
    if not any(each is properties for each in history):
        _OFFERS.by_run[root] = (*history[-_REMEMBERED:], properties)
        if len(_OFFERS.by_run) > _RUNS:
            _OFFERS.by_run.popitem(last=False)


def properties_of(name: str) -> frozenset[str] | None:
    """Give the properties of the schema by which the run of the code now running offered a tool; None where none did.

    Where several did, the one that came last.
    """
    here = place.current()
    for root in (here.root, 0) if here is not None else (0,):
        for each in reversed(_OFFERS.by_run.get(root, ())):
            if name in each:
                return each[name]
    return None


def _offers(body: Json) -> Iterator[dict[str, Json]]:
    """Yield what a request body offers, in whichever provider's spelling, by which it may be named."""
    request = as_object(body)
    lists = [as_list(request.get(key)) for key in ("tools", "functions")]
    lists.append(as_list(as_object(request.get("toolConfig")).get("tools")))  # Bedrock's
    for tool in (as_object(tool) for each in lists for tool in each):
        yield from (tool, *(as_object(tool.get(key)) for key in ("function", "custom", "toolSpec")))
        for key in ("functionDeclarations", "function_declarations"):  # Gemini's
            yield from map(as_object, as_list(tool.get(key)))


def _schema(offer: dict[str, Json]) -> dict[str, Json] | None:
    schema = next((as_object(offer[key]) for key in _SCHEMAS if isinstance(offer.get(key), dict)), None)
    return as_object(schema["json"]) if schema is not None and isinstance(schema.get("json"), dict) else schema


_SCHEMAS = (
    "parameters",
    "input_schema",
    "parametersJsonSchema",
    "parameters_json_schema",
    "inputSchema",
)


def tool_properties(body: Json) -> dict[str, frozenset[str]]:
    """Read the properties of the schemas of the functions that a request body offers, by name."""
    properties_by_name: dict[str, frozenset[str]] = {}
    for offer in _offers(body):
        schema = _schema(offer)
        if isinstance(name := offer.get("name"), str) and name and schema is not None:
            if isinstance(properties := schema.get("properties"), dict):
                properties_by_name[name] = frozenset(properties)
            elif not schema.keys() - {"type", "additionalProperties", "title", "description"}:
                properties_by_name[name] = frozenset()
    return properties_by_name


def tool_names(body: Json) -> frozenset[str]:
    """Read the names of the functions that a request body offers, in whichever provider's spelling."""
    return frozenset(name for offer in _offers(body) if isinstance(name := offer.get("name"), str) and name)
