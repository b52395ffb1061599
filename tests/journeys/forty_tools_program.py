"""Twenty tools that keep to memory, and more that reach a C library in sly ways, which no audit hook sees."""

from __future__ import annotations

import abc
import atexit
import collections
import contextlib
import ctypes
import dataclasses
import datetime as dt
import decimal
import enum
import functools
import heapq
import importlib
import itertools
import json
import logging
import math
import operator
import os
import re
import string
import sys
import textwrap
import threading
import typing
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from openai import OpenAI

LIBC = ctypes.CDLL(None)
FILE = os.fsencode(Path("struck.txt").absolute())


def strike(text: str = "x") -> str:
    """Write into a file past Python: no audit event tells."""
    data = f"{text}\n".encode()
    file = LIBC.open(FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    LIBC.write(file, data, len(data))
    LIBC.close(file)
    return f"struck {text}"


# what keeps to memory
CART: dict[str, int] = {}
LOG: list[Any] = []
QUEUE: list[int] = []
IDS = itertools.count(1)
LOCK = threading.Lock()
COUNTS: collections.Counter[str] = collections.Counter()
RECENT: collections.deque[int] = collections.deque(maxlen=3)
TOTAL = 0


def h_cart(n: int) -> int:
    CART[f"sku-{n % 3}"] = CART.get(f"sku-{n % 3}", 0) + n
    return sum(CART.values())


def h_total(n: int) -> int:
    global TOTAL  # noqa: PLW0603
    TOTAL += n
    return TOTAL


def h_root(n: int) -> float:
    return round(math.sqrt(n), 3)


def h_shout(n: int) -> str:
    return re.sub(r"[a-z]+", lambda found: found.group().upper(), f"item {n}")


def h_json(n: int) -> str:
    return json.dumps({"n": json.loads(str(n)), "of": [Mark.GOOD]}, default=lambda mark: mark.name, sort_keys=True)


class Mark(enum.Enum):
    GOOD = 1
    BAD = 2


@dataclasses.dataclass
class Item:
    name: str
    count: int = 0
    tags: list[str] = dataclasses.field(default_factory=list)

    def bump(self, by: int) -> Item:
        self.count += by
        self.tags.append(f"+{by}")
        return self


SHELF = {"tea": Item("tea")}


def h_item(n: int) -> dict[str, Any]:
    return dataclasses.asdict(SHELF["tea"].bump(n))


class Point(typing.NamedTuple):
    x: int
    y: int


def h_point(n: int) -> int:
    return Point(n, n + 1)._replace(y=7).y + Mark(n % 2 + 1).value


def h_heap(n: int) -> list[int]:
    heapq.heappush(QUEUE, n)
    return heapq.nsmallest(2, QUEUE)


def h_money(n: int) -> str:
    return str((decimal.Decimal(n) / 7).quantize(decimal.Decimal("0.01")))


def h_date(n: int) -> str:
    return (dt.date(2024, 2, 27) + dt.timedelta(days=n)).isoformat()


def h_text(n: int) -> str:
    said = string.Template("$what number $n").substitute(what="item", n=n)
    return textwrap.shorten("{:>12}|{}".format(said, n), 40)  # noqa: UP032


@contextlib.contextmanager
def noted(what: str) -> Iterator[list[Any]]:
    LOG.append(f"begin {what}")
    yield LOG
    LOG.append(f"end {what}")


def h_noted(n: int) -> int:
    with noted(str(n)) as log, LOCK:
        return len(log)


def h_pieces(n: int) -> Iterator[int]:
    yield n
    yield n + 1


def h_number(n: int) -> str:
    return f"order-{next(IDS)}-{n}"


class Rule(abc.ABC):
    @abc.abstractmethod
    def price(self, n: int) -> int: ...


class Doubling(Rule):
    factor = 2

    def __init__(self) -> None:
        self.used = 0

    def price(self, n: int) -> int:
        self.used += 1
        return n * self.factor + self.used


RULE: Rule = Doubling()


def h_rule(n: int) -> int:
    return RULE.price(n)


def h_sorted(n: int) -> list[int]:
    return sorted([n, -n, n * 3 % 11], key=lambda each: (each % 2, each))


def h_said(n: int) -> int:
    print("h_said says", n)
    COUNTS["said"] += 1
    return COUNTS["said"]


def h_recent(n: int) -> list[int]:
    RECENT.append(n)
    return list(RECENT)


def closing() -> Callable[[int], int]:
    calls: list[int] = []
    largest = 0

    def h_closure(n: int) -> int:
        nonlocal largest
        calls.append(n)
        largest = max(largest, n)
        return largest * 100 + len(calls)

    return h_closure


class Desk:
    def __init__(self) -> None:
        self.open: dict[str, list[int]] = {}

    def h_method(self, n: int) -> int:
        self.open.setdefault("a", []).append(n)
        return getattr(self, "bonus", 0) + len(self.open["a"])


# what reaches out
alias = strike
alias_of_an_alias = alias


def s_alias(n: int) -> str:
    return alias_of_an_alias(f"alias {n}")


class Attached:
    client = LIBC

    def send(self, text: str) -> str:
        file = self.client.open(FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self.client.write(file, text.encode(), len(text))
        return "sent"

    def s_method(self, n: int) -> str:
        return self.send(f"attached {n}\n")


def s_default(n: int, done: Callable[[str], str] = strike) -> str:
    return done(f"default {n}")


class Propertied:
    @property
    def now(self) -> str:
        return strike("property")


PROPERTIED = Propertied()


def s_property(n: int) -> str:
    return PROPERTIED.now + str(n)


class Hidden:
    def __init__(self) -> None:
        self._inner = Attached()

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_inner"), name)


HIDDEN = Hidden()


def s_getattr(n: int) -> str:
    return HIDDEN.send(f"getattr {n}\n")


class Descriptor:
    def __get__(self, instance: Any, owner: Any) -> str:
        return strike("descriptor")


class Described:
    state = Descriptor()


DESCRIBED = Described()


def s_descriptor(n: int) -> str:
    return DESCRIBED.state + str(n)


@contextlib.contextmanager
def struck(text: str) -> Iterator[None]:
    yield
    strike(text)


def s_context(n: int) -> str:
    with struck(f"context {n}"):
        return "with"


def s_generator(n: int) -> Iterator[str]:
    yield "one"
    yield strike(f"generator {n}")


LAMBDAS = {"go": lambda text: strike(text)}  # noqa: PLW0108


def s_lambda(n: int) -> str:
    return LAMBDAS["go"](f"lambda {n}")


def on_match(found: re.Match[str]) -> str:
    return strike(found.group())


def s_sub(n: int) -> str:
    return re.sub("sub", on_match, f"sub {n}")


def s_key(n: int) -> list[str]:
    return sorted([f"key {n}"], key=strike)


def s_map(n: int) -> list[str]:
    return list(map(strike, [f"map {n}"]))


def s_default_of_json(n: int) -> str:
    return json.dumps([object(), n], default=lambda _: strike("json"))


class Formatted:
    def __format__(self, spec: str) -> str:
        return strike(f"format {spec}")


FORMATTED = Formatted()


def s_format(n: int) -> str:
    return "{:10}".format(FORMATTED) + str(n)  # noqa: UP032


class Keeper:
    def __init__(self) -> None:
        self.below = PROPERTIED


KEEPER = Keeper()


def s_path_of_format(n: int) -> str:
    return "{0.below.now} {1}".format(KEEPER, n)  # noqa: UP030, UP032


class Handler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        strike(record.getMessage())


LOGGER = logging.getLogger("forty")
LOGGER.addHandler(Handler())
LOGGER.propagate = False


def s_logging(n: int) -> str:
    LOGGER.warning("logged %s", n)
    return "logged"


def s_atexit(n: int) -> str:
    atexit.register(strike, f"atexit {n}")
    return "later"


class Kept:
    pass


def s_weakref(n: int) -> str:
    kept = Kept()
    weakref.finalize(kept, strike, f"weakref {n}")
    return "gone"


class Dying:
    def __del__(self) -> None:
        strike("del")


def s_del(n: int) -> str:
    Dying()
    return f"died {n}"


def s_thread(n: int) -> str:
    thread = threading.Thread(target=strike, args=(f"thread {n}",))
    thread.start()
    thread.join()
    return "joined"


def s_import(n: int) -> str:
    module = importlib.import_module(__name__ if __name__ in sys.modules else "__main__")
    return getattr(module, "str" + "ike")(f"import {n}")


def s_globals(n: int) -> str:
    return globals()["str" + "ike"](f"globals {n}")


def s_caller(n: int) -> str:
    return operator.methodcaller("send", f"caller {n}\n")(Attached())


class Plain:
    def run(self, n: int) -> int:
        return n


RUNNER: Any = Plain()


def s_swapped(n: int) -> Any:
    return RUNNER.run(n)


class Striking:
    def run(self, n: int) -> str:
        return strike(f"swapped {n}")


def s_argument(n: int, client: Any = None) -> str:
    return str(client.send(f"argument {n}\n") if client is not None else n)


ATTACHED = Attached()
partial_of_a_method = functools.partial(ATTACHED.send)


def s_evaluated(n: int) -> Any:
    return eval("str" + f"ike('eval {n}')")


def table() -> dict[str, Any]:
    found = {name: fn for name, fn in globals().items() if name[:2] in {"h_", "s_"}}
    desk = Desk()
    return {
        **found,
        "h_closure": closing(),
        "h_method": desk.h_method,
        "s_method": ATTACHED.s_method,
        "s_partial": functools.partial(lambda send, n: send(f"partial {n}\n"), partial_of_a_method),
    }


def main() -> None:
    global RUNNER  # noqa: PLW0603
    functions = table()
    parameters = {"type": "object", "properties": {"n": {"type": "integer"}}}
    tools: Any = [{"type": "function", "function": {"name": name, "parameters": parameters}} for name in functions]
    messages: list[Any] = [{"role": "user", "content": "use every tool"}]
    client = OpenAI()
    for turn in range(2):
        del messages[1:]
        while True:
            message = (
                client.chat.completions.create(model="all-tools", messages=messages, tools=tools).choices[0].message
            )
            messages.append(message.to_dict())
            if not message.tool_calls:
                break
            for call in message.tool_calls:
                name, n = call.function.name, json.loads(call.function.arguments)["n"]
                more = {"client": ATTACHED} if name == "s_argument" else {}
                result = functions[name](n=n, **more)
                result = list(result) if name in {"h_pieces", "s_generator"} else result
                print(name, result)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})
        RUNNER = Striking()
        print(turn, CART, TOTAL, LOG, QUEUE, next(IDS), COUNTS, RECENT, SHELF, vars(RULE))


if __name__ == "__main__":
    main()
