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
    found: dict[int, dict[str, Json]] = {}
    start = f"{prefix}."
    for name, value in attributes.items():
        if not name.startswith(start):
            continue
        number, _, rest = name[len(start) :].partition(".")
        if rest and number.isascii() and number.isdigit() and len(number) <= _LONGEST:
            found.setdefault(int(number), {})[rest] = value
    return [found[number] for number in sorted(found)]


def speaks(attributes: Mapping[str, Json], prefix: str = "gen_ai.prompt") -> bool:
    """Tell whether any attribute is numbered below `prefix`."""
    start = f"{prefix}."
    return any(name.startswith(start) and name[len(start) :].partition(".")[0].isdigit() for name in attributes)


def messages(attributes: Mapping[str, Json], prefix: str, role: str = "user") -> tuple[Message, ...]:
    """Read the messages below `prefix`."""
    return tuple(message for held in numbered(attributes, prefix) for message in turns(_message(held), role))


def told(attributes: Mapping[str, Json]) -> tuple[Asked | None, Answered | None]:
    """Read both under OpenLLMetry's names."""
    return asked(attributes), answered(attributes)


def asked(
    attributes: Mapping[str, Json],
    prompt: str = "gen_ai.prompt",
    functions: str = "llm.request.functions",
) -> Asked | None:
    """Read the prompt and the functions offered, or None where there is neither."""
    said = messages(attributes, prompt)
    defined = tuple(tool for held in numbered(attributes, functions) for tool in tool_schema.tools([_definition(held)]))
    return Asked(messages=said, tools=defined) if said or defined else None


def answered(attributes: Mapping[str, Json], completion: str = "gen_ai.completion") -> Answered | None:
    """Read the completions, or None where there are none.

    Where each number holds one function call and nothing else, the numbers count calls of one message and not messages
    (as LiteLLM has it).
    """
    listed = numbered(attributes, completion)
    if not listed:
        return None
    reasons = tuple(reason for held in listed if (reason := as_text(held.get("finish_reason"))))
    if all(held and all(name.startswith("function_call.") for name in held) for held in listed):
        calls = tuple(call for held in listed for call in _calls(held, "function_call"))
        said = (Message(role="assistant", parts=calls),)
    else:
        said = messages(attributes, completion, "assistant")
    return Answered(messages=said, finish_reasons=reasons)


def _definition(held: dict[str, Json]) -> Json:
    return {**held, **{name: structured(held[name]) for name in ("parameters", "input_schema") if name in held}}


def _message(held: dict[str, Json]) -> Json:
    """Bring one number's attributes to a message of OpenAI's chat completions."""
    message: dict[str, Json] = {
        name: held[name] for name in ("role", "name", "tool_call_id", "refusal") if name in held
    }
    plain = held.get("content")
    if "role" not in message and plain is None:  # the role as the name of the words
        message["role"] = next((role for role in _ROLES if role in held), "user")
        plain = held.get(as_text(message["role"]))
    content = structured(plain)
    message["content"] = content if _is_content(content) else (plain if isinstance(plain, str) else content)
    for name in ("reasoning", "reasoning_content"):
        if isinstance(thought := held.get(name, held.get(f"{name}.content")), str):
            message[name] = thought
    calls = [*_calls(held, "tool_calls"), *_calls(held, "function_call")]
    listed: list[Json] = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in calls
    ]
    return {**message, "tool_calls": listed} if listed else message


def _is_content(content: Json) -> bool:
    """Tell blocks of a message, which stand as JSON text, from a text that happens to be JSON."""
    blocks = content if isinstance(content, list) else []
    return bool(blocks) and all("type" in as_object(block) or "text" in as_object(block) for block in blocks)


def _calls(held: dict[str, Json], prefix: str) -> list[ToolCall]:
    """Read `tool_calls.N.…`, or the one call of `function_call.…` and `tool_calls.…` without a number."""
    listed = numbered(held, prefix)
    if not listed:
        start = f"{prefix}."
        only = {name[len(start) :]: value for name, value in held.items() if name.startswith(start)}
        listed = [only] if only else []
    return [
        ToolCall(
            id=first_text(each, ("id", "tool_call_id")),
            name=first_text(each, ("name", "function.name", "function_name")),
            arguments=first_text(each, ("arguments", "function.arguments", "args", "input")),
        )
        for each in listed
    ]
