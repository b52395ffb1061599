"""Microsoft's Agent Framework: OTel GenAI's parts messages, and its log events beside them.

Tool definitions stand on the agent's span alone; workflows, executors and messages between them are structure.
"""

from __future__ import annotations

from typing import Final

from reenact.contracts.dialect import Dialect, SpanMarks
from reenact.encodings import events, parts, semconv
from reenact.encodings.semconv import Reading
from reenact.foreign import genai
from reenact.foreign.foreign_call import Loss, plain, said_of
from reenact.values.call import Call, CallKind, Outcome
from reenact.values.json import Json
from reenact.values.message import Answered, Asked
from reenact.values.span import SpanRecord

NAME: Final = "agent-framework"
_SCOPES: Final = ("agent_framework", "Microsoft.Agents.AI", "Experimental.Microsoft.Agents.AI")
_PROVIDER: Final = "microsoft.agent_framework"
_STRUCTURE: Final = ("workflow.", "executor.", "message.", "edge_group.")
_AGENT_HAS_TOOLS: Final = Loss(
    field="tools",
    lost="the framework keeps tool definitions on the agent's span alone, not on that of the model",
    fix="none in this release: read them on the invoke_agent span above",
)
_HIDDEN: Final = Loss(
    field="messages",
    lost="the framework was told to keep no content",
    fix="set ENABLE_SENSITIVE_DATA=true, or setup_observability(enable_sensitive_data=True)",
)


def _recognises(span: SpanRecord) -> float:
    scope_fits = span.scope.name.startswith(_SCOPES)
    provider = span.attributes.get("gen_ai.provider.name") == _PROVIDER
    return 0.86 if scope_fits or provider else 0.0


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    attributes = said_of(span)
    kind = genai.kind_of(attributes)
    if kind is CallKind.UNKNOWN and any(name.startswith(_STRUCTURE) for name in attributes):
        kind = CallKind.CHAIN
    if kind in (CallKind.LLM, CallKind.EMBEDDING):
        asked, answered = _messages(span, attributes)
        losses = [_HIDDEN] if asked is None or not asked.messages else []
        losses += [_AGENT_HAS_TOOLS] if asked is not None and not asked.tools and kind is CallKind.LLM else []
        return semconv.call(
            span, attributes, NAME, Reading(kind=kind, asked=asked, answered=answered, losses=tuple(losses))
        )
    result = attributes.get("gen_ai.tool.call.result")
    reading = Reading(
        kind=kind, result=plain(result) if result is not None else None, has_result=result is not None or None
    )
    return semconv.call(span, attributes, NAME, reading)


def _messages(span: SpanRecord, attributes: dict[str, Json]) -> tuple[Asked | None, Answered | None]:
    asked, answered = parts.parts_exchange(attributes)
    event_reading = events.exchange_of_events(span.events)
    return semconv.either(asked, event_reading[0]), semconv.or_else(answered, event_reading[1])


DIALECT = Dialect(
    name=NAME,
    recognises=_recognises,
    decode=_decode,
    marks=SpanMarks(scopes=_SCOPES, values=(("gen_ai.provider.name", _PROVIDER),)),
    most=0.86,
)
