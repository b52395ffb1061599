"""Inspect AI's logs of evaluations: `.json`, and `.eval`, a zip file that holds one file for each sample.

A sample is a run. Its events say each call of a model and of a tool, in their order and with their times; the bodies of
a provider's request and reply stand in an event as Inspect hands them to the SDK, else they are built again of the
event's messages. Long texts stand once under `attachments` and messages under `message_pool`: both are put back. A
sample without events is read from its messages. Which agent called what is not told: all calls stand below the sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.foreign import conversations, records
from reenact.foreign.conversations import Conversation, Turn
from reenact.foreign.documents import documents
from reenact.foreign.exchanges import hex_of, lacking, root_span
from reenact.foreign.foreign_call import LOST, REBUILT
from reenact.foreign.rebuilding import rebuilt
from reenact.foreign.spelled_messages import turns
from reenact.values import tool_schema
from reenact.values.call import (
    Body,
    CallKind,
    ExceptionRecord,
    FunctionCall,
    HttpReply,
    HttpRequest,
    Outcome,
    Raised,
    Request,
    Returned,
    Value,
)
from reenact.values.evidence import outcome_to_attributes, request_to_attributes
from reenact.values.json import Json, canonical, compact
from reenact.values.lenient import as_count, as_list, as_object, as_text, at, text_or_json
from reenact.values.message import Answered, Asked, Message, Usage
from reenact.values.run import CARRIER, OURS
from reenact.values.skeleton import holds
from reenact.values.span import (
    KIND_CLIENT,
    KIND_INTERNAL,
    STATUS_ERROR,
    STATUS_UNSET,
    Attribute,
    Scope,
    SpanRecord,
)

_LOG: Final = "eval.task", "eval.model", "status"
_SAMPLE: Final = "epoch", "target", "input", "id"
_ATTACHED: Final = "attachment://"
_NO_BODY: Final = ("extra_headers", "extra_query", "extra_body", "timeout")
"""Words of an SDK's own beside those of the body."""
_SHAPES: Final = {
    ("object", "chat.completion"): "openai.chat",
    ("object", "response"): "openai.responses",
    ("type", "message"): "anthropic.messages",
}
"""How a reply says which API it is of."""
_CONFIG: Final = ("temperature", "top_p", "top_k", "max_tokens", "seed", "stop_seqs", "parallel_tool_calls")
_MASKED: Final = "<base64-data-removed>"
_DEEPEST: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a call stands."""

    trace_id: str
    root_id: str
    number: int


def _recognises(head: bytes) -> float:
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] != b"{":
        return 0.0
    if holds(head, *_LOG):
        return 0.96
    return 0.95 if holds(head, *_SAMPLE) and b'"trajectory"' not in head else 0.0


def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    for line, document in documents(stream, str(path)):
        log = as_object(document)
        if "eval" in log:
            facts = as_object(log.get("eval"))
            samples = [as_object(each) for each in as_list(log.get("samples"))]
        elif "epoch" in log:
            facts, samples = {}, [log]
        else:
            raise InputError(f"{path}:{line}", "this is no log of Inspect: it has neither `eval` nor `epoch`")
        for sample in samples:
            yield from _run(sample, facts)


def _run(sample: dict[str, Json], log: Mapping[str, Json]) -> Iterator[SpanRecord]:
    seed = as_text(sample.get("uuid")) or canonical([as_text(log.get("run_id")), sample]).decode("utf-8", "replace")
    facts: dict[str, Attribute] = {
        "inspect.task": as_text(log.get("task")),
        "inspect.run_id": as_text(log.get("run_id")),
        "inspect.sample": text_or_json(sample.get("id")),
        "inspect.epoch": as_count(sample.get("epoch")) or 0,
        "inspect.scores": compact(sample["scores"]) if sample.get("scores") else "",
        "inspect.error": as_text(at(sample, "error", "message")),
    }
    facts = {name: value for name, value in facts.items() if value}
    name = f"{as_text(log.get('task')) or 'sample'} {text_or_json(sample.get('id'))}".strip()
    whole = as_object(_attached(sample, as_object(sample.get("attachments")), 0))
    events = [event for event in _events(as_list(whole.get("events")), 0) if event.get("event") in ("model", "tool")]
    if not events:
        yield from _of_messages(whole, seed, name, as_text(log.get("model")), facts)
        return
    trace_id, root_id = hex_of(seed, 16), hex_of(f"{seed}:root", 8)
    pool = as_list(whole.get("message_pool"))
    times: list[int] = []
    for number, event in enumerate(events, 1):
        place = _Place(trace_id=trace_id, root_id=root_id, number=number)
        span = _model(event, pool, place) if event.get("event") == "model" else _tool(event, place)
        times += [ns for ns in (span.start_ns, span.end_ns) if ns]
        yield span
    span_of_all = (min(times, default=0), max(times, default=0))
    yield root_span(
        trace_id=trace_id, span_id=root_id, name=name, carrier=FORMAT.name, times=span_of_all, attributes=facts
    )


def _attached(value: Json, attachments: Mapping[str, Json], depth: int) -> Json:
    """Put the texts back that stand once under `attachments`."""
    if isinstance(value, str):
        return attachments.get(value.removeprefix(_ATTACHED), value) if value.startswith(_ATTACHED) else value
    if depth > _DEEPEST:
        return value
    if isinstance(value, list):
        return [_attached(each, attachments, depth + 1) for each in value]
    if isinstance(value, dict):
        return {name: _attached(each, attachments, depth + 1) for name, each in value.items()}
    return value


def _events(listed: list[Json], depth: int) -> Iterator[dict[str, Json]]:
    """Give all events; logs of earlier versions keep those of a tool, and of a subtask, within its own."""
    for each in listed:
        event = as_object(each)
        yield event
        if depth < _DEEPEST:
            yield from _events(as_list(event.get("events")), depth + 1)


def _of_messages(
    sample: dict[str, Json], seed: str, name: str, model: str, facts: Mapping[str, Attribute]
) -> Iterator[SpanRecord]:
    message_turns = tuple(Turn(message=message) for message in turns(_spelled(as_list(sample.get("messages")))))
    chat = Conversation(
        seed=seed,
        name=name,
        turns=message_turns,
        model=model.rpartition("/")[2],
        system=model.partition("/")[0] or "openai",
        attributes=facts,
        lost=(lacking("events", "the events of the sample: its calls are told by its messages alone"),),
    )
    yield from conversations.run_of(chat, FORMAT.name)


def _spelled(messages: list[Json]) -> list[Json]:
    """Spell messages as others do: a call of Inspect names its function bare, an error stands beside a text."""
    spellings: list[Json] = []
    for each in messages:
        message = as_object(each)
        calls = [_call(as_object(call)) for call in as_list(message.get("tool_calls"))]
        item: dict[str, Json] = {name: message[name] for name in ("role", "content", "tool_call_id") if name in message}
        if message.get("role") == "tool" and (error := as_text(at(message, "error", "message"))):
            item["content"] = message.get("content") or error
        if message.get("role") == "tool" and (function := as_text(message.get("function"))):
            item["name"] = function
        spellings.append({**item, "tool_calls": calls} if calls else item)
    return spellings


def _call(call: dict[str, Json]) -> Json:
    arguments = call.get("arguments")
    return {
        "id": call.get("id"),
        "type": "function",
        "function": {"name": call.get("function"), "arguments": text_or_json(arguments)},
    }


# -------------------------------------------------------------------------------------------------------------- calls


def _model(event: dict[str, Json], pool: list[Json], place: _Place) -> SpanRecord:
    system, _, model = as_text(event.get("model")).rpartition("/")
    system = system.partition("/")[0] or "openai"
    request_body, reply = as_object(at(event, "call", "request")), as_object(at(event, "call", "response"))
    error = as_text(event.get("error")) or as_text(at(event, "output", "error"))
    shape = next((name for (key, value), name in _SHAPES.items() if reply.get(key) == value), "")
    lost = [lacking("stream", "whether a stream was asked for, and its pieces")]
    request: Request
    if request_body and shape and not error:
        body = {name: value for name, value in request_body.items() if name not in _NO_BODY}
        body |= as_object(request_body.get("extra_body"))
        request = HttpRequest(shape=shape, method="POST", url="", body=_body(body))
        headers = (("content-type", "application/json"),)
        outcome: Outcome = Returned(payload=HttpReply(status=200, headers=headers, body=_body(reply)))
        marks: tuple[str, ...] = ("request", "reply")
        if _MASKED in compact(request_body):
            lost.append(lacking("request", "images and other media, which Inspect leaves out of what it writes down"))
    else:
        answered, failed = (None, _failure(error)) if error else (_answered(event), None)
        request, outcome, marks = rebuilt(_asked(event, pool, model), answered, system=system, failed=failed)
    attributes: dict[str, Attribute] = {
        **_spelled_call(request, outcome, CallKind.LLM, place),
        REBUILT: [*marks],
        LOST: compact([each.json for each in lost]),
        "gen_ai.provider.name": system,
        "gen_ai.request.model": model,
        **({"error.type": "error", "inspect.error": error} if error else {}),
    }
    return _span(event, "chat", attributes, place, KIND_CLIENT, failed=bool(error))


def _asked(event: dict[str, Json], pool: list[Json], model: str) -> Asked:
    messages = as_list(event.get("input"))
    for each in as_list(event.get("input_refs")):
        first, last = ([*as_list(each), None, None])[:2]
        if isinstance(first, int) and isinstance(last, int):
            messages = [*messages, *pool[max(first, 0) : max(last, 0)]]
    config = as_object(event.get("config"))
    parameters: dict[str, Json] = {"model": model, **{name: config[name] for name in _CONFIG if name in config}}
    if "stop_seqs" in parameters:
        parameters["stop"] = parameters.pop("stop_seqs")
    tools = tool_schema.tools(event.get("tools"))
    if tools and (choice := event.get("tool_choice")) is not None:
        parameters["tool_choice"] = choice
    return Asked(model=model, messages=turns(_spelled(messages)), tools=tools, parameters=parameters)


def _answered(event: dict[str, Json]) -> Answered | None:
    output = as_object(event.get("output"))
    choice = as_object(next(iter(as_list(output.get("choices"))), None))
    messages = turns(_spelled([choice["message"]])) if isinstance(choice.get("message"), dict) else ()
    if not messages:
        return None
    finish = as_text(choice.get("stop_reason"))
    return Answered(
        model=as_text(output.get("model")) or None,
        messages=(Message(role="assistant", parts=tuple(part for message in messages for part in message.parts)),),
        finish_reasons=(finish,) if finish else (),
        usage=_usage(as_object(output.get("usage"))),
    )


def _usage(counts: dict[str, Json]) -> Usage:
    """Read counts; of some providers the cached tokens are none of the input's, which the total shows."""
    names = ("input_tokens", "output_tokens", "total_tokens", "input_tokens_cache_read", "input_tokens_cache_write")
    prompt, answered, total, read, cache_write = (as_count(counts.get(name)) for name in names)
    cached = (read or 0) + (cache_write or 0)
    apart = prompt is not None and cached and total == prompt + (answered or 0) + cached
    return Usage(
        prompt=prompt + cached if prompt is not None and apart else prompt,
        completion=answered,
        total=total,
        cache_read=read,
        cache_write=cache_write,
        reasoning=as_count(counts.get("reasoning_tokens")),
    )


def _tool(event: dict[str, Json], place: _Place) -> SpanRecord:
    request = FunctionCall(function="", arguments=event.get("arguments"))
    error = as_object(event.get("error"))
    outcome: Outcome = Returned(payload=Value(json=_result(event.get("result"))))
    if error:
        outcome = Raised(exception=_failure(as_text(error.get("message"))))
    name = as_text(event.get("function"))
    attributes: dict[str, Attribute] = {
        **_spelled_call(request, outcome, CallKind.TOOL, place),
        "tool.name": name,
        "gen_ai.tool.call.id": as_text(event.get("id")),
        **({"error.type": as_text(error.get("type")) or "error"} if error else {}),
    }
    return _span(event, name, attributes, place, KIND_INTERNAL, failed=bool(error))


def _failure(message: str) -> ExceptionRecord:
    """Make the failure that a log keeps the words of."""
    return ExceptionRecord(module="builtins", qualname="Exception", message=message)


def _result(result: Json) -> Json:
    """Give what a tool said: text, or of a list of contents its text where it holds nothing else."""
    listed = [as_object(each) for each in as_list(result)]
    if listed and all(each.get("type") == "text" for each in listed):
        return "".join(as_text(each.get("text")) for each in listed)
    return result


def _spelled_call(request: Request, outcome: Outcome, kind: CallKind, place: _Place) -> dict[str, Attribute]:
    attributes: dict[str, Attribute] = {**request_to_attributes(request), **outcome_to_attributes(request, outcome)}
    attributes.pop(OURS, None)
    return {
        **attributes,
        "openinference.span.kind": kind.value,
        CARRIER: FORMAT.name,
        "reenact.order.start": place.number << 20,
    }


def _span(
    event: dict[str, Json], name: str, attributes: dict[str, Attribute], place: _Place, kind: int, *, failed: bool
) -> SpanRecord:
    start = records.nanoseconds(event.get("timestamp"))
    return SpanRecord(
        trace_id=place.trace_id,
        span_id=hex_of(f"{place.trace_id}:{place.number}", 8),
        parent_id=place.root_id,
        name=name,
        start_ns=start,
        end_ns=max(start, records.nanoseconds(event.get("completed"))) if event.get("completed") else 0,
        kind=kind,
        status=STATUS_ERROR if failed else STATUS_UNSET,
        attributes=attributes,
        scope=Scope(name=FORMAT.name),
    )


def _body(json: Json) -> Body:
    return Body(compact(json).encode("utf-8", "surrogatepass"))


FORMAT = Format(
    name="inspect",
    suffix=".eval.json",
    recognises=_recognises,
    decode=_decode,
    most=0.96,
    marks=HeadMarks(keys=(_LOG, _SAMPLE)),
)
