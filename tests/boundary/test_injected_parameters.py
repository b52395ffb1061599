"""Parameters that no model fills in are no part of a tool's question, by their type and by the schema that it has."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import pytest

from reenact.boundary import door, injected_parameters, offers
from reenact.boundary.function import Function
from reenact.values.call import CallKind, FunctionCall
from reenact.values.discovered_tools import LEFT_OUT

Body = dict[str, Any]
OPENAI: Body = {
    "tools": [{"type": "function", "function": {"name": "look_up", "parameters": {"properties": {"user": {}}}}}]
}
ANTHROPIC: Body = {"tools": [{"name": "look_up", "input_schema": {"type": "object", "properties": {"user": {}}}}]}
GEMINI: Body = {"tools": [{"functionDeclarations": [{"name": "look_up", "parameters": {"properties": {"user": {}}}}]}]}
NOTHING: Body = {"tools": [{"type": "function", "name": "look_up", "parameters": {"type": "object"}}]}


@dataclass
class Desk:
    """What the agent hands in beside what the model says."""

    name: str
    lock: Any = field(default_factory=threading.Lock)


@dataclass
class Asked:
    """What a model says, as one value."""

    user: str


def look_up(user: str, desk: Desk, limit: int = 5, **rest: Any) -> None: ...


def of_fields(asked: Asked) -> None: ...


@pytest.fixture(autouse=True)
def _heard() -> Iterator[None]:
    offers.listen(lambda _: None)
    yield
    offers.listen(None)


def asked(fn: Any, *args: Any, **kwargs: Any) -> tuple[dict[str, Any], object]:
    """Give the arguments of a call as they are asked, and what its span says was left out."""
    call = Function(CallKind.TOOL, fn, "look_up", {}).call(args, kwargs)
    assert isinstance(call.request, FunctionCall)
    assert isinstance(call.request.arguments, dict)
    return call.request.arguments, call.attributes.get(LEFT_OUT)


@pytest.mark.parametrize("body", [OPENAI, ANTHROPIC, GEMINI])
def test_what_no_schema_offers_and_no_json_can_say_is_left_out(body: Body) -> None:
    assert "desk" in asked(look_up, "u-1", Desk("a"))[0], "nobody offered anything by then"
    for _ in range(2):  # as it is heard for the first time, and as it is known
        offers.hear(orjson.dumps({"model": "m", "messages": [], **body}))
        told = asked(look_up, "u-1", Desk("a"), client=Desk("b"), note="x", on=date(2026, 1, 1), of=Path("/data"))
        assert set(told[0]) == {"user", "limit", "rest"}
        assert set(told[0]["rest"]) == {"note", "on", "of"}
        assert told[1] == '["client","desk"]'


def test_a_value_whose_fields_were_offered_is_asked() -> None:
    offers.hear(orjson.dumps(OPENAI))
    assert asked(of_fields, Asked("u-1"))[0] != asked(of_fields, Asked("u-2"))[0]
    offers.hear(orjson.dumps(NOTHING))
    assert asked(of_fields, Asked("u-1")) == ({}, '["asked"]')


def test_what_is_no_tool_is_asked_whole() -> None:
    offers.hear(orjson.dumps(OPENAI))
    call = Function(CallKind.RETRIEVER, look_up, "look_up", {}).call(("u-1", Desk("a")), {})
    assert isinstance(call.request, FunctionCall)
    assert "desk" in dict(call.request.arguments)  # type: ignore[arg-type]
    assert door.doorman() is None


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ({"a": [1, None, {"b": (1.5, "x")}]}, True),
        ([date(2026, 1, 1), Decimal("1.0"), Path("/"), b"x", {1, 2}], True),
        ({"a": [Desk("a")]}, False),
        (threading.Lock(), False),
        (look_up, False),
        (iter(()), False),
    ],
)
def test_plain_values_are_told_from_others(value: object, *, plain: bool) -> None:
    assert injected_parameters.is_plain(value) is plain


PROGRAM = "from {module} import {name}\ndef tool(user: str, context: {spelled}) -> None: ...\n"


@pytest.mark.parametrize(
    ("module", "name", "spelled"),
    [
        ("langchain.tools", "ToolRuntime", "ToolRuntime[dict] | None"),
        ("langchain.tools", "InjectedState", "__import__('typing').Annotated[dict, InjectedState]"),
        ("langchain_core.runnables", "RunnableConfig", "RunnableConfig"),
        ("pydantic_ai", "RunContext", "RunContext[str]"),
        ("agents", "RunContextWrapper", "RunContextWrapper[str]"),
        ("fastmcp", "Context", "Context"),
        ("mcp.server.mcpserver", "Context", "Context"),
    ],
)
@pytest.mark.parametrize("future", ["", "from __future__ import annotations\n"])
def test_a_framework_names_its_own(module: str, name: str, spelled: str, future: str) -> None:
    pytest.importorskip(module)
    space: dict[str, Any] = {"__name__": "agent"}
    exec(future + PROGRAM.format(module=module, name=name, spelled=spelled), space)
    tool = space["tool"]
    assert injected_parameters.marked(inspect.signature(tool), tool) == {"context"}
    assert not injected_parameters.marked(inspect.signature(look_up), look_up)
