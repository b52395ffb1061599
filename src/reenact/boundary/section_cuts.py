"""A function of a framework as a section: what it calls while it runs hangs in it, in every colour of function."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any

from reenact.boundary import sections
from reenact.boundary.forgiving import swallow
from reenact.boundary.sections import Section
from reenact.contracts.integration import PatchSet
from reenact.values.call import CallKind
from reenact.values.json import Json
from reenact.values.run import NODE_ID, NODE_NAME, NODE_PARENT

Begin = Callable[[tuple[Any, ...], dict[str, Any]], Section | None]
"""Begins the section of a call with these arguments; None where it is to be none."""


def cut(patches: PatchSet, library_class: Any, begin: Begin, *names: str) -> None:
    """Put a section around those of some methods that a class of a framework has: its versions differ in them."""
    sections.use(patches)
    for name in names:
        if hasattr(library_class, name):
            patches.replace(library_class, name, as_section(begin))


def argument(args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Any:
    """Give the first argument of a method behind `self`, by its place or its name; None where there is none."""
    return kwargs.get(name, args[1] if len(args) > 1 else None)


def node(framework: str, name: str, *, in_agent: bool = False) -> dict[str, Json]:
    """Name a node of a framework, and the section of that framework around it; with `in_agent` the nearest agent's."""
    attributes: dict[str, Json] = {NODE_ID: name, NODE_NAME: name}
    around = sections.current()
    while in_agent and around is not None and around.kind is not CallKind.AGENT:
        around = around.parent
    if around is not None and around.framework == framework:
        attributes[NODE_PARENT] = around.name
    return attributes


def as_section(begin: Begin) -> Callable[[Any], Any]:
    """Make what puts a section around a function: a plain one, a coroutine function, or a generator of either kind."""

    def make(original: Any) -> Any:
        if inspect.isasyncgenfunction(original):
            wrapper = _async_generator(original, begin)
        elif inspect.iscoroutinefunction(original):
            wrapper = _coroutine(original, begin)
        elif inspect.isgeneratorfunction(original):
            wrapper = _generator(original, begin)
        else:
            wrapper = _plain(original, begin)
        return wraps(original)(wrapper)

    return make


def as_section_of_block(begin: Begin) -> Callable[[Any], Any]:
    """Make the same for a function that gives an asynchronous context manager: the section is its block."""

    def make(original: Any) -> Any:
        @wraps(original)
        @asynccontextmanager
        async def block(*args: Any, **kwargs: Any) -> AsyncGenerator[Any]:
            section = _begun(begin, args, kwargs)
            error: BaseException | None = None
            try:
                with sections.inside(section):
                    async with original(*args, **kwargs) as inner:
                        yield inner
            except BaseException as failure:
                error = failure
                raise
            finally:
                _end(section, error)

        return block

    return make


def _begun(begin: Begin, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Section | None:
    try:
        return begin(args, kwargs)
    except Exception:
        swallow("section_cuts.begin", structure=True)
        return None


def _end(section: Section | None, error: BaseException | None) -> None:
    if error is None or isinstance(error, GeneratorExit):
        sections.end(section)
    else:
        sections.end(section, error=error)


def _plain(original: Any, begin: Begin) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        section = _begun(begin, args, kwargs)
        try:
            with sections.inside(section):
                result = original(*args, **kwargs)
        except BaseException as error:
            _end(section, error)
            raise
        sections.end(section, result)
        return result

    return wrapper


def _coroutine(original: Any, begin: Begin) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        section = _begun(begin, args, kwargs)
        try:
            with sections.inside(section):
                result = await original(*args, **kwargs)
        except BaseException as error:
            _end(section, error)
            raise
        sections.end(section, result)
        return result

    return wrapper


def _generator(original: Any, begin: Begin) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        section = _begun(begin, args, kwargs)
        body: Generator[Any, Any, Any] = original(*args, **kwargs)
        step: Callable[[], Any] = body.__next__
        error: BaseException | None = None
        try:
            while True:
                with sections.inside(section):
                    item = step()
                try:
                    sent = yield item
                except GeneratorExit:
                    body.close()
                    raise
                except BaseException as thrown:
                    step = _throwing(body, thrown)
                else:
                    step = _sending(body, sent)
        except StopIteration as stop:
            return stop.value
        except BaseException as failure:
            error = failure
            raise
        finally:
            _end(section, error)

    return wrapper


def _throwing(body: Generator[Any, Any, Any], error: BaseException) -> Callable[[], Any]:
    return lambda: body.throw(error)


def _sending(body: Generator[Any, Any, Any], value: Any) -> Callable[[], Any]:
    return lambda: body.send(value)


def _async_generator(original: Any, begin: Begin) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        section = _begun(begin, args, kwargs)
        body: AsyncGenerator[Any, Any] = original(*args, **kwargs)
        step: Callable[[], Any] = body.__anext__
        error: BaseException | None = None
        try:
            while True:
                with sections.inside(section):
                    item = await step()
                try:
                    sent = yield item
                except GeneratorExit:
                    await body.aclose()
                    raise
                except BaseException as thrown:
                    step = _athrowing(body, thrown)
                else:
                    step = _asending(body, sent)
        except StopAsyncIteration:
            pass
        except BaseException as failure:
            error = failure
            raise
        finally:
            _end(section, error)

    return wrapper


def _athrowing(body: AsyncGenerator[Any, Any], error: BaseException) -> Callable[[], Any]:
    return lambda: body.athrow(error)


def _asending(body: AsyncGenerator[Any, Any], value: Any) -> Callable[[], Any]:
    return lambda: body.asend(value)
