"""AWS Bedrock's model invocation logs: a record of JSON for each call, as S3 and CloudWatch keep them.

A record holds the bodies of request and reply, which are read as messages whatever the model speaks (Converse,
Anthropic, Nova, Llama, Titan, Cohere) and built again as chat completions; both bodies stay beside them as they are.
Bodies over 100 kB lie elsewhere in S3 and are not fetched. Records are calls and no runs: those that begin with the
same message of the same identity are taken for one run, unless the request's metadata names a session.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.foreign import records
from reenact.foreign.documents import documents
from reenact.foreign.exchanges import hex_of, lacking, root_span
from reenact.foreign.foreign_call import LOST, REBUILT, Loss
from reenact.foreign.rebuilding import rebuilt
from reenact.foreign.spelled_messages import turns
from reenact.values import tool_schema
from reenact.values.call import CallKind
from reenact.values.evidence import outcome_to_attributes, request_to_attributes
from reenact.values.json import Json, canonical, compact, parsed_or_none
from reenact.values.lenient import as_count, as_list, as_object, as_text, at, first_count
from reenact.values.message import Answered, Asked, Message, Usage
from reenact.values.run import CARRIER, OURS
from reenact.values.span import KIND_CLIENT, STATUS_ERROR, STATUS_UNSET, Attribute, Scope, SpanRecord

_SIGN = re.compile(rb'\\?"schemaType\\?"\s*:\s*\\?"ModelInvocationLog\\?"')
_PARAMETERS: Final = {
    "max_tokens": "max_tokens",
    "maxTokens": "max_tokens",
    "max_gen_len": "max_tokens",
    "maxTokenCount": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "topP": "top_p",
    "top_k": "top_k",
    "stop_sequences": "stop",
    "stopSequences": "stop",
}
_FINISHES: Final = ("stopReason", "stop_reason", "finish_reason")
_SESSIONS: Final = ("session.id", "session_id", "sessionId", "conversation_id", "thread_id", "trace_id", "run_id")
_ELSEWHERE: Final = "raise nothing: bodies over 100 kB are in S3 beside the log; put them in their place"


@dataclass(slots=True)
class _Gathered:
    """What one run has so far."""

    number: int = 0
    times: list[int] = field(default_factory=list[int])
    facts: dict[str, Attribute] = field(default_factory=dict[str, Attribute])


def _recognises(head: bytes) -> float:
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"["):
        return 0.0
    return 0.97 if _SIGN.search(head) else 0.0


def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    runs: dict[str, _Gathered] = {}
    for line, document in documents(stream, str(path)):
        invocations = list(_records(document))
        if not invocations:
            raise InputError(f"{path}:{line}", "this is no record of a model invocation")
        for record in invocations:
            seed = _run(record)
            gathered = runs.setdefault(seed, _Gathered())
            gathered.number += 1
            span = _span(record, seed, gathered.number)
            gathered.times += [span.start_ns, span.end_ns]
            gathered.facts |= _identity(record)
            yield span
    for seed, gathered in runs.items():
        times = [ns for ns in gathered.times if ns]
        yield root_span(
            trace_id=hex_of(seed, 16),
            span_id=hex_of(f"{seed}:root", 8),
            name="bedrock invocations",
            carrier=FORMAT.name,
            times=(min(times, default=0), max(times, default=0)),
            attributes=gathered.facts,
        )


def _records(document: Json) -> Iterator[dict[str, Json]]:
    """Find the records in a document; CloudWatch puts their text into a `message`, in lists of several names."""
    if isinstance(document, list):
        for each in document:
            yield from _records(each)
        return
    fields = as_object(document)
    if fields.get("schemaType") == "ModelInvocationLog":
        yield fields
        return
    for name in ("message", "@message", "events", "logEvents", "results", "Records"):
        if (inner := fields.get(name)) is not None:
            yield from _records(parsed_or_none(inner) if isinstance(inner, str) else inner)
            return
    if "field" in fields and fields.get("field") == "@message":  # a cell of a row of Logs Insights
        yield from _records(parsed_or_none(as_text(fields.get("value"))))


def _run(record: Mapping[str, Json]) -> str:
    """Name the run of a record: by a session that the request names, else by how its conversation begins."""
    metadata = as_object(record.get("requestMetadata"))
    session = next((text for name in _SESSIONS if (text := as_text(metadata.get(name)))), "")
    who = as_text(at(dict(record), "identity", "arn"))
    if session:
        return f"{who}:{session}"
    body = as_object(records.unwrapped(at(dict(record), "input", "inputBodyJson")))
    first = (as_list(body.get("messages")) or as_list(body.get("chat_history")) or [body.get("message")])[:1]
    if not first[0]:
        first = [body.get("prompt"), body.get("inputText"), record.get("requestId")]
    system = body.get("system", body.get("preamble"))
    return canonical([who, as_text(record.get("modelId")), system, *first]).decode("utf-8", "replace")


def _identity(record: Mapping[str, Json]) -> dict[str, Attribute]:
    metadata = as_object(record.get("requestMetadata"))
    identity: dict[str, str] = {
        "aws.identity.arn": as_text(at(dict(record), "identity", "arn")),
        "cloud.account.id": as_text(record.get("accountId")),
        "cloud.region": as_text(record.get("region")),
        "session.id": next((text for name in _SESSIONS if (text := as_text(metadata.get(name)))), ""),
        "user.id": as_text(metadata.get("user_id")) or as_text(metadata.get("userId")),
        "metadata": compact(metadata) if metadata else "",
    }
    return {name: value for name, value in identity.items() if value}


# ------------------------------------------------------------------------------------------------------------- a call


def _span(record: dict[str, Json], seed: str, number: int) -> SpanRecord:
    input_, output = as_object(record.get("input")), as_object(record.get("output"))
    request_body = as_object(records.unwrapped(input_.get("inputBodyJson")))
    reply = records.unwrapped(output.get("outputBodyJson"))
    model, operation = as_text(record.get("modelId")), as_text(record.get("operation"))
    lost = list(_lost(input_, output))
    asked = _asked(request_body, model, stream="Stream" in operation)
    answered = _answered(reply, model, input_, output)
    system = "aws.bedrock"
    request, outcome, marks = rebuilt(asked, answered, system=system, stream=asked.stream or None)
    error = as_text(record.get("errorCode"))
    attributes: dict[str, Attribute] = {**request_to_attributes(request), **outcome_to_attributes(request, outcome)}
    del attributes[OURS]
    attributes |= {
        "openinference.span.kind": (CallKind.EMBEDDING if asked.inputs else CallKind.LLM).value,
        CARRIER: FORMAT.name,
        REBUILT: [*marks],
        "reenact.order.start": number << 20,
        "gen_ai.provider.name": system,
        "gen_ai.request.model": model,
        "aws.bedrock.operation": operation,
        "aws.bedrock.request_id": as_text(record.get("requestId")),
        "bedrock.input": compact(request_body),
        "bedrock.output": compact(reply),
    }
    if error:
        attributes["error.type"] = error
    if answered is None or not answered.messages:
        attributes |= _counted(input_, output)
    if asked.stream:
        lost.append(lacking("stream", "the boundaries and times of the stream's pieces"))
    start, latency = records.nanoseconds(record.get("timestamp")), _latency(reply)
    if latency is None:
        lost.append(lacking("times", "when it was answered", "log the time around the call"))
    if lost:
        attributes[LOST] = compact([each.json for each in lost])
    trace_id = hex_of(seed, 16)
    return SpanRecord(
        trace_id=trace_id,
        span_id=hex_of(f"{trace_id}:{as_text(record.get('requestId'))}:{number}", 8),
        parent_id=hex_of(f"{seed}:root", 8),
        name=operation or "InvokeModel",
        start_ns=start,
        end_ns=start + latency * 1_000_000 if start and latency is not None else 0,
        kind=KIND_CLIENT,
        status=STATUS_ERROR if error else STATUS_UNSET,
        attributes=attributes,
        scope=Scope(name=FORMAT.name),
    )


def _counted(input_: Mapping[str, Json], output: Mapping[str, Json]) -> dict[str, Attribute]:
    """Give the tokens that the log itself counted."""
    counts = {
        "gen_ai.usage.input_tokens": as_count(input_.get("inputTokenCount")),
        "gen_ai.usage.output_tokens": as_count(output.get("outputTokenCount")),
    }
    return {name: count for name, count in counts.items() if count is not None}


def _latency(reply: Json) -> int | None:
    """Give the milliseconds that a reply says it took: Converse's, or what Bedrock puts to the end of a stream."""
    for each in reversed(reply if isinstance(reply, list) else [reply]):
        event = as_object(each)
        for fields in (event, _event(event)):
            paths = ("metrics", "latencyMs"), ("amazon-bedrock-invocationMetrics", "invocationLatency")
            if (latency := first_count(fields, *paths)) is not None:
                return latency
    return None


def _lost(input_: Mapping[str, Json], output: Mapping[str, Json]) -> Iterator[Loss]:
    for side, fields, name in (("request", input_, "input"), ("reply", output, "output")):
        if f"{name}BodyJson" not in fields:
            where = as_text(fields.get(f"{name}BodyS3Path"))
            if where:
                yield lacking(side, f"the body, which the log keeps at {where}", _ELSEWHERE)
            else:
                yield lacking(side, "the body", "turn on text data delivery in the model invocation logging settings")


def _asked(body: dict[str, Json], model: str, *, stream: bool) -> Asked:
    config = {
        **body,
        **as_object(body.get("inferenceConfig")),
        **as_object(body.get("textGenerationConfig")),
        **as_object(body.get("additionalModelRequestFields")),
    }
    parameters: dict[str, Json] = {"model": model}
    parameters |= {name: config[spelling] for spelling, name in _PARAMETERS.items() if spelling in config}
    if (choice := body.get("tool_choice", at(body, "toolConfig", "toolChoice"))) is not None:
        parameters["tool_choice"] = choice
    messages = (*turns(body.get("system"), "system"), *turns(body.get("messages")), *_of_cohere(body))
    text = body.get("inputText", body.get("texts"))
    embeds = "embed" in model
    if not messages and not embeds:
        messages = turns(body.get("prompt", text))
    inputs = tuple(as_text(each) for each in (text if isinstance(text, list) else [text]) if as_text(each))
    return Asked(
        model=model,
        messages=messages,
        tools=tool_schema.tools(body.get("tools", at(body, "toolConfig", "tools"))),
        parameters=parameters,
        inputs=inputs if embeds else (),
        stream=stream,
    )


def _of_cohere(body: Mapping[str, Json]) -> tuple[Message, ...]:
    """Read what Cohere's models are asked: a message, what was said before it, a preamble, results of tools."""
    if not isinstance(body.get("message"), str):
        return ()
    results: list[Json] = [{"role": "tool", "content": each} for each in as_list(body.get("tool_results"))]
    return (
        *turns(body.get("preamble"), "system"),
        *turns(body.get("chat_history")),
        *(turns(body["message"]) if body["message"] else ()),
        *turns(results),
    )


def _answered(reply: Json, model: str, input_: Mapping[str, Json], output: Mapping[str, Json]) -> Answered | None:
    """Read a reply; a stream's is the list of its events."""
    whole = _folded(reply) if isinstance(reply, list) else as_object(reply)
    if not whole:
        return None
    content = (
        at(whole, "output", "message") or whole.get("content") or whole.get("generation") or whole.get("completion")
    )
    if content is None:
        lists = (as_list(whole.get(name)) for name in ("results", "outputs", "choices", "generations"))
        first = as_object(next((each for listed in lists for each in listed), None))
        content = first.get("outputText") or first.get("text") or first.get("message")
    if content is None and "text" in whole:  # Cohere's
        content = {"role": "assistant", "content": whole["text"], "tool_calls": whole.get("tool_calls")}
    vectors = whole.get("embedding")
    reply_messages = turns([content] if isinstance(content, dict) and "role" not in content else content, "assistant")
    parts = tuple(part for message in reply_messages for part in message.parts)
    finish = next((text for name in _FINISHES if (text := as_text(whole.get(name)))), "")
    numbers = tuple(float(each) for each in as_list(vectors) if isinstance(each, int | float))
    return Answered(
        model=as_text(whole.get("model")) or model,
        id=as_text(whole.get("id")) or None,
        messages=(Message(role="assistant", parts=parts),) if parts else (),
        finish_reasons=(finish,) if finish else (),
        usage=Usage(
            prompt=first_count(whole, ("usage", "inputTokens"), ("usage", "input_tokens"))
            or as_count(input_.get("inputTokenCount")),
            completion=first_count(whole, ("usage", "outputTokens"), ("usage", "output_tokens"))
            or as_count(output.get("outputTokenCount")),
            cache_read=first_count(whole, ("usage", "cacheReadInputTokens"), ("usage", "cache_read_input_tokens"))
            or as_count(input_.get("cacheReadInputTokenCount"))
            or None,
        ),
        vectors=(numbers,) if numbers else (),
    )


def _folded(events: list[Json]) -> dict[str, Json]:
    """Join the events of a stream: Converse's, and Anthropic's, whose deltas stand under the same words."""
    texts: dict[int, list[str]] = {}
    calls: dict[int, dict[str, Json]] = {}
    fields: dict[str, Json] = {}
    for each in events:
        event = _event(as_object(each))
        place = as_count(event.get("contentBlockIndex", event.get("index"))) or 0
        start = as_object(at(event, "start", "toolUse")) or as_object(event.get("content_block"))
        if start and (start.get("type") in (None, "tool_use")):
            calls[place] = {"id": start.get("toolUseId", start.get("id")), "name": start.get("name")}
        delta = as_object(event.get("delta"))
        piece = as_text(delta.get("text")) or as_text(event.get("outputText")) or as_text(event.get("generation"))
        piece += as_text(at(delta, "toolUse", "input")) or as_text(delta.get("partial_json"))
        texts.setdefault(place, []).append(piece)
        for name, value in (
            ("stop_reason", event.get("stopReason") or delta.get("stop_reason")),
            ("usage", event.get("usage") or at(event, "message", "usage")),
        ):
            if value:
                fields[name] = {**as_object(fields.get(name)), **value} if isinstance(value, dict) else value
    content: list[Json] = []
    for place, pieces in sorted(texts.items()):
        text = "".join(pieces)
        if place in calls:
            content.append({"type": "tool_use", **calls[place], "input": parsed_or_none(text) or {}})
        elif text:
            content.append({"type": "text", "text": text})
    return {**fields, "content": content}


def _event(event: dict[str, Json]) -> dict[str, Json]:
    """Take an event out of its wrapping: `{"contentBlockDelta": {…}}`, `{"chunk": {"bytes": …}}`."""
    if (data := as_text(at(event, "chunk", "bytes"))) or (data := as_text(event.get("bytes"))):
        try:
            return as_object(parsed_or_none(base64.b64decode(data)))
        except ValueError:
            return {}
    if len(event) == 1 and isinstance(inner := next(iter(event.values())), dict):
        return inner
    return event


FORMAT = Format(
    name="bedrock-invocations",
    suffix=".bedrock.jsonl",
    recognises=_recognises,
    decode=_decode,
    most=0.97,
    marks=HeadMarks(texts=(("schemaType", "ModelInvocationLog"),)),
)
