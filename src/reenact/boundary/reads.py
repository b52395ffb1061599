"""Whether the agent's code reads a name back, told from its source: a counter that is only counted up is not read.

Not read is what a name stands for where it is only the target of an assignment (`n += 1`, `counts[k] = v`) or of a
statement that calls a method which gives nothing (`log.append(x)`). Where a source cannot be had, all is read.

A class is shown where it stands as a value, as in `render(site=Site)`: who is given it may read what nobody names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

from reenact.boundary import touches
from reenact.boundary.own_code import own_modules
from reenact.values import alarms

_WORD: Final = re.compile(r"\w+")
_LONGEST: Final = 2_000_000
"""Characters of source that are read."""


def is_read_back(name: str) -> bool:
    """Tell whether a function or method of the agent's modules reads a variable or attribute of this name."""
    return any(name in _reads(_path(module)) for module in own_modules())


def is_shown(names: frozenset[str]) -> bool:
    """Tell whether a function or method of the agent's modules gives a class of these names to anybody, as a value."""
    return any(not names.isdisjoint(_shown(_path(module))[1]) for module in own_modules())


def is_shown_at_start(names: frozenset[str]) -> bool:
    """Tell whether a module of the agent's does so when it is imported."""
    return any(not names.isdisjoint(_shown(_path(module))[0]) for module in own_modules())


def spelled(names: frozenset[str]) -> list[str]:
    """List those names that stand anywhere in the source of the agent's modules; all where a source cannot be had."""
    words = [_words(_path(module)) for module in own_modules()]
    return [name for name in sorted(names) if any(name in each for each in words)]


@lru_cache(maxsize=4096)
def _words(path: str) -> frozenset[str]:
    try:
        with touches.aside():  # a tool may be at work
            return frozenset(_WORD.findall(Path(path).read_text(encoding="utf-8")))
    except Exception:  # there is none
        alarms.pass_on()
        return _All()


def _path(module: ModuleType) -> str:
    return str(vars(module).get("__file__") or "")


def reads_of(code: CodeType) -> frozenset[str] | None:
    """Name what a function reads, those inside it included; None where its source cannot be had."""
    return _by_line(code.co_filename).get((code.co_name, code.co_firstlineno))


@lru_cache(maxsize=4096)
def _by_line(path: str) -> dict[tuple[str, int], frozenset[str]]:
    """Give what each function of a file reads, by its name and the line that it begins on."""
    reads_by_function: dict[tuple[str, int], frozenset[str]] = {}
    try:
        source = Path(path).read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)) if len(source) <= _LONGEST else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                reads_by_function[node.name, first] = frozenset(_read(node))
    except Exception:  # there is none, or it is no Python of this version
        alarms.pass_on()
    return reads_by_function


class _All(frozenset[str]):
    """Every name."""

    def __contains__(self, _: object) -> bool:
        return True


@lru_cache(maxsize=4096)
def _reads(path: str) -> frozenset[str]:
    try:
        source = Path(path).read_text(encoding="utf-8")
        if len(source) > _LONGEST:
            return _All()
        return frozenset(name for function in _functions(ast.parse(source)) for name in _read(function))
    except Exception:  # there is none, or it is no Python of this version
        alarms.pass_on()
        return _All()


@lru_cache(maxsize=4096)
def _shown(path: str) -> tuple[frozenset[str], frozenset[str]]:
    """Name what stands as a value in a file: in code that runs when it is imported, and in functions."""
    try:
        source = Path(path).read_text(encoding="utf-8")
        if len(source) > _LONGEST:
            return _All(), _All()
        tree = ast.parse(source)
        functions = [*_functions(tree)]
        return (
            frozenset(_values(tree, frozenset(functions))),
            frozenset(name for function in functions for name in _values(function, frozenset())),
        )
    except Exception:  # there is none, or it is no Python of this version
        alarms.pass_on()
        return _All(), _All()


def _values(node: ast.AST, without: frozenset[ast.AST]) -> Iterator[str]:
    """Name what stands as a value: neither called, nor asked for an attribute, nor a type of something."""
    if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
        yield node.id if isinstance(node, ast.Name) else node.attr
    for each in _inner_values(node):
        if each not in without:
            yield from _values(each, without)


def _inner_values(node: ast.AST) -> list[ast.AST]:
    """Give the parts of a piece of code that may stand as values."""
    match node:
        case ast.Attribute():
            return _behind(node.value)
        case ast.Call():
            handed = [*node.args, *(keyword.value for keyword in node.keywords)]
            is_asked = isinstance(node.func, ast.Name) and node.func.id in {"isinstance", "issubclass"}
            return [*_behind(node.func), *(handed[:1] if is_asked else handed)]
        case ast.ExceptHandler() | ast.ClassDef():
            return [*node.body]
        case ast.AnnAssign():
            return [] if node.value is None else [node.value]
        case ast.arg():
            return []
        case _:
            returned = getattr(node, "returns", None)
            return [each for each in ast.iter_child_nodes(node) if each is not returned]


def _behind(node: ast.AST) -> list[ast.AST]:
    """Give what is asked for attributes, one by one, where that is no name."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return [] if isinstance(node, ast.Name) else [node]


def _functions(tree: ast.AST) -> Iterator[ast.AST]:
    """Give the outermost functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node
        else:
            yield from _functions(node)


def _read(node: ast.AST) -> Iterator[str]:
    """Name what a piece of code reads."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _of_target(target)
        yield from _read(node.value)
    elif isinstance(node, ast.AugAssign):
        yield from _of_target(node.target)
        yield from _read(node.value)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        yield from _of_target(node.value.func.value)
        for each in (*node.value.args, *(keyword.value for keyword in node.value.keywords)):
            yield from _read(each)
    else:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield node.attr
        for each in ast.iter_child_nodes(node):
            yield from _read(each)


def _of_target(node: ast.AST) -> Iterator[str]:
    """Name what is read to find a place that is written to: keys, and not the place."""
    if isinstance(node, ast.Subscript):
        yield from _of_target(node.value)
        yield from _read(node.slice)
    elif isinstance(node, ast.Attribute):
        yield from _of_target(node.value)
    elif isinstance(node, ast.Tuple | ast.List):
        for each in node.elts:
            yield from _of_target(each)
    elif not isinstance(node, ast.Name):
        yield from _read(node)
