"""Cutting a function for every reference at once, by replacing its code.

A name in a module, a value in a dispatch table, a bound method and a closure all refer to one function object, and
calling it runs whatever code it holds. Here that code becomes a trampoline of the function's own, which takes the very
same parameters and hands them to a wrapper. All else of the function stays: identity, defaults, annotations, closure,
attributes, signature, colour, and the complaint about arguments that do not fit.
"""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

_MARK = "reenact: the wrapper goes here"
_PLAIN = """
        reenact_target = {mark!r}
        return reenact_target({arguments})
"""
_COROUTINE = """
        reenact_target = {mark!r}
        return await reenact_target({arguments})
"""
_GENERATOR = """
        reenact_target = {mark!r}
        return (yield from reenact_target({arguments}))
"""
_ASYNC_GENERATOR = """
        reenact_target = {mark!r}
        reenact_target = reenact_target({arguments})
        try:
            reenact_item = await reenact_target.__anext__()
            while True:
                try:
                    reenact_sent = yield reenact_item
                except GeneratorExit:
                    await reenact_target.aclose()
                    raise
                except BaseException as reenact_error:
                    reenact_item = await reenact_target.athrow(reenact_error)
                else:
                    reenact_item = await reenact_target.asend(reenact_sent)
        except StopAsyncIteration:
            return
"""
_TEMPLATE = """
def reenact_outer({free}):
    {colour}def reenact_trampoline({parameters}):
        if False:
            ({used})
{body}
    return reenact_trampoline
"""
_COLOURS = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE


class NotCut(Exception):
    """This function's code cannot be replaced; the message says why."""


def uncut(fn: FunctionType) -> FunctionType:
    """Make a function that runs the code which `fn` has now, with its closure, defaults and globals."""
    twin = FunctionType(fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
    twin.__kwdefaults__ = fn.__kwdefaults__
    twin.__qualname__, twin.__module__, twin.__doc__ = fn.__qualname__, fn.__module__, fn.__doc__
    twin.__annotations__ = fn.__annotations__
    return twin


@dataclass(frozen=True, slots=True)
class Cut:
    """What a function held before and holds now."""

    original: CodeType
    replacement: CodeType

    def undo(self, fn: FunctionType) -> None:
        """Give the function its code back, where nobody put other code over ours."""
        if fn.__code__ is self.replacement:
            fn.__code__ = self.original


def cut(fn: FunctionType, wrapper: Callable[..., Any]) -> Cut:
    """Have every call of `fn` go to `wrapper`, which is of the same colour.

    Raises `NotCut` where the code cannot be replaced.
    """
    original = fn.__code__
    try:
        replacement = _trampoline(original, wrapper)
        fn.__code__ = replacement
    except (SyntaxError, TypeError, ValueError) as error:
        raise NotCut(f"{fn.__module__}:{fn.__qualname__}: {error}") from error
    return Cut(original, replacement)


def _trampoline(code: CodeType, wrapper: Callable[..., Any]) -> CodeType:
    parameters, arguments = _spelled(code)
    for name in code.co_freevars:
        if not name.isidentifier() or keyword.iskeyword(name):
            raise ValueError(f"a free variable is called {name!r}")
    source = _TEMPLATE.format(
        free=", ".join(code.co_freevars),
        used=", ".join((*code.co_freevars, "")) if code.co_freevars else "",
        colour="async " if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR) else "",
        parameters=parameters,
        body=_body(code).format(mark=_MARK, arguments=arguments),
    )
    code_object: CodeType = compile(source, code.co_filename, "exec", dont_inherit=True)
    for _ in range(2):  # the module holds the outer function's code, and that the trampoline's
        code_object = next(each for each in code_object.co_consts if isinstance(each, CodeType))
    if code_object.co_freevars != code.co_freevars or code_object.co_flags & _COLOURS != code.co_flags & _COLOURS:
        raise ValueError("its closure or its colour has no counterpart")
    return code_object.replace(
        co_consts=tuple(wrapper if each == _MARK else each for each in code_object.co_consts),
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_firstlineno=code.co_firstlineno,
        co_linetable=_one_line(code_object),
    )


def _one_line(code: CodeType) -> bytes:
    """Make a table of lines under which every instruction stands on the function's first line (PEP 626)."""
    units, table = len(code.co_code) // 2, bytearray()
    while units:
        length = min(8, units)
        table += bytes((0x80 | (13 << 3) | (length - 1), 0))  # no column, the line as before
        units -= length
    return bytes(table)


def _body(code: CodeType) -> str:
    if code.co_flags & inspect.CO_ASYNC_GENERATOR:
        return _ASYNC_GENERATOR
    if code.co_flags & inspect.CO_COROUTINE:
        return _COROUTINE
    return _GENERATOR if code.co_flags & inspect.CO_GENERATOR else _PLAIN


def _spelled(code: CodeType) -> tuple[str, str]:
    """Spell the parameters of a function, and a call that hands all of them on."""
    names = list(code.co_varnames)
    positional = names[: code.co_argcount]
    keyword_only = names[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    rest = names[code.co_argcount + code.co_kwonlyargcount :]
    parameters, arguments = [*positional], [*positional]
    if code.co_posonlyargcount:
        parameters.insert(code.co_posonlyargcount, "/")
    if code.co_flags & inspect.CO_VARARGS:
        starred = f"*{rest.pop(0)}"
        parameters.append(starred)
        arguments.append(starred)
    elif keyword_only:
        parameters.append("*")
    parameters += keyword_only
    arguments += [f"{name}={name}" for name in keyword_only]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        starred = f"**{rest.pop(0)}"
        parameters.append(starred)
        arguments.append(starred)
    return ", ".join(parameters), ", ".join(arguments)
