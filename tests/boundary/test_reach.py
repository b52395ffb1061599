"""What the code of a tool can reach, told without running it."""

from __future__ import annotations

import copy
import copyreg
import ctypes
import functools
import io
import itertools
import math
import operator
import os
import re
import types
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from reenact.boundary.code_facts import code_facts
from reenact.boundary.reach import reach

LIBC = ctypes.CDLL(None)
NUMBERS = itertools.count()
HANDLERS: list[Any] = []


class Plain:
    def __init__(self) -> None:
        self.client: Any = None

    def send(self, n: int) -> Any:
        return self.client.write(n)


PLAIN = Plain()


def computes(n: int) -> float:
    return math.sqrt(n) + next(NUMBERS) + len(re.findall("a", str(n)))


def by_constant(n: int) -> Any:
    return getattr(PLAIN, "missing", n)


def by_name(name: str) -> Any:
    return getattr(PLAIN, name)


def aliased(name: str, get: Callable[..., Any] = getattr) -> Any:
    return get(PLAIN, name)


def native() -> Any:
    return LIBC.getpid()


def imports() -> Any:
    import subprocess

    return subprocess.run(["true"], check=False)


def imports_what_computes() -> Any:
    import json

    return json.dumps(1)


def clock() -> Any:
    return datetime.now()  # noqa: DTZ005


def files() -> Any:
    return os.listdir(".")  # noqa: PTH208


def joined() -> str:
    return os.path.join("a", "b")  # noqa: PTH118


def through_a_builtin() -> Any:
    return print.__self__  # type: ignore[attr-defined]


def through_a_frame() -> Any:
    return (n for n in ()).gi_frame


def named() -> Any:
    return operator.attrgetter("client.close")(PLAIN)


def matched(value: Any) -> Any:
    match value:
        case Plain(client=client):
            return client
    return None


def handled(n: int) -> Any:
    return [handler(n) for handler in HANDLERS]


@pytest.mark.parametrize(
    ("fn", "what"),
    [
        (computes, ""),
        (by_constant, ""),
        (imports_what_computes, ""),
        (joined, ""),
        (functools.partial(max, 1), ""),
        (by_name, "getattr with a computed name"),
        (aliased, "getattr"),
        (native, "ctypes.CDLL"),
        (imports, "import subprocess"),
        (clock, "datetime.datetime.now"),
        (files, "os.listdir"),
        (through_a_builtin, "__self__"),
        (through_a_frame, "gi_frame"),
        (named, "operator.attrgetter"),
        (os.mkdir, "posix.mkdir"),
        (functools.partial(operator.methodcaller("x"), 1), "operator.methodcaller"),
    ],
)
def test_what_makes_a_function_unknown_is_named(fn: Callable[..., Any], what: str) -> None:
    assert reach(fn).unknown[:1] == ([what] if what else [])


def test_an_argument_that_is_a_client_makes_it_unknown(tmp_path: Any) -> None:
    with (tmp_path / "x").open("w") as file:
        assert reach(matched, (file,)).unknown == ["_io.TextIOWrapper"]
    assert reach(matched, ({"a": [1]},)).unknown == []


def test_what_an_instance_was_given_later_is_of_another_kind() -> None:
    found = reach(PLAIN.send)
    assert found.unknown == []
    assert not found.knows(LIBC)
    PLAIN.client = LIBC
    try:
        assert reach(PLAIN.send).unknown == ["ctypes.CDLL"]
        assert reach(matched, (PLAIN,)).unknown == ["ctypes.CDLL"]
    finally:
        PLAIN.client = None


def test_code_in_a_table_is_looked_at_and_a_name_that_moves_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.HANDLERS", [computes])
    found = reach(handled)
    assert found.unknown == []
    assert found.knows(computes)
    assert not found.knows(native)
    before = reach(by_two)
    assert before.holds()
    monkeypatch.setattr(f"{__name__}.computes", native)
    assert not before.holds()
    assert reach(by_two).unknown == ["ctypes.CDLL"]


def says(n: int) -> int:
    print(n)  # noqa: T201
    return n


class Telling:
    def write(self, text: str) -> Any:
        return LIBC.puts(text)

    def flush(self) -> None: ...


def test_what_is_printed_goes_where_standard_output_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", io.StringIO())
    found = reach(says)
    assert found.unknown == []
    assert found.holds()
    monkeypatch.setattr("sys.stdout", Telling())
    assert not found.holds()
    assert reach(says).unknown == ["ctypes.CDLL"]


def asks_a_module() -> Any:
    return LAZY.anything


LAZY = types.ModuleType("lazy")
exec("def __getattr__(name):\n    return open(name)", vars(LAZY))
LAZY.__file__ = __file__


def test_a_module_that_makes_its_attributes_is_asked_for_them() -> None:
    assert reach(asks_a_module).unknown == ["io.open"]


def copies(value: Any) -> Any:
    return copy.copy(value)


def test_what_copying_was_told_to_call_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reach(copies).unknown == []
    monkeypatch.setitem(copyreg.dispatch_table, Plain, native)  # type: ignore[arg-type]
    assert reach(copies).unknown == ["ctypes.CDLL"]


def by_two(n: int) -> float:
    return computes(n) * 2


@pytest.mark.parametrize(
    ("fn", "names"),
    [(lambda x: getattr(x.y, "a", x.b(1)), {"y", "a", "b"}), (lambda x: setattr(x, "c", len(x)), {"c"})],
)
def test_constants_given_to_getattr_are_names(fn: Callable[..., Any], names: set[str]) -> None:
    facts = code_facts(fn.__code__)
    assert facts.attributes == names
    assert not facts.computed


def test_a_constant_that_is_no_whole_name_is_none() -> None:
    assert code_facts((lambda x, n: getattr(x, "a" + n)).__code__).computed
    assert code_facts((lambda x, n: getattr(x, n, "a")).__code__).computed
