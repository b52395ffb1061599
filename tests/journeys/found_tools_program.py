"""Every way to have a tool without declaring it, each twice: one that keeps to memory, one that appends to a file."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

from openai import OpenAI

SEEN: list[int] = []
LOUD_FILE = "loud.txt"


def _quiet(n: int) -> int:
    return n * 10 + len(SEEN)


def _loud(n: int) -> int:
    with Path(LOUD_FILE).open("a", encoding="utf-8") as file:
        file.write(f"{n}\n")
    return n * 100


def function_quiet(n: int) -> int:
    return _quiet(n)


def function_loud(n: int) -> int:
    return _loud(n)


def globals_quiet(n: int) -> int:
    return _quiet(n)


def globals_loud(n: int) -> int:
    return _loud(n)


def fetch(n: int) -> int:
    return _quiet(n)


def find(n: int) -> int:
    return _quiet(n)


def store(n: int) -> int:
    return _loud(n)


async def async_quiet(n: int) -> int:
    await asyncio.sleep(0)
    return _quiet(n)


async def async_loud(n: int) -> int:
    await asyncio.sleep(0)
    return _loud(n)


def generator_quiet(n: int) -> Iterator[int]:
    yield n
    yield _quiet(n)


def generator_loud(n: int) -> Iterator[int]:
    yield n
    yield _loud(n)


async def async_generator_quiet(n: int) -> AsyncIterator[int]:
    yield n
    yield _quiet(n)


async def async_generator_loud(n: int) -> AsyncIterator[int]:
    yield n
    yield _loud(n)


def logged(fn: Callable[[int], int]) -> Callable[[int], int]:
    @functools.wraps(fn)
    def wrapper(n: int) -> int:
        return fn(n)

    return wrapper


@logged
def wrapped_quiet(n: int) -> int:
    return _quiet(n)


@logged
def wrapped_loud(n: int) -> int:
    return _loud(n)


@functools.lru_cache
def lru_cache_quiet(n: int) -> int:
    return n * 10


@functools.lru_cache
def lru_cache_loud(n: int) -> int:
    return _loud(n)


class Desk:
    def __init__(self) -> None:
        self.count = 0

    def method_quiet(self, n: int) -> int:
        self.count += 1
        return _quiet(n) + self.count

    def method_loud(self, n: int) -> int:
        return _loud(n)

    @classmethod
    def classmethod_quiet(cls, n: int) -> int:
        return _quiet(n)

    @classmethod
    def classmethod_loud(cls, n: int) -> int:
        return _loud(n)

    @staticmethod
    def staticmethod_quiet(n: int) -> int:
        return _quiet(n)

    @staticmethod
    def staticmethod_loud(n: int) -> int:
        return _loud(n)

    def getattr_quiet(self, n: int) -> int:
        return _quiet(n)

    def getattr_loud(self, n: int) -> int:
        return _loud(n)


class Adder:
    def __init__(self, run: Callable[[int], int]) -> None:
        self.run = run

    def __call__(self, n: int) -> int:
        return self.run(n)


def scaled(scale: int, n: int) -> int:
    return _quiet(n) * scale


def scaled_loud(scale: int, n: int) -> int:
    return _loud(n) * scale


def closures() -> dict[str, Callable[[int], int]]:
    calls: list[int] = []

    def closure_quiet(n: int) -> int:
        calls.append(n)
        return _quiet(n) + len(calls)

    def closure_loud(n: int) -> int:
        return _loud(n)

    return {"closure_quiet": closure_quiet, "closure_loud": closure_loud}


RECORDS = [{"name": "record_quiet", "run": fetch}, {"name": "record_loud", "run": store}]


def result_of(value: Any) -> Any:
    if inspect.isawaitable(value):
        return asyncio.run(value)  # type: ignore[arg-type]
    if inspect.isasyncgen(value):

        async def everything() -> list[int]:
            return [each async for each in value]

        return asyncio.run(everything())
    return list(value) if inspect.isgenerator(value) else value


def use(desk: Desk, table: dict[str, Any], name: str, n: int) -> Any:
    if name.startswith("globals"):
        return globals()[name](n=n)
    if name.startswith("getattr"):
        return getattr(desk, name)(n=n)
    if name.startswith("record"):
        return next(each for each in RECORDS if each["name"] == name)["run"](n=n)  # type: ignore[operator]
    if name == "inline_quiet":
        return n * 10
    if name == "inline_loud":
        with Path(LOUD_FILE).open("a", encoding="utf-8") as file:
            return file.write(f"{n}\n")
    if name.startswith("builtin"):
        return table[name](n if name == "builtin_quiet" else f"made-{n}")
    return result_of(table[name](n=n))


def tables(desk: Desk) -> dict[str, Any]:
    return {
        "function_quiet": function_quiet,
        "function_loud": function_loud,
        "renamed_quiet": find,
        "renamed_loud": lambda n: _loud(n) + 1,
        "method_quiet": desk.method_quiet,
        "method_loud": desk.method_loud,
        "classmethod_quiet": Desk.classmethod_quiet,
        "classmethod_loud": Desk.classmethod_loud,
        "staticmethod_quiet": Desk.staticmethod_quiet,
        "staticmethod_loud": Desk.staticmethod_loud,
        "async_quiet": async_quiet,
        "async_loud": async_loud,
        "generator_quiet": generator_quiet,
        "generator_loud": generator_loud,
        "async_generator_quiet": async_generator_quiet,
        "async_generator_loud": async_generator_loud,
        "wrapped_quiet": wrapped_quiet,
        "wrapped_loud": wrapped_loud,
        **closures(),
        "partial_quiet": functools.partial(scaled, 3),
        "partial_loud": functools.partial(scaled_loud, 3),
        "callable_quiet": Adder(_quiet),
        "callable_loud": Adder(_loud),
        "lru_cache_quiet": lru_cache_quiet,
        "lru_cache_loud": lru_cache_loud,
        "builtin_quiet": abs,
        "builtin_loud": os.mkdir,
        "globals_quiet": None,
        "globals_loud": None,
        "getattr_quiet": None,
        "getattr_loud": None,
        "record_quiet": None,
        "record_loud": None,
        "inline_quiet": None,
    }


def main() -> None:
    desk = Desk()
    table = tables(desk)
    if "--inline-loud" in sys.argv:
        table["inline_loud"] = None
    parameters = {"type": "object", "properties": {"n": {"type": "integer"}}}
    tools: Any = [{"type": "function", "function": {"name": name, "parameters": parameters}} for name in table]
    messages: list[Any] = [{"role": "user", "content": "use every tool"}]
    client = OpenAI()
    while True:
        message = client.chat.completions.create(model="all-tools", messages=messages, tools=tools).choices[0].message
        messages.append(message.to_dict())
        if not message.tool_calls:
            break
        for call in message.tool_calls:
            name, n = call.function.name, json.loads(call.function.arguments)["n"]
            SEEN.append(n)
            result = use(desk, table, name, n)
            print(name, result)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})
    print(desk.count, message.content)


if __name__ == "__main__":
    main()
