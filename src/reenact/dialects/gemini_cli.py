"""Gemini CLI (scope `gemini-cli`): spans with `telemetry.traces`, whose messages are Gemini's own contents.

From the code of those who read it. Names are those of OTel GenAI, operations and values are its own: `llm_call`,
`tool_call` (with `gen_ai.tool.call_id`), `agent_call`, `user_prompt`, `system_prompt`, `schedule_tool_calls`.
"""

from __future__ import annotations

from typing import Final

from reenact.contracts.dialect import Dialect, SpanMarks
from reenact.encodings import native
from reenact.foreign.foreign_call import CALL_ID, function_call, marked, model_call, said_of
from reenact.values.call import Call, CallKind, Outcome
from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_list, as_object, as_text, structured
from reenact.values.message import Answered, Asked, ToolCall
from reenact.values.span import SpanRecord

_NAME: Final = "gemini-cli"
_OPERATIONS: Final = frozenset(
    {"llm_call", "tool_call", "agent_call", "user_prompt", "system_prompt", "schedule_tool_calls"}
)


def _recognises(span: SpanRecord) -> float:
    operation = span.attributes.get("gen_ai.operation.name")
    is_own = span.scope.name == _NAME or span.attributes.get("gen_ai.agent.name") == _NAME
    if isinstance(operation, str) and operation in _OPERATIONS:
        return 0.95 if is_own else 0.81
    return 0.6 if span.scope.name == _NAME and "gen_ai.operation.name" not in span.attributes else 0.0


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    attributes = marked(said_of(span), _NAME)
    operation = as_text(attributes.get("gen_ai.operation.name"))
    if operation == "llm_call":
        return _model(span, attributes)
    if operation == "tool_call":
        return _tool(span, attributes)
    kind = CallKind.AGENT if operation in ("agent_call", "user_prompt") else CallKind.CHAIN
    arguments, output = _read(attributes.get("gen_ai.input.messages")), _read(attributes.get("gen_ai.output.messages"))
    return function_call(span, kind, arguments, output, attributes=attributes)


def _model(span: SpanRecord, attributes: dict[str, Json]) -> tuple[Call, Outcome]:
    system = native.messages(_read(attributes.get("gen_ai.system_instructions")), "system")
    messages = native.messages(attributes.get("gen_ai.input.messages"))
    asked = Asked(
        model=as_text(attributes.get("gen_ai.request.model")) or None,
        messages=(*system, *messages),
        tools=native.tools(attributes.get("gen_ai.tool.definitions")),
    )
    output = structured(attributes.get("gen_ai.output.messages"))
    read = native.answered(output) if output not in (None, "") else None
    usage = {
        "input_tokens": attributes.get("gen_ai.usage.input_tokens"),
        "output_tokens": attributes.get("gen_ai.usage.output_tokens"),
    }
    reasons = as_list(structured(attributes.get("gen_ai.response.finish_reasons")))
    answered = Answered(
        model=as_text(attributes.get("gen_ai.response.model")) or asked.model,
        id=as_text(attributes.get("gen_ai.response.id")) or None,
        messages=read.messages if read else (),
        finish_reasons=tuple(each for each in map(as_text, reasons) if each) or (read.finish_reasons if read else ()),
        usage=native.usage(usage),
    )
    return model_call(span, asked, answered, attributes=attributes, system="google")


def _tool(span: SpanRecord, attributes: dict[str, Json]) -> tuple[Call, Outcome]:
    if CALL_ID not in attributes and (called := as_text(attributes.get("gen_ai.tool.call_id"))):
        attributes[CALL_ID] = called
    arguments = _read(attributes.get("gen_ai.tool.call.arguments", attributes.get("gen_ai.input.messages")))
    output = _read(attributes.get("gen_ai.tool.call.result", attributes.get("gen_ai.output.messages")))
    asked = next(
        (part for message in native.messages(arguments) for part in message.parts if isinstance(part, ToolCall)), None
    )
    if asked is not None:  # the request of a call, as Gemini spells it
        arguments = parsed_or_none(asked.arguments or "null")
    elif isinstance(arguments, dict) and isinstance(arguments.get("args"), dict):
        arguments = as_object(arguments["args"])
    name = as_text(attributes.get("gen_ai.tool.name")) or (asked.name if asked else "")
    return function_call(span, CallKind.TOOL, arguments, output, attributes=attributes, name=name)


def _read(value: Json) -> Json:
    if not isinstance(value, str):
        return value
    parsed = parsed_or_none(value)
    return value if parsed is None else parsed


DIALECT = Dialect(
    name=_NAME,
    recognises=_recognises,
    decode=_decode,
    marks=SpanMarks(scopes=(_NAME,), values=tuple(("gen_ai.operation.name", each) for each in sorted(_OPERATIONS))),
    most=0.95,
)
