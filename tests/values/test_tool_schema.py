from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from reenact.values.tool_schema import tools
from strategies_call import json_values

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
NESTED = {"type": "function", "function": {"name": "find", "description": "Finds.", "parameters": SCHEMA}}


@pytest.mark.parametrize(
    "definition",
    [
        NESTED,
        {"type": "function", "name": "find", "description": "Finds.", "parameters": SCHEMA},
        {"name": "find", "description": "Finds.", "input_schema": SCHEMA},
        {"type": "function", "name": "find", "description": "Finds.", "inputSchema": SCHEMA},
        {"toolSpec": {"name": "find", "description": "Finds.", "inputSchema": {"json": SCHEMA}}},
        {"functionDeclarations": [{"name": "find", "description": "Finds.", "parametersJsonSchema": SCHEMA}]},
        {"name": "find", "description": "Finds.", "parameters_json_schema": SCHEMA},
        json.dumps({"name": "find", "description": "Finds.", "schema": SCHEMA}),
    ],
)
def test_a_function_has_one_spelling(definition: Any) -> None:
    assert tools([definition]) == (NESTED,)


def test_definitions_by_name_are_a_list() -> None:
    assert tools({"find": {"description": "Finds.", "inputSchema": SCHEMA}}) == (NESTED,)


def test_what_is_no_function_stays_as_it_came() -> None:
    kept = [{"type": "web_search_20250305", "name": "web_search"}, {"googleSearch": {}}, "find"]
    assert tools(kept) == (*kept,)


def test_what_stands_beside_a_function_is_kept() -> None:
    [tool] = tools([{"name": "find", "input_schema": SCHEMA, "cache_control": {"type": "ephemeral"}}])
    assert tool == {
        "type": "function",
        "function": {"name": "find", "parameters": SCHEMA},
        "cache_control": {"type": "ephemeral"},
    }


@given(json_values)
def test_no_json_is_too_strange(value: Any) -> None:
    assert isinstance(tools(value), tuple)
    assert isinstance(tools([value, {"name": "n", "parameters": value}]), tuple)
