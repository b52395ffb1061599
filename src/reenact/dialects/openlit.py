"""OpenLIT, old and new.

Up to 1.34 the prompt is one text of lines `role: text`, calls of tools are joined by commas, and decorated functions
keep Python's `repr` of their arguments; later ones speak OTel GenAI. Both write defaults for parameters never given.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Final

from reenact.contracts.dialect import Dialect, SpanMarks
from reenact.encodings import events, native, parts, python_repr, semconv
from reenact.encodings.semconv import Reading
from reenact.foreign import genai
from reenact.foreign.foreign_call import Loss, said_of
from reenact.values.call import Call, CallKind, Outcome
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.message import Answered, Asked, Message, Text, ToolCall
from reenact.values.span import SpanRecord

NAME: Final = "openlit"
_LINE: Final = re.compile(r"^(system|developer|user|assistant|tool|function): ", re.MULTILINE)
_DEFAULTS: Final[dict[str, Json]] = {
    "gen_ai.request.temperature": 1.0,
    "gen_ai.request.top_p": 1.0,
    "gen_ai.request.frequency_penalty": 0.0,
    "gen_ai.request.presence_penalty": 0.0,
    "gen_ai.request.seed": 0,
}
"""What OpenLIT writes where the request had none of these."""
_LINES: Final = Loss(
    field="messages",
    lost="this release joins all messages into one text: tool definitions and the parts of messages are gone",
    fix="upgrade openlit to 1.40 or later",
)
_PARAMETERS: Final = Loss(
    field="parameters",
    lost="OpenLIT writes its own default where a sampling parameter was not given; defaults are taken for not given",
    fix="none: pass every parameter as something else than the default where it matters",
)


def _recognises(span: SpanRecord) -> float:
    attributes = span.attributes
    ours = attributes.get("telemetry.sdk.name") == "openlit" or span.scope.name.startswith("openlit")
    ours = ours or ("gen_ai.application_name" in attributes and "gen_ai.environment" in attributes)
    has_content = any(name.startswith(("gen_ai.", "function.", "db.")) for name in attributes)
    return 0.86 if ours and has_content else 0.0


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    attributes = said_of(span)
    kind = genai.kind_of(attributes)
    if "function.args" in attributes or "function.kwargs" in attributes:
        return semconv.call(span, attributes, NAME, _decorated(span, attributes))
    if kind is CallKind.UNKNOWN and ("gen_ai.prompt" in attributes or events.speaks(span.events)):
        kind = CallKind.LLM
    if kind not in (CallKind.LLM, CallKind.EMBEDDING):
        return semconv.call(span, attributes, NAME, Reading(kind=kind))
    call, outcome = semconv.call(span, _without_defaults(attributes), NAME, _model(span, attributes, kind))
    return replace(call, attributes={**attributes, **call.attributes}), outcome


def _without_defaults(attributes: dict[str, Json]) -> dict[str, Json]:
    """Give the attributes less those parameters that are OpenLIT's own defaults."""
    return {name: value for name, value in attributes.items() if name not in _DEFAULTS or value != _DEFAULTS[name]}


def _model(span: SpanRecord, attributes: dict[str, Json], kind: CallKind) -> Reading:
    asked, answered = parts.parts_exchange(attributes)
    event_reading = events.exchange_of_events(
        [event for event in span.events if not event.name.startswith("gen_ai.content.")]
    )
    asked, answered = semconv.either(asked, event_reading[0]), semconv.or_else(answered, event_reading[1])
    losses = [_PARAMETERS]
    if asked is None or not asked.messages:
        lines = as_text(attributes.get("gen_ai.prompt")) or _event_text(span, "gen_ai.content.prompt", "gen_ai.prompt")
        asked = semconv.either(asked, Asked(messages=_lines(lines)) if lines else None)
        losses = [_LINES, *losses] if lines else losses
    if answered is None or not any(message.parts for message in answered.messages):
        answered = semconv.or_else(answered, _reply(span, attributes))
    return Reading(kind=kind, asked=asked, answered=answered, losses=tuple(losses))


def _event_text(span: SpanRecord, name: str, attribute: str) -> str:
    text = next((event.attributes.get(attribute) for event in span.events if event.name == name), None)
    return text if isinstance(text, str) else ""


def _lines(text: str) -> tuple[Message, ...]:
    """Read the lines. One whose text is the `repr` of a list of messages holds them all, truer than the lines do."""
    whole = native.messages(text) if text.lstrip()[:1] in ("[", "{") else ()
    if whole:
        return whole
    messages: list[Message] = []
    starts = [*_LINE.finditer(text)]
    for place, start in enumerate(starts):
        end = starts[place + 1].start() if place + 1 < len(starts) else len(text)
        content = text[start.end() : end].removesuffix("\n") if place + 1 < len(starts) else text[start.end() :]
        if (listed := _listed(content)) is not None:
            return listed
        messages.append(Message(role=start[1], parts=(Text(content),)))
    return tuple(messages) or (Message(role="user", parts=(Text(text),)),)


def _listed(text: str) -> tuple[Message, ...] | None:
    literal = python_repr.read(text) if text.startswith("[{") else None
    items = as_list(literal)
    return native.messages(items) if items and all("role" in as_object(item) for item in items) else None


def _reply(span: SpanRecord, attributes: dict[str, Json]) -> Answered | None:
    text = as_text(attributes.get("gen_ai.completion")) or _event_text(
        span, "gen_ai.content.completion", "gen_ai.completion"
    )
    pieces = (*((Text(text),) if text else ()), *_calls(attributes))
    return Answered(messages=(Message(role="assistant", parts=pieces),)) if pieces else None


def _calls(attributes: dict[str, Json]) -> tuple[ToolCall, ...]:
    """Take apart names, ids and arguments that were joined by commas."""
    names = [name for name in as_text(attributes.get("gen_ai.tool.name")).split(", ") if name]
    ids = as_text(attributes.get("gen_ai.tool.call.id")).split(", ")
    raw_arguments = as_text(attributes.get("gen_ai.tool.args")) or as_text(attributes.get("gen_ai.tool.call.arguments"))
    arguments = _joined(raw_arguments)
    if len(names) == 1 and len(arguments) != 1:
        arguments = [raw_arguments]
    return tuple(
        ToolCall(
            id=ids[place] if place < len(ids) else "",
            name=name,
            arguments=arguments[place] if place < len(arguments) else "",
        )
        for place, name in enumerate(names)
    )


def _joined(text: str) -> list[str]:
    """Split JSON objects that stand beside each other with commas between."""
    decoder, at, objects = json.JSONDecoder(), 0, list[str]()
    while at < len(text):
        try:
            _, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return [*objects, text[at:]]
        objects.append(text[at:end])
        at = end + len(text[end:]) - len(text[end:].lstrip(", "))
    return objects


def _decorated(span: SpanRecord, attributes: dict[str, Json]) -> Reading:
    """Read a decorated function: nothing says whether it is a tool, so it is structure that keeps what it was given."""
    positionals = python_repr.read(as_text(attributes.get("function.args")))
    keywords = python_repr.read(as_text(attributes.get("function.kwargs")))
    arguments: Json = as_object(keywords) if not positionals else {"args": positionals, "kwargs": keywords}
    result = attributes.get("gen_ai.completion", attributes.get("gen_ai.output.messages"))
    kind = genai.kind_of(attributes)
    return Reading(
        kind=CallKind.CHAIN if kind is CallKind.UNKNOWN else kind,
        name=span.name,
        arguments=arguments,
        result=result,
        has_result=result is not None,
    )


DIALECT = Dialect(
    name=NAME,
    recognises=_recognises,
    decode=_decode,
    marks=SpanMarks(
        attributes=("gen_ai.application_name",), scopes=("openlit",), values=(("telemetry.sdk.name", "openlit"),)
    ),
    most=0.86,
)
