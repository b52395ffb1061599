"""What a process asked its servers when it connected: a unit of work that is replayed by itself may ask it again.

Theory of operation. Clients and frameworks ask a server for a few things when they connect: a time zone, its version, a
schema. The unit that connects asks, and those behind it find the connection, or the library, as it left it. In a replay
each of them is the first. So what was asked to set connections up, with its answer, stands in the recording of every
unit that did not ask it itself. A replay answers it from there as often as it is asked. What the unit itself asked has
to be asked once at least.

A question sets a connection up where nothing else has been asked over it, and where a library's function that connects
is on the stack: a framework's own questions, and those of the agent's listeners that it calls. So does a SET with which
the agent's own code begins.

Whether a pool asks if a connection is alive depends on whether it has one. So that is told apart, as a ping.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from sys import _getframe  # pyright: ignore[reportPrivateUsage] - what the running code is called costs least so
from types import FrameType
from typing import TYPE_CHECKING, Final

from reenact.boundary import lanes
from reenact.boundary.own_code import is_own_code
from reenact.values.json import Json, compact
from reenact.values.query import Query, is_transaction

if TYPE_CHECKING:
    from reenact.boundary.lanes import Reel

_MOST: Final = 64
"""So many questions are kept of a server."""
_LONGEST: Final = 16384
"""A longer answer is not kept, in characters of JSON."""
_LONGEST_PING: Final = 64
"""A longer statement, in characters, does more than ask for an answer."""
_DEEPEST: Final = 100
"""So many frames are looked at."""
_CONNECTS: Final = re.compile(r"(?:^|_)connect(?:_|$)")
"""How functions are called that make connections."""
_CALLS_LISTENERS: Final = frozenset(
    {
        *("sqlalchemy", "psycopg", "psycopg2", "psycopg_pool", "asyncpg", "aiopg", "pymysql", "aiomysql", "redis"),
        *("pymongo", "django", "peewee", "playhouse", "tortoise"),
    }
)
"""Libraries of databases that have code of the agent's set a connection up that they make."""
_PINGS: Final = re.compile(r"(?:^|_)(?:ping|usable|alive|closed|valid|check)(?:_|$)")
"""How functions are called that ask whether a connection is alive."""
_SPAWN: Final = "greenlet_spawn"
"""SQLAlchemy's coroutine that runs its own code in a greenlet, which stands still where the coroutine goes on."""
_EMPTY: Final = frozenset({"", "select 1", "select 1 from dual"})
"""What is asked only to have an answer, in small letters and with no semicolon."""

Server = tuple[str, str, str]


class SetUp:
    """A question that set a connection up."""

    __slots__ = ("answer", "is_answered", "is_kept", "query", "reel")

    def __init__(self, query: Query, reel: Reel, *, is_kept: bool) -> None:
        self.query, self.reel, self.is_kept = query, reel, is_kept
        self.is_answered = False
        self.answer: dict[str, Json] = {}
        """`{"answer": …}` where it is short enough to be kept."""

    def as_json(self) -> Json:
        """Spell the question, and its answer where it is kept."""
        return {"name": self.query.call().name, "asked": self.query.asked(), **self.answer}


class _Known:
    """What is known of one server."""

    def __init__(self) -> None:
        self.set_ups: dict[str, SetUp] = {}
        self.version = 0
        self._text: tuple[int, str] = (0, "")

    def text(self, reel: Reel) -> str:
        """Spell what others than `reel` asked."""
        answered = [each for each in tuple(self.set_ups.values()) if each.is_answered]
        others = [each for each in answered if each.reel is not reel]
        if len(others) < len(answered):
            return _json_text(others)
        if self._text[0] != self.version:
            self._text = self.version, _json_text(others)
        return self._text[1]


def _json_text(set_ups: list[SetUp]) -> str:
    return compact([each.as_json() for each in set_ups]) if set_ups else ""


_waiting: Final[dict[int, tuple[object, _Known, SetUp]]] = {}
"""The questions that have no answer yet, by the identity of the passage that waits for it, and that passage."""


class _Servers:
    """What is known of the servers, since the recording began."""

    def __init__(self) -> None:
        self.known: defaultdict[Server, _Known] = defaultdict(_Known)
        self._main = lanes.main()

    def current(self) -> defaultdict[Server, _Known]:
        """Give it; nothing is known where another recording has begun. A fork knows what its parent did."""
        if (main := lanes.main()) is not self._main:
            self._main = main
            if main.path == "main":
                self.known.clear()
                _waiting.clear()
        return self.known


_servers: Final = _Servers()


def is_connecting() -> bool:
    """Tell whether a library connects now: its function that does so is on the stack.

    Code of the agent's that it calls asks on its behalf where the library is one of databases: others call the agent
    when somebody connects to it.
    """
    return _runs(_CONNECTS, _CALLS_LISTENERS)


def is_ping(text: str) -> bool:
    """Tell whether a question only asks whether a connection is alive: a pool does by what it has, and by the clock.

    Some do within a transaction.
    """
    if len(text) > _LONGEST_PING:
        return False
    is_empty = text.strip(" ;").lower() in _EMPTY
    return (is_empty or is_transaction(text)) and _runs(_PINGS)


def _runs(names: re.Pattern[str], past_own_code: frozenset[str] = frozenset()) -> bool:
    """Tell whether a library's function of such a name is on the stack, with no code of the agent's in between.

    With `past_own_code` such code may be in between where the function is of one of these packages.
    """
    below_own_code = True
    for frame in islice(_stack(_getframe(2)), _DEEPEST):
        code, package = frame.f_code, str(frame.f_globals.get("__name__")).partition(".")[0]
        if is_own_code(code, frame.f_globals):
            if not past_own_code:
                return False
            below_own_code = False
        elif names.search(code.co_name) and package != "reenact" and (below_own_code or package in past_own_code):
            return True
    return False


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    """Give the frames that led here, those of a greenlet that waits for a coroutine of SQLAlchemy's among them."""
    while frame is not None:
        yield frame
        if frame.f_code.co_name == _SPAWN:
            yield from _stack(getattr(frame.f_locals.get("context"), "gr_frame", None))
        frame = frame.f_back


def server_of(query: Query) -> Server:
    """Name the server that a connection was made to."""
    return query.system, query.server, query.namespace


def begin(query: Query, server: Server, reel: Reel, passage: object, *, is_kept: bool) -> None:
    """Note that a question sets a connection up; its answer comes through `passage`, and others get it if `is_kept`."""
    known, key = _servers.current()[server], compact(query.asked())
    if key not in known.set_ups and len(known.set_ups) < _MOST:
        known.set_ups[key] = set_up = SetUp(query, reel, is_kept=is_kept)
        _waiting[id(passage)] = passage, known, set_up


def end(passage: object, answer: Json) -> None:
    """Hear the answer that came through `passage`: others are told from now on."""
    if _waiting and (waiting := _waiting.pop(id(passage), None)) is not None:
        _, known, set_up = waiting
        if set_up.is_kept and len(compact(answer)) <= _LONGEST:
            set_up.answer = {"answer": answer}
        set_up.is_answered = True
        known.version += 1


def fail(passage: object) -> None:
    """Hear that no answer came: whoever asks the same next may be answered."""
    if _waiting and (waiting := _waiting.pop(id(passage), None)) is not None:
        _, known, set_up = waiting
        known.set_ups.pop(compact(set_up.query.asked()), None)


def version(server: Server) -> int:
    """Give a number that is another one once there is more to tell of a server; 0 where there is nothing."""
    known = _servers.current().get(server)
    return known.version if known is not None else 0


def text(server: Server, reel: Reel) -> str:
    """Spell what others than `reel` asked a server to set connections up: JSON, or nothing.

    That is a list of `name`, `asked` (arguments of the call) and `answer`, which is absent where nobody can use it.
    """
    return _servers.current()[server].text(reel)
