"""Which functions are found behind a tool's name, and which are left."""

from __future__ import annotations

import functools
import inspect
import json
import logging
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

import reenact
from reenact.boundary import searching
from reenact.boundary.own_code import is_own_class, is_own_function, is_own_module, own_modules
from reenact.boundary.searching import Candidate, Search
from reenact.boundary.tool_discovery import declared


def found(names: set[str], *modules: ModuleType) -> list[Candidate]:
    return Search(names, declared).modules(modules).candidates()


def module(**held: Any) -> ModuleType:
    made = ModuleType("agent_of_the_test")
    vars(made).update(held)
    return made


def fetch(city: str) -> str:
    return city


def other(city: str) -> str:
    return city


class Lazy:
    """As a proxy that must not be asked outside a request."""

    @property
    def __class__(self) -> Any:
        raise RuntimeError("outside of a request")

    @__class__.setter
    def __class__(self, _: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("outside of a request")


def test_a_function_is_found_by_its_own_name_wherever_it_hangs() -> None:
    deep = {"a": [({"b": {"c": fetch}},)]}
    (candidate,) = found({"fetch"}, module(table=deep, lazy=Lazy()))
    assert candidate.function is fetch


def test_a_table_names_it_otherwise_and_a_record_beside_it() -> None:
    assert [each.function for each in found({"get"}, module(table={"get": fetch}))] == [fetch]
    assert [each.function for each in found({"get"}, module(rows=[{"name": "get", "run": fetch}]))] == [fetch]
    assert [each.function for each in found({"get"}, module(rows=[("get", fetch), ("put", other)]))] == [fetch]
    assert found({"get"}, module(rows=[("get", fetch, other)])) == []


@dataclass
class Tool:
    name: str
    run: Any


class Slotted:
    __slots__ = ("tools",)

    def __init__(self, tools: Any) -> None:
        self.tools = tools


def test_instances_are_looked_into() -> None:
    assert [each.function for each in found({"get"}, module(tool=Tool("get", fetch)))] == [fetch]
    assert [each.function for each in found({"get"}, module(slotted=Slotted({"get": fetch})))] == [fetch]


def test_of_functions_that_wrap_each_other_the_outermost_is_taken() -> None:
    @functools.wraps(fetch)
    def outer(*args: Any) -> Any:
        return fetch(*args)

    assert [each.function for each in found({"fetch"}, module(fetch=fetch, outer=outer))] == [outer]
    hidden = around(fetch)
    assert [each.function for each in found({"fetch"}, module(table={"fetch": hidden}))] == [hidden]


def around(fn: Any) -> Any:
    def wrapper(*args: Any) -> Any:
        return fn(*args)

    return wrapper


def test_two_functions_of_one_name_are_both_found() -> None:
    namespace: dict[str, Any] = {"__name__": __name__, "__file__": __file__}
    exec("def fetch(city): return 2", namespace)
    both = found({"fetch"}, module(a=fetch, b=namespace["fetch"]))
    assert {each.function for each in both} == {fetch, namespace["fetch"]}


def test_what_is_declared_is_left_with_all_that_wraps_it() -> None:
    tool = reenact.tool(fetch)

    @functools.wraps(tool)
    def outer(*args: Any) -> Any:
        return tool(*args)

    assert found({"fetch"}, module(fetch=tool)) == []
    assert found({"fetch"}, module(fetch=outer)) == []
    assert found({"get"}, module(table={"get": tool})) == []
    assert found({"fetch"}, module(step=reenact.chain(fetch))) == []


def test_what_has_no_code_is_found_where_it_is_named() -> None:
    table: dict[str, Any] = {"a": functools.partial(fetch), "b": functools.lru_cache(fetch), "c": len, "d": dict}
    holders = {each.key: each.holder for each in found({"a", "b", "c", "d"}, module(table=table))}
    assert holders == {"a": table, "b": table, "c": table}


def test_a_library_s_function_that_a_module_imported_is_no_tool_where_there_is_a_better_one() -> None:
    def sqrt(n: float) -> float:
        return n

    import math

    assert [each.holder is not None for each in found({"sqrt"}, module(sqrt=math.sqrt))] == [True]
    both = found({"sqrt"}, module(sqrt=math.sqrt, table=[sqrt]))
    assert [each.function for each in both] == [sqrt]


def test_a_framework_s_wrapping_of_a_tool_is_looked_into() -> None:
    from concurrent.futures import Future

    future: Future[Any] = Future()
    future.set_result({"inside": [fetch]})
    assert [each.function for each in found({"fetch"}, module(tool=future))] == [fetch]


def test_running_functions_are_looked_into() -> None:
    def local(city: str) -> str:
        return city

    tools = {"get": lambda city: city}
    search = Search({"local", "get"}, declared).frames(inspect.currentframe())
    assert {each.function for each in search.candidates()} == {local, tools["get"]}
    again = Search({"deep"}, declared)
    long = [{"deep": local} for _ in range(100)]
    assert again.frames(inspect.currentframe(), once_more=True).candidates() == []
    assert Search({"deep"}, declared).frames(inspect.currentframe()).candidates() != []
    assert len(long) == 100


def test_whose_code_is_whose() -> None:
    assert is_own_function(fetch)
    assert is_own_class(Tool)
    assert not is_own_class(dict)
    assert not is_own_class(pytest.MonkeyPatch)
    assert not is_own_function(reenact.load)  # type: ignore[arg-type]
    assert not is_own_function(json_dumps())
    assert is_own_module("agent", "agents/agent.py")
    assert not is_own_module("json", json_dumps().__code__.co_filename)
    assert sys.modules[__name__] in own_modules()
    assert sys.modules["json"] not in own_modules()


def json_dumps() -> Any:

    return json.dumps


def test_a_function_on_which_a_framework_wrote_the_name_is_found() -> None:
    def written(city: str) -> str:
        return city

    vars(written)["__kernel_function_name__"] = "get"
    assert [each.function for each in found({"get"}, module(rows=[[written]]))] == [written]
    assert [each.name for each in found({"Travel-get"}, module(rows=[[written]]))] == ["Travel-get"]
    assert found({"Travel-get", "Mail-get"}, module(rows=[[written]])) == [], "which of the two it is nobody knows"
    assert found({"Travel-written"}, module(rows=[[written]])) == []


class Notes(logging.Formatter):
    """As a tool that derives from a framework's class."""

    name = "note"

    def format(self, record: Any) -> str:
        return str(record)


class _Wrapper:
    """As an object that a framework made of a function: the function is in an attribute of the class."""


_Wrapper.__module__ = "json"


def test_a_class_that_is_a_tool_is_cut_where_its_framework_calls_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "_ENTRIES", ("format",))
    assert [each.function for each in found({"note"}, module(Notes=Notes))] == [Notes.format]
    assert found({"other"}, module(Notes=Notes)) == []


def test_what_a_framework_put_into_a_class_is_found() -> None:
    def forward(*args: Any) -> Any:
        return fetch(*args)

    _Wrapper.__call__ = forward  # type: ignore[method-assign,attr-defined]
    assert [each.function for each in found({"forward"}, module(tool=_Wrapper()))] == [forward]


class _Framework:
    """As a framework's own object, that holds its tools."""

    def __init__(self, tool: Any) -> None:
        self.tool = tool


_Framework.__module__ = "json"


class _Half:
    """As a framework's object with slots and a table of attributes beside them."""

    __slots__ = ("__dict__", "call")

    def __init__(self, call: Any) -> None:
        self.call = call


_Half.__module__ = "json"


def test_slots_are_looked_into_beside_a_table_of_attributes() -> None:
    assert [each.function for each in found({"fetch"}, module(tool=_Half(fetch)))] == [fetch]


def test_in_running_functions_a_frameworks_objects_are_looked_into_where_nothing_else_helps() -> None:
    def hidden(city: str) -> str:
        return city

    agent = _Framework(hidden)
    del hidden
    frame = inspect.currentframe()
    assert Search({"hidden"}, declared).frames(frame).candidates() == []
    (candidate,) = Search({"hidden"}, declared).frames(frame, deep=True).candidates()
    assert candidate.function is agent.tool
