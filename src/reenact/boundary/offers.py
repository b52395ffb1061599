"""The tools that a model call offers, heard from its request as it passes: the moment before any of them can run.

Costs a call that offers none one look behind its messages, and a call that offers the same as the one before one
comparison of bytes.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_list, as_object

_log = logging.getLogger("reenact")
_MESSAGES = (b'"messages":[', b'"input":[')
_HEAD = 256
"""Bytes in which the messages begin, where a request begins with them."""
_BEHIND = b'],"model":"'
"""What follows the messages as the SDKs spell a request. Quotation marks inside of JSON text are escaped."""
_KEYS = (b'"tools"', b'"functions"')
_REMEMBERED = 32

Listener = Callable[[frozenset[str]], None]


class _Known(NamedTuple):
    """How requests begin and end that offer these tools."""

    beginning: bytes
    end: bytes
    names: frozenset[str]


class _Offers:
    """Who listens, and requests whose tools are known."""

    __slots__ = ("known", "last", "listener")

    def __init__(self) -> None:
        self.listener: Listener | None = None
        self.known: deque[_Known] = deque(maxlen=_REMEMBERED)
        self.last: _Known | None = None


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
        last = _OFFERS.last
        if last is not None and body.endswith(last.end) and body.startswith(last.beginning):
            names = last.names
        else:
            names = _offered(body)
        if names:
            listener(names)
    except Exception:
        _log.warning("reenact: looking for the tools of a request failed; the program goes on", exc_info=True)


def _offered(body: bytes) -> frozenset[str]:
    head, behind = _around_the_messages(body)
    places = [body.find(key, behind) for key in _KEYS if body.rfind(key, behind) >= 0]
    if not places:
        if behind:
            _OFFERS.last = _Known(body[:head], body[behind:], frozenset())
        return frozenset()
    for known in _OFFERS.known:
        if body.endswith(known.end):
            _OFFERS.last = known
            return known.names
    whole = as_object(parsed_or_none(body))
    names, end = tool_names(whole), body[min(places) :]
    if tool_names(parsed_or_none(b"{" + end)) == names:
        _OFFERS.last = known = _Known(b"", end, names)
        _OFFERS.known.append(known)
    return names


def _around_the_messages(body: bytes) -> tuple[int, int]:
    """Say where the messages begin, and where tools can begin behind them; 0 where that cannot be said."""
    head = max(body.find(key, 0, _HEAD) for key in _MESSAGES)
    if head < 0 or any(key in body[:head] for key in _KEYS):
        return 0, 0
    return head, max(0, body.rfind(_BEHIND))


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
