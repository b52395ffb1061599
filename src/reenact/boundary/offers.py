"""The tools that a model call offers, heard from its request as it passes: the moment before any of them can run.

Costs a call that offers none two searches of what is new in its bytes, and a call that offers the same as one before a
comparison of its end.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_list, as_object
from reenact.values.prefix import Cut

_log = logging.getLogger("reenact")
_TOOLS, _FUNCTIONS = _KEYS = (b'"tools"', b'"functions"')
_REMEMBERED = 32
_LONG, _LARGEST = 2048, 1 << 20
"""A body of a length between these, which offers nothing, is worth remembering."""
_HEAD = 256
"""Bodies that begin with the same so many bytes are taken for turns of one conversation."""
_CONVERSATIONS = 4
_NOTHING = Cut(b"")

Listener = Callable[[frozenset[str]], None]


class _Known(NamedTuple):
    """How requests end that offer these tools. Quotation marks inside of JSON text are escaped."""

    end: bytes
    names: frozenset[str]


class _Offers:
    """Who listens, and requests whose tools are known."""

    __slots__ = ("known", "listener", "silent")

    def __init__(self) -> None:
        self.listener: Listener | None = None
        self.known: deque[_Known] = deque(maxlen=_REMEMBERED)
        self.silent: dict[int, Cut[bytes]] = {}
        """The last body of some conversations that offer nothing."""


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
        if _may_offer(body) and (names := _offered(body)):
            listener(names)
    except Exception:
        _log.warning("reenact: looking for the tools of a request failed; the program goes on", exc_info=True)


def _may_offer(body: bytes) -> bool:
    """Tell whether tools are spoken of, without looking again at what a conversation said before."""
    if not _LONG <= len(body) <= _LARGEST:
        return _TOOLS in body or _FUNCTIONS in body
    head = hash(body[:_HEAD])
    before = _OFFERS.silent.get(head, _NOTHING)
    known = before.shared(body)
    new = body[max(0, known - len(_FUNCTIONS)) :]
    if _TOOLS in new or _FUNCTIONS in new:
        return True
    silent = {
        other: cut for other, cut in _OFFERS.silent.items() if other != head
    }  # other threads may read the old one
    silent[head] = before.become(body, known)
    while len(silent) > _CONVERSATIONS:
        del silent[next(iter(silent))]
    _OFFERS.silent = silent
    return False


def _offered(body: bytes) -> frozenset[str]:
    begins = min(at for key in _KEYS if (at := body.find(key)) >= 0)
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
