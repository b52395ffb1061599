"""The messages, instructions and tool definitions of OTel GenAI: `gen_ai.input.messages` and its like, both ways.

From the JSON schemas of the semantic conventions for GenAI (chat history, output messages, tool definitions), and read
as emitters deviate from them: JSON text or structure, `result` for `response`, arguments as text or as an object, calls
in a `tool_calls` beside empty parts, plain `content` instead of parts. Written is what the schemas have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from reenact.foreign.blocks import GENERIC, GENERIC_TYPE
from reenact.foreign.blocks import parts as _blocks
from reenact.foreign.spelled_messages import turns
from reenact.values import tool_schema
from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_list, as_object, as_text, structured, without
from reenact.values.message import Answered, Asked, Media, Message, Opaque, Part, Reasoning, Text, ToolCall

_SYSTEM: Final = "system"


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
        return turns(read, _SYSTEM)
    system_parts = _blocks(read)
    return (Message(role=_SYSTEM, parts=system_parts),) if system_parts else ()


def tools(value: Json) -> tuple[Json, ...]:
    """Read `gen_ai.tool.definitions`; every function comes out as OpenAI's chat completions nest it."""
    return tool_schema.tools(structured(value))


def parts_request(inputs: Json, system: Json = None, definitions: Json = None) -> Asked | None:
    """Read what a call asked, or None where nothing was kept."""
    first, rest = instructions(system), messages(inputs)
    if first and rest and first[0].parts == rest[0].parts and rest[0].role == _SYSTEM:
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


def spelled_messages(asked: Iterable[Message]) -> list[Json]:
    """Spell the chat history of a request."""
    return [_spelled_message(message) for message in asked]


def spelled_instructions(message: Message) -> list[Json]:
    """Spell what a request holds as the system's words apart from its messages."""
    return [_spelled_part(part) for part in message.parts]


def spelled_answers(answered: Answered) -> list[Json]:
    """Spell a reply, one message for each choice; items of one choice that came one by one are one message."""
    choices = [*answered.messages]
    if len(choices) > 1 and len(answered.finish_reasons) != len(choices):
        choices = [Message(role="assistant", parts=tuple(part for each in choices for part in each.parts))]
    spelled: list[Json] = []
    for place, choice in enumerate(choices):
        fields = _spelled_message(choice)
        if place < len(answered.finish_reasons):
            fields["finish_reason"] = answered.finish_reasons[place]
        spelled.append(fields)
    return spelled


def spelled_tools(definitions: Json) -> list[Json]:
    """Spell definitions of tools in any provider's words flat: `type`, `name`, `description`, `parameters`."""
    spelled: list[Json] = []
    for definition in tool_schema.tools(as_list(definitions)):
        fields = as_object(definition)
        function = as_object(fields.get("function"))
        flat: dict[str, Json] = {**without(fields, ("function",)), **function}
        kind = as_text(flat.get("type"))
        name = as_text(flat.get("name")) or kind
        if not name:  # no definition of a tool, whatever else it is
            continue
        spelled.append({**flat, "type": kind or "function", "name": name})
    return spelled


def _spelled_message(message: Message) -> dict[str, Json]:
    name: dict[str, Json] = {"name": message.name} if message.name is not None else {}
    if message.role != "tool":
        return {"role": message.role, "parts": [_spelled_part(part) for part in message.parts], **name}
    answer: dict[str, Json] = {"type": "tool_call_response"}
    if message.tool_call_id is not None:
        answer["id"] = message.tool_call_id
    match message.parts:
        case (Text(text=text),):
            answer["response"] = text
        case ():
            answer["response"] = None
        case several:
            answer["response"] = [_spelled_part(part) for part in several]
    return {"role": "tool", "parts": [answer], **name}


def _spelled_part(part: Part) -> Json:
    match part:
        case Text(text=text):
            return {"type": "text", "content": text}
        case ToolCall():
            identity: dict[str, Json] = {"id": part.id} if part.id else {}
            return {"type": "tool_call", **identity, "name": part.name, "arguments": _arguments(part.arguments)}
        case Reasoning():
            opaque: dict[str, Json] = {"id": part.id, part.seal or "encrypted_content": part.encrypted}
            return {
                "type": "reasoning",
                "content": part.text,
                **{name: value for name, value in opaque.items() if value is not None},
            }
        case Media():
            return _spelled_media(part)
        case Opaque(json=json):
            return _generic(json)


def _arguments(text: str) -> Json:
    """Give arguments as the object that their text is; any other text stays one."""
    read = parsed_or_none(text)
    return read if isinstance(read, dict) else text


def _spelled_media(media: Media) -> Json:
    about: dict[str, Json] = {"modality": media.modality}
    if media.mime_type:
        about["mime_type"] = media.mime_type
    if media.name:
        about["filename"] = media.name
    head, comma, data = media.url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        about.setdefault("mime_type", head.removeprefix("data:").removesuffix(";base64"))
        return {"type": "blob", **about, "content": data}
    return {"type": "uri", **about, "uri": media.url}


def _generic(json: Json) -> Json:
    """Spell what is of no kind that the schemas know; `foreign.blocks` reads it back as it was."""
    kind = json.get("type") if isinstance(json, dict) else None
    if not isinstance(json, dict) or not isinstance(kind, str) or GENERIC_TYPE in json:
        return {"type": GENERIC, "value": json}
    return {"type": GENERIC, GENERIC_TYPE: kind, **without(json, ("type",))}
