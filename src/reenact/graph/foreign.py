"""What the trace of another emitter lost of a call, thing by thing, each with what would keep it.

Told from three sides: what the emitter's dialect or the file's format knows (`reenact.lost`), what had to be built
again (`reenact.rebuilt`), and what the span itself shows: JSON that ends in the middle, events that were dropped, a
reply that calls tools which no request offers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from reenact.boundary.reading import answered, asked, is_plain
from reenact.foreign.partial_question import losses, rebuilt_parts
from reenact.values.call import CallKind, HttpRequest, Raised, Returned
from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.message import Asked, ToolCall
from reenact.values.run import OURS, Node, Reason, Run

RECORD: Final = "record with `reenact run -- …`, which keeps it"
_WHOLE: Final = "no setting of the emitter keeps it: record with `reenact run -- …`, or with OpenInference, which does"
_RECOVERED: Final = "reenact.recovered"
_CUT: Final = re.compile(r'\s*(?:\{\s*"|\[\s*[\[{"])')
"""How JSON begins that holds something; Python's spelling of it has other quotes."""
_BRACKETS: Final = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|$)|[{}\[\]]', re.DOTALL)
"""A whole string, passed over, or a bracket outside of one. Possessive: no backtracking."""
_LIMITS: Final = "raise OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT and OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT in the emitter"
_OPENINFERENCE_MASK: Final = "__REDACTED__"
_OF_THE_EMITTER: Final = ("reenact.", "logfire.", "telemetry.", "http.request.header.", "http.response.header.")
"""Attributes that hold nothing of what was asked and answered."""
_COLLECTOR: Final = ("redaction.masked.keys", "redaction.redacted.keys")
"""Written by the Collector's redaction processor, with `summary: debug`."""
_CHOICES: Final = frozenset({"tool_choice", "function_call"})
_PARTS: Final = {
    "shape": ("api", "which API the provider was asked by; the words for it fit none, and OpenAI's chat is assumed"),
    "finish_reason": ("finish_reason", "why the reply ended; it is told from whether the reply calls a tool"),
    "tool_call_id": ("tool_call_id", "the ids of tool calls; others stand in their place"),
    "failure": ("reply", "the reply that made the SDK raise; status and body are told from the error"),
    "tools": ("tools", "which tools this very call offered; those of the agent above are shown"),
    "stream": ("stream", "whether a stream was asked for; the span's name alone tells it"),
}
"""Part of `reenact.rebuilt` to the field of a reason and what was lost."""


def foreign_reasons(node: Node) -> Iterator[Reason]:
    """Name what an emitter other than ours, or a carrier of its own kind, does not keep of a call."""
    reasons = [*_loss_reasons(node)]
    fields = {reason.field for reason in reasons}
    if isinstance(node.call.request, HttpRequest):
        reasons += (reason for reason in _of_model(node) if reason.field not in fields)
    if OURS not in node.span.attributes:
        reasons += (reason for reason in _of_span(node) if reason.field not in fields)
        reasons += _masked(node)
    yield from dict.fromkeys(reasons)


def carrier_reasons(run: Run) -> Iterator[Reason]:
    """Name what the file's format cannot hold of a run at all: its marks stand on the topmost span."""
    reasons: dict[Reason, None] = {}
    for node in run.nodes:
        if node.call.is_structure:
            for loss in losses(node):
                field, lost, fix = (as_text(loss.get(name)) for name in ("field", "lost", "fix"))
                if field and lost:
                    reasons[Reason(call="run", field=field, lost=lost, fix=fix or RECORD)] = None
    yield from reasons


def _loss_reasons(node: Node) -> Iterator[Reason]:
    """Give what the dialect or the carrier says, and what was recovered."""
    for loss in losses(node):
        field, lost, fix = (as_text(loss.get(name)) for name in ("field", "lost", "fix"))
        if field and lost:
            yield Reason(call=node.label, field=field, lost=lost, fix=fix or RECORD)
    if (recovered := _recovered(node)) is not None:
        yield recovered


def _recovered(node: Node) -> Reason | None:
    value = node.call.attributes.get(_RECOVERED)
    if value is None:
        text = node.span.attributes.get(_RECOVERED)
        value = parsed_or_none(text) if isinstance(text, str) else None
    parts = [as_text(part) for part in as_list(as_object(value).get("parts"))]
    if not parts:
        return None
    if "call" in parts:
        lost = "the tool's own span; its arguments are those of the model's reply, its result is the tool's message"
    else:
        lost = f"its {' and '.join(parts)}; told by the model calls before and after it"
    fix = "trace the tool's function as well (a decorator of the emitter), or declare it with @reenact.tool"
    return Reason(call=node.label, field="tool", lost=lost, fix=fix)


def _of_model(node: Node) -> Iterator[Reason]:
    label, parts, question = node.label, rebuilt_parts(node), asked(node)
    if OURS not in node.span.attributes and isinstance(node.outcome, Returned) and "failure" not in parts:
        lost = "the exact bytes, headers and status of the reply; it is answered as equal JSON with status 200"
        yield Reason(call=label, field="reply", lost=lost, fix=RECORD)
    for part in parts:
        if part in _PARTS:
            field, lost = _PARTS[part]
            yield Reason(call=label, field=field, lost=lost, fix=_WHOLE)
    if question is None:
        if not is_plain(node):  # of what nobody reads, the body is all there is
            yield Reason(call=label, field="request", lost="the request body", fix=RECORD)
        return
    if question.stream and OURS not in node.span.attributes:
        yield Reason(call=label, field="stream", lost="the boundaries of the stream's pieces", fix=RECORD)
    if "request" in parts:
        yield from _of_request(node, question)


def _of_request(node: Node, question: Asked) -> Iterator[Reason]:
    """Name what a request that was built again does not hold."""
    label = node.label
    if question.model is None:
        yield Reason(call=label, field="model", lost="the model that was asked for", fix=_WHOLE)
    if node.kind is not CallKind.LLM:
        return
    calls = _calls_tools(node)
    if calls and not question.tools:
        lost = "the tools that were offered; the reply calls one"
        yield Reason(call=label, field="tools", lost=lost, fix=_WHOLE)
    elif any(_is_bare(tool) for tool in map(as_object, question.tools)):
        yield Reason(call=label, field="tools", lost="the schemas of the tools that were offered", fix=_WHOLE)
    if (calls or question.tools) and not question.parameters.keys() & _CHOICES:
        lost = "whether the model was free to call a tool"
        yield Reason(call=label, field="tool_choice", lost=lost, fix=_WHOLE)
    lost = "parameters that the emitter has no attribute for (response_format, logprobs and the like)"
    yield Reason(call=label, field="parameters", lost=lost, fix=_WHOLE)


def _calls_tools(node: Node) -> bool:
    reply = answered(node)
    return reply is not None and any(isinstance(part, ToolCall) for message in reply.messages for part in message.parts)


def _is_bare(tool: dict[str, Json]) -> bool:
    """Tell a function's definition without a schema; what a provider runs itself has none."""
    function = tool.get("function", tool)
    names = ("parameters", "input_schema", "inputSchema")
    if not isinstance(function, dict):
        return False
    return tool.get("type", "function") == "function" and not any(name in function for name in names)


def _of_span(node: Node) -> Iterator[Reason]:
    label, span = node.label, node.span
    for name, value in span.attributes.items():
        if isinstance(value, str) and _CUT.match(value) and len(value) > 1 and _is_cut_off(value):
            lost = f"{name} ends in the middle, after {len(value)} characters"
            yield Reason(call=label, field=name, lost=lost, fix=_LIMITS)
    if isinstance(node.outcome, Raised) and node.outcome.exception.qualname in ("Exception", ""):
        lost = "the class of the error; a replay raises it as Exception"
        fix = "have the emitter record the exception (span.record_exception), or " + RECORD
        yield Reason(call=label, field="exception", lost=lost, fix=fix)
    if span.dropped_events:
        fix = "raise OTEL_SPAN_EVENT_COUNT_LIMIT in the emitter"
        yield Reason(call=label, field="events", lost=f"{span.dropped_events} events were dropped by a limit", fix=fix)


def _masked(node: Node) -> Iterator[Reason]:
    """Name what the emitter hid behind constants: equal values cannot be told apart any more."""
    from reenact.values.masks import masks_in, names_a_credential, setting_of  # spans of ours have none

    masks: Counter[str] = Counter()
    for name, value in node.span.attributes.items():
        if not isinstance(value, str) or name.startswith(_OF_THE_EMITTER) or names_a_credential(name):
            continue
        if _OPENINFERENCE_MASK not in value:  # told with its own settings
            masks.update(masks_in(value))
    for each in _COLLECTOR:
        names = node.span.attributes.get(each)
        if isinstance(names, str) and names and not masks:
            lost = f"{names}: masked or removed by a collector on the way"
            fix = "leave these attributes alone in the redaction processor of the collector's configuration"
            yield Reason(call=node.label, field="content", lost=lost, fix=fix)
    if masks:
        kinds = ", ".join(masks)
        many = masks.total()
        lost = f"{many} value{'' if many == 1 else 's'} hidden by the emitter ({kinds})"
        yield Reason(
            call=node.label, field="content", lost=lost, fix=setting_of(next(iter(masks)), node.span.scope.name)
        )


def _is_cut_off(text: str) -> bool:
    """Tell JSON that ends too early from JSON that is whole, and from text that only begins like it."""
    if parsed_or_none(text) is not None:
        return False
    depth = 0
    for token in _BRACKETS.finditer(text):
        if token[0] in "{[":
            depth += 1
        elif token[0] in "}]":
            depth -= 1
            if depth == 0:
                return False  # it closes, so that whatever is wrong with it is not its end
    return depth > 0
