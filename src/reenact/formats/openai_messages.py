"""Files of messages in OpenAI's format, and in Anthropic's: chat logs, fine-tuning and preference data, batches.

A line or document is one of: a conversation (`{"messages": […], "tools": […]}`, a bare list of messages, ShareGPT's
`conversations`), a logged call (`request` and `response` or `error` beside each other), a line of a batch's input or
output file (`custom_id`), or a stored reply. Conversations are a run each; the lines of a batch are one run, input and
output joined by `custom_id`. Lines that are one message each are one conversation.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Final

from reenact.boundary.resource import shape_at
from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.foreign import conversations, exchanges, records
from reenact.foreign.conversations import Conversation, Turn
from reenact.foreign.documents import documents
from reenact.foreign.exchanges import Exchange, lacking, spelled_json
from reenact.foreign.spelled_messages import turns
from reenact.values import tool_schema
from reenact.values.json import Json, canonical
from reenact.values.lenient import as_count, as_list, as_object, as_text
from reenact.values.providers import provider_of
from reenact.values.skeleton import holds
from reenact.values.span import STATUS_ERROR, Attribute, SpanRecord

_FIRST = re.compile(
    rb'\s*(?:\[\s*)*\{\s*"(?:messages|conversations|custom_id|request|request_body|role|content|input|tools|model|prompt|'
    rb'id|object|parallel_tool_calls|functions|metadata|task|kwargs|from|params|completion|choices|system)"'
)
_SIGNS: Final = (
    (re.compile(rb'"custom_id"\s*:'), 0.9),
    (re.compile(rb'"messages"\s*:\s*\[\s*(?:\{|\])'), 0.6),
    (re.compile(rb'"conversations"\s*:\s*\[\s*\{\s*"(?:from|value|role|content)"'), 0.6),
    (re.compile(rb'"object"\s*:\s*"(?:chat\.completion|response)"'), 0.4),
    (re.compile(rb'\A\s*\[?\s*\{\s*"(?:role|content)"\s*:'), 0.5),
)
_LOOSE: Final = re.compile(
    rb'"contents"\s*:\s*\[\s*\{\s*"(?:role|parts)"'
    rb'|(?:"(?:items|input|output)"\s*:\s*\[|\A\s*\[)\s*\{\s*"type"\s*:\s*"(?:message|reasoning|function_call)"'
)
"""Lists of Gemini's contents and of the items of OpenAI's responses, whatever stands around them."""
_LOGGED: Final = re.compile(rb'"request"\s*:\s*\{[^{}]*"messages"\s*:\s*\[\s*\{\s*"(?:role|content)"')
_LINE: Final = re.compile(
    rb'\s*(?:\[\s*)?\{\s*(?:"(?:type"\s*:\s*"message"|(?:(?:conversation|session|thread|user|run|message)_id|sessionId|id|uuid'
    rb'|timestamp|created_at|time|ts|index|turn|model|name)"\s*:\s*(?:"[^"\\]*"|[\w.+-]+))\s*,\s*){1,6}+'
    rb'"(?:role"\s*:\s*"(?:system|developer|user|assistant|tool)"\s*,\s*"content"|content"\s*:)'
)
"""Lines of one message each, that say first which conversation, which message or when it is."""
_CONVERSATIONS: Final = ("conversation_id", "session_id", "sessionId", "thread_id")
_LISTS: Final = ("messages", "conversations", "items", "contents", "history", "conversation")
_PARAMETERS: Final = frozenset(
    {
        "temperature",
        "top_p",
        "max_tokens",
        "max_completion_tokens",
        "tool_choice",
        "parallel_tool_calls",
        "response_format",
        "seed",
        "stop",
        "n",
        "frequency_penalty",
        "presence_penalty",
        "reasoning_effort",
        "logprobs",
        "top_logprobs",
        "logit_bias",
        "stream",
        "user",
    }
)
_REQUESTS: Final = ("request", "request_body", "requestBody", "input", "kwargs")
_TOOLS: Final = frozenset({"observation", "tool", "function_response"})
"""ShareGPT's words for who answers as a tool."""
_NOTHING: Final[dict[str, Json]] = {}
_REPLIES: Final = ("response", "response_body", "responseBody", "completion", "output")


def _recognises(head: bytes) -> float:
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"["):
        return 0.0
    if _LINE.match(head.removeprefix(b"\xef\xbb\xbf")) and b'"role"' in head:
        return 0.45
    if not _FIRST.match(head.removeprefix(b"\xef\xbb\xbf")):
        if _LOGGED.search(head) or holds(head, "role", "content"):
            return 0.4  # behind facts of somebody's own
        return 0.3 if _LOOSE.search(head) else 0.0
    likelihood = max((certainty for sign, certainty in _SIGNS if sign.search(head)), default=0.0)
    return likelihood or (0.3 if _LOOSE.search(head) else 0.0)


def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    counts: Counter[str] = Counter()
    batch: dict[str, dict[str, Json]] = {}
    loose: dict[str, list[Json]] = {}
    for line, document in documents(stream, str(path)):
        for item in _items(document):
            if isinstance(item, dict) and "custom_id" in item:
                _join(batch, item)
            elif isinstance(item, dict) and _is_message(item) and _listed(item) is None:
                loose.setdefault(_conversation(item), []).append(item)
            else:
                yield from _one(item, counts, f"{path}:{line}")
    for name, messages in loose.items():
        known: dict[str, Json] = {"conversation_id": name} if name else {}
        yield from _talk({"messages": messages, **known}, _seed(messages, counts))
    if batch:
        seed = _seed([*batch.values()], counts)
        calls = (_of_batch(each) for each in batch.values())
        yield from exchanges.run_of(calls, carrier=FORMAT.name, seed=seed, name="batch")


def _items(document: Json) -> list[Json]:
    """Give the records in a document: a list of messages is one, any other list as many as it has."""
    if not isinstance(document, list):
        record = as_object(document)
        if isinstance(inner := record.get("data"), list) and _listed(record) is None:
            return inner
        items = [{"name": name, **value} for name, value in record.items() if isinstance(value, dict)]
        is_wrapped = bool(items) and len(items) == len(record) and all(_listed(each) is not None for each in items)
        return [*items] if is_wrapped else [document]
    if document and all(isinstance(each, dict) and _is_message(each) for each in document):
        return [{"messages": document}]
    return document


def _is_message(message: Mapping[str, Json]) -> bool:
    return "role" in message or "from" in message or message.get("type") in ("message", "reasoning", "function_call")


def _conversation(message: Mapping[str, Json]) -> str:
    """Give the conversation that a line of one message says it is of."""
    return next((text for name in _CONVERSATIONS if (text := as_text(message.get(name)))), "")


def _listed(record: Mapping[str, Json]) -> list[Json] | None:
    """Find the list of messages of a record."""
    for name in _LISTS:
        messages = records.unwrapped(record.get(name))
        if isinstance(messages, list):
            return messages
    return None


def _seed(value: Json, counts: Counter[str]) -> str:
    """Name a record by its content; the second of two equal ones is another run."""
    digest = hashlib.blake2b(canonical(value), digest_size=16).hexdigest()
    counts[digest] += 1
    return digest if counts[digest] == 1 else f"{digest}:{counts[digest]}"


def _one(record: Json, counts: Counter[str], place: str) -> Iterator[SpanRecord]:
    if not isinstance(record, dict):
        raise InputError(place, "this is no conversation: expected an object with `messages`")
    seed = _seed(record, counts)
    request = next((each for each in _objects(record, _REQUESTS) if "messages" in each), _NOTHING)
    reply = _reply(record)
    if request and reply and "preferred_output" not in record:
        call, error = _logged(record, request, reply), _error(record)
        for span in exchanges.run_of([call], carrier=FORMAT.name, seed=seed, name="logged call"):
            yield replace(span, status=STATUS_ERROR, status_message=error) if error else span
    elif _listed(record) is not None or request:
        yield from _talk({**request, **record} if request else record, seed)
    elif "choices" in record or record.get("object") == "response":
        lone = Exchange(
            method="POST",
            url="",
            status=200,
            reply=spelled_json(record),
            shape="openai.chat" if "choices" in record else "openai.responses",
            error=_error(record) if record.get("status") == "failed" else "",
            lost=(lacking("request", "the file holds a reply and no request", "export the input messages too"),),
            rebuilt=("reply",),
        )
        yield from exchanges.run_of([lone], carrier=FORMAT.name, seed=seed, name="stored completion")
    else:
        raise InputError(place, "this is no conversation: it has neither `messages` nor `request` and `response`")


# ----------------------------------------------------------------------------------------------------- conversations


def _talk(record: Mapping[str, Json], seed: str) -> Iterator[SpanRecord]:
    messages = [*_instructions(record), *(_message(each) for each in _listed(record) or [])]
    answer = _reply(record)
    if (choices := as_list(answer.get("choices"))) and messages:
        messages.append(as_object(as_object(choices[0]).get("message")))
    elif "role" in answer:
        messages.append(answer)
    elif preferred := as_list(record.get("preferred_output")):
        messages += preferred
    metadata = as_object(record.get("metadata"))
    yield from conversations.run_of(
        Conversation(
            seed=seed,
            name=as_text(record.get("name")) or as_text(metadata.get("name")) or "conversation",
            turns=tuple(Turn(message=message, at_ns=_at(each)) for each in messages for message in turns(each)),
            model=as_text(record.get("model")),
            system="anthropic" if _is_anthropics(record, messages) else "openai",
            api="" if _is_anthropics(record, messages) else "chat",
            tools=tool_schema.tools(records.unwrapped(record.get("tools", record.get("functions")))),
            parameters={name: value for name, value in record.items() if name in _PARAMETERS},
            attributes=_facts(record, metadata),
            asks=True,
            call_error=_error(record),
        ),
        FORMAT.name,
    )


def _instructions(record: Mapping[str, Json]) -> list[Json]:
    """Give the system prompt that stands beside the messages, as Anthropic's API has it: a text, or blocks."""
    system = record.get("system")
    return [{"role": "system", "content": system}] if isinstance(system, str | list) and system else []


def _at(message: Json) -> int:
    """Tell when a message was written, where it says so."""
    fields = as_object(message)
    return next((ns for name in ("timestamp", "created_at") if (ns := records.nanoseconds(fields.get(name)))), 0)


def _message(message: Json) -> Json:
    """Spell ShareGPT's messages, `{"from": "gpt", "value": …}`, as all others are."""
    fields = as_object(message)
    if "from" not in fields:
        return message
    who, value = as_text(fields.get("from")), fields.get("value")
    if who == "function_call" and (calls := _called(value)):
        return {"role": "assistant", "tool_calls": calls}
    words = {"gpt": "assistant", "human": "user", "chatgpt": "assistant", "function_call": "assistant"}
    return {"role": words.get(who, "tool" if who in _TOOLS else who), "content": value}


def _called(value: Json) -> list[Json]:
    """Read the calls of tools that ShareGPT keeps as JSON in a text: one, or a list; nothing where it is no such."""
    read = records.unwrapped(value)
    calls = [as_object(each) for each in (read if isinstance(read, list) else [read])]
    return [{"function": call} for call in calls] if all(as_text(call.get("name")) for call in calls) else []


def _error(record: Mapping[str, Json]) -> str:
    """Give what a record says went wrong with its call: a text, or the `type` and `message` of an API."""
    error = record.get("error")
    fields = as_object(error)
    fields = as_object(fields.get("error")) or fields
    if message := as_text(fields.get("message")):
        kind = as_text(fields.get("type"))
        return f"{kind}: {message}" if kind else message
    return records.attribute_text(error) if records.is_said(error) else ""


def _is_anthropics(record: Mapping[str, Json], messages: list[Json]) -> bool:
    blocks = [
        as_text(as_object(part).get("type")) for each in messages for part in as_list(as_object(each).get("content"))
    ]
    if any(kind in ("tool_use", "tool_result", "thinking", "redacted_thinking") for kind in blocks):
        return True
    speaks_chat = any(as_object(each).keys() & {"tool_calls", "tool_call_id"} for each in messages)
    return not speaks_chat and provider_of(as_text(record.get("model"))) == "anthropic"


def _facts(record: Mapping[str, Json], metadata: Mapping[str, Json]) -> dict[str, Attribute]:
    facts: dict[str, Attribute] = {}
    for name, aliases in (
        ("session.id", ("session_id", "conversation_id", "thread_id")),
        ("user.id", ("user_id", "user")),
    ):
        for alias in aliases:
            value = as_text(record.get(alias)) or as_text(metadata.get(alias))
            if value:
                facts.setdefault(name, value)
    if metadata:
        facts["metadata"] = records.attribute_text(dict(metadata))
    return facts


# -------------------------------------------------------------------------------------------- logged calls, batches


def _reply(record: Mapping[str, Json]) -> dict[str, Json]:
    choices = record.get("choices")
    lone: dict[str, Json] = {"choices": choices, "object": "chat.completion"} if isinstance(choices, list) else {}
    return next((each for each in _objects(record, _REPLIES) if each), lone)


def _objects(record: Mapping[str, Json], names: tuple[str, ...]) -> Iterator[dict[str, Json]]:
    """Give the fields of these names as objects; some write JSON into a string."""
    for name in names:
        yield as_object(records.unwrapped(record.get(name)))


def _logged(record: Mapping[str, Json], request: dict[str, Json], reply: dict[str, Json]) -> Exchange:
    start = records.nanoseconds(
        record.get("start_time", record.get("startTime", record.get("created_at", record.get("timestamp"))))
    )
    end = records.nanoseconds(record.get("end_time", record.get("endTime")))
    latency = as_count(record.get("latency_ms"))
    return Exchange(
        method="POST",
        url=as_text(record.get("url")),
        request=spelled_json(request),
        status=as_count(record.get("status_code", record.get("status"))) or 200,
        reply=spelled_json(as_object(reply.get("body")) or reply),
        start_ns=start,
        end_ns=end or (start + latency * 1_000_000 if start and latency is not None else 0),
        shape=_shape(as_text(record.get("url")), request, as_object(reply.get("body")) or reply),
        error=_error(reply) if as_text(reply.get("status")) == "failed" else "",
        rebuilt=("request", "reply"),
    )


def _shape(url: str, body: Mapping[str, Json], reply: Mapping[str, Json] = _NOTHING) -> str:
    """Tell the API of a call: by its address, else by the reply, else by what only one API is asked."""
    if (shape := shape_at("POST", url, spelled_json(dict(body)))) is not None:
        return shape.name
    if reply.get("type") == "message" or ("stop_reason" in reply and "content" in reply):
        return "anthropic.messages"
    if "choices" in reply:
        return "openai.chat"
    if "system" in body or ("max_tokens" in body and "claude" in as_text(body.get("model"))):
        return "anthropic.messages"
    return "openai.responses" if "messages" not in body and "input" in body else "openai.chat"


def _join(batch: dict[str, dict[str, Json]], record: dict[str, Json]) -> None:
    """Put the line of a batch's output beside its input's."""
    batch.setdefault(as_text(record.get("custom_id")), {}).update(record)


def _of_batch(record: dict[str, Json]) -> Exchange:
    """Read one request of a batch of OpenAI's or Anthropic's, its reply, or both."""
    body = as_object(record.get("body")) or as_object(record.get("params"))
    response, result = as_object(record.get("response")), as_object(record.get("result"))
    url = as_text(record.get("url"))
    reply = response.get("body") if response else result.get("message")
    failed = record.get("error") or result.get("error")
    anthropics = "params" in record or "result" in record
    shape = "anthropic.messages" if anthropics else _shape(url, body) if body else _answering(as_object(reply))
    status = as_count(response.get("status_code")) or (200 if "message" in result else None)
    lost = [] if body else [lacking("request", "this is the batch's output alone", "put its input file beside it")]
    error = _error({"error": failed}) if failed else ""
    if as_text(result.get("type")) in ("expired", "canceled"):
        error = f"the request was {result['type']}"
    attributes: dict[str, Attribute] = {"batch.custom_id": as_text(record.get("custom_id"))}
    if request_id := as_text(response.get("request_id")):
        attributes["batch.request_id"] = request_id
    return Exchange(
        method=as_text(record.get("method")) or "POST",
        url=url,
        request=spelled_json(body) if body else b"",
        status=status if reply is not None else None,
        reply=spelled_json(reply) if reply is not None else b"",
        shape=shape,
        error=error,
        lost=tuple(lost),
        rebuilt=("request", "reply"),
        attributes=attributes,
    )


def _answering(reply: Mapping[str, Json]) -> str:
    """Tell by a reply which API gave it."""
    if reply.get("object") == "list":
        return "openai.embeddings"
    return "openai.responses" if reply.get("object") == "response" else "openai.chat"


FORMAT = Format(
    name="messages",
    suffix=".messages.jsonl",
    recognises=_recognises,
    decode=_decode,
    most=0.9,
    marks=HeadMarks(
        texts=tuple(
            (f'"{key}"',)
            for key in ("custom_id", "messages", "conversations", "object", "role", "content", "contents", "type")
        )
    ),
)
