"""A digest of what a function is written as, and of the agent's own code that it names.

An answered tool does not run, so a fix inside it is not seen by the answer. This is how a replay knows of one.

**What counts.** The definition of the function, and whatever the names in it are bound to, from there on, as far as
that stands in the agent's own modules: functions, classes, constants, imports that lead to these, what the statements
of an enclosing function bind, and for a method what it reads of `self`. All of it is read from the source, with no
value looked at: a counter that grows is the same code. Code that reads the names of an installed library stands for
that library, whose versions the recording holds.

**What does not.** Where something stands, in which order and in which file, comments, white space, docstrings, the
decorators of `reenact`, and how a version of Python spells its tree (`_spelled` leaves out what is empty).

A function that has no source, or whose file was written after the process began and does not compile to its code, has
no digest. Other files that were written meanwhile are taken for what was loaded.
"""

from __future__ import annotations

import ast
import hashlib
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache, partial
from importlib.util import resolve_name
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final, cast

from reenact.boundary.own_code import is_own_function, is_own_globals

_PIECES: Final = 2_000
"""Definitions that one digest is made of at most."""
_LARGEST: Final = 2_000_000
"""Bytes of a file that is read."""
_DEEPEST: Final = 10
"""Classes that are made of one another."""
_UNSPELLED: Final = frozenset({"ctx", "kind", "type_comment"})
_Definition = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_Function = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def source_digest(target: Callable[..., Any]) -> str:
    """Give the digest of a callable's source and of the agent's own code that it names; empty where it has none."""
    walk = _Walk()
    for fn in _functions(target):
        module = _module_of(fn)
        places = module.places.get((fn.__code__.co_name, fn.__code__.co_firstlineno), ()) if module else ()
        if module is None or not places or not module.is_of(fn.__code__):
            return ""
        for node, scopes in places:
            walk.push(module, scopes, node)
    return walk.digest()


def _functions(target: Any) -> list[FunctionType]:
    """List the agent's own functions that make up a callable: itself, what it wraps, and what its closure holds."""
    functions, left, seen_ids = list[FunctionType](), [target], set[int]()
    while left and len(seen_ids) < _PIECES:
        each = left.pop()
        if id(each) in seen_ids:
            continue
        seen_ids.add(id(each))
        if isinstance(each, partial):
            left.append(cast("partial[Any]", each).func)
        elif isinstance(each, MethodType | classmethod | staticmethod):
            left.append(cast("Any", each).__func__)
        elif type(each) is FunctionType:
            if is_own_function(each):
                functions.append(each)
            if wrapped := vars(each).get("__wrapped__"):
                left.append(wrapped)
            cell_values = (_cell_value(cell) for cell in each.__closure__ or ())
            left += [value for value in cell_values if type(value) is FunctionType]  # what a decorator wraps
        elif (inner := getattr(each, "__wrapped__", None)) is not None:
            left.append(inner)
        elif type(call := _called(each)) is FunctionType:
            left.append(call)
    return functions


def _called(value: Any) -> Any:
    """Give what runs when an instance is called."""
    cls = cast("type[Any]", type(value))
    return cls.__call__ if callable(value) else None


def _cell_value(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing is bound yet
        return None


_Bound = tuple[ast.AST, tuple[ast.AST, ...]]
"""A piece of source and the scopes around it."""


class _Module:
    """The source of one of the agent's own modules, as a tree."""

    def __init__(self, name: str, package: str, tree: ast.Module, path: str, *, is_late: bool) -> None:
        self.name, self.package, self.tree, self._path, self.is_late = name, package, tree, path, is_late
        self.places: dict[tuple[str, int], list[_Bound]] = {}
        """Functions by name and first line, with the scopes around them."""
        self._bindings_by_scope: dict[ast.AST, dict[str, list[_Bound]]] = {}
        self._walk(tree, (tree,))

    def _walk(self, node: ast.AST, scopes: tuple[ast.AST, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            inside = scopes
            if isinstance(child, _Function):
                name = "<lambda>" if isinstance(child, ast.Lambda) else child.name
                above = [] if isinstance(child, ast.Lambda) else child.decorator_list
                first = min(each.lineno for each in (*above, child))
                self.places.setdefault((name, first), []).append((child, scopes))
            if isinstance(child, (*_Function, ast.ClassDef)):
                inside = (*scopes, child)
            self._walk(child, inside)

    def is_of(self, code: CodeType) -> bool:
        """Tell whether the source is what `code` was made of: it may have been written anew since."""
        return not self.is_late or code in _codes(compile(self.tree, self._path, "exec", dont_inherit=True))

    def bound(self, scopes: tuple[ast.AST, ...], name: str) -> list[_Bound]:
        """Give what a name is bound to in the innermost of these scopes, each with the scopes around it."""
        scope = scopes[-1]
        if scope not in self._bindings_by_scope:
            self._bindings_by_scope[scope] = bindings = {}
            for key, node, around in _bindings(scope, scopes):
                bindings.setdefault(key, []).append((node, around))
        return self._bindings_by_scope[scope].get(name, [])


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def _bindings(scope: ast.AST, scopes: tuple[ast.AST, ...]) -> Iterator[tuple[str, ast.AST, tuple[ast.AST, ...]]]:
    """Yield the names that the statements of a scope bind, each with what it is bound by and the scopes around that."""
    for statement in _statements(getattr(scope, "body", ())):
        if isinstance(statement, _Definition):
            yield statement.name, statement, scopes
            if isinstance(scope, ast.ClassDef) and not isinstance(statement, ast.ClassDef):
                yield from _of_instance(statement, (*scopes, statement))
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            for alias in statement.names:
                whole = alias.asname or isinstance(statement, ast.ImportFrom)
                name = alias.asname or (alias.name if whole else alias.name.partition(".")[0])
                yield name, _Imported(statement, alias), scopes
        else:
            for piece, name in _heads(statement):
                yield name, piece, scopes


def _statements(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the statements of a body and of the blocks in it, but not those of definitions."""
    for each in body if isinstance(body, list) else ():
        yield each
        if not isinstance(each, _Definition):
            for name in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(each, name, ()))
            for part in (*getattr(each, "handlers", ()), *getattr(each, "cases", ())):
                yield from _statements(part.body)


def _heads(statement: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Yield what a statement sets or changes by name, as in `x = 1`, `x[1] = 2`, `x.append(3)`, `for x in …`."""
    match statement:
        case ast.Assign(targets=targets):
            heads: list[tuple[ast.AST, Iterable[ast.AST]]] = [(statement, targets)]
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            heads = [(statement, [target])]
        case ast.For(target=target, iter=of) | ast.AsyncFor(target=target, iter=of):
            heads = [(of, [target])]
        case ast.With(items=items) | ast.AsyncWith(items=items):
            heads = [(each.context_expr, [each.optional_vars]) for each in items if each.optional_vars is not None]
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=of))):
            heads = [(statement, [of])]
        case _:
            heads = []
    for piece, targets in heads:
        for name in dict.fromkeys(name for target in targets for name in _roots(target)):
            yield piece, name


def _roots(target: ast.AST) -> Iterator[str]:
    """Yield the names at the beginning of what is assigned to."""
    if isinstance(target, ast.Tuple | ast.List):
        for each in target.elts:
            yield from _roots(each)
    while isinstance(target, ast.Attribute | ast.Subscript | ast.Starred):
        target = target.value
    if isinstance(target, ast.Name):
        yield target.id


def _of_instance(
    method: ast.FunctionDef | ast.AsyncFunctionDef, scopes: tuple[ast.AST, ...]
) -> Iterator[tuple[str, ast.AST, tuple[ast.AST, ...]]]:
    """Yield the attributes of the instance that a method sets."""
    owner = _owner(method)
    for statement in _statements(method.body) if owner else ():
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        for target in targets:
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == owner:
                yield target.attr, statement, scopes


def _owner(node: ast.AST) -> str:
    """Name the first parameter of a method."""
    parameters = node.args if isinstance(node, _Function) else None
    first = [*parameters.posonlyargs, *parameters.args][:1] if parameters else []
    return first[0].arg if first else ""


class _Imported(ast.AST):
    """One name that an import binds."""

    def __init__(self, statement: ast.Import | ast.ImportFrom, alias: ast.alias) -> None:
        self.statement, self.alias = statement, alias


_Place = tuple[_Module, tuple[ast.AST, ...], ast.AST]
"""A module, scopes in it, and a piece of source there."""


class _Walk:
    """One walk from definition to definition."""

    def __init__(self) -> None:
        self._queue: deque[_Place] = deque()
        self._nodes: set[ast.AST] = set()
        self._spellings: set[str] = set()
        self._followed: set[tuple[str, tuple[str, ...]]] = set()
        """What is being followed: modules that import from each other lead back to themselves."""

    def push(self, module: _Module, scopes: tuple[ast.AST, ...], node: ast.AST) -> None:
        if node not in self._nodes and len(self._nodes) < _PIECES:
            self._nodes.add(node)
            self._queue.append((module, scopes, node))

    def digest(self) -> str:
        while self._queue:
            module, scopes, node = self._queue.popleft()
            self._spellings.add(_spelled(node))
            names = _Names(node)
            inside = (*scopes, node) if isinstance(node, _Function) else scopes  # where it imports things itself
            for chain in names.chains:
                for each in self._bindings_of(module, inside, chain):
                    self.push(*each)
            cls = next((each for each in reversed(scopes) if isinstance(each, ast.ClassDef)), None)
            if cls is not None and names.of_owner:
                around = scopes[: scopes.index(cls) + 1]
                for name in names.of_owner:
                    self._member(module, around, name, 0)
        return hashlib.sha256("\n".join(sorted(self._spellings)).encode()).hexdigest()[:32] if self._spellings else ""

    def _bindings_of(self, module: _Module, scopes: tuple[ast.AST, ...], chain: tuple[str, ...]) -> Iterator[_Place]:
        """Find what a name and the attributes read of it are bound to: where that stands and the scopes there."""
        innermost = scopes[-1]
        for depth in range(len(scopes), 0, -1):
            around = scopes[:depth]
            if isinstance(around[-1], ast.ClassDef) and around[-1] is not innermost:
                continue  # a method does not see the names of its class
            bindings = module.bound(around, chain[0]) or (module.bound(around, "*") if depth == 1 else [])
            for node, where in bindings:
                if isinstance(node, _Imported):
                    yield from self._imported(module, node, chain)
                else:
                    yield module, where, node
            if bindings:
                return

    def _imported(self, module: _Module, node: _Imported, chain: tuple[str, ...]) -> Iterator[_Place]:
        statement, alias = node.statement, node.alias
        if isinstance(statement, ast.Import):  # `import a.b` binds a, `import a.b as c` binds a.b
            yield from self._through(alias.name if alias.asname else alias.name.partition(".")[0], chain[1:])
            return
        try:
            name = resolve_name(f"{'.' * statement.level}{statement.module or ''}", module.package or None)
        except ImportError:
            return
        yield from self._through(name, (chain[0] if alias.name == "*" else alias.name, *chain[1:]))

    def _through(self, name: str, rest: tuple[str, ...]) -> Iterator[_Place]:
        """Follow the attributes of a module: to a definition, or to a module below it."""
        module = _module_named(name)
        if module is None:
            self._spellings.add(f"{name} {'.'.join(rest[:1])}")
        elif rest and (name, rest) not in self._followed:  # `from . import a` in a package leads to the package again
            self._followed.add((name, rest))
            there = [*self._bindings_of(module, (module.tree,), rest)]
            self._followed.discard((name, rest))
            yield from there
            if not there and f"{name}.{rest[0]}" in sys.modules:
                yield from self._through(f"{name}.{rest[0]}", rest[1:])

    def _member(self, module: _Module, scopes: tuple[ast.AST, ...], name: str, depth: int) -> None:
        """Follow what a method reads of `self`: in its class, and in those that the class is made of."""
        for node, where in module.bound(scopes, name):
            self.push(module, where, node)
        for base in cast("ast.ClassDef", scopes[-1]).bases if depth < _DEEPEST else ():
            for there, around, node in self._bindings_of(module, scopes[:-1], _chain(base)) if _chain(base) else ():
                if isinstance(node, ast.ClassDef):
                    self._member(there, (*around, node), name, depth + 1)


class _Names(ast.NodeVisitor):
    """The names that a piece of source reads and does not bind itself."""

    def __init__(self, node: ast.AST) -> None:
        self._owner = _owner(node)
        self._all_chains: dict[tuple[str, ...], None] = {}
        self.of_owner: dict[str, None] = {}
        """Attributes that are read of `self`, and of `super()`."""
        self.visit(node)
        own = _locals(node)
        self.chains = [chain for chain in self._all_chains if chain[0] not in own]

    def visit_Name(self, node: ast.Name) -> None:
        self._all_chains[node.id,] = None

    def visit_Attribute(self, node: ast.Attribute) -> None:
        chain = _chain(node)
        if not chain:
            if isinstance(node.value, ast.Call) and _chain(node.value.func) == ("super",):
                self.of_owner[node.attr] = None
            self.generic_visit(node)
            return
        if chain[0] == self._owner:
            self.of_owner[chain[1]] = None
        self._all_chains[chain] = None


def _locals(node: ast.AST) -> set[str]:
    """Name what a function binds itself: its parameters and variables, and those of the functions inside."""
    if not isinstance(node, _Function):
        return set()
    outer_names, stored = set[str](), set[str]()
    for each in ast.walk(node):
        if isinstance(each, ast.Global | ast.Nonlocal):
            outer_names.update(each.names)
        elif isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load):
            stored.add(each.id)
        elif isinstance(each, ast.arg):
            stored.add(each.arg)
        elif isinstance(each, ast.ExceptHandler) and each.name:
            stored.add(each.name)
    return stored - outer_names


def _chain(node: ast.AST) -> tuple[str, ...]:
    """Give a name with the attributes read of it, as in `a.b.c`; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (node.id, *reversed(parts)) if isinstance(node, ast.Name) else ()


def _spelled(node: object) -> str:
    """Spell a piece of source without places, docstrings, what is empty, and our own decorators."""
    if isinstance(node, _Imported):
        return ""
    if isinstance(node, list):
        return f"[{','.join(map(_spelled, cast('list[object]', node)))}]"
    if not isinstance(node, ast.AST):
        return f"{type(node).__name__}:{node!r}"
    fields: list[str] = []
    for name in node._fields:
        value: Any = getattr(node, name, None)
        if name == "body" and isinstance(node, _Definition):
            value = value[1:] if ast.get_docstring(node, clean=False) is not None else value
        elif name == "decorator_list":
            value = [each for each in value if not _is_ours(each)]
        if name not in _UNSPELLED and value is not None and value != []:
            fields.append(f"{name}={_spelled(value)}")
    return f"{type(node).__name__}({';'.join(fields)})"


def _is_ours(decorator: ast.expr) -> bool:
    at = decorator.func if isinstance(decorator, ast.Call) else decorator
    return _chain(at)[:1] == ("reenact",)


def _module_of(fn: FunctionType) -> _Module | None:
    space = fn.__globals__
    name, package = space.get("__name__"), space.get("__package__")
    return _read(str(name or ""), str(package or ""), fn.__code__.co_filename)


def _module_named(name: str) -> _Module | None:
    """Give one of the agent's own modules that is loaded."""
    module = sys.modules.get(name)
    if not isinstance(module, ModuleType) or not is_own_globals(vars(module)):
        return None
    return _read(name, str(module.__package__ or ""), str(getattr(module, "__file__", None) or ""))


@lru_cache(maxsize=16)
def _read(name: str, package: str, path: str) -> _Module | None:
    try:
        with Path(path).open("rb") as file:
            status = os.fstat(file.fileno())
            tree = ast.parse(file.read(_LARGEST + 1)) if status.st_size <= _LARGEST else None
    except (OSError, ValueError, SyntaxError, RecursionError):
        return None
    return None if tree is None else _Module(name, package, tree, path, is_late=status.st_mtime > _began())


@cache
def _began() -> float:
    """Tell when this process began, in seconds of the wall clock (proc_pid_stat(5)); now where nobody says."""
    now = time.time()
    try:
        ticks = int(Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()[19])
        return now - (time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, IndexError, AttributeError):
        return now
