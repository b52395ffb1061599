"""An exception's record as JSON, and back; and as other emitters leave it on a span."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from reenact.values.call import ExceptionRecord
from reenact.values.classes import json_text, text_json
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object
from reenact.values.span import STATUS_ERROR, Attribute, SpanRecord

_DEEPEST = 16
"""Causes further down than this are left out when a record is read."""


def exception_to_json(record: ExceptionRecord) -> dict[str, Json]:
    """Spell a record. What is empty is left out."""
    json: dict[str, Json] = {
        "module": text_json(record.module),
        "qualname": text_json(record.qualname),
        "message": text_json(record.message),
    }
    if record.bases:
        json["bases"] = [text_json(base) for base in record.bases]
    if record.args is not None:
        json["args"] = record.args
    if record.state is not None:
        json["state"] = record.state
    if record.cause is not None:
        json["cause"] = exception_to_json(record.cause)
    if record.context is not None:
        json["context"] = exception_to_json(record.context)
    if record.stacktrace:
        json["stacktrace"] = text_json(record.stacktrace)
    return json


def exception_from_json(json: Json, depth: int = 0) -> ExceptionRecord:
    """Read a record. What is missing or of another type reads as empty; nothing is raised."""
    fields = as_object(json)
    cause, context = fields.get("cause"), fields.get("context")
    return ExceptionRecord(
        module=json_text(fields.get("module")),
        qualname=json_text(fields.get("qualname")),
        message=json_text(fields.get("message")),
        bases=tuple(json_text(base) for base in as_list(fields.get("bases"))),
        args=fields.get("args"),
        state=fields.get("state"),
        cause=exception_from_json(cause, depth + 1) if isinstance(cause, dict) and depth < _DEEPEST else None,
        context=exception_from_json(context, depth + 1) if isinstance(context, dict) and depth < _DEEPEST else None,
        stacktrace=json_text(fields.get("stacktrace")),
    )


def exception_of_span(span: SpanRecord) -> ExceptionRecord | None:
    """Read the exception that a span of any emitter tells of, or None.

    That is its `exception` event (OpenTelemetry's conventions for exceptions on spans), else an ERROR status, of which
    some emitters say more in attributes of those names.
    """
    event = next((event for event in span.events if event.name == "exception"), None)
    if event is None and span.status != STATUS_ERROR:
        return None
    facts: Mapping[str, Attribute] = event.attributes if event else span.attributes
    class_name = facts.get("exception.type") or span.attributes.get("error.type") or "Exception"
    module, _, qualname = str(class_name).rpartition(".")
    message, trace = str(facts.get("exception.message") or span.status_message), facts.get("exception.stacktrace")
    if qualname in _ANY and (match := _SPELLED.match(message)) is not None:  # LangSmith's: a repr, then a traceback
        raised = [each for each in _RAISED.findall(message) if each.rpartition(".")[2] == match["name"]]
        module, _, qualname = (raised[-1] if raised else match["name"]).rpartition(".")
        trace, message = message[match.end("call") :].strip(), _text_of(match["said"] or "")
    return ExceptionRecord(module=module or "builtins", qualname=qualname, message=message, stacktrace=str(trace or ""))


_ANY = frozenset({"Exception", "Error", ""})
_SPELLED = re.compile(
    r"""(?P<call>(?P<name>[A-Za-z_]\w*)\((?P<said>'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")?[^\n]*\))(?:\n\nTraceback|\Z)""",
    re.DOTALL,
)
_RAISED = re.compile(r"^([A-Za-z_][\w.]*)(?::|$)", re.MULTILINE)


def _text_of(literal: str) -> str:
    """Read a text as Python spells it."""
    try:
        return str(ast.literal_eval(literal)) if literal else ""
    except (ValueError, SyntaxError):
        return literal[1:-1]
