"""W&B Weave, as its calls are read (`formats.weave_calls`): `weave.*`. From its documentation, not tried on data.

What a call is follows from the operation that was traced: a provider's method (`openai.chat.completions.create`), or
what Weave's own kinds say (`attributes.weave.kind`); any other operation is a function of the program's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from reenact.contracts.dialect import Dialect, SpanMarks
from reenact.encodings import native, python_repr, semconv, tool_io, worded
from reenact.encodings.semconv import Reading
from reenact.foreign.foreign_call import Loss, provider_of, said_of
from reenact.values.call import Call, CallKind, Outcome
from reenact.values.json import Json, compact
from reenact.values.lenient import as_list, as_object, as_text, at, structured
from reenact.values.span import SpanRecord

_MODEL_OPS: Final = re.compile(
    r"(?:.*\.)?(?:chat\.completions\.(?:create|parse)|completions\.create|responses\.(?:create|parse)|messages\.create"
    r"|generate_content(?:_async)?|converse|invoke_model|Chat(?:\w+)\.(?:invoke|ainvoke)|litellm\.a?completion"
    r"|models\.generate_content\w*|chat\.complete(?:_async)?|chat)"
)
_EMBEDDING_OPS: Final = re.compile(r"(?:.*\.)?embeddings\.create|(?:.*\.)?embed(?:_query|_documents|_content)?")
_KINDS: Final[Mapping[str, CallKind]] = {
    "llm": CallKind.LLM,
    "tool": CallKind.TOOL,
    "agent": CallKind.AGENT,
    "scorer": CallKind.EVALUATOR,
    "search": CallKind.RETRIEVER,
    "embedding": CallKind.EMBEDDING,
}
_REFERENCE: Final = re.compile(r'"weave:///[^"]*/(?:object|table|file)/')
_NOT_ASKED: Final = frozenset({"self", "extra_headers", "extra_query", "extra_body", "timeout"})
_REFERENCES: Final = Loss(
    field="values",
    lost="values that the export names and does not hold (weave:///…)",
    fix="export with references expanded: get_calls(expand_columns=['inputs', 'output'])",
)


def _recognises(span: SpanRecord) -> float:
    return 0.96 if "weave.op_name" in span.attributes else 0.0


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    attributes = said_of(span)
    inputs = _without_self(structured(attributes.get("weave.inputs")))
    output = structured(attributes.get("weave.output"))
    kind = _kind(attributes, inputs)
    losses = (_REFERENCES,) if _REFERENCE.search(compact([inputs, output])) else ()
    if kind in (CallKind.LLM, CallKind.EMBEDDING):
        return semconv.call(span, attributes, "weave", replace(_model(kind, attributes, inputs, output), losses=losses))
    result, call_id = tool_io.result(output) if kind is CallKind.TOOL else (output, "")
    reading = Reading(
        kind=kind,
        arguments=inputs,
        result=result,
        has_result="weave.output" in attributes,
        facts={"gen_ai.tool.call.id": call_id} if call_id else {},
        losses=losses,
    )
    return semconv.call(span, attributes, "weave", reading)


def _without_self(inputs: Json) -> Json:
    return {name: value for name, value in inputs.items() if name != "self"} if isinstance(inputs, dict) else inputs


def _op(attributes: Mapping[str, Json]) -> str:
    return as_text(attributes.get("weave.op_name")).rpartition("/")[2].partition(":")[0]


def _kind(span_attributes: Mapping[str, Json], inputs: Json) -> CallKind:
    attributes = structured(span_attributes.get("weave.attributes"))
    kind_name = as_text(at(attributes, "weave", "kind")) or as_text(as_object(attributes).get("kind"))
    if kind_name.lower() in _KINDS:
        return _KINDS[kind_name.lower()]
    op, fields = _op(span_attributes), as_object(inputs)
    if _EMBEDDING_OPS.fullmatch(op):
        return CallKind.EMBEDDING
    asks = any(name in fields for name in ("messages", "contents", "input", "prompt"))
    return CallKind.LLM if asks and "model" in fields and _MODEL_OPS.fullmatch(op) else CallKind.CHAIN


def _model(kind: CallKind, attributes: Mapping[str, Json], inputs: Json, output: Json) -> Reading:
    asked = native.native_request(worded.opened(inputs, python_repr.read))
    answered = native.answered(worded.opened(output, python_repr.read))
    used = as_object(at(structured(attributes.get("weave.summary")), "usage"))
    if asked is not None:
        parameters = {name: value for name, value in asked.parameters.items() if name not in _NOT_ASKED}
        asked = replace(asked, parameters=parameters)
        if kind is CallKind.EMBEDDING:
            content = as_object(inputs).get("input")
            texts = tuple(each for each in (as_list(content) or [content]) if isinstance(each, str))
            asked = replace(asked, messages=(), inputs=texts)
    if answered is not None and not answered.usage.prompt and used:
        model, counts = next(iter(used.items()))
        answered = replace(answered, model=answered.model or model, usage=native.usage(counts))
    model = (asked.model if asked is not None else "") or (answered.model if answered is not None else "") or ""
    first = _op(attributes).partition(".")[0]
    return Reading(
        kind=kind,
        asked=asked,
        answered=answered,
        system=first if first in ("openai", "anthropic", "mistralai", "groq", "google") else provider_of(model),
        api="responses" if "responses." in _op(attributes) else "",
        whole={"messages", "model"} <= as_object(inputs).keys(),
    )


DIALECT = Dialect(
    name="weave", recognises=_recognises, decode=_decode, marks=SpanMarks(attributes=("weave.op_name",)), most=0.96
)
