"""A worker whose jobs leave something behind in every kind of state that lasts, and read it again.

`python standing_program.py` does three jobs of each kind; `python standing_program.py KIND …` those of some.
"""

from __future__ import annotations

import collections
import functools
import itertools
import queue
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any, ClassVar

import requests
from flask import Flask
from multidict import MultiDict
from requests.structures import CaseInsensitiveDict
from starlette.applications import Starlette

import reenact


@reenact.tool
def answer(text: str) -> str:
    return text.upper()


HISTORY: list[str] = []
CARTS: collections.defaultdict[str, list[str]] = collections.defaultdict(list)
COUNTED = 0
COUNTS: collections.Counter[str] = collections.Counter()
LAST: collections.deque[str] = collections.deque(maxlen=2)
ORDERED: collections.OrderedDict[str, str] = collections.OrderedDict()
KEPT: CaseInsensitiveDict[str] = CaseInsensitiveDict()
NATIVE: MultiDict[str] = MultiDict()
ROWS = sqlite3.connect(":memory:", check_same_thread=False)
ROWS.execute("CREATE TABLE said (what TEXT)")
WEB, FLASK = Starlette(), Flask("standing")
SESSION = requests.Session()
SPOKEN: ContextVar[str] = ContextVar("spoken", default="")
LOCAL = threading.local()
BOARD = SimpleNamespace(said="")
WAITING: queue.Queue[str] = queue.Queue()
NUMBERS = itertools.count()


class Desk:
    open: ClassVar[list[str]] = []
    last = ""


class Agent:
    __slots__ = ("turns",)

    def __init__(self) -> None:
        self.turns: list[str] = []


AGENT = Agent()


def _naming() -> Iterator[str]:
    seen = ""
    while True:
        given = yield seen
        seen += given or ""


NAMING = _naming()
next(NAMING)


def _counting() -> Callable[[], int]:
    n = 0

    def count() -> int:
        nonlocal n
        n += 1
        return n

    return count


NEXT = _counting()


@functools.lru_cache
def priced(text: str) -> str:
    return answer(text)


@functools.cache
def shelf() -> list[str]:
    return []


def history(text: str) -> Any:
    HISTORY.append(text)
    return HISTORY


def cart(text: str) -> Any:
    CARTS["me"].append(text)
    return CARTS["me"]


def counter(text: str) -> Any:
    global COUNTED  # noqa: PLW0603 - the state of a worker
    COUNTED += 1
    return text, COUNTED


def counts(text: str) -> Any:
    COUNTS.update(text)
    return sorted(COUNTS.items())


def last_ones(text: str) -> Any:
    LAST.append(text)
    return [*LAST]


def ordered(text: str) -> Any:
    ORDERED[text] = text
    ORDERED.move_to_end(text, last=False)
    return [*ORDERED]


def cached(text: str) -> Any:
    KEPT[text] = text
    return sorted(KEPT)


def native(text: str) -> Any:
    NATIVE.add("said", text)
    return NATIVE.getall("said")


def rows(text: str) -> Any:
    ROWS.execute("INSERT INTO said VALUES (?)", (text,))
    return ROWS.execute("SELECT what FROM said").fetchall()


def web_state(text: str) -> Any:
    WEB.state.said = getattr(WEB.state, "said", "") + text
    return WEB.state.said


def web_config(text: str) -> Any:
    FLASK.config["SAID"] = FLASK.config.get("SAID", "") + text
    return FLASK.config["SAID"]


def headers(text: str) -> Any:
    SESSION.headers["x-said"] = SESSION.headers.get("x-said", "") + text
    return SESSION.headers["x-said"]


def context(text: str) -> Any:
    SPOKEN.set(SPOKEN.get() + text)
    return SPOKEN.get()


def local(text: str) -> Any:
    LOCAL.said = getattr(LOCAL, "said", "") + text
    return LOCAL.said


def board(text: str) -> Any:
    BOARD.said += text
    return BOARD.said


def waiting(text: str) -> Any:
    WAITING.put(text)
    return WAITING.qsize(), WAITING.get() if WAITING.qsize() > 1 else ""


def numbers(text: str) -> Any:
    return text, next(NUMBERS)


def class_list(text: str) -> Any:
    Desk.open.append(text)
    return Desk.open


def class_text(text: str) -> Any:
    Desk.last += text
    return Desk.last


def instance(text: str) -> Any:
    AGENT.turns.append(text)
    return AGENT.turns


def generator(text: str) -> Any:
    return NAMING.send(text)


def closure(text: str) -> Any:
    return text, NEXT()


def memo(text: str) -> Any:
    return priced(text[:1])


def shelved(text: str) -> Any:
    shelf().append(text)
    return shelf()


def stateless(text: str) -> Any:
    return text, len(text)


KINDS: dict[str, Callable[[str], Any]] = {
    each.__name__: each
    for each in (
        *(
            history,
            cart,
            counter,
            counts,
            last_ones,
            ordered,
            cached,
            native,
            rows,
            web_state,
            web_config,
            headers,
        ),
        *(context, local, board, waiting, numbers, class_list, class_text, instance, generator, closure, memo, shelved),
        stateless,
    )
}


def _work(kind: Callable[[str], Any]) -> Callable[[str], str]:
    def work(text: str) -> str:
        said = answer(f"{kind(text)}")
        print(said)
        return said

    work.__qualname__ = work.__name__ = f"work_{kind.__name__}"
    return reenact.unit(work, name=kind.__name__)


globals().update({f"work_{name}": _work(kind) for name, kind in KINDS.items()})

if __name__ == "__main__":
    for name in sys.argv[1:] or KINDS:
        for text in ("apple", "beet", "apple"):
            globals()[f"work_{name}"](text)
