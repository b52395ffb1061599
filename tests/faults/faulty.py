"""An agent that is recorded while one function of the recorder fails, and the template process that forks it.

    python faulty.py PROVIDER STORE

Reads one JSON order a line: `function` is what fails, or null; `arm` how it is recorded (`hook`, `call`, or `bare`);
`out` where its standard streams go; `shown` whether it has a tracer provider of its own; `seen` a file that is to name
the functions that were called. Answers with its exit code.

Functions are found by walking the modules. The one that is named raises whenever it is called: its code is replaced, so
that every reference to it fails, however it was imported.
"""

from __future__ import annotations

import ast
import asyncio
import functools
import importlib
import json
import os
import pkgutil
import random
import sys
import threading
import time
import types
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from reaping import ended

import reenact

ROOMS = (
    "reenact.record",
    "reenact.redact",
    "reenact.dialects.openinference",
    "reenact.formats.journal",
    "reenact.boundary",
    "reenact.integrations",
    "reenact.pipeline.recording",
    "reenact.pipeline.family",
    "reenact.pipeline.embedded",
    "reenact.keep.drain",
    "reenact.keep.journal_reader",
    "reenact.keep.stand_ins",
    "reenact.keep.journal_owner",
    "reenact.keep.catalog",
    "reenact.export",
    "reenact.stores",
    "reenact.values.typed",
    "reenact.values.spelling",
    "reenact.values.evidence",
    "reenact.values.json",
    "reenact.values.exception_record",
)
"""What stands between an agent and its recording."""
SEAMS = (
    "reenact.boundary.byte_streams:_TeeSync.__iter__",
    "reenact.boundary.byte_streams:_TeeAsync.__aiter__",
    "reenact.boundary.byte_streams:_TeeSync.close",
    "reenact.boundary.byte_streams:_TeeAsync.aclose",
    "reenact.boundary.generators:_recorded",
    "reenact.boundary.generators:_Stepping.__init__",
    "reenact.boundary.tape:draw",
    "reenact.boundary.generators:_Stepping.inside",
    "reenact.boundary.plain_http:reading_whole",
    "reenact.boundary.program_plain:waited",
    "reenact.boundary.lanes:_finish",
    "reenact.boundary.lanes:_resolve_now",
    "reenact.boundary.lanes:in_order",
    "reenact.integrations.native_waits:_Lock.",
    "reenact.integrations.pools:Jobs.",
    "reenact.integrations.pools:Numbered.",
    "reenact.integrations.pools:Single.",
    "reenact.integrations.timed_waits:_take",
    "reenact.record.runs:Runs.unit",
    "reenact.record.recorder:SpanPassage._projecting",
)
"""What the agent itself holds or passes through: it is the stream, the step, the block. All that it calls fails."""
GROUND = (
    "reenact.boundary.place",
    "reenact.boundary.door",
    "reenact.boundary.lanes:on.",
    "reenact.boundary.lanes:aside.",
    "reenact.boundary.lanes:current",
    "reenact.boundary.lanes:_set",
    "reenact.boundary.lanes:main",
    "reenact.boundary.lanes:Lane.",
    "reenact.boundary.pauses:is_on",
    "reenact.boundary.pauses:is_a_while",
    "reenact.boundary.tape:is_on",
    "reenact.boundary.tape:mode",
)
"""Where one stands and who is in charge: context variables and an attribute, read on both sides of every shield."""
HANGS_S = 20.0


class Fault(Exception):
    """What a function of the recorder raises here."""


def _modules() -> Iterator[types.ModuleType]:
    for room in ROOMS:
        module = importlib.import_module(room)
        yield module
        for found in pkgutil.walk_packages(getattr(module, "__path__", []), f"{room}."):
            yield importlib.import_module(found.name)


def functions() -> dict[str, types.FunctionType]:
    """Find every function and method, by module and qualified name."""
    found: dict[str, types.FunctionType] = {}
    for module in _modules():
        for owner in (module, *(each for each in vars(module).values() if isinstance(each, type))):
            if owner is not module and owner.__module__ != module.__name__:
                continue
            for held in vars(owner).values():
                for function in _plain(held):
                    if function.__module__ == module.__name__ and not cannot_fail(function):
                        found[f"{module.__name__}:{function.__qualname__}"] = function
    return {name: function for name, function in found.items() if not name.startswith((*GROUND, *SEAMS))}


@functools.cache
def _trees(path: str) -> dict[int, ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = ast.parse(Path(path).read_text())
    return {each.lineno: each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}


def cannot_fail(function: types.FunctionType) -> bool:
    """Tell a shield, whose whole body stands in a `try` that swallows or forgives: what it calls fails in turn.

    And what does nothing at all, or comes of `dataclass`.
    """
    path = function.__code__.co_filename
    if path.startswith("<"):
        return True
    first = function.__code__.co_firstlineno
    tree = next((each for line, each in _trees(path).items() if line in {first, first + 1}), None)
    if tree is None:
        return False
    body = [each for each in tree.body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]
    if not body:
        return True
    if any(isinstance(each, ast.Name) and each.id == "shielded" for each in tree.decorator_list):
        return False  # it fails inside of its shield
    tried = [each for each in body if isinstance(each, ast.Try)]
    if len(tried) != 1 or not all(isinstance(each, ast.Try | ast.Return | ast.Delete) for each in body):
        return False
    return all(isinstance(each.type, ast.Name) and each.type.id == "Exception" for each in tried[0].handlers)


def _plain(held: Any) -> Iterator[types.FunctionType]:
    for each in (held.fget, held.fset) if isinstance(held, property) else (held,):
        inner = getattr(each, "__func__", each)
        while (wrapped := getattr(inner, "__wrapped__", None)) is not None:
            inner = wrapped
        if isinstance(inner, types.FunctionType):
            yield inner


def break_down(function: types.FunctionType) -> None:
    """Have a function raise whenever it is called."""
    free = function.__code__.co_freevars
    source = f"def outer({', '.join(free)}):\n def broken(*_, **__):\n  if 0: {', '.join((*free, 'None'))}\n"
    source += f"  raise Fault({function.__qualname__!r})\n return broken\n"
    named: dict[str, Any] = {}
    exec(compile(source, __file__, "exec"), named)
    code = named["outer"](*free).__code__
    function.__globals__.setdefault("Fault", Fault)
    function.__code__ = code


# the agent


@reenact.tool
def look_up(item: str) -> dict[str, object]:
    return {"item": item, "count": len(item)}


@reenact.tool
def fail(item: str) -> None:
    raise KeyError(item)


@reenact.retriever
def pieces(item: str) -> Iterator[str]:
    for number in range(3):
        yield f"{item} {number}"


@reenact.tool
async def later(item: str) -> str:
    await asyncio.sleep(0)
    return f"{item} later"


@reenact.tool
async def drops(item: str) -> AsyncIterator[str]:
    for number in range(3):
        yield f"{item} {number}"


@reenact.chain
def chained(item: str) -> dict[str, object]:
    return look_up(item)


def weather(city: str) -> str:
    """A tool that is found by its name."""
    return f"fine in {city}"


TOOLS: Any = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}]


def agent(provider: int) -> Iterator[object]:
    """Do a bit of everything, and give what came of it."""
    import httpx
    from openai import OpenAI

    client = OpenAI(base_url=f"http://127.0.0.1:{provider}/v1", api_key="sk-" + "a1B2" * 12, max_retries=0)
    asked: Any = {"model": "stand-in", "messages": [{"role": "user", "content": "tea " * 900}], "tools": TOOLS}
    yield client.chat.completions.create(**asked).choices[0].message.content
    yield weather("Delft")
    yield [event.choices[0].delta.content for event in client.chat.completions.create(**asked, stream=True)]
    half = client.chat.completions.create(**asked, stream=True)
    yield next(iter(half)).choices[0].delta.content
    half.close()
    yield httpx.post(f"http://127.0.0.1:{provider}/plain", json=asked).status_code
    yield chained("milk")
    try:
        fail("sugar")
    except KeyError as error:
        yield repr(error)
    yield list(pieces("tea"))
    steps: Any = pieces("tea")
    yield next(steps)
    steps.close()
    yield asyncio.run(_gathered())
    with ThreadPoolExecutor(2) as pool:
        yield sorted(str(each) for each in pool.map(look_up, ["a", "bb"]))
    thread = threading.Thread(target=look_up, args=("thread",))
    thread.start()
    thread.join()

    @reenact.tool
    def declared_late(item: str) -> str:
        """Look it up."""
        return item

    yield declared_late("late")
    with reenact.run("unit", user="u-1", input={"a": 1}):
        yield look_up("in a unit")
    yield isinstance(random.random(), float)
    yield time.time() > 0
    yield _forked()


async def _gathered() -> list[object]:
    async def some() -> list[str]:
        dropped: Any = drops("tea")
        return [each async for each in dropped]

    return list(await asyncio.gather(later("a"), later("b"), some()))


def _forked() -> int:
    pid = os.fork()
    if pid == 0:
        look_up("child")
        os._exit(3)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _live(order: dict[str, Any], provider: int, store: str) -> None:
    out = os.open(order["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(out, 1)
    os.dup2(os.open(order["out"] + ".err", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
    if order.get("seen"):
        _note_calls(order["seen"])
    if order["function"] is not None:
        break_down(functions()[order["function"]])
    os.environ["REENACT_STORE"] = store
    if order["arm"] == "hook":
        os.environ["REENACT_RECORD"] = "1"
        from reenact.bootstrap.start import start

        start()
    elif order["arm"] == "call":
        reenact.record()
    if order["shown"]:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider

        trace.set_tracer_provider(TracerProvider())
    for said in agent(provider):
        sys.stdout.write(f"{said}\n")
    sys.stdout.flush()
    raise SystemExit(5)


def _note_calls(path: str) -> None:
    """Write down, at the end, which of the functions were called at all."""
    import atexit

    codes = {function.__code__: name for name, function in functions().items()}
    called: dict[str, None] = {}

    def heard(frame: types.FrameType, event: str, _: object) -> None:
        if event == "call" and (name := codes.get(frame.f_code)) is not None:
            called[name] = None

    atexit.register(lambda: Path(path).write_text("".join(f"{name}\n" for name in called)))  # runs last of all
    sys.setprofile(heard)
    threading.setprofile(heard)


def template(provider: int, store: str) -> None:
    """Fork an agent for every order."""
    from openai import OpenAI

    for name in ("httpcore", "httpx", "numpy", "reenact.pipeline.embedded"):
        importlib.import_module(name)
    functions()
    OpenAI(api_key="x").chat.completions  # noqa: B018 - loads what is loaded late
    wanted: Callable[[], str] = sys.stdin.readline
    for line in iter(wanted, ""):
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _live(order, provider, str(Path(store) / f"{order['number']}"))
            return
        sys.stdout.write(f"{ended(pid, HANGS_S)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    template(int(sys.argv[1]), sys.argv[2])
