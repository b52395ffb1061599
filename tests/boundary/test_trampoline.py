"""What a function keeps when its code is replaced, and that calls of it arrive as they were made."""

from __future__ import annotations

import asyncio
import gc
import inspect
import pickle
import traceback
import types
import weakref
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.boundary.trampoline import NotCut, cut, uncut

SHAPES = st.fixed_dictionaries(
    {
        "only": st.integers(0, 2),
        "plain": st.integers(0, 3),
        "star": st.booleans(),
        "named": st.integers(0, 3),
        "rest": st.booleans(),
        "defaults": st.integers(0, 5),
        "cells": st.integers(0, 3),
    }
)


def made(shape: dict[str, Any]) -> types.FunctionType:
    """Make a function with parameters of every sort, which gives what it was called with and what it closes over."""
    only = [f"o{i}" for i in range(shape["only"])]
    plain = [f"p{i}" for i in range(shape["plain"])]
    named = [f"n{i}" for i in range(shape["named"])]
    cells = [f"c{i}" for i in range(shape["cells"])]
    positional = [*only, *plain]
    first_default = max(0, len(positional) - shape["defaults"])
    spelled = [name if at < first_default else f"{name}='d'" for at, name in enumerate(positional)]
    if only:
        spelled.insert(len(only), "/")
    if shape["star"]:
        spelled.append("*star")
    elif named:
        spelled.append("*")
    spelled += [f"{name}='k'" if at % 2 else name for at, name in enumerate(named)]
    if shape["rest"]:
        spelled.append("**rest")
    given = ", ".join([*positional, *named, *(["star"] * shape["star"]), *(["rest"] * shape["rest"]), *cells])
    source = f"def outer({', '.join(cells)}):\n def fn({', '.join(spelled)}):\n  return [{given}]\n return fn"
    space: dict[str, Any] = {"__name__": __name__}
    exec(source, space)
    fn = space["outer"](*cells)
    assert isinstance(fn, types.FunctionType)
    return fn


def called(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
    try:
        return fn(*args, **kwargs)
    except TypeError as error:
        return str(error)


@given(
    SHAPES,
    st.lists(st.integers(), max_size=5).map(tuple),
    st.dictionaries(st.sampled_from(["o0", "p0", "p1", "n0", "n1", "n2", "x"]), st.integers()),
)
def test_every_call_arrives_as_it_was_made(
    shape: dict[str, Any], args: tuple[int, ...], kwargs: dict[str, int]
) -> None:
    fn, twin = made(shape), made(shape)
    arrived: list[object] = []
    original = uncut(fn)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        arrived.append((args, kwargs))
        return original(*args, **kwargs)

    done = cut(fn, wrapper)
    assert inspect.signature(fn) == inspect.signature(twin)
    assert inspect.getfullargspec(fn) == inspect.getfullargspec(twin)
    code, same = fn.__code__, twin.__code__
    assert code.co_varnames[: code.co_argcount] == same.co_varnames[: same.co_argcount]
    assert called(fn, args, kwargs) == called(twin, args, kwargs)
    assert len(arrived) == isinstance(called(twin, args, kwargs), list)
    done.undo(fn)
    arrived.clear()
    assert called(fn, args, kwargs) == called(twin, args, kwargs)
    assert arrived == []


class Base:
    def name(self) -> str:
        return "base"


class Child(Base):
    def name(self) -> str:
        return f"child of {super().name()}"


def test_methods_keep_their_class_and_bound_ones_are_cut_too() -> None:
    bound = Child().name
    original = uncut(Child.name)  # type: ignore[arg-type]
    done = cut(Child.name, lambda self: f"<{original(self)}>")  # type: ignore[arg-type]
    try:
        assert bound() == Child().name() == "<child of base>"
    finally:
        done.undo(Child.name)  # type: ignore[arg-type]
    assert bound() == "child of base"


async def later(n: int) -> int:
    await asyncio.sleep(0)
    return n


def steps(n: int) -> Generator[int, str, str]:
    got = ""
    try:
        for at in range(n):
            got += yield at
    except KeyError as error:
        got += f"caught {error}"
        yield -1
    return got


async def async_steps(n: int, log: list[str]) -> AsyncGenerator[int, str]:
    try:
        for at in range(n):
            got = yield at
            log.append(str(got))
    except KeyError:
        yield -1
    finally:
        log.append("closed")


def test_each_colour_stays_what_it_is() -> None:
    for fn in (later, steps, async_steps):
        before = [test(fn) for test in COLOURS]
        original = uncut(fn)  # type: ignore[arg-type]
        done = cut(fn, original)  # type: ignore[arg-type]
        try:
            assert [test(fn) for test in COLOURS] == before
            assert any(before)
            WORK[fn.__name__]()
        finally:
            done.undo(fn)  # type: ignore[arg-type]


COLOURS = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)


def _later() -> None:
    assert asyncio.run(later(3)) == 3


def _steps() -> None:
    running = steps(3)
    assert [next(running), running.send("a"), running.throw(KeyError("k"))] == [0, 1, -1]
    with pytest.raises(StopIteration) as stop:
        next(running)
    assert stop.value.value == "acaught 'k'"


def _async_steps() -> None:
    async def work() -> None:
        log: list[str] = []
        running = async_steps(3, log)
        assert [await anext(running), await running.asend("a"), await running.athrow(KeyError())] == [0, 1, -1]
        assert [each async for each in running] == []
        left = async_steps(3, log)
        assert await anext(left) == 0
        await left.aclose()
        assert log == ["a", "closed", "closed"]

    asyncio.run(work())


WORK = {"later": _later, "steps": _steps, "async_steps": _async_steps}


def fails() -> None:
    raise ValueError("here")


def test_a_traceback_names_the_function_and_its_lines() -> None:
    original = uncut(fails)  # type: ignore[arg-type]

    def wrapper() -> None:
        return original()

    done = cut(fails, wrapper)  # type: ignore[arg-type]
    try:
        with pytest.raises(ValueError, match="here") as raised:
            fails()
    finally:
        done.undo(fails)  # type: ignore[arg-type]
    frames = [frame for frame in traceback.extract_tb(raised.value.__traceback__) if frame.name == "fails"]
    assert {frame.filename for frame in frames} == {__file__}
    assert frames[-1].line == 'raise ValueError("here")'
    assert "def fails" in inspect.getsource(fails)
    assert pickle.loads(pickle.dumps(fails)) is fails


def test_code_that_somebody_else_put_over_ours_stays() -> None:
    def fn() -> int:
        return 1

    def other() -> int:
        return 2

    done = cut(fn, uncut(fn))
    fn.__code__ = other.__code__
    done.undo(fn)
    assert fn() == 2


def test_a_cut_closure_is_freed_with_its_last_reference() -> None:
    def make() -> Callable[[], int]:
        held = [1]

        def fn() -> int:
            return held[0]

        cut(fn, uncut(fn))
        return fn

    fn = make()
    seen = weakref.ref(fn)
    assert fn() == 1
    del fn
    gc.collect()
    assert seen() is None


def test_what_cannot_be_cut_says_why() -> None:
    @types.coroutine
    def old(n: int) -> Generator[None, None, int]:
        yield
        return n

    before = old.__code__
    with pytest.raises(NotCut, match="old"):
        cut(old, old)  # type: ignore[arg-type]
    assert old.__code__ is before
