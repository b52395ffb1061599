"""The tools that a model call offers, heard from its request as it passes: the moment before any of them can run.

Costs a call that offers none one fast search of its bytes, and a call that offers the same as one before a comparison
of its end.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import ahocorasick_rs

from reenact.values import alarms
from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_list, as_object

_log = logging.getLogger("reenact")
_KEYS = ahocorasick_rs.BytesAhoCorasick([b'"tools"', b'"functions"'])
"""Searches for two words at once are some ten times as fast here as Python's for one."""
_REMEMBERED = 32

Listener = Callable[[frozenset[str]], None]


class _Known(NamedTuple):
    """How requests end that offer these tools. Quotation marks inside of JSON text are escaped."""

    end: bytes
    names: frozenset[str]


class _Offers:
    """Who listens, and requests whose tools are known."""

    __slots__ = ("known", "listener")

    def __init__(self) -> None:
        self.listener: Listener | None = None
        self.known: deque[_Known] = deque(maxlen=_REMEMBERED)


_OFFERS = _Offers()


def listen(listener: Listener | None) -> None:
    """Have `listener` told of the names of the tools that each request offers; None to stop."""
    _OFFERS.listener = listener


def hear(body: bytes) -> None:
    """Hear the request body of a model call. Never raises an `Exception`."""
    listener = _OFFERS.listener
    if listener is None:
        return
    try:
        for known in _OFFERS.known:
            if body.endswith(known.end):
                if known.names:
                    listener(known.names)
                return
        if (spoken := _KEYS.find_matches_as_indexes(body)) and (names := _offered(body, spoken[0][1])):
            listener(names)
    except Exception:
        alarms.pass_on()
        _log.warning("reenact: looking for the tools of a request failed; the program goes on", exc_info=True)


def _offered(body: bytes, begins: int) -> frozenset[str]:
    """Read the names; `begins` is where tools are first spoken of."""
    names, end = tool_names(parsed_or_none(body)), body[begins:]
    if tool_names(parsed_or_none(b"{" + end)) == names:  # they stand at the end, as users mostly put them
        _OFFERS.known.append(_Known(end, names))
    return names


def tool_names(body: Json) -> frozenset[str]:
    """Read the names of the functions that a request body offers, in whichever provider's spelling."""
    held = as_object(body)
    offered = [as_object(tool) for key in ("tools", "functions") for tool in as_list(held.get(key))]
    found: set[str] = set()
    for tool in offered:
        for spelled in (tool, as_object(tool.get("function")), as_object(tool.get("custom"))):
            if isinstance(name := spelled.get("name"), str) and name:
                found.add(name)
        for inner in as_list(tool.get("functionDeclarations")):  # Gemini's
            if isinstance(name := as_object(inner).get("name"), str):
                found.add(name)
    return frozenset(found)
