"""Tools that no request lists are tools all the same: their framework calls an object that has their name."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from held import Held
from reenact.boundary.patching import Patches
from reenact.integrations import tool_objects


class Tool:
    """As a framework's, which its agent calls with what the model wrote."""

    def __init__(self, name: str, func: Callable[..., Any]) -> None:
        self.name, self.func = name, func

    def __call__(self, **given: Any) -> Any:
        return self.func(**given)

    async def acall(self, **given: Any) -> Any:
        return self.func(**given)


def look_up(city: str) -> str:
    return f"{city} is rainy"


def book(city: str) -> str:
    return f"booked {city}"


def test_a_tool_that_is_called_by_its_frameworks_object_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    framework: Any = ModuleType("dspy.adapters.types.tool")
    framework.Tool = Tool
    monkeypatch.setitem(sys.modules, framework.__name__, framework)
    patches = Patches()
    tool_objects.INTEGRATION.install(patches)
    try:
        calls = Tool("look_up", look_up), Tool("book", book)
        did = Held(tmp_path).record(lambda: (calls[0](city="Oslo"), asyncio.run(calls[1].acall(city="Bergen"))))
    finally:
        patches.undo()
    assert did.value == ("Oslo is rainy", "booked Bergen")
    assert [node.call.name for node in did.calls] == ["look_up", "book"]
