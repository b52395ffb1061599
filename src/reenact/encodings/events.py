"""Messages told as events of a span: every generation that OTel GenAI went through.

`gen_ai.content.prompt` and `.completion`; one event a message (`gen_ai.user.message`, `gen_ai.choice`), as span events,
as log records (whose body is then the attribute `body`, JSON text), or as a JSON list in one attribute; and
`gen_ai.client.inference.operation.details`, in one event or in several.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from reenact.foreign.blocks import is_block, parts
from reenact.foreign.foreign_call import carried
from reenact.foreign.spelled_messages import turns
from reenact.values import tool_schema
from reenact.values.json import Json, compact
from reenact.values.lenient import (
    as_list,
    as_object,
    as_text,
    first_count,
    structured,
    text_or_json,
    text_or_none,
    without,
)
from reenact.values.message import Answered, Asked, Message
from reenact.values.span import SpanEvent

DETAILS: Final = ("gen_ai.client.inference.operation.details", "gen_ai.client.operation.details")
_INPUT, _OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
_SYSTEM, _TOOLS = "gen_ai.system_instructions", "gen_ai.tool.definitions"
_CONTENT: Final = frozenset({_INPUT, _OUTPUT, _SYSTEM, _TOOLS})
_BODY: Final = "gen_ai.event.content"
"""Where Azure's and .NET's span events keep the body, as JSON text."""
_CARRIED: Final = frozenset({_BODY, "body", "event.name", "reenact.log"})
_CHOICE: Final = "gen_ai.choice"


def name_of(event: SpanEvent) -> str:
    """Give an event's name; some log pipelines keep it in the attribute `event.name` alone."""
    event_name = event.attributes.get("event.name")
    return event.name if event.name.startswith("gen_ai.") or not isinstance(event_name, str) else event_name


def tells(event: SpanEvent) -> bool:
    """Tell whether an event carries messages."""
    name = name_of(event)
    return name == _CHOICE or _role(name) != "" or name in DETAILS or name.startswith("gen_ai.content.")


def speaks(events: Iterable[SpanEvent]) -> bool:
    """Tell whether any event carries messages."""
    return any(tells(event) for event in events)


def several(events: Iterable[SpanEvent]) -> bool:
    """Tell whether these events are of more than one call: something is asked after an answer."""
    answered_once = False
    for event in events:
        name = name_of(event)
        if name == _CHOICE:
            answered_once = True
        elif answered_once and _role(name):
            return True
    return False


def listed(value: Json) -> tuple[SpanEvent, ...]:
    """Read a JSON list of events (pydantic-ai's attributes `events` and `all_messages_events`) as events of a span."""
    events: list[SpanEvent] = []
    for item in as_list(structured(value)):
        fields = as_object(item)
        if isinstance(name := fields.get("event.name"), str):
            events.append(
                SpanEvent(name=name, time_ns=0, attributes={"body": compact(without(fields, ("event.name",)))})
            )
    return tuple(events)


def facts(events: Iterable[SpanEvent]) -> dict[str, Json]:
    """Give what the details of an operation say beside its messages: model, parameters, ids, usage."""
    details: dict[str, Json] = {}
    for event in events:
        if name_of(event) in DETAILS:
            body = _body(event)
            details |= {name: item for name, item in body.items() if name not in _CONTENT and name not in _CARRIED}
    return details


def request_of_events(events: Iterable[SpanEvent]) -> Asked | None:
    """Read what a call asked, or None where the events tell nothing of it."""
    messages: list[Message] = []
    system: list[Message] = []
    defined: tuple[Json, ...] = ()
    for event in _ordered(events):
        name, body = name_of(event), _body(event)
        if name in DETAILS:
            system += _instructions(body.get(_SYSTEM))
            messages += turns(structured(body.get(_INPUT)))
            defined = defined or tool_schema.tools(structured(body.get(_TOOLS)))
        elif name == "gen_ai.content.prompt":
            messages += _prompt(body.get("gen_ai.prompt", body.get("content")))
        elif role := _role(name):
            messages += _message(body, role)
    if not messages and not system and not defined:
        return None
    return Asked(messages=(*system, *messages), tools=defined)


def answered(events: Iterable[SpanEvent]) -> Answered | None:
    """Read what a call answered, or None where the events tell nothing of it."""
    messages: list[Message] = []
    reasons: list[str] = []
    for event in _ordered(events):
        name, body = name_of(event), _body(event)
        if name == _CHOICE:
            reasons += [reason] if (reason := as_text(body.get("finish_reason"))) else []
            messages += _completion(body) if "gen_ai.completion" in body else _choice(body)
        elif name in DETAILS:
            outputs = structured(body.get(_OUTPUT))
            replies = turns(outputs, "assistant")
            messages += replies
            reasons += [
                reason for item in as_list(outputs) if (reason := as_text(as_object(item).get("finish_reason")))
            ]
        elif name == "gen_ai.content.completion":
            messages += _completion(body)
    return Answered(messages=tuple(messages), finish_reasons=tuple(reasons)) if messages or reasons else None


def _completion(body: dict[str, Json]) -> list[Message]:
    return [
        message if message.role != "user" else Message(role="assistant", parts=message.parts)
        for message in _prompt(body.get("gen_ai.completion", body.get("content")), "assistant")
    ]


def exchange_of_events(events: Iterable[SpanEvent]) -> tuple[Asked | None, Answered | None]:
    """Read both."""
    entries = [event for event in events if tells(event)]
    return (request_of_events(entries), answered(entries)) if entries else (None, None)


def tool(events: Iterable[SpanEvent]) -> tuple[Json, Json]:
    """Read a tool's own span: what it was given (`gen_ai.tool.message`) and what it said (`gen_ai.choice`).

    Arguments come as the JSON they are; a result that is blocks of text alone comes as its text. None where unsaid.
    """
    arguments: Json = None
    result: Json = None
    for event in events:
        name, body = name_of(event), _body(event)
        if name == "gen_ai.tool.message":
            arguments = structured(body.get("content")) if "content" in body else arguments
        elif name == _CHOICE and body.get("message") is not None:
            result = worded(structured(body.get("message")))
        elif name in DETAILS:
            arguments = _part(body.get(_INPUT), ("arguments",)) if _INPUT in body else arguments
            result = _part(body.get(_OUTPUT), ("response", "result")) if _OUTPUT in body else result
    return arguments, result


def _part(value: Json, names: tuple[str, ...]) -> Json:
    """Take the one field of the one part that a tool's span tells of itself in messages."""
    for message in map(as_object, as_list(structured(value))):
        for part in map(as_object, as_list(message.get("parts"))):
            for name in names:
                if name in part:
                    return worded(structured(part[name]))
    return None


def worded(value: Json) -> Json:
    """Bring a list of text blocks to its text; anything else stays as it is."""
    blocks = [as_object(block) for block in as_list(value)]
    texts = [block.get("text", block.get("content")) for block in blocks if set(block) <= {"text", "type", "content"}]
    if blocks and len(texts) == len(blocks) and all(isinstance(text, str) for text in texts):
        return "".join(map(as_text, texts))
    return value


def _role(name: str) -> str:
    """Give the role of `gen_ai.<role>.message`."""
    if not name.startswith("gen_ai.") or not name.endswith(".message"):
        return ""
    role = name[len("gen_ai.") : -len(".message")]
    return role if role.isidentifier() else ""


def _body(event: SpanEvent) -> dict[str, Json]:
    """Give what an event says: the log record's body where it was one, over its attributes."""
    fields: dict[str, Json] = {name: carried(value) for name, value in event.attributes.items()}
    body = structured(fields.get("body", fields.get(_BODY)))
    if isinstance(body, dict):
        return {**without(fields, ("body", _BODY)), **body}
    if isinstance(body, str) and body and body != "null":
        return {"content": body, **without(fields, ("body",))}
    return fields


def _ordered(events: Iterable[SpanEvent]) -> list[SpanEvent]:
    """Order by the index that Semantic Kernel and pydantic-ai give, where every message has one."""
    entries = [event for event in events if tells(event)]
    places = [first_count(_body(event), ("CHAT_MESSAGE_INDEX",), ("gen_ai.message.index",)) for event in entries]
    numbered = [place for event, place in zip(entries, places, strict=True) if name_of(event) != _CHOICE]
    if not numbered or any(place is None for place in numbered):
        return entries
    far = max(place or 0 for place in numbered) + 1
    keyed = sorted(
        range(len(entries)),
        key=lambda at: (far if name_of(entries[at]) == _CHOICE else places[at] or 0, at),
    )
    return [entries[at] for at in keyed]


def _message(body: dict[str, Json], role: str) -> list[Message]:
    content = _content(body.get("content"))
    role_name = as_text(body.get("role")) or role
    if role_name == "tool" or role == "tool":
        blocks = turns(content, "tool") if isinstance(content, list) else ()
        if any(message.role == "tool" and message.tool_call_id for message in blocks):
            return list(blocks)
        call_id = text_or_none(body.get("id")) or text_or_none(body.get("tool_call_id"))
        tool_turns = turns({"role": "tool", "content": content, "tool_call_id": call_id, "name": body.get("name")})
        return list(tool_turns)
    message: dict[str, Json] = {**without(body, ("id", "content")), "role": role_name, "content": content}
    return list(turns({**message, **_calls(body)})) or [Message(role=role_name)]


def _calls(body: dict[str, Json]) -> dict[str, Json]:
    calls = structured(body.get("tool_calls"))
    return {"tool_calls": calls} if isinstance(calls, list) else {}


def _choice(body: dict[str, Json]) -> list[Message]:
    content = _content(body.get("message"))
    if isinstance(content, dict) and not is_block(content):
        message: dict[str, Json] = {"role": "assistant", **content, **_calls(content)}
        message["content"] = _content(message.get("content"))
    elif content is None and ("content" in body or "tool_calls" in body):
        message = {"role": "assistant", "content": _content(body.get("content")), **_calls(body)}
    else:
        message = {"role": "assistant", "content": content, **_calls(body)}
    return [message for message in turns(message, "assistant") if message.parts]


def _content(value: Json) -> Json:
    """Open JSON text that holds blocks or a message; a text that happens to be other JSON stays text."""
    if not isinstance(value, str):
        return value
    read = structured(value)
    if isinstance(read, dict):
        return read if "role" in read or "content" in read or "tool_calls" in read or is_block(read) else value
    if isinstance(read, list):
        return read if read and all(is_block(item) or isinstance(item, str) for item in read) else value
    return value


def _instructions(value: Json) -> list[Message]:
    system_parts = parts(structured(value))
    return [Message(role="system", parts=system_parts)] if system_parts else []


def _prompt(value: Json, role: str = "user") -> tuple[Message, ...]:
    """Read the prompt of the oldest events: JSON messages, or lines that each begin with whose they are."""
    read = structured(value)
    if isinstance(read, dict | list):
        return turns(read, role)
    return turns(text_or_json(read) or None, role)
