"""Questions to databases and caches: how the cut of a client lets one in, and what it does with the answer.

Theory of operation. A client is cut at its Python surface, above its sockets. While recording, the client does what it
does, and the cut tells what was asked and what came back. In a replay no connection is made: `connect` gives a stand-in
of the client's own classes, which asks the doorman and makes rows of what was recorded. Which connection a question
goes over is no part of it, since a pool decides that by chance; the text, the parameters and the lane are.

Inside a tool, a retriever or a model's call nothing is recorded one by one, as with HTTP. There the cut only says, by
the audit event of native clients, that the world outside was asked: a tool that was found has then touched something.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from reenact.boundary import door, lanes, place, set_ups
from reenact.boundary.forgiving import forgive
from reenact.boundary.touches import NATIVE
from reenact.values import typed
from reenact.values.call import Call, Raised, Returned, Value
from reenact.values.json import Json
from reenact.values.query import (
    COLUMNS,
    CONNECT,
    PING,
    PREPARE,
    QUERY,
    SET_UP,
    SETS,
    SETTINGS,
    UNOPENED,
    Query,
    facts,
    is_transaction,
)

if TYPE_CHECKING:
    from reenact.contracts.doorman import Doorman, Passage

T = TypeVar("T")


class MadeConnection:
    """A connection that was seen being made: the question of that, what came of it, and the run that has it."""

    __slots__ = ("about", "has_begun", "is_new", "known", "query", "reel", "server")

    def __init__(self, query: Query, about: Json) -> None:
        self.query, self.about = query, about
        self.reel = lanes.current().reel
        """What the unit of work that made it, or used it last, draws from: each has its own. A unit that came in stands
        at no place until its first call."""
        self.server = set_ups.server_of(query)
        self.known = 0
        """What the unit of work has been told of set-ups by others (`set_ups.version`)."""
        self.is_new = True
        """Nothing was asked over it yet but what sets it up."""
        self.has_begun = False
        """A transaction was begun or ended over it that no library began while it connected."""

    def sets_up(self, query: Query) -> bool:
        """Hear what is asked over it, and tell whether that sets it up."""
        if query.operation == SET_UP or (query.operation in _PREPARES and set_ups.is_connecting()):
            return self.is_new
        if self.is_new and is_transaction(query.text):
            self.has_begun = True
            return False
        self.is_new = self.is_new and SETS.match(query.text) is not None
        return self.is_new

    def news(self) -> str:
        """Spell what others asked to set connections up, where the unit of work has not been told; else nothing."""
        if self.known == (version := set_ups.version(self.server)):
            return ""
        self.known = version
        return set_ups.text(self.server, self.reel)


_PREPARES: Final = frozenset({PREPARE, COLUMNS})
NOT_SEEN: Final = MadeConnection(Query(system="", operation=CONNECT), None)
"""Stands for a connection that nobody saw being made."""


def _remind(doorman: Doorman, connection: MadeConnection) -> None:
    """Tell the run that a question belongs to of its connection, where another run has made that.

    A unit of work that is replayed by itself has no other way to come by one.
    """
    connection.reel, connection.known = lanes.current().reel, 0
    passage = doorman.open(connection.query.call())
    describe_answer(passage, connection.about)


def opened(
    query: Query, *, over_stand_in: bool = False, made: MadeConnection | None = None, connects: bool = True
) -> Passage | None:
    """Let a question in; None where it goes straight through.

    One over a stand-in cannot: it goes to the doorman, or raises `RuntimeError` where the replay is over. `made` is the
    connection, where it was seen being made. Not `connects` says that none has to be made before.
    """
    here = place.current()
    if not over_stand_in and here is not None and here.whole:
        if door.is_kept():
            sys.audit(NATIVE, query.system, query.server, False)
        return None
    doorman = door.doorman()
    if doorman is None:
        if over_stand_in:
            raise RuntimeError(f"the replay that answered this connection ({query.system}) is over")
        return None
    if connects and door.is_strict() and not (over_stand_in or query.operation == "connect"):
        sys.audit(NATIVE, query.system, query.server, False)  # a connection of before the replay: refused
        return None
    try:
        query = _with_operation(query, made)
        call = query.call()
    except Exception:  # our failure is never the agent's
        forgive("databases.opened")
        return None
    if made is not None and made is not NOT_SEEN and not door.is_strict():
        return _opened_over(doorman, made, query, call)
    passage = doorman.open(call)
    if made is NOT_SEEN:
        passage.annotate({UNOPENED: True})
    return passage


def _with_operation(query: Query, made: MadeConnection | None) -> Query:
    """Give an operation of its own to what asks whether a connection is alive, and to what a library asks to connect.

    A program asks these as often as it connects, which it does in a replay more often or less.
    """
    if query.operation != QUERY:
        return query
    if (door.is_strict() or (made is not None and made.is_new)) and set_ups.is_connecting():
        return replace(query, operation=SET_UP)
    return replace(query, operation=PING) if set_ups.is_ping(query.text) else query


def _opened_over(doorman: Doorman, made: MadeConnection, query: Query, call: Call) -> Passage:
    """Let a question over a connection in that was seen being made, while recording."""
    if made.reel is not lanes.current().reel:
        _remind(doorman, made)
    passage = doorman.open(call)
    try:
        _note_set_up(made, query, passage)
    except Exception:
        forgive("databases.set_up")
    return passage


def _note_set_up(made: MadeConnection, query: Query, passage: Passage) -> None:
    """Tell of what others asked to set connections up, and note whether this question does."""
    sets_up = made.sets_up(query)
    if news := made.news():
        passage.annotate({SETTINGS: news})
    if sets_up:
        is_kept = query.operation != QUERY or not made.has_begun
        set_ups.begin(query, made.server, made.reel, passage, is_kept=is_kept)


def describe_answer(passage: Passage, answer: Json, further: Mapping[str, Json] | None = None) -> None:
    """Tell what came back."""
    try:
        if attributes := {**facts(answer), **(further or {})}:
            passage.annotate(attributes)
        passage.closed(Returned(payload=Value(json=answer)))
        set_ups.end(passage, answer)
    except Exception:
        forgive("databases.told")


def failed(passage: Passage, error: BaseException) -> None:
    """Tell that the client raised."""
    try:
        set_ups.fail(passage)
        passage.raised(error)
    except Exception:
        forgive("databases.failed")


async def witnessed(
    query: Query, run: Callable[[], Awaitable[T]], spell: Callable[[T], Json], *, made: MadeConnection | None = None
) -> T:
    """Ask for real, and tell what came back, spelled by `spell`."""
    passage = opened(query, made=made)
    if passage is None:
        return await run()
    try:
        with passage.crossing():
            result = await run()
    except BaseException as error:
        failed(passage, error)
        raise
    _record_result(passage, result, spell)
    return result


def witness(query: Query, run: Callable[[], T], spell: Callable[[T], Json], *, made: MadeConnection | None = None) -> T:
    """Do the same of a client that blocks."""
    passage = opened(query, made=made)
    if passage is None:
        return run()
    try:
        with passage.crossing():
            result = run()
    except BaseException as error:
        failed(passage, error)
        raise
    _record_result(passage, result, spell)
    return result


def through(query: Query, run: Callable[[], T], spell: Callable[[T], Json], unspell: Callable[[Json], T]) -> T:
    """Ask what needs no connection: for real and told, or in a replay answered with what was recorded."""
    if not door.is_strict():
        return witness(query, run, spell)
    passage = opened(query, connects=False)
    return run() if passage is None else unspell(answer(passage))


async def through_async(
    query: Query, run: Callable[[], Awaitable[T]], spell: Callable[[T], Json], unspell: Callable[[Json], T]
) -> T:
    """Do the same without blocking the loop."""
    if not door.is_strict():
        return await witnessed(query, run, spell)
    passage = opened(query, connects=False)
    return await run() if passage is None else unspell(await answer_async(passage))


def _record_result(passage: Passage, result: T, spell: Callable[[T], Json]) -> None:
    try:
        spelled = spell(result)
    except Exception:
        forgive("databases.spell")
        return
    describe_answer(passage, spelled)


def ask_stand_in(query: Query) -> Json:
    """Ask over a stand-in, and give what was recorded. Raises what was raised."""
    passage = opened(query, over_stand_in=True)
    return None if passage is None else answer(passage)


async def asked_async(query: Query) -> Json:
    """Do the same without blocking the loop."""
    passage = opened(query, over_stand_in=True)
    return None if passage is None else await answer_async(passage)


def answer(passage: Passage) -> Json:
    """Give the recorded answer when its time has come. Raises what was raised, or a miss where nothing was kept."""
    passage.wait(passage.end_order)
    return recorded_answer(passage)


async def answer_async(passage: Passage) -> Json:
    """Give it likewise without blocking the loop."""
    from reenact.boundary.function_outcome import until_released

    if passage.answer is not None:
        await until_released(passage, passage.answer)
    return recorded_answer(passage)


def recorded_answer(passage: Passage) -> Json:
    """Give the recorded answer now."""
    match passage.answer:
        case Returned(payload=Value(json=json)) as reply:
            passage.closed(reply)
            return json
        case Raised(exception=exception):
            error = typed.decode_exception(exception)
            passage.raised(error)
            raise error
        case other:
            kind = type(other).__name__.lower()
            raise passage.miss(f"the recording holds no answer to this question ({kind})")


def client_attributes(thing: Any) -> dict[str, Any]:
    """Give the attributes of a client's object, among which ours stand."""
    return cast("dict[str, Any]", vars(thing))


def server_of(host: Any, port: Any) -> str:
    """Spell where a server is; a folder is where its socket lies."""
    host_text = "" if host is None else str(host)
    return f"{host_text}:{port}" if port and not host_text.startswith("/") else host_text
