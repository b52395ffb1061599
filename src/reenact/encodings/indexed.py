"""Messages flattened into numbered attributes: `gen_ai.prompt.0.role`, `gen_ai.completion.0.tool_calls.1.name`.

As OpenLLMetry wrote them before it took up parts, and AgentOps, LiteLLM and others still do. Numbers are names here:
a gap, however wide, costs nothing, and what is no number is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reenact.foreign.blocks import first_text
from reenact.foreign.spelled_messages import turns
from reenact.values import tool_schema
from reenact.values.json import Json
from reenact.values.lenient import as_object, as_text, structured
from reenact.values.message import Answered, Asked, Message, ToolCall

_ROLES: Final = ("user", "assistant", "system", "tool")
_LONGEST: Final = 18
"""Digits of an index; a longer run of digits is a name like any other."""


def numbered(attributes: Mapping[str, Json], prefix: str) -> list[dict[str, Json]]:
    """Gather the attributes `prefix.N.rest` by their number, lowest first, each under its `rest`."""
    groups: dict[int, dict[str, Json]] = {}
    start = f"{prefix}."
    for name, value in attributes.items():
        if not name.startswith(start):
            continue
        number, _, rest = name[len(start) :].partition(".")
        if rest and number.isascii() and number.isdigit() and len(number) <= _LONGEST:
            groups.setdefault(int(number), {})[rest] = value
    return [groups[number] for number in sorted(groups)]


def speaks(attributes: Mapping[str, Json], prefix: str = "gen_ai.prompt") -> bool:
    """Tell whether any attribute is numbered below `prefix`."""
    start = f"{prefix}."
    return any(name.startswith(start) and name[len(start) :].partition(".")[0].isdigit() for name in attributes)


def messages(attributes: Mapping[str, Json], prefix: str, role: str = "user") -> tuple[Message, ...]:
    """Read the messages below `prefix`."""
    return tuple(message for item in numbered(attributes, prefix) for message in turns(_message(item), role))


def indexed_exchange(attributes: Mapping[str, Json]) -> tuple[Asked | None, Answered | None]:
    """Read both under OpenLLMetry's names."""
    return indexed_request(attributes), answered(attributes)


def indexed_request(
    attributes: Mapping[str, Json],
    prompt: str = "gen_ai.prompt",
    functions: str = "llm.request.functions",
) -> Asked | None:
    """Read the prompt and the functions offered, or None where there is neither."""
    request_messages = messages(attributes, prompt)
    defined = tuple(tool for item in numbered(attributes, functions) for tool in tool_schema.tools([_definition(item)]))
    return Asked(messages=request_messages, tools=defined) if request_messages or defined else None


def answered(attributes: Mapping[str, Json], completion: str = "gen_ai.completion") -> Answered | None:
    """Read the completions, or None where there are none.

    Where each number holds one function call and nothing else, the numbers count calls of one message and not messages
    (as LiteLLM has it).
    """
    listed = numbered(attributes, completion)
    if not listed:
        return None
    reasons = tuple(reason for item in listed if (reason := as_text(item.get("finish_reason"))))
    if all(item and all(name.startswith("function_call.") for name in item) for item in listed):
        calls = tuple(call for item in listed for call in _calls(item, "function_call"))
        reply_messages = (Message(role="assistant", parts=calls),)
    else:
        reply_messages = messages(attributes, completion, "assistant")
    return Answered(messages=reply_messages, finish_reasons=reasons)


def _definition(tool: dict[str, Json]) -> Json:
    return {**tool, **{name: structured(tool[name]) for name in ("parameters", "input_schema") if name in tool}}


def _message(attributes: dict[str, Json]) -> Json:
    """Bring one number's attributes to a message of OpenAI's chat completions."""
    message: dict[str, Json] = {
        name: attributes[name] for name in ("role", "name", "tool_call_id", "refusal") if name in attributes
    }
    plain = attributes.get("content")
    if "role" not in message and plain is None:  # the role as the name of the words
        message["role"] = next((role for role in _ROLES if role in attributes), "user")
        plain = attributes.get(as_text(message["role"]))
    content = structured(plain)
    message["content"] = content if _is_content(content) else (plain if isinstance(plain, str) else content)
    for name in ("reasoning", "reasoning_content"):
        if isinstance(thought := attributes.get(name, attributes.get(f"{name}.content")), str):
            message[name] = thought
    calls = [*_calls(attributes, "tool_calls"), *_calls(attributes, "function_call")]
    listed: list[Json] = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in calls
    ]
    return {**message, "tool_calls": listed} if listed else message


def _is_content(content: Json) -> bool:
    """Tell blocks of a message, which stand as JSON text, from a text that happens to be JSON."""
    blocks = content if isinstance(content, list) else []
    return bool(blocks) and all("type" in as_object(block) or "text" in as_object(block) for block in blocks)


def _calls(attributes: dict[str, Json], prefix: str) -> list[ToolCall]:
    """Read `tool_calls.N.…`, or the one call of `function_call.…` and `tool_calls.…` without a number."""
    listed = numbered(attributes, prefix)
    if not listed:
        start = f"{prefix}."
        only = {name[len(start) :]: value for name, value in attributes.items() if name.startswith(start)}
        listed = [only] if only else []
    return [
        ToolCall(
            id=first_text(each, ("id", "tool_call_id")),
            name=first_text(each, ("name", "function.name", "function_name")),
            arguments=first_text(each, ("arguments", "function.arguments", "args", "input")),
        )
        for each in listed
    ]
