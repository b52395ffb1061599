"""Whether the agent's code reads a name back, told from its source: a counter that is only counted up is not read.

Not read is what a name stands for where it is only the target of an assignment (`n += 1`, `counts[k] = v`) or of a
statement that calls a method which gives nothing (`log.append(x)`). Where a source cannot be had, all is read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import CodeType
from typing import Final

from reenact.boundary.own_code import own_modules
from reenact.values import alarms

_LONGEST: Final = 2_000_000
"""Characters of source that are read."""


def is_read_back(name: str) -> bool:
    """Tell whether a function or method of the agent's modules reads a variable or attribute of this name."""
    return any(name in _reads(str(vars(module).get("__file__") or "")) for module in own_modules())


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
