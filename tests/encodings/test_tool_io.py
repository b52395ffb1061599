from __future__ import annotations

import pytest

from reenact.encodings import tool_io
from reenact.values.json import Json


@pytest.mark.parametrize(
    ("given", "names", "read"),
    [
        ({"port": "Husum"}, (), {"port": "Husum"}),
        ({"args": [], "kwargs": {"port": "Husum"}}, (), {"port": "Husum"}),
        ({"args": ["Husum"], "kwargs": {"day": 1}}, ("port", "day"), {"port": "Husum", "day": 1}),
        ({"args": [{"port": "Husum"}], "kwargs": {}}, (), {"port": "Husum"}),
        ({"args": ["Husum"], "kwargs": {}}, (), {"args": ["Husum"], "kwargs": {}}),
        ({"kwargs": {"a": 1}, "of": "the tool's own"}, (), {"kwargs": {"a": 1}, "of": "the tool's own"}),
        ("Husum", ("port",), "Husum"),
        (None, (), None),
    ],
)
def test_arguments_come_out_of_what_wraps_them(given: Json, names: tuple[str, ...], read: Json) -> None:
    assert tool_io.arguments(given, names) == read


@pytest.mark.parametrize(
    ("told", "read"),
    [
        ("14:07", ("14:07", "")),
        ({"content": "14:07", "tool_call_id": "c", "status": "success"}, ("14:07", "c")),
        ({"lc": 1, "id": ["ToolMessage"], "kwargs": {"content": ["x"], "tool_call_id": "c"}}, (["x"], "c")),
        ("content='it\\'s 14:07' name='tide' tool_call_id='c'", ("it's 14:07", "c")),
        ("content='no message of a tool'", ("content='no message of a tool'", "")),
        ({"content": "a page"}, ({"content": "a page"}, "")),
        (None, (None, "")),
    ],
)
def test_results_come_out_of_frameworks_messages(told: Json, read: tuple[Json, str]) -> None:
    assert tool_io.result(told) == read


def test_a_schema_is_told_from_arguments() -> None:
    assert tool_io.is_schema({"port": {"type": "string"}})
    assert tool_io.is_schema({"type": "object", "properties": {}})
    assert not tool_io.is_schema({"port": "Husum"})
    assert not tool_io.is_schema({})
    assert tool_io.parameter_names({"type": "object", "properties": {"a": {}, "b": {}}}) == ("a", "b")
    assert tool_io.parameter_names({"b": {"type": "string"}, "a": {"type": "string"}}) == ("b", "a")
