"""No test asserts how long something took: a busy machine would fail it. What measures is marked `bench`."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

CLOCKS = {
    "clock_gettime",
    "monotonic",
    "monotonic_ns",
    "perf_counter",
    "perf_counter_ns",
    "process_time",
    "process_time_ns",
    "thread_time",
    "thread_time_ns",
    "time",
    "time_ns",
}
MODULES = {"time", "clock"}
"""What the module of the clocks is called where a clock is read as its attribute."""
KEEPING = {"abs", "float", "int", "list", "max", "min", "round", "sorted", "sum", "tuple"}
"""Functions that make an amount of an amount."""


def test_no_test_asserts_how_long_something_took(root: Path, files: list[Path]) -> None:
    tests = [path for path in files if path.suffix == ".py" and path.parts[0] == "tests" and path.parts[1] != "bench"]
    assert [f"{path}:{line}" for path in tests for line in timed((root / path).read_text(encoding="utf-8"))] == []


def timed(source: str) -> list[int]:
    """Give the lines of asserts that compare an amount of time: what is computed from a reading of a clock."""
    if not re.search(r"\btime\b", source):
        return []
    tree = ast.parse(source)
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "time"]
    names = {alias.asname or alias.name for node in imported for alias in node.names if alias.name in CLOCKS}
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for function in functions:  # what a function returns and an attribute keeps is looked for everywhere in the file
        inside = Clocks(names, function)
        returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
        names |= {f"{function.name}()"} if any(map(inside.is_amount, filter(None, returned))) else set()
        names |= inside.attributes
    judged = [function for function in functions if not may_measure(function)]
    return sorted({line for function in judged for line in Clocks(names, function).compared()})


def may_measure(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Tell a test that only `make bench` runs, and one whose clock stands still until the test moves it."""
    marks = {ast.unparse(each) for each in function.decorator_list}
    own = any(each.arg == "clock" for each in function.args.args) or "pytest.mark.usefixtures('clock')" in marks
    return own or "pytest.mark.bench" in marks


class Clocks:
    """What of a function's values is read from a clock, and what is computed from such a reading.

    `names` are those of clocks that were imported, of functions `f()` that return an amount, of attributes `.a` that
    keep one.
    """

    def __init__(self, names: set[str], function: ast.AST) -> None:
        self._names, self._function = names, function
        self._readings, self._amounts = set[str](), set[str]()
        self.attributes = set[str]()
        # Twice: in a loop a name may be used before the line that assigns it.
        for node in [*ast.walk(function)] * 2:
            match node:
                case ast.Assign(targets=targets, value=value):
                    self._note(targets, value)
                case (
                    ast.AnnAssign(target=target, value=ast.expr() as value)
                    | ast.NamedExpr(target=target, value=value)
                    | ast.comprehension(target=target, iter=value)
                    | ast.For(target=target, iter=value)
                ):
                    self._note([target], value)
                case ast.Call(func=ast.Attribute(value=target, attr="append"), args=[value]):
                    self._note([target], value)

    def compared(self) -> set[int]:
        """Give the lines of asserts in which an amount is compared by size."""
        return {
            node.lineno
            for node in ast.walk(self._function)
            if isinstance(node, ast.Assert)
            for inner in ast.walk(node.test)
            if isinstance(inner, ast.Compare) and _by_size(inner)
            if any(map(self.is_amount, [inner.left, *inner.comparators]))
        }

    def is_amount(self, node: ast.expr) -> bool:
        """Tell whether a value is computed from a reading."""
        match node:
            case ast.BinOp(left=left, right=right):
                return any(self._is_reading(each) or self.is_amount(each) for each in (left, right))
            case ast.Name(id=name):
                return name in self._amounts
            case ast.Attribute(attr=name):
                return f".{name}" in self._names
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return f"{name}()" in self._names or (name in KEEPING and any(map(self.is_amount, arguments)))
            case ast.Tuple() | ast.List() | ast.Subscript() | ast.GeneratorExp() | ast.ListComp() | ast.UnaryOp():
                return any(self.is_amount(each) for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr))
        return False

    def _is_reading(self, node: ast.expr) -> bool:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name)):
                return module in MODULES and name in CLOCKS
            case ast.Call(func=ast.Name(id=name)) | ast.Name(id=name):
                return name in self._names or name in self._readings
            case ast.Tuple(elts=items):
                return any(map(self._is_reading, items))
        return False

    def _note(self, targets: list[ast.expr], value: ast.expr) -> None:
        flat = [each for target in targets for each in (target.elts if isinstance(target, ast.Tuple) else [target])]
        names = {each.id for each in flat if isinstance(each, ast.Name)}
        if self.is_amount(value):
            self._amounts |= names
            self.attributes |= {f".{each.attr}" for each in flat if isinstance(each, ast.Attribute)}
        elif self._is_reading(value):
            self._readings |= names


def _by_size(node: ast.Compare) -> bool:
    near = any(isinstance(each, ast.Attribute) and each.attr == "approx" for each in ast.walk(node))
    return near or any(isinstance(each, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for each in node.ops)


@pytest.mark.parametrize(
    "body",
    [
        "began = time.monotonic()\n    work()\n    assert time.monotonic() - began < 2",
        "began = time.perf_counter()\n    took = (time.perf_counter() - began) / 3\n    assert took < 1, 'slow'",
        "until = time.monotonic() + 60\n    while waiting():\n        assert time.monotonic() < until",
        "began, polls = time.process_time(), 0\n    spent = time.process_time() - began\n    assert 1 <= spent",
        "assert measured() < 2",
        "assert not measured() >= 2 or False",
        "began = perf_counter_ns()\n    assert all(each < 9 for each in [perf_counter_ns() - began])",
        "assert abs(then - time.time()) < 1",
        "began = time.monotonic()\n    shown.took_s = time.monotonic() - began\n    assert shown.took_s < 1",
        "assert then - time.time() == pytest.approx(5, abs=1)",
    ],
)
def test_an_assert_about_an_amount_of_time_is_seen(body: str) -> None:
    assert timed(f"{MEASURED}\ndef test_it():\n    {body}\n") != []


@pytest.mark.parametrize(
    "body",
    [
        "until = time.monotonic() + 60\n    while waiting() and time.monotonic() < until: pass\n    assert done()",
        "before = time.time()\n    read = work()\n    assert before <= read <= time.time()",
        "took = 3\n    assert took < 2",
        "assert first.start_ns - second.start_ns == 5",
        "later = time.time_ns() + 5\n    kept = keep(until=later)\n    assert kept.until == later",
    ],
)
def test_waiting_and_bracketing_are_no_measure(body: str) -> None:
    assert timed(f"{MEASURED}\ndef test_it():\n    {body}\n") == []


@pytest.mark.parametrize("mark", ["@pytest.mark.bench\n", '@pytest.mark.usefixtures("clock")\n'])
def test_what_bench_runs_and_who_moves_a_clock_may_measure(mark: str) -> None:
    body = "def test_it():\n    began = time.time()\n    assert time.time() - began < 2\n"
    assert timed(f"{MEASURED}\n{mark}{body}") == []
    assert timed(f"{MEASURED}\n@pytest.mark.slow\n{body}") != []


MEASURED = """
import time
from time import perf_counter_ns
def measured():
    began = time.thread_time()
    return time.thread_time() - began
"""
