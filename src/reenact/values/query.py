"""A question to a database or a cache: what was asked, how its span is named, and which of its attributes are OTel's.

The request of such a call is one JSON object: `system`, `operation`, `text` and `parameters`. What came of it is one
too: of SQL `results`, each with `columns`, `rows`, `status` and `rowcount`; of others what their client gives. Values
are spelled as typed JSON, or as the text that the server sent (`docs/databases.md`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from reenact.values.call import DATABASE, Call, CallKind, FunctionCall
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, as_text

CONNECT: Final = "connect"
"""The operation of a call that only makes a connection."""
QUERY: Final = "query"
"""The operation of a call that asks a statement."""
PREPARE: Final = "prepare"
"""The operation of a call that only prepares a statement, as a client does once for each connection."""
PING: Final = "ping"
"""The operation of a call that asks whether a connection is alive: clients do by the time that has passed."""
ASIDE: Final = "aside"
"""The operation of a call that a client makes by itself, on a thread that nobody waits for."""
COLUMNS: Final = "columns"
"""The operation of a call that asks a prepared statement for its columns or parameters."""
UNOPENED: Final = "reenact.database.unopened"
"""The attribute of a query over a connection that nobody saw being made: no replay has one to ask it over."""

SETTINGS: Final = "reenact.database.settings"
"""The attribute of a question: what other units of work asked its server to set connections up, with the answers."""
SET_UP: Final = "set_up"
"""The operation of a call that a replay answers from these."""
SETS: Final = re.compile(r"\s*(?:set\s+\S|select\s+(?:pg_catalog\.)?set_config\b)", re.IGNORECASE)
"""How a statement begins that sets a connection up; the SET of Redis, whose text is its name alone, keeps a value."""

_TARGET: Final = re.compile(
    r"\b(?:from|into|update|join|table(?:\s+if\s+(?:not\s+)?exists)?|copy)\s+(?:only\s+)?([\w.\"$]+)", re.IGNORECASE
)
_COMMENT: Final = re.compile(r"\s*(?:--[^\n]*\n|/\*.*?\*/)?\s*", re.DOTALL)
_WORD: Final = re.compile(r"\w+")
_ADDRESSED: Final = re.compile(r"\bc_[0-9a-f]{8,16}_([0-9a-f]+)\b")
_COUNTED: Final = re.compile(r"__asyncpg_([a-z]+)_[0-9a-f]+__")
_THREADED: Final = re.compile(r"\bs\d+_x\d+\b")
"""How Django names a savepoint: by its thread, and by how many its connection has had."""
_LONGEST_LOOK: Final = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What a client asks. `parameters` are JSON already; `server` is `host:port` or a path, as far as it is known."""

    system: str
    """OpenTelemetry's `db.system.name`, such as `postgresql`."""
    operation: str
    """What the client does: `connect`, `query`, `command`, `fetch`."""
    text: str = ""
    parameters: Json = None
    namespace: str = ""
    server: str = ""
    kind: CallKind = CallKind.UNKNOWN
    target: str = ""
    """The collection, where the text has it in no statement of SQL's."""
    word: str = ""
    """What it does, where the text does not begin with that."""

    def call(self) -> Call:
        """Make the call of it."""
        asked = self.asked()
        text = as_text(asked.get("text"))
        word, target = (self.word, "") if self.word else summary(text) if text else (self.operation, "")
        target = self.target or target
        name = f"{word} {target or self.namespace or self.system}".strip()
        request = FunctionCall(function=DATABASE, arguments=asked)
        attributes = _attributes(self.system, word, (text, target), self.namespace, self.server)
        return Call(kind=self.kind, name=name, request=request, attributes=attributes)

    def asked(self) -> dict[str, Json]:
        """Give the arguments of that call."""
        asked: dict[str, Json] = {"system": self.system, "operation": self.operation}
        if text := settled(self.text):
            asked["text"] = text
        if self.parameters is not None:
            asked["parameters"] = self.parameters
        if self.operation == CONNECT:
            asked |= {"server": self.server, "namespace": self.namespace}
        return asked


def as_set_up(call: Call) -> Call:
    """Make the call that a replay notes where it answers a question from what other units were answered."""
    request = call.request
    if not isinstance(request, FunctionCall):
        return call
    return replace(call, request=replace(request, arguments={**as_object(request.arguments), "operation": SET_UP}))


def settled(text: str) -> str:
    """Give a statement less what a client draws for names: cursors of SQLAlchemy, savepoints of asyncpg and Django."""
    if "SAVEPOINT" in text:
        text = _THREADED.sub("s{thread}_x{number}", text)
    if "c_" in text:
        text = _ADDRESSED.sub(r"c_{address}_\1", text)
    return _COUNTED.sub(r"__asyncpg_\1_{number}__", text) if "__asyncpg_" in text else text


@lru_cache(maxsize=1024)
def summary(text: str) -> tuple[str, str]:
    """Give the first word of a statement, in capitals, and the first table, index or key that it names."""
    head = text[:_LONGEST_LOOK]
    start = _COMMENT.match(head)
    word = _WORD.match(head, start.end() if start else 0)
    match = _TARGET.search(head)
    return (word[0].upper() if word else "QUERY"), (match[1].replace('"', "") if match else "")


@lru_cache(maxsize=1024)
def _attributes(system: str, word: str, asked: tuple[str, str], namespace: str, server: str) -> Mapping[str, Json]:
    """Give what OpenTelemetry says of a question: the same object each time, so that it is written down once."""
    text, collection = asked
    attributes: dict[str, Json] = {"db.system.name": system, "db.operation.name": word}
    optional_attributes = {"db.query.text": text, "db.collection.name": collection, "db.namespace": namespace}
    attributes |= {name: value for name, value in optional_attributes.items() if value}
    return {**attributes, **address(server)} if server else attributes


@lru_cache(maxsize=256)
def address(server: str) -> Mapping[str, Json]:
    """Spell where a server is."""
    host, sign, port = server.rpartition(":")
    if sign and port.isdigit():
        return {"server.address": host, "server.port": int(port)}
    return {"server.address": server}


def statement(call: Call) -> str:
    """Give the statement that a call asks, or only prepares; empty where it asks none."""
    return as_text(as_object(_asked(call)).get("text")) if call.is_query else ""


def _asked(call: Call) -> Json:
    return call.request.arguments if isinstance(call.request, FunctionCall) else None


_WRITES: Final = {
    "redis": frozenset(
        (
            *("APPEND", "DEL", "EXPIRE", "EXPIREAT", "HDEL", "HMSET", "HSET", "LPUSH", "LREM", "LSET", "LTRIM", "MSET"),
            *("PERSIST", "PEXPIRE", "PSETEX", "PUBLISH", "RPUSH", "SADD", "SET", "SETEX", "SETRANGE", "SREM", "UNLINK"),
            *("XADD", "ZADD", "ZREM"),
        )
    ),
    "mongodb": frozenset({"INSERT", "UPDATE", "DELETE"}),
    "celery": frozenset({"SEND"}),
}
"""Commands that write, by system, of which the reply tells nothing of what was there; of others they are SQL's."""
_SQL_WRITES: Final = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE", "UPSERT"})
_TRANSACTION: Final = frozenset({"BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "END", "ABORT"})
_ENDS: Final = re.compile(r"\s*(?:commit|end|abort|rollback(?!\s+(?:(?:work|transaction)\s+)?to\b))", re.IGNORECASE)
_RETURNING: Final = re.compile(r"\breturning\b(.*)\Z", re.IGNORECASE | re.DOTALL)
_NAMES: Final = re.compile(r"[\w$]+|\*")


@dataclass(frozen=True, slots=True)
class Wrote:
    """What a question writes into: the same of two questions where one is the other with other values."""

    system: str
    word: str
    target: str
    """The table, collection or key; of a transaction nothing."""
    returning: str = ""
    """The whole statement, where it gives rows back."""

    @property
    def is_transaction(self) -> bool:
        """It only begins or ends a transaction, of which no answer tells anything."""
        return self.word in _TRANSACTION


def writes(call: Call) -> Wrote | None:
    """Tell what a question writes; None of one that reads, that only makes a connection ready, or that nobody knows."""
    asked = as_object(_asked(call)) if call.is_query else {}
    system, text = as_text(asked.get("system")), as_text(asked.get("text"))
    if not text or (call.is_handshake and asked.get("operation") != PREPARE):
        return None
    word, target = summary(text)
    if word in _WRITES.get(system, _SQL_WRITES):
        if system == "mongodb":
            return Wrote(system, word, text.partition(" ")[2])
        if system in _WRITES:
            return Wrote(system, word, str((as_list(asked.get("parameters")) or [""])[0]))
        return Wrote(system, word, target, text if _RETURNING.search(text) else "")
    return Wrote(system, word, "") if word in _TRANSACTION else None


def is_transaction(text: str) -> bool:
    """Tell whether a statement only begins or ends a transaction."""
    return summary(text)[0] in _TRANSACTION


def gives_back(call: Call) -> bool:
    """Tell whether a write gives back what it may have been told: columns that its statement names before, or all."""
    match = _RETURNING.search(statement(call))
    if match is None:
        return False
    wrote = writes(call)
    head = {*_NAMES.findall(statement(call)[: match.start()].lower())}
    own = {*wrote.target.lower().split(".")} if wrote is not None else set[str]()
    return bool({*_NAMES.findall(match[1].lower())} & (head - own | {"*"}))


def reads_of(call: Call, wrote: Wrote) -> bool:
    """Tell whether a question asks for what such a write may have changed."""
    asked = as_object(_asked(call)) if call.is_query else {}
    if asked.get("system") != wrote.system or call.is_handshake or writes(call) is not None:
        return False
    if wrote.system == "mongodb":
        return wrote.target in as_text(asked.get("text")).split()
    if wrote.system in _WRITES:
        return wrote.target in {str(each) for each in as_list(asked.get("parameters"))}
    own = wrote.target.lower().rpartition(".")[2]
    return not own or own in _NAMES.findall(as_text(asked.get("text")).lower())


def said_of(text: str, answer: Json) -> Json:
    """Give what a server says of a word of a transaction, from what it said of another: the word, and the state."""
    return _with_state(answer, summary(text)[0], 0 if _ENDS.match(text) else 2)


def _with_state(answer: Json, word: str, state: int) -> Json:
    if isinstance(answer, dict):
        own_state: dict[str, Json] = {"transaction": state} if "transaction" in answer else {}
        return {name: _with_state(each, word, state) for name, each in answer.items()} | own_state
    if isinstance(answer, list):
        return [_with_state(each, word, state) for each in answer]
    return word if isinstance(answer, str) and answer in _TRANSACTION else answer


def facts(answer: Json) -> dict[str, Json]:
    """Give what OpenTelemetry says of an answer: how many rows came, or with which state or status it failed."""
    attributes: dict[str, Json] = {}
    status = as_object(answer).get("status")
    if isinstance(status, int) and status >= 400:
        attributes["db.response.status_code"] = attributes["error.type"] = str(status)
    results = [as_object(each) for each in as_list(as_object(answer).get("results"))]
    if any("rows" in each for each in results):
        attributes["db.response.returned_rows"] = sum(len(as_list(each.get("rows"))) for each in results)
    failed = next((as_object(each["error"]) for each in results if "error" in each), None)
    if failed is not None:
        attributes["db.response.status_code"] = attributes["error.type"] = as_text(
            failed.get("code") or failed.get("sqlstate")
        )
    return attributes
