"""Code of the agent's in what a transport of MCP is handed, and what a verdict says of it."""

from __future__ import annotations

import base64
from types import SimpleNamespace
from typing import Any

import pytest

from made import Made, user
from reenact.boundary.mcp_arguments import own_arguments
from reenact.graph.verdict import judge
from reenact.values.call import MCP_OWN_CODE
from reenact.values.run import Grade


class Storage:
    """As an agent keeps tokens."""


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"auth": ("user", "word"), "headers": {"a": "b"}, "timeout": 5}, []),
        ({"httpx_client_factory": base64.b64encode}, []),
        ({"http_client": SimpleNamespace(event_hooks={"request": [], "response": []})}, []),
        ({"auth": SimpleNamespace(context=SimpleNamespace(storage=Storage()))}, ["auth"]),
        ({"http_client": SimpleNamespace(event_hooks={"request": [lambda _: None]})}, ["http_client"]),
        ({"httpx_client_factory": lambda: None, "auth": Storage()}, ["auth", "httpx_client_factory"]),
    ],
)
def test_arguments_with_code_of_the_agent_s_are_named(arguments: dict[str, Any], names: list[str]) -> None:
    assert own_arguments(arguments) == names


def test_a_connection_with_code_of_the_agent_s_in_it_is_partial() -> None:
    made = Made()
    made.llm([user("go")], "done")
    made.tool("session", more={MCP_OWN_CODE: "auth"})
    verdict = judge(made.run())
    assert verdict.grade is Grade.PARTIAL
    assert [("(auth)" in each.lost) for each in verdict.reasons if each.field == "transport"] == [True]
