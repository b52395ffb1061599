"""A difference between two model calls is named by what it is of the agent's own: its prompt, a tool's schema."""

from __future__ import annotations

from typing import Final

import pytest

from made import Made
from reenact.compare.prompts import changed_part
from reenact.values.call import Body, CallKind, HttpReply, HttpRequest, Returned
from reenact.values.json import Json, canonical
from reenact.values.run import Node

SCHEMA: Final[Json] = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
FUNCTION: Final[Json] = {"type": "function", "function": {"name": "look", "parameters": SCHEMA}}
CHAT: Final[Json] = {
    "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello"}],
    "tools": [FUNCTION],
}
RESPONSES: Final[Json] = {
    "instructions": "Be kind.",
    "input": [{"role": "developer", "content": "Be kind."}, {"role": "user", "content": "Hello"}],
    "tools": [{"type": "function", "name": "look", "parameters": SCHEMA}],
}
ANTHROPIC: Final[Json] = {"system": [{"text": "Be kind."}], "tools": [{"name": "look", "input_schema": SCHEMA}]}
GEMINI: Final[Json] = {
    "systemInstruction": {"parts": [{"text": "Be kind."}]},
    "tools": [{"functionDeclarations": [{"name": "find"}, {"name": "look", "parameters": SCHEMA}]}],
}
BEDROCK: Final[Json] = {
    "system": [{"text": "Be kind."}],
    "toolConfig": {"tools": [{"toolSpec": {"name": "look", "inputSchema": {"json": SCHEMA}}}]},
}


def node(body: Json, kind: CallKind = CallKind.LLM) -> Node:
    made = Made()
    request = HttpRequest(shape="openai.chat", method="POST", url="https://api.example/v1", body=Body(canonical(body)))
    made.add(kind, "Chat", request, Returned(payload=HttpReply(status=200, headers=(), body=Body(b"{}"))))
    return next(each for each in made.run().nodes if each.call.name == "Chat")


@pytest.mark.parametrize(
    ("body", "field", "part"),
    [
        (CHAT, "messages[0].content", "system prompt"),
        (CHAT, "messages[1].content", ""),
        (CHAT, "messages[2]", ""),
        (CHAT, "tools[0].function.description", "schema of tool look"),
        (CHAT, "tools[0].function.parameters.properties.name.type", "schema of tool look"),
        (CHAT, "tools[1]", "tool schemas"),
        (CHAT, "tools", "tool schemas"),
        (CHAT, "tool_choice", ""),
        (CHAT, "temperature", ""),
        (RESPONSES, "instructions", "system prompt"),
        (RESPONSES, "input[0].content", "system prompt"),
        (RESPONSES, "input[1].content", ""),
        (RESPONSES, "tools[0].parameters.required[0]", "schema of tool look"),
        (ANTHROPIC, "system[0].text", "system prompt"),
        (ANTHROPIC, "system_fingerprint", ""),
        (ANTHROPIC, "tools[0].input_schema.type", "schema of tool look"),
        (GEMINI, "systemInstruction.parts[0].text", "system prompt"),
        (GEMINI, "tools[0].functionDeclarations[1].parameters.type", "schema of tool look"),
        (BEDROCK, "toolConfig.tools[0].toolSpec.inputSchema.json.type", "schema of tool look"),
    ],
)
def test_a_field_of_a_request_is_of_a_prompt_or_of_a_schema(body: Json, field: str, part: str) -> None:
    assert changed_part(node(body), f"body.{field}") == part


@pytest.mark.parametrize("field", ["url", "method", "body", "body.messages[0", "messages[0].content"])
def test_nothing_else_is_one(field: str) -> None:
    assert changed_part(node(CHAT), field) == ""


def test_a_plain_request_has_no_prompt() -> None:
    assert changed_part(node(CHAT, CallKind.UNKNOWN), "body.messages[0].content") == ""
