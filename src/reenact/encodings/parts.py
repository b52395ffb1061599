"""The messages, instructions and tool definitions of OTel GenAI: `gen_ai.input.messages` and its like.

From the JSON schemas of the semantic conventions for GenAI (chat history, output messages, tool definitions), and as
emitters deviate from them: JSON text or structure, `result` for `response`, arguments as text or as an object, calls in
a `tool_calls` beside empty parts, plain `content` instead of parts.
"""

from __future__ import annotations

from collections.abc import Mapping

from reenact.foreign.blocks import parts as _blocks
from reenact.foreign.spelled_messages import turns
from reenact.values import tool_schema
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, as_text, structured
from reenact.values.message import Answered, Asked, Message


def messages(value: Json, role: str = "user") -> tuple[Message, ...]:
    """Read messages with parts, given as JSON text or structure. Replies of tools are messages of their own."""
    read = structured(value)
    return () if _cut(read) else turns(read, role)


def _cut(read: Json) -> bool:
    """Tell JSON text that ends in its middle: read as somebody's words it would be a question that nobody asked."""
    return isinstance(read, str) and read.lstrip()[:2] in ("[{", '{"') and read.rstrip()[-1:] not in ("]", "}")


def instructions(value: Json) -> tuple[Message, ...]:
    """Read `gen_ai.system_instructions`: a list of parts, or a text, as one message of the system's."""
    read = structured(value)
    if any("role" in as_object(item) for item in as_list(read)):
        return turns(read, "system")
    system_parts = _blocks(read)
    return (Message(role="system", parts=system_parts),) if system_parts else ()


def tools(value: Json) -> tuple[Json, ...]:
    """Read `gen_ai.tool.definitions`; every function comes out as OpenAI's chat completions nest it."""
    return tool_schema.tools(structured(value))


def parts_request(inputs: Json, system: Json = None, definitions: Json = None) -> Asked | None:
    """Read what a call asked, or None where nothing was kept."""
    first, rest = instructions(system), messages(inputs)
    if first and rest and first[0].parts == rest[0].parts and rest[0].role == "system":
        rest = rest[1:]  # told twice
    request_messages = (*first, *rest)
    defined = tools(definitions)
    return Asked(messages=request_messages, tools=defined) if request_messages or defined else None


def answered(outputs: Json) -> Answered | None:
    """Read what a call answered, or None where nothing was kept."""
    reply = structured(outputs)
    listed = as_list(reply) or ([reply] if reply and not _cut(reply) else [])
    if not listed:
        return None
    reasons = tuple(reason for item in listed if (reason := as_text(as_object(item).get("finish_reason"))))
    return Answered(messages=turns(listed, "assistant"), finish_reasons=reasons)


def parts_exchange(said: Mapping[str, Json]) -> tuple[Asked | None, Answered | None]:
    """Read both out of a span's attributes under the conventions' names."""
    question = parts_request(
        said.get("gen_ai.input.messages"), said.get("gen_ai.system_instructions"), said.get("gen_ai.tool.definitions")
    )
    return question, answered(said.get("gen_ai.output.messages"))
