"""Google's Gemini (`POST …/models/MODEL:generateContent`, `:streamGenerateContent`, `:countTokens`), and over gRPC.

AI Studio and Vertex AI speak the same JSON. The model stands in the path. Written from Google's discovery documents and
the types of its SDK; REST answers in camel case and takes snake case as well, so both are read.

Over gRPC (`GenerativeService` of AI Studio, `PredictionService` of Vertex AI) the messages are the same, with the names
of their fields as the schema spells them, in snake case, and the model stands in the question. `boundary.rpc` spells
them as JSON; a stream is one document behind the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from reenact.contracts.shape import SSE, Framing, Shape, Wording
from reenact.values import json_lines
from reenact.values.call import CallKind
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lenient import as_list, as_object, as_text, at, first_count, text_or_json, text_or_none, without
from reenact.values.message import (
    Answered,
    Asked,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Said,
    Text,
    ToolCall,
    Usage,
)

_SYSTEM = ("systemInstruction", "system_instruction")
_DECLARED = ("functionDeclarations", "function_declarations")
_CALL = ("functionCall", "function_call")
_RESPONSE = ("functionResponse", "function_response")
_INLINE = ("inlineData", "inline_data")
_FILE = ("fileData", "file_data")
_MIME = ("mimeType", "mime_type")
_SIGNATURE = ("thoughtSignature", "thought_signature")
_WORDS = ("result", "output", "error")
"""Where SDKs put what a function returned, when it is no object."""
_MODALITIES = ("image", "audio", "video")


def _events(data: bytes) -> list[Json]:
    """Give the events of a stream: of server-sent ones, or of the one array that comes where nobody asks for those."""
    return json_lines.events(data) if data.lstrip()[:1] == b"[" else SSE.events(data)


_FRAMING_OF_GRPC = Framing(
    media_type="application/grpc",
    events=lambda data: json_lines.events(b"[" + data),  # an array whose commas and whose end are missing
)
_SERVICES = (
    *(f"/google.ai.generativelanguage.{version}.GenerativeService" for version in ("v1", "v1alpha", "v1beta")),
    *(f"/google.cloud.aiplatform.{version}.PredictionService" for version in ("v1", "v1beta1")),
)
_FRAMING = Framing(media_type=SSE.media_type, events=_events)


def _key_of(value: Json, names: tuple[str, ...]) -> str:
    """Give the one of several names that an object has, or nothing."""
    return next((name for name in names if name in as_object(value)), "")


def _under(value: Json, names: tuple[str, ...]) -> Json:
    return as_object(value).get(_key_of(value, names))


def _read_request(body: Json) -> Asked:
    asked = as_object(body)
    system, tools = _key_of(asked, _SYSTEM), asked.get("tools")
    instructions = [_instruction(asked[system])] if system and asked[system] is not None else []
    contents = asked.get("contents")
    listed = contents if isinstance(contents, list) else [contents] if contents is not None else []
    read_keys = {system, "contents", *(["tools"] if isinstance(tools, list) else [])}
    return Asked(
        model=text_or_none(asked.get("model")),
        messages=(*instructions, *(message for content in listed for message in _messages(content, "user"))),
        tools=tuple(tool for definition in as_list(tools) for tool in _tools(definition)),
        parameters=without(asked, read_keys),
    )


def _tools(tool: Json) -> Iterator[Json]:
    """Give each function that is declared, and what else a tool is; a tool may be both."""
    declared = _key_of(tool, _DECLARED)
    functions = as_object(tool).get(declared)
    if not isinstance(functions, list):
        yield tool
        return
    yield from functions
    if rest := without(as_object(tool), (declared,)):
        yield rest


def _instruction(value: Json) -> Message:
    if isinstance(value, str):
        return Message(role="system", parts=(Text(value),))
    parts = as_list(value) or as_list(at(value, "parts"))
    return Message(role="system", parts=tuple(read for part in parts for read in _parts(part)) or (Opaque(value),))


def _messages(content: Json, role: str) -> Iterator[Message]:
    """Read one content; what functions returned are messages of their own, as everywhere else."""
    if not isinstance(content, dict):
        yield Message(role=role, parts=(Text(content) if isinstance(content, str) else Opaque(content),))
        return
    value = content.get("parts")
    parts = value if isinstance(value, list) else [value] if value is not None else []
    own_role = as_text(content.get("role")) or role
    own_parts: list[Part] = []
    answers: list[Message] = []
    for part in parts:
        if isinstance(response := _under(part, _RESPONSE), dict):
            answers.append(_answer(response, without(as_object(part), _RESPONSE)))
        else:
            own_parts += _parts(part)
    if rest := without(content, ("parts", "role")):
        own_parts.append(Opaque(rest))
    if own_parts or not answers:
        yield Message(role="assistant" if own_role == "model" else own_role, parts=tuple(own_parts))
    yield from answers


def _answer(response: dict[str, Json], rest: dict[str, Json]) -> Message:
    payload = response.get("response")
    words = as_object(payload)
    alone = next((words[name] for name in _WORDS if len(words) == 1 and isinstance(words.get(name), str)), None)
    unknown = {**rest, **without(response, ("id", "name", "response"))}
    return Message(
        role="tool",
        parts=(Text(text_or_json(payload if alone is None else alone)), *([Opaque(unknown)] if unknown else [])),
        name=as_text(response.get("name")) or None,
        tool_call_id=text_or_none(response.get("id")),
    )


def _parts(part: Json) -> list[Part]:
    """Read a part; its signature is one of its own, for it may be needed where the part's text is not."""
    if not isinstance(part, dict):
        return [Text(part) if isinstance(part, str) else Opaque(part)]
    signature = text_or_none(_under(part, _SIGNATURE))
    if isinstance(call := _under(part, _CALL), dict):
        read: Part = _tool_call(call)
        read_keys = (*_CALL, *_SIGNATURE)
        rest = {**without(part, read_keys), **without(call, ("id", "name", "args"))}
    elif isinstance(text := part.get("text"), str):
        thought = part.get("thought") is True
        read = Reasoning(text=text, encrypted=signature, seal="signature") if thought else Text(text)
        signature = None if thought else signature
        rest = without(part, ("text", *_SIGNATURE, *(["thought"] if thought or part.get("thought") is False else [])))
    elif media := _media(part):
        read, rest = media, without(part, (*_INLINE, *_FILE, *_SIGNATURE))
    elif signature is not None and part.keys() <= {*_SIGNATURE}:
        return [Reasoning(encrypted=signature, seal="signature")]
    else:
        return [Opaque(part)]
    signed: list[Part] = [] if signature is None else [Reasoning(encrypted=signature, seal="signature")]
    return [*signed, read, *([Opaque(rest)] if rest else [])]


def _tool_call(call: dict[str, Json]) -> ToolCall:
    return ToolCall(
        id=as_text(call.get("id")), name=as_text(call.get("name")), arguments=text_or_json(call.get("args"))
    )


def _media(part: dict[str, Json]) -> Media | None:
    if isinstance(inline := _under(part, _INLINE), dict) and (data := as_text(inline.get("data"))):
        kind = as_text(_under(inline, _MIME))
        return Media(modality=_modality(kind), url=f"data:{kind};base64,{data}", mime_type=kind)
    file = _under(part, _FILE)
    url = as_text(_under(file, ("fileUri", "file_uri")))
    kind = as_text(_under(file, _MIME))
    return Media(modality=_modality(kind), url=url, mime_type=kind) if url else None


def _modality(kind: str) -> str:
    first = kind.partition("/")[0]
    return first if first in _MODALITIES else "document"


def _read_request_over_grpc(body: Json) -> Asked:
    """Read a request that names its model as a resource, `models/M` or `projects/P/…/models/M`."""
    asked = _read_request(body)
    return asked if asked.model is None else replace(asked, model=asked.model.rpartition("/")[2])


def _read_reply_over_grpc(body: Json) -> Answered:
    reply = _in_camel_case(body)
    reply["candidates"] = [_in_camel_case(candidate) for candidate in as_list(reply.get("candidates"))]
    usage = _in_camel_case(reply.get("usageMetadata"))
    for name, details in usage.items():
        if isinstance(details, list):
            usage[name] = [_in_camel_case(each) for each in details]
    return _read_reply({**reply, "usageMetadata": usage})


def _in_camel_case(fields: Json) -> dict[str, Json]:
    """Spell the names of an object's own fields as REST does."""
    return {_camel(name): value for name, value in as_object(fields).items()}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _read_reply(body: Json) -> Answered:
    reply = as_object(body)
    candidates = [as_object(candidate) for candidate in as_list(reply.get("candidates"))]
    return Answered(
        model=text_or_none(reply.get("modelVersion")),
        id=text_or_none(reply.get("responseId")),
        messages=tuple(
            message
            for candidate in candidates
            if candidate.get("content")
            for message in _messages(candidate["content"], "assistant")
        ),
        finish_reasons=tuple(reason for candidate in candidates if (reason := as_text(candidate.get("finishReason")))),
        usage=_usage(reply.get("usageMetadata")),
    )


def _usage(usage: Json) -> Usage:
    """Count thoughts among what was generated, as others do, and the results of built-in tools among what was read."""
    candidate_tokens = first_count(usage, ("candidatesTokenCount",))
    thought = first_count(usage, ("thoughtsTokenCount",))
    prompt = first_count(usage, ("promptTokenCount",))
    used = first_count(usage, ("toolUsePromptTokenCount",))
    return Usage(
        prompt=prompt if used is None else (prompt or 0) + used,
        completion=candidate_tokens if thought is None else (candidate_tokens or 0) + thought,
        total=first_count(usage, ("totalTokenCount",)),
        cache_read=first_count(usage, ("cachedContentTokenCount",)),
        reasoning=thought,
        prompt_audio=_audio_tokens(usage, "promptTokensDetails"),
        completion_audio=_audio_tokens(usage, "candidatesTokensDetails"),
    )


def _audio_tokens(usage: Json, details: str) -> int | None:
    counts = [as_object(each) for each in as_list(at(usage, details))]
    return next((first_count(each, ("tokenCount",)) for each in counts if each.get("modality") == "AUDIO"), None)


def _fold(events: Iterable[Json]) -> Json:
    """Join the pieces of each candidate. Texts of one kind that follow each other are one; of all else the last holds.

    A stream that was cut by an error has it as its last event, which stays under `error`.
    """
    reply: dict[str, Json] = {}
    candidates: dict[int, dict[str, Json]] = {}
    for event in events:
        for key, value in as_object(event).items():
            if key == "candidates" and isinstance(value, list):
                reply.setdefault(key, [])
                for place, piece in enumerate(value):
                    _go_on(candidates, as_object(piece), place)
            elif value is not None or key not in reply:
                reply[key] = value
    if candidates:
        reply["candidates"] = [candidates[index] for index in sorted(candidates)]
    return reply


def _go_on(candidates: dict[int, dict[str, Json]], piece: dict[str, Json], place: int) -> None:
    index = first_count(piece, ("index",))
    candidate = candidates.setdefault(place if index is None else index, {})
    for key, value in piece.items():
        if key == "content" and isinstance(value, dict):
            content = as_object(candidate.get(key))
            parts = _joined(as_list(content.get("parts")), as_list(value.get("parts")))
            candidate[key] = {**content, **value, **({"parts": parts} if parts or "parts" in value else {})}
        elif value is not None or key not in candidate:
            candidate[key] = value


def _joined(former: list[Json], more: list[Json]) -> list[Json]:
    parts = [*former]
    for part in more:
        last = as_object(parts[-1]) if parts else {}
        if (
            _is_text(part)
            and _is_text(last)
            and not _key_of(last, _SIGNATURE)
            and last.get("thought") == as_object(part).get("thought")
        ):
            new = as_object(part)
            parts[-1] = {**last, **new, "text": as_text(last["text"]) + as_text(new["text"])}
        else:
            parts.append(part)
    return parts


def _is_text(part: Json) -> bool:
    fields = as_object(part)
    return isinstance(fields.get("text"), str) and fields.keys() <= {"text", "thought", *_SIGNATURE}


def _unfold(body: Json) -> bytes:
    """Spell a whole reply as a stream of one event, which is what a short one is."""
    return f"data: {compact(body)}\r\n\r\n".encode("utf-8", "replace")


def _first(body: Json) -> tuple[dict[str, Json], list[Json]]:
    candidate = as_object(next(iter(as_list(as_object(body).get("candidates"))), None))
    return candidate, as_list(at(candidate, "content", "parts"))


def _part_text(part: Json) -> str | None:
    fields = as_object(part)
    is_call = isinstance(_under(fields, _CALL), dict)
    return None if is_call or fields.get("thought") is True else text_or_none(fields.get("text"))


def _called(part: Json) -> ToolCall | None:
    call = _under(part, _CALL)
    return _tool_call(call) if isinstance(call, dict) else None


def _read_said(body: Json) -> Said:
    candidate, parts = _first(body)
    texts = [text for part in parts if (text := _part_text(part)) is not None]
    return Said(
        text="".join(texts) if texts else None,
        calls=tuple(call for part in parts if (call := _called(part)) is not None),
        finish=text_or_none(candidate.get("finishReason")),
    )


def _write_said(body: Json, turn: Said) -> Json:
    """Change text in its first part and calls in their order; thoughts and what else there is stays."""
    before = _read_said(body)
    if turn == before:
        return body
    candidate, parts = _first(body)
    if turn.text != before.text:
        parts = _with_text(parts, turn.text)
    if turn.calls != before.calls:
        parts = _with_calls(parts, turn.calls)
    content: Json = {"role": "model", **as_object(candidate.get("content")), "parts": parts}
    others = as_list(as_object(body).get("candidates"))[1:]
    changed: Json = {**candidate, "content": content, "finishReason": turn.finish}
    return {**as_object(body), "candidates": [changed, *others]}


def _with_text(parts: list[Json], text: str | None) -> list[Json]:
    places = [place for place, part in enumerate(parts) if _part_text(part) is not None]
    calls = [place for place, part in enumerate(parts) if _called(part) is not None]
    first = next(iter([*places, *calls]), len(parts))
    original = as_object(parts[first]) if first in places and text is not None else {}
    changed: list[Json] = []
    for place, part in enumerate(parts):
        if place == first and text is not None:
            changed.append({**original, "text": text})
        if place not in places:
            changed.append(part)
        elif place != first or text is None:
            changed += _signed(part)
    return [*changed, {"text": text}] if text is not None and first == len(parts) else changed


def _signed(part: Json) -> list[Json]:
    """Give what is left of a part that goes: its signature stays."""
    name = _key_of(part, _SIGNATURE)
    return [{name: as_object(part)[name]}] if isinstance(as_object(part).get(name), str) else []


def _with_calls(parts: list[Json], calls: tuple[ToolCall, ...]) -> list[Json]:
    left, changed = [*calls], list[Json]()
    for part in parts:
        if (read := _called(part)) is None:
            changed.append(part)
        elif left:
            call, name = left.pop(0), _key_of(part, _CALL)
            fields = as_object(part)
            changed.append(part if call == read else {**fields, name: {**as_object(fields[name]), **_call_json(call)}})
        else:
            changed += _signed(part)
    return [*changed, *({"functionCall": _call_json(call)} for call in left)]


def _call_json(call: ToolCall) -> dict[str, Json]:
    arguments = parsed_or_none(call.arguments)
    return {"id": call.id, "name": call.name, "args": call.arguments if arguments is None else arguments}


def _write_request(asked: Asked) -> Json:
    """Spell a request of which only the meaning was kept."""
    body: dict[str, Json] = {} if asked.model is None else {"model": asked.model}
    body |= asked.parameters
    messages = [*asked.messages]
    if messages and messages[0].role == "system":
        body["systemInstruction"] = {"parts": [_part_json(part) for part in messages.pop(0).parts]}
    body["contents"] = [_content(message) for message in messages]
    if asked.tools:
        body["tools"] = [_tool(tool) for tool in asked.tools]
    return body


def _tool(tool: Json) -> Json:
    """Spell a function's definition as Gemini does; any other tool stays as it is."""
    fields = as_object(tool)
    function = as_object(fields.get("function"))
    if function:
        declaration = {name: function[name] for name in ("name", "description", "parameters") if name in function}
        return {"functionDeclarations": [declaration]}
    return {"functionDeclarations": [tool]} if isinstance(fields.get("name"), str) else tool


def _content(message: Message) -> Json:
    if message.role == "tool":
        return {"role": "user", "parts": [{"functionResponse": _response(message)}]}
    role = "model" if message.role == "assistant" else message.role
    return {"role": role, "parts": [_part_json(part) for part in message.parts]}


def _response(message: Message) -> dict[str, Json]:
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    rest = [part.json for part in message.parts if isinstance(part, Opaque)]
    id_field: dict[str, Json] = {} if message.tool_call_id is None else {"id": message.tool_call_id}
    more = {name: value for each in rest for name, value in as_object(each).items()}
    return {**id_field, "name": message.name or "", "response": {"result": "".join(texts)}, **more}


def _part_json(part: Part) -> Json:
    match part:
        case Text(text=text):
            return {"text": text}
        case Reasoning(text="", encrypted=str(signature)):
            return {"thoughtSignature": signature}
        case Reasoning(text=text, encrypted=signature):
            signed: dict[str, Json] = {} if signature is None else {"thoughtSignature": signature}
            return {"text": text, "thought": True, **signed}
        case Media():
            head, _, data = part.url.partition(";base64,")
            if data and head.startswith("data:"):
                return {"inlineData": {"mimeType": head.removeprefix("data:"), "data": data}}
            return {"fileData": {"mimeType": part.mime_type, "fileUri": part.url}}
        case ToolCall():
            id_field: dict[str, Json] = {"id": part.id} if part.id else {}
            return {"functionCall": {**id_field, **without(_call_json(part), ("id",))}}
        case Opaque(json=json):
            return json


def _write_reply(answered: Answered) -> Json:
    usage = answered.usage
    total = usage.completion
    counts = {
        "promptTokenCount": usage.prompt,
        "candidatesTokenCount": total if total is None or usage.reasoning is None else max(0, total - usage.reasoning),
        "totalTokenCount": usage.total,
        "cachedContentTokenCount": usage.cache_read,
        "thoughtsTokenCount": usage.reasoning,
    }
    reasons = answered.finish_reasons
    candidates: list[Json] = [
        {
            "content": _content(message),
            **({"finishReason": reasons[place]} if place < len(reasons) else {}),
            "index": place,
        }
        for place, message in enumerate(answered.messages)
    ]
    return {
        "candidates": candidates,
        "usageMetadata": {name: count for name, count in counts.items() if count is not None},
        "modelVersion": answered.model,
        "responseId": answered.id,
    }


SHAPE = Shape(
    name="google.generate_content",
    system="vertexai",
    genai_provider="gcp.gen_ai",
    operation="generate_content",
    kind=CallKind.LLM,
    span_name="GenerateContent",
    paths=(":generateContent",),
    fields=("contents",),
    noise=frozenset({"labels"}),
    opaque=("thoughtSignature", "thought_signature", "data"),
    read_request=_read_request,
    read_reply=_read_reply,
    fold=_fold,
    is_stream=lambda _: False,
    unfold=_unfold,
    write_request=_write_request,
    write_reply=_write_reply,
    wording=Wording(read=_read_said, write=_write_said, finishes=("STOP", "STOP")),
    stream_ends=(),
    credentials=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
)

STREAM = Shape(
    name="google.stream_generate_content",
    system=SHAPE.system,
    genai_provider=SHAPE.genai_provider,
    operation=SHAPE.operation,
    kind=SHAPE.kind,
    span_name="GenerateContentStream",
    paths=(":streamGenerateContent",),
    fields=SHAPE.fields,
    noise=SHAPE.noise,
    opaque=SHAPE.opaque,
    read_request=lambda body: replace(_read_request(body), stream=True),
    read_reply=_read_reply,
    fold=_fold,
    is_stream=lambda _: True,
    framing=_FRAMING,
    api=SHAPE.name,
    unfold=_unfold,
    write_request=_write_request,
    write_reply=_write_reply,
    wording=SHAPE.wording,
    stream_ends=(),
    credentials=SHAPE.credentials,
)
"""The same question, asked for an answer in pieces: server-sent events, or one array where nobody asked for those."""

COUNT_TOKENS = Shape(
    name="google.count_tokens",
    system=SHAPE.system,
    genai_provider=SHAPE.genai_provider,
    operation="count_tokens",
    kind=CallKind.LLM,
    span_name="CountTokens",
    paths=(":countTokens",),
    fields=("contents", "generateContentRequest", "instances"),
    noise=frozenset(),
    opaque=SHAPE.opaque,
    read_request=lambda body: _read_request({**as_object(at(body, "generateContentRequest")), **as_object(body)}),
    read_reply=lambda _: Answered(),
    fold=lambda events: as_object(next(iter(events), None)),
    is_stream=lambda _: False,
    credentials=SHAPE.credentials,
)
"""Token counting: a request to a model that no model answers, and no token usage."""


def _over_grpc(shape: Shape, name: str, method: str) -> Shape:
    """Give the shape of a method of Google's services; a fork does not change what one answers."""

    def read_request(body: Json) -> Asked:
        return replace(_read_request_over_grpc(body), stream=shape.is_stream(body))

    return replace(
        shape,
        name=name,
        paths=tuple(f"{service}/{method}" for service in _SERVICES),
        read_request=read_request,
        read_reply=_read_reply_over_grpc if shape is not COUNT_TOKENS else shape.read_reply,
        framing=_FRAMING_OF_GRPC,
        api="",
        unfold=None,
        write_request=None,
        write_reply=None,
        wording=None,
    )


GRPC = _over_grpc(SHAPE, "google.grpc_generate_content", "GenerateContent")
GRPC_STREAM = _over_grpc(STREAM, "google.grpc_stream_generate_content", "StreamGenerateContent")
GRPC_COUNT = _over_grpc(COUNT_TOKENS, "google.grpc_count_tokens", "CountTokens")
